"""Fingerprints of what programs are made from: equal only where the programs would be."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import llvmlite
import numpy as np

Known = dict[int, tuple[Any, bytes]]
"""Values by their identity, which is theirs as long as they are held here, and their hashes."""
SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes, range})
ROOMS = ("spatial.py", "description", "cluster_tree", "algorithms", "kernels")
"""What of this package decides about programs and their machine code."""


class NoFingerprintError(Exception):
    """Something has no content that could be told apart."""


def fingerprint(*values: Any) -> str:
    """A hash of values: numbers, texts, arrays, dataclasses and collections of these.

    Raises:
        NoFingerprintError: there is something else in them.
    """
    known: Known = {}
    return hashlib.sha256(b"".join(_told(value, known) for value in values)).hexdigest()


@cache
def versions() -> str:
    """A hash of this package's own sources, and of what they are built on."""
    root = Path(__file__).parents[1]
    paths = [path for room in ROOMS for path in sorted((root / room).rglob("*.py"))]
    paths.append(root / ROOMS[0])
    sources = [hashlib.sha256(path.read_bytes()).digest() for path in paths]
    return fingerprint(sources, [module.__version__ for module in (ca, llvmlite, np)])


def _told(value: Any, known: Known) -> bytes:
    """A value with its type and length, so that no two make the same bytes.

    Args:
        value: what to tell.
        known: the dataclasses told before: a tree has its bodies, and these their joints, in
            several places.
    """
    kind = type(value)
    if kind in SCALARS:
        text = repr(value)
        return f"{kind.__name__} {len(text)} {text}".encode()
    if kind is tuple or kind is list:
        told = b"".join([_told(item, known) for item in value])
        return f"{kind.__name__} {len(value)} ".encode() + told
    if is_dataclass(value) and not isinstance(value, type):
        found = known.get(id(value))
        if found is None:
            names = _field_names(value.__class__)
            told = b"".join([_told(getattr(value, name), known) for name in names])
            head = f"{kind.__name__} {len(names)} ".encode()
            found = known[id(value)] = value, b"data " + hashlib.sha256(head + told).digest()
        return found[1]
    return _told_others(value, known)


def _told_others(value: Any, known: Known) -> bytes:
    kind = type(value).__name__
    if isinstance(value, complex | float | int | str | bytes):
        text = repr(value)
        return f"{kind} {len(text)} {text}".encode()
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"array {value.dtype} {value.shape} ".encode() + value.tobytes()
    if isinstance(value, np.generic):
        return _told(value.item(), known)
    if isinstance(value, ca.Function | ca.DM | ca.SX):
        return _told(value.serialize(), known)
    if isinstance(value, Mapping):
        told = b"".join(_told(key, known) + _told(value[key], known) for key in value)
        return f"mapping {len(value)} ".encode() + told
    if isinstance(value, set | frozenset):
        return b"set " + _told(sorted(fingerprint(item) for item in value), known)
    if isinstance(value, Collection):
        told = b"".join(_told(item, known) for item in value)
        return f"{kind} {len(value)} ".encode() + told
    raise NoFingerprintError(f"{kind} has no fingerprint")


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
