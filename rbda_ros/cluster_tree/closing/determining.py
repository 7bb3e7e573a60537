"""Which joints to go by, where any that determine the others may be given."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rbda_ros.cluster_tree.closing.search import held_coordinates
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.errors import InputError

Array = NDArray[np.float64]


class Measured(NamedTuple):
    """Joints of one coordinate each that determine all others.

    Attributes:
        joints: their names, in the order of the spanning vectors.
        coordinates: their spanning velocity coordinates, after those of a floating base.
        positions: their entries of q, where a few Newton steps can close the loops from them.
    """

    joints: tuple[str, ...]
    coordinates: tuple[int, ...]
    positions: tuple[int, ...] | None


class Determining:
    """Chooses, in each cluster, the independent joints if all are given, else what is.

    Attributes:
        independent: entries of q that are y, where a few Newton steps can close the loops from
            them: joints in loops have one coordinate each. Else None.
    """

    def __init__(self, tree: ClusterTree, independent_positions: Sequence[int] | None) -> None:
        looped = (body for node in tree.clusters if node.loop for body in node.bodies)
        simple = all(body.model.nq == 1 for body in looped)
        self.independent: tuple[int, ...] | None = None
        if simple and independent_positions is not None:
            self.independent = tuple(independent_positions)
        self._tree = tree
        self._simple = simple
        self._base = 1 if tree.spanning.floating_base else 0
        self._joints = [body.joint.name for body in tree.spanning.bodies[self._base :]]
        starts = itertools.accumulate((b.model.nq for b in tree.spanning.bodies), initial=0)
        self._entry = dict(zip(self._joints, list(starts)[self._base :], strict=False))
        self._coordinates: dict[frozenset[str], tuple[int, ...]] = {}
        self._positions: dict[tuple[str, ...], tuple[tuple[str, ...], tuple[int, ...]] | None] = {}

    def check_names(self, names: Iterable[str]) -> None:
        """Refuse names that are no moving joints."""
        unknown = sorted(set(names) - set(self._joints))
        if unknown:
            raise InputError(
                f"{self._tree.description.name} has no moving joint {', '.join(unknown)};"
                f" its joints are {', '.join(self._joints)}"
            )

    def positions(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[int, ...]] | None:
        """Names and entries of q to hold, where a few Newton steps can do the rest; else None."""
        if names not in self._positions:
            self._positions[names] = self._choose_positions(names)
        return self._positions[names]

    def _choose_positions(
        self, names: tuple[str, ...]
    ) -> tuple[tuple[str, ...], tuple[int, ...]] | None:
        if self.independent is None:
            return None
        start, held = 0, {}
        for k, node in enumerate(self._tree.clusters):
            joints = [body.joint.name for body in node.bodies]
            given = [i for i, joint in enumerate(joints) if joint in names]
            if k >= self._base:
                if node.nq != len(node.bodies):
                    return None
                if set(node.independent) <= set(given):
                    given = list(node.independent)
                if len(given) != node.ny:
                    return None
                held.update({joints[i]: start + i for i in given})
            start += node.nq
        return (tuple(held), tuple(held.values())) if set(names) <= set(self._joints) else None

    def entries(self, names: Iterable[str]) -> list[int]:
        """Entries of q of some joints that have one each."""
        return [self._entry[name] for name in names]

    def coordinates(self, what: str, names: Collection[str], q: Array) -> tuple[int, ...]:
        """Spanning velocity coordinates to hold, ascending; as many in each cluster as y has.

        Args:
            what: they are, velocity or acceleration, for the message.
            names: of the joints that are given; the floating base always is.
            q: (nq,) closed position; where too many are given without y, those that determine
                the others best here are held.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
        """
        key = frozenset(names)
        if key in self._coordinates:
            return self._coordinates[key]
        self.check_names(names)
        held: list[int] = []
        iq = iv = 0
        everywhere = True  # whether the choice is the same at every position
        for node in self._tree.clusters:
            joints = [body.joint.name for body in node.bodies]
            known = [
                i
                for i, number in enumerate(node.numbers)
                if number == self._base or joints[i] in names
            ]
            if node.loop is not None:
                chosen = held_coordinates(node, known, q[iq : iq + node.nq])
                given = sum(node.bodies[i].model.nv for i in known)
                everywhere &= given == node.ny or set(chosen) == set(node.independent)
            elif len(known) == len(joints):
                chosen = list(range(node.nv))
            else:
                missing = [joint for i, joint in enumerate(joints) if i not in known]
                raise InputError(f"no {what} for {', '.join(missing)}; no loop determines it")
            held.extend(iv + j for j in sorted(chosen))
            iq, iv = iq + node.nq, iv + node.nv
        if everywhere:
            self._coordinates[key] = tuple(held)
        return tuple(held)

    def measured(self, what: str, names: Collection[str]) -> Measured:
        """Of the joints that are measured or given, one number each, those to go by.

        The choice holds for every position; where it must be made, it is made at the assembly.
        """
        self.check_names(names)
        bodies = self._tree.spanning.bodies
        starts = list(itertools.accumulate((b.model.nq for b in bodies), initial=0))
        owners = [i for i, body in enumerate(bodies) for _ in range(body.model.nv)]
        of_one = [b.joint.name for b in bodies if b.model.nv == 1 and b.joint.name in names]
        coordinates = self.coordinates(what, of_one, self._tree.home)
        held = [owners[j] for j in coordinates[6 * self._base :]]
        positions = tuple(starts[i] for i in held) if self._simple else None
        return Measured(tuple(bodies[i].joint.name for i in held), coordinates, positions)
