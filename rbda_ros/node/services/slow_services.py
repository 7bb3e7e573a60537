"""Services that may take long: in a thread of their own, so that joint states need not wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.parameter import Parameter
from rclpy.task import Future

from rbda_ros.node.spin import FOREVER, make_executor

PATIENCE = 10.0
"""How long the end waits for what is being answered [s]."""


class SlowServices:
    """A hidden node beside the node, with an executor and a thread of its own.

    An executor takes and answers requests in its own thread, and it takes tens of milliseconds to
    make Python objects of a long trajectory: a callback group would be no help.

    Args:
        node: whose services these are, by their names.

    Attributes:
        ending: set when the node is to end; whoever takes long should look at it.
    """

    def __init__(self, node: Any) -> None:
        self.ending = threading.Event()
        self._owner = node
        self._node = rclpy.create_node(
            f"_{node.get_name()}_slow",
            namespace=node.get_namespace(),
            context=node.context,
            use_global_arguments=False,  # else `-r __node:=name` would be its name too
            enable_rosout=False,
            start_parameter_services=False,
            parameter_overrides=[Parameter("start_type_description_service", value=False)],
        )
        self._closed: Future = Future()
        self._executor: Any = make_executor()
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._spin, name="slow services", daemon=True)

    def add(self, kind: Any, name: str, answer: Callable[[Any, Any], Any]) -> None:
        """Offer a service under a name of the owner, e.g. ``~/set_payload``."""
        self._node.create_service(kind, self._owner.resolve_service_name(name), answer)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Answer nothing more. Python must not end beneath the thread, so this waits for it."""
        self.ending.set()
        self._executor.create_task(self._closed.set_result, None)
        self._thread.join(timeout=PATIENCE)
        self._node.destroy_node()

    def _spin(self) -> None:
        self._executor.spin_until_future_complete(self._closed, FOREVER)
