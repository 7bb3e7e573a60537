"""A reference that was published before a state is used for that state."""

import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

URDF = """<robot name="arm"><link name="base"/><link name="rod"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hip" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
    <limit lower="-9" upper="9" effort="1000" velocity="100"/></joint></robot>"""


@pytest.mark.parametrize("trials", (2_000, pytest.param(100_000, marks=pytest.mark.nightly)))
def test_references_are_used_in_the_order_of_publication(graph, trials):
    """Each state has a reference of its own, published right before it; gravity is left out."""
    graph.serve(
        robot_description=URDF,
        acceleration_source="reference",
        terms=["inertial"],
        joint_state_timeout=10.0,
    )
    client = graph.client()
    client.until_active()
    states = client.publisher(JointState, "joint_states")
    references = client.publisher(JointTrajectory, "~/reference")
    heard = client.listen(JointState, "~/feedforward")
    inertia, answered = None, 0
    for k in range(-50, trials):
        wanted = 1.0 + k % 97
        point = JointTrajectoryPoint(accelerations=[wanted])
        reference = JointTrajectory(joint_names=["hip"], points=[point])
        state = client.joint_states(["hip"], [0.0], [0.0])
        data = serialize_message(state)
        heard.clear()
        references.publish(serialize_message(reference))
        states.publish(data)
        stamp = deserialize_message(data, JointState).header.stamp
        for _ in range(100):
            found = [message for message in heard if message.header.stamp == stamp]
            if found:
                break
            client.spin(0.0005)
        if not found or k < 0:
            inertia = found[0].effort[0] / wanted if found else inertia
            continue
        answered += 1
        assert found[0].effort[0] == pytest.approx(inertia * wanted, rel=1e-9), k
    assert answered > 0.99 * trials
