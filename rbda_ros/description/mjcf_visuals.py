"""Visuals of an MJCF model, as <visual> elements: meshes by reference, and simple shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from lxml import etree

from rbda_ros.description.mjcf_names import Names
from rbda_ros.description.orientation import to_pose
from rbda_ros.description.urdf_writer import add_origin, numbers


def drawn_links(model: Any) -> dict[str, list[etree._Element]]:
    """<visual> elements by link; planes, height fields and the like are left out."""
    import mujoco

    names, kinds = Names(model), mujoco.mjtGeom
    drawn: dict[str, list[etree._Element]] = {}
    for g in range(model.ngeom):
        kind, size = int(model.geom_type[g]), [float(s) for s in model.geom_size[g]]
        R, p = _matrix(model.geom_quat[g]), np.array(model.geom_pos[g])
        if kind == int(kinds.mjGEOM_MESH):
            mesh = int(model.geom_dataid[g])
            # The compiler moves meshes to their centres; the file has them as drawn.
            R_mesh, p_mesh = _matrix(model.mesh_quat[mesh]), np.array(model.mesh_pos[mesh])
            R, p = R @ R_mesh.T, p - R @ R_mesh.T @ p_mesh
            shape = etree.Element("mesh", filename=_file(model, mesh))
            shape.set("scale", numbers(model.mesh_scale[mesh]))
        elif kind == int(kinds.mjGEOM_BOX):
            shape = etree.Element("box", size=numbers([2 * s for s in size]))
        elif kind == int(kinds.mjGEOM_SPHERE):
            shape = etree.Element("sphere", radius=repr(size[0]))
        elif kind in (int(kinds.mjGEOM_CYLINDER), int(kinds.mjGEOM_CAPSULE)):
            shape = etree.Element("cylinder", radius=repr(size[0]), length=repr(2 * size[1]))
        else:
            continue
        visual = etree.Element("visual")
        add_origin(visual, to_pose(R, p))
        etree.SubElement(visual, "geometry").append(shape)
        drawn.setdefault(names.body(model.geom_bodyid[g]), []).append(visual)
    return drawn


def _file(model: Any, mesh: int) -> str:
    start = int(model.mesh_pathadr[mesh])
    if start < 0:
        return model.mesh(mesh).name
    return bytes(model.paths[start:]).split(b"\0")[0].decode(errors="replace")


def _matrix(quaternion: Any) -> Any:
    import mujoco

    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, np.array(quaternion, dtype=float))
    return R.reshape(3, 3)
