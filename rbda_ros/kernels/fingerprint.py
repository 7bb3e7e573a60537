"""Fingerprints of what programs are made from: equal only where the programs would be."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

ROOMS = ("spatial.py", "description", "cluster_tree", "algorithms", "kernels")
"""What of this package decides about programs and their machine code."""


class NoFingerprintError(Exception):
    """Something has no content that could be told apart."""


def fingerprint(*values: Any) -> str:
    """A hash of values: numbers, texts, arrays, dataclasses and collections of these.

    Raises:
        NoFingerprintError: there is something else in them.
    """
    digest = hashlib.sha256()
    for value in values:
        _add(digest, value)
    return digest.hexdigest()


@cache
def versions() -> str:
    """A hash of this package's own sources, and of what they are built on."""
    root = Path(__file__).parents[1]
    paths = [path for room in ROOMS for path in sorted((root / room).rglob("*.py"))]
    paths.append(root / ROOMS[0])
    sources = [hashlib.sha256(path.read_bytes()).digest() for path in paths]
    return fingerprint(sources, [version(name) for name in ("casadi", "llvmlite", "numpy")])


def _add(digest: Any, value: Any) -> None:
    """Add a value with its type and length, so that no two make the same bytes."""
    kind = type(value).__name__
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | range):
        text = repr(value).encode()
        digest.update(f"{kind} {len(text)} ".encode() + text)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"array {value.dtype} {value.shape} ".encode() + value.tobytes())
    elif isinstance(value, np.generic):
        _add(digest, value.item())
    elif isinstance(value, ca.Function | ca.DM | ca.SX):
        _add(digest, value.serialize())
    elif is_dataclass(value) and not isinstance(value, type):
        digest.update(f"{kind} {len(fields(value))} ".encode())
        for field in fields(value):
            _add(digest, getattr(value, field.name))
    elif isinstance(value, Mapping):
        digest.update(f"mapping {len(value)} ".encode())
        for key, item in value.items():
            _add(digest, key)
            _add(digest, item)
    elif isinstance(value, set | frozenset):
        digest.update(b"set ")
        _add(digest, sorted(fingerprint(item) for item in value))
    elif isinstance(value, Collection):
        digest.update(f"{kind} {len(value)} ".encode())
        for item in value:
            _add(digest, item)
    else:
        raise NoFingerprintError(f"{kind} has no fingerprint")
