"""Conversion of motion and efforts from some joints to others, with equal power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.errors import InputError, SingularityError
from rbda_ros.robot.closer import CANNOT_GIVE
from rbda_ros.robot.inputs import numbers
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class JointMotion:
    """Motion and efforts of some joints of one coordinate each; every array may be (N, joints).

    Attributes:
        joint_names: whose they are, in the order of the arrays.
        position: (joints,) [rad, m].
        velocity: (joints,) [rad/s, m/s].
        acceleration: (joints,) [rad/s^2, m/s^2].
        effort: (joints,) on each joint, positive in its positive direction [N m, N].
        q: (nq,) the spanning position of the robot.
    """

    joint_names: tuple[str, ...]
    position: Array
    velocity: Array
    acceleration: Array
    effort: Array
    q: Array


def convert(
    robot: Robot,
    position: Mapping[str, ArrayLike],
    velocity: Mapping[str, ArrayLike] | None = None,
    acceleration: Mapping[str, ArrayLike] | None = None,
    effort: Mapping[str, ArrayLike] | None = None,
    *,
    targets: Sequence[str] | None = None,
    guess: ArrayLike | None = None,
) -> JointMotion:
    """The motion and efforts of the target joints, from those of others that determine them.

    ``qd = G_x xd`` and ``qdd = G_x xdd + g_x`` with the given joints x (Chignoli 2024, Eq. 3).
    Efforts e become the smallest efforts e' on the targets with ``G_t' e' = G_x' e``, so that
    ``e' . td = e . xd`` in every motion (footnotes 3 and 5). Efforts are converted as they
    are: no gravity, no inertia is added; `inverse_dynamics_efforts` gives those.

    Args:
        position: joint names to positions of joints that determine the others [rad, m]; a
            number each, or (N,) for a motion, whose loops are closed one after the other.
        velocity: joint names to velocities [rad/s, m/s]; None for rest.
        acceleration: joint names to accelerations [rad/s^2, m/s^2]; None for zero.
        effort: joint names to efforts, of any joints [N m, N]; None for zero.
        targets: joints of the result, of one coordinate each. None for all such joints; efforts
            then act on the actuated joints.
        guess: (nq,) where to start to close the loops, as for `close`.

    Raises:
        InputError: unknown names, numbers that are not finite, joints that do not determine
            the others, or targets that cannot give the effort.
        ClosureError: the loops cannot be closed at these positions.
        SingularityError: a loop is at a dead point.
    """
    names = _targets(robot, targets)
    given = _columns("position", position)
    batch = any(column.ndim for column in given.values())
    q = _closed(robot, given, guess) if batch else robot.close(given, guess)
    state = robot.state(robot._closer.refined(given, q))
    yd = np.zeros(robot.ny)
    if velocity is not None:
        yd = robot.independent_velocity(state, velocity)
    ydd = np.zeros(robot.ny)
    if acceleration is not None:
        ydd = robot.independent_acceleration(state, yd, acceleration)
    qd, qdd = robot._evaluate("spanning_motion", state.q, yd, ydd)
    acting = names if targets is not None else robot.actuated_joint_names
    on_targets = _target_efforts(robot, state, effort or {}, acting, names)
    in_q = [robot.coordinates.scalar_positions[name] for name in names]
    in_qd = [robot.coordinates.velocities[name].start for name in names]
    shape = np.broadcast_shapes(qd[..., in_qd].shape, on_targets.shape)
    return JointMotion(
        names,
        position=np.broadcast_to(state.q[..., in_q], shape),
        velocity=np.broadcast_to(qd[..., in_qd], shape),
        acceleration=np.broadcast_to(qdd[..., in_qd], shape),
        effort=np.broadcast_to(on_targets, shape),
        q=state.q,
    )


def _targets(robot: Robot, targets: Sequence[str] | None) -> tuple[str, ...]:
    """Names of joints of one coordinate each, checked."""
    single = robot.coordinates.scalar_positions
    if targets is None:
        return tuple(name for name in robot.joint_names if name in single)
    names = tuple(targets)
    robot._inputs.choices.check_names(names)
    if len(set(names)) < len(names):
        raise InputError(f"targets: {', '.join(names)}; name each once")
    if several := [name for name in names if name not in single]:
        raise InputError(
            f"targets: {', '.join(several)} has several coordinates; name joints of one"
        )
    return names


def _closed(robot: Robot, given: Mapping[str, Array], guess: ArrayLike | None) -> Array:
    """Spanning positions (N, nq) of a motion."""
    for name, column in given.items():
        if name not in robot.coordinates.scalar_positions or column.ndim > 1:
            robot._inputs.choices.check_names([name])
            raise InputError(f"position: {name}: give (N,) of joints of one coordinate each")
        if not np.isfinite(column).all():
            raise InputError(f"position: {name} is not finite")
    lengths = {len(column) for column in given.values() if column.ndim}
    if len(lengths) > 1:
        raise InputError(f"position: the batches have different lengths: {sorted(lengths)}")
    columns = {k: np.broadcast_to(v, (*lengths,)) for k, v in given.items()}
    return robot._closer.close_columns(columns, guess)


def _target_efforts(
    robot: Robot,
    state: State,
    effort: Mapping[str, ArrayLike],
    acting: Sequence[str],
    names: Sequence[str],
) -> Array:
    """Efforts on the joints of these names (..., names); they act on some of them."""
    if not effort:
        return np.zeros((*state.q.shape[:-1], len(names)))
    spanning = _spanning_efforts(robot, effort)
    (tau,) = robot._evaluate("generalized_force", state.q, spanning)
    of_names = {name: j for j, name in enumerate(robot.coordinate_names)}
    coordinates = tuple(sorted(of_names[name] for name in acting))
    kernel = robot._kernels.get("converted_efforts", coordinates)
    efforts, missed = robot._evaluate(kernel, state.q, tau)
    _refuse_leftovers(robot, tau, missed, acting)
    if not np.isfinite(efforts).all():
        raise SingularityError(
            f"effort: no finite efforts on {', '.join(acting)} give this force here; move away"
            " from the dead point, or choose other targets"
        )
    on_names = np.zeros((*efforts.shape[:-1], robot.nv))
    on_names[..., coordinates] = efforts
    return on_names[..., [of_names[name] for name in names]]


def _spanning_efforts(robot: Robot, effort: Mapping[str, ArrayLike]) -> Array:
    """Efforts (..., nv) on every coordinate, from those on some joints by name."""
    given = _columns("effort", effort)
    robot._inputs.choices.check_names(given)
    places = robot.coordinates.velocities
    columns = {
        name: robot._inputs.vector(
            f"effort of {name}",
            value if len(places[name]) > 1 else value[..., None],
            len(places[name]),
        )
        for name, value in given.items()
    }
    lengths = {column.shape[:-1] for column in columns.values()} - {()}
    if len(lengths) > 1:
        raise InputError("effort: the batches have different lengths")
    spanning = np.zeros((*(lengths.pop() if lengths else ()), robot.nv))
    for name, column in columns.items():
        spanning[..., places[name].start : places[name].stop] = column
    return spanning


def _refuse_leftovers(robot: Robot, tau: Array, missed: Array, acting: Sequence[str]) -> None:
    scale = np.abs(tau).max(axis=-1, keepdims=True, initial=0.0)
    left = ~(np.abs(missed) <= CANNOT_GIVE * scale)  # what is not a number is left too
    if not left.any():
        return
    independent = [robot.coordinate_names[j] for j in robot.independent_coordinates]
    places = np.flatnonzero(left.reshape(-1, robot.ny).any(axis=0))
    raise InputError(
        f"effort: {', '.join(acting) or 'no joint'} cannot give the force on"
        f" {', '.join(independent[j] for j in places)}; name targets that move with it"
    )


def _columns(what: str, given: Mapping[str, ArrayLike]) -> dict[str, Array]:
    if not isinstance(given, Mapping):
        raise InputError(f"{what}: {given!r} does not map joints to numbers")
    return {name: numbers(f"{what} of {name}", value) for name, value in given.items()}
