"""Every joint of the robot from those that are measured: for robot_state_publisher."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rbda_ros.kernels.kernel import Kernel
from rbda_ros.node.stream.rates import Indices, Vector
from rbda_ros.node.stream.wire import JointStateWriter
from rbda_ros.robot import Robot
from rbda_ros.robot.completion import CompletionCall
from rbda_ros.robot.feedforward_call import FeedforwardCall


class InPlace(NamedTuple):
    """How C completes the states of a call.

    Attributes:
        call: that they are of.
        kernel: ``(q, velocity, qd)``; the first two are the call's.
        velocities: qd.
        data: the serialized message.
        parts: what goes into it: numbers, places among these, and where they begin in it.
    """

    call: FeedforwardCall
    kernel: Kernel
    velocities: Vector
    data: bytearray
    parts: tuple[tuple[Vector, Indices, int], ...]


MOST_CALLS = 30
"""Choices of measured joints whose kernels are cached."""


class CompletedStates:
    """Publishes the position and velocity of every joint of one coordinate.

    Args:
        robot: the model.
        prefix: put before the names of joints.
        publish: takes JointState, serialized or not.
        background: runs something in another thread.
    """

    def __init__(
        self,
        robot: Robot,
        prefix: str,
        publish: Callable[[Any], None],
        background: Callable[[Callable[[], Any]], Future[Any]],
    ) -> None:
        self._robot = robot
        self._publish = publish
        self._background = background
        in_q = robot.coordinates.scalar_positions
        names = [name for name in robot.joint_names if name in in_q]
        self._in_q = np.array([in_q[name] for name in names], np.intp)
        starts = [robot.coordinates.velocities[name].start for name in names]
        self._in_qd = np.array(starts, np.intp)
        self._writer = JointStateWriter([prefix + name for name in names], ("position", "velocity"))
        self._calls: dict[tuple[str, ...], Future[CompletionCall]] = {}
        self._in_place: InPlace | None = None

    def on_state(self, call: FeedforwardCall, data: bytes) -> None:
        """Publish the completed state that a call was made for, with the stamp of its message."""
        completion = self._completion(call)
        if completion is None:
            return
        completion.q[:], completion.velocity[:] = call.q, call.velocity
        completion.base_twist[:] = call.base_twist
        values = self._writer.values
        call.q.take(self._in_q, out=values["position"])
        completion().take(self._in_qd, out=values["velocity"])
        self._publish(self._writer.serialized(data))

    def in_place(self, call: FeedforwardCall) -> InPlace | None:
        """How C completes the states of a call; None while it cannot. The same for the same."""
        completion = self._completion(call)
        writer = self._writer
        if completion is None or completion.kernel.address is None or writer.data is None:
            return None
        known = self._in_place
        if known is None or known.call is not call or known.kernel is not completion.kernel:
            parts = (
                (call.q, self._in_q, writer.starts["position"]),
                (completion.qd, self._in_qd, writer.starts["velocity"]),
            )
            kernel = completion.kernel
            self._in_place = InPlace(call, kernel, completion.qd, writer.data, parts)
        return self._in_place

    def _completion(self, call: FeedforwardCall) -> CompletionCall | None:
        """What completes the states of a call; None while it is being made."""
        making = self._calls.get(call.joints)
        if making is None:
            if len(self._calls) >= MOST_CALLS:
                self._calls.clear()
            make = partial(self._robot.completion, call.joints)
            self._calls[call.joints] = making = self._background(make)
        # A kernel is traced in tens of milliseconds.
        return making.result() if making.done() else None
