"""A plan written as LLVM IR, for one state or for several in the lanes of vectors.

The code rounds as CasADi's virtual machine does, but for one liberty: a product and the sum it
goes into may be fused, with one rounding in place of two. A program that takes roots or compares
does not use it, because a difference that is exactly zero must stay so. There is no other
fast-math flag, and the floating-point state of the thread is never touched.
"""

from __future__ import annotations

from collections.abc import Iterable

from rbda_ros.kernels.llvm_text import Lanes, library_call, literal
from rbda_ros.kernels.plan import Plan
from rbda_ros.kernels.program import Program
from rbda_ros.kernels.sincos import sincos_definition

_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul"}
_COMPARISONS = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
_SMOOTH = {"add", "sub", "mul", "sq", "twice", "neg", "div", "inv", "sin", "cos"}
_INTRINSICS = {
    "sqrt": "sqrt",
    "fabs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "copysign": "copysign",
    "fmin": "minnum",
    "fmax": "maxnum",
}


def parameters(program: Program) -> str:
    """The parameters of every function: a pointer per input and output, constants, work array.

    Constants are read from memory because LLVM would spend two instructions on each.
    """
    inputs = [f"ptr noalias nocapture readonly %i{i}" for i in range(len(program.inputs))]
    outputs = [f"ptr noalias nocapture %o{i}" for i in range(len(program.outputs))]
    others = ["ptr noalias nocapture readonly %k", "ptr noalias nocapture %w"]
    return ", ".join([*inputs, *outputs, *others])


def arguments(program: Program) -> str:
    """The same pointers, passed on."""
    names = [f"%i{i}" for i in range(len(program.inputs))]
    names += [f"%o{i}" for i in range(len(program.outputs))]
    return ", ".join(f"ptr {name}" for name in [*names, "%k", "%w"])


def functions(plan: Plan, lanes: Lanes, together: int) -> dict[str, str]:
    """The functions that evaluate a plan, to be called in this order: name to module of IR.

    Args:
        plan: what to write.
        lanes: states evaluated at once.
        together: angles whose sine and cosine are evaluated at once, for one state.
    """
    found = {}
    if plan.angles:
        found["angles"] = _angles(plan, lanes, together)
    for k in range(len(plan.chunks)):
        found[f"chunk{k}"] = _chunk(plan, k, lanes)
    return found


def _angles(plan: Plan, lanes: Lanes, together: int) -> str:
    writer = _Writer(plan, lanes)
    for value in plan.before:
        writer.compute(value)
    if lanes.count > 1:
        for i, angle in enumerate(plan.angles):
            sine, cosine = writer.sincos(angle)
            writer.store(sine, "%w", i)
            writer.store(cosine, "%w", len(plan.angles) + i)
        return writer.module("angles")

    wide = Lanes(together)
    padded = -(-len(plan.angles) // together) * together
    pair = f"{{ {wide.type}, {wide.type} }}"
    for start in range(0, len(plan.angles), together):
        vector = literal(0.0, wide)
        for k, angle in enumerate(plan.angles[start : start + together]):
            x = writer.operand(angle)
            if together == 1:
                vector = x
            else:
                vector = writer.name(f"insertelement {wide.type} {vector}, double {x}, i64 {k}")
        both = writer.name(f"call {pair} @sincos({wide.type} {vector})")
        for part, slot in enumerate((start, padded + start)):
            half = writer.name(f"extractvalue {pair} {both}, {part}")
            where = writer.name(f"getelementptr double, ptr %w, i64 {slot}")
            writer.lines.append(f"  store {wide.type} {half}, ptr {where}, align 8")
    return writer.module("angles", wide)


def _chunk(plan: Plan, k: int, lanes: Lanes) -> str:
    writer, program = _Writer(plan, lanes), plan.program
    for value in plan.chunks[k]:
        writer.compute(value)
        if value in plan.slots:
            writer.store(writer.operand(value), "%w", plan.slots[value])
    here, last = set(plan.chunks[k]), k == len(plan.chunks) - 1
    computed = {value for chunk in plan.chunks for value in chunk}
    for i, results in enumerate(program.results):
        for j, value in enumerate(results):
            # Inputs, constants and early sines are given out at the end.
            if value in here or (last and value not in computed):
                writer.store(writer.operand(value), f"%o{i}", j)
    return writer.module(f"chunk{k}")


class _Writer:
    """The body of one function; values are loaded at their first use."""

    def __init__(self, plan: Plan, lanes: Lanes) -> None:
        self.plan, self.lanes = plan, lanes
        self.program = plan.program
        self.lines: list[str] = []
        self.count = 0
        self.operands: dict[int, str] = {}
        self.pairs: dict[int, tuple[str, str]] = {}
        self.intrinsics: dict[str, int] = {}
        self.has_sincos = False
        operations = {instruction.operation for instruction in self.program.instructions}
        self.fused = "contract" if operations <= _SMOOTH else ""
        self.places = [
            (f"%i{i}", j) for i, port in enumerate(self.program.inputs) for j in range(port.size)
        ]

    def module(self, name: str, sincos: Lanes | None = None) -> str:
        """The finished function, with what it calls."""
        lines = [
            f"define void @{name}({parameters(self.program)}) nounwind {self.lanes.attributes} {{",
            *self.lines,
            "  ret void",
            "}",
        ]
        wide = sincos or self.lanes
        if sincos or self.has_sincos:
            lines.append(sincos_definition(wide))
            lines.append(_declare("fabs", 1, wide))
        lines.append("!0 = !{}")
        for intrinsic, count in self.intrinsics.items():
            if not (intrinsic == "fabs" and self.has_sincos):
                lines.append(_declare(intrinsic, count, self.lanes))
        return "\n".join(lines)

    def name(self, text: str) -> str:
        """Append an instruction; the name of its result."""
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def pointer(self, base: str, index: int) -> str:
        if index == 0:
            return base
        return self.name(f"getelementptr {self.lanes.type}, ptr {base}, i64 {index}")

    def store(self, value: str, base: str, index: int) -> None:
        where = self.pointer(base, index)
        align = 8 * self.lanes.count
        self.lines.append(f"  store {self.lanes.type} {value}, ptr {where}, align {align}")

    def operand(self, value: int) -> str:
        """The text that stands for a value."""
        if value not in self.operands:
            program = self.program
            if program.first_constant <= value < program.first_result:
                self.operands[value] = self.constant(value - program.first_constant)
            else:
                early = value < program.first_constant
                base, index = self.places[value] if early else ("%w", self.plan.slots[value])
                where, align = self.pointer(base, index), 8 * self.lanes.count
                self.operands[value] = self.name(
                    f"load {self.lanes.type}, ptr {where}, align {align}"
                )
        return self.operands[value]

    def constant(self, index: int) -> str:
        """A constant of the program, in every lane."""
        T, count = self.lanes.type, self.lanes.count
        where = self.name(f"getelementptr double, ptr %k, i64 {index}")
        x = self.name(f"load double, ptr {where}, !invariant.load !0")
        if count > 1:
            x = self.name(f"insertelement {T} poison, double {x}, i64 0")
            mask = f"<{count} x i32> zeroinitializer"
            x = self.name(f"shufflevector {T} {x}, {T} poison, {mask}")
        return x

    def compute(self, value: int) -> None:
        """Append an instruction of the program."""
        instruction = self.program.instructions[value - self.program.first_result]
        if instruction.operation in ("sin", "cos"):
            pair = self.sincos(instruction.arguments[0])
            self.operands[value] = pair[instruction.operation == "cos"]
        else:
            given = [self.operand(argument) for argument in instruction.arguments]
            self.operands[value] = self.operation(instruction.operation, *given)

    def sincos(self, angle: int) -> tuple[str, str]:
        """Sine and cosine of a value, evaluated together."""
        if angle not in self.pairs:
            self.has_sincos = True
            T = self.lanes.type
            both = self.name(f"call {{ {T}, {T} }} @sincos({T} {self.operand(angle)})")
            sine, cosine = (
                self.name(f"extractvalue {{ {T}, {T} }} {both}, {part}") for part in (0, 1)
            )
            self.pairs[angle] = sine, cosine
        return self.pairs[angle]

    def operation(self, operation: str, x: str, y: str = "") -> str:
        """Append an operation on operands, with the meaning that `OPERATIONS` tells."""
        T, B = self.lanes.type, self.lanes.boolean
        zero, one = literal(0.0, self.lanes), literal(1.0, self.lanes)
        match operation:
            case "add" | "sub" | "mul":
                return self.name(f"{_ARITHMETIC[operation]} {self.fused} {T} {x}, {y}")
            case "sq":
                return self.name(f"fmul {self.fused} {T} {x}, {x}")
            case "twice":
                return self.name(f"fadd {self.fused} {T} {x}, {x}")
            case "div":
                return self.name(f"fdiv {T} {x}, {y}")
            case "inv":
                return self.name(f"fdiv {T} {one}, {x}")
            case "neg":
                return self.name(f"fneg {T} {x}")
            case "lt" | "le" | "eq" | "ne":
                return self.number(self.name(f"fcmp {_COMPARISONS[operation]} {T} {x}, {y}"))
            case "not":
                return self.number(self.name(f"fcmp oeq {T} {x}, {zero}"))
            case "and" | "or":
                both = f"{operation} {B} {self.truth(x)}, {self.truth(y)}"
                return self.number(self.name(both))
            case "if_else_zero":
                return self.name(f"select {B} {self.truth(x)}, {T} {y}, {T} {zero}")
            case "sign":
                size = self.intrinsic("copysign", one, x)
                nonzero = self.name(f"fcmp one {T} {x}, {zero}")
                return self.name(f"select {B} {nonzero}, {T} {size}, {T} {x}")
        if operation in _INTRINSICS:
            return self.intrinsic(_INTRINSICS[operation], x, *([y] if y else []))
        self.count += 1
        result = f"%t{self.count}"
        self.lines += library_call(operation, result, [x, y] if y else [x], self.lanes)
        return result

    def truth(self, x: str) -> str:
        return self.name(f"fcmp une {self.lanes.type} {x}, {literal(0.0, self.lanes)}")

    def number(self, boolean: str) -> str:
        return self.name(f"uitofp {self.lanes.boolean} {boolean} to {self.lanes.type}")

    def intrinsic(self, name: str, *operands: str) -> str:
        self.intrinsics[name] = len(operands)
        T = self.lanes.type
        given = ", ".join(f"{T} {x}" for x in operands)
        return self.name(f"call {T} @llvm.{name}.{self.lanes.suffix}({given})")


def _declare(intrinsic: str, count: int, lanes: Lanes) -> str:
    types: Iterable[str] = [lanes.type] * count
    return f"declare {lanes.type} @llvm.{intrinsic}.{lanes.suffix}({', '.join(types)})"
