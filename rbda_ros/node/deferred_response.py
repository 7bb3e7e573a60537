"""Responses that are not there yet when a service's callback returns."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from rclpy.service import Service


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
