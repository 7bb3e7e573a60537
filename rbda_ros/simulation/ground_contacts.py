"""Shapes on links that may touch the ground, and the ground.

The solver sees spheres. A point and a sphere are one, a capsule is one at each end, a box one of no
radius at each corner. On a plane that is exact. On a height field the sides of capsules and boxes
do not touch; put points on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.errors import InputError
from rbda_ros.robot.robot import Robot
from rbda_ros.simulation import stepper
from rbda_ros.spatial import Array, rpy_matrix

MAX_POINTS: int = stepper.MAX_POINTS
MAX_BODIES: int = stepper.MAX_BODIES


@dataclass(frozen=True)
class Shape(ABC):
    """Part of a link that touches the ground.

    Attributes:
        link: the link.
        friction: Coulomb's coefficient.
        restitution: part of the approaching velocity that it leaves with, 0 to 1.
    """

    link: str
    friction: float = field(default=0.8, kw_only=True)
    restitution: float = field(default=0.0, kw_only=True)

    @abstractmethod
    def spheres(self) -> Array:
        """(n, 4) centres in the link's frame, and radii [m]."""

    def check(self, where: str) -> Array:
        """The spheres, of numbers that can be used."""
        found = np.asarray(self.spheres(), dtype=float)
        if not np.isfinite(found).all() or (found[:, 3] < 0.0).any():
            raise InputError(
                f"{where}: {self!r} has a number that is not finite, or negative size;"
                " give finite numbers and sizes from zero on"
            )
        if not 0.0 <= self.friction < np.inf:
            raise InputError(f"{where}: friction is {self.friction!r}; give a number from zero on")
        if not 0.0 <= self.restitution <= 1.0:
            raise InputError(
                f"{where}: restitution is {self.restitution!r}; give a number from 0 to 1"
            )
        return found


@dataclass(frozen=True)
class Point(Shape):
    """A point at xyz in the link's frame [m]."""

    xyz: Sequence[float] = (0.0, 0.0, 0.0)

    def spheres(self) -> Array:
        """One of no radius."""
        return np.array([[*self.xyz, 0.0]])


@dataclass(frozen=True)
class Sphere(Shape):
    """A sphere with its centre at xyz in the link's frame [m]."""

    radius: float = 0.0
    xyz: Sequence[float] = (0.0, 0.0, 0.0)

    def spheres(self) -> Array:
        """Itself."""
        return np.array([[*self.xyz, self.radius]])


@dataclass(frozen=True)
class Capsule(Shape):
    """A cylinder with round ends, whose centres are at start and end in the link's frame [m]."""

    radius: float = 0.0
    start: Sequence[float] = (0.0, 0.0, 0.0)
    end: Sequence[float] = (0.0, 0.0, 0.0)

    def spheres(self) -> Array:
        """Both ends."""
        return np.array([[*self.start, self.radius], [*self.end, self.radius]])


@dataclass(frozen=True)
class Box(Shape):
    """A box of edges size [m] about xyz, turned by rpy [rad] in the link's frame."""

    size: Sequence[float] = (0.0, 0.0, 0.0)
    xyz: Sequence[float] = (0.0, 0.0, 0.0)
    rpy: Sequence[float] = (0.0, 0.0, 0.0)

    def spheres(self) -> Array:
        """Its corners."""
        corners = 0.5 * np.array(list(product((-1.0, 1.0), repeat=3))) * np.asarray(self.size)
        roll, pitch, yaw = self.rpy
        at = corners @ rpy_matrix((roll, pitch, yaw)).T + np.asarray(self.xyz)
        return np.hstack([at, np.zeros((8, 1))])


@dataclass(frozen=True)
class Plane:
    """Ground with a normal, in world axes, at a height along it over the world's origin [m]."""

    normal: Sequence[float] = (0.0, 0.0, 1.0)
    height: float = 0.0


@dataclass(frozen=True, eq=False)
class HeightField:
    """Ground of heights over a grid, bilinear between its points.

    Attributes:
        heights: (nx, ny) at least (2, 2); beyond the grid those of its edge go on [m].
        spacing: of the grid along x and y [m].
        origin: x and y of the first of them [m].
    """

    heights: ArrayLike
    spacing: tuple[float, float]
    origin: tuple[float, float] = (0.0, 0.0)


Ground = Plane | HeightField


@dataclass(frozen=True, eq=False)
class ContactPoints:
    """Spheres of all shapes.

    Attributes:
        bodies: numbers of the bodies that touch.
        body: (n,) index into these for each sphere.
        values: (n, 6) centre in the body's frame, radius, friction, restitution.
        shape: (n,) number of the shape that each belongs to.
        ground: (4,) normal and height; or origin and spacing of the heights.
        heights: (nx, ny), or None for a plane.
    """

    bodies: tuple[int, ...]
    body: Any
    values: Array
    shape: Any
    ground: Array
    heights: Array | None

    def arguments(self) -> tuple[Any, ...]:
        """As the stepper takes them."""
        grid = (0, 0) if self.heights is None else self.heights.shape
        sizes = len(self.bodies), len(self.body)
        return *sizes, self.body, self.values, self.ground, self.heights, *grid


def contact_points(robot: Robot, shapes: Sequence[Shape], ground: Ground) -> ContactPoints:
    """Spheres of shapes on a robot's bodies; checked."""
    numbers: list[int] = []
    values, shape = [np.zeros((0, 6))], []
    for s, each in enumerate(shapes):
        if not isinstance(each, Shape):
            raise InputError(f"contacts[{s}] is {each!r}; give a Point, Sphere, Capsule or Box")
        where = f"contacts[{s}] on {each.link!r}"
        place = robot.spanning_tree.links.get(each.link)
        if place is None or not place.body:
            known = ", ".join(n for n, at in robot.spanning_tree.links.items() if at.body)
            raise InputError(f"{where}: no link that moves; use one of {known}")
        spheres = each.check(where)
        R, p = np.asarray(place.frame.R, float), np.asarray(place.frame.p, float).ravel()
        laws = np.tile([each.friction, each.restitution], (len(spheres), 1))
        values.append(np.hstack([spheres[:, :3] @ R.T + p, spheres[:, 3:], laws]))
        numbers += [place.body] * len(spheres)
        shape += [s] * len(spheres)
    bodies = tuple(sorted(set(numbers)))
    if len(numbers) > MAX_POINTS or len(bodies) > MAX_BODIES:
        raise InputError(
            f"contacts: {len(numbers)} spheres and corners on {len(bodies)} bodies; at most"
            f" {MAX_POINTS} on {MAX_BODIES} can be simulated; leave some out"
        )
    body = np.array([bodies.index(number) for number in numbers], np.int64)
    return ContactPoints(
        bodies, body, np.ascontiguousarray(np.vstack(values)), np.array(shape), *_ground(ground)
    )


def clearance(robot: Robot, q: Array, shapes: Sequence[Shape], ground: Plane) -> float:
    """Smallest distance of shapes from a plane at a position (nq,); negative if inside [m]."""
    normal, _ = _ground(ground)
    distances = [np.inf]
    for shape in shapes:
        spheres, pose = shape.spheres(), robot.frame_pose(q, shape.link)
        centers = spheres[:, :3] @ pose[:3, :3].T + pose[:3, 3]
        distances.extend(centers @ normal[:3] - normal[3] - spheres[:, 3])
    return float(min(distances))


def _ground(ground: Ground) -> tuple[Array, Array | None]:
    if isinstance(ground, Plane):
        normal = np.asarray(ground.normal, float)
        length = float(np.linalg.norm(normal)) if normal.shape == (3,) else np.nan
        if not (0.0 < length < np.inf and np.isfinite(ground.height)):
            raise InputError(f"ground: {ground!r}; give a normal and a height of finite numbers")
        return np.array([*(normal / length), ground.height]), None
    if not isinstance(ground, HeightField):
        raise InputError(f"ground is {ground!r}; give a Plane or a HeightField")
    heights = np.ascontiguousarray(ground.heights, dtype=float)
    values = np.array([*ground.origin, *ground.spacing], float)
    fine = heights.ndim == 2 and min(heights.shape) >= 2 and np.isfinite(heights).all()
    if not (fine and np.isfinite(values).all() and (values[2:] > 0.0).all()):
        raise InputError(
            f"ground: heights of shape {heights.shape} with a spacing of {ground.spacing}; give"
            " (nx, ny) finite numbers, two by two at least, and positive spacings"
        )
    return values, heights
