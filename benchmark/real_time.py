"""Which interface for which deadline: feedforward in exported C and in Python, call by call.

Motors move along sines; each call closes the loops from the last position. Calls are timed one by
one by the clock of the system, so the maximum has everything that the machine did meanwhile. The C
program takes the last core and asks for a real-time priority, as a controller does, and sleeps now
and then, because Linux stops real-time threads that never sleep. After every call it times a chain
of products that takes about as long and touches no memory: the row ``no call``. Its percentiles are
the machine's. ``late`` is the share of calls that took more than 5 us: where it is that of the
chain, interrupts took the time, and not the code. The column ``load`` is the load average at the
end: above 1 on two cores, other programs are in the maxima, and without the priority in the
percentiles too.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rbda_ros import Robot, load_robot
from rbda_ros.errors import InputError
from rbda_ros.exports import ExportReport, export_robot
from rbda_ros.exports.compiled import FLAGS, compiler

CALLS_IN_C = 1_000_000
CALLS_IN_PYTHON = 100_000
LATE = 5000  # ns
ROOT = Path(__file__).resolve().parents[1]
Row = dict[str, object]

_MAIN = """\
#define _GNU_SOURCE
#include "robot.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {{ CALLS = {calls}, LATE = {late} }};
static unsigned taken[CALLS], idle[CALLS];
static robot_workspace w;

static unsigned since(const struct timespec *from)
{{
  struct timespec to;
  clock_gettime(CLOCK_MONOTONIC, &to);
  return (unsigned)((to.tv_sec - from->tv_sec) * 1000000000L + (to.tv_nsec - from->tv_nsec));
}}

/* A chain of products that takes no memory. */
static void wait_for(int products)
{{
  volatile double result;
  double x = 1.0;
  for (int k = 0; k < products; k++) x *= 0.999999;
  result = x;
  (void)result;
}}

static int by_size(const void *a, const void *b)
{{
  const unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
  return (x > y) - (x < y);
}}

int main(void)
{{
  static const int entry[] = {{{entries}}};
  double position[ROBOT_MEASURED], velocity[ROBOT_MEASURED];
  double acceleration[ROBOT_NY] = {{0}}, efforts[ROBOT_MOTORS + 1];
  const double base[7] = {{0, 0, 0, 0, 0, 0, 1}}, still[6] = {{0}};
  int failed = 0, most = 0, products = 100;
  (void)base;
  (void)still;
  robot_init(&w);
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &core);
  sched_setaffinity(0, sizeof core, &core);
  const struct sched_param urgent = {{.sched_priority = 80}};
  const int real_time = sched_setscheduler(0, SCHED_FIFO, &urgent) == 0;
  mlockall(MCL_CURRENT | MCL_FUTURE);
  for (int k = 0; k < CALLS; k++) {{
    if (k % 20000 == 0) nanosleep(&(struct timespec){{0, 5000000}}, NULL);
    const double t = 1e-3 * k;
    for (int i = 0; i < ROBOT_MEASURED; i++) {{
      const double start = robot_assembly[entry[i]] - {amplitude} * sin(i);
      position[i] = start + {amplitude} * sin(3.0 * t + i);
      velocity[i] = 3.0 * {amplitude} * cos(3.0 * t + i);
    }}
    struct timespec from;
    clock_gettime(CLOCK_MONOTONIC, &from);
    const robot_status status =
        robot_feedforward(&w, {base}position, velocity, acceleration, NULL, efforts);
    taken[k] = since(&from);
    clock_gettime(CLOCK_MONOTONIC, &from);
    wait_for(products);
    idle[k] = since(&from);
    if (k < 1000) products += idle[k] < taken[k] ? 2 : -2;
    if (products < 0) products = 0;
    failed += status != ROBOT_OK;
    most = w.evaluations > most ? w.evaluations : most;
  }}
  unsigned *const both[] = {{taken, idle}};
  for (int k = 0; k < 2; k++) {{
    qsort(both[k], CALLS, sizeof **both, by_size);
    int late = CALLS;
    while (late > 0 && both[k][late - 1] > LATE) late--;
    printf("%u %u %u %d ", both[k][CALLS / 2], both[k][(size_t)(CALLS * 0.999)],
           both[k][CALLS - 1], CALLS - late);
  }}
  printf("%d %d %d\\n", failed, most, real_time);
  return 0;
}}
"""


def robots() -> Iterator[tuple[str, Robot]]:
    """Two parallel ankles, a leg with differentials and four-bars, and humanoids with loops."""
    cookbook, mechanisms = ROOT / "docs" / "cookbook", ROOT / "test" / "mechanisms"
    for name, path in {
        "parallel_ankle": cookbook / "parallel_ankle",
        "parallel_ankle, rods as links": mechanisms / "parallel_ankle",
        "tello_leg": mechanisms / "tello_leg",
    }.items():
        yield name, load_robot(path.with_suffix(".urdf"), path.with_suffix(".yaml"))
    for name in ("mit_humanoid", "jvrc1_humanoid"):
        path = ROOT.parent / "shared" / "robots" / f"{name}.urdf"
        if path.exists():
            yield name, load_robot(path, floating_base=True)


def rows() -> Iterator[Row]:
    """Microseconds of feedforward: median, 99.9th percentile, maximum."""
    for name, robot in robots():
        with TemporaryDirectory() as folder:
            try:
                report = export_robot(robot, folder, name="robot", functions=["feedforward"])
            except InputError as error:
                print(f"{name}: {error}")
                continue
            for interface, row in _in_c(robot, report).items():
                yield {"robot": name, "interface": interface, **row}
            yield {"robot": name, "interface": "Python", **_in_python(robot, report)}


def table(rows: Sequence[Row]) -> list[str]:
    """Lines of the page, with the load that the machine had."""
    loads = [float(str(row["load"])) for row in rows]
    cores = os.cpu_count() or 1
    busy = max(loads) > 1.3  # the benchmark itself is one
    lines = [
        f"Load average {min(loads):.1f} to {max(loads):.1f} on {cores} cores"
        + (
            ": **busy**. Where the priority is ordinary, 99.9th percentiles and maxima are of other"
            " programs."
            if busy
            else "."
        ),
        "",
        "| robot | interface | priority | median us | 99.9th percentile us | maximum us"
        " | above 5 us |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        numbers = " | ".join(str(row[key]) for key in ("median_us", "p99.9_us", "max_us"))
        numbers += f" | {row['late_percent']} %"
        kind = f"{row['interface']} | {row['priority']}"
        lines.append(f"| {row['robot']} | {kind} | {numbers} |")
    return lines


def _entries(robot: Robot, report: ExportReport) -> list[int]:
    return [robot.coordinates.scalar_positions[name] for name in report.measured]


AMPLITUDE = 0.2


def _in_c(robot: Robot, report: ExportReport) -> dict[str, Row]:
    found = compiler()
    if found is None:
        raise InputError("there is no C compiler; install gcc or clang")
    folder = report.source.parent
    text = _MAIN.format(
        calls=CALLS_IN_C,
        late=LATE,
        entries=", ".join(map(str, _entries(robot, report))),
        amplitude=AMPLITUDE,
        base="base, still, still, " if robot.coordinates.base_nq else "",
    )
    (folder / "main.c").write_text(text)
    fma = ["-mfma"] if os.uname().machine == "x86_64" else []
    files = [str(folder / "main.c"), str(report.source)]
    command = [found, *FLAGS, *fma, *files, "-o", str(folder / "main"), "-lm"]
    subprocess.run(command, check=True)
    done = subprocess.run([str(folder / "main")], check=True, capture_output=True, text=True)
    *times, failed, most, real_time = map(int, done.stdout.split())
    priority = {"priority": "real-time" if real_time else "ordinary"}
    counts = {"failed": failed, "evaluations": most}
    return {
        "C": _row(times[:4], CALLS_IN_C) | counts | priority,
        "no call": _row(times[4:], CALLS_IN_C) | {"failed": "", "evaluations": ""} | priority,
    }


def _in_python(robot: Robot, report: ExportReport) -> Row:
    call = robot.feedforward(report.measured)
    call.kernel.compile()
    call.searches = False
    home = robot.tree.home[_entries(robot, report)]
    order = [report.measured.index(name) for name in call.joints]
    phase = np.arange(len(order), dtype=float)
    taken = np.zeros(CALLS_IN_PYTHON, np.int64)
    for k in range(CALLS_IN_PYTHON):
        t = 1e-3 * k
        position = home + AMPLITUDE * np.sin(3.0 * t + phase) - AMPLITUDE * np.sin(phase)
        velocity = 3.0 * AMPLITUDE * np.cos(3.0 * t + phase)
        begin = time.perf_counter_ns()
        call.position[:] = position[order]
        call.velocity[:] = velocity[order]
        call()
        taken[k] = time.perf_counter_ns() - begin
    taken.sort()
    median, late, worst = (taken[int(share * (CALLS_IN_PYTHON - 1))] for share in (0.5, 0.999, 1.0))
    beyond = int(np.sum(taken > LATE))
    return _row((int(median), int(late), int(worst), beyond), CALLS_IN_PYTHON) | {
        "failed": 0,
        "evaluations": "",
        "priority": "ordinary",
    }


def _row(times: Sequence[int], calls: int) -> Row:
    median, late, worst, beyond = times
    return {
        "median_us": round(median / 1000, 2),
        "p99.9_us": round(late / 1000, 2),
        "max_us": round(worst / 1000, 1),
        "late_percent": round(100 * beyond / calls, 3),
        "calls": calls,
        "load": round(os.getloadavg()[0], 1),
    }
