"""Derivatives of inverse dynamics by recursions on a tree of single bodies, without loops.

The idea of Singh, Russo and Wensing, "Efficient Analytical Derivatives of Rigid-Body Dynamics
using Spatial Vector Algebra" (2022), in the velocities and accelerations of `algorithms.motion`,
which are relative to the origin of each body.

Let coordinate j change. All that it carries moves along, as one rigid motion on top of its own:
with an angular velocity dw and an acceleration (dalpha, da) at the origin of body j. A mass m at r
with velocity u, both relative to that origin, is accelerated by ``da + dalpha x r + 2 dw x u``. So
all that body j carries takes the force and the moment

    dF = m da + dalpha x h + 2 dw x p                                                       (a)
    dN = h x da + I dalpha + C dw                                                           (b)

more, with its mass m, first moment h, inertia I, momentum ``p = sum m u`` and, from
``D = sum m u r'``, ``C = 2 (tr(D) 1 - D)``: all that must be known of the composite. Along the axis
of a joint k that it carries, this is ``l'da + n'dalpha + g'dw``, the same linear form for every
coordinate below k (c).
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from rbda_ros.algorithms.motion import (
    Clustered,
    accelerations,
    cluster_joints,
    gravity,
    turning,
    velocities,
)
from rbda_ros.algorithms.rnea import body_forces
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.coordinates import ranges
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, Transform, constant, turned

cross = ca.cross


@dataclass
class Composite:
    """A body and all that it carries, about the body's origin, in its axes.

    Attributes:
        inertia: (6 x 6) I, h and m.
        p: (3) momentum relative to the origin, twice.
        C: (3 x 3) moment that an angular velocity on top of the own motion takes (b).
    """

    inertia: Matrix
    p: Matrix
    C: Matrix

    @property
    def m(self) -> Matrix:
        """Mass."""
        return self.inertia[3, 3]

    @property
    def h(self) -> Matrix:
        """(3) first moment."""
        return ca.vertcat(self.inertia[2, 4], self.inertia[0, 5], self.inertia[1, 3])

    def force(self, dw: Matrix, dalpha: Matrix, da: Matrix) -> Matrix:
        """(6) moment (b) and force (a) that a motion on top of the own one takes."""
        dF = self.m * da + cross(dalpha, self.h) + cross(dw, self.p)
        dN = cross(self.h, da) + self.inertia[:3, :3] @ dalpha + self.C @ dw
        return ca.vertcat(dN, dF)

    def carried(self, X: Transform, U: Matrix) -> Composite:
        """The same about the origin of the body before, whose axes X comes from.

        Args:
            X: from that body to this one.
            U: (3) velocity of this origin relative to that one, in that body's axes, twice.
        """
        inertia, p, C = X.congruence(self.inertia), self.p, self.C
        for E, r in reversed(X.steps):
            if E is not None:
                p, C = E.T @ p, turned(E, C)
            if r is not None:
                C = C + _moment(p, r)
        moved = Composite(inertia, p, C)
        return Composite(inertia, p + self.m * U, C + _moment(U, moved.h))

    def __add__(self, other: Composite) -> Composite:
        return Composite(self.inertia + other.inertia, self.p + other.p, self.C + other.C)


def _moment(u: Matrix, r: Matrix) -> Matrix:
    """``u'r 1 - u r'`` (3 x 3): ``r x (dw x u)``, as a matrix for dw."""
    D = u @ r.T
    x, y, z = D[0, 0], D[1, 1], D[2, 2]
    return ca.diag(ca.vertcat(y + z, x + z, x + y)) - (D - ca.diag(ca.diag(D)))


@dataclass
class Axis:
    """What a coordinate of a joint does when it changes, in the axes of its body at its origin.

    Attributes:
        s, d: (3) how the joint turns and slides.
        by_position, by_velocity: dw, dalpha, da (3 each).
    """

    s: Matrix
    d: Matrix
    by_position: tuple[Matrix, Matrix, Matrix]
    by_velocity: tuple[Matrix, Matrix, Matrix]


@dataclass
class Along:
    """The linear form (c) of a coordinate k, at the origin of a body that carries it.

    Attributes:
        wrench: (6) n, l.
        g: (3)
    """

    wrench: Matrix
    g: Matrix

    def of(self, motion: tuple[Matrix, Matrix, Matrix]) -> Matrix:
        """The force along k that a motion on top of the own one takes."""
        dw, dalpha, da = motion
        return ca.dot(self.wrench[:3], dalpha) + ca.dot(self.wrench[3:], da) + ca.dot(self.g, dw)


def has_tree_derivatives(tree: ClusterTree) -> bool:
    """Whether bodies are single, on joints of one axis; but for a floating base."""
    for node in tree.clusters:
        axis = node.nv == 1 and len(node.bodies) == 1
        base = node.parent is None and node.bodies[0].joint.type == "floating"
        if node.loop is not None or not (axis or (base and len(node.bodies) == 1)):
            return False
    return True


def tree_derivatives(
    tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix
) -> tuple[Matrix, Matrix]:
    """``d tau / d y`` and ``d tau / d yd`` (ny x ny each) of a tree, see `has_tree_derivatives`.

    Args:
        tree: the cluster tree.
        q: (nq) spanning position.
        yd: (ny) independent velocity.
        ydd: (ny) independent acceleration.
    """
    # Outward pass: motion of every body, and what each coordinate would add to it.
    joints = cluster_joints(tree, q, yd)
    v = velocities(tree, joints)
    a = accelerations(tree, joints, v, ydd, gravity(tree))
    f = body_forces(tree, v, a)
    places = ranges(node.ny for node in tree.clusters)
    axes = [_axis(tree, joints, v, a, k, i) for k, of in enumerate(places) for i in range(len(of))]

    # Inward pass: composites, and the entries of each coordinate with those that carry it.
    derivatives = _Derivatives(tree, joints, v, places, axes)
    composite = [
        _composite(constant(node.bodies[0].inertia), v[k][:3])
        for k, node in enumerate(tree.clusters)
    ]
    for j in tree.inward():
        for column in places[j]:
            take = _column(composite[j], axes[column], f[j], floating=len(places[j]) > 1)
            derivatives.fill(j, column, take, _along(composite[j], axes[column]))
        parent = tree.clusters[j].parent
        if parent is not None:
            X = joints[j].J.X_up[0]
            moved = composite[j].carried(X, _origin_velocity(joints[j], v[parent]))
            composite[parent] = composite[parent] + moved
            f[parent] = f[parent] + X.T @ f[j]
    return derivatives.by_y, derivatives.by_yd


class _Derivatives:
    """Both matrices, while they are filled.

    Args:
        tree, joints, v: the robot and its motion.
        places: coordinates of each cluster.
        axes: of each coordinate.
    """

    def __init__(
        self,
        tree: ClusterTree,
        joints: list[ClusterJoint],
        v: Clustered,
        places: tuple[range, ...],
        axes: list[Axis],
    ) -> None:
        self.tree, self.joints, self.v, self.places, self.axes = tree, joints, v, places, axes
        self.by_y, self.by_yd = ca.SX(tree.ny, tree.ny), ca.SX(tree.ny, tree.ny)

    def fill(self, j: int, column: int, take: tuple[Matrix, Matrix], along: Along) -> None:
        """The entries of a coordinate with itself and with those that carry it, nearest first.

        Args:
            j: its cluster.
            column: its place in y.
            take: (6 each) what all that it carries takes more, by its position and its velocity.
            along: the linear form (c) of it.
        """
        forces, g = ca.horzcat(*take, along.wrench), along.g
        k: int | None = j
        while k is not None:
            for i in self.places[k]:
                axis = self.axes[i]
                S = ca.vertcat(axis.s, axis.d)
                self.by_y[i, column] = S.T @ forces[:, 0]
                self.by_yd[i, column] = S.T @ forces[:, 1]
                if k != j:
                    here = Along(forces[:, 2], g)
                    self.by_y[column, i] = here.of(axis.by_position)
                    self.by_yd[column, i] = here.of(axis.by_velocity)
            joint, k = self.joints[k], self.tree.clusters[k].parent
            if k is not None:
                X = joint.J.X_up[0]
                forces = X.T @ forces
                U = _origin_velocity(joint, self.v[k])
                in_axes = X.rotation.T @ ca.vertcat(g, ca.DM(3, 1))
                g = in_axes[:3] + cross(U, forces[3:, 2])


def _composite(inertia: Matrix, w: Matrix) -> Composite:
    """A body alone, turning with w: ``D = [w]x sum m r r'``, from its inertia; its trace is 0."""
    own = Composite(inertia, ca.DM(3, 1), ca.DM(3, 3))
    I = inertia[:3, :3]
    second_moment = 0.5 * ca.trace(I) * ca.DM.eye(3) - I
    return Composite(inertia, cross(2 * w, own.h), ca.skew(w) @ (-2 * second_moment))


def _axis(
    tree: ClusterTree, joints: list[ClusterJoint], v: Clustered, a: Clustered, k: int, i: int
) -> Axis:
    """Coordinate i of cluster k."""
    joint, node = joints[k], tree.clusters[k]
    S = joint.SG[:, i]
    s, d = S[:3], S[3:]
    w_body = v[k][:3]
    X, parent = joint.J.X_up[0], node.parent
    w, alpha, (_, p) = v[parent][:3], a[parent][:3], X.pose()
    before = X.rotation @ ca.horzcat(
        ca.vertcat(w, ca.DM(3, 1)),
        ca.vertcat(alpha, a[parent][3:] + turning(w, alpha) @ p),
    )
    w, alpha, a_origin = before[:3, 0], before[:3, 1], before[3:, 1]
    if node.ny > 1:  # a floating base: its rates are in its own axes, and turn with it
        nothing = ca.DM(3, 1)
        slide = joint.S_qd[3:]
        return Axis(
            s,
            d,
            by_position=(nothing, nothing, cross(a_origin, s)),
            by_velocity=(s, cross(w_body, s), cross(w_body, d) + cross(s, slide)),
        )
    dw = cross(w, s)
    return Axis(
        s,
        d,
        by_position=(
            dw,
            cross(alpha, s) + cross(w, dw),
            cross(a_origin, s) + turning(w, alpha) @ d + 2 * cross(dw, joint.S_qd[3:]),
        ),
        by_velocity=(s, 2 * dw, 2 * cross(w, d)),
    )


def _column(
    composite: Composite, axis: Axis, f: Matrix, *, floating: bool
) -> tuple[Matrix, Matrix]:
    """What all that coordinate j carries takes more, by its position and by its velocity (6 each).

    The forces f on it turn with it, too; but of a floating base they are told in its own axes.
    """
    by_position = composite.force(*axis.by_position)
    if not floating:
        N, F = f[:3], f[3:]
        by_position += ca.vertcat(cross(axis.s, N) + cross(axis.d, F), cross(axis.s, F))
    return by_position, composite.force(*axis.by_velocity)


def _along(composite: Composite, axis: Axis) -> Along:
    """The linear form (c) of a coordinate at its own origin."""
    s, d, h = axis.s, axis.d, composite.h
    n = composite.inertia[:3, :3] @ s + cross(h, d)
    return Along(
        ca.vertcat(n, cross(s, h) + composite.m * d), composite.C.T @ s + cross(composite.p, d)
    )


def _origin_velocity(joint: ClusterJoint, v_before: Matrix) -> Matrix:
    """Velocity (3) of a body's origin relative to the body before's, in that one's axes, twice."""
    R, p = joint.J.X_up[0].pose()
    return cross(2 * v_before[:3], p) + 2 * (R @ joint.S_qd[3:])
