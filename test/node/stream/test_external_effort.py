"""What acts from outside, from measured efforts, between two processes."""

import numpy as np
import pytest
from conversation import Conversation, Diagnoses
from geometry_msgs.msg import WrenchStamped
from rbda_ros.node.stream.external_effort import ExternalEffort
from rbda_ros.node.stream.ros_codec import RosCodec
from rclpy.serialization import serialize_message
from ros_graph import Graph, own_domain
from sensor_msgs.msg import JointState

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file
from rbda_ros.node.parameters import Settings

LEG = share_file("config/robots/demo_leg.urdf")
LOOPS = share_file("config/robots/demo_leg_loops.yaml")
Y = np.array([0.1, 0.3, 0.9, -0.1])
FORCE = np.array([3.0, -2.0, 25.0])  # on the foot, in world axes


class Pushed:
    """The leg stands still; its motors hold it against gravity and a push on its foot."""

    def __init__(self, client, robot):
        self.client = client
        self.talk = Conversation(client)
        self.efforts = client.listen(JointState, "~/external_effort")
        self.wrenches = client.listen(WrenchStamped, "~/estimated_wrench")
        q = robot.close(Y)
        self.outside = robot.jacobian(q, "foot")[:3].T @ FORCE
        self.tau = robot.gravity_force(q) - self.outside
        self.motors = robot.actuator_efforts(q, self.tau)
        self.q = q

    def stand(self, names, position, effort, seconds=1.0):
        """Publish the same state for a while."""
        for _ in range(int(seconds / 0.01)):
            message = self.client.joint_states(names, position, [0.0] * len(names))
            message.effort = list(effort)
            self.talk.publisher.publish(message)
            self.client.spin(0.01)


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    with own_domain() as domain:
        graph = Graph(domain, tmp_path_factory.mktemp("pushed"))
        yield _pushed(graph)
        graph.close()


def _pushed(graph):
    graph.serve(
        robot_description=LEG.read_text(),
        loop_constraints=str(LOOPS),
        publish_external_effort=True,
        contact_end_effector="foot",
        contact_threshold=2.0,
    )
    client = graph.client()
    client.until_active()
    return Pushed(client, load_robot(LEG, LOOPS))


def test_from_the_efforts_of_motors(pushed):
    robot = load_robot(LEG, LOOPS)
    motors = robot.actuated_joint_names
    places = [robot.joint_names.index(name) for name in motors]
    pushed.stand(motors, pushed.q[places].tolist(), pushed.motors)
    assert tuple(pushed.efforts[-1].name) == robot.independent_joint_names
    np.testing.assert_allclose(pushed.efforts[-1].effort, pushed.outside, rtol=1e-3, atol=1e-3)
    wrench = pushed.wrenches[-1]
    assert wrench.header.frame_id == "foot"
    force = np.array([wrench.wrench.force.x, wrench.wrench.force.y, wrench.wrench.force.z])
    R = robot.frame_pose(pushed.q, "foot")[:3, :3]
    np.testing.assert_allclose(R @ force, FORCE, rtol=5e-3, atol=5e-3)


def test_from_the_efforts_of_joints_and_the_flag(pushed):
    names = ("hip_abduction", "hip_flexion", "knee", "ankle")
    pushed.client.spin(0.3)
    pushed.efforts.clear()
    diagnoses = Diagnoses(pushed.client)
    pushed.stand(names, Y.tolist(), pushed.tau, seconds=1.5)
    np.testing.assert_allclose(pushed.efforts[-1].effort, pushed.outside, rtol=1e-3, atol=1e-3)
    assert pushed.efforts[-1].header.stamp.sec > 0
    _, values = diagnoses.next()
    assert values["contact"] == "True"
    free = pushed.tau + pushed.outside
    pushed.stand(names, Y.tolist(), free, seconds=1.5)
    assert np.abs(pushed.efforts[-1].effort).max() < 1e-3
    _, values = diagnoses.next()
    assert values["contact"] == "False"


def test_no_estimate_without_efforts(pushed):
    names = ("hip_abduction", "hip_flexion", "knee", "ankle")
    pushed.client.spin(0.3)  # until the efforts are too old
    pushed.efforts.clear()
    pushed.stand(names, Y.tolist(), [], seconds=0.2)
    assert not pushed.efforts
    assert Diagnoses(pushed.client).refusals()["no measured effort"] > 0
    pushed.stand(names, Y.tolist(), [float("nan")] * 4, seconds=0.2)
    assert not pushed.efforts


def test_mistakes_are_named(pushed):
    refused = pushed.client.set_parameter("contact_end_effector", "toe")
    assert not refused.successful
    assert "contact_end_effector: 'toe'" in refused.reason
    assert not pushed.client.set_parameter("observer_gain", 0.0).successful


def test_time_that_jumps_back_begins_anew():
    """As when a simulation is reset."""
    robot, heard = load_robot(LEG, LOOPS), []
    external = ExternalEffort(robot, Settings(), heard.append, lambda wrench: None, RosCodec())
    call = robot.feedforward(robot.independent_joint_names)
    call.position[:], call.velocity[:] = Y, 0.0
    call()
    message = JointState(name=list(robot.independent_joint_names), effort=[0.0] * 4)
    for seconds in (10, 11, 1, 2):
        message.header.stamp.sec = seconds
        data = bytes(serialize_message(message))
        external.on_state(call, data, RosCodec().reader().read(data), seconds * 10**9)
    assert len(heard) == 4
