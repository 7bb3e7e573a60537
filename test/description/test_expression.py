"""Expressions: Python's own grammar and arithmetic are the oracle."""

from __future__ import annotations

import math
import operator
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rbda_ros.description.expression import (
    DEEPEST,
    Call,
    ExpressionError,
    Name,
    Node,
    Number,
    names,
    parse,
)

OPERATORS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": operator.pow,
    "neg": operator.neg,
    "abs": abs,
}
FUNCTIONS = [
    *("sin", "cos", "tan", "asin", "acos", "atan", "sqrt", "exp", "log"),
    *("sinh", "cosh", "tanh", "abs"),
]
JOINTS = {"a": 0.7, "knee_2": -1.3, "über": 0.25}


def evaluate(node: Node) -> float:
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Name):
        return JOINTS[node.joint]
    function = OPERATORS.get(node.function) or getattr(math, node.function)
    return function(*(evaluate(argument) for argument in node.arguments))


def combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts around texts, with no more brackets than chance adds: precedence must decide."""
    space = st.sampled_from(["", " ", "\t"])
    return st.one_of(
        st.builds("{0}{1}{2}{1}{3}".format, inner, space, st.sampled_from("+-*/^"), inner),
        st.builds("{}**{}".format, inner, inner),
        st.builds("-{}".format, inner),
        st.builds("+{}".format, inner),
        st.builds("({})".format, inner),
        st.builds("{}({})".format, st.sampled_from(FUNCTIONS), inner),
        st.builds("atan2({}, {})".format, inner, inner),
    )


literals = st.one_of(
    st.floats(0, 10).map(str), st.sampled_from(["2.", ".5", "1e-3", "1.5E+1", "pi"])
)
texts = st.recursive(st.one_of(literals, st.sampled_from(sorted(JOINTS))), combine, max_leaves=12)


@settings(deadline=None)
@given(texts)
def test_means_what_python_means(text):
    python = text.replace("^", "**")
    scope = {name: getattr(math, name, abs) for name in [*FUNCTIONS, "atan2", "pi"]} | JOINTS
    try:
        expected = eval(python, {"__builtins__": {}}, scope)
    except (ArithmeticError, ValueError, TypeError):  # TypeError: a complex power inside sin()
        return
    assert evaluate(parse(text)) == expected


def test_tree_of_a_cam():
    assert parse("follower - 0.1*cos(cam)") == Call(
        "sub",
        (Name("follower"), Call("mul", (Number(0.1), Call("cos", (Name("cam"),))))),
    )


def test_names_in_backquotes_may_be_anything():
    tree = parse("`left-knee` + `pi` - 2*`a b/c.d` + sin + `left-knee`")
    assert names(tree) == ("left-knee", "pi", "a b/c.d", "sin")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: ends too early"),
        ("a +", "column 4: ends too early"),
        ("(a", "column 3: ends too early"),
        ("a b", "column 3: 'b' is not expected"),
        ("a = b", "column 3: '=' is not expected here (write 'a = b' as 'a - b')"),
        ("a $ b", "column 3: '$' is not expected"),
        ("a * * b", "column 5: '*' is not expected"),
        ("a)", "column 2: ')' is not expected"),
        ("`a", "column 1: '`' is not expected"),
        ("1_000 * a", "column 2: '_000' is not expected"),
        ("a + foo(a)", "column 5: foo is no function"),
        ("atan2(a)", "column 1: atan2 takes 2 argument(s), not 1"),
        ("2*sin()", "column 3: sin takes 1 argument(s), not 0"),
        ("sin(a, b)", "column 1: sin takes 1 argument(s), not 2"),
        ("__import__('os')", 'column 12: "\'" is not expected'),
        ("a.b", "column 2: '.' is not expected"),
        ("1e999", "column 1: 1e999 is too large"),
    ],
)
def test_errors_give_the_column(text, message):
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "a" + ")" * 4999,
        "(" * 9999,
        "-" * 9999 + "a",
        "+".join(["a"] * 5000),
        "sin(" * 2000 + "a" + ")" * 2000,
        "^".join(["a"] * 5000),
        "a" * 10_001,
        "+".join(["a"] * (DEEPEST + 1)),
    ],
)
def test_depth_and_length_are_bounded(text):
    start = time.monotonic()
    with pytest.raises(ExpressionError):
        parse(text)
    assert time.monotonic() - start < 5.0


def test_brackets_and_long_sums_within_the_bounds():
    assert parse("(" * 4999 + "a" + ")" * 4999) == Name("a")
    assert names(parse("+".join(f"a{number}" for number in range(DEEPEST - 1))))[-1] == "a98"


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_gives_a_tree_or_an_expression_error(text):
    try:
        names(parse(text))
    except ExpressionError as error:
        assert str(error)
