"""Running a node until it is done or told to stop."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.task import Future

from rbda_ros.node.model import one_line

FOREVER = 1e8  # [s]


def make_executor() -> Any:
    """Make the executor with the least delay that this rclpy has."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    return EventsExecutor()


def spin(node: Any, done: Future, first: Callable[[], None] | None = None) -> None:
    """Spin until ``done``, or until Ctrl-C or SIGTERM; then destroy the node.

    Args:
        node: the only node of the executor.
        done: ends the spin when it completes.
        first: run on the executor before anything else.
    """
    executor = make_executor()
    try:
        executor.add_node(node)
        if first is not None:
            executor.create_task(first)
        while not done.done() and rclpy.ok():
            _spin_some(executor, node, done)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        # Ctrl-C under a launcher comes twice: from the terminal, and from the launcher.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown()


def _spin_some(executor: Any, node: Any, done: Future) -> None:
    try:
        # EventsExecutor.spin() of rclpy 7.1 burns a core and runs nothing; this works.
        executor.spin_until_future_complete(done, FOREVER)
    except ExternalShutdownException:
        raise
    except Exception as error:  # out of a callback; one bad message must not end the process
        if rclpy.ok():
            node.get_logger().error(f"{type(error).__name__}: {one_line(error)}")
