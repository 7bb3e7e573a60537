"""Robots written as MJCF have the same dynamics in MuJoCo, and close there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mechanism_table import MECHANISMS
from parallel_robots import delta, stewart

from rbda_ros import DescriptionError, cli, load_robot
from rbda_ros.robot.payloads import Payload

mujoco = pytest.importorskip("mujoco", reason="compares with MuJoCo")

from mjcf_oracle import MjcfOracle  # noqa: E402

from rbda_ros.exports import closed_poses, write_mjcf  # noqa: E402

COOKBOOK = Path(__file__).parents[2] / "docs" / "cookbook"
SHARED = Path(__file__).parents[2].parent / "shared" / "robots"
NO_EQUALITY = ("cam", "tello_leg")
FLOATING = ("humanoid", "cheetah")
UNPHYSICAL = ("double_pendulum", "jvrc1_humanoid", "parallel_")
SHARE = 1e-9


def compare(robot, states=2, seed=0, **options):
    """At the home position and at random closed ones."""
    export = write_mjcf(robot, **options)
    oracle, rng = MjcfOracle(robot, export), np.random.default_rng(seed)
    for k in range(states):
        q = robot.random_state(rng).q if k else robot.neutral()
        assert oracle.residual(q) <= SHARE
        assert oracle.error(q, rng.normal(size=robot.ny), rng.normal(size=robot.nv)) <= SHARE
    np.testing.assert_array_equal(oracle.model.key_qpos[0], export.qpos(robot.neutral()))
    names = [oracle.model.actuator(a).name for a in range(oracle.model.nu)]
    assert tuple(names) == robot.actuated_joint_names
    return export, oracle.model


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - set(NO_EQUALITY)))
def test_mechanisms(name):
    compare(MECHANISMS[name].load())


@pytest.mark.parametrize("name", sorted(path.stem for path in COOKBOOK.glob("*.urdf")))
def test_cookbook(name):
    compare(load_robot(COOKBOOK / f"{name}.urdf", COOKBOOK / f"{name}.yaml"))


@pytest.mark.parametrize("make", [stewart, delta])
def test_parallel_robots(make):
    compare(load_robot(*make()))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared robots are not here")
@pytest.mark.parametrize("path", sorted(SHARED.glob("*.urdf")), ids=lambda path: path.stem)
def test_shared_robots(path):
    """Those with inertias that no body can have are named, and written only when told to."""
    robot = load_robot(path, floating_base=any(word in path.stem for word in FLOATING))
    if path.stem.startswith(UNPHYSICAL) and not path.stem.endswith("approximate"):
        with pytest.raises(DescriptionError, match="MuJoCo takes no body of principal moments"):
            write_mjcf(robot)
        export = write_mjcf(robot, balance_inertia=True)
        assert any("made larger" in note for note in export.notes)
        assert mujoco.MjModel.from_xml_string(export.text).nbody > 1
    else:
        compare(robot)


@pytest.mark.parametrize("name", NO_EQUALITY)
def test_equations_that_mujoco_lacks_are_named(name):
    with pytest.raises(DescriptionError, match="MuJoCo has no equality for this expression") as e:
        write_mjcf(MECHANISMS[name].load())
    assert all(problem.element.startswith("constraint") for problem in e.value.problems)


LINK = (
    "<inertial><origin xyz='.1 .02 .03'/><mass value='1'/><inertia ixx='.02' ixy='.001' ixz='0'"
    " iyy='.03' iyz='.002' izz='.04'/></inertial>"
)


def chain(*joints, root="base"):
    """A chain of links on these joints: (name, type, what is inside)."""
    text, parent = f"<robot name='chain'><link name='{root}'>{LINK}</link>", root
    for k, (name, kind, inside) in enumerate(joints):
        text += (
            f"<link name='link_{k}'>{LINK}</link><joint name='{name}' type='{kind}'>"
            f"<parent link='{parent}'/><child link='link_{k}'/><origin xyz='.2 .1 0'"
            f" rpy='.3 .2 .1'/><axis xyz='0 .6 .8'/>{inside}</joint>"
        )
        parent = f"link_{k}"
    return text + "</robot>"


LIMIT = "<limit lower='-1' upper='2' effort='7' velocity='3'/>"
THREE = chain(
    ("a", "revolute", f"{LIMIT}<dynamics damping='.2' friction='.3'/>"),
    ("b", "prismatic", LIMIT),
    ("c", "continuous", ""),
)
LOOPS = {
    "springs": {
        "springs": [
            {"name": "s", "terms": {"a": 2.0}, "stiffness": 3.0, "rest": 0.4, "pretension": 0.7},
            {"name": "t", "terms": {"a": 1.0, "c": -2.0}, "stiffness": 3.0, "rest": -0.4},
            {"name": "u", "terms": {"a": 1.5}, "stiffness": 1.0, "rest": -1.0},
            {
                "name": "v",
                "predecessor": {"link": "base", "xyz": [0.1, 0.2, 0.3]},
                "successor": {"link": "link_2", "xyz": [0.1, 0.0, 0.0]},
                "stiffness": 20.0,
                "rest": 0.1,
            },
        ]
    },
    "armature": {"joints": {"a": {"armature": 0.3}, "b": {"armature": 0.2}}},
    "rotor": {"rotors": {"c": {"ratio": 20.0, "inertia": 1e-4}}},
    "sum": {
        "constraints": [
            {"name": "h", "type": "coupling", "terms": {"a": 1, "b": 2, "c": 3}, "offset": 0.3}
        ]
    },
    "polynomial": {
        "constraints": [
            {"name": "h", "type": "expression", "equation": "b + 2*c - .1*(a - .2)^3 - a/4 + .1"}
        ]
    },
    "helical": {"joints": {"c": {"type": "helical", "pitch": 0.05}}},
    "ball": {"joints": {"c": {"type": "spherical"}}, "actuated_joints": ["a", "b", "c"]},
}


@pytest.mark.parametrize("name", LOOPS)
def test_features(name):
    compare(load_robot(THREE, LOOPS[name]), states=4)


def test_planar_and_floating_joints():
    compare(load_robot(chain(("a", "revolute", LIMIT), ("p", "planar", ""))))
    compare(load_robot(chain(("a", "revolute", LIMIT), ("f", "floating", ""))))
    compare(load_robot(chain(("f", "floating", ""), ("a", "revolute", LIMIT))))
    compare(load_robot(chain(("a", "revolute", LIMIT), root="world")))
    compare(load_robot(THREE, floating_base=True))


def test_payloads_and_gravity():
    robot = load_robot(THREE, gravity=(1.0, 2.0, -3.0))
    load = Payload("link_2", 2.0, (0.1, 0.2, 0.3), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    compare(robot.with_payloads({"load": load}))


def test_limits_friction_and_motors():
    _, model = compare(load_robot(THREE))
    np.testing.assert_array_equal(model.jnt_limited, [1, 1, 0])
    np.testing.assert_array_equal(model.jnt_range[:2], [[-1, 2], [-1, 2]])
    np.testing.assert_allclose(np.reshape(model.dof_damping, (3, -1))[:, 0], [0.2, 0, 0])
    np.testing.assert_array_equal(model.dof_frictionloss, [0.3, 0, 0])
    np.testing.assert_array_equal(model.actuator_ctrlrange[:2], [[-7, 7], [-7, 7]])
    np.testing.assert_array_equal(model.actuator_ctrllimited, [1, 1, 0])


@pytest.mark.parametrize("name", ["slider_crank", "universal_cut", "four_bar"])
def test_mujoco_simulates_what_is_written(name):
    """Its soft constraints hold within 30 mm or mrad, auxiliary bodies or not."""
    export = write_mjcf(MECHANISMS[name].load())
    model = mujoco.MjModel.from_xml_string(export.text)
    model.opt.timestep = 5e-4
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    worst = 0.0
    for _ in range(1000):
        mujoco.mj_step(model, data)
        worst = max(worst, np.abs(data.efc_pos[: data.ne]).max())
    assert np.isfinite(data.qpos).all() and worst < 0.03


def test_what_is_written_reads_back():
    """Bodies, loops and motors of a hinge, a ball and a rod survive the way there and back."""
    robot = MECHANISMS["chained_loops"].load()
    back = load_robot(write_mjcf(robot).text)
    assert set(back.joint_names) == set(robot.joint_names)
    assert back.ny == robot.ny


def test_command_writes_model_and_poses(tmp_path, capsys):
    mechanism, path = MECHANISMS["universal_cut"], tmp_path / "robot.xml"
    given = ["convert", str(mechanism.urdf), "--loops", str(mechanism.loops), "-o", str(path)]
    assert cli.main([*given, "--poses", "5", "--seed", "3"]) == 0
    assert "'cardan_cut'" in capsys.readouterr().err
    model = mujoco.MjModel.from_xml_path(str(path))
    poses = np.load(tmp_path / "robot_poses.npz")
    robot, data = mechanism.load(), mujoco.MjData(model)
    assert poses["qpos"].shape == (5, model.nq) and poses["q"].shape == (5, robot.nq)
    assert [model.joint(j).name for j in range(model.njnt)] == list(poses["joints"])
    for qpos in poses["qpos"]:
        data.qpos[:] = qpos
        mujoco.mj_forward(model, data)
        assert np.abs(data.efc_pos[: data.ne]).max() <= SHARE
    again = closed_poses(robot, write_mjcf(robot), 5, 3)
    np.testing.assert_array_equal(again["qpos"], poses["qpos"])


def test_command_says_what_is_wrong(tmp_path, capsys):
    cam = MECHANISMS["cam"]
    files = ["convert", str(cam.urdf), "--loops", str(cam.loops)]
    assert cli.main([*files, "-o", str(tmp_path / "a.xml")]) == 1
    assert "constraint 'profile'" in capsys.readouterr().err
    assert not (tmp_path / "a.xml").exists()
    assert cli.main([*files, "-o", str(tmp_path / "a.urdf"), "--poses", "3"]) == 1
    assert "for MJCF" in capsys.readouterr().err
    assert cli.main([*files, "-o", str(tmp_path / "a.xml"), "--poses", "0"]) == 1
    assert "1 or more" in capsys.readouterr().err
