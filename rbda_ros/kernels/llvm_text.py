"""Pieces of LLVM IR as text: vectors of lanes, literals, calls of the C library."""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from rbda_ros.kernels.program import LIBRARY


@dataclass(frozen=True)
class Lanes:
    """How many states a number stands for: 1 is a plain double, more a vector of them."""

    count: int

    @property
    def type(self) -> str:
        """The type of a number."""
        return self._of("double")

    @property
    def integer(self) -> str:
        """The type of its bits."""
        return self._of("i64")

    @property
    def boolean(self) -> str:
        """The type of a comparison."""
        return self._of("i1")

    @property
    def suffix(self) -> str:
        """The ending of an intrinsic's name."""
        return "f64" if self.count == 1 else f"v{self.count}f64"

    @property
    def pair(self) -> str:
        """The type of two numbers."""
        return f"{{ {self.type}, {self.type} }}"

    @property
    def bytes(self) -> int:
        """Bytes that a number takes in memory."""
        return 8 * self.count

    @property
    def attributes(self) -> str:
        """Function attributes that let vectors of this width stay in one register."""
        if self.count < 8:
            return ""
        width = 64 * self.count
        return f'"min-legal-vector-width"="{width}" "prefer-vector-width"="{width}"'

    def repeat(self, typed: str) -> str:
        """A constant, given with its type, in every lane; without the vector's type."""
        if self.count == 1:
            return typed.split(" ", 1)[1]
        return "<" + ", ".join([typed] * self.count) + ">"

    def _of(self, scalar: str) -> str:
        return scalar if self.count == 1 else f"<{self.count} x {scalar}>"


def literal(value: float, lanes: Lanes = Lanes(1)) -> str:
    """A constant to the last bit, in every lane."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return lanes.repeat(f"double 0x{bits:016X}")


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library("m"))


def library_address(function: str) -> int:
    """Where a function of `LIBRARY` is in this process."""
    address = ctypes.cast(getattr(_library(), function), ctypes.c_void_p).value
    assert address
    return address


def library_name(function: str) -> str:
    """The name of a function of `LIBRARY` in our code: by its own, LLVM would know better."""
    return f"rbda_ros_{function}"


LIBRARY_DECLARATIONS = "\n".join(
    f"declare double @{library_name(function)}({', '.join(['double'] * count)})"
    for function, count in LIBRARY.items()
)


def library_call(function: str, result: str, arguments: Sequence[str], lanes: Lanes) -> list[str]:
    """Lines that call a function of doubles for every lane."""
    target = f"@{library_name(function)}"
    if lanes.count == 1:
        scalars = ", ".join(f"double {a}" for a in arguments)
        return [f"  {result} = call double {target}({scalars})"]
    lines: list[str] = []
    vector = "poison"
    for k in range(lanes.count):
        given = []
        for i, argument in enumerate(arguments):
            lines.append(f"  {result}a{i}x{k} = extractelement {lanes.type} {argument}, i64 {k}")
            given.append(f"double {result}a{i}x{k}")
        lines.append(f"  {result}r{k} = call double {target}({', '.join(given)})")
        name = result if k == lanes.count - 1 else f"{result}v{k}"
        lines.append(
            f"  {name} = insertelement {lanes.type} {vector}, double {result}r{k}, i64 {k}"
        )
        vector = name
    return lines
