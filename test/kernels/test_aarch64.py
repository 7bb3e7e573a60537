"""Kernels for another processor: compiled for aarch64, linked, and run under qemu.

The numbers must be those of CasADi's virtual machine here. Skipped where Debian's
gcc-aarch64-linux-gnu and qemu-user are not installed.
"""

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import llvmlite.binding as llvm
import ltl_oracle
import numpy as np
import pytest
from mechanism_table import MECHANISMS, closed_states

from rbda_ros.kernels import emit, emit_batch
from rbda_ros.kernels import machine as compiler
from rbda_ros.kernels.llvm_text import LIBRARY, Lanes, library_name
from rbda_ros.kernels.plan import make_plan
from rbda_ros.kernels.program import read_program
from rbda_ros.kernels.trace import trace_function

TRIPLE = "aarch64-linux-gnu"
CROSS, QEMU = shutil.which(f"{TRIPLE}-gcc"), shutil.which("qemu-aarch64")
NATIVE = Path(__file__).parents[2] / "rbda_ros" / "engine"
TWO = Lanes(2)  # what a register of aarch64 holds
STATES = 5  # neither one nor full vectors alone

needs_cross_tools = pytest.mark.skipif(
    CROSS is None or QEMU is None,
    reason="no aarch64-linux-gnu-gcc or qemu-aarch64; make aarch64 installs them where it can",
)


def robot_function(kernel="inverse_dynamics", mechanism="four_bar"):
    return trace_function(MECHANISMS[mechanism].tree(), kernel)


def states(function):
    rng = np.random.default_rng(0)
    positions = closed_states(MECHANISMS["four_bar"], STATES)
    sizes = [function.numel_in(i) for i in range(1, function.n_in())]
    return [np.array(positions), *(rng.normal(size=(STATES, size)) for size in sizes)]


def expected(function, inputs):
    rows = [function(*state) for state in zip(*inputs, strict=True)]
    outputs = [row if isinstance(row, tuple) else (row,) for row in rows]
    return np.array([np.concatenate([np.array(x).ravel() for x in row]) for row in outputs])


def for_aarch64(modules):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        opt=compiler.OPTIMIZATION, reloc="pic", codemodel="small"
    )
    found = []
    for text in modules:
        module = compiler._parse(text)
        module.triple = TRIPLE
        found.append(bytes(machine.emit_object(module)))
    return found


def c_array(name, numbers):
    values = ", ".join(float(x).hex() for x in np.ravel(numbers))
    return f"static _Alignas(64) double {name}[] = {{{values}}};\n"


def run(folder, objects, main, *options):
    """Numbers that a program prints."""
    paths = []
    for i, code in enumerate(objects):
        paths.append(folder / f"part{i}.o")
        paths[-1].write_bytes(code)
    source = folder / "main.c"
    library = "".join(
        f"double {library_name(name)}({', '.join(['double x', 'double y'][:count])})"
        f" {{ return {name}({', '.join('xy'[:count])}); }}\n"
        for name, count in LIBRARY.items()
    )
    source.write_text(f"#include <math.h>\n#include <stdio.h>\n{library}{main}")
    program = folder / "program"
    command = [CROSS, "-std=gnu11", "-O1", "-static", *options, source, *paths, "-lm"]
    subprocess.run([*map(str, command), "-o", str(program)], check=True)
    done = subprocess.run([QEMU, str(program)], check=True, capture_output=True, text=True)
    return np.array([float.fromhex(word) for word in done.stdout.split()])


def one_state_main(function, inputs):
    ports = [f"i{i} + n * {x.shape[1]}" for i, x in enumerate(inputs)]
    sizes = [function.numel_out(i) for i in range(function.n_out())]
    ports += [f"o{i}" for i in range(len(sizes))]
    return "".join(
        [
            *(c_array(f"i{i}", x) for i, x in enumerate(inputs)),
            *(f"static double o{i}[{size}];\n" for i, size in enumerate(sizes)),
            f"void evaluate({', '.join(['double *'] * len(ports))});\n",
            f"int main(void) {{ for (int n = 0; n < {STATES}; n++) {{\n",
            f"evaluate({', '.join(ports)});\n",
            *(
                f'for (int k = 0; k < {size}; k++) printf("%a\\n", o{i}[k]);\n'
                for i, size in enumerate(sizes)
            ),
            "} return 0; }\n",
        ]
    )


@needs_cross_tools
@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("kernel", ["inverse_dynamics", "loop_state", "friction_force"])
def test_one_state(tmp_path, kernel, lanes):
    function = robot_function(kernel)
    inputs = states(function)
    plan = make_plan(read_program(function), chunk=300, lanes=lanes)
    assert kernel != "inverse_dynamics" or len(plan.chunks) > 2
    functions = emit.functions(plan, Lanes(1), lanes)
    objects = for_aarch64(functions.values())
    sizes = dict(zip(functions, map(compiler.code_size, objects), strict=True))
    objects += for_aarch64([emit.entry(plan, sizes)])
    found = run(tmp_path, objects, one_state_main(function, inputs))
    numbers = expected(function, inputs)
    np.testing.assert_allclose(found.reshape(numbers.shape), numbers, 1e-10, 1e-11)


@needs_cross_tools
def test_a_batch(tmp_path):
    function = robot_function()
    inputs = states(function)
    program = read_program(function)
    plan = make_plan(program, chunk=300)
    tiling = emit_batch.make_tiling(plan, TWO)
    size = function.numel_out(0)
    main = [
        *(c_array(f"i{i}", x) for i, x in enumerate(inputs)),
        c_array("constants", np.repeat(program.constants, TWO.count)),
        f"static double o[{STATES * size}];\n",
        f"static _Alignas(64) double memory[{tiling.vectors * TWO.count}];\n",
        "void batch(double *, double *, double *, double *, double *, double *, long);\n",
        f"int main(void) {{ batch(i0, i1, i2, o, constants, memory, {STATES});\n",
        f'for (int k = 0; k < {STATES * size}; k++) printf("%a\\n", o[k]); return 0; }}\n',
    ]
    found = run(tmp_path, for_aarch64(emit_batch.modules(plan, TWO, tiling)), "".join(main))
    numbers = expected(function, inputs)
    np.testing.assert_allclose(found.reshape(numbers.shape), numbers, 1e-10, 1e-11)


STUBS = """
#include "{folder}/ltl_factorization.c"
void *PyMem_Calloc(size_t count, size_t size) {{ return calloc(count, size); }}
void PyMem_Free(void *memory) {{ free(memory); }}
int copy_indices(Indices *to, PyObject *given, npy_intp least, npy_intp limit)
{{ to->index = malloc(sizeof parents); memcpy(to->index, parents, sizeof parents);
  to->count = limit; return 1; }}
int main(void) {{
  static double inverse[{n} * {n}], *both[] = {{B, inverse}};
  LtlFactorization *ltl = new_ltl(NULL, {n}, 2);
  if (!factor_ltl(ltl, H)) return 1;
  solve_ltl(ltl, H, both, 1, -1.0, inverse);
  for (int m = 0; m < 2; m++)
    for (int k = 0; k < {n} * {n}; k++) printf("%a\\n", both[m][k]);
  return 0; }}
"""


@needs_cross_tools
def test_equations_with_a_mass_matrix(tmp_path):
    parents = [-1, 0, 1, 1, 3, 0, 5]
    n = len(parents)
    rng = np.random.default_rng(1)
    L = np.zeros((n, n))
    for k in range(n):
        i = k
        while i >= 0:
            L[k, i] = rng.normal() + 3.0 * (i == k)
            i = parents[i]
    H, B = L.T @ L, rng.normal(size=(n, n))
    main = c_array("H", H) + c_array("B", B)
    main += f"static long parents[] = {{{', '.join(map(str, parents))}}};\n"
    include = [f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}", "-ffp-contract=off"]
    main = main.replace("static", "#include <stdlib.h>\nstatic", 1)
    found = run(tmp_path, [], main + STUBS.format(folder=NATIVE, n=n), *include)
    L = ltl_oracle.factor(parents, H)
    here = [-ltl_oracle.solve(parents, L, B), ltl_oracle.solve(parents, L, np.eye(n))]
    np.testing.assert_array_equal(found.reshape(2, n, n), here)
    np.testing.assert_allclose(H @ here[0], -B, 0, 1e-10)
    np.testing.assert_allclose(H @ here[1], np.eye(n), 0, 1e-10)


@needs_cross_tools
def test_the_engine_compiles(tmp_path):
    sources = [source.name for source in NATIVE.glob("*.c")]
    assert "state_validator.c" in sources
    include = [f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}"]
    for source in sources:
        command = [CROSS, "-std=gnu11", "-O1", "-Wall", "-Werror", "-fPIC", *include, "-c"]
        subprocess.run([*command, str(NATIVE / source), "-o", str(tmp_path / "x.o")], check=True)


def test_the_text_of_kernels_names_no_processor():
    """Nothing but what LLVM has for all of them."""
    for kernel in ("inverse_dynamics", "loop_state", "forward_dynamics", "friction_force"):
        program = read_program(robot_function(kernel))
        for lanes in (1, 2, 4, 8):
            plan = make_plan(program, lanes=lanes)
            parts = emit.functions(plan, Lanes(1), lanes)
            texts = [*parts.values(), emit.entry(plan, dict.fromkeys(parts, 100))]
            if lanes > 1:
                batch = make_plan(program)
                tiling = emit_batch.make_tiling(batch, Lanes(lanes))
                texts += emit_batch.modules(batch, Lanes(lanes), tiling)
            for text in texts:
                names = set(re.findall(r"@llvm\.([a-z0-9]+)", text))
                assert names <= {"fma", "fabs", "sqrt", "copysign", "minnum", "maxnum",
                                 "floor", "ceil", "memset", "prefetch", "umin"}  # fmt: skip
                assert not re.search(r"\basm\b|target triple|x86|avx|sse|neon", text)
