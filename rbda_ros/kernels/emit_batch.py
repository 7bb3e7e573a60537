"""LLVM IR that runs a plan over many states: tiles of one state per lane, blocks of tiles.

A tile holds its inputs, outputs and work array transposed: one vector per entry, one state per
lane. What an output has several times, as a symmetric matrix with its zeros does, is there once.
The chunks of a long program do not fit the processor's instruction cache together, so each chunk
runs over all tiles of a block before the next chunk starts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rbda_ros.kernels import emit
from rbda_ros.kernels.llvm_text import Lanes
from rbda_ros.kernels.plan import Plan
from rbda_ros.kernels.program import Program
from rbda_ros.kernels.writer import declaration, parameters

CACHE = 192 * 1024
"""Bytes that a block of tiles may take: what fits the second-level cache of small processors."""
MAX_TILES = 16
"""Tiles in a block: more win nothing."""


@dataclass(frozen=True)
class Tiling:
    """Where things are in the memory of a block, counted in vectors.

    For each output, `places` are those of its entries, from where the output begins.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]
    work: int
    size: int
    tiles: int
    scratch: int

    @property
    def vectors(self) -> int:
        """Length of the memory: the tiles, then room for outputs of lanes that have no state."""
        return self.size * self.tiles + self.scratch


def make_tiling(plan: Plan, lanes: Lanes) -> Tiling:
    """Lay out a block of tiles."""
    program = _with_values_once(plan.program)
    starts, end = [], 0
    for port in (*program.inputs, *program.outputs):
        starts.append(end)
        end += port.size
    size = end + plan.work
    count = len(program.inputs)
    return Tiling(
        inputs=tuple(starts[:count]),
        outputs=tuple(starts[count:]),
        places=tuple(
            tuple(map({value: k for k, value in enumerate(once)}.__getitem__, values))
            for once, values in zip(program.results, plan.program.results, strict=True)
        ),
        work=end,
        size=size,
        tiles=max(1, min(MAX_TILES, CACHE // (lanes.bytes * max(size, 1)))),
        scratch=max((port.size for port in plan.program.outputs), default=0),
    )


def _with_values_once(program: Program) -> Program:
    """The same program with each value once in every output."""
    results = tuple(tuple(dict.fromkeys(values)) for values in program.results)
    outputs = tuple(
        port._replace(size=len(values))
        for port, values in zip(program.outputs, results, strict=True)
    )
    return replace(program, outputs=outputs, results=results)


def modules(plan: Plan, lanes: Lanes, tiling: Tiling) -> list[str]:
    """Modules of IR that evaluate a plan for many states.

    ``void batch(inputs..., outputs..., constants, memory, i64 states)``, and ``void
    batch_ports(ports, constants, memory, i64 states)`` with an array of the first pointers. Where
    the program checks its inputs, these leave that out, and ``checked`` and ``checked_ports`` do
    not: the same code gives their answers.
    """
    program = plan.program
    parts = emit.functions(replace(plan, program=_with_values_once(program)), lanes, 1)
    ir = [declaration(program, function) for function in parts]
    ir.append("declare i64 @llvm.umin.i64(i64, i64)")
    for i, places in enumerate(tiling.places):
        numbers = ", ".join(f"i32 {place}" for place in places)
        ir.append(f"@places{i} = internal constant [{len(places)} x i32] [{numbers}]")
    checking = {f"chunk{k}" for k in range(plan.answering, len(plan.chunks))}
    answering = [name for name in parts if name not in checking]
    outputs = len(program.outputs) - (program.answered is not None)
    ir.append(_batch(plan, lanes, tiling, "batch", answering, outputs))
    if program.answered is not None:
        ir.append(_batch(plan, lanes, tiling, "checked", parts, outputs + 1))
    return [*parts.values(), "\n".join(ir)]


def _batch(
    plan: Plan, lanes: Lanes, tiling: Tiling, name: str, functions: Iterable[str], outputs: int
) -> str:
    """The IR of ``batch`` and ``batch_ports``, or of those with another name.

    Inputs and outputs are row-major, a state per row. The memory is aligned to a vector and has
    `tiling.vectors` vectors.
    """
    program, W = replace(plan.program, outputs=plan.program.outputs[:outputs]), lanes.count
    steps = {"gather": _transposed(program, lanes, tiling, "gather")}
    steps |= {function: _call(lanes, tiling, function) for function in functions}
    steps["scatter"] = _transposed(program, lanes, tiling, "scatter")
    body, before = [], "block"
    for step, lines in steps.items():
        body += _over_tiles(lanes, tiling, step, before, lines)
        before = f"{step}.done"
    return "\n".join(
        [
            f"define void @{name}({parameters(program)}, i64 %n) nounwind {lanes.attributes} {{",
            "entry:",
            f"  %scratch = getelementptr {lanes.type}, ptr %w, i64 {tiling.size * tiling.tiles}",
            "  %last = sub i64 %n, 1",
            "  %some = icmp sgt i64 %n, 0",
            "  br i1 %some, label %block, label %end",
            "block:",
            "  %row = phi i64 [ 0, %entry ], [ %nextrow, %next ]",
            "  %left = sub i64 %n, %row",
            f"  %full = add i64 %left, {W - 1}",
            f"  %many = udiv i64 %full, {W}",
            f"  %tiles = call i64 @llvm.umin.i64(i64 %many, i64 {tiling.tiles})",
            *body,
            "  br label %next",
            "next:",
            f"  %nextrow = add i64 %row, {W * tiling.tiles}",
            "  %more = icmp slt i64 %nextrow, %n",
            "  br i1 %more, label %block, label %end",
            "end:",
            "  ret void",
            "}",
            *emit.through_ports(program, name, "ptr %k", "ptr %w", "i64 %n"),
        ]
    )


def _over_tiles(
    lanes: Lanes, tiling: Tiling, step: str, before: str, body: Iterable[str]
) -> list[str]:
    """A loop over the tiles of a block; in the body ``%{step}.p`` is the tile."""
    return [
        f"  br label %{step}",
        f"{step}:",
        f"  %{step}.t = phi i64 [ 0, %{before} ], [ %{step}.u, %{step}.end ]",
        f"  %{step}.at = mul i64 %{step}.t, {tiling.size}",
        f"  %{step}.p = getelementptr {lanes.type}, ptr %w, i64 %{step}.at",
        *body,
        f"  br label %{step}.end",
        f"{step}.end:",
        f"  %{step}.u = add i64 %{step}.t, 1",
        f"  %{step}.more = icmp ult i64 %{step}.u, %tiles",
        f"  br i1 %{step}.more, label %{step}, label %{step}.done",
        f"{step}.done:",
    ]


def _call(lanes: Lanes, tiling: Tiling, step: str) -> list[str]:
    """Run one function of the plan on a tile."""
    starts = (*tiling.inputs, *tiling.outputs, tiling.work)
    lines = [
        f"  %{step}.p{i} = getelementptr {lanes.type}, ptr %{step}.p, i64 {start}"
        for i, start in enumerate(starts)
    ]
    pointers = [f"ptr %{step}.p{i}" for i in range(len(starts))]
    pointers.insert(-1, "ptr %k")
    given = ", ".join(pointers)
    return [*lines, f"  call void @{step}({given})"]


def _transposed(program: Program, lanes: Lanes, tiling: Tiling, step: str) -> list[str]:
    """Bring rows of inputs into a tile, or a tile's outputs into rows.

    Lanes beyond the last state compute it again, and their outputs go to scratch memory.
    """
    gather = step == "gather"
    ports = program.inputs if gather else program.outputs
    starts = tiling.inputs if gather else tiling.outputs
    lines = [
        f"  %{step}.tr = mul i64 %{step}.t, {lanes.count}",
        f"  %{step}.first = add i64 %row, %{step}.tr",
    ]
    for k in range(lanes.count):
        lines += [
            f"  %{step}.lane{k} = add i64 %{step}.first, {k}",
            f"  %{step}.in{k} = icmp slt i64 %{step}.lane{k}, %n",
            f"  %{step}.row{k} = select i1 %{step}.in{k}, i64 %{step}.lane{k}, i64 %last",
        ]
    before = step
    for i, port in enumerate(ports):
        if port.size:
            lines += _port_loop(lanes, f"{step}{i}", step, before, i, port.size, starts[i])
            before = f"{step}{i}.done"
    return lines


def _port_loop(
    lanes: Lanes, loop: str, step: str, before: str, i: int, size: int, start: int
) -> list[str]:
    """Transpose one input or output of a tile: a loop over its entries."""
    gather = step == "gather"
    base = f"%{'i' if gather else 'o'}{i}"
    lines = [f"  %{loop}.tile = getelementptr {lanes.type}, ptr %{step}.p, i64 {start}"]
    for k in range(lanes.count):
        lines += [
            f"  %{loop}.m{k} = mul i64 %{step}.row{k}, {size}",
            f"  %{loop}.q{k} = getelementptr double, ptr {base}, i64 %{loop}.m{k}",
            f"  %{loop}.r{k} = select i1 %{step}.in{k}, ptr %{loop}.q{k}, ptr"
            f" {f'%{loop}.q{k}' if gather else '%scratch'}",
        ]
    lines += [
        f"  br label %{loop}",
        f"{loop}:",
        f"  %{loop}.j = phi i64 [ 0, %{before} ], [ %{loop}.next, %{loop} ]",
    ]
    vectors = not gather and size >= lanes.count
    if vectors:
        lines += _stored_rows(lanes, loop, i, size)
    else:
        lines += _gathered(lanes, loop) if gather else _scattered(lanes, loop, i)
    return [
        *lines,
        f"  %{loop}.next = add i64 %{loop}.j, {lanes.count if vectors else 1}",
        f"  %{loop}.more = icmp ult i64 %{loop}.next, {size}",
        f"  br i1 %{loop}.more, label %{loop}, label %{loop}.done",
        f"{loop}.done:",
    ]


def _gathered(lanes: Lanes, loop: str) -> list[str]:
    """Bring one entry of each row into a vector of the tile."""
    T, vector = lanes.type, "poison"
    lines = [f"  %{loop}.at = getelementptr {T}, ptr %{loop}.tile, i64 %{loop}.j"]
    for k in range(lanes.count):
        lines += [
            f"  %{loop}.e{k} = getelementptr double, ptr %{loop}.r{k}, i64 %{loop}.j",
            f"  %{loop}.x{k} = load double, ptr %{loop}.e{k}",
            f"  %{loop}.v{k} = insertelement {T} {vector}, double %{loop}.x{k}, i64 {k}",
        ]
        vector = f"%{loop}.v{k}"
    return [*lines, f"  store {T} {vector}, ptr %{loop}.at, align {lanes.bytes}"]


def _scattered(lanes: Lanes, loop: str, output: int) -> list[str]:
    """Bring a vector of the tile into one entry of each row."""
    T = lanes.type
    lines = _loaded(lanes, loop, output, f"%{loop}.j", f"%{loop}.v")
    for k in range(lanes.count):
        lines += [
            f"  %{loop}.e{k} = getelementptr double, ptr %{loop}.r{k}, i64 %{loop}.j",
            f"  %{loop}.x{k} = extractelement {T} %{loop}.v, i64 {k}",
            f"  store double %{loop}.x{k}, ptr %{loop}.e{k}",
        ]
    return lines


def _loaded(lanes: Lanes, loop: str, output: int, entry: str, vector: str) -> list[str]:
    """Load the vector of the tile that an entry of an output is in."""
    return [
        f"  {vector}.k = getelementptr i32, ptr @places{output}, i64 {entry}",
        f"  {vector}.place = load i32, ptr {vector}.k",
        f"  {vector}.at = getelementptr {lanes.type}, ptr %{loop}.tile, i32 {vector}.place",
        f"  {vector} = load {lanes.type}, ptr {vector}.at, align {lanes.bytes}",
    ]


def _stored_rows(lanes: Lanes, loop: str, output: int, size: int) -> list[str]:
    """Bring as many vectors of the tile as there are lanes into rows, transposed.

    A matrix has many. The last vectors end where the row does; some of it is written twice.
    """
    T, W = lanes.type, lanes.count
    lines = [f"  %{loop}.first = call i64 @llvm.umin.i64(i64 %{loop}.j, i64 {size - W})"]
    vectors = [f"%{loop}.v{k}" for k in range(W)]
    for k, vector in enumerate(vectors):
        lines.append(f"  {vector}.j = add i64 %{loop}.first, {k}")
        lines += _loaded(lanes, loop, output, f"{vector}.j", vector)
    half = 1
    while half < W:  # transposed blocks of 2, of 4, ...
        masks = [
            [p if p & half == 0 else W + p - half for p in range(W)],
            [p + half if p & half == 0 else W + p for p in range(W)],
        ]
        for i in (i for i in range(W) if i & half == 0):
            a, b = vectors[i], vectors[i + half]
            for at, mask in zip((i, i + half), masks, strict=True):
                chosen = ", ".join(f"i32 {p}" for p in mask)
                vectors[at] = f"%{loop}.s{half}.{at}"
                lines.append(
                    f"  {vectors[at]} = shufflevector {T} {a}, {T} {b}, <{W} x i32> <{chosen}>"
                )
        half *= 2
    for k, vector in enumerate(vectors):
        lines.append(f"  %{loop}.e{k} = getelementptr double, ptr %{loop}.r{k}, i64 %{loop}.first")
        lines.append(f"  store {T} {vector}, ptr %{loop}.e{k}, align 8")
    return lines
