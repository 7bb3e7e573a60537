"""Assemblies and kernels on disk, so that a robot that was used once starts at once.

In the user's cache folder, ``$XDG_CACHE_HOME/rbda_ros`` or ``~/.cache/rbda_ros``. The variable
``RBDA_ROS_CACHE`` names another folder; 0 turns the cache off. Files are named by the fingerprint
of all that went into them, and begin with the hash of what they have: one that is damaged is made
anew. A folder that others may write to is not used. Where nothing can be written, nothing is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

MOST_BYTES = 256 * 1024 * 1024
"""What all files may take; those used least recently go first."""
ENDING = ".kernel"

_log = logging.getLogger(__name__)


Stored = tuple[dict[str, Any], list[bytes]]


def load_or_make(key: str, make: Callable[[], Stored]) -> Stored:
    """What is stored under a key: facts that JSON can tell, and blobs; made if it is not there."""
    found = load(key)
    if found is None:
        found = make()
        store(key, *found)
    return found


def load(key: str) -> Stored | None:
    """What is stored under a key; None where nothing is."""
    folder = _folder()
    return None if folder is None else _read(folder / f"{key}{ENDING}")


def store(key: str, facts: dict[str, Any], blobs: Sequence[bytes]) -> None:
    """Store facts and blobs under a key, in place of what is there."""
    folder = _folder()
    if folder is not None:
        _write(folder / f"{key}{ENDING}", facts, blobs)


def in_use() -> bool:
    """Whether there is a folder to store things in."""
    return _folder() is not None


def _folder() -> Path | None:
    """The folder; None where there is none to use."""
    named = os.environ.get("RBDA_ROS_CACHE")
    if named == "0":
        return None
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(named) if named else Path(base) / "rbda_ros"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError):
        return None
    ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    if not ours or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        _log.warning("%s is not used: others may write to it", folder)
        return None
    return folder


def _read(path: Path) -> Stored | None:
    try:
        content = path.read_bytes()
        with contextlib.suppress(OSError):
            os.utime(path)  # it was used
    except OSError:
        return None
    digest, body = content[:32], content[32:]
    if hashlib.sha256(body).digest() != digest:
        return None
    head, blobs = body.split(b"\n", 1)
    facts = json.loads(head)
    found, start = [], 0
    for size in facts.pop("sizes"):
        found.append(blobs[start : start + size])
        start += size
    return facts, found


def _write(path: Path, facts: dict[str, Any], blobs: Sequence[bytes]) -> None:
    """Put a file there at once, whole; or not at all."""
    head = json.dumps(facts | {"sizes": [len(blob) for blob in blobs]}).encode()
    body = head + b"\n" + b"".join(blobs)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".new")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(body).digest() + body)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
        _bound(path.parent)
    except OSError as error:
        _log.debug("%s is not written: %s", path, error)


def _bound(folder: Path) -> None:
    """Remove files that were used least recently, and what an interrupted process left."""
    files = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= MOST_BYTES:
            return
        if path.suffix in (ENDING, ".new"):
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size
