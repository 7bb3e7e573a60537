"""The inertia that a frame shows to a push, as an ellipsoid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array

IMMOVABLE = 1e-9
"""Share of the largest mobility below which a direction counts as one that cannot move."""


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """The generalized inertia ellipsoid ``v' Lambda v = 1`` of a frame (Asada 1983).

    Long where the frame is light, flat where it is heavy or cannot move.

    Attributes:
        pose: (4, 4) of the frame in the world.
        axes: (3, 3) principal directions in the world, as columns; a rotation.
        lengths: (3,) of the semi-axes, the longest 1.
        masses: (3,) felt along them [kg]; infinite where it cannot move.
    """

    pose: Array
    axes: Array
    lengths: Array
    masses: Array


def inertia_ellipsoid(robot: Robot, q: Array, link: str) -> Ellipsoid | None:
    """The ellipsoid of a link's origin at a closed position (nq,); None where there is none."""
    try:
        state = robot.state(q)
        pose = robot.frame_pose(state, link)
        inverse = robot.operational_space_inertia(state, link, linear_only=True).inverse_inertia
    except InputError:
        return None
    mobility, axes = np.linalg.eigh(inverse)
    mobility = np.maximum(mobility, 0.0)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    largest = float(mobility.max(initial=0.0))
    moves = mobility > IMMOVABLE * largest
    masses = np.divide(1.0, mobility, where=moves, out=np.full(3, np.inf))
    lengths = np.sqrt(mobility / largest) if largest else np.zeros(3)
    return Ellipsoid(pose, axes, lengths, masses)
