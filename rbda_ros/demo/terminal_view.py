"""Output of the demo: a live table on a terminal, a line a second elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

WINDOW = 1000  # efforts that rate and latency are taken over
LINE = 1.0  # [s] between two lines where there is no terminal


class Pace:
    """How often the efforts come, and how long after the joint states they answer."""

    def __init__(self) -> None:
        self.count = 0
        self._arrivals: deque[float] = deque(maxlen=WINDOW)  # [s]
        self._latencies: deque[float] = deque(maxlen=WINDOW)  # [s]

    def add(self, arrival: float, latency: float) -> None:
        """One effort."""
        self.count += 1
        self._arrivals.append(arrival)
        self._latencies.append(latency)

    def __str__(self) -> str:
        elapsed = self._arrivals[-1] - self._arrivals[0]
        rate = (len(self._arrivals) - 1) / elapsed if elapsed else 0.0
        median, p99 = np.percentile(np.array(self._latencies) * 1e3, [50, 99])
        return (
            f"{rate:.0f} Hz, latency {median:.2f} ms, 99th percentile {p99:.2f} ms "
            f"({self.count} efforts)"
        )


class View:
    """Shows the state of the robot, the efforts, how fast they come, and a service's answer."""

    def __init__(self, robot: str, domain: str) -> None:
        self._title = f"{robot} · ROS_DOMAIN_ID {domain} · Ctrl-C ends it"
        self._hint = (
            "In the browser, from a second terminal:\n"
            f"  ROS_DOMAIN_ID={domain} .venv/bin/rbda_ros view --node /dynamics"
        )
        self._console = Console()
        self._live = Live(
            Text(f"{self._title}\nstarting the node ..."),
            console=self._console,
            auto_refresh=False,
        )
        self._answer = ""
        self._next_line = 0.0

    def __enter__(self) -> View:
        if self._console.is_terminal:
            self._live.start(refresh=True)
        else:
            self._print(f"{self._title}: starting the node ...")
        return self

    def __exit__(self, *error: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def answer(self, response: Any, seconds: float) -> None:
        """Take the answer of ~/inverse_dynamics, and how long it took."""
        if response.success:
            efforts = zip(response.joint_names, response.effort, strict=True)
            listed = ", ".join(f"{name} {effort:.3f} N m" for name, effort in efforts)
            self._answer = (
                f"~/inverse_dynamics, to hold it still: {listed} ({seconds * 1e3:.1f} ms)"
            )
        else:
            self._answer = f"~/inverse_dynamics refused: {response.message}"
        if not self._console.is_terminal:
            self._print(self._answer)

    def frame(
        self,
        state: Any,
        effort: Any,
        without_loops: Mapping[str, float],
        pace: Pace,
        *,
        last: bool = False,
    ) -> None:
        """Draw the present: joint states, efforts, and those of the open chain by motor."""
        if self._console.is_terminal:
            self._live.update(
                Group(
                    Text(self._title),
                    _tables(state, effort, without_loops),
                    Text(str(pace)),
                    Text(self._answer),
                    Text(self._hint),
                ),
                refresh=True,
            )
        elif time.monotonic() >= self._next_line or last:
            self._next_line = time.monotonic() + LINE
            efforts = zip(effort.name, effort.effort, strict=True)
            listed = ", ".join(
                f"{name} {value:+.2f} N m ({without_loops[name]:+.2f} without loops)"
                for name, value in efforts
            )
            self._print(f"{pace}: {listed}")

    def _print(self, line: str) -> None:
        print(line, flush=True)


def _tables(state: Any, effort: Any, without_loops: Mapping[str, float]) -> Columns:
    """Inputs of the node beside its outputs; below them where the terminal is narrow."""
    moving = zip(state.name, state.position, state.velocity, strict=True)
    driving = (
        (name, value, without_loops[name])
        for name, value in zip(effort.name, effort.effort, strict=True)
    )
    return Columns(
        [
            _table("joint_states", ("joint", "position [rad]", "velocity [rad/s]"), moving),
            _table("dynamics/feedforward", ("joint", "effort [N m]", "without loops"), driving),
        ],
        padding=(0, 2),
    )


def _table(title: str, headings: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(headings[0], no_wrap=True)
    for heading in headings[1:]:
        # Text: rich would take [rad] for markup.
        table.add_column(Text(heading), justify="right", min_width=len(heading))
    for name, *values in rows:
        table.add_row(name, *(f"{value:+.3f}" for value in values))
    return table
