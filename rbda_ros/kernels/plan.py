"""How a program is laid out as code: packs, chunks, sines first, and the work array between them.

One straight-line function of many thousand instructions compiles ever slower, and in a batch it
does not fit the processor's instruction cache, so a program is cut into chunks. A value that one
chunk computes and another reads passes through a slot of a work array; all others stay in
registers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rbda_ros.cluster_tree.cancelling import cancellable
from rbda_ros.kernels.packing import Operand, Pack, Packs, find_packs
from rbda_ros.kernels.program import Program

CHUNK = 1000
"""Instructions in a chunk of batches and of exported C: from 500 to 3,000 measure alike."""
CHUNK_OF_ONE_STATE = 8000
"""The same for one state. Each cut costs: with 1,000, long programs take 1.2 to 1.5 times as long.
From 6,000 on they gain little more, and compile time grows."""


@dataclass(frozen=True)
class Plan:
    """The layout of a program.

    Attributes:
        program: what is laid out.
        packs: values that one vector instruction computes, and its operands.
        angles: values whose sine and cosine are needed and known from the inputs alone. They are
            evaluated first and together: the sine of ``angles[i]`` goes to slot ``i``, its cosine
            to slot ``len(angles) + i``; both rounded up to the vectors' lanes.
        before: instructions that the angles need, e.g. the ratio of a gear.
        chunks: the instructions of each chunk, by the numbers of their results; a value alone is
            a pack of one.
        slots: where values that pass from chunk to chunk are kept, those of a pack in a row.
        work: number of slots.
        answering: how many of the chunks give the answer; the others check the inputs.
    """

    program: Program
    packs: Packs
    angles: tuple[int, ...]
    before: tuple[int, ...]
    chunks: tuple[tuple[Pack, ...], ...]
    slots: dict[int, int]
    work: int
    answering: int

    def operands(self, pack: Pack) -> tuple[Operand, ...]:
        """Arguments that an instruction reads."""
        return self.packs.get(pack) or _alone(self.program, pack)

    @cached_property
    def packed_constants(self) -> dict[Pack, int]:
        """Where operands of constants are, in a row, behind the constants of the program."""
        found: dict[Pack, int] = {}
        end = len(self.program.constants)
        for operands in self.packs.values():
            for lanes, _ in operands:
                constant = all(map(self.program.is_constant, lanes))
                if constant and len(set(lanes)) > 1 and lanes not in found:
                    found[lanes] = end
                    end += len(lanes)
        return found

    @property
    def constants(self) -> tuple[float, ...]:
        """The constants of the program, then those of packed operands."""
        values, first = self.program.constants, self.program.first_constant
        packed = (values[v - first] for lanes in self.packed_constants for v in lanes)
        return (*values, *packed)


def make_plan(program: Program, chunk: int = CHUNK, lanes: int = 1) -> Plan:
    """Lay out a program for vectors of as many lanes; with one, nothing is packed."""
    packs = find_packs(program, lanes) if lanes > 1 else {}
    angles, before, trigonometry = _angles(program, packs)
    answer, check = _in_order(program, packs, trigonometry)
    answering = [tuple(answer[i : i + chunk]) for i in range(0, len(answer), chunk)] or [()]
    checking = [tuple(check[i : i + chunk]) for i in range(0, len(check), chunk)]
    chunks = (*answering, *checking)

    padded = padded_count(angles, lanes)
    slots = {}
    for value, (operation, place) in trigonometry.items():
        slots[value] = place + (padded if operation == "cos" else 0)
    plan = Plan(program, packs, angles, before, chunks, slots, 0, len(answering))
    return replace(plan, work=_allot(plan, 2 * padded))


def padded_count(angles: Sequence[int], lanes: int) -> int:
    """Slots of the angles' sines, and again of their cosines: rounded up to whole vectors."""
    return -(-len(angles) // lanes) * lanes


def _alone(program: Program, pack: Pack) -> tuple[Operand, ...]:
    (value,) = pack
    return tuple(
        Operand((v,), (1,)) for v in program.instructions[value - program.first_result].arguments
    )


def _angles(
    program: Program, packs: Packs
) -> tuple[tuple[int, ...], tuple[int, ...], dict[int, tuple[str, int]]]:
    """Angles, the instructions before them, and each early sine or cosine with its place."""
    first = program.first_result
    angle_of: dict[int, tuple[str, int]] = {}
    before: dict[int, None] = {}
    for value, (operation, arguments) in enumerate(program.instructions, start=first):
        if operation not in ("sin", "cos"):
            continue
        angle = arguments[0]
        if angle >= first:
            if any(v >= first for v in program.instructions[angle - first].arguments):
                continue
            before[angle] = None
        angle_of[value] = operation, angle

    place: dict[int, int] = {}
    rows = [
        [angle_of[v][1] for v in lanes]
        for operands in packs.values()
        for lanes, _ in operands
        if all(v in angle_of for v in lanes)
    ]
    for row in sorted(rows, key=len, reverse=True):  # packed angles first, the widest in front
        if len(set(row)) == len(row) and place.keys().isdisjoint(row):
            place |= {angle: len(place) + i for i, angle in enumerate(row)}
    for _, angle in angle_of.values():
        place.setdefault(angle, len(place))
    trigonometry = {value: (name, place[angle]) for value, (name, angle) in angle_of.items()}
    return tuple(place), tuple(before), trigonometry


def _in_order(
    program: Program, packs: Packs, early: Iterable[int]
) -> tuple[list[Pack], list[Pack]]:
    """Every instruction, packed, after those it reads: of the answer, then of what checks inputs.

    Outputs are traced back from the last to the first: the tips of a robot come before its base,
    so that one limb is finished before the next begins, and fewer values wait in memory.
    """
    first, done = program.first_result, set(early)
    pack_of = {value: pack for pack in packs for value in pack}
    pair = _sines_and_cosines(program)

    def trace(starts: Iterable[int]) -> list[Pack]:
        order: dict[Pack, None] = {}
        for start in cancellable(starts):
            waiting = [start] if start >= first else []
            while waiting:
                value = waiting[-1]
                pack = pack_of.get(value, (value,))
                operands = packs.get(pack) or _alone(program, pack)
                read = [v for lanes, _ in operands for v in lanes]
                missing = [v for v in read if v >= first and v not in done]
                if value in done or not missing:
                    waiting.pop()
                    for both in pair.get(value, [pack]) if value not in done else ():
                        order[both] = None
                        done.update(both)
                else:
                    waiting += reversed(missing)
        return list(order)

    values = range(first, first + len(program.instructions))
    answers = program.results if program.answered is None else program.results[:-1]
    outputs = [value for results in reversed(answers) for value in reversed(results)]
    answer = trace((*outputs, *values[: program.answered]))
    return answer, trace(values)


def _sines_and_cosines(program: Program) -> dict[int, list[Pack]]:
    """For each sine or cosine, both of its angle: they are evaluated together."""
    of_angle: dict[int, list[int]] = defaultdict(list)
    for value, (operation, arguments) in enumerate(program.instructions, program.first_result):
        if operation in ("sin", "cos"):
            of_angle[arguments[0]].append(value)
    return {value: [(v,) for v in both] for both in of_angle.values() for value in both}


def _allot(plan: Plan, work: int) -> int:
    """Give slots to values that pass from chunk to chunk; the length of the work array."""
    last_use: dict[int, int] = {}
    for k, members in enumerate(plan.chunks):
        for pack in members:
            last_use |= {v: k for lanes, _ in plan.operands(pack) for v in lanes}
    free: dict[int, list[int]] = defaultdict(list)
    ending: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for k, members in enumerate(plan.chunks):
        for pack in members:
            last, width = max(last_use.get(v, k) for v in pack), len(pack)
            if last > k:
                if not free[width]:
                    work = -(-work // width) * width  # so that no vector lies across cache lines
                    free[width].append(work)
                    work += width
                slot = free[width].pop()
                plan.slots.update({v: slot + i for i, v in enumerate(pack)})
                ending[last].append((width, slot))
        # A slot is free only once its last reader has ended: within a chunk, order is free.
        for width, slot in ending.pop(k, ()):
            free[width].append(slot)
    return work
