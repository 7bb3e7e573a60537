"""Connections from other web sites are rejected.

A browser lets any page open a WebSocket to any address, this machine's too, and says in the header
``Origin`` which page it was. viser looks at none, and offers no setting for it, so the check is put
before its own handler of requests while its server starts.
"""

from __future__ import annotations

import http
import inspect
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from rbda_ros.errors import ModelError

_starting = threading.Lock()  # `serve` is replaced for all threads


class UncheckedServerError(ModelError):
    """The server does not start where it did: nothing would check who connects."""


def is_own_page(headers: Mapping[str, str]) -> bool:
    """Whether a request comes from the page itself, or from no browser at all.

    The host that was asked for must be an address or a name of this machine: a name of somebody
    else's that was made to lead here (DNS rebinding) is not. An ``Origin``, where the request has
    one, must be the same host and port.
    """
    host = headers.get("Host", "")
    if not _is_this_machine(_name(f"http://{host}")):
        return False
    origin = headers.get("Origin")
    if origin is None:
        return True
    return origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_this_machine(name: str) -> bool:
    """Whether a name is one of this machine's, or an address."""
    own = socket.gethostname().lower()
    if name in ("localhost", own, f"{own}.local", socket.getfqdn().lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@contextmanager
def own_pages_only(edit: Callable[[Any], Any] = lambda response: response) -> Iterator[None]:
    """Have the WebSocket server that is started meanwhile reject everything else.

    Args:
        edit: changes each response before it is sent, such as the page itself.

    Raises:
        UncheckedServerError: none was started by ``websockets.asyncio.server.serve``.
    """
    from websockets.asyncio import server

    with _starting:
        serve, started = server.serve, []

        def checked(*arguments: Any, process_request: Any = None, **options: Any) -> Any:
            started.append(True)
            check = _checked(process_request, edit)
            return serve(*arguments, process_request=check, **options)

        server.serve = checked  # type: ignore[assignment,misc]
        try:
            yield
        finally:
            server.serve = serve  # type: ignore[misc]
        if not started:
            raise UncheckedServerError(
                "rbda_ros view: this viser does not start its server by websockets, so that other"
                " web sites could connect; install the viser of requirements.lock"
            )


def _checked(
    handle: Callable[[Any, Any], Any] | None, edit: Callable[[Any], Any]
) -> Callable[[Any, Any], Any]:
    async def process_request(connection: Any, request: Any) -> Any:
        if not is_own_page(request.headers):
            return connection.respond(http.HTTPStatus.FORBIDDEN, "open the page itself\n")
        answer: Any = None if handle is None else handle(connection, request)
        answer = (await answer) if inspect.isawaitable(answer) else answer
        return None if answer is None else edit(answer)

    return process_request
