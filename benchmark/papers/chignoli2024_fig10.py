"""Instructions of forward dynamics of two chains with one loop, by where the loop is."""

from __future__ import annotations

from pathlib import Path

from benchmark.papers.internals import sparse_instructions
from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.reference import ABSENT, library_counts
from benchmark.papers.results import Claim, Row, Scope, judge, number
from benchmark.parallel_chains import parallel_chains
from rbda_ros import load_robot

PAPER = "Chignoli 2024"
TITLE = "Fig. 10: locality of the loop, depths 5 to 40"

DEPTHS = (5, 10, 20, 40)
KINDS = {"Explicit": "transmission", "Implicit": "rod"}
LARGEST = 23
"""Bodies of a loop up to which embedding it is counted: it costs their cube."""
CROSSING = range(1, 12)
"""Bodies d_l at which all methods are counted to see where they cross."""
SPARSE = 20
"""Bodies of a chain up to which the sparse competitor is counted: it costs their cube."""
KEYS = ("loop", "depth", "body", "loop_size")
COUNTS = ("ours_embed", "ours_proximal", "ours_auto", "sparse")
NEEDS = ABSENT


def run(scope: Scope) -> list[Row]:
    """Count each method where the library is counted, and around the crossing."""
    published = library_counts()
    rows: list[Row] = []
    for family, kind in KINDS.items() if published else ():
        for depth in DEPTHS[:1] if scope == "day" else DEPTHS:
            for size in range(2, 2 * depth + 2):
                theirs = published.get((f"parallel_{family}", f"depth{depth}_loop{size}"))
                loop = size // 2
                crossing = loop in CROSSING and depth <= SPARSE and size % 2 == (kind == "rod")
                if (crossing or theirs) and (scope != "day" or loop == 1):
                    rows.append(_row(kind, depth, loop, size, theirs))
    return rows


def _row(kind: str, depth: int, loop: int, size: int, theirs: dict[str, int] | None) -> Row:
    urdf = parallel_chains(depth, loop, kind)  # type: ignore[arg-type]

    def count(method: str) -> int:
        return load_robot(urdf, {"method": method}).kernel("forward_dynamics").instructions

    embed = count("embed") if size <= LARGEST else None
    proximal = count("proximal")
    return {
        "loop": kind, "depth": depth, "body": loop, "loop_size": size,
        "ours_embed": embed if embed is not None else "", "ours_proximal": proximal,
        "ours_auto": min(proximal, embed or proximal),
        "sparse": sparse_instructions(urdf) if depth <= SPARSE else "",
        "library": theirs["fd_indTau_ydd"] if theirs else "",
    }  # fmt: skip


def _crossing(rows: list[Row], kind: str, depth: int, method: str) -> str:
    """The first body at which a method is shorter than embedding."""
    of = [r for r in rows if (r["loop"], r["depth"]) == (kind, depth) and r["ours_embed"] != ""]
    for row in of:
        if row[method] != "" and number(row, method) < number(row, "ours_embed"):
            return f"{row['body']}"
    return f">{max(int(number(r, 'body')) for r in of)}"


def claims(rows: list[Row]) -> list[Claim]:
    """Judge the rows."""
    both = [r for r in rows if r["library"] != ""]
    ratios = [number(r, "ours_auto") / number(r, "library") for r in both]
    largest = max(both, key=lambda r: number(r, "library"))
    depths = sorted({int(number(r, "depth")) for r in rows if r["sparse"] != ""})
    crossings = {
        method: {
            kind: [_crossing(rows, kind, d, method) for d in depths] for kind in KINDS.values()
        }
        for method in ("sparse", "ours_proximal")
    }
    of = [r for r in rows if r["loop"] == "rod" and r["depth"] == depths[1]]
    sizes = [number(r, "ours_embed") for r in of if r["ours_embed"] != ""]
    moves = all(
        [float(x.removeprefix(">")) for x in found] == sorted({float(x.removeprefix(">"))
                                                               for x in found})
        for found in crossings["sparse"].values()
    )  # fmt: skip
    first = all(
        number(r, "ours_embed") < number(r, "sparse")
        for r in rows
        if r["body"] == 1 and r["sparse"] != ""
    )
    crosses = all(not found[0].startswith(">") for found in crossings["sparse"].values())

    def shown(method: str) -> str:
        return "; ".join(f"{kind} {', '.join(x)}" for kind, x in crossings[method].items())

    chains = f"d_t = {', '.join(map(str, depths))}"
    return [
        Claim(
            "embedding scales poorly with the size of the loop",
            "log scale",
            f"{sizes[-1] / sizes[0]:.0f} times, d_t = {depths[1]}",
            "instructions, largest loop embedded over smallest",
            judge(sizes[-1] > 5 * sizes[0]),
            "reproduced",
        ),
        Claim(
            "embedding is shorter for small loops, Proximal and Sparse for large ones",
            "crosses",
            shown("sparse"),
            f"first body at which Proximal and Sparse takes fewer, {chains}",
            judge(first and crosses),
            "reproduced",
        ),
        Claim(
            "the crossing moves to larger loops as the chains get longer",
            "moves",
            shown("sparse"),
            f"first body at which Proximal and Sparse takes fewer, {chains}",
            judge(moves),
            "reproduced",
            "with constrainedABA in its place, which is linear in the length, it does not move: "
            + shown("ours_proximal"),
        ),
        Claim(
            "Brandl's method (Remark 1) is favorable for large loops, embedding for small ones",
            "expected",
            shown("ours_proximal"),
            f"first body at which constrainedABA, which eliminates as Brandl does, takes fewer,"
            f" {chains}",
            judge(
                all(
                    not x.startswith(">") and int(x) > 1
                    for found in crossings["ours_proximal"].values()
                    for x in found
                )
            ),
            "reproduced",
        ),
        Claim(
            "one method for small and large loops (the paper's future work), each system",
            "1 (the library itself)",
            f"{min(ratios):.3f} to {max(ratios):.2f};"
            f" {number(largest, 'ours_auto'):,.0f} against {number(largest, 'library'):,.0f}"
            f" for a loop of {largest['loop_size']} bodies",
            "instructions over the library's, same inputs and outputs",
            judge(False, max(ratios) < 1.0),
            "better",
            "a loop file says `method: auto`, and the shorter program is taken",
        ),
    ]


TEXT = f"""Two chains of d_t bodies with a loop between their d_l-th ones (Fig. 11), a transmission
or a connecting rod. `ours_auto` is the shorter of embedding and constrainedABA, which eliminates
the loop's forces at the nearest common ancestor of its bodies. `sparse` is the paper's
competitor, Proximal and Sparse: our trace of its algorithm (`prox_ltl` with the loop open, two
iterations), for chains of up to {SPARSE} bodies. Loops of more than {LARGEST} bodies are not
embedded: the program would be as long as the library's."""


STYLES = {"ours_auto": "-", "ours_embed": "--", "sparse": ":", "library": "o"}


def plot(rows: list[Row], path: Path) -> None:
    """A panel a kind of loop, a colour a depth."""
    drawn, panels = figure(1, 2, (9, 3.6), sharey=True)
    for panel, kind in zip(panels, KINDS.values(), strict=True):
        for colour, depth in zip(PALETTE, DEPTHS, strict=False):
            of = [r for r in rows if r["loop"] == kind and r["depth"] == depth]
            for key, style in STYLES.items():
                points = [(r["body"], r[key]) for r in of if r[key] != ""] or [(1, float("nan"))]
                label = f"{depth} bodies each" if key == "ours_auto" else None
                panel.plot(
                    *zip(*points, strict=True), style, color=colour, label=label, ms=4, mfc="none"
                )
        panel.set(xscale="log", yscale="log", title=kind, xlabel="body of each chain at the loop")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("instructions of forward dynamics")
    labels = ("ours", "ours, embedded", "proximal and sparse", "library, embedded")
    for style, label in zip(STYLES.values(), labels, strict=True):
        panels[1].plot([], [], style, color="0.3", label=label, ms=4, mfc="none")
    panels[0].legend(fontsize=7)
    panels[1].legend(*(x[-4:] for x in panels[1].get_legend_handles_labels()), fontsize=7)
    save(drawn, path)
