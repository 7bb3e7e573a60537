"""Derivatives of inverse dynamics by recursions on the cluster tree, exact on the manifold.

The idea of Singh, Russo and Wensing, "Efficient Analytical Derivatives of Rigid-Body Dynamics
using Spatial Vector Algebra" (2022), for clusters. A coordinate of y moves the tree joints of its
cluster by a column of G, and changes their velocities and accelerations as its loops have it. Each
tree joint gives all that it carries a motion on top (`joint_changes`), which takes forces
(`composites`): those are carried inward, and their parts along y are the entries of
that coordinate's column with all that support it. The entries of its row are the other way round:
the force along it is a linear form of motions on top, and is carried inward as that.

For a floating base the direction is the base twist, linear then angular, in the base frame.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca

from rbda_ros.algorithms.composites import (
    Composite,
    Place,
    angular_velocities,
    bodies_inward,
    carried_forms,
    single_bodies,
)
from rbda_ros.algorithms.joint_changes import JointChange, LoopChange, joint_changes, loop_change
from rbda_ros.algorithms.loop_motion import spanning_velocity, spring_force
from rbda_ros.algorithms.motion import (
    accelerations,
    cluster_joints,
    gravity,
    turned_velocity,
    velocities,
)
from rbda_ros.algorithms.rnea import body_forces, inverse_dynamics
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.spanning_tree import ranges
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, Transform, constant


def inverse_dynamics_derivatives(
    tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix
) -> tuple[Matrix, Matrix]:
    """``d tau / d y`` and ``d tau / d yd`` (ny x ny each); ``d tau / d ydd`` is H.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity.
        ydd: (ny) independent acceleration.
    """
    # Outward pass: motion of every body, and what each coordinate would change of it.
    yds, ydds = tree.split_independent(yd), tree.split_independent(ydd)
    state = zip(tree.clusters, tree.split_positions(q), yds, ydds, strict=True)
    loops = [loop_change(*of_cluster) for of_cluster in state]
    joints = cluster_joints(tree, q, yd)
    joints = [replace(joint, g=loop.g) for joint, loop in zip(joints, loops, strict=True)]
    v = velocities(tree, joints)
    a = accelerations(tree, joints, v, ydd, gravity(tree))
    qdd = [loop.G @ ydd_k + loop.g for loop, ydd_k in zip(loops, ydds, strict=True)]
    changes = joint_changes(tree, joints, (v, a), q, qdd)
    inward = [bodies_inward(tree, joints, k) for k in range(len(joints))]
    velocity = [joint.qd for joint in joints]
    parts = zip(tree.clusters, inward, changes, loops, velocity, strict=True)
    clusters = [_Cluster(*each) for each in parts]

    # Inward pass: composites, forces, and the entries of each cluster with those that carry it.
    entries = _Entries(tree, clusters)
    forces = body_forces(tree, v, a)
    f = {(k, i): f_i for k in tree.outward() for i, f_i in enumerate(ca.vertsplit(forces[k], 6))}
    composites = single_bodies(tree, angular_velocities(tree, v))
    for k in tree.inward():
        for i, X, _, before in inward[k]:
            if before is not None:
                moved = composites[k, i].carried(X, changes[k][i].U)
                composites[before] = composites[before] + moved
                f[before] = f[before] + X.T @ f[k, i]
        entries.fill(k, composites, f, qdd[k])
    if tree.springs is not None:
        entries.by_y += _of_springs(tree, q, [loop.G for loop in loops])
    return entries.by_y, entries.by_yd


def _of_springs(tree: ClusterTree, q: Matrix, G: list[Matrix]) -> Matrix:
    """Derivative by y of the force that holds the springs (ny x ny)."""
    by_q = ca.jacobian(spring_force(tree, q), q)
    moves = ca.diagcat(*G)
    rates = (tree.position_rate(q, moves[:, j]) for j in range(tree.ny))
    return by_q @ ca.horzcat(ca.DM(tree.nq, 0), *rates)


@dataclass(frozen=True, eq=False)
class _Cluster:
    """A cluster, its bodies inward, what its coordinates change, and its velocity (nv)."""

    node: ClusterNode
    inward: list[tuple[int, Transform, Matrix, Place | None]]
    joints: list[JointChange]
    loop: LoopChange
    qd: Matrix

    def across(self, rates: Matrix) -> Matrix:
        """Spanning rates (nv x n) as rates across tree joints."""
        relative = self.node.relative
        return rates if relative is None else constant(relative) @ rates

    def by_coordinates(
        self, i: int, by_position: Matrix, by_velocity: Matrix, by_acceleration: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Changes by y and yd of the cluster through its joint i, from those of that joint.

        Args:
            i: the joint.
            by_position, by_velocity, by_acceleration: (n x joint's nv) of anything.

        Returns:
            by y and by yd, (n x ny) each.
        """
        rates, loop = self.joints[i].rates, self.loop
        by_y = by_velocity @ self.across(loop.qd_by_y)[rates, :]
        by_y += by_acceleration @ self.across(loop.qdd_by_y)[rates, :]
        by_yd = by_velocity @ self.across(loop.G)[rates, :]
        by_yd += by_acceleration @ self.across(loop.qdd_by_yd)[rates, :]
        return by_position @ self.moved(i) + by_y, by_yd

    def moved(self, i: int) -> Matrix:
        """How far y moves the frame of joint i's body (joint's nv x ny): not where it stands."""
        G = self.loop.G[self.joints[i].rates, :]
        return G if self.node.bodies[i].turns else ca.DM(*G.shape)

    def along(self, i: int, parts: Matrix) -> Matrix:
        """Parts (joint's nv x n) along joint i's axes, as those along y (ny x n)."""
        return self.across(self.loop.G)[self.joints[i].rates, :].T @ parts


class _Entries:
    """Both matrices, while they are filled.

    Args:
        clusters: its clusters.
    """

    def __init__(self, tree: ClusterTree, clusters: list[_Cluster]) -> None:
        self.tree, self.clusters = tree, clusters
        self.places = [slice(r.start, r.stop) for r in ranges(node.ny for node in tree.clusters)]
        self.by_y, self.by_yd = ca.SX(tree.ny, tree.ny), ca.SX(tree.ny, tree.ny)

    def fill(
        self, k: int, composites: dict[Place, Composite], f: dict[Place, Matrix], qdd: Matrix
    ) -> None:
        """The entries of cluster k with itself and with those that carry it, nearest first.

        Args:
            k: the cluster.
            composites: of every body that is done.
            f: (6) force on each of these, and on all that it carries.
            qdd: (nv) spanning acceleration of the cluster.
        """
        own = self.clusters[k]
        self._add(k, k, *_of_loops(own, [f[k, i] for i in range(len(own.joints))], qdd))
        # On each body: forces that changes of y and yd take, and forms of forces along y.
        ny = own.node.ny
        nothing = ca.DM(6, 2 * ny), ca.DM(9, ny)
        arriving: dict[Place | None, tuple[Matrix, Matrix]] = {}
        for l in self.tree.path(k):
            for i, X, _, before in self.clusters[l].inward:
                if l != k and (l, i) not in arriving:
                    continue
                joint = self.clusters[l].joints[i]
                F, forms = arriving.get((l, i), nothing)
                self._add_forms(k, l, i, forms)
                if l == k:
                    F = F + _taken(own, i, composites[k, i])
                    forms = forms + own.along(i, composites[k, i].forms(joint.S).T).T
                self._add_forces(l, k, i, F)
                if l == k:
                    F = F + ca.horzcat(joint.turned_forces(f[k, i]) @ own.moved(i), ca.DM(6, ny))
                others = arriving.get(before, nothing)
                carried = carried_forms(forms, X, joint.U)
                arriving[before] = others[0] + X.T @ F, others[1] + carried

    def _add(self, row: int, column: int, by_y: Matrix, by_yd: Matrix) -> None:
        rows, columns = self.places[row], self.places[column]
        self.by_y[rows, columns] += by_y
        self.by_yd[rows, columns] += by_yd

    def _add_forces(self, l: int, k: int, i: int, F: Matrix) -> None:
        """Forces (6 x 2 ny) on body i of cluster l that y and yd of cluster k take, along y."""
        cluster = self.clusters[l]
        along_y = cluster.along(i, cluster.joints[i].S.T @ F)
        self._add(l, k, *ca.horzsplit(along_y, F.columns() // 2))

    def _add_forms(self, k: int, l: int, i: int, forms: Matrix) -> None:
        """Forces of joint i of cluster l along y of cluster k, by its linear forms (9 x ny)."""
        joint, forms = self.clusters[l].joints[i], forms.T
        changes = joint.by_position, joint.by_velocity, joint.by_acceleration
        self._add(k, l, *self.clusters[l].by_coordinates(i, *(forms @ each for each in changes)))


def _taken(cluster: _Cluster, i: int, composite: Composite) -> Matrix:
    """Forces (6 x 2 ny) that joint i's own changes, by y and by yd, take of all that it carries."""
    joint = cluster.joints[i]
    changes = joint.by_position, joint.by_velocity, joint.by_acceleration
    return ca.horzcat(*cluster.by_coordinates(i, *(composite.forces(each) for each in changes)))


def _of_loops(cluster: _Cluster, f: list[Matrix], qdd: Matrix) -> tuple[Matrix, Matrix]:
    """Changes of a cluster's forces along y by its own G, axes and armature (ny x ny each)."""
    node, loop = cluster.node, cluster.loop
    armature = constant(node.joint_armature)
    across = [joint.S.T @ f_i for joint, f_i in zip(cluster.joints, f, strict=True)]
    relative = ca.DM.eye(node.nv) if node.relative is None else constant(node.relative)
    r, r_by_qd = turned_velocity(node, cluster.qd)
    on_joints = relative.T @ ca.vertcat(*across) + armature * (qdd + r)
    by_y = ca.DM(node.ny, node.ny)
    if loop.G_by_y:
        by_y = ca.horzcat(*(dG.T @ on_joints for dG in loop.G_by_y))
    by_y += loop.G.T @ (ca.diag(armature) @ (loop.qdd_by_y + r_by_qd @ loop.qd_by_y))
    for i, joint in enumerate(cluster.joints):
        by_y += cluster.along(i, joint.turned_axes(f[i]) @ cluster.moved(i))
    by_yd = loop.G.T @ (ca.diag(armature) @ (loop.qdd_by_yd + r_by_qd @ loop.G))
    return by_y, by_yd


def inverse_dynamics_along(
    tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix, x: Matrix
) -> tuple[Matrix, Matrix]:
    """The derivatives (ny each) of inverse dynamics as y, or yd, moves along x (ny)."""
    tau = inverse_dynamics(tree, q, yd, ydd)
    q_rate = tree.position_rate(q, spanning_velocity(tree, q, x))
    return ca.jtimes(tau, q, q_rate), ca.jtimes(tau, yd, x)
