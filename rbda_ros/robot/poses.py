"""Poses (4, 4) in numbers. scipy's rotations are imported where they are used: it takes 0.3 s."""

from __future__ import annotations

import numpy as np

from rbda_ros.spatial import Array


def pose_error(target: Array, pose: Array) -> Array:
    """Error from a pose to a target: (3,) for a position, (6,) for a pose (4, 4).

    Linear [m], then the rotation vector [rad], in world axes.
    """
    if target.shape == (3,):
        return target - pose[:3, 3]
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_matrix(target[:3, :3] @ pose[:3, :3].T).as_rotvec()
    return np.concatenate([target[:3, 3] - pose[:3, 3], turn])


def pose_matrix(position: Array) -> Array:
    """The pose (4, 4) of ``x y z qx qy qz qw``."""
    from scipy.spatial.transform import Rotation

    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_quat(position[3:]).as_matrix()
    pose[:3, 3] = position[:3]
    return pose
