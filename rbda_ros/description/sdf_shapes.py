"""Inertia that an SDF link gets of its collision shapes, where ``<inertial auto="true">`` asks.

Each shape has the density of its <collision>, else that of the link's <inertial>, else 1000 kg/m^3.
Where the link states a mass, the sum is scaled to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from lxml import etree

from rbda_ros.description.model import Inertia, Pose, vector3
from rbda_ros.description.report import Report, brief
from rbda_ros.description.sdf_frames import Frames, inverse, read_pose
from rbda_ros.description.values import to_number, to_vector
from rbda_ros.description.xml_text import child, children, inner, line
from rbda_ros.spatial import Array

WATER = 1000.0
"""Density of a shape for which the file states none [kg/m^3]."""

Solid = tuple[float, Array, float]
"""Volume [m^3], inertia about the centre of volume by the mass (3,) [m^2], its height [m]."""


def _cylinder(radius: float, length: float) -> Solid:
    across = radius**2 / 4.0 + length**2 / 12.0
    return math.pi * radius**2 * length, np.array([across, across, radius**2 / 2.0]), 0.0


def _capsule(radius: float, length: float) -> Solid:
    tube, (across, _, along), _ = _cylinder(radius, length)
    ball = 4.0 / 3.0 * math.pi * radius**3
    # The two halves of the ball are length/2 away, and their centres 3/8 of the radius more.
    ends = 0.4 * radius**2 + length**2 / 4.0 + 3.0 / 8.0 * length * radius
    share = tube / (tube + ball)
    across = share * across + (1.0 - share) * ends
    along = share * along + (1.0 - share) * 0.4 * radius**2
    return tube + ball, np.array([across, across, along]), 0.0


def _cone(radius: float, length: float) -> Solid:
    across = 3.0 / 20.0 * radius**2 + 3.0 / 80.0 * length**2
    moments = np.array([across, across, 0.3 * radius**2])
    return math.pi * radius**2 * length / 3.0, moments, -length / 4.0


def _ellipsoid(x: float, y: float, z: float) -> Solid:
    moments = np.array([y**2 + z**2, z**2 + x**2, x**2 + y**2]) / 5.0
    return 4.0 / 3.0 * math.pi * x * y * z, moments, 0.0


def _box(x: float, y: float, z: float) -> Solid:
    return x * y * z, np.array([y**2 + z**2, z**2 + x**2, x**2 + y**2]) / 12.0, 0.0


_ROUND: dict[str, Callable[[float, float], Solid]] = {
    "cylinder": _cylinder,
    "capsule": _capsule,
    "cone": _cone,
}
_BY_VECTOR: dict[str, tuple[str, Callable[[float, float, float], Solid]]] = {
    "box": ("size", _box),
    "ellipsoid": ("radii", _ellipsoid),
}


def inertia_of_shapes(link: etree._Element, frames: Frames, where: str, report: Report) -> Inertia:
    """The sum of a link's collision shapes, in the link's frame."""
    inertial = child(link, "inertial")
    density = inner(inertial, "density", to_number, WATER, where, report)
    mass, moment, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for collision in children(link, "collision"):
        solid = _solid(collision, where, report)
        if solid is None:
            return Inertia(1.0)
        volume, moments, height = solid
        own = volume * inner(collision, "density", to_number, density, where, report)
        placed = _placed(collision, link.get("name", ""), frames, where, report)
        R, p = placed[:3, :3], placed[:3, :3] @ (0.0, 0.0, height) + placed[:3, 3]
        mass, moment = mass + own, moment + own * p
        second = second + own * (R @ np.diag(moments) @ R.T + _about(p))
    if mass <= 0.0:
        report.problem(
            where,
            "its inertia is to be computed from shapes, and it has no <collision> with a volume",
            "write <mass> and <inertia> out",
        )
        return Inertia(1.0)
    centre = moment / mass
    stated = inner(inertial, "mass", to_number, mass, where, report)
    tensor = stated / mass * (second - mass * _about(centre))
    return Inertia(stated, Pose(vector3(centre)), *tensor[np.triu_indices(3)].tolist())


def _about(p: Array) -> Array:
    """(3, 3) inertia of a unit mass at p (3,) about the origin."""
    return np.asarray(p @ p * np.eye(3) - np.outer(p, p))


def _placed(
    collision: etree._Element, link: str, frames: Frames, where: str, report: Report
) -> Array:
    """(4, 4) a collision in the frame of its link."""
    pose = child(collision, "pose")
    placed = read_pose(pose, report)
    on = None if pose is None else pose.get("relative_to")
    if on:
        placed = inverse(frames.placement(link, where)) @ frames.placement(on, where) @ placed
    return placed


def _solid(collision: etree._Element, where: str, report: Report) -> Solid | None:
    """The shape of a collision; None where it is none of those known, which is a problem."""
    geometry = child(collision, "geometry")
    shapes = [] if geometry is None else [xml for xml in geometry if isinstance(xml.tag, str)]
    kind = str(shapes[0].tag) if shapes else ""
    if kind == "sphere":
        radius = inner(shapes[0], "radius", to_number, 1.0, where, report)
        return _ellipsoid(radius, radius, radius)
    if kind in _BY_VECTOR:
        tag, solid = _BY_VECTOR[kind]
        return solid(*inner(shapes[0], tag, to_vector, (1.0, 1.0, 1.0), where, report))
    if kind in _ROUND:
        radius, length = (
            inner(shapes[0], tag, to_number, default, where, report)
            for tag, default in (("radius", 0.5), ("length", 1.0))
        )
        return _ROUND[kind](radius, length)
    report.problem(
        where,
        f"its inertia is to be computed from shapes, of which {brief(kind or 'none')} is not one"
        f" that is read ({line(collision)})",
        "write <mass> and <inertia> out",
    )
    return None
