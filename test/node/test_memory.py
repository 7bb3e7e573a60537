"""A running node frees the model that another one replaces."""

import pytest
from geometry_msgs.msg import Inertia, Vector3
from rbda_ros.srv import DescribeModel, SetPayload, TrajectoryInverseDynamics
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from rbda_ros.demo.resources import share_file

URDF, LOOPS = "config/robots/demo_leg.urdf", "config/robots/demo_leg_loops.yaml"
WARM_UP = 10  # times until allocators and compilers have what they hold on to
COMPILING = 3.0  # [s] in which the kernels that were asked for are compiled, where none is on disk
LARGEST_GROWTH = 5.0  # [MB]


@pytest.fixture
def tasks(graph):
    """A node on the demo leg, and what it may be given to do, by how often it was done."""
    urdf = share_file(URDF).read_text()
    node = graph.serve(robot_description=urdf, loop_constraints=str(share_file(LOOPS)))
    client = graph.client()
    client.until_active()

    def payload(k):
        inertia = Inertia(m=1.0 + 0.01 * k, com=Vector3(x=0.0, y=0.0, z=-0.1))
        request = SetPayload.Request(name="load", link="foot", inertia=inertia)
        assert client.call(SetPayload, "~/set_payload", request).success

    def description(k):
        name = f"leg_{k}"
        publisher = client.describe(urdf.replace('name="demo_leg"', f'name="{name}"', 1))

        def described():
            return client.call(DescribeModel, "~/describe_model").robot_name == name

        client.until(described)
        client.node.destroy_publisher(publisher)

    def trajectory(k):
        request = TrajectoryInverseDynamics.Request()
        request.trajectory.points = [JointTrajectoryPoint(positions=[0.1, 0.3, 0.9, -0.2])] * 500
        answer = client.call(TrajectoryInverseDynamics, "~/trajectory_inverse_dynamics", request)
        assert answer.success

    states = client.publisher(JointState, "joint_states")

    def refused(k):
        for name in ["knee", "nobody"] * 25:  # too few joints, and none of ours
            states.publish(client.joint_states([name], [0.5], [0.0]))
            client.spin(0.001)

    return (
        node,
        client,
        {
            "payload": payload,
            "description": description,
            "trajectory": trajectory,
            "refused": refused,
        },
    )


@pytest.mark.parametrize(
    ("what", "count"),
    [
        ("payload", 15),
        ("trajectory", 110),
        ("refused", 60),
        pytest.param("payload", 200, marks=pytest.mark.nightly),
        pytest.param("description", 50, marks=pytest.mark.nightly),
    ],
)
def test_memory_stays_where_it_was(tasks, what, count):
    node, client, do = tasks
    for k in range(WARM_UP):
        do[what](k)
    client.spin(COMPILING)
    before = node.resident()
    for k in range(WARM_UP, count):
        do[what](k)
    assert node.resident() - before < LARGEST_GROWTH
