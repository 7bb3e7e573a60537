"""Expressions in joint names: a small grammar parsed with lark, never eval'd.

``parse("follower - 0.1*cos(cam)")`` gives a tree of `Number`, `Name` and `Call`. Operators are
``+ - * / ^`` and ``**``, which is the same as ``^``; powers bind tighter than a minus before
them and group to the right, as in Python. A joint whose name is no identifier, or is ``pi``,
stands in backquotes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

if TYPE_CHECKING:
    import lark  # where it is used: few robots have expressions, and it takes 50 ms to import

Function = Literal[
    "add", "sub", "mul", "div", "pow", "neg",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sqrt", "exp", "log",
    "sinh", "cosh", "tanh", "abs",
]  # fmt: skip


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

    function: Function
    arguments: tuple[Node, ...]


Node = Number | Name | Call

# Functions that walk deeper trees recursively would overflow the stack.
DEEPEST = 100
LONGEST = 10_000

_OPERATORS = ("add", "sub", "mul", "div", "pow", "neg")
_FUNCTIONS = tuple(name for name in get_args(Function) if name not in _OPERATORS)

_GRAMMAR = r"""
    ?start: sum
    ?sum: product
        | sum "+" product -> add
        | sum "-" product -> sub
    ?product: signed
        | product "*" signed -> mul
        | product "/" signed -> div
    ?signed: power
        | "-" signed -> neg
        | "+" signed
    ?power: atom
        | atom ("^" | "**") signed -> pow
    ?atom: NUMBER -> number
        | NAME -> name
        | QUOTED -> quoted
        | NAME "(" [sum ("," sum)*] ")" -> call
        | "(" sum ")"
    NUMBER: /(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?/
    NAME: /[^\W\d]\w*/
    QUOTED: /`[^`]+`/
    %ignore /\s+/
"""


class ExpressionError(ValueError):
    """The text is no expression; the message gives the column."""


def parse(text: str) -> Node:
    """Parse an expression; ExpressionError says at which column it goes wrong."""
    if len(text) > LONGEST:
        raise ExpressionError(f"is longer than {LONGEST} characters")
    from lark.exceptions import UnexpectedInput

    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise ExpressionError(_explain(text, error)) from None
    if _depth(tree) > DEEPEST:
        raise ExpressionError(f"nests more than {DEEPEST} operations")
    return _node(tree)


def names(node: Node) -> tuple[str, ...]:
    """Return the joints of an expression, each once, in the order of appearance."""
    return tuple(dict.fromkeys(_walk_names(node)))


def _walk_names(node: Node) -> Iterator[str]:
    if isinstance(node, Name):
        yield node.joint
    elif isinstance(node, Call):
        for argument in node.arguments:
            yield from _walk_names(argument)


@cache
def _parser() -> lark.Lark:
    from lark import Lark

    return Lark(_GRAMMAR, parser="lalr")


def _depth(tree: lark.Tree) -> int:
    """Levels of a tree, found without recursion."""
    from lark import Tree

    depth = 0
    level = [tree]
    while level:
        depth += 1
        level = [child for node in level for child in node.children if isinstance(child, Tree)]
    return depth


def _node(tree: lark.Tree) -> Node:
    children: list[Any] = tree.children
    token = children[0]
    match tree.data:
        case "number":
            return Number(_number(token))
        case "name":
            return Number(math.pi) if token == "pi" else Name(str(token))
        case "quoted":
            return Name(str(token)[1:-1])
        case "call":
            return _call(token, [child for child in children[1:] if child is not None])
        case operator:
            return Call(cast(Function, operator), tuple(_node(child) for child in children))


def _number(token: lark.Token) -> float:
    value = float(token)
    if math.isinf(value):
        raise ExpressionError(f"column {_column(token)}: {token} is too large")
    return value


def _call(name: lark.Token, arguments: list[lark.Tree]) -> Call:
    if name not in _FUNCTIONS:
        known = ", ".join(_FUNCTIONS)
        raise ExpressionError(f"column {_column(name)}: {name!s} is no function (known: {known})")
    expected = 2 if name == "atan2" else 1
    if len(arguments) != expected:
        raise ExpressionError(
            f"column {_column(name)}: {name!s} takes {expected} argument(s), not {len(arguments)}"
        )
    return Call(cast(Function, str(name)), tuple(_node(argument) for argument in arguments))


def _column(token: lark.Token) -> int:
    return (token.start_pos or 0) + 1


def _explain(text: str, error: lark.exceptions.UnexpectedInput) -> str:
    position = getattr(error, "pos_in_stream", None)
    token = getattr(error, "token", None)
    if position is None or position < 0 or (token is not None and token.type == "$END"):
        return f"column {len(text) + 1}: ends too early"
    found = text[position] if token is None else str(token)
    hint = " (write 'a = b' as 'a - b')" if found == "=" else ""
    return f"column {position + 1}: {found[:40]!r} is not expected here{hint}"
