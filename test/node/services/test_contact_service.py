"""Forward dynamics in contact, over the service."""

import numpy as np
from contact_oracle import CONTACTS, states
from geometry_msgs.msg import Point
from pinocchio_oracle import assert_close
from rbda_ros.msg import Contact as ContactMessage
from rbda_ros.srv import ConstrainedForwardDynamics
from ros_requests import state_of

from rbda_ros import Contact, Wheel

SERVICE = "~/constrained_forward_dynamics"


def request(robot, state, contacts):
    message = ConstrainedForwardDynamics.Request(state=state_of(robot, state.q, state.yd))
    message.effort = state.tau[6:].tolist()
    for contact in contacts:
        x, y, z = map(float, contact.xyz)
        message.contacts.append(ContactMessage(link=contact.link, offset=Point(x=x, y=y, z=z)))
    return message


def test_equals_the_robot(solo):
    client, _, robot = solo
    _, contacts = CONTACTS["solo on three"]
    for state in states(robot, 2):
        tau = state.tau.copy()
        tau[:6] = 0.0
        answer = client.call(ConstrainedForwardDynamics, SERVICE, request(robot, state, contacts))
        assert answer.success, answer.message
        expected = robot.constrained_forward_dynamics(state.q, state.yd, tau, contacts)
        assert tuple(answer.joint_names) == robot.joint_names
        assert_close(np.array(answer.acceleration), expected.ydd[6:], 1e-12)
        forces = [[w.force.x, w.force.y, w.force.z] for w in answer.contact_wrenches]
        assert_close(np.array(forces), expected.forces[:, :3], 1e-11)
        assert answer.residual < 1e-6
        assert answer.iterations == expected.iterations


def test_starts_from_the_forces_of_the_last_response(solo):
    client, _, robot = solo
    (state,) = states(robot, 1)
    message = request(robot, state, CONTACTS["solo on three"][1])
    message.mu, message.max_iterations, message.tolerance = 10.0 * robot.mass, 400, 1e-9
    cold = client.call(ConstrainedForwardDynamics, SERVICE, message)
    assert cold.success, cold.message
    assert cold.converged
    message.warm_start = cold.contact_wrenches
    warm = client.call(ConstrainedForwardDynamics, SERVICE, message)
    assert warm.iterations < cold.iterations
    assert_close(np.array(warm.acceleration), np.array(cold.acceleration), 1e-7)


def test_takes_two_links_wheels_and_weights(solo):
    client, _, robot = solo
    (state,) = states(robot, 1)
    message = request(robot, state, CONTACTS["solo on three"][1][:2])
    message.contacts[0].to = "base_link"
    message.contacts[1].radius, message.contacts[1].weight = 0.02, 2.0
    answer = client.call(ConstrainedForwardDynamics, SERVICE, message)
    assert answer.success, answer.message
    tau = state.tau.copy()
    tau[:6] = 0.0
    links = [contact.link for contact in message.contacts]
    held = [Contact(links[0], to="base_link"), Wheel(links[1], 0.02, axis=None, weight=2.0)]
    expected = robot.constrained_forward_dynamics(state.q, state.yd, tau, held)
    assert_close(np.array(answer.acceleration), expected.ydd[6:], 1e-12)


def test_says_where_contacts_contradict_each_other(solo):
    client, _, robot = solo
    (state,) = states(robot, 1)
    message = request(robot, state, CONTACTS["solo on three"][1][:1] * 2)
    message.contacts[0].acceleration.linear.z = 1.0
    answer = client.call(ConstrainedForwardDynamics, SERVICE, message)
    assert answer.success
    assert "contradict" in answer.message
    assert answer.residual > 0.1


def test_refuses_unknown_links(solo):
    client, _, robot = solo
    (state,) = states(robot, 1)
    message = request(robot, state, CONTACTS["solo on three"][1][:1])
    message.contacts[0].link = "FL_FEET"
    answer = client.call(ConstrainedForwardDynamics, SERVICE, message)
    assert not answer.success
    assert "FL_FEET" in answer.message
