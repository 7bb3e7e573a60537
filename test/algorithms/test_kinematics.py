"""Poses, Jacobians and bias accelerations of frames, against Pinocchio and generalized_rbda."""

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import (
    assert_close,
    distinct_robots,
    example_robot,
    explicit_jacobian,
    random_state,
    some_by_day,
)
from reference_data import ANGULAR_FIRST, REFERENCE_ROBOTS, reference

from rbda_ros import load_robot

ROBOTS = distinct_robots()
OFFSET = ((0.1, -0.2, 0.3), (0.4, -0.5, 0.6))


def frames_of(robot, count):
    """Some links, spread over the robot from root to last, every other one with an offset."""
    links = [link.name for link in robot.description.links]
    some = [links[int(i)] for i in np.linspace(0, len(links) - 1, count)]
    return [(link, *OFFSET) if i % 2 else link for i, link in enumerate(some)]


def check(robot, oracle, q, qd, frame, G, g):
    # Rotations whose angles URDFs round are made exact: up to 1e-10 for every joint on the way.
    assert_close(robot.frame_pose(q, frame), oracle.frame_pose(q, frame), 1e-9)
    assert_close(robot.jacobian(q, frame), oracle.jacobian(q, frame) @ G, 1e-9)
    bias = oracle.frame_acceleration(q, qd, g, frame)
    assert_close(robot.frame_bias_acceleration(q, qd, frame), bias, 1e-9)


# Fixed bases are the mechanisms' and the chosen robots' here; every robot floats.
CASES = some_by_day(ROBOTS, floating_base=True) + [
    (name, False) for name in ("panda", "ur5_robot", "talos_full_v2", "tiago_pro")
]


@pytest.mark.parametrize(("name", "floating_base"), CASES)
def test_equals_pinocchio(name, floating_base):
    robot, oracle = example_robot(name, floating_base)
    rng = np.random.default_rng(1)
    frames = frames_of(robot, 3)[1:]
    for _ in range(5):
        q, qd, _ = random_state(robot, rng)
        G = explicit_jacobian(robot, q) if robot.nv != robot.ny else np.eye(robot.nv)
        g = robot.spanning_acceleration(q, qd, np.zeros(robot.ny))
        for frame in frames:
            check(robot, oracle, q, qd, frame, G, g)


@pytest.mark.parametrize("name", MECHANISMS)
def test_equals_pinocchio_projected_onto_the_loops(name):
    robot, oracle, states = mechanism_states(name)
    frames = frames_of(robot, 4)
    for s in states:
        for frame in frames:
            check(robot, oracle, s.q, s.qd, frame, s.G, s.g)


@pytest.mark.parametrize("name", REFERENCE_ROBOTS)
def test_equals_reference(name):
    ref = reference(name)
    for state in ref.states:
        q = ref.position(state)
        for point in ref.data["contact_points"]:
            expected = state["contacts"][point["name"]]
            frame = (point["body"], point["local_offset"])
            J = ref.robot.jacobian(q, frame)
            position = ref.robot.frame_pose(q, frame)[:3, 3]
            assert_close(position, np.array(expected["position"]), 1e-9)
            assert_close(J[ANGULAR_FIRST], ref.columns(expected["J_world"]), 1e-9)
            velocity = J[:3] @ ref.independent(state["yd"])
            assert_close(velocity, np.array(expected["velocity"]), 1e-9)
        for link, pose in state["body_poses"].items():
            ours = ref.robot.frame_pose(q, link)
            assert_close(ours[:3, :3], np.array(pose["R_body_to_world"]), 1e-9)
            assert_close(ours[:3, 3], np.array(pose["p"]), 1e-9)
            if ref.robot.ny > 12:
                break  # one link of the large robots: a kernel for each is traced


def test_frame_on_the_fixed_base_does_not_move():
    robot = load_robot(ROBOTS["panda"])
    q, qd = np.full(robot.nq, 0.3), np.ones(robot.nv)
    root = robot.description.root
    assert np.array_equal(robot.frame_pose(q, root), np.eye(4))
    assert not robot.jacobian(q, root).any()
    assert not robot.frame_bias_acceleration(q, qd, root).any()
