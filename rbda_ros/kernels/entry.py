"""The way from Python into a kernel: a built-in function whose machine code we emit too.

Calling a C function through ctypes costs as much as a small robot's whole dynamics. So the entry
is emitted as a CPython built-in (METH_FASTCALL): it looks at its arguments, takes the pointers of
contiguous float64 vectors of the right length, lets numpy make the results, and runs the kernel.
Everything else (lists, other types, strides, wrong lengths) is passed to a Python callable.

It reads numpy arrays by the layout that numpy promises to compiled extensions (PyArrayObject and
the function table of its C API). `check_layout` compares this with a real array first.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from rbda_ros.kernels.llvm_text import at_address
from rbda_ros.kernels.program import Port

_HEAD = object.__basicsize__  # the type is the last pointer of an object's head
_DATA, _NDIM, _DIMENSIONS, _DESCR, _FLAGS = (_HEAD + offset for offset in (0, 8, 16, 40, 48))
_C_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
_PYARRAY_NEW = 93  # place in numpy's function table
_NPY_DOUBLE = 12
_METH_FASTCALL = 0x80

_FLOAT = np.dtype(np.float64)


class LayoutError(Exception):
    """Arrays of this numpy, or objects of this Python, do not look as expected."""


@cache
def check_layout() -> None:
    """Compare what the emitted code will read with a real array.

    Raises:
        LayoutError: something is not where it should be.
    """
    array = np.arange(3.0)

    def read(kind: Any, address: int) -> int:
        return int(kind.from_address(address).value)

    here = id(array)
    if (
        ctypes.sizeof(ctypes.c_void_p) != 8
        or read(ctypes.c_size_t, here + _HEAD - 8) != id(np.ndarray)
        or read(ctypes.c_size_t, here + _DATA) != array.ctypes.data
        or read(ctypes.c_int, here + _NDIM) != 1
        or read(ctypes.c_ssize_t, read(ctypes.c_size_t, here + _DIMENSIONS)) != 3
        or read(ctypes.c_size_t, here + _DESCR) != id(_FLOAT)
        or read(ctypes.c_int, here + _FLAGS) != array.flags.num
    ):
        raise LayoutError("numpy arrays are laid out in an unknown way")


def call_module(inputs: tuple[Port, ...], outputs: tuple[Port, ...], evaluate: int) -> str:
    """IR of the built-in ``call(*inputs) -> tuple of new outputs``."""
    ir = _guards("call", [(port.size, False) for port in inputs])
    ir += [f"  %result = call ptr {python_function('PyTuple_New')}(i64 {len(outputs)})"]
    ir += ["  %none = icmp eq ptr %result, null", "  br i1 %none, label %fail, label %make0"]
    sizes = []
    for i, port in enumerate(outputs):
        sizes.append(f"@size{i} = private constant i64 {port.size}")
        ir += [
            f"make{i}:",
            f"  %array{i} = call ptr {at_address(_numpy_function(_PYARRAY_NEW))}(ptr"
            f" {at_address(id(np.ndarray))}, i32 1, ptr @size{i}, i32 {_NPY_DOUBLE}, ptr null,"
            " ptr null, i32 0, i32 0, ptr null)",
            f"  %none{i} = icmp eq ptr %array{i}, null",
            f"  br i1 %none{i}, label %drop, label %keep{i}",
            f"keep{i}:",
            f"  %kept{i} = call i32 {python_function('PyTuple_SetItem')}(ptr %result, i64 {i},"
            f" ptr %array{i})",
            f"  %at{i} = getelementptr i8, ptr %array{i}, i64 {_DATA}",
            f"  %out{i} = load ptr, ptr %at{i}",
            f"  br label %make{i + 1}",
        ]
    pointers = [f"ptr %data{i}" for i in range(len(inputs))]
    pointers += [f"ptr %out{i}" for i in range(len(outputs))]
    ir += [
        f"make{len(outputs)}:",
        f"  call void {at_address(evaluate)}({', '.join(pointers)})",
        "  ret ptr %result",
        "drop:",
        f"  call void {python_function('Py_DecRef')}(ptr %result)",
        "  br label %fail",
        "fail:",
        "  ret ptr null",
        "}",
    ]
    return "\n".join([*sizes, *ir])


def into_module(inputs: tuple[Port, ...], outputs: tuple[Port, ...], evaluate: int) -> str:
    """IR of the built-in ``into(*inputs, *outputs)``, which writes into arrays that exist."""
    wanted = [(port.size, False) for port in inputs] + [(port.size, True) for port in outputs]
    pointers = ", ".join(f"ptr %data{i}" for i in range(len(wanted)))
    none = at_address(id(None))
    return "\n".join(
        [
            *_guards("into", wanted),
            f"  call void {at_address(evaluate)}({pointers})",
            f"  call void {python_function('Py_IncRef')}(ptr {none})",
            f"  ret ptr {none}",
            "}",
        ]
    )


def _guards(name: str, wanted: list[tuple[int, bool]]) -> list[str]:
    """The start of a built-in: pointers %data0, ... of its arguments, if all are as wanted."""
    ir = [
        f"define ptr @{name}(ptr %self, ptr %args, i64 %count) {{",
        f"  %right = icmp eq i64 %count, {len(wanted)}",
        "  br i1 %right, label %check0, label %slow",
        "slow:",
        f"  %answer = call ptr {python_function('PyObject_Vectorcall')}(ptr %self, ptr %args,"
        " i64 %count, ptr null)",
        "  ret ptr %answer",
    ]
    for i, (size, written) in enumerate(wanted):
        flags = _C_CONTIGUOUS | _ALIGNED | (_WRITEABLE if written else 0)
        ir += [
            f"check{i}:",
            f"  %argument{i} = getelementptr ptr, ptr %args, i64 {i}",
            f"  %x{i} = load ptr, ptr %argument{i}",
            *_field(f"type{i}", "ptr", f"%x{i}", _HEAD - 8),
            f"  %istype{i} = icmp eq ptr %type{i}, {at_address(id(np.ndarray))}",
            f"  br i1 %istype{i}, label %array{i}.check, label %slow",
            f"array{i}.check:",
            *_field(f"descr{i}", "ptr", f"%x{i}", _DESCR),
            f"  %isdescr{i} = icmp eq ptr %descr{i}, {at_address(id(_FLOAT))}",
            *_field(f"ndim{i}", "i32", f"%x{i}", _NDIM),
            f"  %isndim{i} = icmp eq i32 %ndim{i}, 1",
            *_field(f"flags{i}", "i32", f"%x{i}", _FLAGS),
            f"  %masked{i} = and i32 %flags{i}, {flags}",
            f"  %isflags{i} = icmp eq i32 %masked{i}, {flags}",
            f"  %one{i} = and i1 %isdescr{i}, %isndim{i}",
            f"  %both{i} = and i1 %one{i}, %isflags{i}",
            f"  br i1 %both{i}, label %size{i}.check, label %slow",
            f"size{i}.check:",
            *_field(f"sizes{i}", "ptr", f"%x{i}", _DIMENSIONS),
            f"  %size{i} = load i64, ptr %sizes{i}",
            f"  %issize{i} = icmp eq i64 %size{i}, {size}",
            *_field(f"data{i}", "ptr", f"%x{i}", _DATA),
            f"  br i1 %issize{i}, label %check{i + 1}, label %slow",
        ]
    return [*ir, f"check{len(wanted)}:"]


def _field(name: str, kind: str, base: str, offset: int) -> list[str]:
    return [
        f"  %{name}.at = getelementptr i8, ptr {base}, i64 {offset}",
        f"  %{name} = load {kind}, ptr %{name}.at",
    ]


def python_function(function: str) -> str:
    """A function of Python's C API, as IR calls it."""
    address = ctypes.cast(getattr(ctypes.pythonapi, function), ctypes.c_void_p).value
    assert address
    return at_address(address)


@cache
def _numpy_function(index: int) -> int:
    """The address of a function of numpy's C API, as `import_array` finds it."""
    umath: Any = importlib.import_module("numpy._core._multiarray_umath")
    table = pointer_in(umath._ARRAY_API)
    return int(ctypes.c_size_t.from_address(table + 8 * index).value)


def pointer_in(capsule: Any) -> int:
    """The address that a capsule without a name holds."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(get(capsule, None))


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


_definitions: list[_MethodDefinition] = []
"""Kept for ever (32 bytes each): CPython reads a definition even while it deletes its function."""


def builtin(name: str, address: int, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The built-in function at an address; `otherwise` gets the calls that it does not take.

    The function keeps `otherwise` alive, which must keep the machine code alive.
    """
    definition = _MethodDefinition(name.encode(), address, _METH_FASTCALL, None)
    _definitions.append(definition)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.POINTER(_MethodDefinition), ctypes.py_object, ctypes.c_void_p)
    return new(ctypes.byref(definition), otherwise, None)
