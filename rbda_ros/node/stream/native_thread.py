"""A thread that answers joint states, or commands, without the interpreter; seen from Python.

It answers what its plan knows, and hands over everything else, in the order of arrival: then the
executor is woken, Python answers what has come, and gives the thread a new plan to go on with. What
both write, Python takes the plan back to change, and messages wait: at any time, one of both owns
the state of the stream. Whatever else changes, the thread goes on with the old plan until the new
one is there.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.type_support import check_for_type_support
from sensor_msgs.msg import JointState

from rbda_ros.node.stream.handover import Staged
from rbda_ros.node.stream.wire import Vector

try:
    from rbda_ros._native import stream as native
except ImportError:
    native = None  # type: ignore[assignment]

Arming = tuple[Any, tuple[Any, ...]]
"""A plan, whose ``description`` C reads, and what of it changes from message to message."""

ROW = 8
"""Numbers that the thread notes of each answer: duration, age and `Health`."""


class NoThreadError(Exception):
    """There can be no native thread; says why."""


class NativeThread:
    """Listens to a topic of JointState.

    Args:
        kind: of the messages: joint_states or joint_commands.
        node: the node.
        topic: of the messages.
        depth: how many of them may wait.
        answer: takes one that the thread does not know, serialized; raises nothing.
        hear: takes a plan, and what was heard by it.
        plan: gives the plan to go on with; None for no plan.

    Attributes:
        thread: of C.

    Raises:
        NoThreadError: it was not built, or is switched off by ``RBDA_ROS_NATIVE=0``, or the
            middleware does not tell of messages.
    """

    def __init__(
        self,
        kind: str,
        node: Any,
        topic: str,
        depth: int,
        answer: Callable[[bytes], None],
        hear: Callable[[Any, Any], None],
        plan: Callable[[], Arming | None],
    ) -> None:
        if native is None:
            raise NoThreadError("rbda_ros._native.stream was not built; they take longer")
        if sys.byteorder != "little":
            raise NoThreadError("it reads numbers of little-endian machines")
        if os.environ.get("RBDA_ROS_NATIVE", "1") == "0":
            raise NoThreadError("RBDA_ROS_NATIVE is 0")
        self._answer, self._hear, self._make_plan = answer, hear, plan
        self._depth, self._open = depth, True
        self._plan: Any = None  # that the thread has, or had
        self._seized = False
        self._turn = threading.RLock()  # an executor may have several threads
        self._node = node
        # It wakes the executor by a timer: unlike a task, this respects callback groups.
        self._timer = node.create_timer(
            0.0, self._take, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )
        self._timer.cancel()
        self._held = ExitStack()  # what must not be destroyed under it
        for handle in (node.handle, node.get_clock().handle):
            self._held.enter_context(handle)
        check_for_type_support(JointState)
        try:
            self.thread = native.Stream(
                kind=kind,
                node=node.handle.pointer,
                clock=node.get_clock().handle.pointer,
                type_support=type(JointState)._TYPE_SUPPORT,
                topic=topic,
                depth=depth,
                wake=self._timer.reset,
            )
        except RuntimeError as error:
            self._let_go()
            raise NoThreadError(str(error)) from error

    @property
    def plan(self) -> Any:
        """What the thread goes by; None while Python answers."""
        return self._plan

    @property
    def plan_in_use(self) -> Any:
        """The plan that the thread may be answering by at this moment; None for none."""
        return None if self._seized else self._plan

    def close(self) -> None:
        """End the thread, and stop listening."""
        self._open = False
        self._told(self.thread.seize())
        self._plan = None
        self.thread.close()
        self._let_go()

    def _let_go(self) -> None:
        self._held.close()
        self._node.destroy_timer(self._timer)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """While something changes that the thread goes by; messages wait, and none for Python.

        Unless Python must answer the next one: then the thread wakes it.
        """
        with self.replacing():
            self._seized = True
            self._told(self.thread.seize())
            yield

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """While Python prepares another plan, and writes nothing that the thread uses.

        Messages are answered by the one before until then.
        """
        arming = None
        with self._turn:
            try:
                yield
                arming = self._make_plan()
            finally:
                self._arm(arming)

    def look(self) -> None:
        """Hear what the thread has heard by now."""
        self._told(self.thread.look())

    def put(self, inputs: Staged, times: tuple[int, int]) -> None:
        """Give the plan other inputs, and the times that these are from."""
        self.thread.put(
            inputs.accelerations, inputs.wrenches, inputs.base_position, inputs.base_twist, *times
        )

    def answers(self) -> tuple[int, Vector]:
        """How many messages it answered since this was asked, and (few or all of them, ROW)."""
        count, rows = self.thread.read()
        return count, np.frombuffer(rows).reshape(-1, ROW)

    def _told(self, heard: Any) -> None:
        if heard is not None and self._plan is not None:
            self._hear(self._plan, heard)

    def _take(self) -> None:
        """Answer what waits for Python."""
        if not self._open:
            return  # woken before, but closed since
        self._timer.cancel()
        with self.changing():
            for _ in range(self._depth):
                data = self.thread.take()
                if data is None:
                    break
                self._answer(data)
                if self._make_plan() is not None:
                    break  # the thread goes on

    def _arm(self, arming: Arming | None) -> None:
        plan, now = arming or (None, ())
        self._seized = False
        self._told(self.thread.arm(None if plan is None else plan.description, now))
        self._plan = plan
