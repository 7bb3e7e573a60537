"""Label one recording: everything that happens between opening it and its labelled copy.

Samples can be written as a table, too: one row each, in Parquet, for learning and statistics.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from rbda_ros.control.settings import Settings
from rbda_ros.description.source import loops_without_prefix
from rbda_ros.recordings.bags import (
    JOINT_STATE,
    LabelledBag,
    made_from,
    new_bag,
    open_bag,
    remove_partial,
    require,
)
from rbda_ros.recordings.held_joints import joints_to_hold, recorded_joints, with_held
from rbda_ros.recordings.labeller import LABELS, OTHER_TOPICS, Labelled, Labeller, Sample, Smoother
from rbda_ros.robot import Robot, load_robot
from rbda_ros.robot.inputs import Array

GAP = 1_000_000_000
"""Time without a message from which a new episode begins, and jump back of it that does [ns]."""
SAMPLED = 64 * 1024
"""Bytes at each end of a file that its fingerprint has."""

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Model:
    """A robot as texts, which can be sent to another machine."""

    urdf: str
    loops: str = ""

    def load(self, settings: Settings, held: Mapping[str, float] | None = None) -> Robot:
        """The robot, with some joints held; loaded, and its kernels compiled, once a process."""
        given = tuple(sorted((held or {}).items()))
        loops = loops_without_prefix(self.loops, self.urdf, settings.joint_prefix)
        model = replace(self, loops=loops)
        return _robot(model, settings.floating_base, settings.gravity, given)


@lru_cache(maxsize=8)
def _robot(
    model: Model,
    floating_base: bool,
    gravity: tuple[float, float, float],
    held: tuple[tuple[str, float], ...],
) -> Robot:
    if held:
        return with_held(_robot(model, floating_base, gravity, ()), dict(held))
    loops = model.loops or None
    return load_robot(model.urdf, loops, floating_base=floating_base, gravity=gravity)


@dataclass(frozen=True)
class Options:
    """How recordings are labelled.

    Attributes:
        node: name of the node, in its namespace, e.g. ``/dynamics`` or ``/left/dynamics``.
        joint_states: name of the topic.
        rate: at most so many labels a second, by the stamps [Hz]; 0 for one a message.
        cutoff: of a low-pass without delay, of all efforts [Hz]; 0 for none.
        parquet: whether there is a table of samples beside the bag.
        hold: names of joints that are not recorded, and where they are held [rad, m].
    """

    node: str = "/dynamics"
    joint_states: str = "/joint_states"
    rate: float = 0.0
    cutoff: float = 0.0
    parquet: bool = False
    hold: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Job:
    """One recording to label, on local disks."""

    source: Path
    target: Path
    model: Model
    settings: Settings
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class FileReport:
    """Outcome for one recording.

    Attributes:
        source, target: the recording and its labelled copy.
        status: "labelled", "there already", "no labels" where no joint state was answered, or
            "failed".
        messages: joint states in it.
        answered: those with labels.
        refused: those without, by reason; and messages of other topics.
        episodes: parts without gaps.
        note: why it failed, or what was said of the last one refused.
        held: position of each joint that is not recorded [rad, m].
    """

    source: str
    target: str
    status: str
    messages: int = 0
    answered: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    episodes: int = 0
    note: str = ""
    held: dict[str, float] = field(default_factory=dict)


class _NothingAnsweredError(Exception):
    """No joint state of a recording has labels: its output would be a mere copy."""


def label_file(job: Job, progress: Progress = lambda share: None) -> FileReport:
    """Label one recording, unless it was already, by the same model, settings and version.

    Raises:
        Exception: whatever is wrong with the files; nothing is left of the target then.
    """
    fingerprint = fingerprint_of(job)
    where = str(job.source), str(job.target)
    remove_partial(job.target)
    if made_from(job.target) == fingerprint:
        return FileReport(*where, "there already")
    robot, topic = job.model.load(job.settings), job.options.joint_states
    recorded = recorded_joints(job.source, topic, job.settings.joint_prefix)
    held = joints_to_hold(robot, recorded, dict(job.options.hold))
    labeller = Labeller(job.model.load(job.settings, held), job.settings)
    status = "labelled"
    with suppress(_NothingAnsweredError), ExitStack() as stack:
        reader = stack.enter_context(open_bag(job.source))
        topics = {c.topic: c.msgtype for c in reader.connections}
        _check_topic(topics, job.options.joint_states)
        writer, beside = stack.enter_context(new_bag(job.target, fingerprint))
        names = {label: f"{job.options.node}/{label}" for label in LABELS}
        bag = LabelledBag(writer, reader, names)
        table: SampleTable | None = None
        if job.options.parquet:
            path = beside / f"{job.target.name}.parquet"
            table = stack.enter_context(SampleTable(path, labeller))
        counts = _Run(labeller, bag, table, job.options).over(reader, progress)
        if not counts[1]:
            status = "no labels"
            raise _NothingAnsweredError
    refused = dict(sorted(labeller.refused.items()))
    note = labeller.last_refusal if refused else ""
    if bag.replaced:
        note = f"replaced: {', '.join(bag.replaced)}" + (f"; {note}" if note else "")
    return FileReport(*where, status, *counts[:2], refused, counts[2], note, held)


def fingerprint_of(job: Job) -> str:
    """Inputs that determine the labelled file, without time or place of its making."""
    files = [job.source]
    if job.source.is_dir():
        files = sorted(path for path in job.source.iterdir() if path.is_file())
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            digest.update(f"{file.name} {size}\0".encode() if len(files) > 1 else b"%d\0" % size)
            digest.update(stream.read(SAMPLED))
            stream.seek(max(0, size - SAMPLED))
            digest.update(stream.read(SAMPLED))
    given = [asdict(job.model), asdict(job.settings), asdict(job.options), version("rbda_ros")]
    digest.update(json.dumps(given, sort_keys=True).encode())
    return digest.hexdigest()


def _check_topic(topics: dict[str, str], name: str) -> None:
    if topics.get(name) == JOINT_STATE:
        return
    known = ", ".join(sorted(t for t, kind in topics.items() if kind == JOINT_STATE))
    raise ValueError(
        f"the bag has no topic {name} of type {JOINT_STATE}; "
        + (f"it has {known}: name one with --joint-states" if known else "it has none at all")
    )


class _Run:
    """The messages of one bag, one after the other."""

    def __init__(
        self, labeller: Labeller, bag: LabelledBag, table: SampleTable | None, options: Options
    ) -> None:
        self._labeller, self._bag, self._table = labeller, bag, table
        self._options = options
        self._others = {topic.replace("~", options.node): topic for topic in OTHER_TOPICS}
        self._spacing = round(1e9 / options.rate) if options.rate else 0
        self._last = -GAP  # stamp of the last sample
        self._slot: int | None = None
        self._smoother = Smoother(options.cutoff) if options.cutoff else None
        self._messages = self._answered = self._episodes = 0

    def over(self, reader: Any, progress: Progress) -> tuple[int, int, int]:
        """Copy and label; how many joint states, answers and episodes there were."""
        count = max(1, reader.message_count)
        for k, (connection, time, data) in enumerate(reader.messages()):
            self._bag.copy(connection, time, data)
            if connection.topic == self._options.joint_states:
                self._messages += 1
                self._label(time, data)
            elif connection.topic in self._others:
                other = self._others[connection.topic]
                self._labeller.other(other, connection.msgtype, data, time)
            if not k % 5000:
                progress(k / count)
        self._end_episode()
        progress(1.0)
        return self._messages, self._answered, self._episodes

    def _label(self, time: int, data: bytes) -> None:
        labels, sample = self._labeller.joint_states(data, time)
        if sample is None:
            return
        since = sample.stamp - self._last
        if not self._episodes or since > GAP or since < -GAP:
            self._end_episode()
            self._episodes += 1
        self._last = sample.stamp
        labelled = Labelled(time, data, labels, sample)
        for ready in self._smoother.add(labelled) if self._smoother else (labelled,):
            self._write(ready)

    def _end_episode(self) -> None:
        for ready in self._smoother.end() if self._smoother else ():
            self._write(ready)
        self._slot = None

    def _write(self, labelled: Labelled) -> None:
        time, sample, labels = labelled.time, labelled.sample, labelled.labels
        if self._spacing:
            slot = sample.stamp // self._spacing
            if slot == self._slot:
                return
            self._slot = slot
        if self._smoother is not None:
            labels = [(label, message) for label, message in labels if label == "joint_states"]
            labels += self._labeller.effort_labels(sample, labelled.data)
        self._answered += 1
        for label, message in labels:
            self._bag.add(label, time, message)
        if self._table is not None:
            self._table.add(time, self._episodes - 1, sample)


ROWS = 20_000
"""Rows that are kept until they are written."""
BASE = ("x", "y", "z", "qx", "qy", "qz", "qw", "vx", "vy", "vz", "wx", "wy", "wz")


class SampleTable:
    """Writes samples to a Parquet file; a context manager.

    Columns: ``log_time`` and ``stamp`` [ns]; ``episode``, which counts up at every gap; and by
    joint ``position.NAME``, ``velocity.NAME`` (every joint), ``effort.NAME``,
    ``feedforward.NAME``, ``residual.NAME`` (the actuated) and ``external_effort.NAME`` (the
    independent). A floating base has ``base.x`` to ``base.qw``, its pose, and ``base.vx`` to
    ``base.wz``, its twist in its frame. What is not known is null.

    Args:
        path: the file.
        labeller: whose samples these are.
    """

    def __init__(self, path: Path, labeller: Labeller) -> None:
        require("pyarrow", "recordings")
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._pa = pa
        joints, actuated = labeller.joints, labeller.actuated
        groups = {
            "position": joints,
            "velocity": joints,
            "effort": actuated,
            "feedforward": actuated,
            "residual": actuated,
            "external_effort": labeller.independent,
            "base": BASE if labeller.floating_base else (),
        }
        self._columns = [f"{what}.{name}" for what, names in groups.items() for name in names]
        self._sizes = [len(names) for names in groups.values()]
        fields = [("log_time", pa.int64()), ("stamp", pa.int64()), ("episode", pa.int32())]
        fields += [(column, pa.float64()) for column in self._columns]
        self._schema = pa.schema(fields)
        self._writer: Any = pq.ParquetWriter(path, self._schema)
        self._times: list[tuple[int, int, int]] = []
        self._numbers = np.empty((ROWS, len(self._columns)))

    def add(self, time: int, episode: int, sample: Sample) -> None:
        """Add a row.

        Args:
            time: when it was recorded [ns].
            episode: to which it belongs.
            sample: the numbers.
        """
        residual = sample.residual
        parts: list[Array | float] = [
            sample.position,
            sample.velocity,
            np.nan if sample.measured is None else sample.measured,
            sample.feedforward,
            np.nan if residual is None else residual,
            np.nan if sample.external is None else sample.external,
            sample.base,
        ]
        row, start = self._numbers[len(self._times)], 0
        for part, size in zip(parts, self._sizes, strict=True):
            row[start : start + size] = part
            start += size
        self._times.append((time, sample.stamp, episode))
        if len(self._times) == ROWS:
            self._flush()

    def __enter__(self) -> SampleTable:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if not self._times:
            return
        pa, count = self._pa, len(self._times)
        times = np.array(self._times)
        arrays = [pa.array(times[:, 0]), pa.array(times[:, 1]), pa.array(times[:, 2], pa.int32())]
        for column in self._numbers[:count].T:
            arrays.append(pa.array(np.ascontiguousarray(column), from_pandas=True))  # NaN is null
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._times.clear()
