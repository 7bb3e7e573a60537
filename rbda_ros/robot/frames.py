"""Frames: the inertia that they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rbda_ros.errors import InputError, SingularityError
from rbda_ros.robot.inputs import MAX_TRACED_FRAMES, FrameName, numbers
from rbda_ros.robot.operations import Position, dispatched
from rbda_ros.robot.results import OperationalSpace
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot


@dispatched("f", 1)
def operational_space_inertia(
    robot: Robot,
    q: Position,
    frames: str | Sequence[FrameName],
    damping: float = 0.0,
    linear_only: bool = False,
) -> OperationalSpace:
    """The operational-space inertia of some frames, by force propagation (PV-OSIMr).

    The program of many frames would grow with their square: above `MAX_TRACED_FRAMES` it is
    ``J H^-1 J'``, multiplied out.

    Args:
        q: (nq,) spanning position, or independent position; one state, not a batch.
        frames: links, or links with offsets.
        damping: added to the diagonal of the inverse inertia before it is inverted
            [1/kg, 1/(kg m^2)].
        linear_only: leave out the angular rows.
    """
    frames = [frames] if isinstance(frames, str) else list(frames)
    if not frames:
        raise InputError("frames: name at least one link")
    if np.ndim(numbers("damping", damping)) or not 0.0 <= damping < np.inf:
        raise InputError(f"damping is {damping!r}; give a number that is not negative")
    state = robot._single_state(q)
    if len(frames) > MAX_TRACED_FRAMES:
        rows = 3 if linear_only else 6
        jacobian = np.vstack([robot.jacobian(state, frame)[:rows] for frame in frames])
        inverse = _dense_inverse_inertia(robot, state, jacobian)
        if not np.isfinite(inverse).all():
            raise SingularityError(robot._no_inertia())
        return OperationalSpace(inverse, jacobian, damping)
    named = tuple(robot._inputs.frame(frame) for frame in frames)
    call = robot._calls.call(robot, "operational_space_inertia", (named, bool(linear_only)))
    return robot._result(call(state, float(damping)))


def _dense_inverse_inertia(robot: Robot, state: State, J: Array) -> Array:
    """``J H^-1 J'`` (m, m) from the factor of ``H = L' L``."""
    L = robot.mass_matrix_factor(state)
    halves = np.linalg.solve(L.T, J.T)
    return halves.T @ halves
