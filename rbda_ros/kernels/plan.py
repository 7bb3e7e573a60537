"""How a program is laid out as code: chunks, sines first, and the work array between them.

One straight-line function of many thousand instructions compiles ever slower and runs slower, so
a program is cut into chunks. A value that one chunk computes and another reads passes through a
slot of a work array; all others stay in registers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from rbda_ros.kernels.program import Program

CHUNK = 1000
"""Instructions in a chunk: from 500 to 2,000 measure alike, and compile time is linear."""


@dataclass(frozen=True)
class Plan:
    """The layout of a program.

    Attributes:
        program: what is laid out.
        angles: values whose sine and cosine are needed and known from the inputs alone. They are
            evaluated first and together: the sine of ``angles[i]`` goes to slot ``i``, its cosine
            to slot ``len(angles) + i``; both rounded up to `pad`.
        before: instructions that the angles need, e.g. the ratio of a gear.
        chunks: the instructions of each chunk, by the numbers of their results.
        slots: where values that pass from chunk to chunk are kept.
        work: number of slots.
    """

    program: Program
    angles: tuple[int, ...]
    before: tuple[int, ...]
    chunks: tuple[tuple[int, ...], ...]
    slots: dict[int, int]
    work: int


def make_plan(program: Program, chunk: int = CHUNK, pad: int = 1) -> Plan:
    """Lay out a program; `pad` is the number of angles that are evaluated at once."""
    angles, before, trigonometry = _angles(program)
    order = [v for v in _sines_in_pairs(program) if v not in trigonometry]
    chunks = tuple(tuple(order[i : i + chunk]) for i in range(0, len(order), chunk)) or ((),)

    padded = -(-len(angles) // pad) * pad
    slots = {}
    for value, (operation, place) in trigonometry.items():
        slots[value] = place + (padded if operation == "cos" else 0)
    last_use = _last_uses(program, chunks)
    home = {value: k for k, members in enumerate(chunks) for value in members}
    free: list[int] = []
    ending: dict[int, list[int]] = defaultdict(list)
    work = 2 * padded
    for k, members in enumerate(chunks):
        for value in members:
            if last_use.get(value, home[value]) > k:
                if not free:
                    free.append(work)
                    work += 1
                slots[value] = free.pop()
                ending[last_use[value]].append(slots[value])
        # A slot is free only once its last reader has ended: within a chunk, order is free.
        free.extend(ending.pop(k, ()))
    return Plan(program, angles, before, chunks, slots, work)


def _angles(
    program: Program,
) -> tuple[tuple[int, ...], tuple[int, ...], dict[int, tuple[str, int]]]:
    """Angles, the instructions before them, and each early sine or cosine with its place."""
    first = program.first_result
    place: dict[int, int] = {}
    before: dict[int, None] = {}
    trigonometry: dict[int, tuple[str, int]] = {}
    for value, (operation, arguments) in enumerate(program.instructions, start=first):
        if operation not in ("sin", "cos"):
            continue
        angle = arguments[0]
        if angle >= first:
            if any(v >= first for v in program.instructions[angle - first].arguments):
                continue
            before[angle] = None
        trigonometry[value] = operation, place.setdefault(angle, len(place))
    return tuple(place), tuple(before), trigonometry


def _sines_in_pairs(program: Program) -> list[int]:
    """Every instruction in an order that has the cosine of a value beside its sine."""
    first = program.first_result
    partner: dict[tuple[str, int], int] = {}
    for value, (operation, arguments) in enumerate(program.instructions, start=first):
        if operation in ("sin", "cos"):
            partner[operation, arguments[0]] = value
    order: dict[int, None] = {}
    for value, (operation, arguments) in enumerate(program.instructions, start=first):
        order[value] = None
        if operation in ("sin", "cos"):
            other = partner.get(("cos" if operation == "sin" else "sin", arguments[0]))
            if other is not None:
                order[other] = None
    return list(order)


def _last_uses(program: Program, chunks: tuple[tuple[int, ...], ...]) -> dict[int, int]:
    """The last chunk that reads each value."""
    last: dict[int, int] = {}
    for k, members in enumerate(chunks):
        for value in members:
            for argument in program.instructions[value - program.first_result].arguments:
                last[argument] = k
    return last
