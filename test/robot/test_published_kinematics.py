"""`convert` and `close` against the closed forms that makers of parallel robots publish.

Only dimensions are taken from them: where a motor is, its lever, the point of the foot or platform
that its rod holds, and the rod's length. A rod holds one distance, which is one equation in the
motor's angle; the closed form is its solution. Our models have the rods as bodies with a ball joint
at each end, which spin about themselves.

With a checkout of feidedao/Parallel_Ankle_Joint in RBDA_PARALLEL_ANKLES, and one of
pollen-robotics/reachy_mini in RBDA_REACHY_MINI, their own programs and models are compared too.
"""

import functools
import importlib.util
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rbda_ros import Robot, load_robot

X, Y = np.eye(3)[0], np.eye(3)[1]


@dataclass(frozen=True)
class Crank:
    """A motor with its lever and rod, at the motor's zero, with the origin in the ankle.

    Attributes:
        motor: a point on the motor's axis (3,) [m].
        axis: of the motor (3,).
        tip: where its rod begins, (3,).
        point: of the foot, where its rod ends with the foot at zero, (3,).
        rod: length of the rod [m]; None for the distance of tip and point.
    """

    motor: tuple[float, float, float]
    axis: np.ndarray
    tip: tuple[float, float, float]
    point: tuple[float, float, float]
    rod: float | None = None

    @property
    def length(self) -> float:
        """Length of the rod [m]."""
        return self.rod or float(np.linalg.norm(np.subtract(self.tip, self.point)))

    def angle(self, point: np.ndarray) -> float:
        """Of the motor, with the rod's end at a point (3,): the solution nearest to zero.

        With u from motor to point and the lever s, ``|u - R(t) s| = rod`` reads
        ``A cos t + B sin t = C``.
        """
        u, s = point - self.motor, np.subtract(self.tip, self.motor)
        along = (u @ self.axis) * (s @ self.axis)
        A, B = u @ s - along, u @ np.cross(self.axis, s)
        C = (s @ s + u @ u - self.length**2) / 2 - along
        around, away = np.arctan2(B, A), np.arccos(C / np.hypot(A, B))
        both = [(around + k * away + np.pi) % (2 * np.pi) - np.pi for k in (1.0, -1.0)]
        return float(min(both, key=abs))


@dataclass(frozen=True)
class Ankle:
    """Two cranks on a foot that pitches about y through the origin, and rolls about x below."""

    cranks: tuple[Crank, Crank]
    roll_below: float = 0.0

    def motors(self, pitch: float, roll: float) -> list[float]:
        """The closed form."""
        down = np.array([0.0, 0.0, -self.roll_below])
        pitched, rolled = Rotation.from_rotvec(pitch * Y), Rotation.from_rotvec(roll * X)
        return [
            crank.angle(pitched.apply(down + rolled.apply(np.subtract(crank.point, down))))
            for crank in self.cranks
        ]


def _x1(side: float, height: float, zero: float) -> Crank:
    """AgiBot X1: levers of 25 mm in the plane of y and z; rods are as long as motors are high."""
    tip = np.array([0.0, -np.sin(zero), np.cos(zero)]) * 0.025 + (-0.041, 0.0, height)
    return Crank((-0.041, 0.0, height), X, tuple(tip), (-0.041, side * 0.025, 0.009), height)


def _aimrl(side: float, height: float) -> Crank:
    y = side * 0.0315
    return Crank((0.0, y, height), Y, (-0.063, y, height), (-0.063, y, 0.0))


def _tg10(side: float, height: float) -> Crank:
    y = side * 0.04325
    return Crank((0.0, y, height), Y, (-0.05582, y, height + 0.022), (-0.05582, y, 0.022))


ANKLES = {
    "aimrl": Ankle((_aimrl(1, 0.239), _aimrl(-1, 0.145))),
    "agibot_x1": Ankle((_x1(-1, 0.195, 1.2028), _x1(1, 0.14, -1.2030))),
    "unitree_g1": Ankle(
        (
            Crank((0.035, 0, 0.15087), X, (0.035, 0.01653, 0.1469), (0.022, 0.015, -0.00956)),
            Crank((0.0395, 0, 0.21587), X, (0.0395, -0.01636, 0.21125), (0.022, -0.015, -0.00956)),
        ),
        roll_below=0.01756,
    ),
    "tg10": Ankle((_tg10(1, 0.215), _tg10(-1, 0.140))),
}
MOTORS = ("motor_0", "motor_1")


def body(name: str, mass: float, centre) -> str:
    return (
        f"<link name='{name}'><inertial><mass value='{mass}'/><origin xyz='{text(centre)}'/>"
        "<inertia ixx='1e-4' iyy='1e-4' izz='1e-5' ixy='0' ixz='0' iyz='0'/></inertial></link>"
    )


def joint(name: str, kind: str, parent: str, child: str, at, axis=(0, 0, 1)) -> str:
    return (
        f"<joint name='{name}' type='{kind}'><parent link='{parent}'/><child link='{child}'/>"
        f"<origin xyz='{text(at)}'/><axis xyz='{text(axis)}'/></joint>"
    )


def text(vector) -> str:
    return " ".join(repr(float(x)) for x in vector)


def crank_parts(cranks, to: str, below) -> tuple[list[str], dict]:
    """Motors, levers and rods as URDF and loop file; ``below`` is the origin of the link ``to``."""
    parts: list[str] = []
    loops: dict = {"constraints": [], "joints": {}, "actuated_joints": []}
    for k, crank in enumerate(cranks):
        lever = np.subtract(crank.tip, crank.motor)
        way = np.subtract(crank.point, crank.tip)
        rod = crank.length * way / np.linalg.norm(way)
        parts.append(body(f"arm_{k}", 0.05, lever / 2))
        parts.append(joint(f"motor_{k}", "continuous", "base", f"arm_{k}", crank.motor, crank.axis))
        parts.append(body(f"rod_{k}", 0.04, rod / 2))
        parts.append(joint(f"ball_{k}", "continuous", f"arm_{k}", f"rod_{k}", lever))
        loops["joints"][f"ball_{k}"] = {"type": "spherical"}
        loops["actuated_joints"].append(f"motor_{k}")
        loops["constraints"].append(
            {
                "name": f"end_{k}",
                "type": "spherical",
                "predecessor": {"link": f"rod_{k}", "xyz": [float(x) for x in rod]},
                "successor": {
                    "link": to,
                    "xyz": [float(x) for x in np.subtract(crank.point, below)],
                },
            }
        )
    return parts, loops


@functools.cache
def ankle(name: str) -> Robot:
    """Our model of a published ankle."""
    its = ANKLES[name]
    down = (0.0, 0.0, -its.roll_below)
    parts, loops = crank_parts(its.cranks, "foot", down)
    tree = [
        f"<robot name='{name}'><link name='base'/>",
        body("cross", 0.01, (0, 0, 0)),
        joint("pitch", "continuous", "base", "cross", (0, 0, 0), Y),
        body("foot", 0.8, (0, 0, -0.03)),
        joint("roll", "continuous", "cross", "foot", down, X),
    ]
    return load_robot("".join([*tree, *parts, "</robot>"]), loops)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ANKLES)
def test_motors_are_those_of_the_closed_form(name, seed):
    robot, rng = ankle(name), np.random.default_rng(seed)
    pitch, roll = rng.uniform(-0.4, 0.4), rng.uniform(-0.25, 0.25)
    motion = robot.convert({"pitch": pitch, "roll": roll}, targets=MOTORS)
    np.testing.assert_allclose(motion.position, ANKLES[name].motors(pitch, roll), atol=1e-12)
    back = dict(zip(motion.joint_names, motion.position, strict=True))
    there = robot.convert(back, targets=["pitch", "roll"])
    np.testing.assert_allclose(there.position, [pitch, roll], atol=1e-11)


@pytest.mark.parametrize("name", ANKLES)
def test_torques_follow_from_the_closed_forms_slopes(name):
    robot, at, h = ankle(name), np.array([0.2, -0.1]), 1e-5
    motors = ANKLES[name].motors
    J = np.column_stack(
        [
            (np.array(motors(*(at + step))) - motors(*(at - step))) / (2 * h)
            for step in h * np.eye(2)
        ]
    )
    efforts = dict(zip(MOTORS, (1.3, -0.4), strict=True))
    position = dict(zip(("pitch", "roll"), at, strict=True))
    found = robot.convert(position, effort=efforts, targets=["pitch", "roll"])
    np.testing.assert_allclose(found.effort, J.T @ [*efforts.values()], rtol=1e-7)


def published_ankle(folder: str, name: str):
    """A published solver, as a Python object."""
    root = os.environ.get("RBDA_PARALLEL_ANKLES")
    if root is None:
        pytest.skip("RBDA_PARALLEL_ANKLES names no checkout of feidedao/Parallel_Ankle_Joint")
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location(name, Path(root, folder, f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.parallelAnkle(), load_robot(next(Path(root, folder, "urdf").glob("*.xml")))


PUBLISHED = {
    "unitree_g1": ("2_g1_ankle", "parallelJoint_g1", 3e-4),
    "tg10": ("5_tiangong", "parallelJoint_tg10", 3e-4),
}
"""Folder, program, and how far the dimensions of its model are from those of the program [rad]."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_programs_agree(name):
    folder, program, rounding = PUBLISHED[name]
    theirs, model = published_ankle(folder, program)
    robot, rng = ankle(name), np.random.default_rng(1)
    for _ in range(50):
        pitch, roll = rng.uniform(-0.4, 0.4), rng.uniform(-0.2, 0.2)
        *expected, error = theirs.ik(pitch, roll)
        assert not error
        found = robot.convert({"pitch": pitch, "roll": roll}, targets=MOTORS)
        np.testing.assert_allclose(found.position, expected, atol=1e-11)
        found = model.convert(
            {"pitch_joint": pitch, "roll_joint": roll},
            targets=["left_motor_joint", "right_motor_joint"],
        )
        np.testing.assert_allclose(found.position, expected, atol=rounding)


LEVER, ROD, PLATFORM = 0.04, 0.085, 0.03
"""Of Reachy Mini's head [m]: its motors' levers, its rods, the circle of the rods' ends."""
SIXTH = np.radians(13.5)


def head_cranks() -> tuple[tuple[Crank, ...], float]:
    """Reachy Mini's six motors, and how high the platform is with all of them at zero [m].

    Motors are in pairs, every 120 degrees; each has its axis in the plane and its lever level.
    """
    cranks, height = [], 0.0
    for pair, odd in ((pair, odd) for pair in range(3) for odd in (True, False)):
        side, turn = (1.0 if odd else -1.0), Rotation.from_euler("z", 120 * pair, degrees=True)
        level = side * np.array([np.cos(np.pi / 6), -0.5, 0.0])
        axis = -np.array([0.5, np.cos(np.pi / 6), 0.0])
        motor = 0.01 * level - 0.03666 * axis + (0.0, 0.0, 0.07663)
        angle = np.pi / 3 - side * SIXTH
        point = PLATFORM * np.array([np.cos(angle), np.sin(angle), 0.0])
        tip = motor + LEVER * level
        apart = (tip - point)[:2]
        height = tip[2] + np.sqrt(ROD**2 - apart @ apart)
        point[2] = height
        cranks.append(
            Crank(
                tuple(turn.apply(motor)),
                turn.apply(side * axis if odd else axis),
                tuple(turn.apply(tip)),
                tuple(turn.apply(point)),
                ROD,
            )
        )
    return tuple(cranks), float(height)


@functools.cache
def head() -> Robot:
    """Our model of the platform on its six rods."""
    cranks, height = head_cranks()
    parts, loops = crank_parts(cranks, "platform", (0.0, 0.0, height))
    tree = [
        "<robot name='head'><link name='base'/>",
        body("platform", 0.3, (0, 0, 0.03)),
        joint("pose", "floating", "base", "platform", (0, 0, height)),
    ]
    return load_robot("".join([*tree, *parts, "</robot>"]), loops)


@pytest.mark.parametrize("seed", range(8))
def test_platform_has_the_motors_of_the_closed_form(seed):
    robot, (cranks, height) = head(), head_cranks()
    rng = np.random.default_rng(seed)
    move, turn = rng.uniform(-0.008, 0.008, 3), Rotation.from_rotvec(rng.uniform(-0.15, 0.15, 3))
    middle = np.array([0.0, 0.0, height])
    expected = [c.angle(middle + move + turn.apply(np.subtract(c.point, middle))) for c in cranks]
    places = [robot.coordinates.scalar_positions[f"motor_{k}"] for k in range(6)]
    q = robot.close({"pose": [*move, *turn.as_quat()]})
    np.testing.assert_allclose(q[places], expected, atol=1e-12)
    back = robot.close({f"motor_{k}": angle for k, angle in enumerate(expected)})
    pose = back[list(robot.coordinates.positions["pose"])]
    np.testing.assert_allclose(pose[:3], move, atol=1e-10)
    apart = Rotation.from_quat(pose[3:]).inv() * turn
    assert apart.magnitude() < 1e-9


def test_reachys_model_has_the_motors_of_its_published_dimensions():
    root = os.environ.get("RBDA_REACHY_MINI")
    if root is None:
        pytest.skip("RBDA_REACHY_MINI names no checkout of pollen-robotics/reachy_mini")
    folder = Path(root, "src", "reachy_mini")
    robot = load_robot(folder / "descriptions" / "reachy_mini" / "mjcf" / "reachy_mini.xml")
    published = json.loads((folder / "assets" / "kinematics_data.json").read_text())
    lever, rod = published["motor_arm_length"], published["rod_length"]
    cuts = [cut for cut in robot.description.constraints if hasattr(cut, "successor")]
    rng = np.random.default_rng(2)
    for _ in range(20):
        given = {name: 0.0 for name in robot.actuated_joint_names}
        given |= {f"stewart_{k}": rng.uniform(-0.2, 0.2) for k in range(1, 7)}
        q = robot.close(given)
        for k, motor in enumerate(published["motors"]):
            link = cuts[k].successor.link if k < 5 else "xl_330"
            there = robot.frame_pose(q, link)
            at = cuts[k].successor.origin.xyz if k < 5 else np.zeros(3)
            seen = np.array(motor["T_motor_world"]) @ there @ [*at, 1.0]
            crank = Crank((0, 0, 0), np.eye(3)[2], (lever, 0, 0), (0, 0, 0), rod)
            # Both files are rounded to six digits.
            assert abs(crank.angle(seen[:3]) - given[motor["name"]]) < 3e-5
