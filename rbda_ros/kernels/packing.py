"""Equal limbs side by side: isomorphic parts of a program in the lanes of vectors.

Two arms, or four legs, leave parts in a program that differ only in the inputs and constants that
they read. Values at the same place of such parts are packed: one vector instruction computes them
all. Packs are found from the outputs inward, and from sums in which limbs meet, such as
``f_0 + f_left + f_right``: superword-level parallelism (Larsen and Amarasinghe 2000), with whole
programs in place of basic blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rbda_ros.cluster_tree.cancelling import cancellable
from rbda_ros.kernels.program import Program

Pack = tuple[int, ...]
"""Values in the lanes of a vector; a value alone is a pack of one."""


class Operand(NamedTuple):
    """Values in the lanes of a vector, each taken with a sign of +-1."""

    lanes: Pack
    signs: tuple[int, ...]


Packs = dict[Pack, tuple[Operand, ...]]
"""Values that are computed at once, and from what; differences are sums of signed operands."""

_PACKABLE = {"add", "sub", "mul", "sq", "twice", "div", "inv", "sqrt"}
_SUMS = ("add", "sub")
_COMMUTE = ("add", "sub", "mul")


def find_packs(program: Program, widest: int) -> Packs:
    """Packs of 2, 4, ... up to `widest` values that save instructions; a value is in one at most.

    No two packs wait for each other: the values of a pack have one shape, and what they are
    computed from has other ones.
    """
    packer = _Packer(program)
    for seeds in _alike(packer.shapes, (v for results in program.results for v in results)):
        packer.pack_all(seeds, widest)
    for at in cancellable(reversed(range(len(program.instructions)))):
        for seeds in _alike(packer.shapes, packer.summands(program.first_result + at)):
            packer.pack_all(seeds, widest)
    return packer.packs


def _shapes(program: Program) -> list[int]:
    """A number for each value, the same for values that differ in inputs, constants and signs.

    Mirrored limbs have sums where others have differences, and the negative of a value.
    """
    known: dict[object, int] = {}
    shapes = []
    for port in program.inputs:
        shapes += [known.setdefault(port.name, len(known))] * port.size
    shapes += [known.setdefault(None, len(known))] * len(program.constants)
    for operation, arguments in program.instructions:
        of = [shapes[argument] for argument in arguments]
        if operation == "neg":
            shapes.append(of[0])
            continue
        if operation in _COMMUTE:
            of.sort()
        name = "sum" if operation in _SUMS else operation
        shapes.append(known.setdefault((name, *of), len(known)))
    return shapes


def _alike(shapes: Sequence[int], values: Iterable[int]) -> list[list[int]]:
    """Values grouped by shape, each once, in their order."""
    groups: dict[int, dict[int, None]] = {}
    for value in values:
        groups.setdefault(shapes[value], {})[value] = None
    return [list(group) for group in groups.values() if len(group) > 1]


class _Packer:
    """The packs found so far, and the values in them."""

    def __init__(self, program: Program) -> None:
        self.instructions = program.instructions
        self.first_constant, self.first = program.first_constant, program.first_result
        self.shapes = _shapes(program)
        self.packs: Packs = {}
        self.packed: set[int] = set()
        self.summed: set[int] = set()
        self.given = {v for results in program.results for v in results}

    def operation(self, value: int) -> str | None:
        """The operation that computes a value; None for inputs and constants."""
        return self.instructions[value - self.first].operation if value >= self.first else None

    def arguments(self, value: int) -> tuple[int, ...]:
        return self.instructions[value - self.first].arguments

    def summands(self, value: int) -> Iterator[int]:
        """Terms of a sum, from the last: ``c, b, a`` of ``(a + b) - c``; each sum once."""
        while self.operation(value) in _SUMS and not (value in self.packed or value in self.summed):
            self.summed.add(value)
            value, last = self.arguments(value)
            yield last
        yield value

    def pack_all(self, values: list[int], widest: int) -> None:
        """Pack values of one shape, as many at once as there are and fit."""
        while len(values) > 1:
            width = min(widest, 1 << (len(values).bit_length() - 1))
            self.pack(tuple(values[:width]))
            values = values[width:]

    def pack(self, seed: Pack) -> None:
        """Pack values that are computed alike and all they are computed from, if that pays."""
        found: Packs = {}
        waiting = [self.without_sign(seed).lanes]
        while waiting:
            pack = waiting.pop()
            if self.fits(pack):
                found[pack] = self.operands(pack)
                self.packed.update(pack)
                waiting += [operand.lanes for operand in reversed(found[pack])]
        if self.saved(found, seed) > 0:
            self.packs |= found
        else:
            self.packed.difference_update(*found)

    def fits(self, values: Pack) -> bool:
        return (
            all(self.operation(value) in _PACKABLE for value in values)
            and len(set(values)) == len(values)
            and len({self.shapes[value] for value in values}) == 1
            and self.packed.isdisjoint(values)
        )

    def operands(self, values: Pack) -> tuple[Operand, ...]:
        """Operands of packed values; factors and summands change places to be alike."""
        rows, first = [], self.arguments(values[0])
        for value in values:
            arguments = self.arguments(value)
            signs = (1, -1) if self.operation(value) == "sub" else (1,) * len(arguments)
            alike = self.shapes[arguments[0]] == self.shapes[first[0]]
            step = 1 if alike or self.operation(value) not in _COMMUTE else -1
            rows.append(list(zip(arguments, signs, strict=True))[::step])
        return tuple(
            self.without_sign(*map(tuple, zip(*column, strict=True)))
            for column in zip(*rows, strict=True)
        )

    def without_sign(self, values: Pack, signs: tuple[int, ...] | None = None) -> Operand:
        """Values, or the values of which they are the negatives."""
        signed = [
            (self.arguments(v)[0], -sign) if self.operation(v) == "neg" else (v, sign)
            for v, sign in zip(values, signs or (1,) * len(values), strict=True)
        ]
        return Operand(tuple(v for v, _ in signed), tuple(sign for _, sign in signed))

    def saved(self, found: Packs, seed: Pack) -> int:
        """Instructions that packs save, less those that put lanes together or take them apart."""
        lanes = {operand.lanes for operands in found.values() for operand in operands}
        moved = [x for x in lanes - found.keys() if x not in self.packs and not self.at_hand(x)]
        if not self.given.issuperset(seed):
            moved.append(seed)
        return sum(len(pack) - 1 for pack in found) - sum(len(x) - 1 for x in moved)

    def at_hand(self, lanes: Pack) -> bool:
        """Whether a vector is one value in every lane, or constant."""
        constant = all(self.first_constant <= value < self.first for value in lanes)
        return constant or len(set(lanes)) == 1
