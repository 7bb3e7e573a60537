"""Fingerprints of the inputs of programs: equal only if the programs are equal."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

Known = dict[int, tuple[Any, bytes]]
"""Values by their identity, which is theirs as long as they are held here, and their hashes."""
SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes, range})
SOURCES = ("spatial.py", "description", "cluster_tree", "algorithms", "kernels")
"""Files of this package that determine programs and their machine code."""


class NoFingerprintError(Exception):
    """An object has no content from which a fingerprint can be made."""


def fingerprint(*values: Any) -> str:
    """A hash of values: numbers, texts, arrays, dataclasses and collections of these.

    Raises:
        NoFingerprintError: there is something else in them.
    """
    known: Known = {}
    return hashlib.sha256(b"".join(_encoded(value, known) for value in values)).hexdigest()


@cache
def versions() -> str:
    """A hash of this package's sources and of the versions of its dependencies."""
    import llvmlite  # not before it is needed: without the cache, it may be missing

    root = Path(__file__).parents[1]
    paths = [path for source in SOURCES for path in sorted((root / source).rglob("*.py"))]
    paths.append(root / SOURCES[0])
    sources = [hashlib.sha256(path.read_bytes()).digest() for path in paths]
    return fingerprint(sources, [module.__version__ for module in (ca, llvmlite, np)])


def _encoded(value: Any, known: Known) -> bytes:
    """A value with its type and length, so that no two make the same bytes.

    Args:
        value: what to encode.
        known: the dataclasses encoded before: a tree has its bodies, and these their joints, in
            several places.
    """
    kind = type(value)
    if kind in SCALARS:
        text = repr(value)
        return f"{kind.__name__} {len(text)} {text}".encode()
    if kind is tuple or kind is list:
        content = b"".join([_encoded(item, known) for item in value])
        return f"{kind.__name__} {len(value)} ".encode() + content
    if is_dataclass(value) and not isinstance(value, type):
        found = known.get(id(value))
        if found is None:
            names = _field_names(value.__class__)
            content = b"".join([_encoded(getattr(value, name), known) for name in names])
            head = f"{kind.__name__} {len(names)} ".encode()
            found = known[id(value)] = value, b"data " + hashlib.sha256(head + content).digest()
        return found[1]
    return _encoded_other(value, known)


def _encoded_other(value: Any, known: Known) -> bytes:
    kind = type(value).__name__
    if isinstance(value, complex | float | int | str | bytes):
        text = repr(value)
        return f"{kind} {len(text)} {text}".encode()
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"array {value.dtype} {value.shape} ".encode() + value.tobytes()
    if isinstance(value, np.generic):
        return _encoded(value.item(), known)
    if isinstance(value, ca.Function | ca.DM | ca.SX):
        return _encoded(value.serialize(), known)
    if isinstance(value, Mapping):
        content = b"".join(_encoded(key, known) + _encoded(value[key], known) for key in value)
        return f"mapping {len(value)} ".encode() + content
    if isinstance(value, set | frozenset):
        return b"set " + _encoded(sorted(fingerprint(item) for item in value), known)
    if isinstance(value, Collection):
        content = b"".join(_encoded(item, known) for item in value)
        return f"{kind} {len(value)} ".encode() + content
    raise NoFingerprintError(f"{kind} has no fingerprint")


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
