"""Services that may take long: beside the executor, so that neither efforts nor others wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import rclpy
from rclpy.parameter import Parameter
from rclpy.task import Future

from rbda_ros.node.later_response import LaterResponse, allow_later_responses
from rbda_ros.node.services.service_qos import SERVICE_QOS
from rbda_ros.node.spin import FOREVER, make_executor
from rbda_ros.node.thread_priority import step_back
from rbda_ros.node.worker import Worker

MOST_WAITING = 100
"""Requests of one service that wait for their turn; more are refused."""


class _Line:
    """The requests of one service: answered one after the other, in a thread of their own."""

    def __init__(self, name: str, kind: Any, answer: Callable[[Any, Any], Any]) -> None:
        self.name = name
        self.began: float | None = None  # monotonic time; None while nothing is answered
        self.worker = Worker(name)
        self._kind, self._answer = kind, answer

    def begin(self, request: Any, response: Any) -> Any:
        """Begin to answer a request; a refusal where there are too many."""
        if self.worker.pending > MOST_WAITING:
            return self._refusal(f"{MOST_WAITING} requests of {self.name} wait; ask again later")
        ended = self._refusal("the node is ending")
        try:
            answer = self.worker.submit(partial(self._run, request, response))
        except RuntimeError:
            return ended
        return LaterResponse(answer, lambda ready: ended if ready.exception() else ready.result())

    def _run(self, request: Any, response: Any) -> Any:
        self.began = time.monotonic()
        try:
            return self._answer(request, response)
        finally:
            self.began = None

    def _refusal(self, why: str) -> Any:
        return self._kind.Response(success=False, message=why)


class SlowServices:
    """A hidden node beside the node, with an executor of its own, and a thread for each service.

    An executor takes requests and sends responses in its own thread, and it takes tens of
    milliseconds to make Python objects of a long trajectory: a callback group would be no help.
    What a request asks for is done in the thread of its service, so that one that takes long
    holds up only those of its own kind; threads take turns.

    Args:
        node: whose services these are, by their names.
    """

    def __init__(self, node: Any) -> None:
        self._owner = node
        self._lines: list[_Line] = []
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
        line = _Line(name.removeprefix("~/"), kind, answer)
        service = self._node.create_service(
            kind,
            self._owner.resolve_service_name(name),
            line.begin,
            qos_profile=SERVICE_QOS,
        )
        allow_later_responses(service, self._executor.create_task)
        self._lines.append(line)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def progress(self) -> dict[str, str]:
        """What is being answered now, and for how long; for diagnostics."""
        began = {line.name: line.began for line in self._lines}
        now, pending = time.monotonic(), sum(line.worker.pending for line in self._lines)
        running = [f"{name}, {now - t:.1f} s" for name, t in began.items() if t is not None]
        return {
            "requests under way": "; ".join(running) or "none",
            "requests waiting": str(max(pending - len(running), 0)),
        }

    def cancel(self) -> None:
        """Answer nothing more, and have what is under way stop."""
        for line in self._lines:
            line.worker.cancel()
        self._executor.create_task(self._closed.set_result, None)

    def wait(self, deadline: float) -> bool:
        """Whether all threads have come to rest by a monotonic time."""
        self._thread.join(timeout=max(deadline - time.monotonic(), 0.0))
        rest = [line.worker.wait(deadline) for line in self._lines]
        return all(rest) and not self._thread.is_alive()

    def destroy(self) -> None:
        """Free the node; only after `wait` said that nothing uses it."""
        self._node.destroy_node()

    def _spin(self) -> None:
        step_back()
        self._executor.spin_until_future_complete(self._closed, FOREVER)
