"""The body of one function in LLVM IR: the instructions of a program, or of a part of it.

The code rounds as the program says (`program.py`): a product is fused with a sum where the program
has one instruction for both, and nowhere else. There is no fast-math flag, and the floating-point
state of the thread is never touched. So one state and many give the same bits, as exported C does.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from rbda_ros.kernels.llvm_text import LIBRARY_DECLARATIONS, Lanes, library_call, literal
from rbda_ros.kernels.packing import Pack
from rbda_ros.kernels.plan import Plan
from rbda_ros.kernels.program import FUSED, Program
from rbda_ros.kernels.sincos import sincos_definition

_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul"}
_COMPARISONS = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
_MEMSET = "@llvm.memset.p0.i64"
_NEVER_WRITTEN = "!invariant.load !0"
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

    Constants are read from memory because LLVM would spend two instructions on each; for several
    states each is there in every lane.
    """
    inputs = [f"ptr noalias nocapture readonly %i{i}" for i in range(len(program.inputs))]
    outputs = [f"ptr noalias nocapture %o{i}" for i in range(len(program.outputs))]
    others = ["ptr noalias nocapture readonly %k", "ptr noalias nocapture %w"]
    return ", ".join([*inputs, *outputs, *others])


def declaration(program: Program, name: str) -> str:
    """A function that `Writer.module` defines in another module."""
    return f"declare void @{name}({', '.join(['ptr'] * pointers(program))})"


def pointers(program: Program) -> int:
    """How many `parameters` there are."""
    return len(program.inputs) + len(program.outputs) + 2


class Writer:
    """The body of one function; values are loaded at their first use.

    Operands are given by the values in their lanes. A pack of one stands for a number, which in
    a batch is one for each of several states; there nothing else is packed.

    Args:
        plan: what the function is of.
        lanes: states evaluated at once.
    """

    def __init__(self, plan: Plan, lanes: Lanes) -> None:
        self.plan, self.lanes = plan, lanes
        self.program = plan.program
        self.lines: list[str] = []
        self.count = 0
        self.operands: dict[Pack, str] = {}
        self.lane_of: dict[int, tuple[Pack, int]] = {}
        self.pairs: dict[int, tuple[str, str]] = {}
        self.intrinsics: dict[tuple[str, Lanes], int] = {}
        self.has_sincos = self.clears = False
        self.places = [
            (f"%i{i}", j) for i, port in enumerate(self.program.inputs) for j in range(port.size)
        ]

    def of(self, pack: Pack) -> Lanes:
        """The vectors that a pack is computed in."""
        return self.lanes if len(pack) == 1 else Lanes(len(pack))

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
            self.intrinsics |= {("fabs", wide): 1, ("fma", wide): 3}
        if self.clears:
            lines.append(f"declare void {_MEMSET}(ptr, i8, i64, i1)")
        lines += ["!0 = !{}", LIBRARY_DECLARATIONS]
        lines += [_declare(*key, count) for key, count in self.intrinsics.items()]
        return "\n".join(lines)

    def name(self, text: str) -> str:
        """Append an instruction; the name of its result."""
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def pointer(self, base: str, index: int) -> str:
        """An entry of an array, by index."""
        if index == 0:
            return base
        return self.name(f"getelementptr {self.lanes.type}, ptr {base}, i64 {index}")

    def store(self, value: str, base: str, index: int, lanes: Lanes | None = None) -> None:
        """Append a store into an entry of an array; of a pack, into a row of them."""
        where, T = self.pointer(base, index), (lanes or self.lanes).type
        self.lines.append(f"  store {T} {value}, ptr {where}, align {self.lanes.bytes}")

    def clear(self, places: Iterable[tuple[int, int]]) -> None:
        """Write zeros to entries of outputs, rows of them at once: a mass matrix has many."""
        rows: list[tuple[int, int, int]] = []  # output, first entry, end
        for i, j in sorted(places):
            if rows and (i, j) == (rows[-1][0], rows[-1][2]):
                rows[-1] = (i, rows[-1][1], j + 1)
            else:
                rows.append((i, j, j + 1))
        for i, start, end in rows:
            where, size = self.pointer(f"%o{i}", start), self.lanes.bytes * (end - start)
            self.lines.append(
                f"  call void {_MEMSET}(ptr align 8 {where}, i8 0, i64 {size}, i1 false)"
            )
        self.clears = True

    def operand(self, lanes: Pack) -> str:
        """The text that stands for a value, or for a vector of some."""
        if lanes not in self.operands:
            alone = len(lanes) == 1
            self.operands[lanes] = self.scalar(*lanes) if alone else self.vector(lanes)
        return self.operands[lanes]

    def scalar(self, value: int) -> str:
        """A value: from a pack, a constant, or from memory."""
        if value in self.lane_of:
            pack, lane = self.lane_of[value]
            return self.name(
                f"extractelement {self.of(pack).type} {self.operands[pack]}, i64 {lane}"
            )
        where = self.pointer(*self.place(value))
        never_written = f", {_NEVER_WRITTEN}" if self.program.is_constant(value) else ""
        return self.name(
            f"load {self.lanes.type}, ptr {where}, align {self.lanes.bytes}{never_written}"
        )

    def place(self, value: int) -> tuple[str, int]:
        """Where an input, a constant, or a value of an earlier chunk is in memory."""
        if value < self.program.first_constant:
            return self.places[value]
        if self.program.is_constant(value):
            return "%k", value - self.program.first_constant
        return "%w", self.plan.slots[value]

    def vector(self, lanes: Pack) -> str:
        """A vector: one value in every lane, a row in memory, or put together."""
        wide = self.of(lanes)
        if len(set(lanes)) == 1:
            return self.spread(self.operand(lanes[:1]), wide)
        if lanes in self.plan.packed_constants:
            where = self.pointer("%k", self.plan.packed_constants[lanes])
            return self.name(f"load {wide.type}, ptr {where}, align 8, {_NEVER_WRITTEN}")
        if self.in_a_row(lanes):
            where = self.pointer(*self.place(lanes[0]))
            return self.name(f"load {wide.type}, ptr {where}, align 8")
        vector = "poison"
        for k, value in enumerate(lanes):
            x = self.operand((value,))
            vector = self.name(f"insertelement {wide.type} {vector}, double {x}, i64 {k}")
        return vector

    def signed(self, lanes: Pack, signs: tuple[int, ...]) -> str:
        """A vector with some of its lanes negative."""
        x, T = self.operand(lanes), self.of(lanes).type
        if len(set(signs)) == 1:
            return x if signs[0] > 0 else self.name(f"fneg {T} {x}")
        return self.name(f"fmul {T} {x}, {_factors(signs)}")

    def in_a_row(self, lanes: Pack) -> bool:
        """Whether values from before this function are side by side in memory."""
        if any(self.program.is_constant(value) or value in self.lane_of for value in lanes):
            return False
        base, start = self.place(lanes[0])
        return [self.place(v) for v in lanes] == [(base, start + k) for k in range(len(lanes))]

    def spread(self, x: str, lanes: Lanes) -> str:
        """A double in every lane."""
        T = lanes.type
        x = self.name(f"insertelement {T} poison, double {x}, i64 0")
        mask = f"<{lanes.count} x i32> zeroinitializer"
        return self.name(f"shufflevector {T} {x}, {T} poison, {mask}")

    def compute(self, pack: Pack) -> None:
        """Append an instruction of the program."""
        instruction = self.program.instructions[pack[0] - self.program.first_result]
        if instruction.operation in ("sin", "cos"):
            pair = self.sincos(instruction.arguments[0])
            self.operands[pack] = pair[instruction.operation == "cos"]
        elif len(pack) == 1:
            given = [self.operand((argument,)) for argument in instruction.arguments]
            self.operands[pack] = self.operation(instruction.operation, self.lanes, *given)
        else:
            self.operands[pack] = self.packed(instruction.operation, pack)
        self.lane_of |= {value: (pack, k) for k, value in enumerate(pack)}

    def packed(self, operation: str, pack: Pack) -> str:
        """Append the vector instruction of a pack; differences are sums of signed operands."""
        operands, wide = self.plan.operands(pack), self.of(pack)
        if operation in ("add", "sub"):
            for (lanes, signs), other in itertools.permutations(operands):
                if len(set(signs)) > 1:  # the product with +-1 is exact, so the sum rounds alike
                    x, y = self.operand(lanes), self.signed(*other)
                    return self.intrinsic("fma", wide, x, _factors(signs), y)
        given = [self.signed(*operand) for operand in operands]
        name = "add" if operation == "sub" else "fma" if operation in FUSED else operation
        return self.operation(name, wide, *given)

    def sincos(self, angle: int) -> tuple[str, str]:
        """Sine and cosine of a value, evaluated together."""
        if angle not in self.pairs:
            self.has_sincos = True
            T, pair = self.lanes.type, self.lanes.pair
            both = self.name(f"call {pair} @sincos({T} {self.operand((angle,))})")
            sine, cosine = (self.name(f"extractvalue {pair} {both}, {part}") for part in (0, 1))
            self.pairs[angle] = sine, cosine
        return self.pairs[angle]

    def operation(self, operation: str, lanes: Lanes, x: str, y: str = "", z: str = "") -> str:
        """Append an operation on operands, with the meaning that `OPERATIONS` and `FUSED` tell."""
        T, B = lanes.type, lanes.boolean
        zero, one = literal(0.0, lanes), literal(1.0, lanes)
        match operation:
            case "add" | "sub" | "mul":
                return self.name(f"{_ARITHMETIC[operation]} {T} {x}, {y}")
            case "sq":
                return self.name(f"fmul {T} {x}, {x}")
            case "twice":
                return self.name(f"fadd {T} {x}, {x}")
            case "fma" | "fms" | "fnma":
                product, addend = FUSED[operation]
                x = x if product > 0 else self.name(f"fneg {T} {x}")
                z = z if addend > 0 else self.name(f"fneg {T} {z}")
                return self.intrinsic("fma", lanes, x, y, z)
            case "div":
                return self.name(f"fdiv {T} {x}, {y}")
            case "inv":
                return self.name(f"fdiv {T} {one}, {x}")
            case "neg":
                return self.name(f"fneg {T} {x}")
            case "lt" | "le" | "eq" | "ne":
                return self.number(self.name(f"fcmp {_COMPARISONS[operation]} {T} {x}, {y}"), lanes)
            case "not":
                return self.number(self.name(f"fcmp oeq {T} {x}, {zero}"), lanes)
            case "and" | "or":
                both = f"{operation} {B} {self.truth(x, lanes)}, {self.truth(y, lanes)}"
                return self.number(self.name(both), lanes)
            case "if_else_zero":
                return self.name(f"select {B} {self.truth(x, lanes)}, {T} {y}, {T} {zero}")
            case "sign":
                size = self.intrinsic("copysign", lanes, one, x)
                nonzero = self.name(f"fcmp one {T} {x}, {zero}")
                return self.name(f"select {B} {nonzero}, {T} {size}, {T} {x}")
        if operation in _INTRINSICS:
            return self.intrinsic(_INTRINSICS[operation], lanes, x, *([y] if y else []))
        self.count += 1
        result = f"%t{self.count}"
        self.lines += library_call(operation, result, [x, y] if y else [x], lanes)
        return result

    def truth(self, x: str, lanes: Lanes) -> str:
        """A number as a boolean."""
        return self.name(f"fcmp une {lanes.type} {x}, {literal(0.0, lanes)}")

    def number(self, boolean: str, lanes: Lanes) -> str:
        """A boolean as 0 or 1."""
        return self.name(f"uitofp {lanes.boolean} {boolean} to {lanes.type}")

    def intrinsic(self, name: str, lanes: Lanes, *operands: str) -> str:
        """Append a call of a function that LLVM knows."""
        self.intrinsics[name, lanes] = len(operands)
        T = lanes.type
        given = ", ".join(f"{T} {x}" for x in operands)
        return self.name(f"call {T} @llvm.{name}.{lanes.suffix}({given})")


def _factors(signs: tuple[int, ...]) -> str:
    """A vector of +-1."""
    return f"<{', '.join(f'double {literal(float(sign))}' for sign in signs)}>"


def _declare(intrinsic: str, lanes: Lanes, count: int) -> str:
    types: Iterable[str] = [lanes.type] * count
    return f"declare {lanes.type} @llvm.{intrinsic}.{lanes.suffix}({', '.join(types)})"
