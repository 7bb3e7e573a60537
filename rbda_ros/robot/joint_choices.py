"""Which of the joints that callers name determine the others; recent choices are cached.

In each cluster the independent joints are chosen if all of them are given, else given ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.closing.independent import (
    AssemblyError,
    Wishes,
    choose_independent,
    determining_in_cluster,
    unit_rows,
)
from rbda_ros.cluster_tree.cluster_joint import ClusterNode, driven_coordinates
from rbda_ros.cluster_tree.spanning_tree import velocity_names
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.errors import InputError, listed
from rbda_ros.kernels.cache import LruCache
from rbda_ros.spatial import Array

MAX_CHOICES = 256
"""Sets of names whose choice is cached."""

Positions = tuple[tuple[str, ...], tuple[int, ...]]


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


class JointChoices:
    """Chooses, in each cluster, the independent joints if all are given, else given ones.

    Attributes:
        independent_positions: entries of q that are the position of y; None if y has only some
            coordinates of a joint.
        newton_positions: the same if Newton steps in a kernel can close the loops from them, else
            None.
    """

    def __init__(self, tree: ClusterTree) -> None:
        self._tree = tree
        self.independent_positions = _independent_positions(tree)
        by_newton = self._closes_by_newton(tree.independent)
        self.newton_positions = self.independent_positions if by_newton else None
        self._positions: LruCache[tuple[str, ...], tuple[Positions | None]] = LruCache(MAX_CHOICES)
        self._coordinates: LruCache[frozenset[str], tuple[int, ...]] = LruCache(MAX_CHOICES)

    def check_names(self, names: Iterable[str]) -> None:
        """Reject names that are no moving joints."""
        joints = self._tree.coordinates.joints
        unknown = sorted(map(str, set(names) - set(joints)))
        if unknown:
            raise InputError(
                f"{self._tree.description.name} has no moving joint {listed(unknown)};"
                f" its joints are {listed(joints)}"
            )

    def positions(self, names: tuple[str, ...]) -> Positions | None:
        """Determining joints, and their entries of q; None if Newton steps cannot close loops."""
        (chosen,) = self._positions.get_or_make(names, lambda: (self._choose_positions(names),))
        return chosen

    def coordinates(self, what: str, names: Collection[str], q: Array) -> tuple[int, ...]:
        """Determining velocity coordinates, ascending; as many in each cluster as y has.

        Args:
            what: is given, e.g. velocity, for the error message.
            names: of the joints that are given; the floating base always is.
            q: (nq,) closed position; if more than needed are given, without all of y, those that
                determine the others best here are chosen.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
        """
        key = frozenset(names)
        coordinates = self._coordinates.get(key)
        if coordinates is None:
            coordinates, everywhere = self._choose_coordinates(what, names, q)
            if everywhere:
                self._coordinates.put(key, coordinates)
        return coordinates

    def measured(self, what: str, names: Collection[str]) -> Measured:
        """Those of the known joints with one coordinate that determine all others.

        The choice is for every position; if there are alternatives, it is made at the assembly.
        """
        self.check_names(names)
        layout = self._tree.coordinates
        of_one = [joint for joint in layout.scalar_positions if joint in names]
        coordinates = self.coordinates(what, of_one, self._tree.home)
        joints = tuple(layout.owners[j] for j in coordinates[layout.base_nv :])
        positions = None
        if self._closes_by_newton(coordinates):
            positions = tuple(layout.positions[joint].start for joint in joints)
        return Measured(joints, coordinates, positions)

    def _closes_by_newton(self, known: Iterable[int]) -> bool:
        """Whether Newton steps in a kernel can close the loops from some velocity coordinates.

        These must be of joints of one coordinate, where they are in loops.
        """
        layout = self._tree.coordinates
        looped = {body.joint.name for n in self._tree.clusters if n.loop for body in n.bodies}
        names = (layout.owners[j] for j in known if j >= layout.base_nv)
        return all(name in layout.scalar_positions for name in names if name in looped)

    def _choose_positions(self, names: Collection[str]) -> Positions | None:
        layout = self._tree.coordinates
        chosen: dict[str, int] = {}
        base = 1 if layout.base_nq else 0
        for node in self._tree.clusters:
            joints = [body.joint.name for body in node.bodies]
            fixed = [i for i, number in enumerate(node.numbers) if number == base]  # floating base
            given = [i for i, joint in enumerate(joints) if joint in names and i not in fixed]
            owners = [i for i, place in enumerate(node.velocity_ranges) for _ in place]
            independent = [owners[j] for j in node.independent if owners[j] not in fixed]
            if set(independent) <= set(given):
                given = sorted(independent)
            elif node.loop is not None:
                try:  # as many as y has, but some may depend on others
                    determining_in_cluster(node, fixed + given, node.home)
                except InputError:
                    return None
            free = node.ny - (layout.base_nv if fixed else 0)
            if len(given) != free or any(node.bodies[i].model.nq != 1 for i in given):
                return None
            chosen.update({joints[i]: layout.scalar_positions[joints[i]] for i in given})
        if not set(names) <= set(layout.joints):
            return None
        return tuple(chosen), tuple(chosen.values())

    def _choose_coordinates(
        self, what: str, names: Collection[str], q: Array
    ) -> tuple[tuple[int, ...], bool]:
        """As `coordinates`; and whether the choice holds at every position."""
        self.check_names(names)
        tree = self._tree
        base = 1 if tree.spanning.floating_base else 0
        chosen: list[int] = []
        everywhere = True
        parts = zip(tree.clusters, tree.position_ranges, tree.velocity_ranges, strict=True)
        for node, in_q, in_qd in parts:
            joints = [body.joint.name for body in node.bodies]
            known = [
                i for i, number in enumerate(node.numbers) if number == base or joints[i] in names
            ]
            if node.loop is not None:
                here = determining_in_cluster(node, known, q[in_q.start : in_q.stop])
                given = sum(node.bodies[i].model.nv for i in known)
                everywhere &= given == node.ny or set(here) == set(node.independent)
            elif len(known) == len(joints):
                here = list(range(node.nv))
            else:
                missing = [joint for i, joint in enumerate(joints) if i not in known]
                raise InputError(f"no {what} for {', '.join(missing)}; no loop determines it")
            chosen.extend(in_qd[j] for j in sorted(here))
        return tuple(chosen), everywhere


def _independent_positions(tree: ClusterTree) -> tuple[int, ...] | None:
    """Entries of q that are the position of y; None if y has only some coordinates of a joint."""
    independent = set(tree.independent)
    positions: list[int] = []
    for joint, place in tree.coordinates.velocities.items():
        if not independent.isdisjoint(place):
            if not independent.issuperset(place):
                return None
            positions.extend(tree.coordinates.positions[joint])
    return tuple(positions)


def with_independent_joints(
    tree: ClusterTree, q: Array, joints: Collection[str] | None
) -> ClusterTree:
    """The tree with other independent joints, assembled at q (nq,).

    Loops of which no joint is named keep theirs; without names every loop gets those that
    determine the others best at q.

    Raises:
        InputError: unknown names, or joints that do not determine the others of their loop.
    """
    unknown = sorted(set(joints or ()).difference(tree.coordinates.joints))
    if unknown:
        raise InputError(f"{tree.description.name} has no joint {unknown[0]!r}")
    places = zip(tree.clusters, tree.position_ranges, strict=True)
    return replace(
        tree,
        clusters=tuple(_node(node, q[place.start : place.stop], joints) for node, place in places),
    )


def _node(node: ClusterNode, q: Array, joints: Collection[str] | None) -> ClusterNode:
    """One cluster, assembled at q (its nq,)."""
    if node.loop is None:
        return replace(node, home=q)
    of = [body.joint for body in node.bodies for _ in range(body.model.nv)]
    base = {j for j, joint in enumerate(of) if joint.type == "floating"}
    named = {j for j, joint in enumerate(of) if joints and joint.name in joints}
    if joints is not None and not named:
        return replace(node, home=q)
    wishes = Wishes(
        required=frozenset(named | base),
        allowed=frozenset(named | base if named else range(len(of))),
        preferred=frozenset(),
        listed=bool(named),
    )
    names = velocity_names(node.bodies)
    jacobians = [unit_rows(np.asarray(node.loop.jacobian(q)))]
    try:
        independent = choose_independent(
            jacobians, len(node.independent), wishes, names, node.loop.constant
        )
    except AssemblyError as failed:
        raise InputError(str(failed.problem)) from None
    chosen = replace(node, home=q, independent=independent)
    G = np.asarray(ca.DM(ca.densify(chosen.velocity_map(ca.DM(q)))))
    return replace(chosen, driven=driven_coordinates(G, node.actuated))
