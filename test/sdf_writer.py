"""Robots of ours as SDF: the same mechanism drawn at its assembly, where all joints are zero.

Written with every way that SDF has to say where something is, in turn, so that reading is a test.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from rbda_ros import Robot
from rbda_ros.description.model import Coupling, CutJoint, Inertia, Joint
from rbda_ros.description.orientation import to_rpy
from rbda_ros.spatial import rpy_matrix

TYPES = {"spherical": "ball", "helical": "screw"}


def placed(xyz, rpy) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rpy_matrix(rpy), xyz
    return T


def numbers(values) -> str:
    return " ".join(repr(float(value)) for value in values)


class SdfWriter:
    """Writes one robot; `text` has it."""

    def __init__(self, robot: Robot, seed: int = 0) -> None:
        self.robot, self.rng = robot, np.random.default_rng(seed)
        described = robot.description
        home = robot.tree.home
        self.at = {link.name: robot.frame_pose(home, link.name) for link in described.links}
        # A world of its own: the model is somewhere in it, turned.
        model = placed([0.3, -0.2, 0.1], [0.2, -0.4, 1.1])
        self.in_model = {name: np.linalg.inv(model) @ T for name, T in self.at.items()}
        self.in_model["__model__"] = np.eye(4)
        parts = [f"<pose>{self.six(model)}</pose>"]
        parts += [self.link(link.name, link.inertia) for link in described.links]
        self.followers = {
            next(iter(c.terms)): c for c in described.constraints if isinstance(c, Coupling)
        }
        parts += [self.joint(joint) for joint in described.joints]
        parts += [self.cut(cut) for cut in described.constraints if isinstance(cut, CutJoint)]
        root = f"<joint name='root' type='fixed'><parent>world</parent><child>{described.root}"
        parts.append(f"{root}</child></joint>")
        self.text = f"<sdf version='1.11'><model name='m'>{''.join(parts)}</model></sdf>"

    def six(self, T: np.ndarray) -> str:
        return numbers([*T[:3, 3], *to_rpy(T[:3, :3])])

    def pose(self, T: np.ndarray, near: str) -> str:
        """T (of the model), relative to one thing or another, in one format or another."""
        to = str(self.rng.choice(["__model__", near]))
        own = np.linalg.inv(self.in_model[to]) @ T
        kind = int(self.rng.integers(3))
        if kind == 0:
            x, y, z, *rpy = map(float, self.six(own).split())
            values = numbers([x, y, z, *np.degrees(rpy)])
            return f"<pose relative_to='{to}' degrees='true'>{values}</pose>"
        if kind == 1:
            values = numbers([*own[:3, 3], *quaternion(own[:3, :3])])
            return f"<pose relative_to='{to}' rotation_format='quat_xyzw'>{values}</pose>"
        return f"<pose relative_to='{to}'>{self.six(own)}</pose>"

    def link(self, name: str, inertia: Inertia | None) -> str:
        i = inertia or Inertia(0.0)
        moments = "".join(
            f"<{m}>{getattr(i, m)!r}</{m}>" for m in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        pose = self.pose(self.in_model[name], self.robot.description.root)
        if name == self.robot.description.root:
            pose = f"<pose>{self.six(self.in_model[name])}</pose>"
        return (
            f"<link name='{name}'>{pose}<inertial>"
            f"<pose>{numbers([*i.origin.xyz, *i.origin.rpy])}</pose><mass>{i.mass!r}</mass>"
            f"<inertia>{moments}</inertia></inertial></link>"
        )

    def joint(self, joint: Joint) -> str:
        """Its frame is anywhere on its axis; the child's own at home."""
        R = self.in_model[joint.child]
        axis = R[:3, :3] @ np.array(joint.axis)  # the joint turned about it: the same in both
        frame = R.copy()
        if joint.type in ("revolute", "continuous"):
            frame[:3, 3] += 0.1 * self.rng.normal() * axis
        mimic = self.mimic(joint.name)
        has_axis = joint.type not in ("fixed", "spherical")
        inside = self.axis("axis", axis, frame, mimic) if has_axis else ""
        if joint.type == "helical":
            inside += f"<screw_thread_pitch>{2 * np.pi * joint.pitch!r}</screw_thread_pitch>"
        return self.element(joint.name, joint.type, joint.parent, joint.child, frame, inside)

    def mimic(self, joint: str) -> str:
        """At home all is zero, and offsets with it: the reference's undoes an offset."""
        if joint not in self.followers:
            return ""
        (_, own), (master, coefficient) = self.followers[joint].terms.items()
        ratio = -coefficient / own
        return (
            f"<mimic joint='{master}'><multiplier>{ratio!r}</multiplier>"
            f"<offset>{0.5 * ratio!r}</offset><reference>0.5</reference></mimic>"
        )

    def cut(self, cut: CutJoint) -> str:
        first, second = cut.predecessor, cut.successor
        one = self.in_model[first.link] @ placed(first.origin.xyz, first.origin.rpy)
        other = self.in_model[second.link] @ placed(second.origin.xyz, second.origin.rpy)
        inside = ""
        if cut.type not in ("fixed", "spherical"):
            inside = self.axis("axis", one[:3, :3] @ cut.axis, other)
        if cut.type == "universal":
            inside += self.axis("axis2", other[:3, :3] @ cut.second_axis, other)
        return self.element(cut.name, cut.type, first.link, second.link, other, inside)

    def element(self, name, kind, parent, child, frame, inside) -> str:
        pose = self.pose(frame, parent)
        return (
            f"<joint name='{name}' type='{TYPES.get(kind, kind)}'><parent>{parent}</parent>"
            f"<child>{child}</child>{pose}{inside}</joint>"
        )

    def axis(self, tag: str, axis: np.ndarray, frame: np.ndarray, inside: str = "") -> str:
        """An axis given in the model, expressed in one frame or another."""
        seen = str(self.rng.choice(["", "__model__"]))
        own = axis if seen else frame[:3, :3].T @ axis
        attribute = f" expressed_in='{seen}'" if seen else ""
        return f"<{tag}><xyz{attribute}>{numbers(own)}</xyz>{inside}</{tag}>"


def quaternion(R: np.ndarray) -> np.ndarray:
    """qx qy qz qw of a rotation."""
    return Rotation.from_matrix(R).as_quat()
