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
from rbda_ros.kernels.program import FUSED, Program, shapes

Pack = tuple[int, ...]
"""Values in the lanes of a vector; a value alone is a pack of one."""


class Operand(NamedTuple):
    """Values in the lanes of a vector, each taken with a sign of +-1."""

    lanes: Pack
    signs: tuple[int, ...]


Packs = dict[Pack, tuple[Operand, ...]]
"""Values that are computed at once, and from what; differences are sums of signed operands."""

_PACKABLE = {"add", "sub", "mul", "sq", "twice", "div", "inv", "sqrt", *FUSED}
_SUMS = ("add", "sub")
_COMMUTE = ("add", "sub", "mul", *FUSED)


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
        self.shapes = shapes(program)
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
        """Terms of a sum, from the last: ``c, b, a`` of ``(a + b) - c``; each sum once.

        Products that are fused with the sum are no terms: there is no value to pack.
        """
        while not (value in self.packed or value in self.summed):
            if self.operation(value) in FUSED:
                self.summed.add(value)
                value = self.arguments(value)[2]
            elif self.operation(value) in _SUMS:
                self.summed.add(value)
                value, last = self.arguments(value)
                yield last
            else:
                break
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
            operation, arguments = self.instructions[value - self.first]
            alike = self.shapes[arguments[0]] == self.shapes[first[0]]
            swapped = operation in _COMMUTE and not alike
            if swapped:
                arguments = (arguments[1], arguments[0], *arguments[2:])
            signs = (1,) * len(arguments)
            if operation == "sub":
                signs = (-1, 1) if swapped else (1, -1)
            elif operation in FUSED:
                product, addend = FUSED[operation]
                signs = (product, 1, addend)
            rows.append(list(zip(arguments, signs, strict=True)))
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
