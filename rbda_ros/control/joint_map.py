"""Positions of the joints of the model in the arrays of a message."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from rbda_ros.control.rejections import Reason, RefusalError, check_once
from rbda_ros.errors import listed
from rbda_ros.kernels.cache import LruCache
from rbda_ros.robot import Robot

Vector = np.ndarray

MAX_MAPS = 256
"""Orders of joints that are cached for each robot; clients mostly use one."""


@dataclass(frozen=True)
class JointMap:
    """Where the joints of the model stand in a message.

    Attributes:
        size: number of joints in the message.
        place: of each joint that the message names.
        missing: independent joints that it does not name.
        independent: places of the independent joints; without those that are missing.
        in_order: whether it names just the independent joints, in the model's order.
    """

    size: int
    place: dict[str, int]
    missing: tuple[str, ...]
    independent: Vector
    in_order: bool

    @property
    def exact(self) -> bool:
        """Whether it names just the independent joints."""
        return not self.missing and self.size == len(self.independent)

    def by_name(self, values: Vector) -> dict[str, Vector]:
        """Numbers of a message (..., size) by joint name: a number each, or a column."""
        return {name: values[..., k] for name, k in self.place.items()}

    def pick(self, values: Vector) -> Vector:
        """The independent ones (..., n) of these numbers (..., size); zero if some are missing."""
        if self.in_order:
            return values
        if not self.missing:
            return values[..., self.independent]
        return np.zeros((*values.shape[:-1], len(self.independent) + len(self.missing)))


_maps: WeakKeyDictionary[Robot, LruCache[tuple[str, ...], JointMap]] = WeakKeyDictionary()


def map_joints(robot: Robot, names: Sequence[str]) -> JointMap:
    """Find the joints of the model among the names of a request.

    Args:
        robot: the model.
        names: joint names in the order of the message; empty means the independent joints.

    Raises:
        RefusalError: names are unknown or repeated.
    """
    maps = _maps.get(robot)
    if maps is None:
        maps = _maps.setdefault(robot, LruCache(MAX_MAPS))
    key = tuple(names)
    make = partial(_map_joints, robot, key or robot.independent_joint_names)
    return maps.get_or_make(key, make)


def _map_joints(robot: Robot, names: tuple[str, ...]) -> JointMap:
    check_once(names)
    place = {name: k for k, name in enumerate(names)}
    wanted = robot.independent_joint_names
    unknown = [name for name in names if name not in (*robot.joint_names, *wanted)]
    if unknown:
        raise RefusalError(
            Reason.MISNAMED,
            f"unknown joints: {listed(unknown)}; '{robot.name}' has {listed(robot.joint_names)}",
        )
    layout = robot.coordinates
    turning = {
        joint
        for joint in layout.joints
        if len(layout.positions[joint]) != len(layout.velocities[joint])
    }
    if asked := turning.intersection(name.rsplit(".", 1)[0] for name in names):
        raise RefusalError(
            Reason.MISNAMED,
            f"joints with a quaternion: {listed(sorted(asked))}; messages have no place for it, so "
            "choose independent joints without them",
        )
    return JointMap(
        size=len(names),
        place=place,
        missing=tuple(name for name in wanted if name not in place),
        independent=np.array([place[name] for name in wanted if name in place], dtype=np.intp),
        in_order=names == wanted,
    )


def places(names: Sequence[str], prefix: str, known: Container[str]) -> dict[str, int]:
    """Where the known joints stand among the names of a message; others are skipped.

    Raises:
        RefusalError: a joint is named twice.
    """
    check_once(names)
    return {
        name[len(prefix) :]: k
        for k, name in enumerate(names)
        if name.startswith(prefix) and name[len(prefix) :] in known
    }
