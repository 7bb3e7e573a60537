"""Assemblies and kernels on disk, so that a robot that was used once starts at once.

In the user's cache folder, ``$XDG_CACHE_HOME/rbda_ros`` or ``~/.cache/rbda_ros``. The variable
``RBDA_ROS_CACHE`` names another folder; 0 turns the cache off. Files are named by the fingerprint
of everything that went into them.

Stored machine code is executed, so every file is authenticated before it is used. It begins with
the HMAC of its name and content, keyed by a secret of this folder (the file ``secret``, mode 0600).
A file that is damaged, planted, or moved to another name does not match and is made anew, and so is
one that is owned by another user or writable by others. A folder that others may write to is not
used. Where nothing can be written, nothing is.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import json
import logging
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

MAX_BYTES = 256 * 1024 * 1024
"""Bytes that all files may take; those used least recently go first."""
ENDING = ".kernel"
SECRET = "secret"
"""The file with the key of the HMAC."""
SECRET_BYTES = 32
HMAC_BYTES = 32
OTHERS = stat.S_IRWXG | stat.S_IRWXO
WRITTEN_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

_log = logging.getLogger(__name__)


Stored = tuple[dict[str, Any], list[bytes]]


def load_or_make(key: str, make: Callable[[], Stored]) -> Stored:
    """Entry stored under a key: facts in JSON, and blobs; made if it is not there."""
    found = load(key)
    if found is None:
        found = make()
        store(key, *found)
    return found


def load(key: str) -> Stored | None:
    """Entry stored under a key; None where there is none, or none that can be trusted."""
    place = _place()
    if place is None:
        return None
    path = place.path(key)
    try:
        content = _content(path, WRITTEN_BY_OTHERS)
    except OSError:
        return None
    if content is None or not hmac.compare_digest(
        content[:HMAC_BYTES], place.mac(key, content[HMAC_BYTES:])
    ):
        _log.warning("%s is damaged, or not ours: it is made anew", path)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # it was used
    head, blobs = content[HMAC_BYTES:].split(b"\n", 1)
    facts = json.loads(head)
    found, start = [], 0
    for size in facts.pop("sizes"):
        found.append(blobs[start : start + size])
        start += size
    return facts, found


def store(key: str, facts: dict[str, Any], blobs: Sequence[bytes]) -> None:
    """Store facts and blobs under a key, in place of what is there: whole, or not at all."""
    place = _place()
    if place is None:
        return
    head = json.dumps(facts | {"sizes": [len(blob) for blob in blobs]}).encode()
    body = head + b"\n" + b"".join(blobs)
    path = place.path(key)
    try:
        handle, name = tempfile.mkstemp(dir=place.folder, suffix=".new")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(place.mac(key, body) + body)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
        _bound(place.folder, len(body) + HMAC_BYTES)
    except OSError as error:
        _log.debug("%s is not written: %s", path, error)


def in_use() -> bool:
    """Whether there is a folder to store things in."""
    return _folder() is not None


class _Place(NamedTuple):
    """A folder that may be used, and the secret of its files."""

    folder: Path
    secret: bytes

    def path(self, key: str) -> Path:
        """The file of a key."""
        return self.folder / f"{key}{ENDING}"

    def mac(self, key: str, body: bytes) -> bytes:
        """HMAC of a file's name and content: a file is valid under its own name alone."""
        code = hmac.new(self.secret, f"{len(key)} {key} ".encode(), "sha256")
        code.update(body)
        return code.digest()


def _place() -> _Place | None:
    """The folder and its secret; None where there is none to use."""
    folder = _folder()
    if folder is None:
        return None
    try:
        secret = _secret(folder)
    except OSError as error:
        _log.debug("%s is not used: %s", folder, error)
        return None
    return None if secret is None else _Place(folder, secret)


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
    if not _is_ours(status, WRITTEN_BY_OTHERS):
        _log.warning("%s is not used: others may write to it", folder)
        return None
    return folder


def _secret(folder: Path) -> bytes | None:
    """The secret of a folder, made where there is none.

    A secret that others could have read or written is replaced: all files are made anew then.
    """
    path = folder / SECRET
    with contextlib.suppress(FileNotFoundError):
        found = _secret_in(path)
        if found is not None:
            return found
        why = "was readable by others, or not ours"
        _log.warning("%s %s: it is replaced, and all stored files are made anew", path, why)
        path.unlink()
    handle, name = tempfile.mkstemp(dir=folder, suffix=".new")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
        with contextlib.suppress(FileExistsError):  # another process was first: its secret counts
            os.link(name, path)
    finally:
        os.unlink(name)
    found = _secret_in(path)
    if found is None:  # a file system without owners or modes
        _log.warning("%s is not used: its files cannot be kept from others", folder)
    return found


def _secret_in(path: Path) -> bytes | None:
    """The secret in a file; None where others could have read or written it."""
    content = _content(path, OTHERS)
    return content if content is not None and len(content) == SECRET_BYTES else None


def _content(path: Path, forbidden: int) -> bytes | None:
    """Content of a regular file of this user; None if it is none or has a forbidden mode bit.

    Owner and mode are those of the file that is read: a symbolic link is not followed.

    Raises:
        OSError: it cannot be read.
    """
    try:
        flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # nor wait for a pipe
        handle = os.open(path, os.O_RDONLY | flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR):
            return None
        raise
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        regular = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES
        if not regular or not _is_ours(status, forbidden):
            return None
        return file.read()


def _is_ours(status: os.stat_result, forbidden: int) -> bool:
    """Whether something is owned by this user and has none of these mode bits."""
    own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return own and not status.st_mode & forbidden


_unscanned: dict[Path, int] = {}
"""Bytes that this process may still write to a folder before it looks at all of its files."""


def _bound(folder: Path, written: int) -> None:
    """Remove files that were used least recently, and what an interrupted process left.

    Looking at every file of a full folder takes longer than writing one. Another look follows when
    this process has written a quarter of the space that the last one found: other processes write
    too.
    """
    _unscanned[folder] = _unscanned.get(folder, 0) - written
    if _unscanned[folder] >= 0:
        return
    files = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in files)
    if total > MAX_BYTES * 31 // 32:
        for _, size, path in sorted(files):
            if total <= MAX_BYTES * 7 // 8:
                break
            if path.suffix in (ENDING, ".new"):
                with contextlib.suppress(OSError):
                    path.unlink()
                    total -= size
    _unscanned[folder] = max(MAX_BYTES - total, 0) // 4
