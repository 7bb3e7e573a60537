"""The loop constraints of one cluster: implicit phi, K, k (2) and explicit G, g (3)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from rbda_ros.cluster_tree.constraints import Positions, alignment, residual, whole_residual
from rbda_ros.cluster_tree.spanning_tree import (
    Body,
    SpanningTree,
    integrate_bodies,
    joint_slices,
    position_rate,
)
from rbda_ros.cluster_tree.straight_line import conditioning, least_squares
from rbda_ros.description.model import Constraint
from rbda_ros.spatial import Array, Matrix

FUNCTIONS = ("phi", "K", "k", "alignment", "whole")
"""Fields of a loop that are functions."""
SMALLEST_COLUMN = 1e-6
"""A joint that hardly moves the others, beside the rest, is not made to look as if it did."""


@dataclass(frozen=True, eq=False)
class Loop:
    """The constraints among a cluster's joints, as functions of its spanning position.

    Attributes:
        constraints: as described.
        bodies: of the cluster, ascending.
        row_constraint: for each row of phi, the position of its constraint.
        phi: ``q -> phi`` (rows), zero on the constraint manifold.
        K: ``q -> K`` (rows x nv), with d(phi)/dt = K qd.
        k: ``q, qd -> k`` (rows), with K qdd = k.
        alignment: ``q -> cosines`` that are positive in a correct assembly.
        whole: ``q -> rows, their rates by qd``: rows without false zeros, to assemble with.
        constant: whether K is a constant, as for gears and belts.
    """

    constraints: tuple[Constraint, ...]
    bodies: tuple[Body, ...]
    row_constraint: tuple[int, ...]
    phi: ca.Function
    K: ca.Function
    k: ca.Function
    alignment: ca.Function
    whole: ca.Function
    constant: bool

    @property
    def nv(self) -> int:
        """Number of velocity coordinates of the cluster."""
        return self.K.size2_out(0)

    @cached_property
    def curved(self) -> NDArray[np.bool_]:
        """(nq,) which positions K depends on."""
        q = self.K.sx_in(0)
        return np.array(ca.which_depends(ca.vec(ca.densify(self.K(q))), q, 1), bool)

    @cached_property
    def curved_velocities(self) -> NDArray[np.bool_]:
        """(nv,) which velocities are of joints whose positions K depends on."""
        curved = np.zeros(self.nv, bool)
        for body, in_q, in_qd in joint_slices(self.bodies):
            depends = self.curved[in_q]
            curved[in_qd] = depends if depends.size == body.model.nv else depends.any()
        return curved

    @cached_property
    def scalar_positions(self) -> dict[int, int]:
        """Entry of q of each velocity coordinate that is the rate of one entry."""
        return {
            in_qd.start + i: in_q.start + i
            for body, in_q, in_qd in joint_slices(self.bodies)
            if body.model.nq == body.model.nv
            for i in range(body.model.nv)
        }

    def velocity_map(self, q: Matrix, independent: Sequence[int]) -> Matrix:
        """G (nv x ny), with qd = G yd (3).

        With the columns of K split into those of y and the dependent ones, K_d qd_d = -K_y yd.
        """
        K_y, K_d, dependent = self._columns(q, independent)
        G = _rows(self.nv, independent, ca.DM.eye(len(independent)))
        return G + _rows(self.nv, dependent, least_squares(K_d, -K_y))

    def velocity(self, q: Matrix, yd: Matrix, independent: Sequence[int]) -> Matrix:
        """qd = G yd (nv), without the other columns of G."""
        K_y, K_d, dependent = self._columns(q, independent)
        others = least_squares(K_d, -K_y @ yd)
        return _rows(self.nv, independent, yd) + _rows(self.nv, dependent, others)

    def bias(self, q: Matrix, qd: Matrix, independent: Sequence[int]) -> Matrix:
        """g (nv), with qdd = G ydd + g (3): K_d qdd_d = k - K_y ydd."""
        if self.constant:
            return ca.DM(self.nv, 1)
        return self.dependent(q, self.k(q, qd), independent)

    def dependent(self, q: Matrix, rhs: Matrix, independent: Sequence[int]) -> Matrix:
        """x (nv x p) with ``K x = rhs`` (rows x p), and zero in the independent coordinates."""
        _, K_d, dependent = self._columns(q, independent)
        return _rows(self.nv, dependent, least_squares(K_d, rhs))

    def position_rate(self, q: Matrix, qd: Matrix) -> Matrix:
        """dq/dt (nq) of a spanning velocity (nv) of the cluster."""
        return position_rate(self.bodies, q, qd)

    def conditioning(self, q: Matrix, independent: Sequence[int], near: Array) -> Matrix:
        """How well y determines the other velocities: near 0 at a dead point, else up to 1.

        Args:
            q: (nq) position.
            independent: coordinates that are y.
            near: (nq,) a regular position, such as the assembly, where velocities of all joints
                are made of like size: units do not count.
        """
        K_y, K_d, dependent = self._columns(q, independent)
        scale = self._column_scales(near)
        return conditioning(
            K_d @ ca.diag(ca.DM(scale[dependent])), K_y @ ca.diag(ca.DM(scale[list(independent)]))
        )

    def vanishing(self, q: Matrix, near: Array) -> Matrix:
        """The smallest length of a row of K over its length at a regular position; at most 1.

        It is near 0 where the mechanism has more freedoms for an instant, as a parallelogram has
        when its links are in line: then no choice of y determines the others.
        """
        scale = self._column_scales(near)
        lengths = np.linalg.norm(self.jacobian(near) * scale, axis=1)
        rows = [int(i) for i in np.flatnonzero(lengths > 1e-6 * lengths.max(initial=0.0))]
        K = self.K(q)[rows, :] @ ca.diag(ca.DM(scale)) / ca.DM(lengths[rows])
        return ca.sqrt(reduce(ca.fmin, ca.vertsplit(ca.sum2(K * K)), ca.DM(1.0)))

    def _column_scales(self, near: Array) -> Array:
        """(nv,) factors that make velocities of all joints of like size at a position."""
        K = self.jacobian(near)
        rows = np.maximum(np.linalg.norm(K, axis=1, keepdims=True), 1e-300)
        sizes = np.linalg.norm(K / rows, axis=0)
        return np.asarray(1.0 / np.maximum(sizes, SMALLEST_COLUMN * sizes.max(initial=1e-300)))

    def _columns(self, q: Matrix, independent: Sequence[int]) -> tuple[Matrix, Matrix, list[int]]:
        """Independent columns of K, dependent ones, and which these are."""
        dependent = [j for j in range(self.nv) if j not in independent]
        K = self.K(ca.DM(*self.K.size_in(0))) if self.constant else self.K(q)
        return K[:, list(independent)], K[:, dependent], dependent

    def integrate(self, q: Array, step: Array) -> Array:
        """The position reached from q (nq,) with velocity ``step`` (nv,) for unit time."""
        if q.size == step.size:  # no quaternions
            return q + step
        return integrate_bodies(self.bodies, q, step)

    def residual(self, q: Array) -> Array:
        """phi (rows,) at a position (nq,)."""
        return self._evaluated["phi"](q)[0].ravel()

    def jacobian(self, q: Array) -> Array:
        """K (rows, nv) at a position (nq,)."""
        return self._evaluated["K"](q)[0]

    def cosines(self, q: Array) -> Array:
        """Those of `alignment` at a position (nq,)."""
        return self._evaluated["alignment"](q)[0].ravel()

    def whole_rows(self, q: Array) -> tuple[Array, Array]:
        """Rows without false zeros (n,), and their rates by qd (n, nv), at a position (nq,)."""
        rows, K = self._evaluated["whole"](q)
        return rows.ravel(), K

    @cached_property
    def _evaluated(self) -> dict[str, Evaluated]:
        """The functions of q alone, on numpy arrays."""
        names = ("phi", "K", "alignment", "whole")
        return {name: Evaluated(getattr(self, name)) for name in names}

    def names_of(self, rows: Iterable[int]) -> list[str]:
        """Names of the constraints that some rows of phi belong to, in alphabetical order."""
        return sorted({self.constraints[self.row_constraint[row]].name for row in rows})

    def tied_coordinates(self) -> list[set[int]]:
        """For each constraint, the velocity coordinates that its rows depend on."""
        tied: list[set[int]] = [set() for _ in self.constraints]
        sparsity = self.K.sparsity_out(0)
        for row, column in zip(*sparsity.get_triplet(), strict=True):
            tied[self.row_constraint[row]].add(column)
        return tied

    def with_rows(self, rows: Sequence[int]) -> Loop:
        """The same loop with only the given rows, where the others are redundant."""
        q, qd = self.phi.sx_in(0), self.k.sx_in(1)
        kept = list(rows)
        return replace(
            self,
            row_constraint=tuple(self.row_constraint[i] for i in kept),
            phi=ca.Function("phi", [q], [self.phi(q)[kept]]),
            K=ca.Function("K", [q], [self.K(q)[kept, :]]),
            k=ca.Function("k", [q, qd], [self.k(q, qd)[kept]]),
        )

    def joined(self, other: Loop) -> Loop:
        """The constraints of both loops, which are of the same bodies."""
        first = len(self.constraints)
        return replace(
            self,
            constraints=(*self.constraints, *other.constraints),
            row_constraint=(*self.row_constraint, *(first + i for i in other.row_constraint)),
            constant=self.constant and other.constant,
            **{f: _joined(f, getattr(self, f), getattr(other, f)) for f in FUNCTIONS},
        )


def _joined(name: str, one: ca.Function, other: ca.Function) -> ca.Function:
    """Both functions of the same arguments, their outputs stacked."""
    given = [one.sx_in(i) for i in range(one.n_in())]
    both = zip(one.call(given), other.call(given), strict=True)
    return ca.Function(name, given, [ca.vertcat(*outputs) for outputs in both])


def _rows(count: int, rows: Sequence[int], block: Matrix) -> Matrix:
    """A matrix of ``count`` rows that has ``block`` in the given ones and zeros elsewhere."""
    place = ca.DM(ca.Sparsity.triplet(count, len(rows), list(rows), list(range(len(rows)))), 1)
    return place @ block


def build_loop(
    tree: SpanningTree,
    numbers: Sequence[int],
    constraints: Sequence[Constraint],
    guess: Positions,
) -> Loop:
    """Trace the constraints of one cluster; rows that are zero by structure are left out.

    Args:
        tree: the spanning tree.
        numbers: regular numbers of the cluster's bodies, ascending.
        constraints: the ones among these bodies.
        guess: position of each body's joint at the assembly guess.
    """
    bodies = tuple(tree.bodies[i - 1] for i in numbers)
    q_all = ca.SX.sym("q", sum(body.model.nq for body in bodies))
    qd_all = ca.SX.sym("qd", sum(body.model.nv for body in bodies))
    parts = zip(numbers, joint_slices(bodies), strict=True)
    position = {i: q_all[in_q] for i, (_, in_q, _) in parts}
    q_rate = position_rate(bodies, q_all, qd_all)

    residuals = [ca.SX(residual(tree, c, position, guess)) for c in constraints]
    owners = [i for i, rows in enumerate(residuals) for _ in range(rows.rows())]
    phi = ca.densify(ca.vertcat(*residuals))
    kept = [i for i in range(phi.rows()) if not phi[i].is_zero()]
    phi = phi[kept]
    phi_rate = ca.jtimes(phi, q_all, q_rate)
    K = ca.simplify(ca.jacobian(phi_rate, qd_all))
    whole = ca.vertcat(*(ca.SX(whole_residual(tree, c, position, guess)) for c in constraints))
    whole_K = ca.jacobian(ca.jtimes(whole, q_all, q_rate), qd_all)
    cosines = [ca.SX(alignment(tree, c, position)) for c in constraints]
    return Loop(
        tuple(constraints),
        bodies,
        tuple(owners[i] for i in kept),
        ca.Function("phi", [q_all], [phi]),
        ca.Function("K", [q_all], [K]),
        ca.Function("k", [q_all, qd_all], [-ca.jtimes(phi_rate, q_all, q_rate)]),
        ca.Function("alignment", [q_all], [ca.vertcat(*cosines)]),
        ca.Function("whole", [q_all], [whole, whole_K]),
        not ca.symvar(K),
    )


class Evaluated:
    """A CasADi function ``q -> matrices`` on numpy arrays: the same numbers. Threads may share it.

    Args:
        function: of one vector.
    """

    def __init__(self, function: ca.Function) -> None:
        self._function = function
        self._local = threading.local()

    def __call__(self, q: Array) -> list[Array]:
        """Each output (rows, columns) at a vector (n,), in a new array."""
        if not hasattr(self._local, "buffers"):
            self._local.buffers = _Buffers(self._function)
        return self._local.buffers.evaluate(q)


class _Buffers:
    """Arrays that one evaluation context of a function reads and writes."""

    def __init__(self, function: ca.Function) -> None:
        outputs = range(function.n_out())
        self._q = np.zeros(function.numel_in(0))
        self._values = [np.zeros(function.nnz_out(i)) for i in outputs]
        self._shapes = [function.size_out(i) for i in outputs]
        self._places = [_row_by_row(function.sparsity_out(i)) for i in outputs]
        # CasADi keeps no reference to the buffer that `run` works on: we do.
        self._buffer, self._run = function.buffer()
        for i, array in enumerate(self._values):
            if array.size:
                self._buffer.set_res(i, memoryview(array))
        if self._q.size:
            self._buffer.set_arg(0, memoryview(self._q))

    def evaluate(self, q: Array) -> list[Array]:
        self._q[:] = q
        self._run()
        found = []
        for shape, places, values in zip(self._shapes, self._places, self._values, strict=True):
            output = np.zeros(shape)
            output.reshape(-1)[places] = values
            found.append(output)
        return found


def _row_by_row(sparsity: ca.Sparsity) -> NDArray[np.int64]:
    """Where entries are, in their order, in a matrix that lies in memory row by row."""
    rows, columns = np.array(sparsity.get_triplet(), np.int64)
    return rows * sparsity.columns() + columns
