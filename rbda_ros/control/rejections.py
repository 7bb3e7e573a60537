"""Rejected input: reasons, counts, and what to change."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Any

import numpy as np

from rbda_ros.control import native
from rbda_ros.control.configuration import names_in
from rbda_ros.control.native import MAX_NAMES
from rbda_ros.control.settings import Settings
from rbda_ros.control.topics import Input
from rbda_ros.errors import (
    ClosureError,
    InputError,
    NotFiniteError,
    SingularityError,
    listed,
)
from rbda_ros.robot import Robot
from rbda_ros.robot.feedforward_call import singular_state
from rbda_ros.robot.motor_command import singular_command
from rbda_ros.spatial import Array

MESSAGES = {
    Input.REFERENCE: "JointTrajectory",
    Input.BASE_STATE: "Odometry",
    Input.EXTERNAL_WRENCH: "WrenchStamped",
}
"""Types of inputs that have no joint states."""


class Reason(StrEnum):
    """Why an input is rejected; the value is what diagnostics show."""

    UNREADABLE = "not readable"
    MISNAMED = "misnamed joints"
    PARTIAL = "joints missing"
    WRONG_SIZE = "wrong size"
    NOT_FINITE = "not finite"
    NOT_A_ROTATION = "not a rotation"
    STALE = "stale"
    OUT_OF_ORDER = "out of order"
    NO_VELOCITY = "no velocity"
    NO_ACCELERATION = "no acceleration"
    NO_REFERENCE = "no fresh reference"
    NO_BASE_STATE = "no fresh base state"
    NO_STATE = "no fresh joint states"
    NO_EFFORT = "no measured effort"
    NO_WRENCH = "no fresh external wrench"
    NOT_READY = "kernel not ready"
    NOT_CLOSING = "loops do not close"
    SINGULAR = "loop at a dead point"
    CONTRADICTION = "measurements disagree"
    MODEL = "refused by the model"


REASONS = tuple(Reason[name] for name in native.REJECTIONS[1:])
"""Code k of the machine is reason k - 1; code 0 is an accepted message."""


class RefusalError(InputError):
    """Input for which no effort may be published."""

    def __init__(self, reason: Reason, message: str) -> None:
        self.reason = reason
        super().__init__(message)


def refusal(error: Exception) -> RefusalError:
    """An error of the model as a rejection with its reason."""
    if isinstance(error, RefusalError):
        return error
    reasons = {
        NotFiniteError: Reason.NOT_FINITE,
        ClosureError: Reason.NOT_CLOSING,
        SingularityError: Reason.SINGULAR,
    }
    found = (reason for kind, reason in reasons.items() if isinstance(error, kind))
    return RefusalError(next(found, Reason.MODEL), str(error))


class Rejections:
    """Counts rejected inputs by reason, and explains the last one.

    Args:
        machine: whose they are.

    Attributes:
        explainer: finds the words; None without a model.
    """

    def __init__(self, machine: Any) -> None:
        self._machine = machine
        self.explainer: Explainer | None = None
        self.counts: Counter[Reason] = Counter()
        self.contradiction: tuple[float, str] | None = None
        self.largest_external = float("nan")
        self._search_failed = ""
        self._forgotten: Counter[Reason] = Counter()

    def forget_last(self) -> None:
        """Do not count the last rejection: its message is tried again."""
        self._forgotten[REASONS[self._machine.rejection()["code"] - 1]] += 1

    def collect(self) -> None:
        """Read what the machine has counted by now."""
        found = self._machine.counts()
        rejected = np.frombuffer(found["rejected"], np.int64)[1:].tolist()
        counted = Counter(dict(zip(REASONS, rejected, strict=True)))
        self.counts = counted - self._forgotten  # without zeros
        joint, explainer = found["contradicting"], self.explainer
        self.largest_external = found["external"]
        self.contradiction = None
        if joint >= 0 and explainer is not None:
            self.contradiction = found["contradiction"], explainer.joint(joint)

    @property
    def total(self) -> int:
        """How many there were in all."""
        return sum(self.counts.values())

    @property
    def last_message(self) -> str:
        """Why the last one was rejected, and what to change; empty before the first."""
        rejection = self._machine.rejection()
        if rejection["code"] == 0:
            return ""
        reason = REASONS[rejection["code"] - 1]
        if self.explainer is None:
            return reason.value
        if reason is Reason.NOT_CLOSING and self._search_failed:
            return self._search_failed
        return " ".join(self.explainer.explain(reason, rejection).split())

    def search_failed(self, message: str) -> None:
        """A search for a closed position has failed."""
        self._search_failed = " ".join(message.split())


class Explainer:
    """Finds the words for a rejection of the machine.

    Args:
        robot: the model.
        settings: that were in force.
    """

    def __init__(self, robot: Robot, settings: Settings) -> None:
        self._robot, self._settings = robot, settings

    def joint(self, number: int) -> str:
        """The name of a joint, as messages have it."""
        return self._settings.joint_prefix + self._robot.joint_names[number]

    def explain(self, reason: Reason, rejection: dict[str, Any]) -> str:
        """Why an input was rejected, and what to change.

        Args:
            reason: in a word.
            rejection: as the machine gives it.
        """
        topic = Input(rejection["topic"])
        if topic in (Input.JOINT_STATES, Input.JOINT_COMMANDS):
            return self._of_joints(reason, rejection, topic.name.lower())
        if reason is Reason.STALE:
            return (
                f"{topic.name.lower()} is {rejection['value'] * 1e-9:.3g} s old by its stamp; "
                "check the clocks, or publish it without a stamp to have its arrival count"
            )
        if reason is Reason.OUT_OF_ORDER:
            return f"{topic.name.lower()} is older than the last one; check the stamps"
        value, other = rejection["value"], rejection["other"]
        texts = {
            (Input.REFERENCE, Reason.WRONG_SIZE): (
                f"reference.points[0].accelerations has {other:.0f} numbers, which is not the "
                "number of its joints; give one per joint"
                if value
                else "reference has no point; give one"
            ),
            (Input.REFERENCE, Reason.MISNAMED): "reference names a joint twice; name each once",
            (Input.REFERENCE, Reason.NOT_FINITE): "reference has a number that is not finite",
            (Input.BASE_STATE, Reason.NOT_A_ROTATION): (
                f"base_state.pose.orientation has length {value:.3g}; give a unit quaternion (w = "
                "1 for none)"
            ),
            (Input.EXTERNAL_WRENCH, Reason.MISNAMED): (
                f"external_wrench: its header.frame_id is no link of '{self._robot.name}'; name "
                "the link that the wrench acts on, and give it in that link's frame"
            ),
        }
        if (topic, reason) in texts:
            return texts[topic, reason]
        if reason is Reason.NOT_FINITE:
            return f"{topic.name.lower()} is not finite, or has a number that is too large"
        return f"{topic.name.lower()}: the bytes are no {MESSAGES[topic]} in plain CDR"

    def _of_joints(self, reason: Reason, rejection: dict[str, Any], topic: str) -> str:
        value = rejection["value"]
        if reason is Reason.STALE:
            return (
                f"{topic} are {value * 1e-9:.3g} s old by their stamp; check the clocks, or raise "
                "joint_state_timeout (0: any age)"
            )
        if reason is Reason.OUT_OF_ORDER:
            return f"{topic} are older than the last ones; check the stamps"
        if reason is Reason.NO_VELOCITY:
            if value:
                return (
                    "the velocity comes from differences, and is known once messages have come "
                    "for one time constant of velocity_cutoff"
                )
            return (
                f"joint_states have no velocity{self._without_velocity(rejection)}; publish "
                "velocities, or set velocity_source to differentiate"
            )
        if reason is Reason.CONTRADICTION:
            return self._contradiction(rejection)
        if reason is Reason.SINGULAR:
            of_state = topic == "joint_states" or not np.isfinite(value)
            return singular_state(value) if of_state else singular_command(value)
        fixed = {
            Reason.NO_ACCELERATION: "the acceleration comes from differences, and is known once "
            "messages have come for one time constant of acceleration_cutoff",
            Reason.NO_REFERENCE: _no_fresh("~/reference"),
            Reason.NO_BASE_STATE: _no_fresh("~/base_state"),
            Reason.NO_WRENCH: _no_fresh("~/external_wrench"),
            Reason.NO_STATE: "no joint_states that could be answered lately; efforts act where the "
            "robot is",
            Reason.NO_EFFORT: "joint_states have no effort of every motor, nor of every "
            "independent joint; publish measured efforts, or set publish_external_effort to false",
            Reason.NOT_READY: f"the kernel for these {topic} is being made",
            Reason.NOT_CLOSING: "the loops do not close near the last position; a closed one is "
            "being searched for"
            if topic == "joint_states"
            else "the loops do not close at the commanded joints, or far from the position of the "
            "robot; command a pose within reach",
            Reason.MODEL: "the motors cannot give the commanded force; command efforts on joints "
            "that they drive",
        }
        return fixed[reason] if reason in fixed else self._of_message(reason, rejection, topic)

    def _of_message(self, reason: Reason, rejection: dict[str, Any], topic: str) -> str:
        try:
            names, _, *fields = native.read_joint_state(rejection["data"])
        except ValueError as error:
            return f"{topic}: {error}"
        position, velocity, effort = (np.frombuffer(numbers) for numbers in fields)
        named = dict(position=position, velocity=velocity, effort=effort)
        if reason is Reason.MISNAMED:
            return self._misnamed(names, topic)
        if reason is Reason.WRONG_SIZE:
            return _wrong_size(names, named, topic)
        if reason is Reason.PARTIAL:
            return self._partial(rejection["mask"], topic)
        bad = [
            f"{field} of {listed(absent)}"
            for field, numbers in named.items()
            if (absent := _not_finite(names, numbers))
        ]
        return f"{topic} are not finite: {'; '.join(bad) or 'numbers too large'}"

    def _without_velocity(self, rejection: dict[str, Any]) -> str:
        """Our joints whose velocity is not a number; drivers publish NaN for what they lack."""
        names, _, _, velocity, _ = native.read_joint_state(rejection["data"])
        ours = {self.joint(k) for k in range(len(self._robot.joint_names))}
        absent = [name for name in _not_finite(names, np.frombuffer(velocity)) if name in ours]
        return f" of {listed(absent)}" if absent else ""

    def _misnamed(self, names: list[str], topic: str) -> str:
        try:
            check_once(names)
        except RefusalError as error:
            return str(error)
        robot, prefix = self._robot, self._settings.joint_prefix
        ours = listed(prefix + name for name in robot.joint_names)
        if topic == "joint_states":
            return (
                f"joint_states name no joint of '{robot.name}', which has {ours}; they name "
                f"{listed(names) or 'none at all'}"
            )
        known = {prefix + name for name in robot.joint_names}
        unknown = [name for name in names if name not in known]
        return (
            f"joint_commands name {listed(unknown) or 'no joint'}, which '{robot.name}' does not "
            f"have; it has {ours}"
        )

    def _partial(self, mask: bytes, topic: str) -> str:
        try:
            self._robot.determining_joints(names_in(self._robot, mask))
        except InputError as error:
            return f"{topic}: {error}"
        return "reference: its joints do not determine the others; name more of them"

    def _contradiction(self, rejection: dict[str, Any]) -> str:
        measured, computed = rejection["value"], rejection["other"]
        name = self.joint(rejection["joint"])
        return (
            f"joint_states contradict each other: '{name}' is measured at {measured:.4g}, but "
            f"follows from the other joints to be at {computed:.4g} (difference "
            f"{measured - computed:.3g}); check its encoder and zero, or raise "
            "measurement_tolerance"
        )


def _not_finite(names: list[str], numbers: Array) -> list[str]:
    """Joints whose number is NaN or infinite."""
    pairs = zip(names, numbers.tolist(), strict=False)
    return [name for name, number in pairs if not np.isfinite(number)]


def check_once(names: Any) -> None:
    """Reject names that are given twice, or too many of them; in time that grows with their number.

    Raises:
        RefusalError: says which.
    """
    if len(names) > MAX_NAMES:
        raise RefusalError(
            Reason.WRONG_SIZE, f"{len(names)} joints are named; name {MAX_NAMES} at most"
        )
    if len(set(names)) < len(names):
        repeated = sorted(name for name, uses in Counter(names).items() if uses > 1)
        raise RefusalError(
            Reason.MISNAMED, f"joints named twice: {listed(repeated)}; name each once"
        )


def _wrong_size(names: list[str], fields: dict[str, Array], topic: str) -> str:
    if len(names) > MAX_NAMES:
        return f"{len(names)} joints are named; name {MAX_NAMES} at most"
    size = len(names)
    plural = {"position": "positions", "velocity": "velocities", "effort": "efforts"}
    for field, numbers in fields.items():
        needed = field == "position" and topic == "joint_states"
        if len(numbers) != size and (needed or len(numbers)):
            return (
                f"{topic} name {size} joints but have {len(numbers)} {plural[field]}; give one "
                "per joint"
            )
    return f"{topic} have no numbers; give some"


def _no_fresh(topic: str) -> str:
    return f"no fresh message on {topic}; publish it as often as joint_states"
