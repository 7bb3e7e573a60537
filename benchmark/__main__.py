"""Print, and write to docs/, how fast the kernels and the node are beside their peers."""

from __future__ import annotations

import csv
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmark import (
    batches,
    calls,
    contacts,
    convergence,
    counts,
    derivative_counts,
    every_call,
    friction,
    gradients,
    latency,
    loop_methods,
    methods,
    methods_picture,
    optimal_control,
    overhead,
    quantities,
    real_time,
    start,
    stream,
)
from benchmark.performance_page import batches_block, methods_block, table, write_block

DOCS = Path(__file__).resolve().parents[1] / "docs"
MUJOCO = ("method", "robot", "hot_us", "hot_mujoco_us", "cold_us", "cold_mujoco_us")
Row = dict[str, object]
console = Console()


def main(sections: Sequence[str]) -> None:
    """Run the sections that are named, or all; about three minutes."""
    console.print(
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()}"
    )
    for name, run in SECTIONS.items():
        if not sections or name in sections:
            run()


def _measured(section: Callable[[], Iterable[Row]]) -> list[Row]:
    """The rows of a section, which says what it does while it runs."""
    with console.status(section.__doc__ or section.__name__):
        return list(section())


def _latency() -> None:
    rows = _measured(latency.rows)
    _show("Round trips, and CPU of the node per message; ratios to the plain node", rows)
    _write(DOCS / "latency.csv", rows)


def _stream() -> None:
    rows = []
    for row in stream.rows():  # some seven minutes
        rows.append(row)
        console.print(f"{row['work']}, {row['node']}: {row['median_us']:.0f} us")
    _show("Round trips with a client in C; ratios to the echo, and to the same without load", rows)
    _write(DOCS / "stream.csv", rows)


def _every_call() -> None:
    rows = _measured(every_call.rows)
    _show("Round trips with a client in C, beside calls and swaps", rows)
    _write(DOCS / "stream_beside_calls.csv", rows)


def _methods() -> None:
    rows = _measured(methods.rows)
    short = [{k: x for k, x in row.items() if "pin" not in k and "mujoco" not in k} for row in rows]
    _show("Methods of Robot with all their checks (us), and times faster than Pinocchio", short)
    beside = [{k: x for k, x in row.items() if k in MUJOCO} for row in rows if row[MUJOCO[-1]]]
    _show("The same beside MuJoCo's mj_inverse and mj_forward (us)", beside)
    _write(DOCS / "methods.csv", rows)
    methods_picture.plot(rows, DOCS / "pictures" / "performance.svg")
    write_block("methods", methods_block(rows))


def _start() -> None:
    rows = _measured(start.rows)
    _show("Seconds from a robot's text to answers, with kernels stored on disk and without", rows)
    _write(DOCS / "start.csv", rows)
    write_block("start", table(rows))


def _real_time() -> None:
    rows = _measured(real_time.rows)
    _show("Feedforward, call by call, in exported C and in Python (us)", rows)
    _write(DOCS / "real_time.csv", rows)
    write_block("real_time", real_time.table(rows), DOCS / "real_time.md")


def _overhead() -> None:
    rows = _measured(overhead.rows)
    _show("Methods of Robot over the kernels that they call (us)", rows)
    _write(DOCS / "overhead.csv", rows)


def _batches() -> None:
    rows = _measured(batches.rows)
    _show("Batches: a state (us), over kernel.batch, and times faster than Pinocchio", rows)
    _write(DOCS / "batches.csv", rows)
    write_block("batches", batches_block(rows))


def _kernels() -> None:
    count_rows = counts.rows()
    _show("Instructions (CasADi count); theirs: generalized_rbda", count_rows)
    chain = counts.linearity()
    slope = (chain[-1][1] - chain[-2][1]) / (chain[-1][0] - chain[-2][0])
    console.print(
        "geared chains, FD instructions: "
        + ", ".join(f"{n} links {count}" for n, count in chain)
        + f"; {slope:.0f} a link from {chain[-2][0]} to {chain[-1][0]}"
    )
    rows = []
    for section in (
        calls.trees, calls.geared_chains, calls.four_bar_chains, calls.operational_space,
        calls.mujoco_chains, contacts.contacts,
    ):  # fmt: skip
        rows += _measured(section)
    _show("Time per call from Python (us); ratio: peer over ours", rows)
    _write(DOCS / "instruction_counts.csv", count_rows)
    _write(DOCS / "performance.csv", rows)
    _plot(rows)


def _derivatives() -> None:
    rows = list(derivative_counts.rows())
    _show("Instructions of derivatives of inverse dynamics, and by differentiation", rows)
    _write(DOCS / "derivative_counts.csv", rows)
    write_block("derivatives", table(rows))


def _contacts() -> None:
    rows = list(convergence.rows())
    _show("Residual of constrainedABA, talos on eight points of two feet", rows)
    convergence.plot(rows, DOCS / "pictures" / "convergence.svg")
    rows = []
    for section in (contacts.methods, contacts.loops, friction.friction):
        rows += _measured(section)
    _show("Methods with contacts (us), and what is missed; ratio: peer over ours", rows)
    _write(DOCS / "contacts.csv", rows)
    load = (
        f"Load of the machine at the end of this run: {os.getloadavg()[0]:.1f} processes on"
        f" {os.cpu_count()} cores; with more processes than cores, only ratios count."
    )
    write_block("contacts", [*table(rows), "", load], DOCS / "contacts.md")


def _loops() -> None:
    page, method_rows = DOCS / "contacts.md", []
    for row in loop_methods.rows():  # shown one by one: some take a quarter of a minute
        console.print("two chains and a loop:", ", ".join(f"{k} {x}" for k, x in row.items()))
        method_rows.append(row)
    cassie = loop_methods.cassie_table(loop_methods.cassie_counts())
    console.print("\n".join(cassie))
    _write(DOCS / "loop_methods.csv", method_rows)
    loop_methods.plot(method_rows, DOCS / "pictures" / "loop_methods.svg")
    write_block("cassie_loops", cassie, page)
    write_block("limbs", loop_methods.limb_table(), page)
    write_block("largest_loop", loop_methods.largest_loop(method_rows), page)


def _show(title: str, rows: list[Row]) -> None:
    table = Table(title=title, title_justify="left")
    for column in rows[0] if rows else ():
        table.add_column(column, justify="left" if isinstance(rows[0][column], str) else "right")
    for row in rows:
        table.add_row(*(_text(x) for x in row.values()))
    console.print(table)


def _text(x: object) -> str:
    if not isinstance(x, float):
        return str(x)
    return f"{x:.2f}" if abs(x) >= 0.01 else f"{x:.1e}"


def _write(path: Path, rows: list[Row]) -> None:
    if not rows:
        return
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{x:.4g}" if isinstance(x, float) else x for k, x in row.items()})


def _plot(rows: list[Row]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "rbda_ros"
    from matplotlib import pyplot as plt

    labels = [f"{row['work']}: {row['robot']} / {row['peer']}" for row in rows]
    figure, axes = plt.subplots(figsize=(10, 0.26 * len(rows) + 1.2))
    axes.barh(labels, [float(str(row["ratio"])) for row in rows], color="#3b7dd8")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("times faster than the peer (log scale)")
    axes.invert_yaxis()
    axes.margins(y=0.01)
    figure.tight_layout()
    figure.savefig(DOCS / "pictures" / "kernels.svg", metadata={"Date": None})


def _gradients() -> None:
    rows = _measured(gradients.rows)
    _show("Value and gradient of 4,096 states; ratios to operation and derivatives in numpy", rows)
    _write(DOCS / "gradients.csv", rows)
    write_block("gradients", table(rows), DOCS / "learning.md")


def _quantities() -> None:
    rows = _measured(quantities.rows)
    _show(
        "Quantities beside Pinocchio: of each, the least ratio of all robots",
        quantities.least(rows),
    )
    _show("Those below what is wanted", [row for row in rows if row["good"] == "no"])
    _write(DOCS / "quantities.csv", rows)
    write_block("quantities", table(quantities.least(rows)))


def _optimal_control() -> None:
    rows = _measured(optimal_control.rows)
    _show("Optimal motions; ratios to the tree with loop constraints", rows)
    _write(DOCS / "optimal_control.csv", rows)
    write_block("optimal_control", table(rows), DOCS / "predictive_control.md")


SECTIONS = {
    "methods": _methods,
    "overhead": _overhead,
    "real_time": _real_time,
    "start": _start,
    "batches": _batches,
    "kernels": _kernels,
    "derivatives": _derivatives,
    "stream": _stream,
    "every_call": _every_call,
    "latency": _latency,
    "loops": _loops,
    "contacts": _contacts,
    "quantities": _quantities,
    "gradients": _gradients,
    "optimal_control": _optimal_control,
}

if __name__ == "__main__":
    main(sys.argv[1:])
