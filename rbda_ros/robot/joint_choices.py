"""Which of the joints that callers name determine the others; the choices made last are cached.

In each cluster the independent joints are taken if all are given, else what is.
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
"""Sets of names whose choice is cached; callers mostly use a few."""

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


class Chosen(NamedTuple):
    """Spanning velocity coordinates to use, and whether the choice holds at every position."""

    coordinates: tuple[int, ...]
    everywhere: bool


class JointChoices:
    """Chooses, in each cluster, the independent joints if all are given, else what is.

    Attributes:
        independent_positions: entries of q that are the position of y; None where y has only part
            of some joint.
        newton_positions: the same where Newton steps in a kernel can close the loops from them;
            else None.
    """

    def __init__(self, tree: ClusterTree) -> None:
        self._tree = tree
        self.independent_positions = independent_positions(tree)
        by_newton = closes_by_newton(tree, tree.independent)
        self.newton_positions = self.independent_positions if by_newton else None
        self._positions: LruCache[tuple[str, ...], tuple[Positions | None]] = LruCache(MAX_CHOICES)
        self._coordinates: LruCache[frozenset[str], tuple[int, ...]] = LruCache(MAX_CHOICES)

    def check_names(self, names: Collection[str]) -> None:
        """Refuse names that are no moving joints."""
        check_names(self._tree, names)

    def positions(self, names: tuple[str, ...]) -> Positions | None:
        """Names and entries of q to hold, where Newton steps in a kernel do the rest; else None."""
        (chosen,) = self._positions.get_or_make(
            names, lambda: (determining_positions(self._tree, names),)
        )
        return chosen

    def coordinates(self, what: str, names: Collection[str], q: Array) -> tuple[int, ...]:
        """Spanning velocity coordinates to hold; see `determining_coordinates`."""
        key = frozenset(names)
        coordinates = self._coordinates.get(key)
        if coordinates is None:
            coordinates, everywhere = determining_coordinates(self._tree, what, names, q)
            if everywhere:
                self._coordinates.put(key, coordinates)
        return coordinates

    def measured(self, what: str, names: Collection[str]) -> Measured:
        """Of the joints that are known, one number each, those that determine the rest."""
        return measured_joints(self._tree, what, names)


def independent_positions(tree: ClusterTree) -> tuple[int, ...] | None:
    """Which entries of q are the position of y; None where y has only part of some joint."""
    independent = set(tree.independent)
    positions: list[int] = []
    for joint, place in tree.coordinates.velocities.items():
        if not independent.isdisjoint(place):
            if not independent.issuperset(place):
                return None
            positions.extend(tree.coordinates.positions[joint])
    return tuple(positions)


def closes_by_newton(tree: ClusterTree, known: Iterable[int]) -> bool:
    """Whether Newton steps in a kernel can close the loops from some velocity coordinates.

    These must be of joints of one coordinate, where they are in loops.
    """
    coordinates = tree.coordinates
    looped = {body.joint.name for node in tree.clusters if node.loop for body in node.bodies}
    names = (coordinates.owners[j] for j in known if j >= coordinates.base_nv)
    return all(name in coordinates.scalar_positions for name in names if name in looped)


def check_names(tree: ClusterTree, names: Iterable[str]) -> None:
    """Refuse names that are no moving joints."""
    joints = tree.coordinates.joints
    unknown = sorted(map(str, set(names) - set(joints)))
    if unknown:
        raise InputError(
            f"{tree.description.name} has no moving joint {listed(unknown)};"
            f" its joints are {listed(joints)}"
        )


def determining_positions(
    tree: ClusterTree, names: Collection[str]
) -> tuple[tuple[str, ...], tuple[int, ...]] | None:
    """Names and entries of q to hold, where Newton steps in a kernel can do the rest; else None."""
    coordinates = tree.coordinates
    chosen: dict[str, int] = {}
    base = 1 if coordinates.base_nq else 0
    for node in tree.clusters:
        joints = [body.joint.name for body in node.bodies]
        fixed = [i for i, number in enumerate(node.numbers) if number == base]  # the floating base
        given = [i for i, joint in enumerate(joints) if joint in names and i not in fixed]
        owners = [i for i, place in enumerate(node.velocity_ranges) for _ in place]
        independent = [owners[j] for j in node.independent if owners[j] not in fixed]
        if set(independent) <= set(given):
            given = sorted(independent)
        elif node.loop is not None:
            try:  # as many as y has, but some of them may say the same
                determining_in_cluster(node, fixed + given, node.home)
            except InputError:
                return None
        free = node.ny - (coordinates.base_nv if fixed else 0)
        if len(given) != free or any(node.bodies[i].model.nq != 1 for i in given):
            return None
        chosen.update({joints[i]: coordinates.scalar_positions[joints[i]] for i in given})
    if not set(names) <= set(coordinates.joints):
        return None
    return tuple(chosen), tuple(chosen.values())


def determining_coordinates(
    tree: ClusterTree, what: str, names: Collection[str], q: Array
) -> Chosen:
    """Spanning velocity coordinates to hold, ascending; as many in each cluster as y has.

    Args:
        tree: the cluster tree.
        what: they are, velocity or acceleration, for the message.
        names: of the joints that are given; the floating base always is.
        q: (nq,) closed position; where too many are given without y, those that determine
            the others best here are chosen.

    Raises:
        InputError: unknown names, or joints that do not determine the others.
    """
    check_names(tree, names)
    base = 1 if tree.spanning.floating_base else 0
    chosen: list[int] = []
    everywhere = True
    parts = zip(tree.clusters, tree.position_ranges, tree.velocity_ranges, strict=True)
    for node, in_q, in_qd in parts:
        joints = [body.joint.name for body in node.bodies]
        known = [i for i, number in enumerate(node.numbers) if number == base or joints[i] in names]
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
    return Chosen(tuple(chosen), everywhere)


def measured_joints(tree: ClusterTree, what: str, names: Collection[str]) -> Measured:
    """Of the joints that are known, one number each, those that determine the rest.

    The choice holds for every position; where it must be made, it is made at the assembly.
    """
    check_names(tree, names)
    layout = tree.coordinates
    of_one = [joint for joint in layout.scalar_positions if joint in names]
    coordinates, _ = determining_coordinates(tree, what, of_one, tree.home)
    joints = tuple(layout.owners[j] for j in coordinates[layout.base_nv :])
    positions = None
    if closes_by_newton(tree, coordinates):
        positions = tuple(layout.positions[joint].start for joint in joints)
    return Measured(joints, coordinates, positions)


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
