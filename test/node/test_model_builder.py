"""Models and kernels that are prepared before messages need them."""

import re

import numpy as np
import pytest
from mechanism_table import MECHANISMS

from rbda_ros.control.joint_map import map_joints
from rbda_ros.control.model_builder import ModelSource, _build, warm
from rbda_ros.demo.resources import share_file
from rbda_ros.errors import DescriptionError, ModelError
from rbda_ros.node import messages
from rbda_ros.robot import load_robot


@pytest.fixture
def leg(monkeypatch):
    monkeypatch.setenv("RBDA_ROS_COMPILE", "0")
    folder = share_file("config/robots/demo_leg.urdf").parent
    return load_robot(folder / "demo_leg.urdf", folder / "demo_leg_loops.yaml")


@pytest.mark.parametrize("which", ["independent", "actuated", "all"])
def test_no_request_about_these_joints_traces_anything(leg, which):
    warm(leg)
    known = leg._kernels.kernels()
    names = {
        "independent": leg.independent_joint_names,
        "actuated": leg.actuated_joint_names,
        "all": leg.joint_names,
    }[which]
    joints, rates = map_joints(leg, names), np.ones(len(names))
    q = leg.tree.home
    q = messages.closed_position(leg, joints, q[[leg.joint_names.index(n) for n in names]], None)
    state = messages.moving(leg, joints, leg.state(q), rates, None)
    ydd = messages.acceleration_vector(leg, joints, state, state.yd, rates, None)
    leg.inverse_dynamics_efforts(state, state.yd, ydd)
    leg.forward_dynamics(state, state.yd, ydd)
    assert leg._kernels.kernels() == known


SECRETS = {
    "shadow": "root:$6$hunter2:19000:0\nhunter3:hunter2:1\n",
    "yaml": "hunter2: 1\npassword: hunter3\n",
    "constraints": "constraints:\n  - {name: hunter2, type: hunter3}\n",
    "other robot": "constraints:\n  - {name: hunter2, type: coupling, terms: {hunter3: 1.0}}\n",
    "broken": "a: [hunter2\nhunter3: *hunter2",
    "tag": "!hunter2 hunter3",
    "bytes": b"hunter2\xff\xffhunter3",
    "encoding": b"<?xml version='1.0' encoding='hunter2'?>hunter3",
}


@pytest.mark.parametrize("form", SECRETS)
def test_errors_quote_nothing_of_a_file_that_a_parameter_names(tmp_path, caplog, form):
    path, content = tmp_path / "loops", SECRETS[form]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    urdf = MECHANISMS["four_bar"].urdf.read_text()
    with pytest.raises(DescriptionError) as raised:
        _build(ModelSource(urdf, str(path), False, (0.0, 0.0, -9.81)))
    said = str(raised.value)
    assert "hunter" not in said and str(path) in said
    assert form in ("broken", "bytes", "encoding") or "hunter" in caplog.text  # on the terminal
    assert raised.value.__cause__ is None


def test_errors_about_the_description_and_about_valid_loops_are_told(tmp_path):
    urdf = MECHANISMS["four_bar"].urdf.read_text()
    path = tmp_path / "loops.yaml"
    path.write_text("hunter2: 1")
    broken = urdf.replace("</robot>", "<joint name='loose'/></robot>")
    with pytest.raises(DescriptionError, match="loose") as raised:
        _build(ModelSource(broken, str(path), False, (0.0, 0.0, -9.81)))
    assert "hunter" not in str(raised.value)
    path.unlink()
    with pytest.raises(DescriptionError, match="does not exist"):
        _build(ModelSource(urdf, str(path), False, (0.0, 0.0, -9.81)))
    text = "constraints: [{name: far, type: coupling, terms: {nothing: 1.0}}]"
    with pytest.raises(DescriptionError, match="far"):  # whoever gave the text knows it
        _build(ModelSource(urdf, text, False, (0.0, 0.0, -9.81)))


@pytest.mark.parametrize(
    "inside", ['<include file="{}"/>', '<asset><model name="a" file="{}"/></asset>']
)
def test_a_description_cannot_have_other_files_read(tmp_path, inside):
    path = tmp_path / "other.xml"
    path.write_text("<hunter2/>")
    text = f'<mujoco model="m">{inside.format(path)}</mujoco>'
    with pytest.raises(ModelError, match="includes other files"):
        _build(ModelSource(text, "", False, (0.0, 0.0, -9.81)))


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_can_be_made_ready(name, monkeypatch):
    """Also where motors do not determine the other joints, or have several coordinates."""
    monkeypatch.setenv("RBDA_ROS_COMPILE", "0")
    warm(MECHANISMS[name].load())


def test_names_in_a_loop_file_may_have_the_prefix_of_messages(tmp_path):
    """The same robot from names with and without it, as text and as a file."""
    urdf = share_file("config/robots/demo_leg.urdf").read_text()
    plain = share_file("config/robots/demo_leg_loops.yaml").read_text()
    names = sorted(load_robot(urdf, plain).joint_names, key=len, reverse=True)
    prefixed = re.sub(rf"\b({'|'.join(names)})\b", r"left_\1", plain)
    assert prefixed.count("left_") > 10
    (tmp_path / "loops.yaml").write_text(prefixed)
    wanted = load_robot(urdf, plain)
    for loops in (plain, prefixed, str(tmp_path / "loops.yaml")):
        source = ModelSource(urdf, loops, False, (0.0, 0.0, -9.81), "left_")
        robot = _build(source)
        assert robot.joint_names == wanted.joint_names
        assert robot.independent_joint_names == wanted.independent_joint_names
    without = ModelSource(urdf, prefixed, False, (0.0, 0.0, -9.81), "")
    with pytest.raises(ModelError, match="left_"):
        _build(without)
