"""What acts on the robot beyond its motors: a momentum observer on measured efforts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rbda_ros.kernels.cache import LruCache
from rbda_ros.node.end_effectors import Point, end_effectors
from rbda_ros.node.joint_map import places
from rbda_ros.node.messages import fill
from rbda_ros.node.refusals import Reason, RefusalError
from rbda_ros.node.settings import Settings
from rbda_ros.node.stream.codec import Codec
from rbda_ros.node.stream.joint_states import JointStates
from rbda_ros.node.stream.rates import NEVER
from rbda_ros.node.stream.responder import JUMP
from rbda_ros.robot import Robot
from rbda_ros.robot.completion import CompletionCall
from rbda_ros.robot.feedforward_call import FeedforwardCall
from rbda_ros.robot.momentum_observer import MomentumObserver

Joints = tuple[str, ...]

LONGEST = 1_000_000_000
"""Gap between two states after which the observer begins anew [ns]."""
MOST_COMPLETIONS = 30
"""Choices of measured joints whose kernels are cached."""


class ExternalEffort:
    """Publishes the force on the independent joints that comes from outside.

    Args:
        robot: the model.
        settings: the parameters of the node.
        publish: takes JointState, serialized or not.
        publish_wrench: takes WrenchStamped.
        codec: reads and writes messages.

    Attributes:
        largest: of the estimated efforts, or None before there is one [N m, N].
    """

    def __init__(
        self,
        robot: Robot,
        settings: Settings,
        publish: Callable[[Any], None],
        publish_wrench: Callable[[Any], None],
        codec: Codec,
    ) -> None:
        self._robot = robot
        self._settings = settings
        self._publish = publish
        self._publish_wrench = publish_wrench
        self._codec = codec
        self._observer = MomentumObserver(robot, settings.observer_gain)
        self._place = {name: k for k, name in enumerate(robot.joint_names)}
        self._efforts = np.zeros(len(self._place))
        self._times = np.full(len(self._place), NEVER)
        self._completions: LruCache[tuple[str, ...], CompletionCall] = LruCache(MOST_COMPLETIONS)
        self._last = NEVER
        self._start = 0
        names = [settings.joint_prefix + name for name in robot.independent_joint_names]
        self._writer = codec.states(names, ("effort",))
        self._in_y = list(robot.tree.independent)
        self._force = robot.kernel("generalized_force")
        self._actuated = self._places_of(robot.actuated_joint_names)
        self._independent = self._places_of(robot.independent_joint_names)
        starts = [robot.coordinates.velocities[name].start for name in robot.joint_names]
        self._in_qd = np.array(starts, np.intp)
        self._heard: tuple[Joints, list[int], list[int]] = (), [], []
        self._point = _point(robot, settings)
        self.largest: float | None = None

    @property
    def contact(self) -> bool:
        """Whether the estimate is past the threshold."""
        threshold = self._settings.contact_threshold
        return bool(threshold and self.largest is not None and self.largest > threshold)

    def forget(self) -> None:
        """Let go of what was heard, and begin anew."""
        self._observer.forget()
        self._times[:] = NEVER
        self._last, self.largest = NEVER, None

    def on_state(self, call: FeedforwardCall, data: bytes, states: JointStates, now: int) -> None:
        """Publish the estimate for a state that was answered.

        Raises:
            RefusalError: the efforts of the motors, or of the joints, are not known, or not finite.
        """
        time = states.time or now
        if time < self._last - JUMP:
            self.forget()  # time has jumped back
        self._take(states, time)
        spanning = self._measured_efforts(time)
        if time <= self._last:
            return  # another part of the same state
        if time - self._last > LONGEST:
            self._observer.forget()
            self._start = time
        self._last = time
        yd = self._completed(call)[self._in_y]
        (force,) = self._force.call(call.q, spanning)
        external = self._observer.advance((time - self._start) * 1e-9, call.q, yd, force)
        base = self._robot.coordinates.base_nv
        self.largest = float(np.abs(external[base:]).max(initial=0.0))
        self._writer.values["effort"][:] = external[base:]
        self._publish(self._writer.serialized(data))
        if self._point is not None:
            self._send_wrench(call, states.time)

    def _places_of(self, names: Joints) -> list[int]:
        return [self._place[name] for name in names if name in self._place]

    def _take(self, states: JointStates, time: int) -> None:
        if not len(states.effort):
            return
        if len(states.effort) != len(states.names):
            raise RefusalError(
                Reason.WRONG_SIZE,
                f"joint_states name {len(states.names)} joints but have {len(states.effort)} "
                "efforts; give one per joint",
            )
        names = states.names
        if names != self._heard[0]:
            found = places(names, self._settings.joint_prefix, self._place)
            self._heard = names, [self._place[name] for name in found], list(found.values())
        _, ours, theirs = self._heard
        self._efforts[ours] = states.effort[theirs]
        self._times[ours] = time

    def _measured_efforts(self, time: int) -> np.ndarray:
        """Efforts (nv,) of the motors, or else of the independent joints, none of them old."""
        oldest = time - int((self._settings.joint_state_timeout or 10.0) * 1e9)
        for at in (self._actuated, self._independent):
            if at and (self._times[at] >= oldest).all():
                values = self._efforts[at]
                if not np.isfinite(values).all():
                    raise RefusalError(Reason.NOT_FINITE, "joint_states: effort is not finite")
                spanning = np.zeros(self._robot.nv)
                spanning[self._in_qd[at]] = values
                return spanning
        raise RefusalError(
            Reason.NO_EFFORT,
            "joint_states have no effort of every motor, nor of every independent joint; publish "
            "measured efforts, or set publish_external_effort to false",
        )

    def _completed(self, call: FeedforwardCall) -> np.ndarray:
        make = partial(self._robot.completion, call.joints)
        completion = self._completions.get_or_make(call.joints, make)
        completion.q[:], completion.velocity[:] = call.q, call.velocity
        completion.base_twist[:] = call.base_twist
        return completion()

    def _send_wrench(self, call: FeedforwardCall, time: int) -> None:
        """The wrench on the end effector's link, in its frame and at its origin."""
        assert self._point is not None
        link, xyz = self._point
        few = self._robot.ny < 6
        world = self._observer.wrench((link, xyz), linear_only=few)
        R = self._robot.frame_pose(call.q, link)[:3, :3]
        force, moment = R.T @ world[:3], R.T @ world[3:]
        wrench = self._codec.wrench()
        stamp = wrench.header.stamp
        stamp.sec, stamp.nanosec = divmod(time, 1_000_000_000)
        wrench.header.frame_id = link
        moment = moment + np.cross(xyz, force)
        fill(wrench.wrench.force, wrench.wrench.torque, np.concatenate([force, moment]))
        self._publish_wrench(wrench)


def _point(robot: Robot, settings: Settings) -> Point | None:
    """The named end effector, or link; None where the model has none of the name."""
    name = settings.contact_end_effector
    points = end_effectors(settings.end_effectors)
    if name in points:
        return points[name]
    return (name, [0.0, 0.0, 0.0]) if name in robot.tree.spanning.links else None
