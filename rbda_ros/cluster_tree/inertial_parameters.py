"""Inertia as ten numbers that dynamics is linear in.

``pi = (m, m c_x, m c_y, m c_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz)``: mass, first moment and
rotational inertia about the frame's origin, in its axes. The order is Pinocchio's.
"""

from __future__ import annotations

import numpy as np

from rbda_ros.cluster_tree.spanning_tree import Frame
from rbda_ros.spatial import Array

PARAMETERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Their names [kg, kg m, kg m^2]."""


def inertial_parameters(inertia: Array) -> Array:
    """pi (10,) of a spatial inertia (6, 6), angular first."""
    I = inertia
    first_moment = I[2, 4], I[0, 5], I[1, 3]
    return np.array([I[5, 5], *first_moment, I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]])


def spatial_inertia_of(parameters: Array) -> Array:
    """The spatial inertia (6, 6), angular first, that has the parameters pi (10,)."""
    m, x, y, z, xx, xy, yy, xz, yz, zz = parameters
    moment = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    rotational = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return np.block([[rotational, moment], [moment.T, m * np.eye(3)]])


def parameter_map(frame: Frame) -> Array:
    """T (10, 10): parameters in a frame to those in the frame that it is given in, ``T pi``."""
    X = np.asarray(frame.transform() @ np.eye(6))  # from the reference's motions to the frame's
    units = (X.T @ spatial_inertia_of(unit) @ X for unit in np.eye(10))
    return np.column_stack([inertial_parameters(moved) for moved in units])
