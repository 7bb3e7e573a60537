"""The service ~/change_state, made safe: nothing leaves it, and nothing waits in it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from lifecycle_msgs.msg import Transition

from rbda_ros.errors import one_line
from rbda_ros.node.deferred_response import DeferredResponse, allow_deferred_responses


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
