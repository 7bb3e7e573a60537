"""Responses that are not there yet when a service's callback returns; ~/change_state is one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from lifecycle_msgs.msg import Transition
from rclpy.service import Service

from rbda_ros.errors import one_line


@dataclass(frozen=True)
class DeferredResponse:
    """In the place of a response.

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
