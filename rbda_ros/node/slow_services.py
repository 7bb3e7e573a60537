"""Services that may take long, ~/change_state too: computed beside the executor, answered later."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from lifecycle_msgs.msg import Transition
from rclpy.qos import QoSProfile, qos_profile_services_default
from rclpy.service import Service

from rbda_ros.control.worker import Worker
from rbda_ros.errors import one_line


@dataclass(frozen=True)
class DeferredResponse:
    """Returned by a callback instead of a response that is sent later.

    Attributes:
        ready: completes when it can be had; cancelled if it never can.
        get: gives it then, on the executor, from what has completed. It should not hold on to
            ``ready`` itself, which holds on to it: a cycle keeps a long response until the
            collector finds it.
    """

    ready: Future[Any]
    get: Callable[[Future[Any]], Any]


def allow_deferred_responses(
    service: Service[Any, Any], create_task: Callable[[Callable[[], None]], Any]
) -> None:
    """Let the callback of a service return a `DeferredResponse`; it is sent when it is ready.

    Args:
        service: whose responses these are.
        create_task: runs something on the executor of the service: the middleware wants one
            thread for all that is sent.
    """
    send = service.send_response

    def send_when_ready(response: Any, header: Any) -> None:
        if not isinstance(response, DeferredResponse):
            send(response, header)
            return
        get = response.get

        def done(ready: Future[Any]) -> None:
            if not ready.cancelled():
                create_task(lambda: send(get(ready), header))

        response.ready.add_done_callback(done)

    service.send_response = send_when_ready


def guard_change_state(node: Any, prepare: Callable[[], Future[Any] | None]) -> None:
    """Answer impossible transitions with success=false, and configure without waiting.

    rclpy lets the error of an impossible transition leave the callback, which ends the
    executor's spin, and the caller waits for ever. And the executor would stand still while a
    model is built: so the model is built first, beside it, and the transition made then.

    Args:
        node: the lifecycle node.
        prepare: called before the transition `configure`; begins what it needs, or returns None.
    """
    service = node._service_change_state
    change_state = service.callback

    def guarded(request: Any, response: Any) -> Any:
        try:
            return change_state(request, response)
        except Exception as error:
            node.get_logger().error(f"transition refused: {one_line(error)}")
            response.success = False
            return response

    def prepared_first(request: Any, response: Any) -> Any:
        wanted = request.transition
        if wanted.id == Transition.TRANSITION_CONFIGURE or wanted.label == "configure":
            prepared = prepare()
            if prepared is not None:
                return DeferredResponse(prepared, lambda _: guarded(request, response))
        return guarded(request, response)

    service.callback = prepared_first
    allow_deferred_responses(
        service, lambda task: node.executor and node.executor.create_task(task)
    )


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


class _RequestQueue:
    """The requests of one service, answered one after the other in a thread of their own."""

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
        self._queues: list[_RequestQueue] = []

    def add(self, kind: Any, name: str, answer: Callable[[Any, Any], Any]) -> None:
        """Offer a service, e.g. ``~/set_payload``."""
        queue = _RequestQueue(name.removeprefix("~/"), kind, answer)
        service = self._node.create_service(kind, name, queue.begin, qos_profile=SERVICE_QOS)
        allow_deferred_responses(service, self._on_executor)
        self._queues.append(queue)

    def progress(self) -> dict[str, str]:
        """Requests that are being answered, and for how long; for diagnostics."""
        began = {queue.name: queue.began for queue in self._queues}
        now, pending = time.monotonic(), sum(queue.worker.pending for queue in self._queues)
        running = [f"{name}, {now - t:.1f} s" for name, t in began.items() if t is not None]
        return {
            "requests under way": "; ".join(running) or "none",
            "requests waiting": str(max(pending - len(running), 0)),
        }

    def cancel(self) -> None:
        """Cancel running and waiting requests."""
        for queue in self._queues:
            queue.worker.cancel()

    def wait(self, deadline: float) -> bool:
        """Whether all threads have come to rest by a monotonic time."""
        return all([queue.worker.wait(deadline) for queue in self._queues])

    def _on_executor(self, task: Callable[[], None]) -> None:
        if self._node.executor is not None:  # else the node has ended
            self._node.executor.create_task(task)
