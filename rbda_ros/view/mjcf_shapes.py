"""What an MJCF model draws, as MuJoCo compiled it: meshes are inside the compiled model."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from rbda_ros.cluster_tree.spanning_tree import Frame
from rbda_ros.description.mjcf_compiler import compile_mjcf
from rbda_ros.description.mjcf_names import Names
from rbda_ros.description.report import Report
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array

COLLISION_GROUP = 3
"""Geoms of this group and above are by convention not drawn."""


def mjcf_shapes(
    robot: Robot, source: str | os.PathLike[str], text: str
) -> tuple[list[tuple[int, Array, Any]], tuple[str, ...]]:
    """Body, vertices and faces of each geom, in the body's frame; notes on what is not drawn."""
    report = Report()
    model = compile_mjcf(source, text, report)
    if model is None:
        return [], ()
    names, shapes = Names(model), []
    for g in range(model.ngeom):
        place = robot.tree.spanning.links.get(names.body(model.geom_bodyid[g]))
        mesh = _mesh(model, g) if model.geom_group[g] < COLLISION_GROUP else None
        if place is not None and mesh is not None:
            at = place.frame @ Frame(_matrix(model.geom_quat[g]), np.array(model.geom_pos[g]))
            vertices, faces = mesh
            shapes.append((place.body, vertices @ at.R.T + at.p, faces))
    return shapes, report.warnings


def _mesh(model: Any, g: int) -> tuple[Any, Any] | None:
    """Vertices and faces of a geom; None for planes, height fields and the like."""
    import mujoco
    from trimesh import creation

    kinds, kind = mujoco.mjtGeom, int(model.geom_type[g])
    a, b, c = (float(size) for size in model.geom_size[g])
    if kind == int(kinds.mjGEOM_MESH):
        m = int(model.geom_dataid[g])
        v, f = int(model.mesh_vertadr[m]), int(model.mesh_faceadr[m])
        vertices = np.array(model.mesh_vert[v : v + int(model.mesh_vertnum[m])], float)
        return vertices, np.array(model.mesh_face[f : f + int(model.mesh_facenum[m])])
    if kind == int(kinds.mjGEOM_BOX):
        found = creation.box((2 * a, 2 * b, 2 * c))
    elif kind == int(kinds.mjGEOM_SPHERE):
        found = creation.icosphere(subdivisions=2, radius=a)
    elif kind == int(kinds.mjGEOM_ELLIPSOID):
        found = creation.icosphere(subdivisions=2, radius=1.0)
        found.vertices = np.asarray(found.vertices) * (a, b, c)
    elif kind == int(kinds.mjGEOM_CYLINDER):
        found = creation.cylinder(radius=a, height=2 * b, sections=24)
    elif kind == int(kinds.mjGEOM_CAPSULE):
        found = creation.capsule(radius=a, height=2 * b, count=[12, 12])
    else:
        return None
    return np.asarray(found.vertices), np.asarray(found.faces)


def _matrix(quaternion: Any) -> Any:
    import mujoco

    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, np.array(quaternion, dtype=float))
    return R.reshape(3, 3)
