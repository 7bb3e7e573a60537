"""Expressions in joint names: a small grammar parsed with lark, never eval'd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Number:
    """A literal, or a named constant such as pi."""

    value: float


@dataclass(frozen=True)
class Name:
    """The position of a joint."""

    joint: str


@dataclass(frozen=True)
class Call:
    """An operator or a function applied to its arguments."""

    function: Literal[
        "add", "sub", "mul", "div", "pow", "neg",
        "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sqrt", "exp", "log",
        "sinh", "cosh", "tanh", "abs",
    ]  # fmt: skip
    arguments: tuple[Node, ...]


Node = Number | Name | Call
