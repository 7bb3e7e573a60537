"""The page answers itself, and no other site that a browser has open."""

import socket
import urllib.error
import urllib.request

import pytest

pytest.importorskip("viser", reason="the extra 'view' is not installed")

from mechanism_table import MECHANISMS
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from rbda_ros.view.page import Page, UncheckedServerError, is_own_page, own_pages_only

NAME = socket.gethostname()


@pytest.mark.parametrize(
    ("host", "origin", "own"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080", True),
        ("localhost:8080", "http://localhost:8080", True),
        ("LOCALHOST:8080", "http://localhost:8080", True),
        ("[::1]:8080", "http://[::1]:8080", True),
        ("192.168.1.7:8080", "http://192.168.1.7:8080", True),
        (f"{NAME}:8080", f"http://{NAME}:8080", True),
        (f"{NAME}:8080", f"https://{NAME}:8080", True),  # behind a proxy with TLS
        ("127.0.0.1:8080", None, True),  # no browser
        ("127.0.0.1:8080", "http://evil.example", False),
        ("127.0.0.1:8080", "http://127.0.0.1:9090", False),
        ("127.0.0.1:8080", "http://localhost:8080", False),
        ("127.0.0.1:8080", "http://127.0.0.1:8080.evil.example", False),
        ("127.0.0.1:8080", "null", False),  # a page from a file, or in a sandbox
        ("127.0.0.1:8080", "", False),
        ("evil.example:8080", "http://evil.example:8080", False),  # DNS rebinding
        ("evil.example:8080", None, False),
        ("", None, False),
        ("[::1", None, False),
    ],
)
def test_whose_page_asks(host, origin, own):
    headers = {"Host": host} | ({} if origin is None else {"Origin": origin})
    assert is_own_page(headers) is own


def test_a_page_of_another_site_cannot_connect():
    page = Page(MECHANISMS["four_bar"].load(), port=18080)
    try:
        url = page.url
        address = url.replace("http://", "ws://")
        versions = ["viser-v1.0.0"]  # any: what is answered is whether it may connect
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
            with pytest.raises(InvalidStatus, match="403"):
                connect(address, origin=origin, subprotocols=versions)
        for origin in (url, None):
            connect(address, origin=origin, subprotocols=versions).close()
        assert urllib.request.urlopen(url).status == 200
        request = urllib.request.Request(url, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(request)
    finally:
        page.close()


def test_a_server_that_is_not_checked_is_not_served():
    with pytest.raises(UncheckedServerError), own_pages_only():
        pass
