"""SVG pictures that are the same bytes for the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PALETTE = ("#3b7dd8", "#d8703b", "#3ba55d", "#8a5bc7", "#b03a48", "#6b6b6b")


def figure(rows: int = 1, columns: int = 1, size: tuple[float, float] = (8.0, 3.4), **options: Any):
    """A figure and its axes."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "rbda_ros"
    matplotlib.rcParams["font.size"] = 9
    from matplotlib import pyplot

    return pyplot.subplots(rows, columns, figsize=size, layout="constrained", **options)


def save(drawn: Any, path: Path) -> None:
    """Write a figure and release it."""
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, metadata={"Date": None})
    pyplot.close(drawn)


def bars(
    axes: Any,
    names: list[str],
    series: dict[str, list[float]],
    label: str,
    turned: float | None = None,
) -> None:
    """Groups of bars side by side; long names are turned by an angle [degrees]."""
    width = 0.8 / len(series)
    for i, (name, values) in enumerate(series.items()):
        places = [j + (i - (len(series) - 1) / 2) * width for j in range(len(names))]
        axes.bar(places, values, width, label=name, color=PALETTE[i])
    small = {} if turned is None else {"rotation": turned, "ha": "right", "fontsize": 8}
    axes.set_xticks(range(len(names)), names, **small)
    axes.set_ylabel(label)
    axes.grid(alpha=0.3, axis="y")
    axes.legend(fontsize=8)
