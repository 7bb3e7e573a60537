"""Programs that the public API does not offer: chosen iterations, and the papers' competitors.

The one module of `benchmark.papers` that imports from inside `rbda_ros`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from rbda_ros import Contact, Robot, load_robot
from rbda_ros.algorithms.constrained_dynamics import constrained_forward_dynamics
from rbda_ros.algorithms.contact_rows import ContactFrame, Proximal
from rbda_ros.algorithms.crba import composite_inertia
from rbda_ros.algorithms.efpa import efpa
from rbda_ros.algorithms.kinematics import BodyFrame, jacobian
from rbda_ros.algorithms.loop_forces import closed_acceleration, open_state
from rbda_ros.algorithms.motion import cluster_joints
from rbda_ros.algorithms.prox_ltl import prox_ltl
from rbda_ros.algorithms.pv_osim import inverse_operational_space_inertia
from rbda_ros.cluster_tree.regroup import regroup
from rbda_ros.cluster_tree.straight_line import factor_symmetric
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.trace import trace
from rbda_ros.spatial import Matrix, mirrored

ROUTES = {"cABA": "constrained_aba", "PV": "prox_pv", "LTLs": "prox_ltls", "LTL": "prox_ltl"}
"""Sathya 2024's names of the algorithms: ours."""
DELASSUS = ("cABA", "cABA-f", "PV", "PV-f", "EFPA", "LTL")
"""Algorithms for the damped inverse of the Delassus matrix."""


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
    return kernel if compiled else Kernel(kernel.function, compiled=False)


def contact_instructions(
    robot: Robot, contacts: Sequence[Contact], route: str, iterations: int, mu: float
) -> int:
    """Operations of one of `ROUTES`, from q, yd, tau to ydd and forces along the rows.

    Without the checks that `contact_kernel` returns beside them.
    """
    frames = _frames(robot, contacts)
    tree = regroup(robot.tree, [frame.body for frame in frames])
    count, rows = len(frames), sum(frame.size for frame in frames)
    sizes = {"q": tree.nq, "yd": tree.ny, "tau": tree.ny, "axes": (3, 3 * count)}
    sizes |= {"desired": (6, count), "start": rows}
    inputs = [ca.SX.sym(name, *np.atleast_1d(size).tolist()) for name, size in sizes.items()]
    proximal = Proximal(mu, iterations)
    found = constrained_forward_dynamics(tree, *inputs, frames, proximal, ROUTES[route])
    outputs = [ca.SX(found[0]), ca.SX(found[2])]
    return int(ca.Function(route, inputs, ca.cse(outputs)).n_instructions())


def sparse_forward_dynamics(urdf: str, iterations: int = 2) -> ca.Function:
    """``q, yd, tau -> ydd`` by the "Proximal and Sparse" method of Chignoli 2024 (Carpentier 2021).

    All loops of the robot are open; the mass matrix of the spanning tree is factored along its
    branches, and the forces of the loops follow from their Delassus matrix. This is the algorithm
    of Pinocchio's ``constraintDynamics``. Inputs and outputs are those of our forward dynamics.
    """
    loops = load_robot(urdf, {"method": "proximal"})._kernels.open_loops
    assert loops is not None
    loops = replace(loops, tree=regroup(loops.tree, ()))
    closed = loops.closed
    q, yd, tau = (ca.SX.sym(n, size) for n, size in
                  (("q", closed.nq), ("yd", closed.ny), ("tau", closed.ny)))  # fmt: skip
    state = open_state(loops, q, yd, tau)
    start = [ca.DM(state.rows.k.rows(), 1)]
    given = state.joints, state.v, state.tau, [state.rows], start
    solved = prox_ltl(loops.tree, *given, Proximal(1e6, iterations))
    ydd = ca.SX(closed_acceleration(loops, state, solved.ydd))
    return ca.Function("sparse", [q, yd, tau], ca.cse([ydd]))


def sparse_instructions(urdf: str) -> int:
    """Operations of `sparse_forward_dynamics`."""
    return int(sparse_forward_dynamics(urdf).n_instructions())


def osim_instructions(robot: Robot, points: Sequence[Contact], algorithm: str) -> int:
    """Operations of ``J H^-1 J'`` of some points by PV-OSIMr, EFPA or LTL-OSIM, three rows each."""
    algorithms = {"PV-OSIMr": inverse_operational_space_inertia, "EFPA": efpa}
    tree = regroup(robot.tree, range(len(robot.tree.spanning.bodies) + 1))
    q = ca.SX.sym("q", tree.nq)
    at = [robot.body_frame((point.link, point.xyz))[1] for point in points]
    if algorithm == "LTL-OSIM":
        kept = [i for e in range(len(at)) for i in range(6 * e, 6 * e + 3)]
        inverse = _by_factor(tree, q, at)[kept, kept]
    else:
        inverse = algorithms[algorithm](tree, q, at, True)
    return int(ca.Function("osim", [q], ca.cse([ca.SX(inverse)])).n_instructions())


def product_instructions(robot: Robot, points: Sequence[Contact], mu: float | None = None) -> int:
    """Operations of ``J H^-1 J' f``, or of the damped inverse times a vector where mu is given."""
    frames = _frames(robot, points)
    if mu is None:
        return trace(robot.tree, "delassus_product", frames).instructions
    return trace(robot.tree, "damped_delassus_inverse_product", frames, mu).instructions


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

    Args:
        robot: the robot.
        contacts: where it is held.
        method: one of `DELASSUS`: cABA (cABA-OSIM), cABA-f (its product with a vector), PV
            (PV-OSIMr) or EFPA, followed by a dense inverse, PV-f (PV-OSIMf, times a vector), LTL
            (LTDL factors of the mass matrix, followed by a dense inverse).
        mu: inverse of the damping [kg].

    Returns:
        A kernel of q, for cABA also of the contacts' axes, for cABA-f and PV-f also of the vector.
    """
    frames = _frames(robot, contacts)
    if method == "cABA":
        return trace(robot.tree, "damped_delassus_inverse", frames, mu)
    if method == "cABA-f":
        return trace(robot.tree, "damped_delassus_inverse_product", frames, mu)
    if method == "PV-f":
        return trace(robot.tree, "damped_delassus_inverse_product", frames, mu, "pv_osim")
    tree = regroup(robot.tree, range(len(robot.tree.spanning.bodies) + 1))
    q = ca.SX.sym("q", tree.nq)
    at = [robot.body_frame((contact.link, contact.xyz))[1] for contact in contacts]
    kept = [i for e, frame in enumerate(frames) for i in range(6 * e, 6 * e + frame.size)]
    algorithms = {"PV": inverse_operational_space_inertia, "EFPA": efpa, "LTL": _by_factor}
    inverse = algorithms[method](tree, q, at)[kept, kept]
    rows = inverse.rows()
    factor = factor_symmetric(inverse + ca.DM.eye(rows) / mu)
    result = ca.vec(ca.densify(ca.SX(factor.quadratic(ca.DM.eye(rows)))))
    return Kernel(ca.Function(f"delassus_{method}", [q], ca.cse([result]), ["q"], ["o0"]))


def _by_factor(tree: ClusterTree, q: Matrix, at: Sequence[BodyFrame]) -> Matrix:
    """J H^-1 J' with ``H = L' D L``: Y = L'^-1 J' along the branches, then Y' D^-1 Y.

    Featherstone's LTDL, which has no square roots (Featherstone, "Efficient Factorization of the
    Joint-Space Inertia Matrix for Branched Kinematic Trees", 2005).
    """
    H = composite_inertia(tree, cluster_joints(tree, q))
    parent = tree.independent_parents
    above: list[list[int]] = []
    for before in parent:
        above.append([] if before < 0 else [before, *above[before]])
    A = {(k, i): H[k, i] for k in range(tree.ny) for i in (k, *above[k])}
    for k in reversed(range(tree.ny)):
        for i in above[k]:
            share = A[k, i] / A[k, k]
            for j in (i, *above[i]):
                A[i, j] = A[i, j] - share * A[k, j]
            A[k, i] = share
    Y = ca.vertcat(*(jacobian(tree, q, frame) for frame in at)).T
    rows = ca.vertsplit(Y)
    for k in reversed(range(tree.ny)):
        for i in above[k]:
            rows[i] = rows[i] - A[k, i] * rows[k]
    scaled = ca.vertcat(*(row / A[k, k] for k, row in enumerate(rows)))
    return mirrored(ca.vertcat(*rows).T @ scaled)


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
        outputs = [ca.SX(getattr(self, name)(*symbols))]
        function = ca.Function(name, symbols, ca.cse(_rounded(symbols, outputs)))
        return int(function.n_instructions())

    def value(self, name: str, *inputs: np.ndarray) -> np.ndarray:
        """A function in numbers."""
        return np.asarray(getattr(self, name)(*(ca.DM(x) for x in inputs))).squeeze()


def _rounded(inputs: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> list[ca.SX]:
    """Expressions with every constant rounded to ten decimals, to count their operations.

    A 6 x 6 product computes entries twice that are equal, such as ``U_i / d U_j`` and ``U_j / d
    U_i``, or zero. Whether rounding leaves them so depends on the vector instructions of the
    processor, and CasADi shares constants that are equal: the count would depend on the machine.
    """
    function = ca.Function("unrounded", list(inputs), list(outputs))
    work = [ca.SX(0)] * function.sz_w()
    found = [[ca.SX(0)] * output.nnz() for output in outputs]
    for k in range(function.n_instructions()):
        operation, into = function.instruction_id(k), function.instruction_output(k)
        taken = function.instruction_input(k)
        if operation == ca.OP_INPUT:
            work[into[0]] = inputs[taken[0]].nz[taken[1]]
        elif operation == ca.OP_OUTPUT:
            found[into[0]][into[1]] = work[taken[0]]
        elif operation == ca.OP_CONST:
            work[into[0]] = ca.SX(round(function.instruction_constant(k), 10))
        else:
            terms = [work[i] for i in taken]
            work[into[0]] = (ca.SX.unary if len(terms) == 1 else ca.SX.binary)(operation, *terms)
    pairs = zip(outputs, found, strict=True)
    return [ca.sparsify(ca.SX(o.sparsity(), ca.vertcat(*entries))) for o, entries in pairs]


def _crm(v: Matrix) -> Matrix:
    """``v x`` (6 x 6) of Featherstone 2010, Table 1; ``v x*`` is its negative transpose."""
    w = ca.skew(v[:3])
    return ca.vertcat(ca.horzcat(w, ca.DM(3, 3)), ca.horzcat(ca.skew(v[3:]), w))
