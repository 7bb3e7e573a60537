"""Forward dynamics of two chains with one loop, by either method: Chignoli 2024, Fig. 10."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from benchmark.cassie import cassie
from benchmark.limbs import PER_LIMB, limbs
from benchmark.parallel_chains import parallel_chains
from rbda_ros import Contact, load_robot

DEPTHS = (5, 10, 20, 40)
LOOPS = (1, 2, 3, 5, 10, 20, 40)
METHODS = {
    "embed": "every loop embedded",
    "proximal": "every loop `proximal`",
    "auto": "`auto`: plantar rods embedded, Achilles rods `proximal`",
}


def rows() -> Iterator[dict[str, object]]:
    """Instruction counts; embedding is left out where clusters are too large to try."""
    for kind in ("transmission", "rod"):
        for depth in DEPTHS:
            for loop in (loop for loop in LOOPS if loop <= depth):
                urdf = parallel_chains(depth, loop, kind)  # type: ignore[arg-type]
                trial = load_robot(urdf, {"method": "auto"}).loop_methods.trials["loop"]
                tried = [n for n in (trial.embedded, trial.by_forces) if n is not None]
                yield {
                    "loop": kind,
                    "depth": depth,
                    "body": loop,
                    "embed": trial.embedded,
                    "proximal": trial.by_forces,
                    "auto": min(tried),
                }


def cassie_counts() -> dict[str, int]:
    """Instructions of cassie's forward dynamics by each method."""
    urdf, loops = cassie()
    return {
        method: load_robot(urdf, {**loops, "method": method}, floating_base=True)
        .kernel("forward_dynamics")
        .instructions
        for method in METHODS
    }


def cassie_table(counts: dict[str, int]) -> list[str]:
    """The counts of `cassie_counts` as a table."""
    lines = ["| Cassie, instructions of forward dynamics | |", "|---|---:|"]
    return lines + [f"| {METHODS[method]} | {count:,} |" for method, count in counts.items()]


def limb_table() -> list[str]:
    """Instructions that each further limb with a loop takes, without contacts and with one each."""
    sizes = 1, 2, 4, 8
    counts: dict[str, list[int]] = {"forward dynamics": [], "and a contact at each limb": []}
    for count in sizes:
        urdf, loops = limbs(PER_LIMB * count)
        robot = load_robot(urdf, loops | {"method": "proximal"}, floating_base=True)
        feet = [Contact(f"rocker_{i}_link") for i in range(count)]
        kernels = robot.kernel("forward_dynamics"), robot.contact_kernel(feet)
        for found, kernel in zip(counts.values(), kernels, strict=True):
            found.append(kernel.instructions)
    steps = ["limb 2", "limbs 3 to 4", "limbs 5 to 8"]
    lines = [
        "| instructions of each limb, every loop `proximal` | limb 1 | " + " | ".join(steps) + " |"
    ]
    lines.append("|---|" + "---:|" * len(sizes))
    for name, found in counts.items():
        each = [(b - a) / (high - low) for (a, b), (low, high) in
                zip(pairwise(found), pairwise(sizes), strict=True)]  # fmt: skip
        cells = " | ".join(f"{value:,.0f}" for value in (found[0], *each))
        lines.append(f"| {name} | {cells} |")
    return lines


def largest_loop(rows: list[dict[str, object]]) -> list[str]:
    """A sentence about the rod between the twentieth bodies of chains of forty."""
    chosen = next(r for r in rows if (r["loop"], r["depth"], r["body"]) == ("rod", 40, 20))
    return [
        "A rod between the twentieth bodies of chains of forty, a loop of 41 bodies, takes",
        f"{chosen['auto']:,} instructions.",
    ]


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
