"""Now and then the machine code, and what was read from disk, is compared with fresh traces."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from rclpy.clock import Clock
from rclpy.clock_type import ClockType

from rbda_ros.robot import Robot
from rbda_ros.robot.machine_code_check import (
    MachineCodeError,
    check_kernel,
    check_machine_code,
    reassembled,
)

Failure = tuple[list[str], Robot]
"""Sentences about what differed, and the robot to go on with."""
OFF_LOOKS_AGAIN = 1.0
"""How often to look whether the parameter has switched the check on [s]."""


class SelfCheck:
    """Compares the machine code of a dynamics node, in the background.

    Attributes:
        failed: what differed, ever; empty while all is well.
        checks: how many there were.
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self.failed = ""
        self.checks = 0
        self._busy = False
        self._assembly_checked: Callable[[], Robot | None] = lambda: None
        self._timer = node.create_timer(
            OFF_LOOKS_AGAIN, self._begin, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def _begin(self) -> None:
        node = self._node
        period = node.settings.self_check_period
        wanted = int((period or OFF_LOOKS_AGAIN) * 1e9)
        if self._timer.timer_period_ns != wanted:
            self._timer.timer_period_ns = wanted
        robot = node.robot
        if not period or robot is None or not node.active or self._busy:
            return
        self._busy = True
        live = node.stream.in_use()
        checking = node.builder.background(lambda: self._check(robot, live))
        checking.add_done_callback(lambda done: self._then(robot, done))

    def _then(self, robot: Robot, done: Future[Failure | None]) -> None:
        """Go on, on the executor, if something was found; in whatever thread this is."""
        self._busy = False
        if done.cancelled() or done.exception() is not None or done.result() is None:
            return  # the node ends, or all is well
        if self._node.executor is not None:
            self._node.executor.create_task(self._take_over, robot, done.result())

    def _check(self, robot: Robot, live: Any) -> Failure | None:
        self.checks += 1
        trusted = robot
        said = check_machine_code(robot, self.checks)
        if live is not None and live[0].compiled and (wrong := check_kernel(*live)):
            said.append(wrong)
        if self._assembly_checked() is not robot:  # once: it does not change
            fresh = reassembled(robot)
            if fresh is not None:
                said.append("the loops on disk are not those of the description")
                trusted = fresh
            self._assembly_checked = weakref.ref(robot)
        return (said, trusted) if said else None

    def _take_over(self, robot: Robot, failure: Failure) -> None:
        said, trusted = failure
        self.failed = "; ".join(said)
        self._node.get_logger().error(
            f"self-check: {self.failed}; the virtual machine takes over, restart the node and "
            "look at the memory of this computer, and at who may write to its cache folder"
        )
        self._node.replace_model(robot, trusted.interpreted(MachineCodeError(self.failed)))
