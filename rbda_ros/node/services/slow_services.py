"""Services that may take long: computed beside the executor, so that no other request waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.qos import QoSProfile, qos_profile_services_default

from rbda_ros.control.worker import Worker
from rbda_ros.node.deferred_response import DeferredResponse, allow_deferred_responses

SERVICE_DEPTH = 200
"""Requests, or responses, that the middleware keeps until they are taken; by default it is 10, and
a burst of requests would push each other out."""

SERVICE_QOS = QoSProfile(
    depth=SERVICE_DEPTH,
    history=qos_profile_services_default.history,
    reliability=qos_profile_services_default.reliability,
    durability=qos_profile_services_default.durability,
)

MAX_WAITING = 100
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
        if self.worker.pending > MAX_WAITING:
            return self._refusal(f"{MAX_WAITING} requests of {self.name} wait; ask again later")
        ended = self._refusal("the node is ending")
        try:
            answer = self.worker.submit(partial(self._run, request, response))
        except RuntimeError as error:
            if self.worker.ending:
                return ended
            return self._refusal(f"{error}; this computer allows no more threads: raise its limit")
        return DeferredResponse(
            answer, lambda ready: ended if ready.exception() else ready.result()
        )

    def _run(self, request: Any, response: Any) -> Any:
        self.began = time.monotonic()
        try:
            return self._answer(request, response)
        finally:
            self.began = None

    def _refusal(self, why: str) -> Any:
        return self._kind.Response(success=False, message=why)


class SlowServices:
    """Services of the node that are answered in threads of their own, one for each service.

    The node's executor takes requests and sends responses. What a request asks for is computed in
    the thread of its service, so that a request that takes long delays only those of its own kind.

    Args:
        node: whose services these are.
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self._lines: list[_Line] = []

    def add(self, kind: Any, name: str, answer: Callable[[Any, Any], Any]) -> None:
        """Offer a service, e.g. ``~/set_payload``."""
        line = _Line(name.removeprefix("~/"), kind, answer)
        service = self._node.create_service(kind, name, line.begin, qos_profile=SERVICE_QOS)
        allow_deferred_responses(service, self._on_executor)
        self._lines.append(line)

    def progress(self) -> dict[str, str]:
        """Requests that are being answered, and for how long; for diagnostics."""
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

    def wait(self, deadline: float) -> bool:
        """Whether all threads have come to rest by a monotonic time."""
        return all([line.worker.wait(deadline) for line in self._lines])

    def _on_executor(self, task: Callable[[], None]) -> None:
        if self._node.executor is not None:  # else the node has ended
            self._node.executor.create_task(task)
