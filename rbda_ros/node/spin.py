"""Running a node until it is done or told to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from rbda_ros.errors import one_line
from rbda_ros.node.stop_signals import StopSignals, end_process

FOREVER = 1e8  # [s]


def init(arguments: Sequence[str]) -> StopSignals:
    """Initialize ROS; ``spin`` takes what it returns."""
    signals = StopSignals()
    rclpy.init(args=list(arguments), signal_handler_options=SignalHandlerOptions.NO)
    return signals


def join_xacro_arguments(arguments: Sequence[str]) -> list[str]:
    """Each ``--xacro NAME:=VALUE`` as one word: ROS takes the bare value for a remapping."""
    joined: list[str] = []
    for word in arguments:
        if joined and joined[-1] == "--xacro":
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def make_executor() -> Any:
    """Make the executor with the least delay that this rclpy has."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    return EventsExecutor()


def spin(
    node: Any,
    done: Future,
    signals: StopSignals,
    first: Callable[[], None] | None = None,
    finish: Callable[[], bool] = lambda: True,
) -> None:
    """Spin until ``done``, then destroy the node and shut ROS down.

    Args:
        node: the only node of the executor.
        done: ends the spin when it completes; completed with None when told to stop.
        signals: what tells it to stop.
        first: run on the executor before anything else.
        finish: ends what works for the node in other threads. If it returns False, some still
            do, and the process ends at once: what they use cannot be destroyed beneath them.
    """
    executor = make_executor()
    executor.add_node(node)
    signals.then(lambda: executor.create_task(done.set_result, None))
    if first is not None:
        executor.create_task(first)
    try:
        while not done.done() and rclpy.ok():
            _spin_some(executor, node, done)
    finally:
        signals.ignore()
        if not finish():
            end_process(0)
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown()


def _spin_some(executor: Any, node: Any, done: Future) -> None:
    try:
        # EventsExecutor.spin() of rclpy 7.1 burns a core and runs nothing; this works.
        executor.spin_until_future_complete(done, FOREVER)
    except Exception as error:  # out of a callback; one bad message must not end the process
        if rclpy.ok():
            node.get_logger().error(f"{type(error).__name__}: {one_line(error)}")
