"""Requests with an empty state: they are answered for the latest joint states."""

import numpy as np
import pytest
from geometry_msgs.msg import Point
from nav_msgs.msg import Odometry
from rbda_ros.msg import Contact, State
from rbda_ros.srv import (
    ConstrainedForwardDynamics,
    DescribeActuation,
    ForwardDynamics,
    InverseDynamics,
    InverseKinematics,
    MassMatrix,
    OperationalSpaceInertia,
)
from ros_requests import pose_of, set_six, state_of
from sensor_msgs.msg import JointState


def requests(robot, frame):
    """One of each service with a state; of its response, the numbers to compare."""
    ny = len(robot.independent_joint_names)
    goal = robot.frame_pose(robot.neutral(), frame)
    target = pose_of(np.array([*goal[:3, 3], 0.0, 0.0, 0.0, 1.0]))
    contact = Contact(link=frame, kind="point", offset=Point(x=0.01))
    return {
        "inverse_dynamics": (
            InverseDynamics,
            {"acceleration": np.linspace(-1.0, 1.0, ny).tolist()},
            lambda a: a.effort,
        ),
        "forward_dynamics": (
            ForwardDynamics,
            {"effort": np.linspace(-1.0, 1.0, len(robot.actuated_joint_names)).tolist()},
            lambda a: a.acceleration,
        ),
        "mass_matrix": (MassMatrix, {}, lambda a: [*a.mass_matrix.data, *a.bias, *a.gravity]),
        "operational_space_inertia": (
            OperationalSpaceInertia,
            {"frames": [frame], "linear_only": True},
            lambda a: a.jacobian.data,
        ),
        "constrained_forward_dynamics": (
            ConstrainedForwardDynamics,
            {"contacts": [contact]},
            lambda a: a.acceleration,
        ),
        "describe_actuation": (DescribeActuation, {}, lambda a: a.w.data),
        "inverse_kinematics": (
            InverseKinematics,
            {"frames": [frame], "targets": [target], "kinds": ["position"], "posture_weight": 1.0},
            lambda a: a.position,
        ),
    }


def answers(client, robot, frame, state):
    """The numbers of every service."""
    found = {}
    for name, (kind, fields, numbers) in requests(robot, frame).items():
        answer = client.call(kind, f"~/{name}", kind.Request(state=state, **fields))
        assert answer.success, f"{name}: {answer.message}"
        found[name] = np.array(numbers(answer))
    return found


def publish(client, robot, state, names, base=None):
    """Publish a state until the node has answered it."""
    states = client.publisher(JointState, "joint_states")
    bases = None if base is None else client.publisher(Odometry, "~/base_state")
    received = client.listen(JointState, "~/feedforward")

    def answered():
        if bases is not None:
            base.header.stamp = client.node.get_clock().now().to_msg()
            bases.publish(base)
        states.publish(client.joint_states(names, *state))
        client.spin(0.05)
        return received

    client.until(answered)


def test_every_service_uses_the_latest_state(graph, leg):
    _, urdf, robot = leg
    graph.serve(
        robot_description=urdf.read_text(),
        loop_constraints=str(urdf.with_name("demo_leg_loops.yaml")),
        joint_state_timeout=0.0,
    )
    client = graph.client()
    client.until_active()
    # Motors are measured: the node closes the loops, and y is what it finds.
    y, yd = np.array([0.1, 0.2, 0.9, 0.1]), np.array([0.3, -0.4, 0.5, 0.2])
    q = robot.close(y)
    qd = robot.spanning_velocity(q, yd)
    place = [robot.joint_names.index(name) for name in robot.actuated_joint_names]
    publish(client, robot, (q[place], qd[place]), robot.actuated_joint_names)
    latest = answers(client, robot, "foot", State())
    given = answers(client, robot, "foot", State(position=y.tolist(), velocity=yd.tolist()))
    assert latest.keys() == given.keys()
    for name, values in given.items():
        np.testing.assert_allclose(latest[name], values, rtol=1e-6, atol=1e-6, err_msg=name)


def test_the_base_is_that_of_base_state(graph, solo):
    _, urdf, robot = solo
    graph.serve(robot_description=urdf.read_text(), floating_base=True, joint_state_timeout=0.0)
    client = graph.client()
    client.until_active()
    rng = np.random.default_rng(5)
    q, yd = robot.random_state(3).q, rng.uniform(-0.5, 0.5, robot.ny)
    base = Odometry(child_frame_id="base_link")
    base.pose.pose = pose_of(q)
    set_six(base.twist.twist, yd[:6])
    publish(client, robot, (q[7:], yd[6:]), robot.joint_names, base)
    frame = "FL_FOOT"
    latest = answers(client, robot, frame, State())
    given = answers(client, robot, frame, state_of(robot, q, yd))
    for name, values in given.items():
        np.testing.assert_allclose(latest[name], values, rtol=1e-9, atol=1e-9, err_msg=name)

    half = State()
    half.base_pose = pose_of(q)
    answer = client.call(MassMatrix, "~/mass_matrix", MassMatrix.Request(state=half))
    assert not answer.success
    assert "no positions" in answer.message


@pytest.mark.parametrize("service", ["inverse_dynamics", "operational_space_inertia"])
def test_without_joint_states_it_says_so(leg, service):
    client, _, robot = leg
    kind, fields, _ = requests(robot, "foot")[service]
    answer = client.call(kind, f"~/{service}", kind.Request(state=State(), **fields))
    assert not answer.success
    assert "no joint states yet" in answer.message
    assert "/joint_states" in answer.message


def test_old_joint_states_are_not_used(graph, leg):
    _, urdf, robot = leg
    graph.serve(
        robot_description=urdf.read_text(),
        loop_constraints=str(urdf.with_name("demo_leg_loops.yaml")),
        joint_state_timeout=0.5,
    )
    client = graph.client()
    client.until_active()
    publish(client, robot, (np.full(4, 0.1), np.zeros(4)), robot.independent_joint_names)
    client.spin(0.6)
    answer = client.call(MassMatrix, "~/mass_matrix")
    assert not answer.success
    assert "joint_state_timeout is 0.5 s" in answer.message
