"""Service types whose messages are read and written where the middleware has them.

rclpy makes Python objects of a message: of each pose, twist and vector, and first of each one's
defaults. For thirty joints that takes longer than their dynamics. But all it knows of a type is a
few C functions: to make a message, to turn it into Python and back, and to destroy it. Here it is
given others. One request and one response are made once and kept, as C programs do it, and Python
sees them in place. Names, which are the same every time, are written once.

A message that was taken is good until the next one comes, and its arrays of float64 are numpy's.
There is one to send; it still has what it had the last time. So use a type for one service or
client, in one thread, and wait for each answer before the next call.
"""

from __future__ import annotations

import ctypes
from typing import Any

from rclpy.type_support import check_for_type_support

from rbda_ros.node.services.c_messages import SentMessage, TakenMessage, UnknownLayoutError

CANNOT_BE = UnknownLayoutError, OSError, RuntimeError, MemoryError
"""Messages with other fields; or a system that lets no program make functions for C."""


def for_service(kind: Any) -> Any:
    """A type for `create_service`; ``kind`` itself where its messages cannot be used in place.

    Plain responses may be sent too.
    """
    try:
        return _service_type(kind, Request=_taken(kind.Request), Response=_sent(kind.Response))
    except CANNOT_BE:
        return kind


def for_client(kind: Any) -> Any:
    """A type for `create_client`; ``kind`` itself where its messages cannot be used in place.

    Its ``Request()`` is always the same one.
    """
    try:
        return _service_type(kind, Request=_sent(kind.Request), Response=_taken(kind.Response))
    except CANNOT_BE:
        return kind


def _service_type(kind: Any, **messages: Any) -> Any:
    check_for_type_support(kind)
    metaclass = type("InPlace", (type,), {"_TYPE_SUPPORT": type(kind)._TYPE_SUPPORT})
    return metaclass(kind.__name__, (), {**messages, "Event": kind.Event})


def _taken(kind: Any) -> Any:
    """A class that rclpy takes messages with."""
    return type("Taken", (type,), _functions(TakenMessage(kind)))(kind.__name__, (), {})


def _sent(kind: Any) -> Any:
    """A class that rclpy sends messages with: one instance, or plain ones."""
    message = SentMessage(kind)
    sent = type(message.view)
    for name, value in _functions(message).items():
        setattr(sent, name, value)
    return sent


def _functions(message: SentMessage | TakenMessage) -> dict[str, Any]:
    """What rclpy is to call: the message is made already, is its view, and stays."""
    view, address = message.view, ctypes.addressof(message.view)
    functions = {
        "_CREATE_ROS_MESSAGE": _CREATE(lambda: address),
        "_DESTROY_ROS_MESSAGE": _DESTROY(lambda message: None),
        "_CONVERT_FROM_PY": _FROM_PYTHON(lambda plain, message: True),
        "_CONVERT_TO_PY": _TO_PYTHON(lambda message: view),
    }
    capsules = {
        name: _capsule(ctypes.cast(function, ctypes.c_void_p), None, None)
        for name, function in functions.items()
    }
    return {
        **capsules,
        "_TYPE_SUPPORT": type(message.kind)._TYPE_SUPPORT,
        "_in_use": (message, functions),  # as long as the class
    }


_CREATE = ctypes.PYFUNCTYPE(ctypes.c_void_p)
_DESTROY = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_FROM_PYTHON = ctypes.PYFUNCTYPE(ctypes.c_bool, ctypes.py_object, ctypes.c_void_p)
_TO_PYTHON = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
