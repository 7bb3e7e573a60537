"""A reference that was published before a state is used for that state."""

import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

URDF = """<robot name="arm"><link name="base"/><link name="rod"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hip" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
    <limit lower="-9" upper="9" effort="1000" velocity="100"/></joint></robot>"""


NIGHTLY = pytest.param(100_000, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)])


@pytest.mark.parametrize("trials", (2_000, NIGHTLY))
def test_references_are_used_in_the_order_of_publication(graph, trials):
    """Each state has a reference of its own, published right before it; gravity is left out.

    Both topics are best effort, so a busy machine may lose messages of either. A reference that was
    lost is never used; one that was overtaken by its state is used for the next one.
    """
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
    received = client.listen(JointState, "~/feedforward")

    def effort():
        """Of the response to a state that is published now; None where there is none."""
        data = serialize_message(client.joint_states(["hip"], [0.0], [0.0]))
        stamp = deserialize_message(data, JointState).header.stamp
        received.clear()
        states.publish(data)
        for _ in range(100):
            found = [message for message in received if message.header.stamp == stamp]
            if found:
                return found[0].effort[0]
            client.spin(0.0005)
        return None

    inertia, answered, lost = None, 0, 0
    for k in range(-50, trials):
        wanted = 1.0 + k % 97
        point = JointTrajectoryPoint(accelerations=[wanted])
        reference = JointTrajectory(joint_names=["hip"], points=[point])
        references.publish(serialize_message(reference))
        found = effort()
        if found is None or k < 0:
            inertia = found / wanted if found else inertia
            continue
        answered += 1
        if found != pytest.approx(inertia * wanted, rel=1e-9):
            client.spin(0.5)
            assert effort() != pytest.approx(inertia * wanted, rel=1e-9), f"{k} was overtaken"
            lost += 1
    print(f"{answered} of {trials} states answered, {lost} references lost")
    assert answered > 0.99 * trials
    assert lost < 1e-3 * trials
