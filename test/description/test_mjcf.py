"""MJCF: the same robot as MuJoCo's, to rounding, from small files that each show one thing."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from rbda_ros import DescriptionError, ModelError, load_robot

mujoco = pytest.importorskip("mujoco")
from mujoco_oracle import MujocoOracle  # noqa: E402

from rbda_ros.description.mjcf_compiler import compile_mjcf  # noqa: E402
from rbda_ros.description.report import Report  # noqa: E402

OF = "<inertial mass='1.3' pos='.1 .02 -.03' fullinertia='.02 .03 .04 .001 .002 -.003'/>"


def mjcf(bodies: str, rest: str = "") -> str:
    return (
        "<mujoco model='small'><compiler angle='radian'/><option gravity='0 0 -9.81'/>"
        f"<worldbody>{bodies}</worldbody>{rest}</mujoco>"
    )


def four_bar(rest: str, coupler: str = "<joint name='b' axis='0 0 1'/>") -> str:
    return mjcf(
        f"<body name='crank'><joint name='a' axis='0 0 1'/>{OF}"
        f"<body name='coupler' pos='.1 0 0' euler='0 0 .6'>{coupler}{OF}</body></body>"
        f"<body name='rocker' pos='.3 0 0' euler='0 0 2'><joint name='c' axis='0 0 1'/>{OF}"
        "<site name='tip' pos='.1 0 0'/></body>",
        rest,
    )


MODELS = {
    "ref and pos": mjcf(
        f"<body pos='.1 .2 .3' euler='.3 .2 .1'><joint axis='0 1 1' ref='.4' pos='.05 .1 0'/>{OF}"
        f"<body pos='0 .2 0'><joint name='s' type='slide' axis='1 0 1' ref='-.2' pos='0 0 .1'/>{OF}"
        "</body></body>"
    ),
    "several joints": mjcf(
        "<body name='arm' pos='.1 0 0'><joint axis='0 0 1' pos='.1 0 0'/><joint axis='0 1 0'"
        f" ref='.3'/><joint type='slide' axis='1 0 0'/>{OF}<body><joint type='ball' pos='.1 .1 0'"
        f" armature='.02'/>{OF}</body></body>"
    ),
    "free base": mjcf(
        f"<body name='trunk' pos='0 0 1'><freejoint/>{OF}<body pos='.2 0 0'>"
        f"<joint name='knee' axis='0 1 0' armature='.05' damping='.3'/>{OF}</body></body>"
    ),
    "free body held": mjcf(
        f"<body name='f'><freejoint/>{OF}<body pos='.2 0 0'><joint axis='0 1 0'/>{OF}"
        "<site name='p' pos='.1 0 0'/></body></body><site name='q' pos='.3 0 .1'/>",
        "<equality><connect site1='p' site2='q'/></equality>",
    ),
    "fixed bodies": mjcf(
        f"<body pos='0 0 .1'>{OF}<body pos='.1 0 0'><joint axis='0 0 1'/>{OF}"
        f"<body pos='0 .1 0'>{OF}</body></body></body>"
    ),
    "connect": four_bar(
        "<equality><connect body1='coupler' body2='rocker' anchor='.2 .05 0'/></equality>"
    ),
    "connect sites": mjcf(
        f"<body name='a' pos='0 0 .5'><joint axis='0 1 0' name='a'/>{OF}<body pos='.3 0 0'>"
        f"<joint name='b' axis='0 1 0'/>{OF}<site name='p' pos='.2 0 0'/></body></body>"
        f"<body pos='.4 0 .5'><joint name='c' axis='0 1 0'/>{OF}"
        "<site name='q' pos='.1 0 0'/></body>",
        "<equality><connect site1='p' site2='q'/></equality>",
    ),
    "weld": four_bar(
        "<equality><weld body1='coupler' body2='rocker'/></equality>",
        "<joint name='b' axis='0 0 1'/><joint name='b2' axis='0 0 1' pos='.2 .1 0'/>",
    ),
    "two connects": mjcf(
        f"<body name='crank'><joint name='a' axis='0 1 0'/>{OF}<body name='coupler' pos='.1 0 0'>"
        f"<joint name='b' type='ball'/>{OF}</body></body><body name='rocker' pos='.3 0 .1'>"
        f"<joint name='c' axis='0 1 0'/>{OF}</body>",
        "<equality><connect body1='coupler' body2='rocker' anchor='.15 .05 .1'/>"
        "<connect body1='coupler' body2='rocker' anchor='.15 -.05 .1'/></equality>",
    ),
    "gear": mjcf(
        f"<body><joint name='a' axis='0 0 1' ref='.2' armature='.1'/>{OF}<body pos='.1 0 0'>"
        f"<joint name='b' axis='0 1 0' ref='-.1' armature='.03'/>{OF}</body></body>",
        "<equality><joint joint1='a' joint2='b' polycoef='.1 3 0 0 0'/></equality>",
    ),
    "polynomial": mjcf(
        f"<body><joint name='a' axis='0 0 1' ref='.2' armature='.1'/>{OF}<body pos='.1 0 0'>"
        f"<joint name='b' axis='0 1 0' ref='-.1'/>{OF}</body></body>",
        "<equality><joint joint1='a' joint2='b' polycoef='.1 3 .5 -.2 .1'/></equality>",
    ),
    "tendons": mjcf(
        f"<body><joint name='a' axis='0 0 1'/>{OF}<body pos='.1 0 0'>"
        f"<joint name='b' axis='0 1 0'/>{OF}</body></body><body><joint name='c' axis='1 0 0'/>{OF}"
        "</body>",
        "<tendon><fixed name='t'><joint joint='a' coef='1'/><joint joint='b' coef='2'/></fixed>"
        "<fixed name='u'><joint joint='c' coef='.5'/></fixed></tendon>"
        "<equality><tendon tendon1='t' tendon2='u' polycoef='0 1.5 0 0 0'/></equality>",
    ),
}


def compare(source: str | Path, share: float = 1e-7, seed: int = 0) -> None:
    robot = load_robot(source)
    model = compile_mjcf(source, str(source), Report())
    oracle = MujocoOracle(model, robot)
    rng = np.random.default_rng(seed)
    q = robot.tree.home
    moved = robot.tree.integrate(q, robot.spanning_velocity(q, rng.normal(0.0, 0.02, robot.ny)))
    q = robot.close(moved, moved) if robot.tree.has_loops else moved
    yd, tau = rng.normal(size=robot.ny), rng.normal(size=robot.nv)
    qd = robot.spanning_velocity(q, yd)
    qdd = robot.spanning_acceleration(q, yd, robot.forward_dynamics(q, yd, tau))
    expected = oracle.accelerations(q, qd, tau)
    assert np.abs(oracle.data.efc_pos[: oracle.data.ne]).max(initial=0.0) < 1e-6
    error = np.abs(oracle.ours(q, qd, qdd) - expected).max()
    assert error <= share * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("name", MODELS)
def test_accelerations_are_mujocos(name):
    compare(MODELS[name])


def test_positions_are_qpos_also_beside_ref():
    robot = load_robot(MODELS["ref and pos"])
    assert robot.joint_names == ("joint_0", "s")
    np.testing.assert_allclose(robot.frame_pose([0.4, -0.2], "body_1")[:3, 3], (0.1, 0.2, 0.3))


def test_two_connects_are_one_hinge():
    (hinge,) = load_robot(MODELS["two connects"]).description.constraints
    assert hinge.type == "revolute"
    np.testing.assert_allclose(np.abs(hinge.axis), (0.0, 1.0, 0.0), atol=1e-12)


def test_actuators_make_actuated_joints_and_what_is_left_out_is_named():
    robot = load_robot(
        mjcf(
            f"<body><joint name='a' axis='0 0 1' stiffness='3' range='-1 1'/>{OF}"
            f"<body pos='.1 0 0' gravcomp='1'><joint name='b' axis='0 1 0'/>{OF}"
            "<site name='s'/></body></body>",
            "<equality><joint joint1='a' joint2='b' active='false'/></equality>"
            "<actuator><motor joint='b' gear='20'/><general site='s' gear='1 0 0 0 0 0'/>"
            "</actuator>",
        )
    )
    assert robot.actuated_joint_names == ("b",)
    for word in ("spring", "gravcomp", "not active", "actuator_1"):
        assert any(word in warning for warning in robot.warnings), word
    assert robot.description.joints[0].limits.upper == pytest.approx(1.0)


def test_a_keyframe_that_closes_better_is_the_guess():
    text = four_bar(
        "<equality><connect site1='p' site2='tip'/></equality>"
        "<keyframe><key qpos='.3 -.5 .2'/></keyframe>",
        "<joint name='b' axis='0 0 1'/><site name='p' pos='.2 0 0'/>",
    )
    assert load_robot(text).ny == 1


def test_keyframes_place_ball_and_free_joints_too():
    """The key closes the loop, the pose of the file does not: the key is home."""
    half = float(np.sqrt(0.5))
    key = [0.3, -0.2, 0.0, 1.2, half, 0.0, half, 0.0, half, half, 0.0, 0.0]
    robot = load_robot(
        mjcf(
            f"<body><joint name='a' axis='0 0 1'/>{OF}</body><body name='f'><freejoint name='f'/>"
            f"{OF}<body name='b'><joint name='b' type='ball'/>{OF}<site name='p' pos='0 .2 0'/>"
            "</body></body><site name='q' pos='0 0 1.2'/>",
            "<equality><connect site1='p' site2='q'/></equality>"
            f"<keyframe><key qpos='{' '.join(map(repr, key))}'/></keyframe>",
        )
    )
    place = dict(zip(robot.joint_names, robot.tree.coordinates.positions.values(), strict=True))
    expected = {"a": key[:1], "f": [*key[1:4], *key[5:8], key[4]], "b": [*key[9:], key[8]]}
    for name, position in expected.items():
        np.testing.assert_allclose(robot.tree.home[place[name]], position, atol=1e-12)


def test_free_joints_start_where_the_file_draws_them():
    robot = load_robot(MODELS["free base"])
    np.testing.assert_allclose(robot.tree.home, [0, 0, 1, 0, 0, 0, 1, 0])


@pytest.mark.parametrize(
    "text",
    [
        "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>",
        "<mujoco><worldbody><body name='a'/><body name='a'/></worldbody></mujoco>",
        "<mujoco><nonsense/></mujoco>",
        "<mujoco><worldbody><body><joint type='hinge' axis='0 0 0'/></body></worldbody></mujoco>",
    ],
)
def test_what_mujoco_refuses_is_refused(text):
    with pytest.raises(ModelError, match="MuJoCo"):
        load_robot(text)


def test_without_mujoco_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(DescriptionError, match=r"rbda_ros\[mjcf\]"):
        load_robot(MODELS["gear"])


@pytest.mark.parametrize("name", MODELS)
def test_mutants_load_or_are_refused(name):
    """A character less, or another number: a valid model or a ModelError, never anything else."""
    rng = np.random.default_rng(1)
    for _ in range(25):
        text = MODELS[name]
        at = int(rng.integers(len(text)))
        text = text[:at] + str(rng.choice(["", "9", "-", "x", "'", "e5"])) + text[at + 1 :]
        with contextlib.suppress(ModelError):
            load_robot(text)


MENAGERIE = (
    "agility_cassie/cassie.xml", "robotiq_2f85/2f85.xml", "robotiq_2f85_v4/2f85.xml",
    "ufactory_xarm7/xarm7.xml", "pal_talos/talos.xml", "unitree_g1/g1.xml",
    "franka_emika_panda/panda.xml", "aloha/aloha.xml", "trossen_wx250s/wx250s.xml",
    "tetheria_aero_hand_open/right_hand.xml", "apptronik_apollo/apptronik_apollo.xml",
    "hello_robot_stretch_3/stretch.xml", "hello_robot_stretch/stretch.xml",
    "stanford_tidybot/tidybot.xml", "ms_human_700/MS-Human-700.xml",
    "ms_human_700/MS-Human-700-Locomotion.xml", "ms_human_700/MS-Human-700-Manipulation.xml",
    "arx_l5/arx_l5.xml", "i2rt_yam/yam.xml", "franka_emika_panda/hand.xml",
    "franka_emika_panda/mjx_panda.xml", "ufactory_xarm7/hand.xml",
    "ufactory_lite6/lite6_gripper_narrow.xml", "robotiq_2f85_v4/mjx_2f85.xml",
    "tetheria_aero_hand_open/left_hand.xml",
)  # fmt: skip


@pytest.mark.parametrize("name", MENAGERIE)
def test_menagerie(name):
    """Models are not ours to keep: set RBDA_MENAGERIE to a checkout of mujoco_menagerie."""
    folder = os.environ.get("RBDA_MENAGERIE")
    if not folder or not (Path(folder) / name).exists():
        pytest.skip("RBDA_MENAGERIE does not name a checkout of mujoco_menagerie")
    compare(Path(folder) / name)
