"""The operations of a robot as C: each from its record in `robot/operations.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rbda_ros.exports.c_builder import PAYLOAD, Builder, KernelCode, Memory, Parameter
from rbda_ros.kernels.quantities import QUANTITIES
from rbda_ros.robot.operations import OPERATIONS, SIGNS, Operation, Step

WITH = ("", "_with_wrenches", "_with_friction", "_with_wrenches_and_friction")
"""Endings of functions that take wrenches, or count friction: the engine's variants."""


def operation_names() -> list[str]:
    """Every operation that can be exported, with its variants."""
    names: list[str] = []
    for name, record in OPERATIONS.items():
        names += [f"{name}{ending}" for ending in (WITH if record.wrenches else ("",))]
    return names


def add_operation(builder: Builder, name: str, frames: Sequence[str]) -> None:
    """Add the functions of an operation, one for each frame where it is about frames."""
    record, variant = OPERATIONS.get(name), 0
    for k, ending in enumerate(WITH[1:], start=1):
        base = OPERATIONS.get(name.removesuffix(ending))
        if name.endswith(ending) and base is not None and base.wrenches:
            record, variant = base, k
    assert record is not None
    if record.wrenches:
        record = record.with_options(bool(variant & 1), bool(variant & 2))
    record = record.for_size(builder.robot.ny)
    if not record.of_frame:
        _add(builder, record, name)
    for frame in frames if record.of_frame else ():
        options: tuple[Any, ...] = (builder.robot._inputs.frame(frame),)
        _add(builder, record, f"{name}_{c_identifier(frame)}", *options, label=f"_{frame}")


def c_identifier(name: str) -> str:
    """A name as part of a C identifier."""
    return "".join(each if each.isascii() and each.isalnum() else "_" for each in name)


def _add(builder: Builder, record: Operation, name: str, *options: Any, label: str = "") -> None:
    steps = [_kernel(builder, step, options, c_identifier(label)) for step in record.steps]
    ports = [_ports(builder, *each) for each in zip(record.steps, steps, strict=True)]
    sizes = record.slots(((each.keys(), each.values()) for each in ports), builder.robot.ny)
    if record.solves:
        sizes["columns"] = len(record.results) * builder.robot.ny**2
    memory = Memory(builder)
    slot = {each: memory.take(f"s_{each}", n) for each, n in sizes.items() if each != PAYLOAD}
    slot[PAYLOAD] = f"w->{PAYLOAD}"
    body = [*memory.lines, f"Status status = {builder.name}_begin(w);"]
    given: list[Parameter] = []
    for argument in record.arguments:
        given.append(Parameter(*_described(argument.name, argument.read_as, sizes)))
        call = f"{builder.name}_read_vector(w, {given[-1].name}, {sizes[argument.read_as]}, "
        if argument.kind == "Position":
            call = f"{builder.name}_read_position(w, {given[-1].name}, "
        body.append(f"if (status == GOOD) status = {call}{slot[argument.read_as]});")
    if "zero" in sizes:
        body.append(f"memset({slot['zero']}, 0, {sizes['zero']} * sizeof(double));")
    body.append("if (status == GOOD) {")
    for step, kernel, names in zip(record.steps, steps, ports, strict=True):
        body.append(f"  {_step(step, kernel, [slot[each] for each in names], builder.robot.ny)}")
    if record.finite is not None:
        missed = slot.get("loop_residual", "NULL")
        body.append(
            f"  status = judge_results({slot[record.finite]}, {sizes[record.finite]}, {missed},"
            f" {sizes.get('loop_residual', 0)}, {builder.upper}_ON_LOOPS);"
        )
    body.append("}")
    if record.solves:
        body += _solved(builder, record, slot)
    outputs = [_output(each, sizes, [p.name for p in given]) for each in record.results]
    body.append(f"if (status != GOOD) return ({builder.name}_status)status;")
    body += [
        f"memcpy({output.name}, {slot[each]}, {sizes[each]} * sizeof(double));"
        for each, output in zip(record.results, outputs, strict=True)
    ]
    body.append(f"return {builder.upper}_OK;")
    about = [f"{name}: {record.documentation.splitlines()[0]}"]
    builder.function(name, about, [*given, *outputs], body)


def _kernel(
    builder: Builder, step: Step, options: tuple[Any, ...], label: str
) -> KernelCode | None:
    if step.kernel in SIGNS:
        return None
    return builder.kernel(step.kernel, *options, label=label)


def _ports(builder: Builder, step: Step, kernel: KernelCode | None) -> dict[str, int]:
    """Names of the ports of a step, and how many numbers each has."""
    if kernel is None:
        return dict.fromkeys(step.names(3), builder.robot.ny)
    ports = (*kernel.program.inputs, *kernel.program.outputs)
    names = step.names(len(ports), *([PAYLOAD] if kernel.takes_payload else []))
    return dict(zip(names, (port.size for port in ports), strict=True))


def _step(step: Step, kernel: KernelCode | None, ports: list[str], ny: int) -> str:
    if kernel is not None:
        return f"{kernel.function}({', '.join(ports)});"
    one, other, total = ports
    return f"for (int k = 0; k < {ny}; k++) {total}[k] = {one}[k] {step.kernel} {other}[k];"


def _solved(builder: Builder, record: Operation, slot: dict[str, str]) -> list[str]:
    """``-H^-1`` times all results but the last, which is ``H^-1``."""
    tree, ny = builder.robot.tree, builder.robot.ny
    above: list[list[int]] = []
    for parent in tree.independent_parents:
        above.append([parent, *above[parent]] if parent >= 0 else [])
    below = [[i for i in range(ny - 1, k, -1) if k in above[i]] for k in range(ny)]
    tables: list[str] = []
    for name, lists in (("above", above), ("below", below)):
        start = [sum(map(len, lists[:k])) for k in range(ny + 1)]
        tables.append(builder.indices(f"branch_start_{name}", start))
        tables.append(builder.indices(f"branch_{name}", [i for each in lists for i in each]))
    branches = f"static const Branches {builder.name}_branches = {{{ny}, {', '.join(tables)}}};"
    if branches not in builder.source:
        builder.source.append(branches)
    builder.uses.add("branches")
    H, work, inverse = slot[record.solved], slot["columns"], slot["inverse"]
    matrices = [slot[each] for each in record.results[:-1]]
    if not matrices:
        inverted = f"invert_by_branches(&{builder.name}_branches, {H}, {work}, {inverse})"
        return [f"if (status == GOOD && !{inverted}) status = SINGULAR;"]
    count = len(matrices)
    return [
        "if (status == GOOD) {",
        f"  double *B[{count}];",
        *(f"  B[{i}] = {each};" for i, each in enumerate(matrices)),
        f"  if (!factor_by_branches({tables[0]}, {tables[1]}, {ny}, {H}))",
        "    status = SINGULAR;",
        "  else",
        f"    solve_by_branches(&{builder.name}_branches, {H}, B, {count}, {work}, {inverse});",
        "}",
    ]


def _described(name: str, quantity: str, sizes: dict[str, int]) -> tuple[str, int, str]:
    known = QUANTITIES.get(quantity) or QUANTITIES.get(name)
    meaning = f"{known.meaning}{f' [{known.unit}]' if known.unit else ''}" if known else quantity
    return ("yd" if quantity == "yd" else name), sizes[quantity], meaning


def _output(quantity: str, sizes: dict[str, int], taken: Sequence[str]) -> Parameter:
    name, size, meaning = _described(quantity, quantity, sizes)
    name = f"{name}_out" if name in taken else name
    rows = ", row by row" if len(QUANTITIES[quantity].shape) > 1 else ""
    return Parameter(name, size, meaning + rows, output=True)
