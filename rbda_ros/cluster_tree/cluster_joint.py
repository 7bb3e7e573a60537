"""The cluster joint: motion that tree joints and loops together allow (Chignoli 2024, Sec. III).

A clustered vector stacks one 6-vector per body of the cluster, each in its body's frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.cluster_tree.spanning_tree import Body, joint_slices, ranges
from rbda_ros.cluster_tree.straight_line import least_squares, pivoted_columns
from rbda_ros.spatial import Matrix, Transform, constant, cross_force, mirrored


@dataclass(frozen=True, eq=False)
class ClusterNode:
    """A node of the cluster tree: bodies, and the loop constraints among their joints.

    Attributes:
        name: of its lowest body, as the paper identifies clusters.
        bodies: the bodies C_k, ascending in the regular numbering.
        numbers: their regular numbers; consecutive.
        parent: lambda_C(k), the index of the parent cluster; None for the fixed base.
        inside: for each body, the position of its parent in this cluster; None for base bodies.
        output: for each base body, the position of its parent, an output body, in the parent
            cluster; None for the others.
        loop: the constraints; None where there are none.
        independent: positions, among the cluster's velocity coordinates, of y_k.
        home: (nq,) a position that closes the loops: the assembly, or zero.
        warnings: what was odd about its assembly.
        actuated: positions, among the velocity coordinates, of those that actuators act on.
        driven: positions in y_k, as many as the actuators can drive independently.
        relative: (nv, nv) spanning velocities to velocities across tree joints, where bodies do
            not hang from those that their joints are on (see `regroup`); None where all do.
        rotor_armature: (ny, ny) inertia of rotors that are no bodies any more (see `armature`);
            None where there are none.
    """

    name: str
    bodies: tuple[Body, ...]
    numbers: tuple[int, ...]
    parent: int | None
    inside: tuple[int | None, ...]
    output: tuple[int | None, ...]
    loop: Loop | None
    independent: tuple[int, ...]
    home: NDArray[np.float64]
    warnings: tuple[str, ...]
    actuated: tuple[int, ...]
    driven: tuple[int, ...]
    relative: NDArray[np.float64] | None = None
    rotor_armature: NDArray[np.float64] | None = None

    @cached_property
    def nq(self) -> int:
        """Number of spanning positions."""
        return sum(body.model.nq for body in self.bodies)

    @cached_property
    def nv(self) -> int:
        """Number of spanning velocities."""
        return sum(body.model.nv for body in self.bodies)

    @cached_property
    def ny(self) -> int:
        """Number of independent velocities."""
        return len(self.independent)

    @property
    def inertia(self) -> Matrix:
        """I_k = diag(I_i), 6n x 6n."""
        return ca.diagcat(*(constant(body.inertia) for body in self.bodies))

    @cached_property
    def joint_armature(self) -> NDArray[np.float64]:
        """(nv,) inertia that each joint's own velocity feels, and nothing else does."""
        of_bodies = ([body.joint.armature] * body.model.nv for body in self.bodies)
        return np.array([value for values in of_bodies for value in values])

    def velocity_map(self, q: Matrix, independent: Sequence[int] | None = None) -> Matrix:
        """G_k (nv x ny), with qd_k = G_k yd_k (6); of y_k, or of others in its place."""
        if self.loop is None:
            return ca.DM.eye(self.nv)
        return self.loop.velocity_map(q, self.independent if independent is None else independent)

    def velocity(self, q: Matrix, yd: Matrix) -> Matrix:
        """qd_k = G_k yd_k (nv), for less than G_k itself."""
        return yd if self.loop is None else self.loop.velocity(q, yd, self.independent)

    def bias(self, q: Matrix, qd: Matrix, independent: Sequence[int] | None = None) -> Matrix:
        """g_k (nv), with qdd_k = G_k ydd_k + g_k (3); of y_k, or of others in its place."""
        if self.loop is None:
            return ca.DM(self.nv, 1)
        return self.loop.bias(q, qd, self.independent if independent is None else independent)

    @cached_property
    def position_ranges(self) -> tuple[range, ...]:
        """Where each body's joint position is in q_k."""
        return ranges(body.model.nq for body in self.bodies)

    @cached_property
    def velocity_ranges(self) -> tuple[range, ...]:
        """Where each body's joint velocity is in qd_k."""
        return ranges(body.model.nv for body in self.bodies)


def stack_cross_force(v: Matrix, f: Matrix) -> Matrix:
    """Clustered ``v x* f``, body by body."""
    return ca.vertcat(*(cross_force(v[i : i + 6], f[i : i + 6]) for i in range(0, v.rows(), 6)))


@dataclass(frozen=True, eq=False)
class Propagator:
    """J, the tree joints' motions to cluster motions (13), applied by recursion.

    ``J @ z`` adds to each body's part what its parent in the cluster has; ``J.T @ f`` collects
    forces the other way, and is the inverse of (28) by (29).
    """

    X_up: tuple[Transform, ...]
    inside: tuple[int | None, ...]

    def __matmul__(self, z: Matrix) -> Matrix:
        moved: list[Matrix] = []
        for i, (X, parent) in enumerate(zip(self.X_up, self.inside, strict=True)):
            own = z[6 * i : 6 * i + 6, :]
            moved.append(own if parent is None else own + X @ moved[parent])
        return ca.vertcat(*moved)

    def congruence(self, inertia: Matrix) -> Matrix:
        """``J' I J`` of a symmetric I (6n x 6n)."""
        if all(parent is None for parent in self.inside):
            return inertia
        return mirrored(self.T @ (self.T @ inertia).T)

    @property
    def T(self) -> TransposedPropagator:
        """The transpose: cluster forces to the forces across tree joints."""
        return TransposedPropagator(self)


@dataclass(frozen=True, eq=False)
class TransposedPropagator:
    """``J.T``."""

    J: Propagator

    def __matmul__(self, f: Matrix) -> Matrix:
        across = [f[6 * i : 6 * i + 6, :] for i in range(len(self.J.X_up))]
        for i, parent in reversed(list(enumerate(self.J.inside))):
            if parent is not None:
                across[parent] = across[parent] + self.J.X_up[i].T @ across[i]
        return ca.vertcat(*across)


@dataclass(frozen=True, eq=False)
class Connector:
    """E: output bodies of the parent cluster to base bodies of this one, so that kX_l = J E (35).

    The parent's clustered vectors have ``parent_rows`` rows.
    """

    X_up: tuple[Transform, ...]
    output: tuple[int | None, ...]
    parent_rows: int

    def __matmul__(self, v: Matrix) -> Matrix:
        return ca.vertcat(
            *(
                ca.DM(6, v.columns()) if j is None else X @ v[6 * j : 6 * j + 6, :]
                for X, j in zip(self.X_up, self.output, strict=True)
            )
        )

    def congruence(self, inertia: Matrix) -> Matrix:
        """``E' I E`` of a symmetric I (6n x 6n), onto the parent's output bodies."""
        onto = [[ca.DM(6, 6)] * (self.parent_rows // 6) for _ in range(self.parent_rows // 6)]
        base = [(i, j) for i, j in enumerate(self.output) if j is not None]
        for i, a in base:
            X = self.X_up[i]
            onto[a][a] = onto[a][a] + X.congruence(inertia[6 * i : 6 * i + 6, 6 * i : 6 * i + 6])
            for j, b in base:
                block = inertia[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]
                if i != j and block.nnz():
                    onto[a][b] = onto[a][b] + X.T @ (self.X_up[j].T @ block.T).T
        return mirrored(ca.vertcat(*(ca.horzcat(*row) for row in onto)))

    @property
    def T(self) -> TransposedConnector:
        """The transpose: forces across base bodies' joints to forces on output bodies."""
        return TransposedConnector(self)


@dataclass(frozen=True, eq=False)
class TransposedConnector:
    """``E.T``."""

    E: Connector

    def __matmul__(self, f: Matrix) -> Matrix:
        onto: list[Matrix] = [ca.DM(6, f.columns())] * (self.E.parent_rows // 6)
        for i, j in enumerate(self.E.output):
            if j is not None:
                onto[j] = onto[j] + self.E.X_up[i].T @ f[6 * i : 6 * i + 6, :]
        return ca.vertcat(*onto)


@dataclass(frozen=True, eq=False)
class ClusterJoint:
    """A cluster joint at one state.

    Attributes:
        qd: spanning velocity G yd (nv).
        S_qd: motions across the tree joints, S G yd (6n).
        J: tree-joint motions to cluster motions (13).
        E: connector to the parent cluster; the cluster transform is J E (35).
        S: diag(S_i) of the tree joints (6n x nv), for spanning velocities; the cluster's motion
            subspace is J S G (15).
        ring_S_qd: stack of ring-S_i qd_i (6n).
        G: independent to spanning velocities (nv x ny).
        g: spanning acceleration at ydd = 0 (nv): qdd = G ydd + g (3).
        drag: force against G ydd (nv), as implicit integrators have it; None for none.

    Algorithms work "at the tree joints" where they can: with I' = J' I J and S' = S G, the
    products of the paper come out the same, ``S_k' I S_k = S'' I' S'``, for less arithmetic.
    """

    qd: Matrix
    S_qd: Matrix
    J: Propagator
    E: Connector
    S: Matrix
    ring_S_qd: Matrix
    G: Matrix
    g: Matrix
    drag: Matrix | None = None

    @property
    def SG(self) -> Matrix:
        """Motion subspace at the tree joints (6n x ny); J S G is S_k of (15)."""
        return self.S @ self.G


def cluster_joint(node: ClusterNode, parent_rows: int, q: Matrix, yd: Matrix) -> ClusterJoint:
    """Evaluate a cluster joint (Chignoli 2024, Algorithm 1, lines 4 to 13).

    Args:
        node: the cluster.
        parent_rows: rows of the parent's clustered vectors; 6 for the fixed base.
        q: (nq) spanning position of the cluster, on the constraint manifold.
        yd: (ny) independent velocity.
    """
    G = node.velocity_map(q)
    qd = G @ yd
    X_up, S, ring_S_qd = [], [], []
    for body, in_q, in_qd in joint_slices(node.bodies):
        qd_i = qd[in_qd]
        X_J, S_i, ring_S_i = body.model.jcalc(q[in_q], qd_i, body.joint.pitch)
        X_up.append(X_J @ body.X_tree if body.turns else body.X_tree)
        S.append(S_i)
        ring_S_qd.append(ring_S_i @ qd_i)
    S = ca.diagcat(*S) if node.relative is None else ca.diagcat(*S) @ constant(node.relative)
    return ClusterJoint(
        qd=qd,
        S_qd=(S @ G) @ yd,
        J=Propagator(tuple(X_up), node.inside),
        E=Connector(tuple(X_up), node.output, parent_rows),
        S=S,
        ring_S_qd=ca.vertcat(*ring_S_qd),
        G=G,
        g=node.bias(q, qd),
    )


def driven_coordinates(G: NDArray[np.float64], actuated: Sequence[int]) -> tuple[int, ...]:
    """Columns of W = G[actuated] that are a basis of all its columns.

    Args:
        G: (nv, ny) of the cluster at a regular position.
        actuated: velocity coordinates that actuators act on.
    """
    W = G[list(actuated)]
    if not W.size:
        return ()
    order, sizes = pivoted_columns(W)
    return tuple(sorted(int(j) for j in order[: int(np.sum(sizes > 1e-9 * sizes[0]))]))


def minimum_norm_efforts(W: Matrix, driven: Sequence[int], tau: Matrix) -> Matrix:
    """Efforts (actuated) with ``W' efforts = tau``: ``pinv(W') tau``, by straight-line code.

    With B the driven columns of W and W = B M, both of full rank, pinv(W) = pinv(M) pinv(B).
    Over-actuated clusters get the smallest efforts; what no actuator can give is left out.
    """
    pinv_B = least_squares(W[:, list(driven)], ca.DM.eye(W.rows()))
    if len(driven) == W.columns():
        return pinv_B.T @ tau
    pinv_M = least_squares((pinv_B @ W).T, ca.DM.eye(W.columns())).T
    return pinv_B.T @ (pinv_M.T @ tau)
