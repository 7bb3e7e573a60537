"""The inverse operational-space inertia by force propagation in O(n + m^2): PV-OSIMr.

Sathya, Decre, Swevers, "Low Order Complexity Algorithm for Computing the Inverse Operational Space
Inertia Matrix" (2023), as Sathya 2024, Algorithm 5 repeats it, on the cluster tree.

``Lambda^-1 = J H^-1 J'`` maps forces along m rows to accelerations along them. Unit forces are
propagated inward through joints that are free to move. Where rows or branches meet, at a *node*,
they are rewritten in the six directions of each body there, if these are fewer. So at most six
columns for each body of a node cross a joint, however many rows there are. Nodes are few, at most
two for each body that has rows, and all that is left to do is done on nodes: n + m^2 in all for the
matrix, n + m for its product with a vector.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import casadi as ca

from rbda_ros.algorithms.aba import Articulated, articulated_inertias
from rbda_ros.algorithms.contact_rows import ContactFrame, ContactRows, contact_rows, split
from rbda_ros.algorithms.kinematics import BodyFrame, on_cluster, unit_wrenches
from rbda_ros.algorithms.motion import cluster_joints, velocities
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.straight_line import factor_symmetric
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, mirrored

Source = tuple[int | None, Matrix]
"""Rows of a contact or frame: the index of its cluster, and K' (6n x rows) on its bodies. The index
is None on the fixed base."""

FEW = 2
"""Counted: legs that meet at a floating base, and arms on a torso of two joints, stay apart; it
bounds what they cost to ``12 m^2``."""


@dataclass(eq=False)
class Node:
    """A cluster where rows or branches meet: a member of N in the paper.

    Attributes:
        parent: index of the next node towards the base; None for the last.
        up: (parent's columns x own columns) its columns in those of the parent.
        omega: (columns x columns) acceleration along its columns per force along them, from the
            joints between it and its parent.
        basis: (6n x columns) its columns as forces on the bodies of its cluster.
        sources: for each source on this cluster, its rows in the node's columns.
    """

    parent: int | None = None
    up: Matrix = None
    omega: Matrix = None
    basis: Matrix = None
    sources: dict[int, Matrix] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Delassus:
    """``J H^-1 J'`` (m x m) in factors, by cluster index of its nodes.

    Attributes:
        nodes: the nodes.
        sizes: number of rows of each source.
    """

    nodes: Mapping[int, Node]
    sizes: Sequence[int]

    def matrix(self) -> Matrix:
        """The matrix (m x m) itself, in O(m^2)."""
        return assembled(self.columns_at_nodes(), self._omega_of_nodes(), self.sizes)

    def product(self, x: Matrix) -> Matrix:
        """The matrix times x (m), in O(m): it is never assembled.

        Forces go from node to node to the base, accelerations come back (Sathya 2024, Sec. VI-B,
        which does so at a floating base alone).
        """
        parts = split(x, self.sizes)
        force: dict[int, Matrix] = dict.fromkeys(self.nodes, 0)
        for n in sorted(self.nodes, reverse=True):
            node = self.nodes[n]
            force[n] += sum(columns @ parts[e] for e, columns in node.sources.items())
            if node.parent is not None:
                force[node.parent] += node.up @ force[n]
        acceleration: dict[int, Matrix] = {}
        response = [ca.DM(size, 1) for size in self.sizes]
        for n in sorted(self.nodes):
            node = self.nodes[n]
            acceleration[n] = node.omega @ force[n]
            if node.parent is not None:
                acceleration[n] += node.up.T @ acceleration[node.parent]
            for e, columns in node.sources.items():
                response[e] = columns.T @ acceleration[n]
        return ca.vertcat(ca.DM(0, 1), *response)

    def _omega_of_nodes(self) -> dict[int, Matrix]:
        """Omega of each node with all joints between it and the base (line 13)."""
        whole: dict[int, Matrix] = {}
        for n in sorted(self.nodes):
            node = self.nodes[n]
            more = 0 if node.parent is None else node.up.T @ whole[node.parent] @ node.up
            whole[n] = mirrored(node.omega + more)
        return whole

    def columns_at_nodes(self) -> list[dict[int, Matrix]]:
        """Columns of each source at every node on its way to the base (line 16)."""
        at: list[dict[int, Matrix]] = [{} for _ in self.sizes]
        for n, node in self.nodes.items():
            for e, columns in node.sources.items():
                here: int | None = n
                while here is not None:
                    at[e][here] = columns
                    if (parent := self.nodes[here].parent) is not None:
                        columns = self.nodes[here].up @ columns
                    here = parent
        return at


def assembled(
    at: Sequence[Mapping[int, Matrix]], omega: Mapping[int, Matrix], sizes: Sequence[int]
) -> Matrix:
    """``J H^-1 J'`` (m x m): each pair of sources meets at the closest place that both have.

    Args:
        at: columns of each source at the places, clusters or nodes, between it and the base.
        omega: acceleration along the columns of each place per force along them.
        sizes: number of rows of each source.
    """
    blocks = [ca.DM(0, sum(sizes))]
    for i, rows in enumerate(sizes):
        row = [ca.DM(rows, size) for size in sizes]
        for j in range(i, len(sizes)):
            if common := at[i].keys() & at[j].keys():
                n = max(common)  # the closest one (line 18)
                row[j] = at[i][n].T @ (omega[n] @ at[j][n])
        blocks.append(ca.horzcat(*row))
    return mirrored(ca.vertcat(*blocks))


def inverse_operational_space_inertia(
    tree: ClusterTree, q: Matrix, frames: Sequence[BodyFrame], linear_only: bool = False
) -> Matrix:
    """Lambda^-1 = J H^-1 J' (m x m) of several frames, world-aligned, linear rows first.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        frames: end effectors; six rows each, three where ``linear_only``.
        linear_only: leave out the angular rows.
    """
    joints = cluster_joints(tree, q)
    sources = [frame_source(tree, joints, at, linear_only) for at in frames]
    return delassus(tree, joints, articulated_inertias(tree, joints), sources).matrix()


def delassus_product(
    tree: ClusterTree, q: Matrix, axes: Matrix, forces: Matrix, contacts: Sequence[ContactFrame]
) -> Matrix:
    """``J H^-1 J' forces`` (m) in O(n + m): the matrix is never assembled.

    Accelerations along the contacts' rows that forces along them give [m/s^2, rad/s^2].

    Args:
        q: (nq) spanning position, on the constraint manifold.
        axes: (3 x 3c) axes of each contact, as columns in world axes.
        forces: (m) forces along the rows, contact by contact, linear first [N, N m].
        contacts: the contacts; m rows in all.
    """
    joints = cluster_joints(tree, q)
    articulated = articulated_inertias(tree, joints)
    sources = contact_sources(rows_along_axes(tree, joints, contacts, axes))
    return delassus(tree, joints, articulated, sources, few=0).product(forces)


def damped_inverse_product(
    tree: ClusterTree,
    q: Matrix,
    axes: Matrix,
    x: Matrix,
    contacts: Sequence[ContactFrame],
    mu: float,
) -> Matrix:
    """``(J H^-1 J' + I/mu)^-1 x`` (m): PV-OSIMf, by blocks of limbs that meet at a floating base.

    While the base is at rest limbs do not feel each other: their rows have ``L_1``, block-diagonal,
    and the base adds ``V' D^-1 V`` (Sathya 2024, Eq. 41, without mu in the inertias). With
    ``B = L_1 + I/mu``, factored limb by limb, the inversion lemma leaves a matrix of the base's
    size to factor, ``D + V B^-1 V'``.

    Linear in the number of limbs, cubic in the rows of each. `caba_osim_product` takes fewer
    operations, and loses digits where mu is large: it subtracts numbers of the size ``mu x``.

    Args:
        q, axes, contacts: as for `delassus_product`.
        x: (m) accelerations along the rows [m/s^2, rad/s^2].
        mu: inverse of the damping [kg].
    """
    joints = cluster_joints(tree, q)
    articulated = articulated_inertias(tree, joints)
    sources = contact_sources(rows_along_axes(tree, joints, contacts, axes))
    L = delassus(tree, joints, articulated, sources, few=0)
    bases = [n for n in L.nodes if tree.clusters[n].parent is None]
    still = {n: replace(L.nodes[n], omega=ca.DM(*L.nodes[n].omega.shape)) for n in bases}
    L_1 = Delassus({**L.nodes, **still}, L.sizes).matrix()
    V, d = _base_columns(L, joints, articulated, bases)
    scaled, across_base = ca.SX(x.rows(), 1), ca.SX(x.rows(), d.rows())  # B^-1 x, B^-1 V'
    for rows in _limbs(L, bases):
        B = factor_symmetric(L_1[rows, rows] + ca.DM.eye(len(rows)) / mu)
        scaled[rows] = B.solve(x[rows])
        across_base[rows, :] = B.solve(V[:, rows].T)
    coupled = factor_symmetric(ca.diag(d) + V @ across_base)
    return scaled - across_base @ coupled.solve(V @ scaled)


def _base_columns(
    L: Delassus, joints: list[ClusterJoint], articulated: list[Articulated], bases: Sequence[int]
) -> tuple[Matrix, Matrix]:
    """V and d with ``omega = V' diag(d)^-1 V`` (m x m) of the joints of base clusters alone."""
    at = L.columns_at_nodes()
    V, d = [ca.DM(0, sum(L.sizes))], [ca.DM(0, 1)]
    for n in bases:
        parts = [
            each.get(n, ca.DM(L.nodes[n].basis.columns(), size))
            for each, size in zip(at, L.sizes, strict=True)
        ]
        T = joints[n].SG.T @ (joints[n].J.T @ (L.nodes[n].basis @ ca.horzcat(*parts)))
        V.append(articulated[n].D.forward(T))
        d.append(articulated[n].D.d)
    return ca.vertcat(*V), ca.vertcat(*d)


def _limbs(L: Delassus, bases: Sequence[int]) -> list[list[int]]:
    """Numbers of the rows of each limb: what meets outside the base clusters."""
    ends = list(itertools.accumulate(L.sizes, initial=0))
    limbs: dict[object, list[int]] = {}
    for e, nodes in enumerate(L.columns_at_nodes()):
        outside = nodes.keys() - set(bases)
        limb = min(outside) if outside else ("on a base", e)
        limbs.setdefault(limb, []).extend(range(ends[e], ends[e + 1]))
    return list(limbs.values())


def frame_source(
    tree: ClusterTree, joints: list[ClusterJoint], at: BodyFrame, linear_only: bool
) -> Source:
    """Rows of a frame; those of the fixed base have no cluster."""
    if not at.body:
        return None, ca.DM(6, 3 if linear_only else 6)
    return on_cluster(tree, at.body, unit_wrenches(tree, joints, at, linear_only))


def rows_along_axes(
    tree: ClusterTree, joints: list[ClusterJoint], contacts: Sequence[ContactFrame], axes: Matrix
) -> list[ContactRows]:
    """Rows of contacts along their own axes (3 x 3c), at rest."""
    at_rest = velocities(tree, joints)
    nowhere = ca.DM(6, len(contacts))
    return contact_rows(tree, joints, at_rest, contacts, axes, nowhere, along_axes=True)


def contact_sources(rows: Sequence[ContactRows]) -> list[Source]:
    """Rows of contacts as sources."""
    return [(contact.cluster, contact.K.T) for contact in rows]


def delassus(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    articulated: list[Articulated],
    sources: Sequence[Source],
    *,
    few: int = FEW,
) -> Delassus:
    """Propagate unit forces along all rows to the nodes (Algorithm 5, lines 5 to 11).

    Args:
        articulated: its articulated inertias.
        sources: rows of each contact or frame.
        few: see `_common_columns`; 0 where the matrix is not assembled.
    """
    to_base: dict[int | None, int] = {None: 0}  # coordinates between each cluster and the base
    for k in tree.outward():
        to_base[k] = to_base[tree.clusters[k].parent] + tree.clusters[k].ny
    nodes: dict[int, Node] = {}
    # Columns (6n x ...) that come together at each cluster: of rows, and of nodes further out.
    arrived: list[list[tuple[int, bool, Matrix]]] = [[] for _ in tree.clusters]
    for e, (cluster, columns) in enumerate(sources):
        if cluster is not None:
            arrived[cluster].append((e, True, columns))
    for k in tree.inward():
        if not arrived[k]:
            continue
        if len(arrived[k]) == 1 and not arrived[k][0][1]:
            n, _, F = arrived[k][0]  # nothing new: the columns of node n go on
        else:
            n, nodes[k] = k, Node()
            F, within = _common_columns([each for _, _, each in arrived[k]], few, to_base[k])
            for (source, is_source, _), columns in zip(arrived[k], within, strict=True):
                if is_source:
                    nodes[k].sources[source] = columns
                else:
                    nodes[source].parent, nodes[source].up = k, columns
            nodes[k].omega, nodes[k].basis = ca.DM(F.columns(), F.columns()), F
        F, omega = across(joints[k], articulated[k], F)
        nodes[n].omega = mirrored(nodes[n].omega + omega)  # line 10
        l = tree.clusters[k].parent
        if l is not None:
            arrived[l].append((n, False, F))
    return Delassus(nodes, [columns.columns() for _, columns in sources])


def across(joint: ClusterJoint, arti: Articulated, F: Matrix) -> tuple[Matrix, Matrix]:
    """Columns propagated across a cluster joint that is free to move, and its part of Omega."""
    at_joint = joint.J.T @ F
    T = joint.SG.T @ at_joint
    return joint.E.T @ (at_joint - arti.U @ arti.D.solve(T)), arti.D.quadratic(T)


def _common_columns(
    sources: Sequence[Matrix], few: int, to_base: int
) -> tuple[Matrix, list[Matrix]]:
    """Columns that span those of all sources, and each source in them.

    They are the sources' own, or six for each body that these touch. The latter are taken where
    they are fewer and more than ``few`` times as many coordinates are left to cross on the way to
    the base. Otherwise the sources' own columns cost less: m^2 products for each of those
    coordinates, in place of m^2 products for each of the six directions.

    Args:
        sources: columns (6n x ...) of each.
        few: how many coordinates for each direction count as few.
        to_base: number of coordinates from here to the base.
    """
    every = ca.horzcat(*sources)
    bodies = sorted({row // 6 for row in every.sparsity().row()})
    touched = [6 * body + i for body in bodies for i in range(6)]
    if every.columns() <= len(touched) or to_base <= few * len(touched):
        identity = ca.DM.eye(every.columns())
        sizes = [source.columns() for source in sources]
        return every, [part.T for part in split(identity, sizes)]
    place = ca.Sparsity.triplet(every.rows(), len(touched), touched, list(range(len(touched))))
    return ca.DM(place, 1), [source[touched, :] for source in sources]
