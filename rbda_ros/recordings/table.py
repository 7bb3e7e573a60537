"""Samples as a table: one row each, in Parquet, for learning and statistics."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from rbda_ros.recordings.bags import require
from rbda_ros.recordings.labeller import Labeller, Sample
from rbda_ros.robot.inputs import Array

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
