"""The files of a robot with identified parameters in the place of the nominal ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import yaml
from lxml import etree

from rbda_ros.cluster_tree.spanning_tree import IDENTITY, inertial_parameters, link_inertia
from rbda_ros.control.settings import Settings, joint_gains
from rbda_ros.description.report import Report
from rbda_ros.description.xml_text import parse_xml
from rbda_ros.errors import InputError
from rbda_ros.recordings.identification import Identified
from rbda_ros.robot import Robot
from rbda_ros.robot.inertia_chart import is_body
from rbda_ros.robot.payload_estimate import about_com, payload_of_parameters
from rbda_ros.robot.payloads import Payload
from rbda_ros.spatial import Array

MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def patched_urdf(text: str, robot: Robot, found: Identified) -> str:
    """The URDF with identified inertias and friction.

    What a body of several links has gained is put on the link that its joint moves. Where that
    link alone would be no body then, it takes all of it, and the others keep none.

    Args:
        text: the URDF.
        robot: the model of it.
        found: what was identified.
    """
    root = parse_xml(text, Report())
    if root is None or root.tag != "robot":
        raise InputError("the description is no URDF; convert it with `rbda_ros convert` first")
    links = {link.get("name", ""): link for link in root.findall("link")}
    if "inertia" in found.what:
        for k, name in enumerate(found.parameters.bodies):
            if name in links:
                _patch_body(links, robot, k, found)
    if "friction" in found.what:
        for joint in root.findall("joint"):
            if joint.get("name") in robot.independent_joint_names:
                _patch_friction(joint, found)
    return etree.tostring(root, pretty_print=True, encoding="unicode")


def patched_loops(text: str, robot: Robot, found: Identified) -> str:
    """The loop file with identified inertias of its rotors; as it is where it has none."""
    loops = yaml.safe_load(text) if text else None
    rotors = loops.get("rotors") if isinstance(loops, dict) else None
    if "inertia" not in found.what or not rotors:
        return text
    for name, rotor in rotors.items():
        link = f"{name}_rotor_link"
        if link in found.parameters.bodies and isinstance(rotor, dict):
            k = 10 * found.parameters.bodies.index(link)
            before, after = (
                np.abs(values[k + 4 : k + 10]).sum()
                for values in (found.parameters.values, found.fit.values)
            )
            for key in ("inertia", "mass"):
                if key in rotor and before:
                    rotor[key] = float(rotor[key]) * float(after / before)
    return yaml.safe_dump(loops, sort_keys=False, default_flow_style=None)


def payload_of(found: Identified) -> Payload:
    """The identified payload."""
    assert found.payload is not None
    start = found.parameters.names.index("payload.m")
    return payload_of_parameters(found.payload, found.fit.values[start : start + 10])


def payload_call(payload: Payload, node: str) -> str:
    """The command that has a running node carry a payload."""
    request = {
        "name": "identified",
        "link": payload.link,
        "inertia": {
            "m": payload.mass,
            "com": dict(zip("xyz", payload.com, strict=True)),
            **dict(zip(MOMENTS, payload.inertia, strict=True)),
        },
    }
    text = yaml.safe_dump(request, default_flow_style=True, width=10**6).strip()
    return f'ros2 service call {node}/set_payload rbda_ros/srv/SetPayload "{text}"'


def offset_parameters(settings: Settings, found: Identified) -> str:
    """A parameter file with the offsets of positions: those there were, and those found on top."""
    offsets = joint_gains("joint_offsets", settings.joint_offsets, signed=True)
    for name, offset in found.offsets.items():
        offsets = {**offsets, name: round(offsets.get(name, 0.0) + offset, 6)}
    text = yaml.safe_dump(offsets, default_flow_style=True, width=10**6).strip()
    return yaml.safe_dump({"/**": {"ros__parameters": {"joint_offsets": text}}}, width=10**6)


def _patch_body(links: dict[str, Any], robot: Robot, k: int, found: Identified) -> None:
    place = slice(10 * k, 10 * k + 10)
    before, after = found.parameters.values[place], found.fit.values[place]
    if np.array_equal(before, after):
        return
    main = found.parameters.bodies[k]
    own = _link_parameters(robot, main) + after - before
    if not is_body(own) and is_body(after):
        own = after
        for name, link in links.items():
            if name != main and robot.spanning_tree.links[name].body == k + 1:
                for inertial in link.findall("inertial"):
                    link.remove(inertial)
    _write_inertial(links[main], own)


def _link_parameters(robot: Robot, name: str) -> Array:
    """(10,) of one link, in its own frame."""
    (link,) = (link for link in robot.description.links if link.name == name)
    if link.inertia is None:
        return np.zeros(10)
    return inertial_parameters(link_inertia(link.inertia, IDENTITY))


def _write_inertial(link: Any, parameters: Array) -> None:
    mass, com, inertia = about_com(parameters)
    for old in link.findall("inertial"):
        link.remove(old)
    inertial = etree.Element("inertial")
    xyz = " ".join(repr(x) for x in com)
    etree.SubElement(inertial, "origin", xyz=xyz, rpy="0 0 0")
    etree.SubElement(inertial, "mass", value=repr(mass))
    values = {name: repr(value) for name, value in zip(MOMENTS, inertia, strict=True)}
    etree.SubElement(inertial, "inertia", values)
    link.insert(0, inertial)


def _patch_friction(joint: Any, found: Identified) -> None:
    name = joint.get("name")
    dynamics = joint.find("dynamics")
    if dynamics is None:
        dynamics = etree.SubElement(joint, "dynamics")
    for kind in ("damping", "friction"):
        # Friction that drives the joint is noise: no joint has it.
        dynamics.set(kind, repr(max(0.0, found.value(f"{name}.{kind}"))))
