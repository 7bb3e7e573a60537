"""Kernels as plain C99: no dependency but <math.h>, no memory but the stack.

Sines, cosines, minima and maxima are written out as machine code has them (`sincos.py`,
`writer.py`), and products that the program fuses with sums are calls of ``fma``. So, compiled
without contraction (``-ffp-contract=off``), the results are those of machine code to the last bit.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence

from rbda_ros.kernels.plan import Plan
from rbda_ros.kernels.program import OPERATIONS, Port, Program

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARISONS = {"lt": "<", "le": "<=", "eq": "==", "ne": "!="}
_FORMS = {
    "neg": "-{0}",
    "sq": "{0} * {0}",
    "twice": "{0} + {0}",
    "inv": "1.0 / {0}",
    "sign": "{0} < 0.0 ? -1.0 : ({0} > 0.0 ? 1.0 : {0})",
    "not": "(double)({0} == 0.0)",
    "and": "(double)({0} != 0.0 && {1} != 0.0)",
    "or": "(double)({0} != 0.0 || {1} != 0.0)",
    "fmin": "{1} < {0} || {0} != {0} ? {1} : {0}",
    "fmax": "{1} > {0} || {0} != {0} ? {1} : {0}",
    "if_else_zero": "{0} != 0.0 ? {1} : 0.0",
    "fma": "fma({0}, {1}, {2})",
    "fms": "fma({0}, {1}, -{2})",
    "fnma": "fma(-{0}, {1}, {2})",
}
# The word for arrays that do not overlap, which C++ has only with underscores.
RESTRICT = (
    "#if defined(__cplusplus)",
    "#define RBDA_RESTRICT __restrict",
    "#else",
    "#define RBDA_RESTRICT restrict",
    "#endif",
)
_LOCAL = re.compile(r"\b[vsc]\d+\b")
# Words that a parameter must not be called, beside its own function's local names.
_RESERVED = {"double", "const", "void", "static", "int", "if", "else", "return", "w", "fma"} | {
    *OPERATIONS
}


def function_source(plan: Plan, name: str, sincos: str, *, static: bool = False) -> list[str]:
    """A program as a C function: its parts over a work array, and the function that calls them.

    Args:
        plan: of the program.
        name: of the function; pointers to inputs, then to outputs, are its parameters.
        sincos: name of the function that gives sine and cosine.
        static: whether it is of its file alone.
    """
    program = plan.program
    ports = [port for port, _ in port_names(program)]
    parameters = _parameters(program, restrict="RBDA_RESTRICT ")
    unused = [f"  (void){port};" for port in (*ports, "w")]
    parts = [_angles(plan, sincos)] if plan.angles else []
    parts += [_chunk(plan, k, sincos) for k in range(len(plan.chunks))]
    inner = ", ".join(part for part in (parameters, "double *RBDA_RESTRICT w") if part)
    lines = []
    for i, part in enumerate(parts):
        lines += [f"static void {name}_part{i}({inner})", "{", *unused, *_used(part), "}", ""]
    scope = "static " if static else ""
    lines += [f"{scope}void {name}({parameters or 'void'})", "{"]
    lines += [f"  double w[{max(plan.work, 1)}];"]
    if not parts:
        lines += unused
    given = ", ".join([*ports, "w"])
    return [*lines, *(f"  {name}_part{i}({given});" for i in range(len(parts))), "}", ""]


def _used(lines: Sequence[str]) -> list[str]:
    """The lines without variables that nothing reads; compilers warn of these."""
    kept: list[str] = []
    read: set[str] = set()
    for line in reversed(lines):
        names = _LOCAL.findall(line)
        if line.startswith("  double s"):  # sine and cosine of an angle
            (angle,) = re.findall(r"double s(\d+)", line)
            if {f"s{angle}", f"c{angle}"} & read:
                read.update(names)
                kept.append(line)
            continue
        defined = names.pop(0) if line.startswith("  const double v") else None
        if defined is None or defined in read:
            read.update(names)
            kept.append(line)
    return kept[::-1]


def _angles(plan: Plan, sincos: str) -> list[str]:
    """Sines and cosines that the inputs alone determine."""
    program = plan.program
    writer = _Writer(plan, sincos)
    lines = [line for value in plan.before for line in writer.statements(value)]
    for value, slot in plan.slots.items():
        operation, (angle, *_) = program.instructions[value - program.first_result]
        if angle in plan.angles and operation in ("sin", "cos"):
            lines += writer.sincos(angle)
            lines.append(f"  w[{slot}] = {operation[0]}{angle};")
    return lines


def _chunk(plan: Plan, k: int, sincos: str) -> list[str]:
    writer = _Writer(plan, sincos)
    program, lines = plan.program, []
    for (value,) in plan.chunks[k]:
        lines += writer.statements(value)
        if value in plan.slots:
            lines.append(f"  w[{plan.slots[value]}] = v{value};")
    here, last = {value for (value,) in plan.chunks[k]}, k == len(plan.chunks) - 1
    computed = {value for chunk in plan.chunks for (value,) in chunk}
    names = port_names(program)[len(program.inputs) :]
    for (port, _), results in zip(names, program.results, strict=True):
        for j, value in enumerate(results):
            if value in here or (last and value not in computed):
                lines.append(f"  {port}[{j}] = {writer.operand(value)};")
    return lines


class _Writer:
    """Statements of one C function; a local variable per value that it computes."""

    def __init__(self, plan: Plan, sincos: str) -> None:
        self.plan, self.program, self._sincos = plan, plan.program, sincos
        self.local: set[int] = set()
        self._angles: set[int] = set()
        names = port_names(self.program)[: len(self.program.inputs)]
        self.inputs = [f"{port}[{j}]" for port, size in names for j in range(size)]

    def operand(self, value: int) -> str:
        if value in self.local:
            return f"v{value}"
        if value < self.program.first_constant:
            return self.inputs[value]
        if value < self.program.first_result:
            return literal(self.program.constants[value - self.program.first_constant])
        return f"w[{self.plan.slots[value]}]"

    def statements(self, value: int) -> list[str]:
        operation, arguments = self.program.instructions[value - self.program.first_result]
        x = [self.operand(argument) for argument in arguments]
        before: list[str] = []
        if operation in _INFIX:
            text = f"{x[0]} {_INFIX[operation]} {x[1]}"
        elif operation in _COMPARISONS:
            text = f"(double)({x[0]} {_COMPARISONS[operation]} {x[1]})"
        elif operation in _FORMS:
            text = _FORMS[operation].format(*x)
        elif operation in ("sin", "cos"):
            before, text = self.sincos(arguments[0]), f"{operation[0]}{arguments[0]}"
        else:
            text = f"{operation}({', '.join(x)})"
        self.local.add(value)
        return [*before, f"  const double v{value} = {text};"]

    def sincos(self, angle: int) -> list[str]:
        """Both of an angle, as ``s<angle>`` and ``c<angle>``, where they are not there yet."""
        if angle in self._angles:
            return []
        self._angles.add(angle)
        x = self.operand(angle)
        return [f"  double s{angle}, c{angle}; {self._sincos}({x}, &s{angle}, &c{angle});"]


def literal(value: float) -> str:
    """A constant that a C compiler reads back to the last bit."""
    if math.isnan(value):
        return "NAN"
    text = "INFINITY" if math.isinf(value) else repr(abs(value))
    return text if math.copysign(1.0, value) > 0 else f"(-{text})"


def port_names(program: Program) -> list[Port]:
    """Inputs and outputs under names that C takes, each different."""
    found: list[Port] = []
    for port in (*program.inputs, *program.outputs):
        name = re.sub(r"\W", "_", port.name, flags=re.ASCII)
        taken = {other.name for other in found} | _RESERVED
        while name in taken or not re.match(r"[A-Za-z_]", name) or re.fullmatch(r"[vsc]\d+", name):
            name = f"x_{name}"
        found.append(Port(name, port.size))
    return found


def _parameters(program: Program, restrict: str = "") -> str:
    names = [port for port, _ in port_names(program)]
    count = len(program.inputs)
    inputs = [f"const double *{restrict}{port}" for port in names[:count]]
    return ", ".join([*inputs, *(f"double *{restrict}{port}" for port in names[count:])])


def comment(lines: Sequence[str]) -> list[str]:
    """A C comment; nothing in the lines can end it early."""
    safe = [line.replace("*/", "* /").replace("/*", "/ *") for line in lines]
    wrapped = [part for line in safe for part in _wrap(line)]
    return ["/*", *(f" * {line}".rstrip() for line in wrapped), " */"]


def _wrap(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())] + "  "
    return textwrap.wrap(line, 95, subsequent_indent=indent, break_long_words=False) or [""]
