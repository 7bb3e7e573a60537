"""Service types whose messages are converted quickly.

rclpy converts a message into a Python object for each pose, twist and vector in it, and makes each
with default values first. For thirty joints that takes longer than their dynamics. rclpy takes the
functions that make, convert and destroy a message from its type. The types made here give it those
of `c_messages.c` for the conversion. Fields have the same names; arrays of float64 are numpy
arrays, and messages in messages are namespaces. Plain messages may be sent too.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar

from rclpy.type_support import check_for_type_support

try:
    from rbda_ros.node.services import c_messages
except ImportError:
    c_messages = None  # type: ignore[assignment]


def for_service(kind: Any) -> Any:
    """A type for `create_service`; ``kind`` itself where its messages are left to rclpy."""
    return _service_type(kind) or kind


for_client = for_service
"""The same for `create_client`."""


@cache
def _service_type(kind: Any) -> Any:
    """None where messages have other fields than `c_messages` knows, or it was not built."""
    if c_messages is None:
        return None
    check_for_type_support(kind)
    try:
        messages = {
            "Request": _message_type(kind.Request),
            "Response": _message_type(kind.Response),
        }
    except TypeError:
        return None
    metaclass = type("InPlace", (type,), {"_TYPE_SUPPORT": type(kind)._TYPE_SUPPORT})
    return metaclass(kind.__name__, (), {**messages, "Event": kind.Event})


class _Message(SimpleNamespace):
    """A message: the given fields, and the defaults of all others."""

    number: ClassVar[int]
    plain: ClassVar[type]

    def __init__(self, **fields: Any) -> None:
        c_messages.fill(self, self.number)
        super().__init__(**fields)


class _PlainToo(type):
    """Metaclass of classes for which plain messages are instances too."""

    plain: type

    def __instancecheck__(cls, thing: Any) -> bool:
        return super().__instancecheck__(thing) or isinstance(thing, cls.plain)


def _message_type(kind: Any) -> Any:
    plain = type(kind)
    check_for_type_support(kind)

    def make(number: int, to_python: Any, from_python: Any) -> Any:
        functions = {
            "_CREATE_ROS_MESSAGE": plain._CREATE_ROS_MESSAGE,
            "_DESTROY_ROS_MESSAGE": plain._DESTROY_ROS_MESSAGE,
            "_CONVERT_TO_PY": to_python,
            "_CONVERT_FROM_PY": from_python,
            "_TYPE_SUPPORT": plain._TYPE_SUPPORT,
        }
        metaclass = type("InPlace", (_PlainToo,), functions)
        return metaclass(kind.__name__, (_Message,), {"number": number, "plain": kind})

    return c_messages.add(plain._TYPE_SUPPORT, make)
