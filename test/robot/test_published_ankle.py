"""Motors of a parallel ankle against the closed form, with the dimensions of a published robot.

aimrl's SDK states the ankle by four lengths: the lever arms of motors and foot l, half the distance
of the rods d, and the heights h1 and h2 of the motors, which are the lengths of their rods.
"""

import functools

import numpy as np
import pytest

from rbda_ros import Robot, load_robot

L, D, HEIGHTS = 0.063, 0.0315, (0.239, 0.145)
SIDES = tuple(zip(("left", "right"), (1.0, -1.0), HEIGHTS, strict=True))


def body(name: str, mass: float, centre: str) -> str:
    return (
        f"<link name='{name}'><inertial><mass value='{mass}'/><origin xyz='{centre}'/>"
        "<inertia ixx='1e-4' iyy='1e-4' izz='1e-5' ixy='0' ixz='0' iyz='0'/></inertial></link>"
    )


def joint(name: str, parent: str, child: str, at: str, axis: str) -> str:
    return (
        f"<joint name='{name}' type='continuous'><parent link='{parent}'/><child link='{child}'/>"
        f"<origin xyz='{at}'/><axis xyz='{axis}'/></joint>"
    )


@functools.cache
def ankle() -> Robot:
    """Rods are bodies with a ball joint at each end, which spin about themselves."""
    parts = ["<robot name='ankle'><link name='shank'/>", body("cross", 0.01, "0 0 0")]
    parts += [joint("pitch", "shank", "cross", "0 0 0", "0 1 0"), body("foot", 0.8, "0 0 -.03")]
    parts.append(joint("roll", "cross", "foot", "0 0 0", "1 0 0"))
    loops: dict = {"constraints": [], "joints": {}, "actuated_joints": []}
    for side, sign, height in SIDES:
        parts.append(body(f"{side}_arm", 0.05, "-.03 0 0"))
        at = f"0 {sign * D} {height}"
        parts.append(joint(f"{side}_motor", "shank", f"{side}_arm", at, "0 1 0"))
        parts.append(body(f"{side}_rod", 0.04, f"0 0 {-height / 2}"))
        ball = f"{side}_ball"
        parts.append(joint(ball, f"{side}_arm", f"{side}_rod", f"{-L} 0 0", "0 0 1"))
        loops["joints"][ball] = {"type": "spherical"}
        loops["actuated_joints"].append(f"{side}_motor")
        loops["constraints"].append(
            {
                "name": f"{side}_tip",
                "type": "spherical",
                "predecessor": {"link": f"{side}_rod", "xyz": [0, 0, -height]},
                "successor": {"link": "foot", "xyz": [-L, sign * D, 0]},
            }
        )
    return load_robot("".join([*parts, "</robot>"]), loops)


def motors_of(pitch: float, roll: float) -> list[float]:
    """The closed form: where the tips of the arms are one rod's length from the foot's points.

    With the foot's point p seen from the motor, and the arm's tip ``(-l cos t, 0, l sin t)``,
    ``|p - tip| = h`` is ``p_x cos t - p_z sin t = (h^2 - l^2 - |p|^2) / (2 l)``.
    """
    cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
    turned = np.array([[cp, sp * sr, sp * cr], [0.0, cr, -sr], [-sp, cp * sr, cp * cr]])
    found = []
    for _, sign, height in SIDES:
        x, y, z = turned @ (-L, sign * D, 0.0) - (0.0, sign * D, height)
        c = (height**2 - L**2 - x * x - y * y - z * z) / (2 * L)
        around, away = np.arctan2(-z, x), np.arccos(c / np.hypot(x, z))
        both = [(around + s * away + np.pi) % (2 * np.pi) - np.pi for s in (1.0, -1.0)]
        found.append(min(both, key=abs))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_motors_are_those_of_the_closed_form(seed):
    robot, rng = ankle(), np.random.default_rng(seed)
    pitch, roll = rng.uniform(-0.5, 0.5), rng.uniform(-0.3, 0.3)
    motion = robot.convert({"pitch": pitch, "roll": roll}, targets=["left_motor", "right_motor"])
    np.testing.assert_allclose(motion.position, motors_of(pitch, roll), atol=1e-12)
    back = dict(zip(motion.joint_names, motion.position, strict=True))
    there = robot.convert(back, targets=["pitch", "roll"])
    np.testing.assert_allclose(there.position, [pitch, roll], atol=1e-11)


def test_torques_follow_from_the_closed_forms_slopes():
    robot, at, h = ankle(), np.array([0.2, -0.1]), 1e-5
    J = np.column_stack(
        [
            (np.array(motors_of(*(at + step))) - motors_of(*(at - step))) / (2 * h)
            for step in h * np.eye(2)
        ]
    )
    efforts = {"left_motor": 1.3, "right_motor": -0.4}
    position = dict(zip(("pitch", "roll"), at, strict=True))
    found = robot.convert(position, effort=efforts, targets=["pitch", "roll"])
    np.testing.assert_allclose(found.effort, J.T @ [*efforts.values()], rtol=1e-7)
