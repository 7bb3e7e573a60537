"""Forward dynamics of two chains with one loop, by either method: Chignoli 2024, Fig. 10."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from benchmark.cassie import cassie
from benchmark.parallel_chains import parallel_chains
from rbda_ros import load_robot
from rbda_ros.kernels.methods import LARGEST_CLUSTER

DEPTHS = (5, 10, 20, 40)
LOOPS = (1, 2, 3, 5, 10, 20, 40)
NO_LOOPS: Mapping[str, object] = MappingProxyType({})


def rows() -> Iterator[dict[str, object]]:
    """Instruction counts; embedding is left out where clusters are too large to try."""
    for kind in ("transmission", "rod"):
        for depth in DEPTHS:
            for loop in (loop for loop in LOOPS if loop <= depth):
                urdf = parallel_chains(depth, loop, kind)  # type: ignore[arg-type]
                small = 2 * loop + 1 <= LARGEST_CLUSTER
                yield {
                    "loop": kind,
                    "depth": depth,
                    "body": loop,
                    "embed": _instructions(urdf, "embed") if small else None,
                    "proximal": _instructions(urdf, "proximal"),
                    "auto": _instructions(urdf, "auto"),
                }


def cassie_counts() -> dict[str, int]:
    """Instructions of cassie's forward dynamics by each method."""
    urdf, loops = cassie()
    return {
        method: _instructions(urdf, method, loops, True) for method in ("embed", "proximal", "auto")
    }


def _instructions(
    urdf: str, method: str, loops: Mapping[str, object] = NO_LOOPS, floating_base: bool = False
) -> int:
    robot = load_robot(urdf, {**loops, "method": method}, floating_base=floating_base)
    return robot.kernel("forward_dynamics").instructions


def plot(rows: list[dict[str, object]], path: Path) -> None:
    """One panel a kind of loop, one colour a depth."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    styles = {"embed": "--", "proximal": ":", "auto": "-"}
    names = {"embed": "embedded", "proximal": "by its forces", "auto": "auto"}
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for panel, kind in zip(panels, ("transmission", "rod"), strict=True):
        for colour, depth in enumerate(DEPTHS):
            of = [row for row in rows if row["loop"] == kind and row["depth"] == depth]
            for method, style in styles.items():
                points = [(row["body"], row[method]) for row in of if row[method] is not None]
                label = f"{depth} bodies" if method == "auto" else None
                width = 2.0 if method == "auto" else 1.2
                panel.plot(
                    *zip(*points, strict=True), style, color=f"C{colour}", label=label, lw=width
                )
        title = {"transmission": "transmission", "rod": "connecting rod"}[kind]
        panel.set(xscale="log", yscale="log", title=title, xlabel="body of each chain at the loop")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("instructions of forward dynamics")
    for method, style in styles.items():
        panels[1].plot([], [], style, color="0.3", label=names[method])
    panels[0].legend(*panels[0].get_legend_handles_labels(), fontsize=8, title="each chain")
    handles, labels = panels[1].get_legend_handles_labels()
    panels[1].legend(handles[-3:], labels[-3:], fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
