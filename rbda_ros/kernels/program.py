"""A straight-line program of a traced algorithm, without CasADi.

Every value has a number: first the entries of the inputs, then the constants, then the results of
the instructions in their order. An instruction reads only values with smaller numbers.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

import casadi as ca

from rbda_ros.cluster_tree.cancelling import cancellable


class UnsupportedOperationError(Exception):
    """A function has an operation that a program cannot express; the message names it."""


class Port(NamedTuple):
    """An input or output vector: its name and its number of entries, in column order."""

    name: str
    size: int


class Instruction(NamedTuple):
    """An operation (a key of `OPERATIONS`) and the numbers of the values it reads."""

    operation: str
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """Inputs, constants, instructions, and the value that each entry of an output takes.

    Attributes:
        answered: how many instructions give all outputs but the last, which checks the inputs;
            None where nothing is checked.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    constants: tuple[float, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[tuple[int, ...], ...]
    answered: int | None = None

    @property
    def first_constant(self) -> int:
        """Number of the first constant: how many entries the inputs have."""
        return sum(port.size for port in self.inputs)

    @property
    def first_result(self) -> int:
        """Number of the first instruction's result."""
        return self.first_constant + len(self.constants)

    def is_constant(self, value: int) -> bool:
        """Whether a value is a constant."""
        return self.first_constant <= value < self.first_result

    def is_zero(self, value: int) -> bool:
        """Whether a value is the constant zero."""
        zero = (0.0).hex()  # not that of -0.0
        return self.is_constant(value) and self.constants[value - self.first_constant].hex() == zero


def _counted(unary: str, binary: str) -> dict[str, int]:
    return dict.fromkeys(unary.split(), 1) | dict.fromkeys(binary.split(), 2)


LIBRARY = _counted(
    unary="sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp expm1 log log1p erf",
    binary="pow atan2 hypot fmod remainder",
)
"""Operations that are functions of <math.h>, and how many arguments they take."""

OPERATIONS = LIBRARY | _counted(
    unary="neg sq twice inv sqrt fabs sign floor ceil not",
    binary="add sub mul div fmin fmax lt le eq ne and or if_else_zero copysign",
)
"""Operations an instruction may have, and how many arguments they take.

They mean what they mean in C; truth is any value but zero.

``sq``: x*x, ``twice``: x+x, ``inv``: 1/x, ``if_else_zero``: y where x is true, else 0;
``sign`` keeps zeros and NaN; ``fmin`` and ``fmax`` prefer a number to a NaN.
"""

FUSED = {"fma": (1, 1), "fms": (1, -1), "fnma": (-1, 1)}
"""Further operations, of x, y and z: the signs of x*y and of z in a sum that is rounded once."""

_SMOOTH = {"add", "sub", "mul", "sq", "twice", "neg", "div", "inv", "sin", "cos"}
_SUMS = ("add", "sub")
_PRODUCTS = ("mul", "sq")

_NAMES = {getattr(ca, name): name[3:].lower() for name in dir(ca) if name.startswith("OP_")}
_SAME = {"constpow": "pow"}
_COPIES = {"assign", "lift"}


def read_program(function: ca.Function) -> Program:
    """The program of a CasADi SX function with dense inputs and outputs.

    Divisions by one value become products with its inverse: CasADi counts both as one
    instruction, but a division takes as long as ten products. Products are fused with sums, except
    in a program that takes roots or compares, where a difference that is exactly zero must stay so.

    Raises:
        UnsupportedOperationError: an operation has no counterpart in `OPERATIONS`.
    """
    if not function.is_a("SXFunction"):
        raise UnsupportedOperationError(f"{function.name()} is no SX function")
    program = _with_inverses(_read(function))
    smooth = {instruction.operation for instruction in program.instructions} <= _SMOOTH
    return _with_fused_products(program) if smooth else program


def _with_inverses(program: Program) -> Program:
    """The same program, with every value that divides several others inverted once."""
    divisors = Counter(
        arguments[1] for operation, arguments in program.instructions if operation == "div"
    )
    number = list(range(program.first_result))  # of each old value
    instructions: list[Instruction] = []

    def add(operation: str, *arguments: int) -> int:
        instructions.append(Instruction(operation, arguments))
        return program.first_result + len(instructions) - 1

    inverse: dict[int, int] = {}
    for operation, arguments in program.instructions:
        x = [number[argument] for argument in arguments]
        if operation == "div" and divisors[arguments[1]] > 1:
            if arguments[1] not in inverse:
                inverse[arguments[1]] = add("inv", x[1])
            number.append(add("mul", x[0], inverse[arguments[1]]))
        else:
            number.append(add(operation, *x))
    results = tuple(tuple(number[value] for value in values) for values in program.results)
    return replace(program, instructions=tuple(instructions), results=results)


def _with_fused_products(program: Program) -> Program:
    """The same program, with each product that one sum alone reads fused with that sum.

    The program decides this, not a compiler, so that machine code for one state and for many, and
    exported C, round alike. Of two products, the one of the smaller shape is fused: the same one in
    equal limbs.
    """
    first, shape = program.first_result, shapes(program)
    uses = Counter(value for _, arguments in program.instructions for value in arguments)
    uses.update(value for values in program.results for value in values)

    def can_be_fused(value: int) -> bool:
        product = value >= first and program.instructions[value - first].operation in _PRODUCTS
        return product and uses[value] == 1

    product_of: dict[int, int] = {}  # of each sum
    for value, (operation, arguments) in enumerate(program.instructions, first):
        if operation in _SUMS and (products := [*filter(can_be_fused, arguments)]):
            product_of[value] = min(products, key=shape.__getitem__)
    fused = set(product_of.values())

    number = list(range(first))  # of each old value
    instructions: list[Instruction] = []
    for value, (operation, arguments) in enumerate(program.instructions, first):
        number.append(first + len(instructions))
        if value in fused:
            continue
        if value in product_of:
            product = product_of[value]
            at = arguments.index(product)
            factors = program.instructions[product - first].arguments
            operation = "fma" if operation == "add" else ("fms", "fnma")[at]
            arguments = (factors[0], factors[-1], arguments[1 - at])
        instructions.append(Instruction(operation, tuple(number[v] for v in arguments)))
    results = tuple(tuple(number[value] for value in values) for values in program.results)
    return replace(program, instructions=tuple(instructions), results=results)


def shapes(program: Program) -> list[int]:
    """A number for each value, the same for values that differ in inputs, constants and signs.

    Mirrored limbs have sums where others have differences, and the negative of a value.
    """
    known: dict[object, int] = {}
    found = []
    for port in program.inputs:
        found += [known.setdefault(port.name, len(known))] * port.size
    found += [known.setdefault(None, len(known))] * len(program.constants)
    for operation, arguments in program.instructions:
        of = [found[argument] for argument in arguments]
        if operation == "neg":
            found.append(of[0])
            continue
        name = "sum" if operation in _SUMS else "fused" if operation in FUSED else operation
        if name in ("sum", "mul", "fused"):
            of[:2] = sorted(of[:2])
        found.append(known.setdefault((name, *of), len(known)))
    return found


def _read(function: ca.Function) -> Program:
    """Follow CasADi's registers, which are written many times, and name each value once."""
    inputs = tuple(_port(function, i, "in") for i in range(function.n_in()))
    outputs = tuple(_port(function, i, "out") for i in range(function.n_out()))
    count = function.n_instructions()
    names = [_NAMES.get(i, f"number {i}") for i in map(function.instruction_id, range(count))]
    *start, first_constant = itertools.accumulate((port.size for port in inputs), initial=0)
    constants: dict[str, tuple[int, float]] = {}  # by hex: tells -0.0 from 0.0
    for k, name in enumerate(names):
        if name == "const":
            value = float(function.instruction_constant(k))
            constants.setdefault(value.hex(), (first_constant + len(constants), value))
    first_result = first_constant + len(constants)

    register: dict[int, int] = {}
    known: dict[Instruction, int] = {}
    results = [[-1] * port.size for port in outputs]
    for k, name in enumerate(cancellable(names)):
        source, target = function.instruction_input(k), function.instruction_output(k)
        if name == "input":
            register[target[0]] = start[source[0]] + source[1]
        elif name == "const":
            constant = float(function.instruction_constant(k))
            register[target[0]] = constants[constant.hex()][0]
        elif name == "output":
            results[target[0]][target[1]] = register[source[0]]
        elif name in _COPIES:
            register[target[0]] = register[source[0]]
        else:
            name = _SAME.get(name, name)
            if name not in OPERATIONS:
                raise UnsupportedOperationError(
                    f"{function.name()} has the operation {name}, which cannot be compiled"
                )
            arguments = tuple(register[i] for i in source[: OPERATIONS[name]])
            instruction = Instruction(name, arguments)
            register[target[0]] = known.setdefault(instruction, first_result + len(known))
    if any(-1 in entries for entries in results):
        raise UnsupportedOperationError(f"{function.name()} leaves part of an output unset")
    return Program(
        name=function.name(),
        inputs=inputs,
        outputs=outputs,
        constants=tuple(value for _, value in constants.values()),
        instructions=tuple(known),
        results=tuple(map(tuple, results)),
    )


def _port(function: ca.Function, i: int, direction: str) -> Port:
    name = getattr(function, f"name_{direction}")(i)
    size = getattr(function, f"numel_{direction}")(i)
    if getattr(function, f"nnz_{direction}")(i) != size:
        raise UnsupportedOperationError(f"{name} of {function.name()} is sparse")
    return Port(name, size)


def fuse_check(program: Program, check: Program) -> Program:
    """The program, and behind it the instructions and the output of a check of its first input.

    What both compute is computed once. The numbers of the program stay what they are, to the last
    bit, whether it is checked or not.

    Args:
        program: any; the check reads the first of its inputs.
        check: of one input, with one output.
    """
    (given,), (output,) = check.inputs, check.outputs
    assert given.size == program.inputs[0].size
    constants = dict.fromkeys(value.hex() for value in (*program.constants, *check.constants))
    place = {value: program.first_constant + i for i, value in enumerate(constants)}
    first = program.first_constant + len(constants)
    shift = first - program.first_result
    instructions = [
        Instruction(operation, tuple(v + shift if v >= program.first_result else v for v in given))
        for operation, given in program.instructions
    ]
    known = {each: first + i for i, each in enumerate(instructions)}
    number = [*range(given.size), *(place[value.hex()] for value in check.constants)]
    for operation, arguments in check.instructions:
        own = Instruction(operation, tuple(number[v] for v in arguments))
        if own not in known:
            instructions.append(own)
            known[own] = first + len(instructions) - 1
        number.append(known[own])
    results = [
        tuple(v + shift if v >= program.first_result else v for v in values)
        for values in program.results
    ]
    return replace(
        program,
        outputs=(*program.outputs, output),
        constants=tuple(float.fromhex(value) for value in constants),
        instructions=tuple(instructions),
        results=(*results, tuple(number[v] for v in check.results[0])),
        answered=len(program.instructions),
    )
