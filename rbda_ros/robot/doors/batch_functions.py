"""An operation over batches of numpy arrays, with its derivatives as further such functions.

PyTorch and JAX need of an operation its value, its product with tangents (``jvp``) and the product
of cotangents with it (``vjp``), and of these the same again. Values come from the method itself,
which checks its arguments. Derivatives are kernels, traced from the operation's program by
CasADi's forward and reverse differentiation and then compiled as every kernel is.

Positions move along the loops: of a position (nq) the independent entries are varied, and the
others follow them, ``dq = A G A_y^+ dq_y``, with ``dq/dt = A qd`` and ``qd = G yd`` (3). So the
gradient with respect to a spanning position has zeros in its dependent entries. Quaternions stay
of length one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from rbda_ros.algorithms.loop_motion import spanning_motion
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.robot.doors.operation_program import Program
from rbda_ros.robot.inputs import FrameName
from rbda_ros.spatial import Array, Matrix

SINGLE_PRECISION = 1e-4
"""How far positions of single precision may be from where the loops close [rad, m]."""


class BatchFunction:
    """A function of batches: each input (N, size), the first a position; each output (N, ...).

    Args:
        robot: whose function it is.
        program: a CasADi function of flat vectors, the first a spanning position.
        positions: entries of q that the first input has.
        shapes: of the outputs.

    Attributes:
        sizes: of the inputs.
        shapes: of the outputs, without the batch axis.
    """

    def __init__(
        self,
        robot: Any,
        program: ca.Function,
        positions: Sequence[int],
        shapes: Sequence[tuple[int, ...]],
    ) -> None:
        self._robot, self._program, self._positions = robot, program, tuple(positions)
        self.name = str(program.name())
        others = [int(program.numel_in(i)) for i in range(1, program.n_in())]
        self.sizes: tuple[int, ...] = (len(self._positions), *others)
        self.shapes: tuple[tuple[int, ...], ...] = tuple(shapes)

    def evaluate(self, *given: Array) -> list[Array]:
        """Outputs (N, ...) at rows (N, size) as `as_rows` makes them.

        Raises:
            InputError: numbers that are not finite, or positions off the loops.
            SingularityError: a dead point, or a singular mass matrix.
        """
        q, *others = given
        answers, finite = self.kernel.finite_batch(len(q), [self._spanning(q), *others])
        if not finite:
            raise SingularityError(
                f"{self._robot.name}: {self.name} is not finite; an argument or a cotangent is"
                " not, or a loop is at a dead point: look at the arguments"
            )
        return [a.reshape(len(q), *shape) for a, shape in zip(answers, self.shapes, strict=True)]

    @property
    def engine_call(self) -> Any:
        """The engine's kernel or operation that does the same with rows; None if there is none."""
        return self.kernel.native if self.sizes[0] == self._robot.nq else None

    def _spanning(self, q: Array) -> Array:
        """Spanning positions of those given; closed where these are independent ones."""
        if q.shape[-1] == self._robot.nq:
            return q
        closed: Array = self._robot.state(q).q
        return closed

    @cached_property
    def kernel(self) -> Kernel:
        """Its program, compiled when it is first used."""
        return Kernel(self._program)

    def prepare(self) -> None:
        """Wait until it runs at full speed."""
        self.kernel.compile(batch=True)

    @cached_property
    def jvp(self) -> Jvp:
        """``inputs, tangents of inputs -> tangents of outputs``."""
        return Jvp(self)

    @cached_property
    def vjp(self) -> BatchFunction:
        """``inputs, cotangents of outputs -> cotangents of inputs``."""
        given, outputs = self._symbols()
        name = f"vjp_{self.name}"
        cotangents = [ca.SX.sym(f"w{i}", out.numel()) for i, out in enumerate(outputs)]
        product = sum(
            (ca.dot(w, out) for w, out in zip(cotangents, outputs, strict=True)), ca.SX(0)
        )
        by_q, *by_others = [ca.gradient(product, x) for x in given]
        direction = ca.SX.sym("dq", len(self._positions))
        moved = self._moved(given[0], direction)
        gradients = [ca.jtimes(moved, direction, by_q, True), *by_others]
        flat = ca.cse([ca.densify(each) for each in gradients])
        function = ca.Function(name, [*given, *cotangents], flat)
        shapes = [(size,) for size in self.sizes]
        return BatchFunction(self._robot, function, self._positions, shapes)

    def tangent_program(self) -> ca.Function:
        """``inputs, tangents -> tangents of outputs``, of flat vectors."""
        given, outputs = self._symbols()
        tangents = [ca.SX.sym(f"d{i}", size) for i, size in enumerate(self.sizes)]
        moved = [self._moved(given[0], tangents[0]), *tangents[1:]]
        products = [ca.jtimes(out, ca.vertcat(*given), ca.vertcat(*moved)) for out in outputs]
        flat = ca.cse([ca.densify(each) for each in products])
        return ca.Function(f"jvp_{self.name}", [*given, *tangents], flat)

    def _symbols(self) -> tuple[list[ca.SX], list[ca.SX]]:
        given = self._program.sx_in()
        return given, self._program.call(given, True, False)

    def _moved(self, q: Matrix, direction: Matrix) -> Matrix:
        """The rate (nq) of the spanning position as the entries given move along a direction."""
        return moved_along_loops(self._robot.tree, q, direction, self._positions)


class Jvp(BatchFunction):
    """The tangents of another function, which is linear in its last inputs.

    Args:
        base: the other function.
    """

    def __init__(self, base: BatchFunction) -> None:
        program = base.tangent_program()
        super().__init__(base._robot, program, base._positions, base.shapes)
        self.base = base


class CheckedParameters(BatchFunction):
    """``q, parameters -> parameters``, which must be finite; q is not read.

    Args:
        robot: whose parameters they are.
        count: how many there are.
    """

    def __init__(self, robot: Any, count: int) -> None:
        q, parameters = ca.SX.sym("q", robot.nq), ca.SX.sym("parameters", count)
        program = ca.Function("parameters", [q, parameters], [parameters])
        super().__init__(robot, program, range(robot.nq), [(count,)])

    def evaluate(self, *given: Array) -> list[Array]:
        """The parameters (N, count) as they are.

        Raises:
            InputError: some are not finite, or too large.
        """
        return [self._robot._inputs.vector("parameters", given[1], *self.shapes[0])]


class OperationFunction(BatchFunction):
    """The value of an operation: the robot's method, which checks its arguments.

    Args:
        robot: whose operation it is.
        program: of the operation.
        frame: that it is about, if it is.
        friction: whether joint friction acts.
        positions: entries of q that positions have.
    """

    def __init__(
        self,
        robot: Any,
        program: Program,
        frame: FrameName | None,
        friction: bool,
        positions: Sequence[int],
    ) -> None:
        super().__init__(robot, program.function, positions, program.shapes)
        self._links, self._takes_wrenches = program.links, program.record.wrenches
        self._options: dict[str, Any] = {} if frame is None else {"frame": frame}
        if friction:
            self._options["friction"] = True
        self._make = program.record.make
        # The method takes one number for all states of a batch, the program one for each.
        self._own_numbers = "Number" in program.kinds

    def evaluate(self, *given: Array) -> list[Array]:
        """Results (N, ...) at rows (N, size) as `as_rows` makes them."""
        if self._own_numbers:
            return super().evaluate(self._robot.state(given[0]).q, *given[1:])
        options = dict(self._options)
        if self._links:
            *given, wrenches = given  # type: ignore[assignment]
            parts = np.split(wrenches, len(self._links), axis=1)
            options["external_wrenches"] = dict(zip(self._links, parts, strict=True))
        answer = getattr(self._robot, self.name)(*given, **options)
        if self._make is not None:
            answer = tuple(getattr(answer, field) for field in self._make.__dataclass_fields__)
        answers = answer if isinstance(answer, tuple) else (answer,)
        count = len(given[0])
        return [
            np.asarray(each).reshape(count, *shape)
            for each, shape in zip(answers, self.shapes, strict=True)
        ]

    @property
    def engine_call(self) -> Any:
        """The engine's operation; None where it does not take all arguments as rows."""
        if self._own_numbers or self._links:
            return None
        option = self._options.get("frame")
        if self._takes_wrenches:
            option = 2 * int("friction" in self._options)
        try:
            return self._robot._calls.call(self._robot, self.name, option)
        except TypeError:  # a frame that cannot be looked up
            return None

    def prepare(self) -> None:
        """Wait until it runs at full speed."""
        frame = self._options.get("frame")
        self._robot.prepare(self.name if frame is None else (self.name, frame), batch=True)


def moved_along_loops(
    tree: ClusterTree, q: Matrix, direction: Matrix, positions: Sequence[int]
) -> Matrix:
    """The rate (nq) of a spanning position on the loops, as some of its entries change.

    Args:
        tree: the cluster tree.
        q: (nq) spanning position.
        direction: rates of the entries given; those of dependent joints are not read.
        positions: which entries of q are given: those of y, or all.
    """
    given = {entry: direction[i] for i, entry in enumerate(positions)}
    independent = set(tree.independent)
    layout = tree.coordinates
    rates: dict[int, Matrix] = {}
    for body in tree.spanning.bodies:
        in_q, in_qd = layout.positions[body.joint.name], layout.velocities[body.joint.name]
        if independent.isdisjoint(in_qd):
            continue
        qd = ca.SX.sym("qd", len(in_qd))
        rate = body.model.rate(q[in_q.start : in_q.stop], qd)
        # A has orthogonal columns: of length one, or a half where it turns a quaternion.
        home = ca.DM(tree.home[in_q.start : in_q.stop])
        A = np.array(ca.DM(ca.jacobian(body.model.rate(home, qd), qd)))
        moved = ca.vertcat(*(given[entry] for entry in in_q))
        back = ca.jtimes(rate, qd, moved, True) / ca.DM((A**2).sum(axis=0))
        rates |= {j: back[i] for i, j in enumerate(in_qd)}
    yd = ca.vertcat(ca.SX(0, 1), *(rates[j] for j in tree.independent))
    qd, _ = spanning_motion(tree, q, yd, ca.DM(tree.ny, 1))
    return tree.position_rate(q, qd)


def as_rows(array: np.ndarray[Any, Any]) -> Array:
    """An array (..., size) as rows (N, size) that kernels read, without a copy if possible."""
    rows = np.ascontiguousarray(array, np.float64)
    if not rows.flags.aligned:
        rows = rows.copy()
    if rows.ndim == 2:
        return rows
    return rows.reshape(math.prod(rows.shape[:-1]), rows.shape[-1])


def independent_entries(robot: Any) -> tuple[int, ...] | None:
    """Entries of q that are the position of y, where these are not all; else None."""
    positions = robot._inputs.choices.independent_positions
    if positions is None or len(positions) == robot.nq:
        return None
    return tuple(positions)


def closed_from_single(robot: Any, q: Array) -> Array:
    """Spanning positions (N, nq) of single precision, closed to the last digit.

    Raises:
        InputError: they are further from the loops than single precision explains.
    """
    closed: Array = robot.close(q)
    missed = np.abs(closed - q).max(initial=0.0)
    if not missed <= SINGLE_PRECISION:
        raise InputError(
            f"q does not satisfy the loops: a joint is {missed:.3g} off; close it with close(), or"
            " give the independent positions"
        )
    return closed
