"""Positions that satisfy the loops: by kernels if a few Newton steps suffice, else by a search.

`LoopCloser` closes single positions and batches. A `ClosingCall` is for repeated calls: it is bound
to arrays, and closes loops from where they were closed the last time. A `CompletionCall` computes
the velocities of all joints from measured ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.cluster_tree.closing.search import close_cluster, close_directly
from rbda_ros.cluster_tree.closing.tolerances import (
    CLOSED,
    NEARBY,
    PRECISE,
    STREAM_PARTS,
    STREAM_REPEATS,
)
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.engine import core
from rbda_ros.errors import ClosureError, InputError
from rbda_ros.kernels.cache import KernelCache
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.robot.calls import RobotCalls
from rbda_ros.robot.inputs import Inputs, contiguous, numbers
from rbda_ros.robot.joint_choices import Measured
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

Given = ArrayLike | Mapping[str, ArrayLike]
"""An independent position, a spanning one to be closed, or positions by joint name."""
CANNOT_GIVE = 1e-7
"""Share of a force that joints may miss by rounding before they count as unable to give it."""


class LoopCloser:
    """Closes the loops of one robot. Threads may share it.

    Args:
        tree: the cluster tree.
        inputs: reads positions as users give them.
        kernels: has the closure kernels.
        calls: of the engine.
    """

    def __init__(
        self, tree: ClusterTree, inputs: Inputs, kernels: KernelCache, calls: RobotCalls
    ) -> None:
        self._tree = tree
        self._inputs = inputs
        self._kernels = kernels
        self._calls = calls

    def close(self, given: Given, guess: ArrayLike | None) -> Array:
        """See `Robot.close`."""
        guess = self._checked(guess)
        if not isinstance(given, Mapping) and np.ndim(given) == 2:
            rows = numbers("y", given)
            return self._close_along(rows.__getitem__, self._call(None), rows, guess)
        closed = self._close_by_kernel(given, guess)
        return self.search(given, guess) if closed is None else closed

    def close_nearby(self, q: Array, guess: Array) -> Array | None:
        """A spanning position (nq,) with its y, closed by Newton steps alone; None if they fail."""
        if self._call(None) is not None:
            return self._close_by_kernel(q, guess)
        closed = q.copy()
        for node, place in zip(self._tree.clusters, self._tree.position_ranges, strict=True):
            if node.loop is not None:
                free = [j for j in range(node.nv) if j not in node.independent]
                inside = slice(place.start, place.stop)
                found = close_directly(node.loop, guess[inside], q[inside], free)
                if found is None:
                    return None
                closed[inside] = found
        return closed

    def close_on_any_branch(self, given: Given, guess: ArrayLike) -> Array:
        """As `close`; on another branch if that of the guess does not reach so far."""
        try:
            return self.close(given, guess)
        except ClosureError:
            return self.search(given, guess, may_jump=True)

    def search(self, given: Given, guess: ArrayLike | None, may_jump: bool = False) -> Array:
        """Close every cluster by the search in Python, whose errors say what is wrong.

        Without a guess, or if it ``may_jump``, the result may be on any branch.
        """
        tree, inputs = self._tree, self._inputs
        guess = self._checked(guess)
        start = tree.home if guess is None else guess
        if isinstance(given, Mapping):
            known = self._known_by_name(given, start)
        else:
            row = inputs.single("y", given, tree.nq, inputs.independent_size)
            known = self._known_in(inputs.normalized(row) if row.size == tree.nq else row)
        parts = [np.zeros(0)]
        for node, place in zip(tree.clusters, tree.position_ranges, strict=True):
            inside = {i: known[n] for i, n in enumerate(node.numbers) if n in known}
            near = start[place.start : place.stop]
            parts.append(close_cluster(node, inside, near, may_jump or guess is None))
        return inputs.normalized(np.concatenate(parts))

    def _checked(self, guess: ArrayLike | None) -> Array | None:
        """A guess as a position with unit quaternions."""
        if guess is None:
            return None
        inputs = self._inputs
        return contiguous(inputs.normalized(inputs.single("guess", guess, self._tree.nq), "guess"))

    def _close_by_kernel(self, given: Given, guess: Array | None) -> Array | None:
        """Closure by the engine, from a guess or the assembly; None if it fails."""
        if not self._tree.has_loops:
            return None
        known = _plain(given)
        if known is None:
            return None
        call = self._call(tuple(known) if isinstance(known, dict) else None)
        if call is None:
            return None
        closed = call(known, guess)
        return None if isinstance(closed, core.Rejection) else closed

    def _call(self, names: tuple[str, ...] | None) -> Any:
        """The engine's call for a vector, or for joints by name; None if there is none."""
        return self._calls.call(None, "close", names)

    def close_columns(self, given: Mapping[str, Array], guess: ArrayLike | None) -> Array:
        """The spanning positions (N, nq) of a motion, from positions (N,) of each known joint."""
        guess = self._checked(guess)
        count = len(next(iter(given.values()), ()))
        place = self._tree.coordinates.scalar_positions
        if not self._tree.has_loops and set(given) == set(self._tree.coordinates.joints):
            q = np.tile(self._tree.home if guess is None else guess, (count, 1))
            q[:, [place[name] for name in given]] = np.stack([*given.values()], axis=-1)
            return q
        names = tuple(given)
        chosen = self._inputs.choices.positions(names) if self._tree.has_loops else None

        def row(k: int) -> dict[str, float]:
            return {name: column[k] for name, column in given.items()}

        if chosen is None or not count:
            return self._close_along(row, None, np.zeros((count, 0)), guess)
        joints, _ = chosen
        values = np.stack([given[name] for name in joints], axis=-1)
        if guess is None and len(given) > len(joints):
            guess = self._tree.home.copy()
            guess[[place[name] for name in given]] = [*row(0).values()]
        return self._close_along(row, self._call(names), values, guess)

    def refined(self, given: Mapping[str, Array], q: Array) -> Array:
        """A closed position (..., nq), closed again from there: exact up to rounding."""
        chosen = self._inputs.choices.positions(tuple(given)) if self._tree.has_loops else None
        if chosen is None:
            return q
        joints, entries = chosen
        kernel = self._kernels.get("closure", entries)
        if q.ndim == 1:
            refined, phi = kernel.call(np.array([float(given[name]) for name in joints]), q)
        else:
            columns = (np.broadcast_to(given[name], len(q)) for name in joints)
            refined, phi = kernel.batch(np.stack([*columns], axis=-1), q)
        better = np.abs(phi).max(axis=-1, keepdims=True, initial=0.0) <= CLOSED
        return np.where(better, refined, q)

    def _close_along(
        self, row: Callable[[int], Given], call: Any, rows: Array, guess: Array | None
    ) -> Array:
        """Close rows as a motion: by the engine, and by a search if Newton steps fail.

        Args:
            row: gives one of the rows as `close` takes it.
            call: of the engine, for such rows; None if each row is searched for.
            rows: (N, n) known positions.
            guess: where to start.
        """
        q, missed = np.empty((len(rows), self._tree.nq)), np.ones(len(rows), np.uint8)
        if call is not None:
            rows = contiguous(rows)
            missed[:] = 0
            found = call.close_rows(rows, guess, q, 0, missed)
            while found is not None and found.status == core.NOT_CLOSED:
                k = found.row  # q[k] is where Newton steps began
                q[k] = self.close(row(k), q[k].copy() if k else guess)
                found = call.close_rows(rows, guess, q, k + 1, missed)
            if found is not None:
                missed[:] = 1  # invalid numbers: the search says which
        for k in np.flatnonzero(missed).tolist():
            q[k] = self.close(row(k), q[k - 1] if k else guess)
        return self._inputs.normalized(q)

    def _known_by_name(self, positions: Mapping[str, ArrayLike], guess: Array) -> dict[int, Array]:
        """Positions by body number; a floating base is where the guess has it."""
        layout = self._tree.coordinates
        number_of = self._tree.spanning.body_of_joint
        self._inputs.choices.check_names(positions)
        known = {1: guess[: layout.base_nq]} if layout.base_nq else {}
        for name, position in positions.items():
            size = len(layout.positions[name])
            known[number_of[name]] = self._inputs.single(name, np.atleast_1d(position), size)
        for node in self._tree.clusters:
            if node.loop is None and any(number not in known for number in node.numbers):
                missing = [b.joint.name for b in node.bodies if b.joint.name not in positions]
                raise InputError(f"no position for {', '.join(missing)}; no loop determines it")
        return known

    def _known_in(self, row: Array) -> dict[int, Array]:
        """Positions by body number, from a spanning or an independent vector."""
        whole = row.size == self._tree.nq
        entries = range(row.size) if whole else self._inputs.choices.independent_positions or ()
        value = dict(zip(entries, row, strict=True))
        return {
            number: np.array([value[i] for i in place])
            for number, place in enumerate(self._tree.coordinates.positions.values(), start=1)
            if place.start in value
        }


def _plain(given: Given) -> Array | dict[str, float] | None:
    """Known positions as the engine takes them; None if the search must read them."""
    try:
        if isinstance(given, Mapping):
            if any(np.ndim(value) for value in given.values()):
                return None
            return {name: float(value) for name, value in given.items()}  # type: ignore[arg-type]
        if np.iscomplexobj(given):
            return None
        vector = contiguous(np.asarray(given, dtype=float))
    except (TypeError, ValueError):
        return None
    return vector if vector.ndim == 1 else None


class ClosingCall:
    """A bound kernel with the inputs ``position``, ``velocity`` and ``guess``.

    Its last outputs are the spanning position and its `Health`. The arrays stay the same ones. Not
    for several threads.

    Attributes:
        kernel: that is called.
        joints: whose positions it takes, in the order of ``position`` and ``velocity``.
        position, velocity: (joints,) of these [rad, m, s].
        q: (nq,) the spanning position that was found.
        max_condition_number: from which on a loop counts as being at a dead point.
        closes_itself: whether the kernel closes the loops; else it takes a closed position.
        positions: entries of q of the joints; None if the kernel takes a closed position.
        bound: the kernel with its arrays.
        arrays: the kernel's inputs and outputs.
        guess: the input from which loops are closed.
    """

    def __init__(self, kernel: Kernel, tree: ClusterTree, known: Measured) -> None:
        self.kernel = kernel
        self.joints = known.joints
        self.max_condition_number = 1e8
        self.closes_itself = known.positions is not None
        self.positions = known.positions
        self._home = tree.home
        self.bound = kernel.bind()
        self._named = dict(zip(kernel.input_sizes, self.bound.inputs, strict=True))
        self.arrays: tuple[Array, ...] = (*self.bound.inputs, *self.bound.outputs)
        *_, self.q, self._health = self.bound.outputs
        self.guess: Array = self._named["guess"]
        self._base_nq = tree.coordinates.base_nq
        self.position: Array = (
            self._named["position"] if self.closes_itself else np.zeros(len(self.joints))
        )
        self.velocity: Array = self._named["velocity"][tree.coordinates.base_nv :]
        self._closer: Any = None
        if known.positions is not None:
            self._closer = self._continuation(known.positions)
        self.forget()

    def start_from(self, q: Array) -> None:
        """Start the next search from a spanning position (nq,)."""
        self.guess[:] = q

    def forget(self) -> None:
        """Start the next search from the assembly."""
        self.start_from(self._home)

    def _continuation(self, entries: tuple[int, ...]) -> Any:
        """The engine's call that closes loops from known entries of q."""
        return core.ContinuationCall(
            kernel=self.kernel.native,
            arrays=self.arrays,
            position=self.position,
            guess=self.guess,
            q=self.q,
            health=self._health,
            entries=np.array(entries, np.int64),
            parts=np.array(STREAM_PARTS, np.int64),
            base_nq=self._base_nq,
            precise=PRECISE,
            closed=CLOSED,
            nearby=NEARBY,
            repeats=STREAM_REPEATS,
        )

    def _close_from_guess(self, other: Array) -> int:
        """Evaluate with the loops closed, from the guess or else from another closed position.

        Returns:
            A result of `engine/closing.h`; at `core.TOO_FAR` the guess is as it was.
        """
        return int(self._closer(other, self.max_condition_number, CANNOT_GIVE))

    def _judge(self) -> int:
        """Whether the outputs may be used: one of the results of closing."""
        limit = self.max_condition_number
        return int(core.judge_closing(self._health, CLOSED, limit, CANNOT_GIVE))


class CompletionCall:
    """Velocities of all joints from those of measured joints. Fill the inputs, call, read ``qd``.

    The arrays stay the same ones. Not for several threads.

    Attributes:
        kernel: that is called; its inputs are ``q``, and ``base_twist`` before ``velocity``.
        bound: the kernel with its arrays.
        q: (nq,) spanning position, closed [rad, m].
        base_twist: (6,) of a floating base, as qd starts; empty without one.
        velocity: (joints,) of the measured joints, in the order of `Robot.determining_joints`.
        qd: (nv,) the result, ``G_x xd`` [rad/s, m/s].
    """

    def __init__(self, kernel: Kernel, base_nv: int) -> None:
        self.kernel = kernel
        self.bound = kernel.bind()
        self.q, known = self.bound.inputs
        (self.qd,) = self.bound.outputs
        self.base_twist: Array
        self.velocity: Array
        self.base_twist, self.velocity = np.split(known, [base_nv])

    def __call__(self) -> Array:
        """Compute ``qd``."""
        self.bound()
        return self.qd


def completion(robot: Robot, joints: Collection[str]) -> CompletionCall:
    """Velocities of every joint from one message after the other, by one kernel.

    Args:
        joints: measured joints; as many of them are used as are needed to determine the others.

    Raises:
        InputError: unknown names, or joints that do not determine the others.
    """
    measured = robot._inputs.choices.measured("velocity", joints)
    kernel = robot._kernels.get("completed_velocity", measured.coordinates)
    return CompletionCall(kernel, robot.coordinates.base_nv)


def closure_kernel(robot: Robot, joints: Collection[str]) -> Kernel:
    """The kernel ``(known, guess) -> (q, phi)`` of `algorithms.closure` for known joints.

    Args:
        joints: as `Robot.determining_joints` gives them; ``known`` has their order.
    """
    places = robot.coordinates.scalar_positions
    return robot._kernels.get("closure", tuple(places[name] for name in joints))
