"""Exported C under sanitizers, with arguments of all kinds, and for other processors."""

import shutil
import subprocess

import numpy as np
import pytest
from mechanism_table import MECHANISMS

from rbda_ros import Robot
from rbda_ros.exports import export_robot
from rbda_ros.exports.compiled import compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
FUNCTIONS = ["feedforward", "convert", "motor_command", "observer", "gate", "forward_dynamics"]

FUZZER = """\
#include "r.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int armed;
#ifdef TRAP
void *__libc_malloc(size_t size);
void *malloc(size_t size)
{
  if (armed) abort();
  return __libc_malloc(size);
}
#endif

static unsigned long seed = 1;

static double number(void)
{
  static const double odd[] = {0.0, -0.0, 1e-300, 1e300, 1e40, -1e13, INFINITY, -INFINITY, NAN};
  seed = seed * 6364136223846793005ul + 1442695040888963407ul;
  const unsigned kind = (unsigned)(seed >> 40) % 40;
  if (kind < 9) return odd[kind];
  return ((double)(seed >> 33) / 2147483648.0 - 0.5) * (kind < 20 ? 10.0 : 0.4);
}

static int all_finite(const double *x, int count)
{
  for (int k = 0; k < count; k++)
    if (!isfinite(x[k])) return 0;
  return 1;
}

int main(void)
{
  enum { MANY = 64 };
  static r_workspace w;
  static r_observer o;
  static double x[12][MANY];
  double *out[4] = {x[8], x[9], x[10], x[11]};
  double last[R_MOTORS] = {0};
  r_gate gate = {last, R_MOTORS, 0, 0, 0, 0, 0};
  int good = 0;
  r_init(&w);
  r_observer_init(&o);
  armed = 1;
  for (int k = 0; k < CALLS; k++) {
    for (int i = 0; i < 8; i++)
      for (int j = 0; j < MANY; j++) x[i][j] = number();
    for (int j = 0; j < R_NQ && k % 2; j++) x[0][j] = w.q[j];
    const double *null = NULL;
    r_status s[7] = {
        r_feedforward(&w, x[1], x[2], x[3], k % 3 ? null : x[4], out[0]),
        r_motors_to_joints(&w, x[1], k % 5 ? x[2] : null, x[3], x[4], out[0], out[1], out[2],
                           out[3]),
        r_joints_to_motors(&w, x[1], x[2], x[3], k % 7 ? null : x[4], out[0], out[1], out[2],
                           out[3]),
        r_motor_command(&w, x[1], x[2], x[3], x[4], x[5], x[6], x[7], null, out[0], out[1], out[2]),
        r_observer_update(&w, &o, number(), number(), x[0], x[2], x[3]),
        r_forward_dynamics(&w, x[0], x[2], x[3], out[0]),
        r_start_from(&w, x[0])};
    for (int i = 0; i < 7; i++) {
      if ((int)s[i] < 0 || s[i] >= R_STATUS_COUNT) return 1;
      good += s[i] == R_OK;
    }
    if (!all_finite(w.q, R_NQ) || !all_finite(w.command_q, R_NQ)) return 2;
    if (!all_finite(out[1], R_NY) || !all_finite(o.external, R_NY)) return 3;
    if (w.evaluations > R_MAX_EVALUATIONS) return 4;
    const r_gate_rules rules = {r_effort_limits, 10.0, 1000000, 0};
    double efforts[R_MOTORS] = {0};
    r_gate_pass(&gate, &rules, k * 1000, efforts);
    if (k % 50 == 0) r_init(&w);
  }
  armed = 0;
  printf("%d\\n", good);
  return good == 0;
}
"""


@pytest.fixture(
    scope="module",
    params=["slider_crank", pytest.param("parallel_ankle", marks=pytest.mark.nightly)],
)
def exported(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    robot = Robot(MECHANISMS[request.param].tree())
    report = export_robot(robot, folder, name="r", functions=FUNCTIONS)
    (folder / "fuzz.c").write_text(FUZZER)
    return report


def run(report, calls, *flags):
    folder = report.source.parent
    files = [str(folder / "fuzz.c"), str(report.source)]
    command = [compiler(), "-std=gnu99", *flags, f"-DCALLS={calls}", *files]
    built = subprocess.run(
        [*command, "-o", str(folder / "fuzz"), "-lm"], capture_output=True, text=True
    )
    if built.returncode and "sanitizer" in built.stderr + " ".join(flags):
        pytest.skip(f"the compiler has no sanitizers here: {built.stderr[:200]}")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(folder / "fuzz")], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


def test_nothing_is_allocated(exported):
    run(exported, 2000, "-O1", "-DTRAP")


@pytest.mark.parametrize("calls", [500, pytest.param(200_000, marks=pytest.mark.nightly)])
def test_sanitizers_find_nothing_in_any_arguments(exported, calls):
    run(exported, calls, "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.mark.parametrize(
    ("tool", "flags"),
    [
        ("cc", []),
        ("aarch64-linux-gnu-gcc", []),
        ("arm-linux-gnueabihf-gcc", []),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m7", "-mthumb"]),
    ],
)
@pytest.mark.parametrize("float32", [False, True], ids=["double", "float"])
def test_compiles_for_this_and_other_processors(tmp_path, tool, flags, float32):
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}; apt install it, or make aarch64")
    robot = Robot(MECHANISMS["four_bar"].tree())
    report = export_robot(robot, tmp_path, name="r", functions=["feedforward"], float32=float32)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-O1", "-c"]
    output = ["-o", str(tmp_path / "r.o")]
    subprocess.run([tool, *strict, *flags, str(report.source), *output], check=True)


def test_aarch64_has_the_same_bits(tmp_path):
    cross, emulator = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
    if cross is None or emulator is None:
        pytest.skip("no aarch64-linux-gnu-gcc or qemu-aarch64; make aarch64 installs them")
    robot = Robot(MECHANISMS["slider_crank"].tree())
    report = export_robot(robot, tmp_path, name="r", functions=["feedforward"])
    (tmp_path / "main.c").write_text(
        '#include "r.h"\n#include <stdio.h>\nint main(void)\n{\n  static r_workspace w;\n'
        "  double p[R_MEASURED], v[R_MEASURED], a[R_NY] = {0.3}, e[R_MOTORS];\n  r_init(&w);\n"
        "  for (int k = 0; k < 50; k++) {\n"
        "    for (int i = 0; i < R_MEASURED; i++) p[i] = 0.004 * k * (1 + i), v[i] = 0.1 * i + 1;\n"
        "    const int s = (int)r_feedforward(&w, p, v, a, NULL, e);\n"
        '    for (int i = 0; i < R_MOTORS; i++) printf("%d %a\\n", s, e[i]);\n  }\n}\n'
    )
    said = []
    for tool, start in ((compiler(), []), (cross, [emulator])):
        files = [str(tmp_path / "main.c"), str(report.source), "-o", str(tmp_path / "main")]
        flags = ["-O2", "-ffp-contract=off", "-static"]
        subprocess.run([tool, *flags, *files, "-lm"], check=True)
        command = [*start, str(tmp_path / "main")]
        said.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert said[0] == said[1]
    assert np.unique(said[0].split()).size > 40
