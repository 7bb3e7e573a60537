"""Instructions, times and compile times by number of bodies, loops, contacts and branches."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmark.papers.internals import contact_inputs, contact_kernel
from benchmark.papers.models import (
    AXES,
    branched_tree,
    chain,
    four_bar_branches,
    joint,
    link,
    robot,
    robot_a,
)
from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.results import Claim, Result, Row, exponent, judge, number
from benchmark.timing import interleaved
from rbda_ros import Contact, Robot, load_robot

PAPER = "This package"
TITLE = "Growth: to 1,000 bodies, 333 loops, 64 contacts"
SIZES, QUICK_SIZES = (10, 30, 100, 300, 1000), (20, 50, 100)
FAMILIES: dict[str, Callable[[int], str]] = {  # bodies: URDF text
    "chain": chain,
    "tree, 2 branches": partial(branched_tree, branching=2),
    "tree, 8 branches": partial(branched_tree, branching=8),
    "geared chain": lambda bodies: robot_a(bodies // 2),
    "four-bar chain": lambda bodies: four_bar_branches(1, bodies // 3),
}
CONTACTS, QUICK_CONTACTS = (1, 4, 16, 64), (1, 4, 16)
KERNELS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


def run(quick: bool) -> Result:
    """Trace, and unless quick compile and call, every family at every size."""
    rows: list[Row] = []
    for family, generate in FAMILIES.items():
        for bodies in QUICK_SIZES if quick else SIZES:
            began = time.thread_time()
            loaded = load_robot(generate(bodies))
            taken = time.thread_time() - began
            for kernel in KERNELS[:2] if quick else KERNELS:
                rows.append(_row(family, bodies, loaded, kernel, taken, quick))
    if not quick:
        rows.append(_row("chain", 200, load_robot(chain(200)), "mass_matrix", 0.0, quick))
    for count in QUICK_CONTACTS if quick else CONTACTS:
        rows.append(_contacts(count, quick))
    return Result(rows, _claims(rows, quick), text=TEXT)


def _row(family: str, bodies: int, loaded: Robot, kernel: str, load: float, quick: bool) -> Row:
    began = time.thread_time()
    traced = loaded.kernel(kernel)
    row: Row = {
        "family": family, "bodies": bodies, "kernel": kernel, "instructions": traced.instructions,
        "load_s": load, "trace_s": time.thread_time() - began, "compile_s": "", "call_us": "",
    }  # fmt: skip
    if not quick:
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


def _contacts(count: int, quick: bool) -> Row:
    """A floating body on so many legs of three joints, each held at its foot."""
    parts, feet = [link("base", 5.0, "0 0 0.1", "0.1 0.1 0.1")], []
    for leg in range(count):
        parent = "base"
        for i in range(3):
            name = f"leg{leg}_{i}"
            parts.append(link(name, 1.0, "0.02 0.01 -0.1", "0.003 0.002 0.004"))
            parts.append(joint(name, parent, name, f"0 {0.1 * (i == 0)} -0.2", AXES[i]))
            parent = name
        feet.append(Contact(parent))
    loaded = load_robot(robot("legs", parts), floating_base=True)
    began = time.thread_time()
    kernel = contact_kernel(loaded, feet, "cABA", 2, 1e6)
    row: Row = {
        "family": "contacts", "bodies": count, "kernel": "constrained_forward_dynamics",
        "instructions": kernel.instructions, "load_s": 0.0,
        "trace_s": time.thread_time() - began, "compile_s": "", "call_us": "",
    }  # fmt: skip
    if not quick:
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


def _claims(rows: list[Row], quick: bool) -> list[Claim]:
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
    claims = [
        Claim(
            "inverse and forward dynamics grow linearly with bodies and loops",
            "O(n)",
            f"exponents of instructions {min(chains):.2f} to {max(chains):.2f}",
            judge(False, max(chains) < 1.15),
            "reproduced",
        ),
        Claim(
            "whatever the branches: a body of a tree costs no more than one of a chain",
            "O(n)",
            f"{min(of_trees):.2f} to {max(of_trees):.2f} of it",
            judge(False, max(of_trees) <= 1.0),
            "reproduced",
            "less, because bodies next to the fixed base have less to do, and trees have more of"
            " these",
        ),
        Claim(
            "constrainedABA grows linearly with contacts, on legs of their own",
            "O(n + m)",
            f"exponent of instructions {contacts:.2f}",
            judge(False, contacts < 1.15),
            "reproduced",
        ),
    ]
    if quick:
        return claims
    long = next(r for r in rows if r["bodies"] == 200 and r["kernel"] == "mass_matrix")
    seconds = number(long, "trace_s") + number(long, "compile_s")
    compiled = [p / counts[f] for f, p in fits(rows, "compile_s").items() if f in counts]
    last = [r for r in rows if r["bodies"] == 1000 and r["kernel"] == "forward_dynamics"]
    claims += [
        Claim(
            "compile time grows linearly with the instructions",
            "",
            f"exponents {min(compiled):.2f} to {max(compiled):.2f};"
            f" forward dynamics of 1,000 bodies in"
            f" {min(number(r, 'compile_s') for r in last):.0f} to"
            f" {max(number(r, 'compile_s') for r in last):.0f} s",
            judge(False, max(compiled) < 1.25),
            "reproduced",
        ),
        Claim(
            "the mass matrix of a chain of 200 is ready",
            "",
            f"{seconds:.1f} s, {number(long, 'call_us') / 1000:.2f} ms a call",
            judge(seconds < 10.0),
            "better",
            "column by column; one straight line grows with the square of the length",
        ),
    ]
    return claims


TEXT = """Bodies count rotors and rods. Geared chains have a loop for every two bodies, chains of
four-bars one for every three. Contacts are the feet of legs of three joints on one body, solved by
constrainedABA with two iterations; their number stands in the place of bodies. From 94 bodies
of a chain on, the mass matrix is evaluated column by column, and `instructions` are those of all
columns; exponents of it are fitted across that change. Times are thread-CPU times; compiling may
use more threads."""


def plot(result: Result, path: Path) -> None:
    """Instructions, time to compile and time a call."""
    drawn, panels = figure(1, 3, (11, 3.4))
    families = list(dict.fromkeys(str(r["family"]) for r in result.rows))
    keys = ("instructions", "compile_s", "call_us")
    labels = ("instructions", "compile [s]", "call [us]")
    for panel, key, label in zip(panels, keys, labels, strict=True):
        for colour, family in zip(PALETTE, families, strict=False):
            for kernel, style in (("forward_dynamics", "o-"), ("mass_matrix", "x:"),
                                  ("constrained_forward_dynamics", "s--")):  # fmt: skip
                of = [r for r in result.rows if (r["family"], r["kernel"]) == (family, kernel)]
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
