"""The picture of the methods: how many times faster than Pinocchio, in three situations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

WAYS = {"hot": "one after the other", "between": "other work in between", "cold": "cold caches"}


def plot(rows: Sequence[dict[str, object]], path: Path) -> None:
    """A panel for each situation, a line for each method, a dot for each robot."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "rbda_ros"
    from matplotlib import pyplot

    beside = [row for row in rows if row["robot"] != "demo_leg"]
    methods = list(dict.fromkeys(str(row["method"]) for row in beside))
    robots = list(dict.fromkeys(str(row["robot"]) for row in beside))
    figure, panels = pyplot.subplots(1, 3, figsize=(11, 3.8), sharey=True, layout="constrained")
    for panel, (way, title) in zip(panels, WAYS.items(), strict=True):
        for k, robot in enumerate(robots):
            of = {row["method"]: float(str(row[f"{way}_ratio"])) for row in beside
                  if row["robot"] == robot}  # fmt: skip
            at = [i + 0.12 * (k - (len(robots) - 1) / 2) for i in range(len(methods))]
            ratios = [of[method] for method in methods]
            panel.plot(ratios, at, "o", ms=4, color=f"C{k}", label=robot.removesuffix("_robot"))
        panel.axvline(1.0, color="black", linewidth=0.8)
        panel.set(title=title, xscale="log", xlabel="times faster than Pinocchio", xlim=(0.8, 32.0))
        panel.set_xticks([1, 2, 3, 5, 10, 20], ["1", "2", "3", "5", "10", "20"])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_yticks(range(len(methods)), methods)
    panels[0].invert_yaxis()
    panels[2].legend(fontsize=8, loc="lower right")  # where no dots are
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
