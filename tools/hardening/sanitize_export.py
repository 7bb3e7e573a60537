"""Exported C under AddressSanitizer and UBSan, beside CasADi's virtual machine.

    python -m tools.hardening.sanitize_export

A program is made of the exported functions and a loop that calls them, with every vector in a
block of its own size: a read or write beyond it is reported. Beside good states it is given
numbers that are none, and those that are too large.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rbda_ros import Robot, load_robot
from rbda_ros.kernels.export import RESTRICT, function_source
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.plan import make_plan
from rbda_ros.kernels.program import Program
from rbda_ros.kernels.registry import KERNELS
from rbda_ros.kernels.sincos import sincos_in_c
from rbda_ros.spatial import Array

ROOT = Path(__file__).resolve().parents[2]
STAGE = ROOT / "build" / "sanitize_export"
COMPILER = os.environ.get("CC", "cc")
FLAGS = (
    *("-std=c99", "-O0", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic"),
    *("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
)
CALLS = 200
HOSTILE = np.nan, np.inf, -np.inf, 1e300, -1e300, 1e15, 5e-324
CLOSE = 1e-9  # of the largest number of an output

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "{name}.h"

static double *vector(size_t size, FILE *source) {{
  double *block = malloc(size * sizeof(double));
  if (source && fread(block, sizeof(double), size, source) != size) exit(3);
  return block;
}}

static void give(double *block, size_t size, FILE *target) {{
  if (target && fwrite(block, sizeof(double), size, target) != size) exit(4);
  free(block);
}}

int main(void) {{
  for (int k = 0; k < {calls}; k++) {{
{body}
  }}
  return 0;
}}
"""


def robots() -> dict[str, Robot]:
    """One with loops, and one with a floating base."""
    folder = ROOT / "config" / "robots"
    return {
        "leg": load_robot(folder / "demo_leg.urdf", folder / "demo_leg_loops.yaml"),
        "gear": load_robot(ROOT / "test" / "mechanisms" / "gear.urdf", floating_base=True),
    }


def kernels(robot: Robot) -> dict[str, Kernel]:
    """All that `rbda_ros export-c` offers; those about frames, for the last link."""
    frame = robot.description.links[-1].name
    return {
        name: robot.kernel(name, *([frame] if about.needs_frames else []))
        for name, about in KERNELS.items()
    }


def inputs(robot: Robot, kernel: Kernel, rng: np.random.Generator) -> list[list[Array]]:
    """Of every call: good ones, near the home position, and hostile ones."""
    calls = []
    for k in range(CALLS):
        call = [rng.uniform(-0.5, 0.5, size) for size in kernel.input_sizes.values()]
        if call and len(call[0]) == robot.nq:
            call[0] = robot.tree.home + np.append(
                np.zeros(robot.coordinates.base_nq),
                rng.uniform(-0.1, 0.1, robot.nq - robot.coordinates.base_nq),
            )
        if k % 4 == 0:
            for vector in call:
                if len(vector):
                    vector[rng.integers(len(vector))] = rng.choice(HOSTILE)
        calls.append(call)
    return calls


def one_call(name: str, function: str, kernel: Kernel) -> str:
    """C that calls a function once, with vectors from its standard input."""
    sizes = [port.size for port in (*kernel.program.inputs, *kernel.program.outputs)]
    count, lines = len(kernel.program.inputs), []
    for i, size in enumerate(sizes):
        lines.append(f"double *{function}{i} = vector({size}, {'stdin' if i < count else 'NULL'});")
    given = ", ".join(f"{function}{i}" for i in range(len(sizes)))
    lines.append(f"{name}_{function}({given});")
    for i, size in enumerate(sizes):
        lines.append(f"give({function}{i}, {size}, {'NULL' if i < count else 'stdout'});")
    return "\n".join(f"    {line}" for line in lines)


def write_kernels(programs: Mapping[str, Program], name: str, folder: Path) -> Path:
    """Write programs as the functions ``<name>_<key>`` of a C file and its header; the C file."""
    sincos, lines = f"{name}_sincos", [f'#include "{name}.h"', "#include <string.h>"]
    lines += sincos_in_c(sincos)
    for key, program in programs.items():
        lines += function_source(make_plan(program), f"{name}_{key}", sincos)
    declared = [f"{line};" for line in lines if line.startswith(f"void {name}_")]
    header = ["#include <math.h>", "#include <stdint.h>", *RESTRICT, *declared, ""]
    (folder / f"{name}.h").write_text("\n".join(header), encoding="utf-8")
    source = folder / f"{name}.c"
    source.write_text("\n".join(lines), encoding="utf-8")
    return source


def run(name: str, robot: Robot) -> int:
    """Compare all kernels of a robot; how many numbers were compared."""
    found, rng = kernels(robot), np.random.default_rng(3)
    folder = STAGE / name
    folder.mkdir(parents=True, exist_ok=True)
    source = write_kernels({key: kernel.program for key, kernel in found.items()}, name, folder)
    body = "\n".join(one_call(name, function, kernel) for function, kernel in found.items())
    program = folder / "main.c"
    program.write_text(MAIN.format(name=name, calls=CALLS, body=body))
    subprocess.run(
        [COMPILER, *FLAGS, source, program, "-lm", "-o", folder / "main"], check=True, cwd=folder
    )
    given = {function: inputs(robot, kernel, rng) for function, kernel in found.items()}
    order = [(function, k) for k in range(CALLS) for function in found]
    sent = b"".join(v.tobytes() for function, k in order for v in given[function][k])
    done = subprocess.run([folder / "main"], input=sent, stdout=subprocess.PIPE, check=True)
    answers, start = np.frombuffer(done.stdout), 0
    for function, k in order:
        for right in found[function].interpret(*given[function][k]):
            answer = answers[start : start + right.size]
            start += right.size
            if k % 4 == 0:
                continue  # what hostile numbers come to is not ours to say
            largest = np.abs(right).max(initial=1.0)
            np.testing.assert_allclose(answer, right.ravel(), 0, CLOSE * largest, err_msg=function)
    assert start == len(answers)
    return start


def main() -> None:
    for name, robot in robots().items():
        count = len(kernels(robot))
        print(f"{name}: {count} functions, {CALLS} calls, {run(name, robot)} numbers as they were")
    print("nothing reported")


if __name__ == "__main__":
    sys.exit(main())
