"""What the public API does not offer: kernels with chosen iterations, and the papers' rivals.

The one module of `benchmark.papers` that imports from inside `rbda_ros`.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from rbda_ros import Contact, Robot
from rbda_ros.algorithms.contact_rows import ContactFrame, Proximal
from rbda_ros.algorithms.crba import branch_factor, composite_inertia
from rbda_ros.algorithms.kinematics import BodyFrame, jacobian
from rbda_ros.algorithms.motion import cluster_joints
from rbda_ros.algorithms.pv_osim import inverse_operational_space_inertia
from rbda_ros.cluster_tree.regroup import regroup
from rbda_ros.cluster_tree.straight_line import factor_symmetric
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.trace import trace
from rbda_ros.spatial import Matrix

ROUTES = {"cABA": "constrained_aba", "PV": "prox_pv", "LTL": "prox_ltl"}
"""Sathya 2024's names of the algorithms: ours."""


def contact_kernel(
    robot: Robot,
    contacts: Sequence[Contact],
    route: str,
    iterations: int,
    mu: float,
    *,
    compiled: bool = True,
) -> Kernel:
    """Forward dynamics with contacts by one of `ROUTES`, with so many proximal iterations.

    ``q, yd, tau, axes, desired, start -> ydd, forces, along, health``, as
    `Robot.contact_kernel`; ``mu`` is the proximal weight [kg].
    """
    options = _frames(robot, contacts), Proximal(mu, iterations), ROUTES[route], False
    kernel = trace(robot.tree, "constrained_forward_dynamics", *options)
    return kernel if compiled else Kernel(kernel._function, compiled=False)


def contact_inputs(robot: Robot, contacts: Sequence[Contact]) -> tuple[np.ndarray, ...]:
    """The last three inputs of `contact_kernel`: world axes, nothing desired, no start."""
    count = len(contacts)
    rows = sum(frame.size for frame in _frames(robot, contacts))
    return np.tile(np.eye(3).ravel(), count), np.zeros(6 * count), np.zeros(rows)


def _frames(robot: Robot, contacts: Sequence[Contact]) -> list[ContactFrame]:
    frames = []
    for contact in contacts:
        _, at = robot.body_frame((contact.link, contact.xyz))
        angular = (0, 1, 2) if contact.kind == "weld" else ()
        frames.append(ContactFrame(at.body, tuple(at.frame.p), (0, 1, 2), angular))
    return frames


def delassus_kernel(robot: Robot, contacts: Sequence[Contact], method: str, mu: float) -> Kernel:
    """The damped inverse of the contacts' Delassus matrix, ``(J H^-1 J' + I/mu)^-1`` (m x m).

    ``method`` is cABA (our cABA-OSIM), PV (force propagators, then a dense inverse) or LTL (the
    factor of the mass matrix, then a dense inverse). Inputs: q, and for cABA the contacts' axes.
    """
    frames = _frames(robot, contacts)
    if method == "cABA":
        return trace(robot.tree, "damped_delassus_inverse", frames, mu)
    tree = regroup(robot.tree, range(len(robot.tree.spanning.bodies) + 1))
    q = ca.SX.sym("q", tree.nq)
    at = [robot.body_frame((contact.link, contact.xyz))[1] for contact in contacts]
    kept = [i for e, frame in enumerate(frames) for i in range(6 * e, 6 * e + frame.size)]
    inverse = _by_propagators(tree, q, at) if method == "PV" else _by_factor(tree, q, at)
    inverse = inverse[kept, kept]
    rows = inverse.rows()
    factor = factor_symmetric(inverse + ca.DM.eye(rows) / mu)
    result = ca.vec(ca.densify(ca.SX(factor.quadratic(ca.DM.eye(rows)))))
    return Kernel(ca.Function(f"delassus_{method}", [q], ca.cse([result]), ["q"], ["o0"]))


def _by_propagators(tree, q: Matrix, at: Sequence[BodyFrame]) -> Matrix:
    return inverse_operational_space_inertia(tree, q, at)


def _by_factor(tree, q: Matrix, at: Sequence[BodyFrame]) -> Matrix:
    """J H^-1 J' with ``H = L' L``: Y = L'^-1 J' by substitution along the branches, then Y' Y."""
    L = branch_factor(tree, composite_inertia(tree, cluster_joints(tree, q)))
    J = ca.vertcat(*(jacobian(tree, q, frame) for frame in at))
    columns: list[Matrix] = [None] * tree.ny
    for k in reversed(range(tree.ny)):
        known = sum(
            (L[i, k] * columns[i] for i in range(k + 1, tree.ny) if L.sparsity().has_nz(i, k)),
            ca.DM(1, J.rows()),
        )
        columns[k] = (J[:, k].T - known) / L[k, k]
    Y = ca.sparsify(ca.vertcat(*columns))
    return ca.triu2symm(ca.triu(Y.T @ Y))


class Article:
    """Featherstone 2010's MATLAB functions, line by line, on the model of a robot without loops.

    6 x 6 matrices throughout, in the article's symbols; CasADi symbols or numbers.
    """

    def __init__(self, robot: Robot) -> None:
        self.bodies = robot.tree.spanning.bodies
        self.parent = [body.parent for body in self.bodies]
        self.N = len(self.bodies)
        gravity = robot.tree.gravity
        self.a_base = ca.vertcat(0, 0, 0, -gravity[0], -gravity[1], -gravity[2])

    def _jcalc(self, i: int, q: Matrix) -> tuple[Matrix, Matrix]:
        """iX_p(i) and S of body i (Fig. 4)."""
        body = self.bodies[i]
        XJ, S, _ = body.model.jcalc(q[i], ca.DM(1, 1), body.joint.pitch)
        return (XJ @ body.X_tree) @ ca.DM.eye(6), S

    def inverse_dynamics(self, q: Matrix, qd: Matrix, qdd: Matrix) -> Matrix:
        """ID (Fig. 1)."""
        v, a, f, Xup, S = ([None] * self.N for _ in range(5))
        for i in range(self.N):
            Xup[i], S[i] = self._jcalc(i, q)
            vJ, p = S[i] * qd[i], self.parent[i] - 1
            v[i] = vJ if p < 0 else Xup[i] @ v[p] + vJ
            above = self.a_base if p < 0 else a[p]
            a[i] = Xup[i] @ above + S[i] * qdd[i] + _crm(v[i]) @ vJ
            I = ca.DM(self.bodies[i].inertia)
            f[i] = I @ a[i] - _crm(v[i]).T @ (I @ v[i])
        tau = [None] * self.N
        for i in reversed(range(self.N)):
            tau[i] = S[i].T @ f[i]
            if self.parent[i]:
                f[self.parent[i] - 1] = f[self.parent[i] - 1] + Xup[i].T @ f[i]
        return ca.vertcat(*tau)

    def mass_matrix(self, q: Matrix) -> Matrix:
        """HandC's H: composite rigid bodies (44) to (48)."""
        Xup, S = (list(x) for x in zip(*(self._jcalc(i, q) for i in range(self.N)), strict=True))
        IC = [ca.DM(body.inertia) for body in self.bodies]
        for i in reversed(range(self.N)):
            if self.parent[i]:
                p = self.parent[i] - 1
                IC[p] = IC[p] + Xup[i].T @ IC[i] @ Xup[i]
        H = type(q)(self.N, self.N)
        for i in range(self.N):
            fh = IC[i] @ S[i]
            H[i, i] = S[i].T @ fh
            j = i
            while self.parent[j]:
                fh, j = Xup[j].T @ fh, self.parent[j] - 1
                H[i, j] = H[j, i] = S[j].T @ fh
        return H

    def forward_dynamics(self, q: Matrix, qd: Matrix, tau: Matrix) -> Matrix:
        """FDab: articulated bodies."""
        v, c, IA, pA, Xup, S, U, d, u = ([None] * self.N for _ in range(9))
        for i in range(self.N):
            Xup[i], S[i] = self._jcalc(i, q)
            vJ, p = S[i] * qd[i], self.parent[i] - 1
            v[i] = vJ if p < 0 else Xup[i] @ v[p] + vJ
            c[i] = _crm(v[i]) @ vJ
            IA[i] = ca.DM(self.bodies[i].inertia)
            pA[i] = -_crm(v[i]).T @ (IA[i] @ v[i])
        for i in reversed(range(self.N)):
            U[i] = IA[i] @ S[i]
            d[i] = S[i].T @ U[i]
            u[i] = tau[i] - S[i].T @ pA[i]
            if self.parent[i]:
                p = self.parent[i] - 1
                Ia = IA[i] - U[i] / d[i] @ U[i].T
                pa = pA[i] + Ia @ c[i] + U[i] * u[i] / d[i]
                IA[p] = IA[p] + Xup[i].T @ Ia @ Xup[i]
                pA[p] = pA[p] + Xup[i].T @ pa
        a, qdd = [None] * self.N, [None] * self.N
        for i in range(self.N):
            above = self.a_base if not self.parent[i] else a[self.parent[i] - 1]
            a[i] = Xup[i] @ above + c[i]
            qdd[i] = (u[i] - U[i].T @ a[i]) / d[i]
            a[i] = a[i] + S[i] * qdd[i]
        return ca.vertcat(*qdd)

    def instructions(self, name: str) -> int:
        """Length of the program that a function's trace is."""
        sizes = {"mass_matrix": 1}
        symbols = [ca.SX.sym(f"x{i}", self.N) for i in range(sizes.get(name, 3))]
        function = ca.Function(name, symbols, ca.cse([ca.SX(getattr(self, name)(*symbols))]))
        return int(function.n_instructions())

    def value(self, name: str, *inputs: np.ndarray) -> np.ndarray:
        """A function in numbers."""
        return np.asarray(getattr(self, name)(*(ca.DM(x) for x in inputs))).squeeze()


def _crm(v: Matrix) -> Matrix:
    """``v x`` (6 x 6) of Featherstone 2010, Table 1; ``v x*`` is its negative transpose."""
    w = ca.skew(v[:3])
    return ca.vertcat(ca.horzcat(w, ca.DM(3, 3)), ca.horzcat(ca.skew(v[3:]), w))
