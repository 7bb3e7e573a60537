"""Visuals of SDF and MJCF models, as URDF's <visual> and <collision> elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from lxml import etree

from rbda_ros.description.mjcf_compiler import Names
from rbda_ros.description.orientation import from_quaternion, to_pose
from rbda_ros.description.report import Report
from rbda_ros.description.sdf_frames import Frames, flatten_model, read_pose, relative
from rbda_ros.description.writers import add_origin, numbers
from rbda_ros.description.xml_text import child, children, text_of

_SHAPES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length")}


def drawn_elements(root: etree._Element) -> Mapping[str, Sequence[etree._Element]]:
    """<visual> and <collision> elements of each link of a URDF or SDF, as URDF writes them."""
    if root.tag == "sdf":
        return sdf_visuals(root)
    return {
        link.get("name", ""): [*children(link, "visual"), *children(link, "collision")]
        for link in children(root, "link")
    }


def sdf_visuals(root: etree._Element) -> dict[str, list[etree._Element]]:
    """Elements by link: meshes by reference, and simple shapes; others are left out."""
    drawn: dict[str, list[etree._Element]] = {}
    models = [*children(root, "model")]
    models += [model for world in children(root, "world") for model in children(world, "model")]
    for model in models:
        flatten_model(model, Report())
        frames = Frames(model, Report())
        for link in children(model, "link"):
            name = link.get("name", "")
            drawn[name] = [
                element
                for tag in ("visual", "collision")
                for xml in children(link, tag)
                if (element := _element(xml, name, frames)) is not None
            ]
    return drawn


def _element(xml: etree._Element, link: str, frames: Frames) -> etree._Element | None:
    geometry, pose = child(xml, "geometry"), child(xml, "pose")
    shape = None if geometry is None else _shape(geometry)
    if shape is None:
        return None
    seen_from = (None if pose is None else pose.get("relative_to")) or link
    placed = frames.placement(seen_from, link) @ read_pose(pose, Report())
    element = etree.Element(xml.tag)
    add_origin(element, relative(frames.placement(link, link), placed))
    etree.SubElement(element, "geometry").append(shape)
    return element


def _shape(geometry: etree._Element) -> etree._Element | None:
    mesh = child(geometry, "mesh")
    if mesh is not None:
        found = etree.Element("mesh", filename=text_of(child(mesh, "uri")) or "")
        found.set("scale", text_of(child(mesh, "scale")) or "1 1 1")
        return found
    for tag, sizes in _SHAPES.items():
        given = child(geometry, tag)
        if given is not None:
            return etree.Element(tag, {size: text_of(child(given, size)) or "1" for size in sizes})
    return None


def mjcf_visuals(model: Any) -> dict[str, list[etree._Element]]:
    """<visual> elements by link; planes, height fields and the like are left out."""
    return _geoms(model, range(model.ngeom), "visual", "cylinder")


def mjcf_collisions(model: Any) -> dict[str, list[etree._Element]]:
    """<collision> elements by link: the geoms that may touch others.

    Capsules are <capsule> elements.
    """
    touching = np.flatnonzero(model.geom_contype | model.geom_conaffinity)
    return _geoms(model, touching, "collision", "capsule")


def _geoms(
    model: Any, geoms: Iterable[int], tag: str, capsule: str
) -> dict[str, list[etree._Element]]:
    import mujoco

    names, kinds = Names(model), mujoco.mjtGeom
    drawn: dict[str, list[etree._Element]] = {}
    for g in geoms:
        kind, size = int(model.geom_type[g]), [float(s) for s in model.geom_size[g]]
        R, p = from_quaternion(model.geom_quat[g]), np.array(model.geom_pos[g])
        if kind == int(kinds.mjGEOM_MESH):
            mesh = int(model.geom_dataid[g])
            # The compiler moves meshes to their centres; the file has them as drawn.
            R_mesh, p_mesh = from_quaternion(model.mesh_quat[mesh]), np.array(model.mesh_pos[mesh])
            R, p = R @ R_mesh.T, p - R @ R_mesh.T @ p_mesh
            shape = etree.Element("mesh", filename=_file(model, mesh))
            shape.set("scale", numbers(model.mesh_scale[mesh]))
        elif kind == int(kinds.mjGEOM_BOX):
            shape = etree.Element("box", size=numbers([2 * s for s in size]))
        elif kind == int(kinds.mjGEOM_SPHERE):
            shape = etree.Element("sphere", radius=repr(size[0]))
        elif kind in (int(kinds.mjGEOM_CYLINDER), int(kinds.mjGEOM_CAPSULE)):
            named = "cylinder" if kind == int(kinds.mjGEOM_CYLINDER) else capsule
            shape = etree.Element(named, radius=repr(size[0]), length=repr(2 * size[1]))
        else:
            continue
        element = etree.Element(tag)
        add_origin(element, to_pose(R, p))
        etree.SubElement(element, "geometry").append(shape)
        drawn.setdefault(names.body(model.geom_bodyid[g]), []).append(element)
    return drawn


def _file(model: Any, mesh: int) -> str:
    start = int(model.mesh_pathadr[mesh])
    if start < 0:
        return model.mesh(mesh).name
    return bytes(model.paths[start:]).split(b"\0")[0].decode(errors="replace")
