"""Forces for a motion on top of a body's own, of the body and of all that it carries.

Let a body get an angular velocity dw more, and an acceleration (dalpha, da) at its origin. All that
it carries moves along, as one rigid motion on top of its own. A mass m at r with velocity u, both
relative to that origin, is accelerated by ``da + dalpha x r + 2 dw x u``. So all of it takes the
force and the moment

    dF = m da + dalpha x h + 2 dw x p                                                       (a)
    dN = h x da + I dalpha + C dw                                                           (b)

more, with its mass m, first moment h, inertia I, momentum ``p = sum m u`` and, from
``D = sum m u r'``, ``C = 2 (tr(D) 1 - D)``: all that must be known of the composite. A motion on
top is a column (9) of dw, dalpha and da.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from rbda_ros.algorithms.motion import Clustered
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, Transform, constant, mirrored, turned

cross = ca.cross
Place = tuple[int, int]
"""A cluster, and a body's place in it."""
AT_REST = ca.DM(3, 1)


@dataclass(frozen=True, eq=False)
class Composite:
    """A body and all that it carries, about the body's origin, in its axes.

    Attributes:
        m: mass.
        h: (3) first moment.
        I: (3 x 3) inertia.
        p: (3) momentum relative to the origin, twice.
        C: (3 x 3) moment that an angular velocity on top of the own motion takes (b).
    """

    m: Matrix
    h: Matrix
    I: Matrix
    p: Matrix
    C: Matrix

    def forces(self, motions: Matrix) -> Matrix:
        """(6 x n) moments (b) and forces (a) that motions on top (9 x n) take."""
        taken = [ca.DM(6, 0)]
        for motion in ca.horzsplit(motions):
            dw, dalpha, da = motion[:3], motion[3:6], motion[6:]
            dN = cross(self.h, da) + self.I @ dalpha + self.C @ dw
            dF = self.m * da + cross(dalpha, self.h) + cross(dw, self.p)
            taken.append(ca.vertcat(dN, dF))
        return ca.horzcat(*taken)

    def forms(self, S: Matrix) -> Matrix:
        """(9 x n) the force along axes S (6 x n) as linear forms of motions on top of the body."""
        found = [ca.DM(9, 0)]
        for axis in ca.horzsplit(S):
            s, d = axis[:3], axis[3:]
            by_dalpha = self.I @ s + cross(self.h, d)
            by_da = cross(s, self.h) + self.m * d
            found.append(ca.vertcat(self.C.T @ s + cross(self.p, d), by_dalpha, by_da))
        return ca.horzcat(*found)

    def carried(self, X: Transform, U: Matrix) -> Composite:
        """The same about the origin of the body before, whose axes X comes from.

        Args:
            X: from that body to this one.
            U: (3) velocity of this origin relative to that one, in that body's axes, twice.
        """
        m, h, I, p, C = self.m, self.h, self.I, self.p, self.C
        for E, r in reversed(X.steps):
            if E is not None:
                h, I, p, C = E.T @ h, turned(E, I), E.T @ p, turned(E, C)
            if r is not None:
                further = _moment(h + 0.5 * m * r, r)
                h, I, C = h + m * r, I + further + further.T, C + _moment(p, r)
        return Composite(m, h, mirrored(I), p + m * U, C + _moment(U, h))

    def __add__(self, other: Composite) -> Composite:
        return Composite(
            self.m + other.m,
            self.h + other.h,
            self.I + other.I,
            self.p + other.p,
            self.C + other.C,
        )


def single_body(inertia: Matrix, w: Matrix) -> Composite:
    """A body of a spatial inertia (6 x 6), alone and turning with w (3).

    ``D = [w]x sum m r r'``; its trace is 0.
    """
    I, h = inertia[:3, :3], ca.vertcat(inertia[2, 4], inertia[0, 5], inertia[1, 3])
    second_moment = 0.5 * ca.trace(I) * ca.DM.eye(3) - I
    return Composite(inertia[3, 3], h, I, cross(2 * w, h), ca.skew(w) @ (-2 * second_moment))


def single_bodies(
    tree: ClusterTree, w: Mapping[Place, Matrix] | None = None
) -> dict[Place, Composite]:
    """Every body alone, turning with its w (3); None at rest."""
    return {
        (k, i): single_body(constant(body.inertia), AT_REST if w is None else w[k, i])
        for k, node in enumerate(tree.clusters)
        for i, body in enumerate(node.bodies)
    }


def angular_velocities(tree: ClusterTree, v: Clustered) -> dict[Place, Matrix]:
    """w (3) of every body, from velocities as of `motion`."""
    return {(k, i): v_i[:3] for k in tree.outward() for i, v_i in enumerate(ca.vertsplit(v[k], 6))}


def bodies_inward(
    tree: ClusterTree, joints: list[ClusterJoint], k: int
) -> list[tuple[int, Transform, Matrix, Place | None]]:
    """The bodies of a cluster from its tips to its base.

    Of each its place in the cluster, the transform to it, the motions (6 x ny) across its joint,
    and where the body before it is; None for the fixed base.
    """
    node, joint = tree.clusters[k], joints[k]
    before: list[Place | None] = []
    for inside, output in zip(node.inside, node.output, strict=True):
        outside = None if node.parent is None or output is None else (node.parent, output)
        before.append(outside if inside is None else (k, inside))
    parts = zip(joint.J.X_up, ca.vertsplit(joint.SG, 6), before, strict=True)
    return [(i, *part) for i, part in enumerate(parts)][::-1]


def composites(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    w: Mapping[Place, Matrix] | None = None,
    U: Mapping[Place, Matrix] | None = None,
) -> tuple[dict[Place, Composite], Composite]:
    """Every body with all that it carries, and the whole robot about the origin of the world.

    Args:
        w: (3) angular velocity of every body; None at rest.
        U: (3) as `Composite.carried` takes it, of every body; None at rest.
    """
    found: dict[Any, Composite] = {**single_bodies(tree, w)}
    at_base = ca.DM(6, 6) if tree.base_inertia is None else constant(tree.base_inertia)
    found[None] = single_body(at_base, AT_REST)
    for k in tree.inward():
        for i, X, _, before in bodies_inward(tree, joints, k):
            if U is None:
                carried = found[k, i].carried(X, AT_REST)
            else:
                carried = found[k, i].carried(X.joined(), U[k, i])
            found[before] = found[before] + carried
    total = found.pop(None)
    return found, total


def carried_forms(forms: Matrix, X: Transform, U: Matrix) -> Matrix:
    """Linear forms (9 x n) of motions on top of a body, as those on top of the body before it.

    Args:
        forms: by dw, dalpha and da of the body.
        X, U: as for `Composite.carried`.
    """
    columns = forms.columns()
    wrenches = X.T @ forms[3:, :]
    by_dw = (X.rotation.T @ ca.vertcat(forms[:3, :], ca.DM(3, columns)))[:3, :]
    turning = [cross(U, wrench[3:]) for wrench in ca.horzsplit(wrenches)]
    return ca.vertcat(by_dw + ca.horzcat(*turning), wrenches)


def _moment(u: Matrix, r: Matrix) -> Matrix:
    """``u'r 1 - u r'`` (3 x 3): ``r x (dw x u)``, as a matrix for dw."""
    D = u @ r.T
    x, y, z = D[0, 0], D[1, 1], D[2, 2]
    return ca.diag(ca.vertcat(y + z, x + z, x + y)) - (D - ca.diag(ca.diag(D)))
