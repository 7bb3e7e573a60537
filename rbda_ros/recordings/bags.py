"""Bags in and out, by the library rosbags, and where they are: MCAP and SQLite in, MCAP out.

They are files, folders, globs, or in object stores through fsspec. What is written is whole or not
there.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rbda_ros.errors import InputError, listed

if TYPE_CHECKING:
    from rosbags.interfaces import Connection
    from rosbags.rosbag2 import Reader, Writer

JOINT_STATE = "sensor_msgs/msg/JointState"
NO_HASH = "RIHS01_" + 64 * "0"
"""In the place of the hash of a type that nobody has defined."""


def require(module: str, extra: str) -> None:
    """Say how to install what an optional part needs.

    Raises:
        InputError: the module is not there.
    """
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise InputError(
            f"the module {module} is missing; pip install {module}, or all of the extra '{extra}' "
            f"from a clone: pip install '.[{extra}]'"
        )


@cache
def typestore() -> Any:
    """The message types of ROS 2."""
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_JAZZY)


@contextmanager
def open_bag(path: Path) -> Iterator[Reader]:
    """A bag: a folder with metadata.yaml, or one file, MCAP or SQLite.

    Raises:
        rosbags.rosbag2.ReaderError: it cannot be read.
    """
    require("rosbags", "recordings")
    from rosbags.rosbag2 import Reader

    with Reader(path) as reader:
        yield reader


class LabelledBag:
    """A bag being written: the topics of another one, and labels.

    Args:
        writer: of the new bag, open.
        source: the other one.
        labels: names of topics to add, by label; those of the source are left out.
    """

    def __init__(self, writer: Writer, source: Reader, labels: Mapping[str, str]) -> None:
        self._writer = writer
        added = set(labels.values())
        self.replaced: tuple[str, ...] = tuple(
            sorted({c.topic for c in source.connections if c.topic in added})
        )
        self._copies = {
            connection.id: self._copied(connection)
            for connection in source.connections
            if connection.topic not in added
        }
        self._labels = {
            label: writer.add_connection(topic, JOINT_STATE, typestore=typestore())
            for label, topic in labels.items()
        }

    def copy(self, connection: Connection, time: int, data: bytes) -> None:
        """Add a message of the other bag as it is."""
        copied = self._copies.get(connection.id)
        if copied is not None:
            self._writer.write(copied, time, data)

    def add(self, label: str, time: int, data: bytes) -> None:
        """Add a label, serialized."""
        self._writer.write(self._labels[label], time, data)

    def _copied(self, connection: Connection) -> Connection:
        ext: Any = connection.ext
        definition, digest = connection.msgdef.data, connection.digest
        known = connection.msgtype in typestore().fielddefs
        if not definition and known:  # bags before Jazzy have none
            definition, _ = typestore().generate_msgdef(connection.msgtype, ros_version=2)
        if not digest:
            digest = typestore().hash_rihs01(connection.msgtype) if known else NO_HASH
        return self._writer.add_connection(
            connection.topic,
            connection.msgtype,
            msgdef=definition,
            rihs01=digest,
            serialization_format=ext.serialization_format,
            offered_qos_profiles=ext.offered_qos_profiles,
        )


@contextmanager
def new_bag(target: Path, made_from: str) -> Iterator[tuple[Writer, Path]]:
    """Write a bag, an MCAP in a folder, that is there when all of it is; and a folder beside it.

    What is put into the folder is moved beside the bag, before the bag itself is.

    Args:
        target: the folder; one that is there is replaced.
        made_from: what `made_from` will say of it.
    """
    from rosbags.rosbag2 import StoragePlugin, Writer

    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
    try:
        beside = partial / "beside"
        beside.mkdir()
        bag = partial / target.name
        writer = Writer(bag, version=9, storage_plugin=StoragePlugin.MCAP)
        writer.set_custom_data("rbda_ros", made_from)
        with writer:
            yield writer, beside
        for file in (*bag.iterdir(), *beside.iterdir()):
            _to_disk(file)
        for file in beside.iterdir():
            os.replace(file, target.parent / file.name)
        if target.exists():
            os.rename(target, partial / "before")
        os.rename(bag, target)
        _to_disk(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def made_from(target: Path) -> str | None:
    """Sources of a bag, as given to `new_bag`; None where there is no such bag."""
    import yaml

    try:
        metadata = yaml.safe_load((target / "metadata.yaml").read_text(encoding="utf-8"))
        said = metadata["rosbag2_bagfile_information"]["custom_data"]["rbda_ros"]
    except (OSError, yaml.YAMLError, KeyError, TypeError):
        return None
    return str(said)


def remove_partial(target: Path) -> None:
    """Remove what a process that was killed left of a bag."""
    for left in target.parent.glob(f".{target.name}.partial-*"):
        shutil.rmtree(left, ignore_errors=True)


def _to_disk(path: Path) -> None:
    """Wait until a file, or what a folder lists, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
