"""Payloads against Pinocchio, whose model gets the same load on the same link."""

import numpy as np
import pinocchio as pin
import pytest
from loop_oracle import LoopOracle, mechanism_states
from pinocchio_oracle import assert_close

from rbda_ros import InputError, Payload

# An off-centre load whose inertia is that of a body, in axes that are not its own.
BOX = (2.5, (0.05, -0.12, 0.2), (0.03, 0.004, -0.002, 0.025, 0.003, 0.02))
BALL = (0.8, (-0.1, 0.0, 0.02), (0.001, 0.0, 0.0, 0.001, 0.0, 0.001))


def loaded_oracle(robot, payloads):
    """Pinocchio's spanning tree of the robot, with the payloads appended to its bodies."""
    oracle = LoopOracle(robot)
    for payload in payloads.values():
        frame = oracle.model.frames[oracle.model.getFrameId(payload.link, pin.BODY)]
        ixx, ixy, ixz, iyy, iyz, izz = payload.inertia
        tensor = np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
        load = pin.Inertia(payload.mass, np.array(payload.com), tensor)
        oracle.model.appendBodyToJoint(frame.parentJoint, load, frame.placement)
    oracle.data = oracle.model.createData()
    return oracle


# Loops, loops on a floating base, rotors that lose their symmetry, several coordinates a joint.
@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "rotors", "ball_joint_loop"])
def test_payloads_equal_pinocchio_with_the_same_loads(name):
    robot, _, states = mechanism_states(name)
    payloads = {
        f"load {k}": Payload(link.name, *(BOX, BALL)[k % 2])
        for k, link in enumerate(robot.description.links)
    }
    loaded, oracle = robot.with_payloads(payloads), loaded_oracle(robot, payloads)
    rng = np.random.default_rng(1)
    for state in states[:5]:
        q, yd, ydd = state.q, state.yd, rng.normal(size=robot.ny)
        expected = state.G.T @ oracle.rnea(q, state.qd, state.G @ ydd + state.g)
        assert_close(loaded.inverse_dynamics(q, yd, ydd), expected, 1e-9)
        assert_close(loaded.mass_matrix(q), state.G.T @ oracle.mass_matrix(q) @ state.G, 1e-9)
        assert_close(loaded.forward_dynamics(q, yd, expected), ydd, 1e-7)


def test_total_mass_counts_what_moves():
    robot, _, _ = mechanism_states("gear")
    moving, fixed = robot.clusters[0].links[0], robot.description.root
    payloads = {"on": Payload(moving, 2.0), "at rest": Payload(fixed, 3.0)}
    assert robot.with_payloads(payloads).mass == pytest.approx(robot.mass + 2.0)


def test_without_its_payloads_it_is_the_robot_of_before():
    robot, _, states = mechanism_states("four_bar")
    q, yd = states[0].q, states[0].yd
    before = robot.bias_force(q, yd)
    link = robot.clusters[-1].links[-1]
    loaded = robot.with_payloads({"box": Payload(link, *BOX)})
    assert not np.array_equal(loaded.bias_force(q, yd), before)
    # The next set of payloads takes the place of this one.
    other = loaded.with_payloads({"ball": Payload(link, *BALL)})
    assert set(other.payloads) == {"ball"}
    assert other.with_payloads({}) is robot
    assert np.array_equal(robot.bias_force(q, yd), before)


def test_kernels_without_inertia_are_shared():
    robot, _, states = mechanism_states("four_bar")
    loaded = robot.with_payloads({"box": Payload(robot.clusters[-1].links[-1], *BOX)})
    q = states[0].q
    assert np.array_equal(loaded.close(robot.independent_position(q), guess=q), robot.close(q, q))
    assert loaded.kernel("loop_state") is robot.kernel("loop_state")
    assert loaded.kernel("inverse_dynamics") is not robot.kernel("inverse_dynamics")


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (Payload("nowhere", 1.0), "no link 'nowhere'"),
        (Payload("crank_link", -1.0), "mass -1"),
        (Payload("crank_link", 0.0), "mass 0"),
        (Payload("crank_link", float("nan")), "not finite"),
        (Payload("crank_link", 1.0, (0.0, float("inf"), 0.0)), "not finite"),
        (Payload("crank_link", 1.0, (0.0, 0.0)), "three numbers"),
        (
            Payload("crank_link", 1.0, (0, 0, 0), (-1.0, 0, 0, 1.0, 0, 1.0)),
            "negative principal moment",
        ),
        (Payload("crank_link", 1.0, (0, 0, 0), (1.0, 0, 0, 1.0, 0, 3.0)), "triangle inequality"),
    ],
)
def test_refuses_what_no_body_can_be(payload, says):
    robot, _, _ = mechanism_states("four_bar")
    with pytest.raises(InputError, match=says) as refused:
        robot.with_payloads({"box": payload})
    assert "payload 'box'" in str(refused.value)
