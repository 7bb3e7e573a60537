"""Visuals of an MJCF model as MuJoCo compiled it: meshes are inside the compiled model."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from rbda_ros.cluster_tree.spanning_tree import Frame
from rbda_ros.description.mjcf_compiler import compile_mjcf
from rbda_ros.description.mjcf_names import Names
from rbda_ros.description.report import Report
from rbda_ros.robot import Robot
from rbda_ros.view.forms import Colour, Shape, Triangles, ball, box, capsule, cylinder, mesh

COLLISION_GROUP = 3
"""Geoms of this group and above are by convention not drawn."""


def mjcf_shapes(
    robot: Robot, source: str | os.PathLike[str], text: str
) -> tuple[list[Shape], tuple[str, ...]]:
    """A shape for each geom, drawn or for collisions; notes on those that are left out."""
    report = Report()
    model = compile_mjcf(source, text, report)
    if model is None:
        return [], ()
    names, shapes = Names(model), list[Shape]()
    for g in range(model.ngeom):
        place = robot.spanning_tree.links.get(names.body(model.geom_bodyid[g]))
        if place is not None:
            at = place.frame @ Frame(_matrix(model.geom_quat[g]), np.array(model.geom_pos[g]))
            shape = _shape(model, g, place.body, at)
            if shape is not None and model.geom_group[g] >= COLLISION_GROUP:
                shapes.append(replace(shape, kind="collision"))
            elif shape is not None:
                shapes.append(replace(shape, colour=_colour(model, g)))
    return shapes, report.warnings


def _colour(model: Any, g: int) -> Colour:
    """Colour of a geom: of its material, where it has one."""
    material = int(model.geom_matid[g])
    rgba = model.geom_rgba[g] if material < 0 else model.mat_rgba[material]
    red, green, blue = (round(255.0 * float(part)) for part in rgba[:3])
    return red, green, blue


def _shape(model: Any, g: int, body: int, at: Frame) -> Shape | None:
    """The shape of a geom in a frame of a body; None for planes, height fields and the like."""
    import mujoco

    kinds, kind = mujoco.mjtGeom, int(model.geom_type[g])
    a, b, c = (float(size) for size in model.geom_size[g])
    if kind == int(kinds.mjGEOM_MESH):
        m = int(model.geom_dataid[g])
        v, f = int(model.mesh_vertadr[m]), int(model.mesh_faceadr[m])
        vertices = np.array(model.mesh_vert[v : v + int(model.mesh_vertnum[m])], float)
        faces = np.array(model.mesh_face[f : f + int(model.mesh_facenum[m])])
        return mesh(body, "visual", Triangles(vertices, faces), at)
    if kind == int(kinds.mjGEOM_BOX):
        return box(body, "visual", (2 * a, 2 * b, 2 * c), at)
    if kind == int(kinds.mjGEOM_SPHERE):
        return ball(body, "visual", a, at)
    if kind == int(kinds.mjGEOM_ELLIPSOID):
        return ball(body, "visual", (a, b, c), at)
    if kind == int(kinds.mjGEOM_CYLINDER):
        return cylinder(body, "visual", a, 2 * b, at)
    if kind == int(kinds.mjGEOM_CAPSULE):
        return capsule(body, "visual", a, 2 * b, at)
    return None


def _matrix(quaternion: Any) -> Any:
    import mujoco

    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, np.array(quaternion, dtype=float))
    return R.reshape(3, 3)
