"""The answers of the node to the messages of a recording, by the same state machine.

A `Smoother` low-passes the efforts of samples without delay, by averages over what came before and
after.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rbda_ros.control import native
from rbda_ros.control.joint_map import places
from rbda_ros.control.settings import Settings, check_model
from rbda_ros.control.stream import Stream
from rbda_ros.control.topics import Input, Output
from rbda_ros.errors import InputError
from rbda_ros.robot import Robot

Vector = NDArray[np.float64]

LABEL_OF = {
    Output.FEEDFORWARD: "feedforward",
    Output.COMPLETED_STATES: "joint_states",
    Output.EXTERNAL_EFFORT: "external_effort",
}
"""The label that each message of the stream is."""
LABELS = (*LABEL_OF.values(), "residual")
"""Topics that are added, under the node's name."""
OTHER_TOPICS = {
    "~/reference": (Input.REFERENCE, "trajectory_msgs/msg/JointTrajectory"),
    "~/base_state": (Input.BASE_STATE, "nav_msgs/msg/Odometry"),
    "~/external_wrench": (Input.EXTERNAL_WRENCH, "geometry_msgs/msg/WrenchStamped"),
}
"""Topics that the node listens to beside joint states, and their types."""


@dataclass(frozen=True)
class Sample:
    """Quantities known at one joint state, for a row of a table; None where it is not.

    Attributes:
        stamp: of the message [ns].
        position, velocity: of every joint of one coordinate, completed.
        measured: efforts of the actuated joints, as measured; not a number where one is not.
        feedforward: efforts of the actuated joints, of the model.
        external: force on the independent joints from outside.
        joints: that positions and velocities follow from.
        base: pose (7) and twist (6) of a floating base; empty without one.
    """

    stamp: int
    position: Vector
    velocity: Vector
    measured: Vector | None
    feedforward: Vector
    external: Vector | None
    joints: tuple[str, ...]
    base: Vector

    @property
    def residual(self) -> Vector | None:
        """Efforts as measured minus those of the model."""
        return None if self.measured is None else self.measured - self.feedforward


class Labeller:
    """Answers the messages of one recording in their order. Not thread-safe.

    Args:
        robot: the model.
        settings: the parameters of the node; what publishes labels is on unless told otherwise.

    Attributes:
        refused: messages that were not answered, by reason.
        joints, actuated, independent: names in the order of a sample's numbers.
        floating_base: whether samples have the state of a base.
    """

    def __init__(self, robot: Robot, settings: Settings) -> None:
        check_model(settings, robot)
        # Commands, and wrenches of contacts, are no labels; nothing stops in a recording.
        settings = replace(
            settings,
            command_joints=(),
            contact_end_effector="",
            publish_joint_states="always",
            on_stale="nothing",
            on_refusal="silence",
        )
        self._robot, self._settings = robot, settings
        self._stream = Stream()
        self._stream.use(robot, settings)
        self.joints = tuple(
            name for name in robot.joint_names if name in robot.coordinates.scalar_positions
        )
        self.floating_base = robot.floating_base
        self.actuated, self.independent = robot.actuated_joint_names, robot.independent_joint_names
        prefix = settings.joint_prefix
        self._names = {
            "feedforward": [prefix + name for name in self.actuated],
            "external_effort": [prefix + name for name in self.independent],
        }
        # Of efforts in messages that name certain joints: whose they are, and where they stand.
        self._places: tuple[list[str], tuple[str, ...], list[int]] = [], (), []

    @property
    def refused(self) -> Counter[str]:
        """Messages that were not answered, by reason."""
        rejections = self._stream.rejections
        rejections.collect()
        return Counter({str(reason): n for reason, n in rejections.counts.items()})

    @property
    def last_refusal(self) -> str:
        """Why the last of them was not answered."""
        return self._stream.rejections.last_message

    def joint_states(self, data: bytes, time: int) -> tuple[list[tuple[str, bytes]], Sample | None]:
        """Answer a serialized JointState.

        Args:
            data: the message.
            time: when it was recorded [ns]: the node's present.

        Returns:
            The labels, each by its name in `LABELS`, serialized; and what is known by them.
        """
        messages = dict(self._stream.answer(Input.JOINT_STATES, data, time))
        labels = [(LABEL_OF[topic], message) for topic, message in messages.items()]
        if Output.FEEDFORWARD not in messages:
            return labels, None
        sample = self._sample(data, time, messages)
        if sample.residual is not None:
            labels.append(("residual", self._residual(sample.residual, data)))
        return labels, sample

    def effort_labels(self, sample: Sample, like: bytes) -> list[tuple[str, bytes]]:
        """Labels of a sample whose efforts were changed, with the stamp of a message."""
        numbers = {
            "feedforward": sample.feedforward,
            "external_effort": sample.external,
        }
        labels = [
            (label, self._efforts(self._names[label], values, like))
            for label, values in numbers.items()
            if values is not None
        ]
        if sample.residual is not None:
            labels.append(("residual", self._residual(sample.residual, like)))
        return labels

    def other(self, topic: str, msgtype: str, data: bytes, time: int) -> None:
        """Take a message of one of `OTHER_TOPICS`, serialized; one of another type is skipped."""
        number, wanted = OTHER_TOPICS[topic]
        if msgtype == wanted:
            self._stream.answer(number, data, time)

    @staticmethod
    def _efforts(names: Sequence[str], values: Vector, like: bytes) -> bytes:
        """A message of efforts with the stamp of another."""
        _, stamp, *_ = native.read_joint_state(like)
        return native.write_joint_state(names, stamp, b"", b"", values.tobytes())

    def _residual(self, residual: Vector, like: bytes) -> bytes:
        """The label of a residual: of the joints whose effort is measured."""
        measured = np.isfinite(residual)
        every = self._names["feedforward"]
        names = [name for name, has in zip(every, measured, strict=True) if has]
        return self._efforts(names, residual[measured], like)

    def _sample(self, data: bytes, time: int, messages: dict[Output, bytes]) -> Sample:
        names, stamp, _, _, given = native.read_joint_state(data)
        _, _, position, velocity, _ = native.read_joint_state(messages[Output.COMPLETED_STATES])
        effort = native.read_joint_state(messages[Output.FEEDFORWARD])[4]
        external = messages.get(Output.EXTERNAL_EFFORT)
        state = self._stream.last_state()
        assert state is not None
        layout = self._robot.coordinates
        base = np.concatenate([state.q[: layout.base_nq], state.velocity[: layout.base_nv]])
        return Sample(
            stamp or time,
            np.frombuffer(position),
            np.frombuffer(velocity),
            self._measured(names, np.frombuffer(given), state.q),
            np.frombuffer(effort),
            None if external is None else np.frombuffer(native.read_joint_state(external)[4]),
            state.joints,
            base,
        )

    def _measured(self, names: list[str], effort: Vector, q: Vector) -> Vector | None:
        """Efforts of the actuated joints, not a number for those that the message has none of.

        Where it has those of every independent joint instead, what these come to at the motors.
        """
        known, which, at = self._places
        if names != known:
            found = places(names, self._settings.joint_prefix, set(self._robot.joint_names))
            all_of = (n for n in (self.actuated, self.independent) if found.keys() >= {*n})
            which = next(all_of, tuple(name for name in self.actuated if name in found))
            at = [found[name] for name in which]
            self._places = names, which, at
        if not at or len(effort) != len(names):
            return None
        measured = effort[at]
        finite = np.isfinite(measured)
        if which is not self.independent or which is self.actuated:
            if not finite.any():
                return None
            efforts = np.full(len(self.actuated), np.nan)
            where = [self.actuated.index(name) for name in which]
            efforts[where] = np.where(finite, measured, np.nan)
            return efforts
        if not finite.all():
            return None
        tau = np.concatenate([np.zeros(self._robot.coordinates.base_nv), measured])
        return self._robot.actuator_efforts(q, tau)


LOWEST = 0.1
"""Cutoff that bounds what is remembered [Hz]."""
HALF_WIDTH = 0.36
"""Of a Hann window that lets half of the power at 1 Hz through [s]."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """A sample, and the message that it is of.

    Attributes:
        time: when it was recorded [ns].
        data: the message.
        labels: of it, each by its name, serialized.
        sample: what is known by them.
    """

    time: int
    data: bytes
    labels: list[tuple[str, bytes]]
    sample: Sample


class Smoother:
    """Averages measured and computed efforts of samples, which keep their stamps.

    Positions and velocities stay as they are, so that loops stay closed. Averages end where an
    episode does.

    Args:
        cutoff: frequency of which half of the power is let through [Hz].

    Raises:
        InputError: a cutoff that would take too much memory.
    """

    def __init__(self, cutoff: float) -> None:
        if not LOWEST <= cutoff < float("inf"):
            raise InputError(f"the cutoff is {cutoff:g} Hz; give {LOWEST:g} Hz or more")
        self._reach = max(1, round(1e9 * HALF_WIDTH / cutoff))  # [ns]
        self._known: deque[Labelled] = deque()
        self._waiting: deque[Labelled] = deque()

    def add(self, labelled: Labelled) -> Iterator[Labelled]:
        """Take the next of an episode; those whose averages are known by now."""
        self._known.append(labelled)
        self._waiting.append(labelled)
        while self._waiting[0].sample.stamp + self._reach <= labelled.sample.stamp:
            yield self._smoothed()

    def end(self) -> Iterator[Labelled]:
        """The rest of an episode."""
        while self._waiting:
            yield self._smoothed()
        self._known.clear()

    def _smoothed(self) -> Labelled:
        labelled = self._waiting.popleft()
        sample = labelled.sample
        while self._known[0].sample.stamp <= sample.stamp - self._reach:
            self._known.popleft()
        near = []
        for other in self._known:
            if other.sample.stamp >= sample.stamp + self._reach:
                break
            near.append(other.sample)
        away = np.array([other.stamp - sample.stamp for other in near]) / self._reach
        weights = 0.5 * (1.0 + np.cos(np.pi * away))
        measured, external = sample.measured, sample.external
        if measured is not None:
            measured = _average([other.measured for other in near], weights)
        if external is not None:
            external = _average([other.external for other in near], weights)
        feedforward = _average([other.feedforward for other in near], weights)
        averaged = replace(sample, measured=measured, feedforward=feedforward, external=external)
        return replace(labelled, sample=averaged)


def _average(values: Sequence[Vector | None], weights: Vector) -> Vector:
    known = [k for k, value in enumerate(values) if value is not None]
    return np.average([values[k] for k in known], axis=0, weights=weights[known])
