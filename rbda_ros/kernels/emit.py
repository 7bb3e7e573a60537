"""A plan written as LLVM IR, for one state or for several in the lanes of vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from rbda_ros.cluster_tree.cancelling import cancellable
from rbda_ros.kernels.llvm_text import Lanes, literal
from rbda_ros.kernels.plan import Plan, padded_count
from rbda_ros.kernels.program import Program
from rbda_ros.kernels.writer import Writer, declaration


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
    for k in cancellable(range(len(plan.chunks))):
        found[f"chunk{k}"] = _chunk(plan, k, lanes)
    return found


def _angles(plan: Plan, lanes: Lanes, together: int) -> str:
    writer = Writer(plan, lanes)
    for value in plan.before:
        writer.compute((value,))
    if lanes.count > 1:
        for i, angle in enumerate(plan.angles):
            sine, cosine = writer.sincos(angle)
            writer.store(sine, "%w", i)
            writer.store(cosine, "%w", len(plan.angles) + i)
        return writer.module("angles")

    wide = Lanes(together)
    padded = padded_count(plan.angles, together)
    for start in range(0, len(plan.angles), together):
        vector = literal(0.0, wide)
        for k, angle in enumerate(plan.angles[start : start + together]):
            x = writer.operand((angle,))
            if together == 1:
                vector = x
            else:
                vector = writer.name(f"insertelement {wide.type} {vector}, double {x}, i64 {k}")
        both = writer.name(f"call {wide.pair} @sincos({wide.type} {vector})")
        for part, slot in enumerate((start, padded + start)):
            half = writer.name(f"extractvalue {wide.pair} {both}, {part}")
            where = writer.name(f"getelementptr double, ptr %w, i64 {slot}")
            writer.lines.append(f"  store {wide.type} {half}, ptr {where}, align 8")
    return writer.module("angles", wide)


def _chunk(plan: Plan, k: int, lanes: Lanes) -> str:
    program, writer = plan.program, Writer(plan, lanes)
    where: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for i, results in enumerate(program.results):
        for j, value in enumerate(results):
            where[value].append((i, j))
    for pack in plan.chunks[k]:
        writer.compute(pack)
        if pack[0] in plan.slots:
            writer.store(writer.operand(pack), "%w", plan.slots[pack[0]], writer.of(pack))
        for value in pack:
            for i, j in where.pop(value, ()):
                writer.store(writer.operand((value,)), f"%o{i}", j)
    if k == plan.answering - 1:  # inputs, constants and early sines are given out at the end
        computed = {value for chunk in plan.chunks for pack in chunk for value in pack}
        for value in where.keys() - computed:
            if program.is_zero(value):
                writer.clear(where[value])
            else:
                for i, j in where[value]:
                    writer.store(writer.operand((value,)), f"%o{i}", j)
    return writer.module(f"chunk{k}")


def entry(plan: Plan, sizes: Mapping[str, int], counter: bool = False) -> str:
    """The module of IR that evaluates a plan for one state, by the functions of it.

    ``void evaluate(inputs..., outputs...)`` takes a pointer for each, and ``void
    evaluate_ports(ports)`` an array of these pointers. In a control loop that wakes up, most of the
    time of a call would be spent waiting for code, cache line by cache line. So all functions are
    fetched at once after the first one, if that took so long that its code was not in the caches.

    Args:
        plan: what is evaluated, with the work array on the stack.
        sizes: bytes of code of each function, in the order of their calls.
        counter: whether programs may read the processor's counter of cycles; if not, the others
            are fetched in every call.
    """
    program = plan.program
    given_ports = ports(program)
    constants = ", ".join(f"double {literal(value)}" for value in plan.constants or (0.0,))
    size = max(len(plan.constants), 1)
    given = ", ".join([*given_ports, "ptr @constants", "ptr %w"])
    others = list(sizes)[1:]
    fetch = [f"  call void @fetch(ptr @{other}, i64 {sizes[other] // LINE})" for other in others]
    calls = [f"  call void @{function}({given})" for function in sizes]
    declared = [_FETCH]
    if counter and others:
        declared.append("declare i64 @llvm.readcyclecounter()")
        limit = CYCLES + CYCLES_OF_AN_ANGLE * len(plan.angles)
        calls[:1] = [
            "  %begun = call i64 @llvm.readcyclecounter()",
            calls[0],
            "  %ended = call i64 @llvm.readcyclecounter()",
            "  %taken = sub i64 %ended, %begun",
            f"  %cold = icmp ugt i64 %taken, {limit}",
            "  br i1 %cold, label %fetching, label %fetched",
            "fetching:",
            *fetch,
            "  br label %fetched",
            "fetched:",
        ]
    else:
        calls[1:1] = fetch
    return "\n".join(
        [
            f"@constants = internal constant [{size} x double] [{constants}], align 64",
            *(declaration(program, function) for function in sizes),
            *declared,
            f"define void @evaluate({', '.join(given_ports)}) nounwind {{",
            f"  %w = alloca [{max(plan.work, 1)} x double], align 64",
            *calls,
            "  ret void",
            "}",
            *through_ports(program, "evaluate"),
        ]
    )


CYCLES, CYCLES_OF_AN_ANGLE = 250, 8
"""Cycles of the first function above which code counts as not in the caches. Hot calls of robots of
7 to 38 joints take as long as without fetching; cold forward dynamics of talos half as long."""
LINE = 64
"""Bytes of a cache line; where lines are longer, some are asked for twice."""
_FETCH = f"""declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define internal void @fetch(ptr %from, i64 %lines) noinline nounwind {{
  br label %next
next:
  %k = phi i64 [ 0, %0 ], [ %following, %next ]
  %at = getelementptr [{LINE} x i8], ptr %from, i64 %k
  call void @llvm.prefetch.p0(ptr %at, i32 0, i32 2, i32 1)
  %following = add i64 %k, 1
  %more = icmp ult i64 %following, %lines
  br i1 %more, label %next, label %done
done:
  ret void
}}"""


def ports(program: Program) -> list[str]:
    """Pointers to inputs, then outputs."""
    inputs, outputs = range(len(program.inputs)), range(len(program.outputs))
    return [*(f"ptr %i{i}" for i in inputs), *(f"ptr %o{i}" for i in outputs)]


def through_ports(program: Program, function: str, *others: str) -> list[str]:
    """``function_ports``: calls a function with ports from an array, and with other arguments."""
    loads = []
    for i, port in enumerate(ports(program)):
        name = port.removeprefix("ptr ")
        loads.append(f"  {name}.at = getelementptr ptr, ptr %ports, i64 {i}")
        loads.append(f"  {name} = load ptr, ptr {name}.at")
    return [
        f"define void @{function}_ports({', '.join(['ptr %ports', *others])}) nounwind {{",
        *loads,
        f"  call void @{function}({', '.join([*ports(program), *others])})",
        "  ret void",
        "}",
    ]
