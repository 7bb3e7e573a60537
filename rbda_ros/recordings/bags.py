"""Bags in and out, by the library rosbags: MCAP and SQLite in, MCAP out; whole or not there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rbda_ros.errors import InputError

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
