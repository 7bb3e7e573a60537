"""Collision shapes of a robot's file, for contacts with the ground."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from lxml import etree

from rbda_ros.description.mjcf_compiler import compile_mjcf
from rbda_ros.description.model import Pose
from rbda_ros.description.report import Report
from rbda_ros.description.source import urdf_text
from rbda_ros.description.urdf import read_pose
from rbda_ros.description.visuals import drawn_elements, mjcf_collisions
from rbda_ros.description.xml_text import LARGEST_TEXT, child, parse_xml
from rbda_ros.errors import InputError
from rbda_ros.simulation.ground_contacts import Box, Capsule, Point, Shape, Sphere
from rbda_ros.spatial import rpy_matrix

RIM = 8
"""Points on each rim of a cylinder."""


def collision_shapes(
    source: str | os.PathLike[str],
    links: Collection[str] | None = None,
    friction: float = 0.8,
    restitution: float = 0.0,
    *,
    xacro_arguments: Mapping[str, str] | None = None,
) -> list[Shape]:
    """Shapes of the <collision> elements of a robot: boxes, spheres, capsules and cylinders.

    In MJCF these are the geoms that may touch others. A cylinder touches with eight points on each
    rim.

    Args:
        source: path or text of a URDF, xacro, SDF or MJCF.
        links: of which links; None for all that have any.
        friction: Coulomb's coefficient of all.
        restitution: of all, 0 to 1.
        xacro_arguments: for the <xacro:arg> elements of a file.

    Raises:
        InputError, DescriptionError: the file cannot be read, or a link's shape is another, such
            as a mesh.
    """
    report = Report()
    text = urdf_text(source, LARGEST_TEXT, report, xacro_arguments)
    root = None if text is None else parse_xml(text, report)
    report.raise_problems()
    if root is None or root.tag not in ("robot", "sdf", "mujoco"):
        raise InputError(
            f"{Path(str(source)[:80]).name}: no URDF, SDF or MJCF; give the file or its text"
        )
    if root.tag == "mujoco":
        model = compile_mjcf(source, text or "", report)
        if model is None:
            report.raise_problems()
        drawn: Mapping[str, Sequence[etree._Element]] = mjcf_collisions(model)
    else:
        drawn = drawn_elements(root)
    if unknown := sorted(set(links or ()).difference(drawn)):
        raise InputError(f"links: there is no {unknown[0]!r}; use some of {', '.join(drawn)}")
    laws = {"friction": friction, "restitution": restitution}
    shapes: list[Shape] = []
    for link, elements in drawn.items():
        if links is None or link in links:
            for element in elements:
                if element.tag == "collision":
                    at = read_pose(element, element.tag, report)
                    shapes += _shapes(link, child(element, "geometry"), at, laws)
    return shapes


def _shapes(
    link: str, geometry: etree._Element | None, at: Pose, laws: Mapping[str, float]
) -> Iterator[Shape]:
    """Shapes of a <geometry>, in the link's frame."""
    for element in () if geometry is None else geometry:
        kind = str(element.tag)
        try:
            numbers = {
                key: [float(x) for x in str(element.get(key, "")).split()]
                for key in ("size", "radius", "length")
            }
            R, p = rpy_matrix(at.rpy), np.asarray(at.xyz)
            if kind == "box":
                x, y, z = numbers["size"]
                yield Box(link, (x, y, z), at.xyz, at.rpy, **laws)
            elif kind == "sphere":
                yield Sphere(link, numbers["radius"][0], at.xyz, **laws)
            elif kind in ("capsule", "cylinder"):
                radius, half = numbers["radius"][0], 0.5 * numbers["length"][0] * R[:, 2]
                if kind == "capsule":
                    yield Capsule(link, radius, (p - half).tolist(), (p + half).tolist(), **laws)
                    continue
                for turn in 2.0 * np.pi * np.arange(RIM) / RIM:
                    rim = radius * (np.cos(turn) * R[:, 0] + np.sin(turn) * R[:, 1])
                    yield Point(link, (p - half + rim).tolist(), **laws)
                    yield Point(link, (p + half + rim).tolist(), **laws)
            else:
                raise InputError(
                    f"{link}: a {kind} touches nothing here; give the link other shapes, or leave"
                    " it out of links"
                )
        except (ValueError, IndexError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{link}: the sizes of its {kind} are no numbers; correct it"
            ) from None
