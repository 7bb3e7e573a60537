"""A slow model of the engine in Python: arguments read, loops closed and kernels called one by one.

The engine must give the same numbers to the last bit, and rejects what this refuses.
"""

from collections.abc import Mapping
from typing import NamedTuple

import ltl_oracle
import numpy as np

from rbda_ros import InputError, Robot, SingularityError
from rbda_ros.cluster_tree.closing.tolerances import (
    BATCH_BLOCK,
    BATCH_NEAR,
    CLOSED,
    KERNEL_PARTS,
    NEARBY,
    SINGULAR,
)
from rbda_ros.kernels.quantities import QUANTITIES, shape_of
from rbda_ros.kernels.registry import robot_sizes
from rbda_ros.robot.inputs import numbers
from rbda_ros.robot.operations import OPERATIONS
from rbda_ros.robot.results import RANK_TOLERANCE, OperationalSpace
from rbda_ros.robot.state import State


class Model:
    """The operations of a robot, its states and its closed positions. All else is the robot's."""

    def __init__(self, robot):
        self._robot = robot
        self._closer = ModelCloser(robot)

    def __getattr__(self, name):
        robot = self._robot
        if name in OPERATIONS:
            return lambda *given, **options: self._operation(OPERATIONS[name], given, options)
        return getattr(robot, name)

    def close(self, given, guess=None):
        return self._closer.close(given, guess)

    def state(self, q, qd=None):
        robot, inputs = self._robot, self._robot._inputs
        if isinstance(q, State):
            return q if qd is None or qd is q.yd else q.with_velocity(inputs.velocity(qd))
        position = inputs.vector("q", q, robot.nq, inputs.independent_size)
        if position.shape[-1] == robot.nq:
            position = inputs.normalized(position)
        else:
            position = self.close(position)
        residual, conditioning = 0.0, 1.0
        if robot.has_loops:
            phi, each = self._evaluate(robot._kernels.get("loop_state"), position)
            residual = float(np.abs(phi).max(initial=0.0))
            conditioning = float(each.min(initial=1.0))
            if not (residual <= robot.tree.on_loops and conditioning >= SINGULAR):
                robot._reject_position(position)
        yd = np.zeros(robot.ny) if qd is None else inputs.velocity(qd)
        return State(position, yd, residual, conditioning, robot._identity)

    def operational_space_inertia(self, q, frames, damping=0.0, linear_only=False):
        robot = self._robot
        frames = [frames] if isinstance(frames, str) else [*frames]
        name, options, points = robot._inputs.operational_space(frames, bool(linear_only))
        J, A = robot._kernels.get(name, *options).call(self.state(q).q, *points)
        A = A.reshape(len(J) // robot.ny, -1)
        space = OperationalSpace(A, J.reshape(-1, robot.ny), damping)
        M = A + damping * np.eye(len(A))
        one_branch = [*range(-1, len(A) - 1)]
        inverse = ltl_oracle.invert(one_branch, M)
        if (
            inverse is not None
            and RANK_TOLERANCE * sum(M.diagonal()) * sum(inverse.diagonal()) < 1.0
        ):
            space.__dict__["inertia"] = inverse
        return space

    def constrained_forward_dynamics(self, *given, **options):
        """The method as it is written in Python."""
        return Robot.constrained_forward_dynamics.__wrapped__(self._robot, *given, **options)

    def _operation(self, record, given, options):
        """Read arguments in their order, call kernels in theirs, look at the results."""
        robot = self._robot
        names = [argument.name for argument in record.arguments]
        names += ["external_wrenches"] * record.wrenches + ["frame"] * record.of_frame
        named = dict(zip(names, given, strict=False)) | options
        arguments = {"external_wrenches": None, "friction": False, "payload": None} | named
        slots, option = self._read(record, arguments)
        if record.wrenches:
            record = record.with_options(bool(option & 1), bool(option & 2))
        record = record.for_size(robot.ny)
        kernel_options = ()
        if record.name == "jacobian":
            name, kernel_options, points = robot._inputs.jacobian(arguments["frame"])
            record, slots["points"] = record.reading(jacobian=name), np.concatenate([[], *points])
        elif record.of_frame:
            kernel_options = (robot._inputs.frame(arguments["frame"]),)
        for step in record.steps:
            inputs = [slots.get(name, np.zeros(robot.ny)) for name in step.inputs]
            if step.kernel in "+-":
                outputs = [inputs[0] + inputs[1] if step.kernel == "+" else inputs[0] - inputs[1]]
            else:
                kernel = robot._kernels.get(step.kernel, *kernel_options)
                outputs = self._evaluate(kernel, *inputs)
            slots |= dict(zip((*step.outputs, "loop_residual"), outputs, strict=False))
        return self._results(record, slots)

    def _read(self, record, arguments):
        robot = self._robot
        given, option = robot._read_arguments(record, arguments)
        state, *others = given
        slots = {"q": self.state(arguments["q"]).q}
        assert state.q.tobytes() == slots["q"].tobytes()
        for argument, array in zip(record.arguments[1:], others, strict=False):
            array = np.array([array]) if argument.kind == "Number" else array
            slots[argument.read_as] = array
            if argument.kind == "Force" and array.shape[-1] == robot.nv != robot.ny:
                kernel = robot._kernels.get("generalized_force")
                slots[argument.read_as] = self._evaluate(kernel, state.q, array)[0]
        if option and record.wrenches and option & 1:
            slots["wrenches"] = others[-1].values
        return slots, option

    def _results(self, record, slots):
        robot = self._robot
        if record.finite and not np.isfinite(slots[record.finite]).all():
            raise SingularityError(robot._no_inertia())
        count = max(len(array) if array.ndim == 2 else 0 for array in slots.values())
        results = []
        if record.solves:
            parent = list(robot.tree.independent_parents)
            if len(record.results) == 1:
                H = ltl_oracle.from_rows(parent, slots["mass_matrix_rows"])
                inverse = ltl_oracle.invert(parent, H)
                if inverse is None:
                    raise SingularityError(robot._no_inertia())
                return inverse
            H = self._matrix(slots["mass_matrix"], "mass_matrix")
            L = ltl_oracle.factor(parent, H)
            one = np.broadcast_to(np.eye(robot.ny), H.shape)
            others = [self._matrix(slots[n], n) for n in record.results[:-1]]
            results = [-ltl_oracle.solve(parent, L, each) for each in others]
            results.append(ltl_oracle.solve(parent, L, one))
        else:
            results = [self._matrix(slots[name], name) for name in record.results]
        if count:
            rank = [1 + len(QUANTITIES[name].shape) for name in record.results]
            results = [
                each if each.ndim == n else np.broadcast_to(each, (count, *each.shape))
                for each, n in zip(results, rank, strict=True)
            ]
        if record.make:
            return record.make(*results)
        return results[0] if len(results) == 1 else tuple(results)

    def _matrix(self, flat, name):
        sizes = robot_sizes(self._robot.tree)
        shape = shape_of(QUANTITIES[name].shape, flat.shape[-1], sizes)
        return flat.reshape((*flat.shape[:-1], *shape))

    @staticmethod
    def _evaluate(kernel, *inputs):
        if all(array.ndim == 1 for array in inputs):
            return kernel.call(*inputs)
        sizes = {len(array) for array in inputs if array.ndim == 2}
        if len(sizes) > 1:
            raise InputError(f"the batches have different lengths: {sorted(sizes)}")
        count = sizes.pop()
        return kernel.batch(*(np.broadcast_to(a, (count, a.shape[-1])) for a in inputs))


class Known(NamedTuple):
    """Positions that just determine the others.

    Attributes:
        entries: of q that are known.
        values: theirs.
        start: (nq,) where more is given, the assembly with all of it put in; else None.
    """

    entries: tuple
    values: np.ndarray
    start: np.ndarray | None


class ModelCloser:
    """Closes the loops of one robot.

    Searches are those of the robot: they are tested against Newton's steps elsewhere.
    """

    def __init__(self, robot):
        self._tree, self._inputs, self._kernels = robot.tree, robot._inputs, robot._kernels
        self._search = robot._closer.search

    def close(self, given, guess):
        """See `Robot.close`."""
        if not isinstance(given, Mapping) and np.ndim(given) == 2:
            return self._close_rows(numbers("y", given), guess)
        closed = self._close_by_kernel(given, guess)
        return self._search(given, guess) if closed is None else closed

    def _close_by_kernel(self, given, guess):
        """Closure by the kernel, from a guess or the assembly; None where that leads nowhere.

        The known joints go there in one step or, where the others would move too far to be sure
        of the branch, in several.
        """
        known = self._determining(given) if self._tree.has_loops else None
        if known is None:
            return None
        if guess is not None:
            start = self._inputs.single("guess", guess, self._tree.nq)
        else:
            start = self._tree.home if known.start is None else known.start
        kernel = self._kernels.get("closure", known.entries)
        way = known.values - start[list(known.entries)]
        for parts in KERNEL_PARTS:
            q = start
            for remaining in range(parts - 1, -1, -1):
                last, (q, phi) = q, kernel.call(known.values - way * (remaining / parts), q)
                moved = np.abs(q - last)[self._tree.curved].max(initial=0.0)
                if not (np.abs(phi).max() <= CLOSED and moved <= NEARBY):
                    break
            else:
                return self._inputs.normalized(q)
        return None

    def _close_rows(self, rows, guess):
        known = self._determining(rows[0]) if self._tree.has_loops and len(rows) else None
        if known is None:
            return self._close_along(len(rows), rows.__getitem__, None, rows, guess)
        values = rows if known.start is None else rows[:, list(known.entries)]
        return self._close_along(len(rows), rows.__getitem__, known.entries, values, guess)

    def _close_along(
        self,
        count,
        row,
        entries,
        values,
        guess,
    ):
        """Close some of the rows one after the other, and those near them from there, at once.

        Args:
            count: of rows.
            row: one of them, as `close` takes it.
            entries: of q that are known, where they just determine the others; else None.
            values: (count, entries) of these.
            guess: where to start.
        """
        q = np.empty((count, self._tree.nq))
        if entries is None:
            remaining = np.arange(count)
        else:
            anchors, last = _anchors(values), guess
            for k in np.unique(anchors).tolist():
                q[k] = last = self.close(row(k), last)
            others = np.flatnonzero(anchors != np.arange(count))
            start = q[anchors[others]]
            closed, phi = self._kernels.get("closure", entries).batch(values[others], start)
            q[others] = closed
            moved = np.abs(closed - start)[:, self._tree.curved].max(axis=1, initial=0.0)
            remaining = others[~((np.abs(phi).max(axis=1) <= CLOSED) & (moved <= NEARBY))]
        for k in remaining.tolist():
            q[k] = self.close(row(k), q[k - 1] if k else guess)
        return self._inputs.normalized(q)

    def _determining(self, given):
        """The known joints, if they just determine the others.

        None where it takes a closer look: a batch, joints too few or too many, joints of several
        coordinates in loops, or mistakes.
        """
        choices = self._inputs.choices
        entries, start = choices.newton_positions, None
        try:
            if isinstance(given, Mapping):
                chosen = choices.positions(tuple(given))
                if chosen is None:
                    return None
                joints, entries = chosen
                if len(given) > len(joints):
                    start = self._tree.home.copy()
                    place = self._tree.coordinates.scalar_positions
                    values = np.array([*given.values()], dtype=float)
                    start[[place[name] for name in given]] = values
                values = np.asarray([given[name] for name in joints], dtype=float)
            else:
                values = np.asarray(given, dtype=float)
                if entries is not None and values.shape == (self._tree.nq,):
                    values, start = values[list(entries)], values
        except (TypeError, ValueError):
            return None
        if entries is None or values.shape != (len(entries),):
            return None
        return Known(entries, values, start)


def _anchors(values):
    """For each row the last one at or before it that all rows since are near to."""
    anchors, first = np.empty(len(values), np.intp), 0
    while first < len(values):
        block = values[first : first + BATCH_BLOCK]
        away = np.abs(block - block[0]).max(axis=1, initial=0.0) > BATCH_NEAR
        count = int(away.argmax()) or len(block)
        anchors[first : first + count] = first
        first += count
    return anchors
