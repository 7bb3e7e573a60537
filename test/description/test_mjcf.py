"""MJCF: the same robot as MuJoCo's, to rounding, from small files that each show one thing."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

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
    "locked joints": mjcf(
        f"<body><joint name='a' axis='0 1 0'/>{OF}<body pos='.3 0 0'><joint name='b' axis='0 1 1'"
        f" ref='.2' stiffness='3'/>{OF}<body pos='.2 0 0'><joint name='c' type='slide'"
        f" axis='1 0 1'/>{OF}<body pos='.1 0 0'><joint name='d' axis='1 0 0'/>{OF}</body>"
        "</body></body></body>",
        "<equality><joint joint1='c' joint2='b' polycoef='.1 .5 0 0 0'/><joint joint1='b'"
        " polycoef='.3 0 0 0 0'/></equality>"
        "<actuator><motor joint='b'/><motor joint='d'/></actuator>",
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
    "weld without torque": four_bar(
        "<equality><weld body1='coupler' body2='rocker' torquescale='0' anchor='.1 0 0'/>"
        "</equality>"
    ),
    "free armature": mjcf(
        f"<body name='trunk' pos='0 0 1'><joint type='free' name='f' armature='.7'/>{OF}"
        f"<body pos='.2 0 0'><joint name='knee' axis='0 1 0'/>{OF}</body></body>",
        "<actuator><general joint='f' gear='2 0 0 0 0 0' armature='.1'/></actuator>",
    ),
    "free armature held": mjcf(
        f"<body name='f'><joint name='f' type='free' armature='.7'/>{OF}<body pos='.2 0 0'>"
        f"<joint axis='0 1 0'/>{OF}<site name='p' pos='.1 0 0'/></body></body>"
        "<site name='q' pos='.3 0 .1'/>",
        "<equality><connect site1='p' site2='q'/></equality>",
    ),
    "actuator armature": mjcf(
        f"<body><joint name='a' axis='0 0 1' armature='.1'/>{OF}<body pos='.1 0 0'>"
        f"<joint name='b' type='ball'/>{OF}</body></body>",
        "<actuator><motor joint='a' gear='10' armature='.01' damping='.2'/><motor jointinparent='b'"
        " gear='2 1 3 0 0 0' armature='.05'/></actuator>",
    ),
    "tendon armature": mjcf(
        f"<body><joint name='a' axis='0 0 1'/>{OF}<body pos='.1 0 0'>"
        f"<joint name='b' axis='0 1 0'/>{OF}<body pos='.1 0 0'><joint name='c' axis='1 0 0'/>{OF}"
        "</body></body></body>",
        "<tendon><fixed name='t' armature='.3'><joint joint='b' coef='2'/>"
        "<joint joint='c' coef='-3'/></fixed><fixed name='u' armature='.4'>"
        "<joint joint='a' coef='.5'/></fixed></tendon>"
        "<actuator><motor tendon='t' gear='2' armature='.5'/><motor tendon='u' armature='.6'/>"
        "</actuator>",
    ),
    "rod as a tendon": mjcf(
        f"<body name='a' pos='0 0 .5'><joint axis='0 1 0' name='a'/>{OF}"
        "<site name='o' pos='.1 0 0'/><site name='p' pos='.3 0 0'/></body>"
        f"<body pos='.4 .1 .7'><joint name='c' axis='0 1 0'/>{OF}"
        "<site name='q' pos='.1 0 0'/></body>",
        "<tendon><spatial name='t'><site site='o'/><site site='p'/><site site='q'/></spatial>"
        "</tendon><equality><tendon tendon1='t'/></equality>",
    ),
    "spring as a tendon": mjcf(
        f"<body name='a' pos='0 0 .5'><joint axis='0 1 0' name='a'/>{OF}"
        "<site name='o' pos='.1 0 0'/><site name='p' pos='.3 0 0'/></body>"
        f"<body pos='.4 .1 .7'><joint name='c' axis='0 1 0'/>{OF}"
        "<site name='q' pos='.1 0 0'/></body>",
        "<tendon><spatial name='t' stiffness='40' springlength='.3'><site site='o'/>"
        "<site site='p'/><site site='q'/></spatial>"
        "<spatial name='u' stiffness='30' springlength='.1 .9'><site site='p'/><site site='q'/>"
        "</spatial></tendon>",
    ),
    "gravity compensation": mjcf(
        f"<body name='trunk' pos='0 0 1' gravcomp='.3'><freejoint/>{OF}<body pos='.2 0 0'"
        f" gravcomp='1'><joint name='knee' axis='0 1 0'/>{OF}<body pos='.1 0 0' gravcomp='1.2'>{OF}"
        f"</body><body pos='.1 .1 0'><joint axis='1 0 0' actuatorgravcomp='true'/>{OF}</body>"
        "</body></body>"
    ),
    "gravity compensation in a loop": four_bar(
        "<equality><connect body1='coupler' body2='rocker' anchor='.15 0 0'/></equality>"
    )
    .replace("name='coupler'", "name='coupler' gravcomp='1'")
    .replace("<worldbody>", "<worldbody><body euler='1.2 0 0'>")
    .replace("</worldbody>", "</body></worldbody>"),
}


def compare(source: str | Path, share: float = 1e-7, seed: int = 0) -> None:
    robot = load_robot(source)
    model = compile_mjcf(source, str(source), Report())
    oracle = MujocoOracle(model, robot)
    rng = np.random.default_rng(seed)
    q = robot.tree.home
    moved = robot.tree.integrate(q, robot.spanning_velocity(q, rng.normal(0.0, 0.02, robot.ny)))
    q = robot.close(moved, moved) if robot.tree.has_loops else moved
    yd, tau = rng.normal(size=robot.ny), oracle.velocity_map(q).T @ rng.normal(size=model.nv)
    qd = robot.spanning_velocity(q, yd)
    qdd = robot.spanning_acceleration(q, yd, robot.forward_dynamics(q, yd, tau))
    expected = oracle.accelerations(q, qd, tau)
    assert np.abs(oracle.data.efc_pos[: oracle.data.ne]).max(initial=0.0) < 1e-6
    error = np.abs(oracle.ours(q, qd, qdd) - expected).max()
    assert error <= share * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("name", MODELS)
def test_accelerations_are_mujocos(name):
    compare(MODELS[name])


@pytest.mark.parametrize(
    "name", ["free armature", "free armature held", "tendon armature", "gravity compensation"]
)
def test_derivatives_and_regressor_know_them(name):
    """Beside differences of inverse dynamics, which is that of MuJoCo."""
    robot, rng = load_robot(MODELS[name]), np.random.default_rng(3)
    home = robot.tree.home
    step = robot.spanning_velocity(home, rng.normal(0.0, 0.1, robot.ny))
    q = robot.close(moved := robot.tree.integrate(home, step), moved)
    yd, ydd = rng.normal(size=(2, robot.ny))
    found = robot.inverse_dynamics_derivatives(q, yd, ydd)
    h = 1e-5
    for j, way in enumerate(np.eye(robot.ny)):
        ends = []
        for sign in (1, -1):
            near = robot.tree.integrate(q, sign * h * robot.spanning_velocity(q, way))
            ends.append(robot.inverse_dynamics(robot.close(near, near), yd, ydd))
        np.testing.assert_allclose(found.position[:, j], (ends[0] - ends[1]) / (2 * h), atol=1e-6)
        ends = [robot.inverse_dynamics(q, yd + sign * h * way, ydd) for sign in (1, -1)]
        np.testing.assert_allclose(found.velocity[:, j], (ends[0] - ends[1]) / (2 * h), atol=1e-8)
    tau = robot.regressor(q, yd, ydd) @ robot.parameters().values
    np.testing.assert_allclose(tau, robot.inverse_dynamics(q, yd, ydd), atol=1e-10)


def test_positions_are_qpos_also_beside_ref():
    robot = load_robot(MODELS["ref and pos"])
    assert robot.joint_names == ("joint_0", "s")
    np.testing.assert_allclose(robot.frame_pose([0.4, -0.2], "body_1")[:3, 3], (0.1, 0.2, 0.3))


def test_equalities_lock_joints_and_those_that_follow_them():
    robot = load_robot(MODELS["locked joints"])
    assert robot.joint_names == ("a", "d")
    assert robot.actuated_joint_names == ("d",)
    for name, place in (("b", "0.5"), ("c", "0.25")):
        assert any(f"joint {name!r}" in w and f"holds it at {place};" in w for w in robot.warnings)
    with pytest.raises(DescriptionError, match="all of its joints are fixed"):
        load_robot(MODELS["locked joints"], {"joints": {"b": {"type": "fixed", "position": 0.1}}})


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
    for word in ("takes weight from", "not active", "'actuator_1' act on sites"):
        assert any(word in warning for warning in robot.warnings), word
    assert robot.description.joints[0].limits.upper == pytest.approx(1.0)


def test_motors_are_the_actuators_of_the_file():
    """Damping goes through the gear squared, the largest force through the gear."""
    robot = load_robot(
        mjcf(
            f"<body><joint name='a' axis='0 0 1' damping='.1'/>{OF}<body pos='.1 0 0'>"
            f"<joint name='b' axis='0 1 0'/>{OF}<body><joint name='c' axis='1 0 0'/>{OF}</body>"
            "</body></body>",
            "<tendon><fixed name='t' limited='true' range='-1 2'><joint joint='b' coef='2'/>"
            "<joint joint='c' coef='3'/></fixed></tendon><actuator>"
            "<motor tendon='t' gear='5' ctrllimited='true' ctrlrange='-3 2'/>"
            "<general joint='a' gear='-10' damping='.2' forcelimited='true' forcerange='-4 3'/>"
            "</actuator>",
        )
    )
    assert robot.actuated_joint_names == ("a", "t")
    by_name = {joint.name: joint for joint in robot.description.joints}
    assert by_name["a"].damping == pytest.approx(0.1 + 100 * 0.2)
    assert by_name["a"].limits.effort == pytest.approx(40.0)
    assert by_name["t"].limits.effort == pytest.approx(15.0)
    assert by_name["t"].limits.upper == 2.0
    q = robot.close({"a": 0.0, "b": 0.2, "c": 0.1})
    assert q[robot.joint_names.index("t")] == pytest.approx(0.7)
    # A force of 1 along the tendon is 2 on b and 3 on c: powers are the same.
    tau = np.zeros(robot.nv)
    tau[robot.joint_names.index("t")] = 1.0
    on_joints = np.zeros(robot.nv)
    on_joints[[robot.joint_names.index(name) for name in "bc"]] = (2.0, 3.0)
    yd = np.zeros(robot.ny)
    np.testing.assert_allclose(
        robot.forward_dynamics(q, yd, tau), robot.forward_dynamics(q, yd, on_joints), rtol=1e-12
    )


def test_actuators_after_one_with_several_controls_keep_their_gears():
    """An orientation actuator has three gears and three controls, since MuJoCo 4."""
    if not hasattr(mujoco.mjtTrn, "mjTRN_SO3"):
        pytest.skip("this MuJoCo has no orientation actuators")
    bodies = (
        f"<body><joint name='b' type='ball'/>{OF}<body pos='.3 0 0'><joint name='h' axis='0 1 0'/>"
        f"{OF}</body></body>"
    )
    actuators = (
        "<actuator><orientation joint='b' kp='1'/>"
        "<motor joint='h' gear='7' armature='.1' ctrllimited='true' ctrlrange='-2 2'/></actuator>"
    )
    compare(mjcf(bodies, actuators))
    robot = load_robot(mjcf(bodies, actuators))
    assert robot.actuated_joint_names == ("b.wx", "b.wy", "b.wz", "h")
    assert robot.description.joints[-1].armature == pytest.approx(4.9)
    assert robot.description.joints[-1].limits.effort == pytest.approx(14.0)


def test_muscles_are_reported_once():
    sites = "".join(f"<site name='s{i}' pos='{0.01 * i} 0 .1'/>" for i in range(30))
    tendons = "".join(
        f"<spatial name='t{i}'><site site='s{i}'/><site site='o'/></spatial>" for i in range(30)
    )
    muscles = "".join(f"<muscle tendon='t{i}' lengthrange='.1 1'/>" for i in range(30))
    robot = load_robot(
        mjcf(
            f"<body><joint name='a' axis='0 1 0'/>{OF}{sites}</body><site name='o' pos='0 0 1'/>",
            f"<tendon>{tendons}</tendon><actuator>{muscles}</actuator>",
        )
    )
    assert len([w for w in robot.warnings if "actuator" in w]) == 1
    assert any("30 actuator(s)" in w and "25 more" in w for w in robot.warnings)


def test_tendons_that_limit_a_length_are_named_and_the_remedy_works():
    text = mjcf(
        "<body><joint name='a' axis='0 1 0'/><geom size='.1' mass='1'/>"
        "<body pos='.3 0 0'><joint name='b' axis='0 1 0'/><geom size='.1' mass='1'/>"
        "<site name='p'/></body></body><site name='o'/>",
        "<tendon><fixed name='t' limited='true' range='-.01 .03'><joint joint='a' coef='1'/>"
        "<joint joint='b' coef='-2'/></fixed>"
        "<spatial name='u' limited='true' range='0 .5'><site site='o'/><site site='p'/></spatial>"
        "</tendon>",
    )
    robot = load_robot(text)
    (gear,) = (w for w in robot.warnings if w.startswith("tendon 't'"))
    assert any("'u'" in w and "limits" in w for w in robot.warnings)
    remedy = yaml.safe_load(gear.split("'")[3])
    tied = load_robot(text, remedy)
    assert (robot.ny, tied.ny) == (2, 1)
    q = tied.close({"a": 0.4})
    assert q[0] - 2 * q[1] == pytest.approx(0.01)


def test_gravity_that_the_file_disables_is_named():
    text = mjcf(f"<body><joint name='a' axis='0 1 0'/>{OF}</body>").replace(
        "<worldbody>", "<option><flag gravity='disable'/></option><worldbody>"
    )
    assert any("gravity is disabled" in warning for warning in load_robot(text).warnings)


@pytest.mark.parametrize("flag", ["equality", "constraint", "spring", "damper", "frictionloss"])
def test_forces_that_the_file_disables_are_named(flag):
    joint = "<joint name='a' axis='0 1 0' stiffness='3' damping='1' frictionloss='1'/>"
    text = mjcf(f"<body>{joint}{OF}</body>")
    assert not any("disabled" in warning for warning in load_robot(text).warnings)
    text = text.replace("<worldbody>", f"<option><flag {flag}='disable'/></option><worldbody>")
    assert any("disabled in the file" in warning for warning in load_robot(text).warnings)


@pytest.mark.parametrize("kind", ["universal", "spherical"])
def test_a_ball_joint_may_be_retyped(kind):
    text = four_bar(
        "<equality><connect body1='coupler' body2='rocker' anchor='.2 .05 0'/></equality>"
        "<actuator><motor joint='b' gear='1 0 0 0 0 0'/></actuator>",
        "<joint name='b' type='ball'/>",
    )
    joint = {"type": kind}
    if kind == "universal":
        joint |= {"axis": [0, 0, 1], "second_axis": [0, 1, 0]}
    robot = load_robot(text, {"joints": {"b": joint}})
    assert robot.ny == {"universal": 1, "spherical": 2}[kind]


def test_a_relative_path_finds_what_the_file_includes(tmp_path, monkeypatch):
    (tmp_path / "robots" / "parts").mkdir(parents=True)
    body = f"<mujocoinclude><body><joint name='a'/>{OF}</body></mujocoinclude>"
    (tmp_path / "robots" / "parts" / "arm.xml").write_text(body)
    text = "<mujoco><worldbody><include file='parts/arm.xml'/></worldbody></mujoco>"
    (tmp_path / "robots" / "arm.xml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert load_robot(Path("robots/arm.xml")).joint_names == ("a",)


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(
    ("inertial", "geom", "is_needed"),
    [(OF, "", False), ("", "", True), ("", " density='0'", False), (OF, " name='touched'", False)],
)
def test_meshes_are_needed_for_inertias_alone(tmp_path, as_text, inertial, geom, is_needed):
    """A mesh that is a pointer of Git LFS, and one that nobody has."""
    text = mjcf(
        f"<body name='arm'><joint name='a' axis='0 1 0'/>{inertial}"
        f"<geom type='mesh' mesh='m'{geom}/><geom size='.1' name='ball'/></body>"
        "<geom type='mesh' mesh='far'/>",
        "<asset><mesh name='m' file='m.stl'/><mesh name='far' file='nowhere.obj'/></asset>"
        + ("<contact><pair geom1='touched' geom2='ball'/></contact>" if "touched" in geom else ""),
    )
    (tmp_path / "m.stl").write_text(POINTER)
    (tmp_path / "robot.xml").write_text(text)
    source = text if as_text else tmp_path / "robot.xml"
    if is_needed:
        reason = "beside a text" if as_text else "Git LFS"
        with pytest.raises(DescriptionError, match=f"'arm': its inertia comes from.*{reason}"):
            load_robot(source)
        return
    robot = load_robot(source)
    assert robot.joint_names == ("a",)
    assert not robot.warnings
    report = Report()  # of the view, which draws what there is
    assert compile_mjcf(source, text, report) is not None
    assert any("2 meshes are left out" in warning for warning in report.warnings)


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


def test_free_and_ball_joints_are_fixed_where_the_file_draws_them():
    """As bodies that have no such joint."""
    free, ball = "<freejoint name='f'/>", "<joint name='b' type='ball'/>"
    text = mjcf(
        f"<body name='trunk' pos='.3 -.2 1' euler='.3 .2 .1'>{free}{OF}<body pos='.2 .1 0'"
        f" euler='.5 0 .3'>{ball}{OF}<body name='tip' pos='.1 0 0'><joint name='h'"
        f" axis='0 1 0'/>{OF}</body></body></body>"
    )
    fixed = load_robot(text, {"joints": {name: {"type": "fixed"} for name in "fb"}})
    expected = load_robot(text.replace(free, "").replace(ball, ""))
    assert fixed.joint_names == ("h",)
    for frame in ("trunk", "tip"):
        found, there = (robot.frame_pose([0.3], frame) for robot in (fixed, expected))
        np.testing.assert_allclose(found, there, atol=1e-14)
    np.testing.assert_allclose(
        fixed.gravity_force([0.3]), expected.gravity_force([0.3]), atol=1e-13
    )


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
    with pytest.raises(DescriptionError, match="pip install 'mujoco"):
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
