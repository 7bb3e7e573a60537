"""The demo leg in MuJoCo: loops as equality constraints, motors at the rotors.

MuJoCo is the hardware here: it knows nothing of clusters, and none of our code computes its motion.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lxml import etree

from rbda_ros import Robot, load_robot
from rbda_ros.demo.open_chain import DEMO_LOOPS, DEMO_ROBOT
from rbda_ros.demo.resources import share_file
from rbda_ros.description.model import Coupling, CutJoint, Inertia, RobotDescription
from rbda_ros.spatial import Array

TIMESTEP = 1e-4
"""Of the simulation [s]: stiff constraints need a short one."""
STIFF: dict[str, Any] = {"solref": f"{2 * TIMESTEP:g} 1", "solimp": "0.9999 0.9999 0.001"}
"""Equality constraints as stiff as MuJoCo lets them be at this step."""


class MujocoLeg:
    """A simulated leg with the numbers of the bundled robot.

    Args:
        position: (4,) of the independent joints, where it starts, at rest [rad].

    Attributes:
        robot: our model of it, for names and to close the loops at the start.
        model, data: MuJoCo's own.
    """

    def __init__(self, position: Array) -> None:
        import mujoco

        self._mujoco = mujoco
        self.robot: Robot = load_robot(share_file(DEMO_ROBOT), share_file(DEMO_LOOPS))
        self.model = mujoco.MjModel.from_xml_string(mjcf(self.robot))
        self.data = mujoco.MjData(self.model)
        self._at: dict[str, int] = {
            name: int(self.model.joint(name).qposadr[0]) for name in self.robot.joint_names
        }
        self._motors = [self.model.actuator(n).id for n in self.robot.actuated_joint_names]
        q = self.robot.close(position)
        for name, value in zip(self.robot.joint_names, q, strict=True):
            self.data.qpos[self._at[name]] = value
        mujoco.mj_forward(self.model, self.data)

    @property
    def time(self) -> float:
        """Of the simulation [s]."""
        return float(self.data.time)

    def positions(self, names: Any) -> Array:
        """Of these joints, as encoders would tell [rad]."""
        return np.array([self.data.qpos[self._at[name]] for name in names])

    def velocities(self, names: Any) -> Array:
        """Of these joints [rad/s]."""
        return np.array([self.data.qvel[self._at[name]] for name in names])

    def step(self, efforts: Array, seconds: float) -> None:
        """Go on for some time with efforts (actuated,) of the motors held [N m]."""
        self.data.ctrl[self._motors] = efforts
        for _ in range(round(seconds / TIMESTEP)):
            self._mujoco.mj_step(self.model, self.data)

    def push(self, link: str, force: Array) -> None:
        """Let a force (3,) act at the origin of a link from now on, in world axes [N]."""
        body = self.model.body(link).id
        arm = self.data.xpos[body] - self.data.xipos[body]
        self.data.xfrc_applied[body, :3] = force
        self.data.xfrc_applied[body, 3:] = np.cross(arm, force)

    def gap(self) -> float:
        """How far the loops are open [m, rad]: constraints of MuJoCo are springs."""
        return float(np.abs(self.data.efc_pos[: self.data.ne]).max(initial=0.0))


def mjcf(robot: Robot) -> str:
    """The robot as an MJCF model; its joints must be revolute, its cuts revolute or spherical."""
    description = robot.description
    root = etree.Element("mujoco", model=robot.name)
    etree.SubElement(root, "compiler", angle="radian", eulerseq="XYZ")
    gravity = " ".join(f"{g:g}" for g in robot.gravity)
    etree.SubElement(
        root, "option", timestep=f"{TIMESTEP:g}", gravity=gravity, integrator="implicitfast"
    )
    _add_bodies(etree.SubElement(root, "worldbody"), description)
    equality = etree.SubElement(root, "equality")
    for constraint in description.constraints:
        if isinstance(constraint, Coupling):
            _add_gear(equality, constraint)
        elif isinstance(constraint, CutJoint):
            at = constraint.predecessor
            etree.SubElement(
                equality,
                "connect",
                body1=at.link,
                body2=constraint.successor.link,
                anchor=_text(at.origin.xyz),
                **STIFF,
            )
    actuator = etree.SubElement(root, "actuator")
    for name in robot.actuated_joint_names:
        etree.SubElement(actuator, "motor", name=name, joint=name, gear="1")
    return etree.tostring(root, encoding="unicode")


def _add_bodies(world: Any, description: RobotDescription) -> None:
    """Links as bodies, each inside the one that its joint is on."""
    inertias = {link.name: link.inertia for link in description.links}
    bodies = {description.root: world}
    waiting = list(description.joints)
    while waiting:
        joint = next(each for each in waiting if each.parent in bodies)
        waiting.remove(joint)
        body = etree.SubElement(
            bodies[joint.parent],
            "body",
            name=joint.child,
            pos=_text(joint.origin.xyz),
            euler=_text(joint.origin.rpy),
        )
        bodies[joint.child] = body
        if joint.type in ("revolute", "continuous"):
            etree.SubElement(
                body,
                "joint",
                name=joint.name,
                axis=_text(joint.axis),
                damping=f"{joint.damping:.17g}",
                frictionloss=f"{joint.friction:.17g}",
            )
        if (inertia := inertias[joint.child]) is not None:
            _add_inertial(body, inertia)


def _add_gear(equality: Any, gear: Coupling) -> None:
    """``a x + b z = offset`` as ``x = offset / a - b / a z``."""
    (first, a), (second, b) = gear.terms.items()
    coefficients = f"{gear.offset / a:.17g} {-b / a:.17g} 0 0 0"
    etree.SubElement(equality, "joint", joint1=first, joint2=second, polycoef=coefficients, **STIFF)


def _add_inertial(body: Any, inertia: Inertia) -> None:
    from scipy.spatial.transform import Rotation

    R = Rotation.from_euler("xyz", inertia.origin.rpy).as_matrix()
    i = inertia
    about = np.array([[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]])
    turned = R @ about @ R.T
    moments, axes = np.linalg.eigh(turned)
    # A rotor that only spins is a thin disc here: MuJoCo wants what a body can be.
    moments[:2] = np.maximum(moments[:2], 0.5001 * moments[2] if moments[1] <= 0.0 else 0.0)
    turned = axes @ np.diag(moments) @ axes.T
    numbers = [turned[0, 0], turned[1, 1], turned[2, 2], turned[0, 1], turned[0, 2], turned[1, 2]]
    etree.SubElement(
        body,
        "inertial",
        pos=_text(inertia.origin.xyz),
        mass=f"{max(inertia.mass, 1e-6):.17g}",
        fullinertia=_text(numbers),
    )


def _text(numbers: Any) -> str:
    return " ".join(f"{x:.17g}" for x in numbers)
