"""Docstrings say what a thing is in the first words."""

import ast
from pathlib import Path

import rbda_ros

PACKAGE = Path(rbda_ros.__file__).parent


def test_no_docstring_begins_with_what():
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and str(node.value.value).startswith("What ")
    ]
    assert not found, "name the thing first"
