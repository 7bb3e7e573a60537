"""What efforts need beside joint states: references, the state of the base, outside wrenches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.node.joint_map import Vector, places
from rbda_ros.node.messages import base_position, six, wrench_vectors
from rbda_ros.node.refusals import Reason, RefusalError
from rbda_ros.node.settings import Settings
from rbda_ros.node.stream.rates import FilteredRates
from rbda_ros.robot import Robot


@dataclass(frozen=True)
class _Timed:
    """Something that is from a time [ns]."""

    time: int


@dataclass(frozen=True)
class _Reference(_Timed):
    joints: tuple[str, ...]
    acceleration: Vector


@dataclass(frozen=True)
class _Base(_Timed):
    position: Vector
    twist: Vector


@dataclass(frozen=True)
class _Wrench(_Timed):
    on_bodies: Vector


T = TypeVar("T", bound=_Timed)


class Inputs(Protocol):
    """Those of a `FeedforwardCall` beside what is measured at the joints."""

    base_position: Vector
    base_twist: Vector
    acceleration: Vector
    base_acceleration: Vector
    wrenches: Vector


class OtherInputs:
    """The newest of each topic beside joint_states; none counts once it is too old.

    Every method raises RefusalError, with the reason, for what cannot be used.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._reference: _Reference | None = None
        self._base: _Base | None = None
        self._base_rates = FilteredRates(robot.coordinates.base_nv)
        self._wrenches: dict[str, _Wrench] = {}

    def forget(self) -> None:
        """Let go of everything, as when time has jumped back."""
        self._reference = self._base = None
        self._base_rates.forget()
        self._wrenches.clear()

    def take_reference(self, message: Any, now: int, settings: Settings) -> bool:
        """Keep the acceleration of a JointTrajectory's first point; whether for other joints."""
        if not message.points:
            raise RefusalError(Reason.WRONG_SIZE, "reference has no point; give one")
        names, values = list(message.joint_names), message.points[0].accelerations
        if len(values) != len(names):
            raise RefusalError(
                Reason.WRONG_SIZE,
                f"reference.points[0].accelerations has {len(values)} numbers for {len(names)} "
                "joints; give one per joint",
            )
        found = places(names, settings.joint_prefix, set(self._robot.joint_names))
        try:
            joints = self._robot.determining_joints(list(found))
        except InputError as error:
            raise RefusalError(Reason.PARTIAL, f"reference: {error}") from error
        wanted = np.array([values[found[name]] for name in joints])
        if not np.isfinite(wanted).all():
            raise RefusalError(Reason.NOT_FINITE, "reference has a number that is not finite")
        others = self._reference is None or joints != self._reference.joints
        # By arrival: the stamp of a trajectory is when it begins, and may be zero for "now".
        self._reference = _Reference(now, joints, wanted)
        return others

    def take_base_state(self, message: Any, now: int, settings: Settings) -> None:
        """Keep the pose and twist of the floating base from an Odometry message."""
        pose = base_position("base_state.pose", message.pose.pose)
        twist = six("base_state.twist", message.twist.twist)
        stamp = message.header.stamp
        time = stamp.sec * 1_000_000_000 + stamp.nanosec
        time = time if time or settings.joint_state_timeout else now
        self._base = _Base(time, pose, twist)
        if self._robot.floating_base and settings.acceleration_source == "estimate":
            longest = settings.joint_state_timeout or math.inf
            cutoff = settings.acceleration_cutoff
            self._base_rates.update(slice(None), twist, time, cutoff, longest)

    def take_wrench(self, message: Any, now: int) -> None:
        """Keep the wrench that acts on a link, from a WrenchStamped message."""
        on_bodies = self._robot.body_wrenches(wrench_vectors(self._robot, [message]) or {})
        self._wrenches[message.header.frame_id] = _Wrench(now, on_bodies)

    def acceleration_joints(self, now: int, timeout: int) -> tuple[str, ...]:
        """Joints that the reference is for."""
        return _fresh(self._reference, now, timeout, Reason.NO_REFERENCE, "~/reference").joints

    def interval(self, settings: Settings) -> tuple[int, int] | None:
        """Earliest and latest time of what a call needs [ns]; None if some of it is not there."""
        needed: list[_Timed | None] = []
        if self._robot.floating_base:
            needed.append(self._base)
        if settings.acceleration_source == "reference":
            needed.append(self._reference)
        if settings.external_wrench:
            needed += self._wrenches.values() or (None,)
        times = [one.time for one in needed if one is not None]
        if len(times) < len(needed):
            return None
        return min(times, default=0), max(times, default=0)

    def fill(self, call: Inputs, now: int, timeout: int, settings: Settings) -> None:
        """Write what a call needs into its inputs.

        Args:
            call: with inputs of the kind that the settings want.
            now: [ns].
            timeout: age from which on something is too old [ns]; 0 for never.
            settings: what is needed.
        """
        if self._robot.floating_base:
            base = _fresh(self._base, now, timeout, Reason.NO_BASE_STATE, "~/base_state")
            call.base_position[:], call.base_twist[:] = base.position, base.twist
        if settings.acceleration_source == "reference":
            wanted = _fresh(self._reference, now, timeout, Reason.NO_REFERENCE, "~/reference")
            call.acceleration[:] = wanted.acceleration
        elif settings.acceleration_source == "estimate":
            call.base_acceleration[:] = self._base_rates.rates
        if settings.external_wrench:
            call.wrenches[:] = 0.0
            for latest in self._wrenches.values() or (None,):
                wrench = _fresh(latest, now, timeout, Reason.NO_WRENCH, "~/external_wrench")
                call.wrenches += wrench.on_bodies


def _fresh(latest: T | None, now: int, timeout: int, reason: Reason, topic: str) -> T:
    if latest is None or (timeout and abs(now - latest.time) > timeout):
        raise RefusalError(
            reason, f"no fresh message on {topic}; publish it as often as joint_states"
        )
    return latest
