"""Robot: batches, threads, and independence of ROS."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import assert_close, example_robots

import rbda_ros
from rbda_ros import Derivatives, Robot, load_robot
from rbda_ros.cluster_tree.tree import build_cluster_tree
from rbda_ros.robot.operations import Operations

METHODS = {
    "inverse_dynamics": lambda r, q, yd, x: r.inverse_dynamics(q, yd, x),
    "inverse_dynamics with friction": lambda r, q, yd, x: r.inverse_dynamics(
        q, yd, x, friction=True
    ),
    "forward_dynamics": lambda r, q, yd, x: r.forward_dynamics(q, yd, x),
    "forward_dynamics pushed": lambda r, q, yd, x: r.forward_dynamics(
        q, yd, x, {r.description.links[-1].name: np.ones(6)}
    ),
    "actuator_efforts": lambda r, q, yd, x: r.actuator_efforts(q, x),
    "spanning_velocity": lambda r, q, yd, x: r.spanning_velocity(q, yd),
    "spanning_acceleration": lambda r, q, yd, x: r.spanning_acceleration(q, yd, x),
    "mass_matrix": lambda r, q, yd, x: r.mass_matrix(q),
    "bias_force": lambda r, q, yd, x: r.bias_force(q, yd),
    "gravity_force": lambda r, q, yd, x: r.gravity_force(q),
    "friction_force": lambda r, q, yd, x: r.friction_force(q, yd),
    "frame_pose": lambda r, q, yd, x: r.frame_pose(q, r.description.links[-1].name),
    "jacobian": lambda r, q, yd, x: r.jacobian(q, r.description.links[-1].name),
    "frame_bias_acceleration": lambda r, q, yd, x: r.frame_bias_acceleration(
        q, yd, r.description.links[-1].name
    ),
    "close": lambda r, q, yd, x: r.close(q),
    "inverse_dynamics_derivatives": lambda r, q, yd, x: r.inverse_dynamics_derivatives(q, yd, x),
    "forward_dynamics_derivatives": lambda r, q, yd, x: r.forward_dynamics_derivatives(q, yd, x),
}


def arrays(answer):
    if isinstance(answer, Derivatives):
        return [*vars(answer).values()]
    return [answer]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["four_bar", "rotors", "cam"])
def test_batches_equal_single_calls(name, method):
    robot, _, states = mechanism_states(name)
    q, yd = np.array([s.q for s in states]), np.array([s.yd for s in states])
    x = np.random.default_rng(1).normal(size=yd.shape)
    call = METHODS[method]
    together = arrays(call(robot, q, yd, x))
    single = [arrays(call(robot, *row)) for row in zip(q, yd, x, strict=True)]
    for i, array in enumerate(together):
        assert_close(array, np.array([row[i] for row in single]), 1e-12)
    [none, *_] = arrays(call(robot, q[:0], yd[:0], x[:0]))
    assert none.shape == (0, *together[0].shape[1:])


@pytest.mark.parametrize("name", ["four_bar", "gear"])
def test_single_states_broadcast_along_a_batch(name):
    robot, _, states = mechanism_states(name)
    q, yd = states[0].q, np.array([s.yd for s in states])
    expected = [robot.bias_force(q, row) for row in yd]
    assert_close(robot.bias_force(q, yd), np.array(expected), 1e-12)


def test_spanning_forces_in_batches():
    robot, _, states = mechanism_states("four_bar")
    q = np.array([s.q for s in states])
    tau = np.random.default_rng(2).normal(size=(len(q), robot.nv))
    expected = [robot.generalized_force(*row) for row in zip(q, tau, strict=True)]
    assert_close(robot.generalized_force(q, tau), np.array(expected), 1e-12)


def test_threads_share_a_robot():
    mechanism = MECHANISMS["four_bar"]
    _, _, states = mechanism_states("four_bar")
    robot = Robot(build_cluster_tree(mechanism.tree().description, True))  # nothing traced yet
    x = np.random.default_rng(3).normal(size=(len(states), robot.ny))

    def work(i):
        s = states[i % len(states)]
        return robot.forward_dynamics(s.q, s.yd, x[i % len(states)]), robot.mass_matrix(s.q)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(work, range(400)))
    for i, (ydd, H) in enumerate(answers):
        again, H_again = work(i % len(states))
        assert_close(ydd, again, 1e-12)  # machine code may have come between
        assert_close(H, H_again, 1e-12)


def test_answers_are_new_arrays():
    robot, _, states = mechanism_states("four_bar")
    first = robot.mass_matrix(states[0].q)
    kept = first.copy()
    robot.mass_matrix(states[1].q)
    assert np.array_equal(first, kept)


def test_names_and_sizes():
    robot = MECHANISMS["four_bar"].load()
    assert robot.joint_names == ("crank", "coupler", "rocker", "flag")
    assert (robot.nq, robot.nv, robot.ny) == (11, 10, 8)
    assert len(robot.independent_joint_names) == 2
    assert robot.actuated_joint_names == robot.independent_joint_names
    assert robot.mass == pytest.approx(3 + 0.5 + 0.93 + 0.49 + 0.92 + 1.01)
    [base, loop, flag] = robot.clusters
    assert (loop.constraints, loop.parent) == (("pin",), base.name)
    assert (flag.joints, flag.constraints, flag.parent) == (("flag",), (), loop.name)


def run(code):
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=120
    )


def test_the_core_imports_no_ros():
    code = """
import sys, rbda_ros
ros = ("rclpy", "rosidl", "std_msgs", "sensor_msgs", "rbda_ros.node", "rbda_ros.msg")
found = sorted(name for name in sys.modules if name.startswith(ros))
assert not found, found
"""
    result = run(code)
    assert result.returncode == 0, result.stderr


def test_the_core_works_without_ros():
    code = f"""
import sys
sys.modules["rclpy"] = None  # importing it raises
from rbda_ros import load_robot
robot = load_robot({str(MECHANISMS["gear"].urdf)!r}, {str(MECHANISMS["gear"].loops)!r})
print(robot.inverse_dynamics([0.1, 0.2], [0.3, 0.4], [0.5, 0.6]).shape)
"""
    result = run(code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "(2,)"


def test_floating_base_of_the_urdf_or_of_the_caller():
    panda = example_robots()["panda"]
    fixed, floating = load_robot(panda), load_robot(panda, floating_base=True)
    assert (floating.nq, floating.nv) == (fixed.nq + 7, fixed.nv + 6)
    assert floating.joint_names == fixed.joint_names
    q = np.full(fixed.nq, 0.03)
    at_origin = np.concatenate([[0, 0, 0, 0, 0, 0, 1], q])
    assert_close(floating.mass_matrix(at_origin)[6:, 6:], fixed.mass_matrix(q), 1e-12)


@pytest.mark.parametrize("name", MECHANISMS)
def test_closure_by_the_kernel_stays_on_the_branch_that_the_search_takes(name):
    robot, _, states = mechanism_states(name)
    positions = robot.tree.independent if robot.nq == robot.nv else None
    for state in states:
        if positions is not None:
            y = state.q[list(positions)]
            np.testing.assert_allclose(robot.close(y), robot._closer.search(y, None), 0, 1e-8)
        # Given whole, a position stays where it is, whatever the branch of the assembly.
        np.testing.assert_allclose(robot.close(state.q), state.q, 0, 1e-8)


def test_kernels_of_frames_do_not_pile_up(monkeypatch):
    monkeypatch.setattr("rbda_ros.kernels.cache.MAX_KERNELS", 3)
    robot = Robot(build_cluster_tree(MECHANISMS["gear"].tree().description))
    q, link = robot.tree.home, robot.clusters[-1].links[-1]
    points = [(link, (0.1 * k, 0.0, 0.0)) for k in range(5)]
    first = robot.kernel("jacobian", points[0])
    answers = [robot.kernel("jacobian", point).call(q)[0] for point in points]
    assert robot.kernel("jacobian", points[-1]) is robot.kernel("jacobian", points[-1])
    assert robot.kernel("jacobian", points[0]) is not first
    np.testing.assert_array_equal(robot.kernel("jacobian", points[0]).call(q)[0], answers[0])


def test_any_point_of_a_link_needs_no_kernel_of_its_own():
    robot = Robot(build_cluster_tree(MECHANISMS["gear"].tree().description))
    q, link = robot.tree.home, robot.clusters[-1].links[-1]
    for k in range(1, 5):
        point = link, (0.1 * k, 0.2, -0.3)
        expected = robot.kernel("jacobian", point).call(q)[0]
        np.testing.assert_allclose(robot.jacobian(q, point).ravel(), expected, 1e-12, 1e-12)
        robot.operational_space_inertia(q, [point, link])
    by_points = [key[0] for key in robot._kernels.kernels() if key[0].endswith("_at")]
    assert sorted(by_points) == ["jacobian_at", "operational_space_at"]


ABOVE = ("control", "node", "recordings", "view", "demo", "examples", "cli")
"""Packages that use a robot by its public members; ``exports`` traces programs of the tree."""


@pytest.mark.parametrize("package", ABOVE)
def test_packages_above_do_not_use_the_tree_of_a_robot(package):
    folder = Path(rbda_ros.__file__).parent / package
    inside = re.compile(r"\b_?robot\.tree\b")
    found = [
        f"{path.name}:{number}"
        for path in sorted(folder.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if inside.search(line)
    ]
    assert not found, "give Robot a public member for it"


def test_robot_has_no_base_but_its_operations():
    assert Robot.__bases__ == (Operations,)


def test_poses_of_bodies_are_those_of_their_links():
    for name in ("four_bar", "spherical_cut"):
        robot = MECHANISMS[name].load()
        q = robot.neutral()
        R, p = (np.asarray(each) for each in robot.body_pose_function()(q))
        for k, body in enumerate(robot.spanning_tree.bodies):
            place = robot.spanning_tree.links[body.name]
            pose = robot.frame_pose(q, body.name)
            np.testing.assert_allclose(
                R[3 * k : 3 * k + 3] @ place.frame.R, pose[:3, :3], atol=1e-12
            )
            origin = p[3 * k : 3 * k + 3, 0] + R[3 * k : 3 * k + 3] @ place.frame.p
            np.testing.assert_allclose(origin, pose[:3, 3], atol=1e-12)
