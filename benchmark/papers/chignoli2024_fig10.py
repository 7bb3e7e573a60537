"""Instructions of forward dynamics of two chains with one loop, by where the loop is."""

from __future__ import annotations

from pathlib import Path

from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.reference import ABSENT, library_counts
from benchmark.papers.results import Claim, Result, Row, judge, number
from benchmark.parallel_chains import parallel_chains
from rbda_ros import load_robot

PAPER = "Chignoli 2024"
TITLE = "Fig. 10: locality of the loop, depths 5 to 40"

DEPTHS = (5, 10, 20, 40)
KINDS = {"Explicit": "transmission", "Implicit": "rod"}
LARGEST = 21
"""Bodies of a loop up to which embedding it is counted: it costs their cube."""
CROSSING = (1, 2, 3, 4, 5, 6)
"""Bodies d_l at which both methods are counted to see where they cross."""


def run(quick: bool) -> Result:
    """Count ours by each method where the library is counted, and around the crossing."""
    published = library_counts()
    if not published:
        return Result([], [], skipped=ABSENT)
    rows: list[Row] = []
    for family, kind in KINDS.items():
        for depth in DEPTHS[:2] if quick else DEPTHS:
            for size in range(2, 2 * depth + 2):
                theirs = published.get((f"parallel_{family}", f"depth{depth}_loop{size}"))
                loop = size // 2
                if theirs is None and not (loop in CROSSING and size % 2 == (kind == "rod")):
                    continue
                rows.append(_row(kind, depth, loop, size, theirs))
    return Result(rows, _claims(rows), text=TEXT)


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
        "library": theirs["fd_indTau_ydd"] if theirs else "",
    }  # fmt: skip


def _crossing(rows: list[Row], kind: str, depth: int) -> int | None:
    """The first body at which forces are shorter than embedding."""
    for row in rows:
        of = row["loop"] == kind and row["depth"] == depth and row["ours_embed"] != ""
        if of and number(row, "ours_proximal") < number(row, "ours_embed"):
            return int(number(row, "body"))
    return None


def _claims(rows: list[Row]) -> list[Claim]:
    both = [r for r in rows if r["library"] != ""]
    ratios = [number(r, "ours_auto") / number(r, "library") for r in both]
    largest = max(both, key=lambda r: number(r, "library"))
    depths = sorted({int(number(r, "depth")) for r in rows})
    crossings = {kind: [_crossing(rows, kind, d) for d in depths] for kind in KINDS.values()}
    of = [r for r in rows if r["loop"] == "rod" and r["depth"] == depths[1]]
    small, large = (
        [number(r, "ours_embed") for r in of if r["ours_embed"] != ""][i] for i in (0, -1)
    )
    moves = any(None in found or len(set(found)) > 1 for found in crossings.values())
    first = all(
        number(r, "ours_embed") < number(r, "ours_proximal") for r in rows if r["body"] == 1
    )
    return [
        Claim(
            "embedding scales poorly with the size of the loop",
            "log scale",
            f"{large / small:.0f} times from the smallest to the largest loop embedded, d_t = "
            f"{depths[1]}",
            judge(False, large > 5 * small),
            "reproduced",
        ),
        Claim(
            "embedding is shorter for small loops, the other method for large ones",
            "crosses",
            "from body "
            + ", ".join(f"{found[0]} on ({kind})" for kind, found in crossings.items()),
            judge(False, first and all(found[0] for found in crossings.values())),
            "reproduced",
        ),
        Claim(
            "the crossing moves to larger loops as the chains get longer",
            "moves",
            "; ".join(f"{kind}: " + ", ".join(map(str, found)) for kind, found in crossings.items())
            + f" for d_t = {', '.join(map(str, depths))}",
            judge(False, moves),
            "not",
            "our other method is proxPV, which is linear in the length too: the paper's, a sparse"
            " factorization, is not",
        ),
        Claim(
            "one method for small and large loops (the paper's future work), each system",
            "1 (the library's own)",
            f"{min(ratios):.3f} to {max(ratios):.2f} of it;"
            f" {number(largest, 'ours_auto'):,.0f} against {number(largest, 'library'):,.0f}"
            f" instructions for a loop of {largest['loop_size']} bodies",
            judge(max(ratios) < 1.0),
            "better",
            "a loop file says `method: auto`, and the shorter program is taken",
        ),
    ]


TEXT = f"""Two chains of d_t bodies with a loop between their d_l-th ones (Fig. 11), a transmission
or a connecting rod. `ours_auto` is the shorter of the two methods. Loops of more than {LARGEST}
bodies are not embedded: the program would be as long as the library's."""


def plot(result: Result, path: Path) -> None:
    """A panel a kind of loop, a colour a depth."""
    drawn, panels = figure(1, 2, (9, 3.6), sharey=True)
    for panel, kind in zip(panels, KINDS.values(), strict=True):
        for colour, depth in zip(PALETTE, DEPTHS, strict=False):
            of = [r for r in result.rows if r["loop"] == kind and r["depth"] == depth]
            for key, style in (("ours_auto", "-"), ("ours_embed", "--"), ("library", "o")):
                points = [(r["body"], r[key]) for r in of if r[key] != ""]
                label = f"{depth} bodies each" if key == "ours_auto" else None
                panel.plot(
                    *zip(*points, strict=True), style, color=colour, label=label, ms=4, mfc="none"
                )
        panel.set(xscale="log", yscale="log", title=kind, xlabel="body of each chain at the loop")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("instructions of forward dynamics")
    for style, label in (("-", "ours"), ("--", "ours, embedded"), ("o", "library, embedded")):
        panels[1].plot([], [], style, color="0.3", label=label, ms=4, mfc="none")
    panels[0].legend(fontsize=7)
    panels[1].legend(*(x[-3:] for x in panels[1].get_legend_handles_labels()), fontsize=7)
    save(drawn, path)
