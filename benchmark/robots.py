"""The robots that are measured, as ours and as Pinocchio's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import files
from pathlib import Path

import numpy as np
import pinocchio as pin

from rbda_ros import Robot, load_robot

SHARED = Path(__file__).resolve().parents[2] / "shared"
"""URDF+ robots and the counts of another library; left out where they are absent."""

DEMO_LEG = Path(__file__).resolve().parents[1] / "config" / "robots" / "demo_leg.urdf"

EXAMPLES = {  # file of example-robot-data: floating base
    "panda": False,
    "ur5_robot": False,
    "solo12": True,
    "go2": True,
    "g1_29dof_rev_1_0": True,
    "talos_reduced": True,
}


@dataclass(frozen=True)
class Pair:
    """The same robot in both libraries, and one state of it in the order of each."""

    name: str
    robot: Robot
    model: pin.Model
    ours: tuple[np.ndarray, ...]  # q, yd, ydd
    theirs: tuple[np.ndarray, ...]


def pair(
    name: str,
    urdf: str,
    *,
    floating_base: bool = False,
    mimic: bool = False,
    loops: dict | None = None,
    spread: float = 0.4,
) -> Pair:
    """Load a URDF text in both libraries; the state is within ``spread`` [rad] of the assembly."""
    robot = load_robot(urdf, loops, floating_base=floating_base)
    root = (pin.JointModelFreeFlyer(),) if floating_base else ()
    model = pin.buildModelFromXML(urdf, *root, mimic)
    q, qd, qdd = _state(robot, spread)
    independent = set(robot.independent_joint_names)
    theirs = [pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)]
    base = 1 if floating_base else 0
    if floating_base:
        theirs[0][:7], theirs[1][:6], theirs[2][:6] = q[:7], qd[:6], qdd[:6]
    for i, joint_name in enumerate(robot.joint_names):
        if mimic and joint_name not in independent:
            continue
        joint = model.joints[model.getJointId(joint_name)]
        angle = q[7 * base + i]
        value = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
        theirs[0][joint.idx_q : joint.idx_q + joint.nq] = value
        theirs[1][joint.idx_v] = qd[6 * base + i]
        theirs[2][joint.idx_v] = qdd[6 * base + i]
    yd, ydd = (x[list(robot.tree.independent)] for x in (qd, qdd))
    return Pair(name, robot, model, (q, yd, ydd), tuple(theirs))


def _state(robot: Robot, spread: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    home = robot.tree.home
    step = robot.spanning_velocity(home, rng.uniform(-spread, spread, robot.ny))
    q = robot.close(robot.tree.integrate(home, step))
    qd = robot.spanning_velocity(q, rng.normal(size=robot.ny))
    return q, qd, robot.spanning_acceleration(q, qd, rng.normal(size=robot.ny))


def example_pairs() -> Iterator[Pair]:
    """Open trees of example-robot-data, fixed and floating."""
    for name, floating_base in EXAMPLES.items():
        yield pair(name, example_urdf(name), floating_base=floating_base)


def example_urdf(name: str) -> str:
    """The text of a URDF of example-robot-data."""
    found = {Path(str(f)).stem: f for f in files("example-robot-data") or () if f.suffix == ".urdf"}
    return Path(str(found[name].locate())).read_text()


def demo_leg() -> Robot:
    """The bundled leg with loops."""
    return load_robot(DEMO_LEG, DEMO_LEG.with_name("demo_leg_loops.yaml"))


def geared_chain(links: int) -> Pair:
    """A chain of links, each driven through a gear by a rotor on the link before it."""
    parts = ['<robot name="geared_chain"><link name="l0"/>']
    for i in range(1, links + 1):
        parts.append(_link(f"l{i}", 1.0, (0.0, 0.0, 0.1)) + _link(f"m{i}", 0.2, (0.0, 0.0, 0.0)))
        axis = ("1 0 0", "0 1 0", "0 0 1")[i % 3]
        parts.append(_joint(f"j{i}", f"l{i - 1}", f"l{i}", "0 0 0.2", axis))
        mimic = f'<mimic joint="j{i}" multiplier="9"/>'
        parts.append(_joint(f"m{i}", f"l{i - 1}", f"m{i}", "0.05 0 0.1", axis, mimic))
    return pair(f"geared chain {links}", "".join(parts) + "</robot>", mimic=True)


def four_bar_chain(count: int) -> tuple[Pair, list[pin.RigidConstraintModel]]:
    """Four-bars in series, each tilted against the one before, and Pinocchio's cuts."""
    parts = ['<robot name="four_bar_chain"><link name="o0"/>']
    cuts = []
    for i in range(1, count + 1):
        base = f"o{i - 1}"
        tilt = ' rpy="0.3 0.2 0"' if i > 1 else ""
        parts += [_link(f"{body}{i}", 0.5, (0.1, 0.02, 0.0)) for body in ("i", "c", "o")]
        parts.append(_joint(f"i{i}", base, f"i{i}", "0.1 0 0", "0 0 1", tilt=tilt))
        parts.append(_joint(f"c{i}", f"i{i}", f"c{i}", "0 0.3 0", "0 0 1"))
        where = "0.4 0 0" if i == 1 else _tilted("0.3 0 0")
        parts.append(_joint(f"o{i}", base, f"o{i}", where, "0 0 1", tilt=tilt))
        parts.append(
            f'<loop name="cut{i}" type="revolute"><predecessor link="c{i}"><origin xyz="0.3 0 0"/>'
            f'</predecessor><successor link="o{i}"><origin xyz="0 0.3 0"/></successor>'
            '<axis xyz="0 0 1"/></loop>'
        )
    both = pair(f"four-bar chain {count}", "".join(parts) + "</robot>")
    for i in range(1, count + 1):
        ends = [
            (both.model.getJointId(f"c{i}"), pin.SE3(np.eye(3), np.array([0.3, 0.0, 0.0]))),
            (both.model.getJointId(f"o{i}"), pin.SE3(np.eye(3), np.array([0.0, 0.3, 0.0]))),
        ]
        cuts.append(
            pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D, both.model, *ends[0], *ends[1], pin.ReferenceFrame.LOCAL
            )
        )
    return both, cuts


def _tilted(xyz: str) -> str:
    """An offset along the tilted x axis of a four-bar's ground, from 0.1 0 0."""
    rotation = pin.rpy.rpyToMatrix(0.3, 0.2, 0.0)
    offset = np.array([0.1, 0.0, 0.0]) + rotation @ np.array([float(x) for x in xyz.split()])
    return " ".join(repr(float(x)) for x in offset)


def _link(name: str, mass: float, com: tuple[float, float, float]) -> str:
    return (
        f'<link name="{name}"><inertial><mass value="{mass}"/>'
        f'<origin xyz="{com[0]} {com[1]} {com[2]}"/>'
        '<inertia ixx="0.003" iyy="0.003" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def _joint(
    name: str, parent: str, child: str, xyz: str, axis: str, extra: str = "", tilt: str = ""
) -> str:
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"{tilt}/><axis xyz="{axis}"/>'
        f'<limit lower="-6" upper="6" effort="99" velocity="99"/>{extra}</joint>'
    )
