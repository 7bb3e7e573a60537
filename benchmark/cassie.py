"""Cassie, whose rods make two loops a leg, from the SDF of example-robot-data.

In the SDF a rod is simply the parent, or the child, of two joints. Here one of the two is a tree
joint and the other, a ball, is a cut.
"""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree

CUTS = ("pitch-rod-joint", "plantar-foot-joint")


def cassie() -> tuple[str, dict]:
    """URDF text and loop file."""
    sdf = next(f for f in files("example-robot-data") or () if f.name == "cassie_v2.sdf")
    model = etree.parse(Path(str(sdf.locate()))).getroot().find("model")
    joints = model.findall("joint")
    tree_joints = [joint for joint in joints if not joint.get("name").endswith(CUTS)]
    # URDF has the child's frame at the joint.
    frames = {link.get("name"): _pose(link) for link in model.findall("link")}
    at_joint = {link: pin.SE3.Identity() for link in frames}
    at_joint |= {joint.findtext("child").strip(): _pose(joint) for joint in tree_joints}
    moved = {link: frames[link] * at_joint[link] for link in frames}

    parts = [_link(link, at_joint[link.get("name")]) for link in model.findall("link")]
    for joint in tree_joints:
        parent, child = joint.findtext("parent").strip(), joint.findtext("child").strip()
        parts.append(
            f'<joint name="{joint.get("name")}" type="continuous">'
            f'<parent link="{parent}"/><child link="{child}"/>'
            f"{_origin(moved[parent].inverse() * moved[child])}"
            f'<axis xyz="{joint.findtext("axis/xyz")}"/></joint>'
        )
    constraints = []
    for joint in joints:
        if joint.get("name").endswith(CUTS):
            rod, other = joint.findtext("parent").strip(), joint.findtext("child").strip()
            at = frames[other] * _pose(joint)
            constraints.append(
                {
                    "name": joint.get("name"),
                    "type": "spherical",
                    "predecessor": {"link": rod, **_place(moved[rod].inverse() * at)},
                    "successor": {"link": other, **_place(moved[other].inverse() * at)},
                }
            )
    return f'<robot name="cassie">{"".join(parts)}</robot>', {"constraints": constraints}


def _pose(element: etree._Element) -> pin.SE3:
    numbers = [float(x) for x in (element.findtext("pose") or "0 0 0 0 0 0").split()]
    return pin.SE3(pin.rpy.rpyToMatrix(*numbers[3:]), np.array(numbers[:3]))


def _place(pose: pin.SE3) -> dict[str, list[float]]:
    rpy = pin.rpy.matrixToRpy(pose.rotation)
    return {"xyz": pose.translation.tolist(), "rpy": rpy.tolist()}


def _origin(pose: pin.SE3) -> str:
    place = _place(pose)
    xyz, rpy = (" ".join(repr(x) for x in place[key]) for key in ("xyz", "rpy"))
    return f'<origin xyz="{xyz}" rpy="{rpy}"/>'


def _link(link: etree._Element, at_joint: pin.SE3) -> str:
    inertial = link.find("inertial")
    inertia = " ".join(
        f'{key}="{inertial.findtext(f"inertia/{key}")}"'
        for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    )
    return (
        f'<link name="{link.get("name")}"><inertial>'
        f"{_origin(at_joint.inverse() * _pose(inertial))}"
        f'<mass value="{inertial.findtext("mass")}"/><inertia {inertia}/></inertial></link>'
    )
