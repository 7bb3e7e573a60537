"""The damped inverse Delassus matrix without factorizing it: cABA-OSIM (Sathya 2024, Algorithm 5).

By the matrix inversion lemma ``(J H^-1 J' + I/mu)^-1 = mu I - mu J M^-1 J' mu``, where
``M = H + mu J'J`` is the mass matrix of the robot with ``mu K'K`` added to the inertias of the
bodies that contacts hold (40). So this is a Delassus matrix of that robot, found by propagation.

Unit forces are carried inward through free joints. Where contacts or branches meet, at a *node*,
they are rewritten in the six directions of each body there, if these are fewer: however many
contacts there are, a joint is passed by six columns at most, and the cost grows as n + m^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca

from rbda_ros.algorithms.aba import Articulated, articulated_inertias
from rbda_ros.algorithms.constrained_aba import augmentation
from rbda_ros.algorithms.contact_rows import ContactFrame, contact_rows, split
from rbda_ros.algorithms.motion import cluster_joints, velocities
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, mirrored


@dataclass(eq=False)
class Node:
    """A cluster where contacts or branches meet: a member of N in the paper.

    Attributes:
        parent: index of the next node towards the base; None for the last.
        up: (parent's columns x own columns) its columns in those of the parent.
        omega: (columns x columns) acceleration along its columns per force along them, from the
            joints between it and its parent.
        contacts: for each contact on this cluster, its rows in the node's columns.
    """

    parent: int | None = None
    up: Matrix = None
    omega: Matrix = None
    contacts: dict[int, Matrix] = field(default_factory=dict)


def caba_osim(
    tree: ClusterTree, q: Matrix, axes: Matrix, contacts: Sequence[ContactFrame], mu: float
) -> Matrix:
    """``(J H^-1 J' + I/mu)^-1`` (m x m), rows along the contacts' axes, linear ones first.

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold.
        axes: (3 x 3c) axes of each contact, as columns in world axes.
        contacts: the contacts; m rows in all.
        mu: inverse of the damping [kg].
    """
    nodes = _propagated(tree, q, axes, contacts, mu)
    whole: dict[int, Matrix] = {}  # Omega of each node, with all joints below it (line 13)
    for n in sorted(nodes):
        node = nodes[n]
        below = whole[node.parent] if node.parent is not None else None
        more = 0 if below is None else node.up.T @ below @ node.up
        whole[n] = mirrored(node.omega + more)

    # Columns of each contact at every node on its way to the base (line 16).
    at: list[dict[int, Matrix]] = [{} for _ in contacts]
    for n, node in nodes.items():
        for e, columns in node.contacts.items():
            here: int | None = n
            while here is not None:
                at[e][here] = columns
                columns, here = _up(nodes[here], columns), nodes[here].parent

    sizes = [contact.size for contact in contacts]
    blocks = []
    for i, rows in enumerate(sizes):
        row = [ca.DM(rows, size) for size in sizes]
        for j in range(i, len(sizes)):
            if common := at[i].keys() & at[j].keys():
                n = max(common)  # the closest common node (line 18)
                row[j] = at[i][n].T @ whole[n] @ at[j][n]
        blocks.append(ca.horzcat(*row))
    m = sum(sizes)
    return mu * ca.DM.eye(m) - mu**2 * mirrored(ca.vertcat(ca.DM(0, m), *blocks))  # line 21


def caba_osim_product(
    tree: ClusterTree,
    q: Matrix,
    axes: Matrix,
    x: Matrix,
    contacts: Sequence[ContactFrame],
    mu: float,
) -> Matrix:
    """``(J H^-1 J' + I/mu)^-1 x`` (m) in O(n + m): the matrix is never assembled.

    Sec. VI-B does so at a floating base, where the legs meet; here every node does.
    """
    nodes = _propagated(tree, q, axes, contacts, mu)
    parts = split(x, [contact.size for contact in contacts])
    force: dict[int, Matrix] = dict.fromkeys(nodes, 0)
    for n in sorted(nodes, reverse=True):
        node = nodes[n]
        force[n] += sum(columns @ parts[e] for e, columns in node.contacts.items())
        if node.parent is not None:
            force[node.parent] += node.up @ force[n]
    acceleration: dict[int, Matrix] = {}
    response = [ca.DM(contact.size, 1) for contact in contacts]
    for n in sorted(nodes):
        node = nodes[n]
        acceleration[n] = node.omega @ force[n]
        if node.parent is not None:
            acceleration[n] += node.up.T @ acceleration[node.parent]
        for e, columns in node.contacts.items():
            response[e] = columns.T @ acceleration[n]
    return mu * x - mu**2 * ca.vertcat(ca.DM(0, 1), *response)


def _up(node: Node, columns: Matrix) -> Matrix:
    return columns if node.parent is None else node.up @ columns


def _propagated(
    tree: ClusterTree, q: Matrix, axes: Matrix, contacts: Sequence[ContactFrame], mu: float
) -> dict[int, Node]:
    """Nodes by cluster index, with the columns of each carried to the next."""
    joints = cluster_joints(tree, q)
    nowhere = ca.DM(6, len(contacts))
    v = velocities(tree, joints)
    rows = contact_rows(tree, joints, v, contacts, axes, nowhere, along_axes=True)
    articulated = articulated_inertias(tree, joints, augmentation(rows, mu))

    nodes: dict[int, Node] = {}
    # Columns (6n x ...) that come together at each cluster: of contacts, and of nodes further out.
    arrived: list[list[tuple[int, bool, Matrix]]] = [[] for _ in tree.clusters]
    for e, contact in enumerate(rows):
        arrived[contact.cluster].append((e, True, contact.K.T))
    for k in tree.inward():
        if not arrived[k]:
            continue
        if len(arrived[k]) == 1 and not arrived[k][0][1]:
            n, _, F = arrived[k][0]  # nothing new: the columns of node n go on
        else:
            n, nodes[k] = k, Node()
            F, within = _common_columns([columns for _, _, columns in arrived[k]])
            for (source, is_contact, _), columns in zip(arrived[k], within, strict=True):
                if is_contact:
                    nodes[k].contacts[source] = columns
                else:
                    nodes[source].parent, nodes[source].up = k, columns
            nodes[k].omega = ca.DM(F.columns(), F.columns())
        F, omega = _across(joints[k], articulated[k], F)
        nodes[n].omega = mirrored(nodes[n].omega + omega)  # line 10
        l = tree.clusters[k].parent
        if l is not None:
            arrived[l].append((n, False, F))
    return nodes


def _across(joint: ClusterJoint, arti: Articulated, F: Matrix) -> tuple[Matrix, Matrix]:
    """Columns carried across a cluster joint that is free to move, and its part of Omega."""
    across = joint.J.T @ F
    T = joint.SG.T @ across
    return joint.E.T @ (across - arti.U @ arti.D.solve(T)), arti.D.quadratic(T)


def _common_columns(sources: Sequence[Matrix]) -> tuple[Matrix, list[Matrix]]:
    """Columns that span those of all sources, and each source in them: the fewer of two choices."""
    every = ca.horzcat(*sources)
    bodies = sorted({row // 6 for row in every.sparsity().row()})
    touched = [6 * body + i for body in bodies for i in range(6)]
    if every.columns() <= len(touched):
        identity = ca.DM.eye(every.columns())
        sizes = [source.columns() for source in sources]
        return every, [part.T for part in split(identity, sizes)]
    place = ca.Sparsity.triplet(every.rows(), len(touched), touched, list(range(len(touched))))
    return ca.DM(place, 1), [source[touched, :] for source in sources]
