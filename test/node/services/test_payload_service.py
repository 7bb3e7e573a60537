"""Loads attached and taken off while the node runs."""

import numpy as np
import pytest
from geometry_msgs.msg import Inertia, Vector3
from pinocchio_oracle import PinocchioOracle, random_state
from rbda_ros.srv import DescribeModel, InverseDynamics, MassMatrix, SetPayload
from ros_requests import request_of
from sensor_msgs.msg import JointState

from rbda_ros import Payload

BOX = Inertia(
    m=1.5, com=Vector3(x=0.02, y=-0.05, z=0.1), ixx=0.02, ixy=0.001, iyy=0.015, iyz=0.002, izz=0.01
)


def payload_of(link, i):
    com = (i.com.x, i.com.y, i.com.z)
    return Payload(link, i.m, com, (i.ixx, i.ixy, i.ixz, i.iyy, i.iyz, i.izz))


def set_payload(client, name, link="", inertia=None):
    request = SetPayload.Request(name=name, link=link, inertia=inertia or Inertia())
    return client.call(SetPayload, "~/set_payload", request)


def test_a_load_counts_until_it_is_off_again(leg):
    client, _, robot = leg
    q, qd, ydd = random_state_of_leg(robot)
    request = request_of(robot, q, qd, robot.spanning_acceleration(q, qd, ydd))

    def efforts():
        answer = client.call(InverseDynamics, "~/inverse_dynamics", request)
        assert answer.success, answer.message
        return list(answer.effort)

    before = efforts()
    attached = set_payload(client, "box", "foot", BOX)
    assert attached.success, attached.message
    assert attached.total_mass == pytest.approx(robot.mass + BOX.m)
    loaded = robot.with_payloads({"box": payload_of("foot", BOX)})
    expected = loaded.actuator_efforts(q, loaded.inverse_dynamics(q, qd, ydd))
    np.testing.assert_allclose(efforts(), expected, 1e-12, 1e-12)
    assert np.abs(expected - before).max() > 0.1

    second = set_payload(client, "sensor", "shank", Inertia(m=0.3))
    assert second.success, second.message
    listed = client.call(DescribeModel, "~/describe_model").payloads
    assert {(load.name, load.link, load.inertia.m) for load in listed} == {
        ("box", "foot", 1.5),
        ("sensor", "shank", 0.3),
    }
    assert listed[0].inertia == BOX

    assert set_payload(client, "sensor").success
    assert set_payload(client, "box").success
    # The same but for rounding: meanwhile the kernel may have been compiled.
    np.testing.assert_allclose(efforts(), before, 1e-12, 1e-12)
    assert client.call(DescribeModel, "~/describe_model").payloads == []


def random_state_of_leg(robot):
    q = robot.close([0.1, 0.3, 0.9, -0.2])
    qd = robot.spanning_velocity(q, [0.5, -1.0, 2.0, 1.0])
    return q, qd, np.array([1.0, 2.0, -3.0, 4.0])


def test_on_a_floating_base_it_equals_pinocchio(solo):
    import pinocchio as pin

    client, urdf, robot = solo
    q, qd, ydd = random_state(robot, np.random.default_rng(3))
    assert set_payload(client, "backpack", "base_link", BOX).success
    try:
        answer = client.call(InverseDynamics, "~/inverse_dynamics", request_of(robot, q, qd, ydd))
    finally:
        assert set_payload(client, "backpack").success
    oracle = PinocchioOracle(urdf, robot)
    tensor = [[BOX.ixx, BOX.ixy, BOX.ixz], [BOX.ixy, BOX.iyy, BOX.iyz], [BOX.ixz, BOX.iyz, BOX.izz]]
    com = np.array([BOX.com.x, BOX.com.y, BOX.com.z])
    base = oracle.model.frames[oracle.model.getFrameId("base_link", pin.BODY)]
    load = pin.Inertia(BOX.m, com, np.array(tensor))
    oracle.model.appendBodyToJoint(base.parentJoint, load, base.placement)
    oracle.data = oracle.model.createData()
    expected = oracle.rnea(q, qd, ydd)
    np.testing.assert_allclose(answer.effort, expected[6:], 1e-9, 1e-9)
    assert answer.base_wrench.force.z == pytest.approx(expected[2], 1e-9)


def test_feedforward_counts_it_too(leg):
    """States stream meanwhile: every effort is of the model before or after, at the swap too."""
    client, _, robot = leg
    y = [0.1, 0.3, 0.9, -0.2]
    q = robot.close(y)
    loaded = robot.with_payloads({"box": payload_of("foot", BOX)})
    with_load = loaded.actuator_efforts(q, loaded.gravity_force(q))
    without = robot.actuator_efforts(q, robot.gravity_force(q))
    # A busy machine may hold this process up: states that stop would end the stream with zeros.
    assert client.set_parameter("joint_state_timeout", 10.0).successful
    efforts = client.listen(JointState, "~/feedforward")
    states = client.publisher(JointState, "joint_states")

    def publish():
        states.publish(client.joint_states(robot.independent_joint_names, y, [0.0] * 4))

    def answers_with(expected):
        return lambda: efforts and np.allclose(efforts[-1].effort, expected, 1e-9, 1e-9)

    streaming = client.node.create_timer(0.01, publish)
    try:
        client.until(answers_with(without))
        assert set_payload(client, "box", "foot", BOX).success
        client.until(answers_with(with_load))
        assert set_payload(client, "box").success
        client.until(answers_with(without))
    finally:
        client.node.destroy_timer(streaming)
        assert client.set_parameter("joint_state_timeout", 0.1).successful
    for message in efforts:
        assert any(np.allclose(message.effort, e, 1e-9, 1e-9) for e in (with_load, without))


@pytest.mark.parametrize(
    ("name", "link", "inertia", "says"),
    [
        ("box", "hand", BOX, "no link 'hand'"),
        ("box", "", BOX, "no link ''"),
        ("", "foot", BOX, "name is empty"),
        ("box", "foot", Inertia(m=-1.0), "mass -1"),
        ("box", "foot", Inertia(m=float("nan")), "not finite"),
        ("box", "foot", Inertia(m=1.0, ixx=-1.0), "negative principal moment"),
        ("box", "foot", Inertia(m=1.0, ixx=1.0), "triangle inequality"),
        ("other", "foot", Inertia(), "no load 'other'"),
    ],
)
def test_refuses_what_no_load_can_be(leg, name, link, inertia, says):
    client, _, robot = leg
    answer = set_payload(client, name, link, inertia)
    assert not answer.success
    assert says in answer.message
    assert client.call(DescribeModel, "~/describe_model").total_mass == pytest.approx(robot.mass)


PENDULUM = """<robot name="{name}">
  <link name="base"/>
  <joint name="hinge" type="continuous">
    <parent link="base"/> <child link="{link}"/> <axis xyz="0 1 0"/>
  </joint>
  <link name="{link}">
    <inertial>
      <origin xyz="0 0 -0.5"/> <mass value="2"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
</robot>"""


def test_loads_stay_with_a_new_description_that_has_their_link(graph):
    graph.serve(robot_description=PENDULUM.format(name="first", link="rod"))
    client = graph.client()
    client.until_active()

    def inertia():
        answer = client.call(MassMatrix, "~/mass_matrix", state_at_zero())
        return answer.mass_matrix.data[0]

    assert inertia() == pytest.approx(0.1 + 2 * 0.5**2)
    assert set_payload(client, "box", "rod", Inertia(m=1.0, com=Vector3(z=-1.0))).success
    assert inertia() == pytest.approx(0.6 + 1.0)
    fixed = set_payload(client, "ballast", "base", Inertia(m=5.0))
    assert fixed.success and "fixed to the world" in fixed.message

    keep = [client.describe(PENDULUM.format(name="second", link="rod"))]
    client.until(lambda: name_of(client) == "second")
    assert inertia() == pytest.approx(0.6 + 1.0)

    keep.append(client.describe(PENDULUM.format(name="third", link="pole")))
    client.until(lambda: name_of(client) == "third")
    assert inertia() == pytest.approx(0.6)
    (program,) = graph.programs
    assert "load 'box' is off" in program.log


def state_at_zero():
    request = MassMatrix.Request()
    request.state.position = [0.0]
    return request


def name_of(client):
    return client.call(DescribeModel, "~/describe_model").robot_name
