"""The examples, run beside the real node."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from rbda_ros.msg import State
from rbda_ros.srv import DescribeModel, InverseDynamics
from sensor_msgs.msg import JointState

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file
from rbda_ros.examples import (
    felt_mass,
    heavier_foot,
    hold_still,
    many_states,
    motors_to_joints,
    stand_on_it,
)

URDF, LOOPS = "config/robots/demo_leg.urdf", "config/robots/demo_leg_loops.yaml"
GOAL = [0.1, 0.4, 1.0, -0.1]
STEP = 5e-3  # [s]


def test_computed_torque_reaches_its_goal_and_the_plot_compares_efforts(graph):
    """The leg is simulated here, in step with the controller: nothing depends on the clock."""
    graph.serve(
        robot_description=share_file(URDF).read_text(), loop_constraints=str(share_file(LOOPS))
    )
    controller = graph.run(
        "--ros-args", "-p", f"goal:={GOAL}", module="rbda_ros.examples.computed_torque"
    )
    picture = graph.folder / "efforts.svg"
    plot = graph.run(
        "--seconds", "1", "--output", str(picture), module="rbda_ros.examples.plot_efforts"
    )
    client = graph.client()
    client.until_active()
    efforts, feedforward = (client.listen(JointState, t) for t in ("efforts", "~/feedforward"))
    states = client.publisher(JointState, "joint_states")
    robot = load_robot(share_file(URDF), share_file(LOOPS))
    home = robot.tree.home

    def both_answer():
        states.publish(client.joint_states(robot.joint_names, home, 0.0 * home))
        return efforts and feedforward

    client.until(both_answer)
    client.until(lambda: states.get_subscription_count() == 3)

    motors = [robot.joint_names.index(name) for name in robot.actuated_joint_names]
    y, yd, effort = np.array([0.0, 0.2, 0.6, 0.1]), np.zeros(4), np.zeros(4)
    while plot.running or np.abs(y - GOAL).max() > 1e-3:
        q = robot.close(y)
        qd = robot.spanning_velocity(q, yd)
        message = client.joint_states(robot.joint_names, q, qd)
        measured = np.zeros(robot.nv)
        measured[motors] = effort
        message.effort = measured.tolist()
        efforts.clear()
        states.publish(message)
        client.until(lambda: efforts)
        assert tuple(efforts[-1].name) == robot.actuated_joint_names
        effort = np.array(efforts[-1].effort)
        tau = np.zeros(robot.nv)
        tau[motors] = effort
        yd = yd + STEP * robot.forward_dynamics(q, yd, tau)
        y = y + STEP * yd

    assert plot.wait() == 0, plot.log
    assert re.search(r"knee_rotor: \d+ samples, \S+ apart", plot.log)
    assert "<svg" in picture.read_text()
    assert controller.stop() == 0
    assert "Traceback" not in controller.log


MJCF = """<mujoco model='leg'><worldbody><body name='thigh' pos='0 0 1'>
<joint name='hip' axis='0 1 0' range='-60 60'/>
<inertial pos='0 0 -.2' mass='2' diaginertia='.1 .1 .1'/>
<geom type='mesh' mesh='thigh'/><body name='shank' pos='0 0 -.4'><joint name='knee' axis='0 1 0'/>
<inertial pos='0 0 -.1' mass='1' diaginertia='.1 .1 .1'/></body></body></worldbody>
<asset><mesh name='thigh' file='not_here.obj'/></asset></mujoco>"""


def test_an_mjcf_robot_reaches_the_node_and_the_stand_in_needs_no_joints(graph):
    """One file for both; its mesh is not there, and nobody lists joints or loops."""
    robot = graph.folder / "leg.xml"
    robot.write_text(MJCF)
    node = graph.run("serve", str(robot))
    stand_in = graph.run(str(robot), module="rbda_ros.examples.stand_in_robot")
    watch = graph.run("--seconds", "1", module="rbda_ros.examples.watch_efforts")
    assert watch.wait() == 0, watch.log + node.log
    assert "waiting for efforts on /dynamics/feedforward" in watch.log
    assert re.search(r"hip [+-][\d.]+ N m, knee [+-][\d.]+ N m", watch.log), watch.log
    assert "Traceback" not in node.log + stand_in.log + watch.log
    assert node.stop() == 0 and stand_in.stop() == 0


XACRO = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="$(arg name)">
<xacro:arg name="name" default="nobody"/><xacro:arg name="length" default="0.1"/>
<link name="base"/><joint name="hinge" type="continuous"><parent link="base"/>
<child link="rod"/><axis xyz="0 1 0"/></joint><link name="rod"><inertial>
<origin xyz="$(arg length) 0 0"/><mass value="1"/>
<inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


def test_arguments_of_a_xacro_file_reach_the_node_and_the_simulated_robot(graph):
    """The node answers with the length that was given, and a robot is simulated from the same."""
    pytest.importorskip("xacro", reason="xacro is not installed")
    robot = graph.folder / "rod.urdf.xacro"
    robot.write_text(XACRO)
    given = (str(robot), "--xacro", "name:=rod", "--xacro=length:=0.5")
    node = graph.run("serve", *given)
    simulated = graph.run("simulate", *given)
    client = graph.client()
    client.until_active()
    assert client.call(DescribeModel, "~/describe_model").robot_name == "rod"
    efforts = client.listen(JointState, "~/feedforward")
    client.until(lambda: efforts)
    states = client.listen(JointState, "joint_states")
    client.until(lambda: states)
    response = client.call(
        InverseDynamics,
        "~/inverse_dynamics",
        InverseDynamics.Request(state=State(joint_names=["hinge"], position=[0.0])),
    )
    assert np.isclose(response.effort[0], -9.81 * 0.5)
    assert node.stop() == 0 and simulated.stop() == 0


def test_the_documents_name_examples_that_there_are():
    text = (Path(__file__).parents[2] / "docs" / "examples.md").read_text()
    modules = set(re.findall(r"python -m (rbda_ros\.examples\.\w+)", text))
    assert all(find_spec(module) for module in modules)
    folder = Path(hold_still.__file__).parent
    assert modules == {f"rbda_ros.examples.{path.stem}" for path in folder.glob("[a-z]*.py")}


def test_motors_hold_what_gravity_asks_for():
    robot = load_robot(share_file(URDF), share_file(LOOPS))
    efforts = hold_still.main()
    q = robot.close({"hip_abduction": 0.0, "hip_flexion": 0.4, "knee": 0.9, "ankle": -0.2})
    tau = np.zeros(robot.nv)
    for name, effort in efforts.items():
        tau[robot.joint_names.index(name)] = effort
    np.testing.assert_allclose(robot.generalized_force(q, tau), robot.gravity_force(q), atol=1e-9)


def test_power_is_the_same_on_both_sides():
    motors, joints = motors_to_joints.main()
    assert np.isclose(motors, joints)


def test_a_load_on_the_foot_pulls_at_the_knee():
    bare, heavy = heavier_foot.main()
    assert heavy > bare + 3.0  # 1.5 kg at some 0.3 m


def test_many_states_are_each_as_one_would_be():
    efforts = many_states.main(100)
    robot = load_robot(share_file(URDF), share_file(LOOPS))
    swing = np.array([0.2, 0.4, 0.4, 0.2])
    q = robot.close([0.0, 0.3, 0.9, 0.0])
    first, _ = robot.inverse_dynamics_efforts(q, 3.0 * swing, np.zeros(4))
    np.testing.assert_allclose(efforts[0], first, rtol=1e-8, atol=1e-10)


def test_a_push_feels_the_rotors():
    whole, bare = felt_mass.main()
    robot = load_robot(share_file(URDF), share_file(LOOPS))
    q = robot.close(felt_mass.POSE)
    J = robot.jacobian(q, "foot")[:3]
    dense = J @ np.linalg.solve(robot.mass_matrix(q), J.T)
    for k, (name, mass) in enumerate(whole.items()):
        assert np.isclose(mass, 1.0 / dense[k, k])
        assert mass > bare[name]


def test_the_ground_holds_the_sole():
    falls, stands = stand_on_it.main()
    assert falls > 5.0 and stands < 1e-9
