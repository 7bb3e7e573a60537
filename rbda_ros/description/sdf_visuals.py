"""Visuals of an SDF model, as URDF's <visual> and <collision> elements."""

from __future__ import annotations

from lxml import etree

from rbda_ros.description.report import Report
from rbda_ros.description.sdf_frames import Frames, read_pose, relative
from rbda_ros.description.sdf_nesting import flatten_model
from rbda_ros.description.urdf_writer import add_origin
from rbda_ros.description.xml_text import child, children, text_of

_SHAPES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length")}


def drawn_links(root: etree._Element) -> dict[str, list[etree._Element]]:
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
