"""C sources of the engine and of the stream, as exported code has them: the same decisions."""

from __future__ import annotations

import re
from pathlib import Path

_ENGINE = "continuation", "loop_rules", "closing", "observer_step"
_PACKAGES = {**dict.fromkeys(_ENGINE, "engine"), "gate": "control"}
_INSTALLED = Path(__file__).parent / "sources"
_GUARD = re.compile(r"^#(ifndef|define|endif).*\n", re.MULTILINE)
_PARAMETERS = re.compile(r"/\* Parameters of the node.*?\n\n", re.DOTALL)
_INCLUDE = re.compile(r"^#include.*\n", re.MULTILINE)
_EXPORTED = re.compile(r"^(void|closing_result_t) (run_kernel|close_loops)\(", re.MULTILINE)
_PUBLIC = re.compile(r"\bgate_(t|rules_t|pass|hold|end|restart)\b")


def shared_source(file: str) -> str:
    """A source without its includes and its guard.

    Args:
        file: its name, such as ``closing.c``.
    """
    path = _INSTALLED / file
    if not path.exists():  # the package is imported from its sources
        path = Path(__file__).parents[1] / _PACKAGES[file.split(".")[0]] / file
    text = path.read_text(encoding="utf-8")
    if file.endswith(".h"):
        text = _GUARD.sub("", _PARAMETERS.sub("", text))
    return _INCLUDE.sub("", text).strip() + "\n"


def closing_source() -> str:
    """How loops are closed over and over: `closing.h` and `closing.c`, for one file alone."""
    text = shared_source("closing.h") + "\n" + shared_source("closing.c")
    return _EXPORTED.sub(r"static \1 \2(", text)


def gate_source(name: str, file: str) -> str:
    """The gate's header or source, with names that begin with that of the library."""

    def renamed(match: re.Match[str]) -> str:
        return f"{name}_gate" + {"t": "", "rules_t": "_rules"}.get(match[1], f"_{match[1]}")

    return _PUBLIC.sub(renamed, shared_source(file))
