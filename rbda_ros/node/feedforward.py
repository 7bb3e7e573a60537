"""From joint states to the efforts that they need: the hot path of the node.

At 1 kHz the messages cost more than the arithmetic, so names are matched once, numbers are read
in place, and one output message is kept and written through a view.
"""

from __future__ import annotations

import array
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sensor_msgs.msg import JointState

from rbda_ros.errors import InputError, ModelError
from rbda_ros.node.meter import Meter
from rbda_ros.node.parameters import Settings
from rbda_ros.node.refusals import Reason, RefusalError, Refusals, refusal
from rbda_ros.node.state import (
    Vector,
    base_position,
    has_loops,
    independent,
    listed,
    map_joints,
    numbers,
    six,
)

if TYPE_CHECKING:
    from rbda_ros.robot import Robot

BASE_POSITION, BASE_VELOCITY = 7, 6  # numbers of a floating base in q and in qd


@dataclass(frozen=True)
class _Timed:
    """Numbers, and the time that they are from [ns]."""

    time: int
    values: tuple[Vector, ...]


class Feedforward:
    """Answers joint states of one robot with efforts on its actuated joints.

    Args:
        robot: the model.
        settings: where accelerations come from, and how old input may be.
        publish: takes each answer, a JointState.
        now: present time [ns], of the clock that stamps are from.
        refusals: counts what is not answered.
        meter: measures what is.
    """

    def __init__(
        self,
        robot: Robot,
        settings: Settings,
        publish: Callable[[JointState], None],
        now: Callable[[], int],
        refusals: Refusals,
        meter: Meter,
    ) -> None:
        self.settings = settings
        self._robot = robot
        self._publish = publish
        self._now = now
        self._refusals = refusals
        self._meter = meter
        self._reference: _Timed | None = None
        self._base: _Timed | None = None

        self._loops = has_loops(robot)
        self._last_position: Vector | None = None
        self._no_acceleration = np.zeros(robot.ny)
        self._answer = JointState(name=list(robot.actuated_joint_names))
        self._answer.effort = array.array("d", bytes(8 * len(robot.actuated_joint_names)))
        self._effort = np.frombuffer(self._answer.effort)

        self._names: list[str] | None = None
        self._misfit: RefusalError | None = None  # what is wrong with these names

    def on_joint_states(self, message: JointState) -> None:
        """Answer one message, or count why not."""
        began = perf_counter()
        try:
            self._effort[:] = self._efforts(message)
        except (InputError, ModelError) as error:
            self._refusals.add(refusal(error))
            return
        self._answer.header.stamp = message.header.stamp
        self._publish(self._answer)
        self._meter.add(perf_counter() - began)

    def on_reference(self, message: Any) -> None:
        """Keep the acceleration of a JointTrajectory's first point."""
        try:
            if not message.points:
                raise RefusalError(Reason.WRONG_SIZE, "reference has no point; give one")
            joints = map_joints(self._robot, message.joint_names, others_allowed=True)
            wanted = numbers(
                "reference.points[0].accelerations", message.points[0].accelerations, joints.size
            )
            wanted = independent("reference", wanted, joints)
            if self._robot.floating_base:
                wanted = np.concatenate([np.zeros(BASE_VELOCITY), wanted])
        except RefusalError as refused:
            self._refusals.add(refused)
            return
        # By arrival: the stamp of a trajectory is when it begins, and may be zero for "now".
        self._reference = _Timed(self._now(), (wanted,))

    def on_base_state(self, message: Any) -> None:
        """Keep the pose and twist of the floating base from an Odometry message."""
        try:
            pose = base_position("base_state.pose", message.pose.pose)
            twist = six("base_state.twist", message.twist.twist)
        except RefusalError as refused:
            self._refusals.add(refused)
            return
        self._base = _Timed(_nanoseconds(message.header.stamp), (pose, twist))

    def _efforts(self, message: JointState) -> Vector:
        now = self._now()
        if age := self._too_old(now, _nanoseconds(message.header.stamp)):
            raise RefusalError(
                Reason.STALE,
                f"joint_states are {age * 1e-9:.3g} s old by their stamp; check the clocks, or "
                "raise joint_state_timeout (0: any age)",
            )
        y, yd = self._joint_state(message)
        if self._robot.floating_base:
            pose, twist = self._fresh(now, self._base, Reason.NO_BASE_STATE, "~/base_state").values
            y[:BASE_POSITION], yd[:BASE_VELOCITY] = pose, twist
        ydd = self._no_acceleration
        if self.settings.acceleration_source == "reference":
            (ydd,) = self._fresh(now, self._reference, Reason.NO_REFERENCE, "~/reference").values
        q = self._closed(y)
        return self._robot.actuator_efforts(q, self._robot.inverse_dynamics(q, yd, ydd))

    def _closed(self, y: Vector) -> Vector:
        """The spanning position; the search for it starts from the last one."""
        if self._loops:
            self._last_position = self._robot.close(y, self._last_position)
            return self._last_position
        return y

    def _joint_state(self, message: JointState) -> tuple[Vector, Vector]:
        if message.name != self._names:
            self._learn_names(list(message.name))
        if self._misfit is not None:
            raise self._misfit
        if not message.velocity:
            raise RefusalError(
                Reason.NO_VELOCITY, "joint_states have no velocity; publish velocities"
            )
        if len(message.position) != self._size or len(message.velocity) != self._size:
            raise RefusalError(
                Reason.WRONG_SIZE,
                f"joint_states name {self._size} joints but have {len(message.position)} positions "
                f"and {len(message.velocity)} velocities",
            )
        y, yd = self._y, self._yd
        y[self._joint_y] = np.frombuffer(message.position)[self._places]
        yd[self._joint_yd] = np.frombuffer(message.velocity)[self._places]
        if not (np.isfinite(y).all() and np.isfinite(yd).all()):
            raise RefusalError(Reason.NOT_FINITE, "joint_states hold a number that is not finite")
        return y, yd

    def _learn_names(self, names: list[str]) -> None:
        """Match the names of the messages with the model; they seldom change."""
        self._names, self._misfit = names, None
        try:
            if not names:
                raise RefusalError(Reason.MISNAMED, "joint_states have no names; name every joint")
            joints = map_joints(self._robot, names, others_allowed=True)
            if joints.missing:
                raise RefusalError(
                    Reason.PARTIAL,
                    f"joint_states lack {listed(joints.missing)}; publish all of "
                    f"{listed(self._robot.independent_joint_names)} in one message",
                )
        except RefusalError as refused:
            self._misfit = refused
            return
        base = (BASE_POSITION, BASE_VELOCITY) if self._robot.floating_base else (0, 0)
        self._size, self._places = joints.size, joints.independent
        self._y = np.zeros(base[0] + len(self._places))
        self._yd = np.zeros(base[1] + len(self._places))
        self._joint_y, self._joint_yd = slice(base[0], None), slice(base[1], None)

    def _fresh(self, now: int, kept: _Timed | None, reason: Reason, topic: str) -> _Timed:
        if kept is None or self._too_old(now, kept.time):
            raise RefusalError(
                reason, f"no fresh message on {topic}; publish it as often as joint_states"
            )
        return kept

    def _too_old(self, now: int, time: int) -> int:
        """Age [ns] if it is beyond the timeout, else 0. A stamp from the future counts too."""
        age = now - time
        timeout = self.settings.joint_state_timeout
        return age if timeout and abs(age) > timeout * 1e9 else 0


def _nanoseconds(stamp: Any) -> int:
    return stamp.sec * 1_000_000_000 + stamp.nanosec
