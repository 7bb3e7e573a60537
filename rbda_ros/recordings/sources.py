"""Where recordings are: files, folders, globs, and object stores through fsspec."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from rbda_ros.errors import InputError, listed
from rbda_ros.recordings.bags import require

SUFFIXES = (".mcap", ".db3")
"""Of files that are bags by themselves."""
METADATA = "metadata.yaml"
"""In every folder that is a bag."""


@dataclass(frozen=True)
class Recording:
    """A bag, and the name of its labelled copy under the folder of outputs."""

    source: str
    name: str


def is_url(place: str) -> bool:
    """Whether fsspec opens it, and not the machine itself."""
    return "://" in place


def find_recordings(places: Sequence[str]) -> list[Recording]:
    """The bags that places name, in order: bags, folders of bags, globs.

    Raises:
        InputError: there is none at a place, or two would have the same name.
    """
    found: dict[str, Recording] = {}
    for place in places:
        new = list(_find_remote(place) if is_url(place) else _find_local(place))
        if not new:
            raise InputError(f"{place}: no recording there; name bags, folders of bags or globs")
        found |= {recording.source: recording for recording in new}
    names: dict[str, str] = {}
    for recording in found.values():
        if recording.name in names:
            raise InputError(
                f"{recording.source} and {names[recording.name]} would both become "
                f"'{recording.name}'; label them into different folders"
            )
        names[recording.name] = recording.source
    return sorted(found.values(), key=lambda recording: recording.name)


def _find_local(place: str) -> Iterator[Recording]:
    matches = [place] if Path(place).exists() else sorted(glob.glob(place, recursive=True))
    for match in matches:
        path = Path(match)
        files = [str(f) for f in sorted(path.rglob("*")) if f.is_file()] if path.is_dir() else None
        for source in _bags_among(str(path), files):
            yield Recording(source, _name(str(path), source))


def _find_remote(place: str) -> Iterator[Recording]:
    system, path = _file_system(place)
    matches = sorted(system.glob(path)) if glob.has_magic(path) else [path]
    for match in matches:
        if not system.exists(match):
            continue
        files = sorted(system.find(match)) if system.isdir(match) else None
        for source in _bags_among(match, files):
            yield Recording(system.unstrip_protocol(source), _name(match, source))


def _bags_among(place: str, files: Iterable[str] | None) -> list[str]:
    """The bags in a folder with these files; or a file, where there are none (None)."""
    if files is None:
        return [place] if place.endswith(SUFFIXES) else []
    paths = [PurePosixPath(file) for file in files]
    # What is being written, or was left, begins with a dot.
    hidden = len(PurePosixPath(place).parts)
    paths = [p for p in paths if not any(part.startswith(".") for part in p.parts[hidden:])]
    folders = {path.parent for path in paths if path.name == METADATA}
    alone = [p for p in paths if p.name.endswith(SUFFIXES) and p.parent not in folders]
    return sorted(str(path) for path in (*folders, *alone))


def _name(place: str, source: str) -> str:
    inside = PurePosixPath(source)
    name = inside.relative_to(place) if source != place else PurePosixPath(inside.name)
    return str(name.with_suffix("") if name.name.endswith(SUFFIXES) else name)


@contextmanager
def local_copy(source: str) -> Iterator[Path]:
    """The bag on a local disk; one from an object store for a while."""
    if not is_url(source):
        yield Path(source)
        return
    system, path = _file_system(source)
    with TemporaryDirectory(prefix="rbda_ros-") as folder:
        copy = Path(folder) / PurePosixPath(path).name
        system.get(path, str(copy), recursive=system.isdir(path))
        yield copy


@contextmanager
def local_target(folder: str, name: str) -> Iterator[Path]:
    """Where to write an output; what is there at the end goes to an object store.

    Of a bag its metadata.yaml goes last: without it, it is none.
    """
    if not is_url(folder):
        yield Path(folder) / name
        return
    system, path = _file_system(folder)
    with TemporaryDirectory(prefix="rbda_ros-") as scratch:
        target = Path(scratch) / name
        remote = f"{path.rstrip('/')}/{name}"
        if system.exists(f"{remote}/{METADATA}"):
            target.mkdir(parents=True)  # enough to tell what it was made from
            system.get(f"{remote}/{METADATA}", str(target / METADATA))
        before = {file for file in Path(scratch).rglob("*") if file.is_file()}
        stamps = {file: file.stat().st_mtime_ns for file in before}
        yield target
        files = [file for file in Path(scratch).rglob("*") if file.is_file()]
        new = [f for f in files if f not in stamps or f.stat().st_mtime_ns != stamps[f]]
        for file in sorted(new, key=lambda file: (file.name == METADATA, str(file))):
            to = f"{path.rstrip('/')}/{file.relative_to(scratch).as_posix()}"
            system.makedirs(str(PurePosixPath(to).parent), exist_ok=True)
            system.put_file(str(file), to)


def write_text(place: str, text: str) -> None:
    """Write a small file, local or not; whole or not at all."""
    if is_url(place):
        system, path = _file_system(place)
        system.pipe_file(path, text.encode())
        return
    file = Path(place)
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(file)


def _file_system(url: str) -> tuple[Any, str]:
    require("fsspec", "fleet")
    from fsspec.core import url_to_fs

    try:
        return url_to_fs(url)
    except (ImportError, ValueError) as error:
        protocol = url.partition("://")[0]
        raise InputError(
            f"{listed([url])}: {error}; is {protocol} right, and its module there?"
        ) from error
