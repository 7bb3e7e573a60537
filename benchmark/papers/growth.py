"""Instructions, times and compile times by number of bodies, loops, contacts and branches."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmark.papers.internals import (
    contact_inputs,
    contact_instructions,
    contact_kernel,
)
from benchmark.papers.models import (
    branched_tree,
    chain,
    four_bar_branches,
    many_legs,
    robot_a,
)
from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.results import Claim, Row, Scope, exponent, judge, number
from benchmark.timing import interleaved
from rbda_ros import Contact, Robot, load_robot

PAPER = "This package"
TITLE = "Growth: to 1,000 bodies, 333 loops, 64 contacts"
SIZES = (10, 30, 100, 300, 1000)
FAMILIES: dict[str, Callable[[int], str]] = {  # bodies: URDF text
    "chain": chain,
    "tree, 2 branches": partial(branched_tree, branching=2),
    "tree, 8 branches": partial(branched_tree, branching=8),
    "geared chain": lambda bodies: robot_a(bodies // 2),
    "four-bar chain": lambda bodies: four_bar_branches(1, bodies // 3),
}
CONTACTS = (1, 4, 16, 64)
KERNELS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")
KEYS, COUNTS = ("family", "bodies", "kernel"), ("instructions",)
TIMES = True


def run(scope: Scope) -> list[Row]:
    """Trace every family at every size; compile and call where times are asked for."""
    rows: list[Row] = []
    for family, generate in FAMILIES.items():
        for bodies in {"day": SIZES[:1], "night": SIZES[:3], "all": SIZES}[scope]:
            began = time.thread_time()
            loaded = load_robot(generate(bodies))
            taken = time.thread_time() - began
            for kernel in KERNELS:
                rows.append(_row(family, bodies, loaded, kernel, taken, scope))
    if scope == "all":
        rows.append(_row("chain", 200, load_robot(chain(200)), "mass_matrix", 0.0, scope))
    for count in CONTACTS[: 1 if scope == "day" else None]:
        rows.append(_contacts(count, scope))
    return rows


def _row(family: str, bodies: int, loaded: Robot, kernel: str, load: float, scope: Scope) -> Row:
    began = time.thread_time()
    traced = loaded.kernel(kernel)
    row: Row = {
        "family": family, "bodies": bodies, "kernel": kernel, "instructions": traced.instructions,
        "load_s": load, "trace_s": time.thread_time() - began, "compile_s": "", "call_us": "",
    }  # fmt: skip
    if scope == "all":
        q = loaded.tree.home
        inputs = (q, np.zeros(loaded.ny), np.zeros(loaded.ny))[: 1 if "matrix" in kernel else 3]
        row |= _timed(traced, inputs)
    return row


def _timed(kernel, inputs: tuple[np.ndarray, ...]) -> Row:
    """Seconds that compiling takes, on any thread, and a call."""
    began = time.process_time()
    kernel.compile()
    compiled = time.process_time() - began
    call = interleaved({"ours": lambda: kernel.call(*inputs)}, 0.002)["ours"]
    return {"compile_s": compiled, "call_us": call}


def _contacts(count: int, scope: Scope) -> Row:
    """A floating body on so many legs of three joints, each held at its foot."""
    urdf, links = many_legs(count)
    loaded, feet = load_robot(urdf, floating_base=True), [Contact(name) for name in links]
    began = time.thread_time()
    kernel = contact_kernel(loaded, feet, "cABA", 2, 1e6)
    row: Row = {
        "family": "contacts", "bodies": count, "kernel": "constrained_forward_dynamics",
        "instructions": contact_instructions(loaded, feet, "cABA", 2, 1e6), "load_s": 0.0,
        "trace_s": time.thread_time() - began, "compile_s": "", "call_us": "",
    }  # fmt: skip
    if scope == "all":
        rest = loaded.tree.home, np.zeros(loaded.ny), np.zeros(loaded.ny)
        row |= _timed(kernel, (*rest, *contact_inputs(loaded, feet)))
    return row


def fits(rows: list[Row], key: str) -> dict[tuple[str, str], float]:
    """Exponents by family and kernel, over the last three sizes."""
    found = {}
    for family, kernel in dict.fromkeys((str(r["family"]), str(r["kernel"])) for r in rows):
        of = [r for r in rows if (r["family"], r["kernel"]) == (family, kernel) and r[key] != ""]
        of = sorted(of, key=lambda r: number(r, "bodies"))[-3:]
        if len(of) == 3:
            sizes = [number(r, "bodies") for r in of]
            found[family, kernel] = exponent(sizes, [number(r, key) for r in of])
    return found


def claims(rows: list[Row]) -> list[Claim]:
    """Judge the rows."""
    counts = {f: p for f, p in fits(rows, "instructions").items() if f[1] != "mass_matrix"}
    chains = [p for (family, _), p in counts.items() if family.endswith("chain")]
    each = {
        (r["family"], r["kernel"], r["bodies"]): number(r, "instructions") / number(r, "bodies")
        for r in rows
        if r["kernel"] != "mass_matrix"
    }
    of_trees = [
        x / each["chain", kernel, bodies]
        for (family, kernel, bodies), x in each.items()
        if str(family).startswith("tree")
    ]
    contacts = counts["contacts", "constrained_forward_dynamics"]
    found = [
        Claim(
            "inverse and forward dynamics grow linearly with bodies and loops",
            "O(n)",
            f"{min(chains):.2f} to {max(chains):.2f}",
            "exponent of instructions in bodies, the three chains",
            judge(max(chains) < 1.15),
            "reproduced",
        ),
        Claim(
            "a body of a tree costs no more than one of a chain, whatever the branches",
            "O(n)",
            f"{min(of_trees):.2f} to {max(of_trees):.2f}",
            "instructions a body, tree over chain",
            judge(max(of_trees) <= 1.0),
            "reproduced",
            "less, because bodies next to the fixed base have less to do, and trees have more of"
            " these",
        ),
        Claim(
            "constrainedABA grows linearly with contacts, on legs of their own",
            "O(n + m)",
            f"{contacts:.2f}",
            "exponent of instructions in contacts",
            judge(contacts < 1.15),
            "reproduced",
        ),
    ]
    long = [r for r in rows if r["bodies"] == 200 and r["compile_s"] != ""]
    if not long:
        return found
    seconds = number(long[0], "trace_s") + number(long[0], "compile_s")
    compiled = [p / counts[f] for f, p in fits(rows, "compile_s").items() if f in counts]
    last = [r for r in rows if r["bodies"] == 1000 and r["kernel"] == "forward_dynamics"]
    return [
        *found,
        Claim(
            "compile time grows linearly with the instructions",
            "linear",
            f"{min(compiled):.2f} to {max(compiled):.2f}; forward dynamics of 1,000 bodies in"
            f" {min(number(r, 'compile_s') for r in last):.0f} to"
            f" {max(number(r, 'compile_s') for r in last):.0f} s",
            "exponent of CPU time in instructions",
            judge(max(compiled) < 1.25),
            "reproduced",
            "",
            "no",
        ),
        Claim(
            "the mass matrix of a chain of 200 is ready within 10 s",
            "10 s",
            f"{seconds:.1f} s; {number(long[0], 'call_us') / 1000:.2f} ms a call",
            "CPU time of tracing and compiling",
            judge(seconds < 10.0),
            "reproduced",
            "column by column; one straight line grows with the square of the length",
            "no",
        ),
    ]


def text(rows: list[Row]) -> str:
    """How it was done, with fitted exponents and the largest sizes."""
    powers = {key: fits(rows, key) for key in ("instructions", "compile_s", "call_us")}
    lines = [
        TEXT + "\n",
        "Exponents are fitted over the last three sizes; other figures are of the largest.\n",
        "| family | kernel | largest | instructions | exponent | compile [s] | exponent |"
        " call [us] | exponent |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for family, kernel in powers["call_us"]:
        of = [r for r in rows if (r["family"], r["kernel"]) == (family, kernel)]
        largest = max(of, key=lambda r: number(r, "bodies"))
        cells = [family, kernel, f"{largest['bodies']}", f"{number(largest, 'instructions'):,.0f}"]
        cells += [f"{powers['instructions'][family, kernel]:.2f}"]
        for key, form in (("compile_s", ".1f"), ("call_us", ".0f")):
            cells += [format(number(largest, key), form), f"{powers[key][family, kernel]:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


TEXT = """Bodies count rotors and rods. Geared chains have a loop for every two bodies, chains of
four-bars one for every three. Contacts are the feet of legs of three joints on one body, solved by
constrainedABA with two iterations; their number stands in the place of bodies. From 94 bodies
of a chain on, the mass matrix is evaluated column by column, and `instructions` are those of all
columns; exponents of it are fitted across that change. Times are thread-CPU times; compiling may
use more threads."""


def plot(rows: list[Row], path: Path) -> None:
    """Instructions, time to compile and time a call."""
    drawn, panels = figure(1, 3, (11, 3.4))
    families = list(dict.fromkeys(str(r["family"]) for r in rows))
    keys = ("instructions", "compile_s", "call_us")
    labels = ("instructions", "compile [s]", "call [us]")
    for panel, key, label in zip(panels, keys, labels, strict=True):
        for colour, family in zip(PALETTE, families, strict=False):
            for kernel, style in (("forward_dynamics", "o-"), ("mass_matrix", "x:"),
                                  ("constrained_forward_dynamics", "s--")):  # fmt: skip
                of = [r for r in rows if (r["family"], r["kernel"]) == (family, kernel)]
                of = sorted(of, key=lambda r: number(r, "bodies"))
                if of:
                    sizes, values = ([number(r, k) for r in of] for k in ("bodies", key))
                    name = family if kernel != "mass_matrix" else None
                    panel.plot(sizes, values, style, color=colour, ms=3, lw=1, label=name)
        panel.set(xscale="log", yscale="log", xlabel="bodies (contacts)", ylabel=label)
        panel.grid(alpha=0.3)
    panels[0].plot([], [], "x:", color="0.3", ms=3, label="mass matrix")
    panels[0].legend(fontsize=6, title="forward dynamics", title_fontsize=6)
    save(drawn, path)
