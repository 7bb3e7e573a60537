"""Tables of docs/performance.md, written by the run that measured them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

Row = dict[str, object]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
GROUPS = {
    "inverse and forward dynamics, mass matrix, bias, gravity": (
        "inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_force", "gravity_force",
    ),
    "frame pose, Jacobian": ("frame_pose", "jacobian"),
    "derivatives of inverse and forward dynamics": (
        "inverse_dynamics_derivatives", "forward_dynamics_derivatives",
    ),
}  # fmt: skip


def write_block(name: str, lines: Sequence[str], file: Path = PAGE) -> None:
    """Put lines between the two comments of that name, of the page or another."""
    begin, end = (f"<!-- benchmark {name}: {side} -->" for side in ("begin", "end"))
    page, text = file.read_text(), "\n".join((begin, "", *lines, "", end))
    pattern = f"{re.escape(begin)}.*?{re.escape(end)}"
    assert re.search(pattern, page, re.DOTALL), f"{file.name} has no block {name!r}"
    file.write_text(re.sub(pattern, lambda _: text, page, flags=re.DOTALL))


def methods_block(rows: Sequence[Row]) -> list[str]:
    """How many times as fast as Pinocchio, from the slowest robot to the fastest."""
    beside = [row for row in rows if row["robot"] != "demo_leg"]
    lines = ["| times as fast | hot | between | cold |", "|---|---|---|---|"]
    for title, methods in GROUPS.items():
        cells = []
        for way in ("hot", "between", "cold"):
            ratios = [_number(row[f"{way}_ratio"]) for row in beside if row["method"] in methods]
            cells.append(f"{min(ratios):.1f} to {max(ratios):.1f}")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    leg = next(row for row in rows if row["method"] == "inverse_dynamics from y")
    talos = max(
        _number(row["cold_us"])
        for row in beside
        if str(row["robot"]).startswith("talos") and "derivatives" not in str(row["method"])
    )
    lines += [
        "",
        "From independent positions, with loops closed in the same call, inverse dynamics of",
        f"the demo leg takes {_number(leg['hot_us']):.2f} us. Apart from derivatives, the slowest",
        f"cold call of talos takes {talos:.0f} us.",
    ]
    return lines


def batches_block(rows: Sequence[Row]) -> list[str]:
    """Times of batches, and how many times as fast as loops over Pinocchio."""
    columns = {
        "us a state": ("us", "{:.3f}"),
        "over `kernel.batch`": ("over_kernel", "{:.2f}"),
        "times a loop over Pinocchio": ("ratio", "{:.2g}"),
        "times one that keeps its results": ("ratio_keeping", "{:.2g}"),
        "filling as much memory, us": ("filling_us", "{:.3f}"),
    }
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        numbers = [(_number(row[name]), form) for name, form in columns.values()]
        cells = ("" if x != x else form.format(x) for x, form in numbers)
        method = str(row["method"]).replace("_", " ")
        lines.append(f"| {row['robot']}, {method} | {' | '.join(cells)} |")
    return lines


def table(rows: Sequence[Row]) -> list[str]:
    """Any rows as a table, numbers with two digits behind the point."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    for row in rows:
        cells = (f"{x:.2f}" if isinstance(x, float) else _text(x) for x in row.values())
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _text(x: object) -> str:
    if x is None:
        return ""
    return f"{x:,}" if isinstance(x, int) and not isinstance(x, bool) else str(x)


def _number(x: object) -> float:
    return float(str(x))
