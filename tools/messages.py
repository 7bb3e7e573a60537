"""Every error message of rbda_ros, read from the sources: for the reference, and its test.

A message says what is wrong and, after a semicolon, what to change. `Problem` has both apart. What
a message leaves to the reader, docs/reference/remedies.yaml adds.
"""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rbda_ros"
REMEDIES = ROOT / "docs" / "reference" / "remedies.yaml"
INTERNAL = {  # for callers inside the package, who turn them into one of the others
    "AssertionError", "AssemblyError", "AttributeError", "CancelledWorkError", "ExpressionError",
    "FarError", "KeyError", "LayoutError", "NoFingerprintError", "NotImplementedError",
    "StopIteration", "SystemExit", "TimeoutError", "UnknownLayoutError",
    "UnsupportedOperationError",
}  # fmt: skip


@dataclass(frozen=True)
class Message:
    """One error: its class, where it is raised, what it says, and what to do about it."""

    error: str
    module: str
    cause: str
    remedy: str


@cache
def messages():
    """All of them, in the order of modules and lines; each text once a module."""
    added = yaml.safe_load(REMEDIES.read_text()) if REMEDIES.is_file() else {}
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for error, cause, remedy in _in_tree(ast.parse(path.read_text())):
            remedy = remedy or added.get(cause, "")
            found[module, cause] = Message(error, module, cause, remedy)
    return tuple(found.values())


def unused_remedies():
    """Entries of remedies.yaml that no message needs."""
    needed = {message.cause for message in messages()}
    return sorted(set(yaml.safe_load(REMEDIES.read_text())) - needed)


def _in_tree(tree):
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    for function in [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)] or [tree]:
        names = _assigned(function)
        for node in _own(function):
            call = node.exc if isinstance(node, ast.Raise) else node
            if not isinstance(call, ast.Call):
                continue
            name = ast.unparse(call.func).rpartition(".")[2]
            if name in ("Problem", "problem") and len(call.args) == 3:
                element, reason, remedy = (_text(a, names) for a in call.args)
                if reason and remedy:
                    yield "DescriptionError", f"{element or '…'}: {reason}", remedy
            elif isinstance(node, ast.Raise) and name not in INTERNAL and call.args:
                for text in _texts(call.args[-1], names, functions):
                    if any(c.isalpha() for c in text.replace("…", "")):
                        yield (name, *_split(text))


def _texts(node, names, functions):
    """The text of an argument; where a function of the module gives it, each that it returns."""
    if isinstance(node, ast.Call):
        called = functions.get(ast.unparse(node.func).rpartition(".")[2])
        if called is None:
            return []
        inside = _assigned(called)
        return [
            _text(n.value, inside) for n in _own(called) if isinstance(n, ast.Return) and n.value
        ]
    return [_text(node, names)]


def _own(function):
    """Nodes of a function without those of functions inside it."""
    pending = list(ast.iter_child_nodes(function))[::-1]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef):
            pending += list(ast.iter_child_nodes(node))[::-1]


def _assigned(function):
    """Texts by the variable they are assigned to; the last one counts."""
    names = {}
    for node in _own(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Name) and isinstance(value, ast.JoinedStr | ast.Constant):
                names[target.id] = _text(value, {})
    return names


def _text(node, names):
    """A text with … for what is filled in; empty where it is not known."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            v.value if isinstance(v, ast.Constant) else _filled(v, names) for v in node.values
        )
    if isinstance(node, ast.BinOp):
        return _text(node.left, names) + _text(node.right, names)
    if isinstance(node, ast.IfExp):
        return _text(node.body, names)
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    return ""


def _filled(value, names):
    return (names.get(value.value.id) or "…") if isinstance(value.value, ast.Name) else "…"


def _split(text):
    """Cause and remedy: what is before and after the last semicolon."""
    cause, mark, remedy = text.rpartition("; ")
    return (cause, remedy) if mark else (text, "")


if __name__ == "__main__":
    for each in messages():
        print(f"{each.module}: {each.error}: {each.cause}\n    -> {each.remedy or '???'}")
