"""A cluster tree with some loops left open, for algorithms that close them by their forces."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca

from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.cluster_tree.tree import ClusterTree, build_cluster_tree
from rbda_ros.spatial import Matrix


@dataclass(frozen=True, eq=False)
class OpenLoops:
    """The same robot twice: with every loop embedded, and with some of them open.

    Both trees have the same bodies and joints, numbered differently.

    Attributes:
        closed: the tree with every loop embedded.
        tree: the one with open loops; its y has more coordinates.
        names: constraints that are open.
    """

    closed: ClusterTree
    tree: ClusterTree
    names: frozenset[str]

    def opened_position(self, q: Matrix) -> Matrix:
        """A spanning position (nq) of the closed tree in the order of the open one."""
        return q[self._order(self.closed.coordinates.positions)]

    def opened_velocity(self, qd: Matrix) -> Matrix:
        """A spanning velocity, acceleration or force (nv), likewise."""
        return qd[self._velocities]

    def closed_velocity(self, qd: Matrix) -> Matrix:
        """The way back."""
        place = {j: i for i, j in enumerate(self._velocities)}
        return qd[[place[j] for j in range(len(place))]]

    def opened_body(self, body: int) -> int:
        """Number, in the open tree, of a body of the closed one."""
        return self.bodies.index(body) + 1

    @cached_property
    def bodies(self) -> list[int]:
        """Number, in the closed tree, of each body of the open one."""
        number = self.closed.spanning.body_of_joint
        return [number[body.joint.name] for body in self.tree.spanning.bodies]

    @cached_property
    def _velocities(self) -> list[int]:
        return self._order(self.closed.coordinates.velocities)

    def _order(self, places: Mapping[str, range]) -> list[int]:
        """Where the coordinates of the open tree's joints are among the closed tree's."""
        return [j for body in self.tree.spanning.bodies for j in places[body.joint.name]]

    def rows(self, q: Matrix, qd: Matrix) -> tuple[Matrix, Matrix]:
        """K (m x nv) and k (m) of the open loops, with K qdd = k, in the order of the open tree.

        Args:
            q: (nq) spanning position, in the order of the closed tree.
            qd: (nv) spanning velocity, likewise.
        """
        nv = self.closed.nv
        K, k = [ca.DM(0, nv)], [ca.DM(0, 1)]
        parts = zip(
            self.closed.clusters,
            self.closed.split_positions(q),
            self.closed.split_velocities(qd),
            self.closed.velocity_ranges,
            strict=True,
        )
        for node, q_k, qd_k, place in parts:
            loop = _open_part(node, self.names)
            if loop is not None:
                own = loop.K(ca.DM(node.nq, 1) if loop.constant else q_k)
                before, after = ca.DM(own.rows(), place.start), ca.DM(own.rows(), nv - place.stop)
                K.append(ca.horzcat(before, own, after))
                k.append(loop.k(q_k, qd_k))
        return ca.vertcat(*K)[:, self._velocities], ca.vertcat(*k)


def _open_part(node: ClusterNode, names: Collection[str]) -> Loop | None:
    """The rows of a cluster's loop that belong to open constraints."""
    if node.loop is None:
        return None
    owners = [node.loop.constraints[c].name for c in node.loop.row_constraint]
    rows = [i for i, name in enumerate(owners) if name in names]
    return node.loop.with_rows(rows) if rows else None


def open_loops(closed: ClusterTree, names: Collection[str]) -> OpenLoops:
    """Leave some constraints out of the clusters.

    Args:
        closed: the tree with every loop embedded.
        names: of the constraints to leave open.
    """
    described = closed.description
    home = {
        joint: tuple(closed.home[place].tolist())
        for joint, place in closed.coordinates.positions.items()
    }
    opened = replace(
        described,
        constraints=tuple(c for c in described.constraints if c.name not in names),
        joints=tuple(replace(joint, independent=None) for joint in described.joints),
        independent_joints=None,
        # The actuated joints only serve to choose y, and there is more of it now.
        actuated_joints=None,
        assembly=home,
        warnings=(),
    )
    floating = closed.spanning.floating_base
    tree = build_cluster_tree(opened, floating, closed.gravity)
    # Payloads, if any, are in the bodies of the closed tree.
    carrying = {body.joint.name: body for body in closed.spanning.bodies}
    bodies = [
        replace(body, inertia=carrying[body.joint.name].inertia) for body in tree.spanning.bodies
    ]
    return OpenLoops(closed, tree.with_bodies(bodies), frozenset(names))
