"""Every joint of the robot from those that are measured: for robot_state_publisher."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rbda_ros.kernels.kernel import Kernel
from rbda_ros.node.stream.codec import Codec
from rbda_ros.node.stream.joint_states import JointStates
from rbda_ros.node.stream.measured_efforts import MeasuredEfforts
from rbda_ros.node.stream.rates import Indices, Vector
from rbda_ros.node.worker import result_of
from rbda_ros.robot import Robot
from rbda_ros.robot.completion import CompletionCall
from rbda_ros.robot.feedforward_call import FeedforwardCall

Bytes = tuple[bytearray | None, tuple[tuple[Vector, Indices, int], ...]]
"""A serialized message; and what goes into it: numbers, places among these, where they begin."""


class InPlace(NamedTuple):
    """How C completes the states of a call.

    Attributes:
        call: that they are of.
        kernel: ``(q, velocity, qd)``; the first two are the call's.
        velocities: qd.
        efforts: of a message, on all joints.
        without, with_efforts: the messages without efforts, and with them.
    """

    call: FeedforwardCall
    kernel: Kernel
    velocities: Vector
    efforts: Vector
    without: Bytes
    with_efforts: Bytes


MOST_CALLS = 30
"""Choices of measured joints whose kernels are cached."""


class CompletedStates:
    """Publishes position and velocity, and what acts, of every joint of one coordinate.

    Efforts are those of the message that is completed, and zero on joints that it does not name;
    where it has none, or one that is not finite, there are none. Nor are there velocities where
    those of the measured joints are not known.

    Args:
        robot: the model.
        prefix: put before the names of joints.
        publish: takes JointState, serialized or not.
        background: runs something in another thread.
        codec: writes messages.

    Attributes:
        values: of the last message, by field.
    """

    def __init__(
        self,
        robot: Robot,
        prefix: str,
        publish: Callable[[Any], None],
        background: Callable[[Callable[[], Any]], Future[Any]],
        codec: Codec,
    ) -> None:
        self._robot, self._prefix = robot, prefix
        self._publish = publish
        self._background = background
        in_q = robot.coordinates.scalar_positions
        names = [name for name in robot.joint_names if name in in_q]
        self._in_q = np.array([in_q[name] for name in names], np.intp)
        starts = [robot.coordinates.velocities[name].start for name in names]
        self._in_qd = np.array(starts, np.intp)
        named = [prefix + name for name in names]
        self._efforts = MeasuredEfforts(named)
        fields = ("position",), ("position", "velocity")
        self._writers = {  # by whether velocities are known, and efforts
            (moving, known): codec.states(named, (*fields[moving], *["effort"] * known))
            for moving in (False, True)
            for known in (False, True)
        }
        self.values: Mapping[str, Vector] = self._writers[True, False].values
        self._calls: dict[tuple[str, ...], Future[CompletionCall]] = {}
        self._in_place: InPlace | None = None

    def is_for(self, robot: Robot, prefix: str) -> bool:
        """Whether it completes the states of a robot, under names that begin so."""
        return robot is self._robot and prefix == self._prefix

    def on_state(
        self, call: FeedforwardCall, data: bytes, states: JointStates, moving: bool = True
    ) -> None:
        """Publish the completed state that a call was made for, with the stamp of its message.

        Args:
            call: that closed the loops.
            data: the message, serialized.
            states: the same, read.
            moving: whether the velocities that the call has are known.
        """
        completion = self._completion(call) if moving else None
        if moving and completion is None:
            return
        known = self._efforts.take(states)
        writer = self._writers[moving, known]
        values = self.values = writer.values
        if known:
            values["effort"][:] = self._efforts.values
        call.q.take(self._in_q, out=values["position"])
        if completion is not None:
            completion.q[:], completion.velocity[:] = call.q, call.velocity
            completion.base_twist[:] = call.base_twist
            completion().take(self._in_qd, out=values["velocity"])
        self._publish(writer.serialized(data))

    def in_place(self, call: FeedforwardCall) -> InPlace | None:
        """How C completes the states of a call; None while it cannot. The same for the same."""
        completion = self._completion(call)
        if completion is None or completion.kernel.address is None:
            return None
        known = self._in_place
        if known is None or known.call is not call or known.kernel is not completion.kernel:
            efforts = self._efforts.values
            sources = {
                "position": (call.q, self._in_q),
                "velocity": (completion.qd, self._in_qd),
                "effort": (efforts, np.arange(len(efforts))),
            }
            without, with_efforts = (
                (writer.data, tuple((*sources[field], at) for field, at in writer.starts.items()))
                for writer in (self._writers[True, False], self._writers[True, True])
            )
            if without[0] is None or with_efforts[0] is None:
                return None
            self._in_place = InPlace(
                call, completion.kernel, completion.qd, efforts, without, with_efforts
            )
        return self._in_place

    def effort_places(self, names: tuple[str, ...]) -> tuple[Indices, Indices]:
        """Where efforts stand in a message that names these joints, and where they go."""
        return self._efforts.places(names)

    def _completion(self, call: FeedforwardCall) -> CompletionCall | None:
        """What completes the states of a call; None while it is being made."""
        making = self._calls.get(call.joints)
        if making is None:
            if len(self._calls) >= MOST_CALLS:
                self._calls.clear()
            make = partial(self._robot.completion, call.joints)
            self._calls[call.joints] = making = self._background(make)
        # A kernel is traced in tens of milliseconds.
        return result_of(making) if making.done() else None
