"""ROS messages as C programs have them: a structure in memory, used through ctypes.

Its fields have the names and the order of the message's definition. Numbers stand in it, and so
do messages in messages; texts and arrays are pointers with a size (as in rosidl_runtime_c).
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rcl_interfaces.srv import GetParameters
from rclpy.type_support import check_for_type_support
from rosidl_parser.definition import BasicType, NamespacedType, UnboundedSequence, UnboundedString

Vector = NDArray[np.float64]

NUMBERS: dict[str, Any] = {
    "boolean": ctypes.c_bool,
    "double": ctypes.c_double,
    "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32,
}
NO_NUMBERS: Vector = np.zeros(0)


class UnknownLayoutError(Exception):
    """A message has something that is not known here, or not where it should be."""


class Many(ctypes.Structure):
    """A text, or an array."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("capacity", ctypes.c_size_t),
    )


class TakenMessage:
    """A message that the middleware writes, again and again.

    Raises:
        UnknownLayoutError: its like must be left to rclpy.

    Attributes:
        kind: the Python class of such messages.
        view: the message. Texts and arrays are read anew each time; arrays of float64 are
            numpy's, and good until the next message is taken.
    """

    def __init__(self, kind: Any) -> None:
        check_for_type_support(kind)
        functions = type(kind)
        self.kind = kind
        create = _function(functions._CREATE_ROS_MESSAGE, ctypes.c_void_p)
        destroy = _function(functions._DESTROY_ROS_MESSAGE, None, ctypes.c_void_p)
        address = create()
        weakref.finalize(self, destroy, address)
        self.view: Any = layout(kind).from_address(address)

        from_python = _function(
            functions._CONVERT_FROM_PY, ctypes.c_bool, ctypes.py_object, ctypes.c_void_p
        )
        sample = _sample(kind, itertools.count(1))
        from_python(sample, address)
        if not _same(self.view, sample):
            raise UnknownLayoutError(f"{kind.__name__} is laid out in an unknown way")


class SentMessage:
    """A message that we write, and the middleware reads.

    Raises:
        UnknownLayoutError: its like must be left to rclpy.

    Attributes:
        kind: the Python class of such messages.
        view: the message, the only one of its class. Arrays of the same size are written in
            place, and texts that are the same as before not at all.
    """

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        own = _OneMessage(kind.__name__, (layout(kind),), {"plain": kind})
        self.view: Any = type.__call__(own)
        self.view.owned = {}  # what it points to
        own.one = self.view
        sample = _sample(kind, itertools.count(1))
        _assign(self.view, sample)
        if self.read() != sample:
            raise UnknownLayoutError(f"{kind.__name__} is laid out in an unknown way")
        _assign(self.view, kind())

    def read(self) -> Any:
        """The message as whoever receives it will see it."""
        return _to_python(self.kind)(ctypes.addressof(self.view))


class _OneMessage(type(ctypes.Structure)):  # type: ignore[misc]
    """A class with one instance; plain messages pass for instances too."""

    plain: type
    one: Any

    def __call__(cls) -> Any:
        return cls.one

    def __instancecheck__(cls, thing: Any) -> bool:
        return isinstance(thing, cls.plain) or super().__instancecheck__(thing)


@cache
def layout(kind: Any) -> type[ctypes.Structure]:
    """The structure of a message.

    Raises:
        UnknownLayoutError: it has fields that are not known here.
    """
    fields: list[tuple[str, Any]] = []
    properties: dict[str, property] = {}
    for name, slot in _slots(kind):
        if isinstance(slot, BasicType) and slot.typename in NUMBERS:
            fields.append((name, NUMBERS[slot.typename]))
        elif isinstance(slot, NamespacedType):
            fields.append((name, layout(_class(slot))))
        else:
            fields.append((f"_{name}", Many))
            properties[name] = _property(f"_{name}", slot)
    return type(kind.__name__, (ctypes.Structure,), {"_fields_": fields, **properties})


def _slots(kind: Any) -> Iterator[tuple[str, Any]]:
    return zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES, strict=True)


def _class(slot: NamespacedType) -> Any:
    return getattr(importlib.import_module(".".join(slot.namespaces)), slot.name)


def _property(field: str, slot: Any) -> property:
    """How Python sees a text or array."""
    inside = slot.value_type if isinstance(slot, UnboundedSequence) else None
    read: Callable[[Many], Any]
    write: Callable[[Many, Any, Any], Any]
    if isinstance(slot, UnboundedString):
        read, write = _text, _write_text
    elif isinstance(inside, UnboundedString):
        read, write = _texts, _write_texts
    elif isinstance(inside, NamespacedType):
        kind = layout(_class(inside))
        read, write = partial(_messages, kind), partial(_write_messages, kind)
    elif inside == BasicType("double"):
        read, write = _numbers, _write_numbers
    else:
        raise UnknownLayoutError(f"{type(slot).__name__} {field} is not known in C")

    def put(message: Any, value: Any) -> None:
        many = getattr(message, field)
        while (outer := message._b_base_) is not None:
            message = outer
        key = ctypes.addressof(many)
        message.owned[key] = write(many, value, message.owned.get(key))

    return property(lambda message: read(getattr(message, field)), put)


# Reading.


def _text(many: Many) -> str:
    return ctypes.string_at(many.data, many.size).decode(errors="replace")


def _texts(many: Many) -> list[str]:
    # In C: this message is an array of texts, and nothing else.
    return _to_python(GetParameters.Request)(ctypes.addressof(many)).names if many.size else []


def _numbers(many: Many) -> Vector:
    size = many.size
    if not size:
        return NO_NUMBERS
    return np.frombuffer((ctypes.c_double * size).from_address(many.data))


def _messages(kind: Any, many: Many) -> list[Any]:
    step = ctypes.sizeof(kind)
    return [kind.from_address(many.data + step * k) for k in range(many.size)]


# Writing: each returns what must be cached, and gets it back the next time.


def _write_text(many: Many, text: str, cached: Any) -> Any:
    if cached is not None and cached[0] == text:
        return cached
    data = text.encode()
    many.data, many.size, many.capacity = _address(data), len(data), len(data) + 1
    return text, data


def _write_texts(many: Many, texts: Sequence[str], cached: Any) -> Any:
    texts = tuple(texts)
    if cached is not None and cached[0] == texts:
        return cached
    array = (Many * len(texts))()
    data = [_write_text(one, text, None) for one, text in zip(array, texts, strict=True)]
    _point(many, array)
    return texts, array, data


def _write_numbers(many: Many, numbers: Any, cached: Vector | None) -> Vector:
    if cached is not None and len(cached) == len(numbers):
        cached[:] = numbers
        return cached
    array = np.array(numbers, dtype=np.float64)
    many.data, many.size, many.capacity = array.ctypes.data, len(array), len(array)
    return array


def _write_messages(kind: Any, many: Many, messages: Sequence[Any], cached: Any) -> Any:
    array = (kind * len(messages))()
    _point(many, array)
    views = _messages(kind, many)
    for view, message in zip(views, messages, strict=True):
        view.owned = {}
        _assign(view, message)
    return array, views


def _assign(view: Any, message: Any) -> None:
    """Write all of a plain message."""
    for name in message.get_fields_and_field_types():
        value = getattr(message, name)
        if hasattr(value, "get_fields_and_field_types"):
            _assign(getattr(view, name), value)
        else:
            setattr(view, name, value)


def _point(many: Many, array: Any) -> None:
    many.data = ctypes.addressof(array) if len(array) else None
    many.size = many.capacity = len(array)


def _address(data: bytes) -> int | None:
    """Where bytes are; Python has put a zero after them."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value


# Functions that message classes have, for C.


@cache
def _to_python(kind: Any) -> Any:
    check_for_type_support(kind)
    return _function(type(kind)._CONVERT_TO_PY, ctypes.py_object, ctypes.c_void_p)


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def _function(capsule: Any, *signature: Any) -> Any:
    """A C function by its capsule; what it returns comes first."""
    return ctypes.PYFUNCTYPE(*signature)(_pointer(capsule, None))


# A message with something else in every field.


def _sample(kind: Any, count: Iterator[int]) -> Any:
    message = kind()
    for name, slot in _slots(kind):
        if isinstance(slot, UnboundedSequence):
            setattr(message, name, [_value(slot.value_type, count) for _ in range(2)])
        else:
            setattr(message, name, _value(slot, count))
    return message


def _value(slot: Any, count: Iterator[int]) -> Any:
    if isinstance(slot, NamespacedType):
        return _sample(_class(slot), count)
    number = next(count)
    if isinstance(slot, BasicType):
        return {"boolean": True, "double": number + 0.5}.get(slot.typename, number)
    return f"text {number}"


def _same(view: Any, message: Any) -> bool:
    """Whether a view of a message shows what the message has."""
    if isinstance(view, ctypes.Structure):
        names = message.get_fields_and_field_types()
        return all(_same(getattr(view, name), getattr(message, name)) for name in names)
    if isinstance(view, list):
        return len(view) == len(message) and all(map(_same, view, message))
    if isinstance(view, np.ndarray):
        return view.tolist() == list(message)
    return bool(view == message)
