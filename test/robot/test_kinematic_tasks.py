"""Inverse kinematics with several tasks: weights, limits, loops, centre of mass, one step."""

from pathlib import Path

import numpy as np
import pytest
from mechanism_table import MECHANISMS
from pinocchio_oracle import example_robots
from scipy.optimize import LinearConstraint, minimize

from rbda_ros import (
    CenterOfMassTask,
    InputError,
    OrientationTask,
    PoseTask,
    PositionTask,
    PostureTask,
    load_robot,
)
from rbda_ros.algorithms.inverse_kinematics import limited_least_squares

CONFIG = Path(__file__).parents[2] / "config" / "robots"
HANDS = ("arm_left_7_link", "arm_right_7_link")
FEET = ("leg_left_6_link", "leg_right_6_link")


def demo_leg():
    return load_robot(CONFIG / "demo_leg.urdf", CONFIG / "demo_leg_loops.yaml")


def talos():
    return load_robot(example_robots()["talos_reduced"], floating_base=True)


def reachable(robot, rng):
    """A random position within the limits, with the base at the origin."""
    q = robot.random_state(rng).q.copy()
    base = robot.coordinates.base_nq
    q[:base] = robot.neutral()[:base]
    return robot.state(q).q


def is_inside(robot, q):
    return np.all(q >= robot.limits.lower - 1e-9) and np.all(q <= robot.limits.upper + 1e-9)


REACHED = {
    "talos": (talos, lambda robot, q: [PoseTask(HANDS[0], robot.frame_pose(q, HANDS[0]))]),
    "demo_leg": (
        demo_leg,
        lambda robot, q: [PositionTask("foot", robot.frame_pose(q, "foot")[:3, 3])],
    ),
    "tello_leg": (
        MECHANISMS["tello_leg"].load,
        lambda robot, q: [PoseTask("foot_link", robot.frame_pose(q, "foot_link"))],
    ),
}


@pytest.mark.parametrize("count", [10, pytest.param(1000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", REACHED)
def test_reaches_99_of_100_targets_within_reach(name, count):
    load, tasks_at = REACHED[name]
    robot, rng, reached = load(), np.random.default_rng(5), 0
    for _ in range(count):
        tasks = tasks_at(robot, reachable(robot, rng))
        found = robot.inverse_kinematics(tasks)
        assert is_inside(robot, found.q)
        state = robot.state(found.q)  # which rejects positions off the loops
        if found.reached:
            assert np.abs(tasks[0].error(robot, state)).max() <= 1e-8
        reached += found.reached
    assert reached >= 0.99 * count


def test_whole_body_with_feet_hand_and_center_of_mass():
    robot = talos()
    start = reachable(robot, np.random.default_rng(1)).copy()
    start[7:] = np.clip(0.3 * start[7:], robot.limits.lower[7:], robot.limits.upper[7:])
    feet = [PoseTask(foot, robot.frame_pose(start, foot)) for foot in FEET]
    hand = robot.frame_pose(start, HANDS[0])[:3, 3] + [0.03, 0.02, 0.05]
    center = robot.center_of_mass(start) + np.array([0.02, 0.01, -0.03])
    tasks = [*feet, PositionTask(HANDS[0], hand), CenterOfMassTask(center)]
    found = robot.inverse_kinematics(tasks, guess=start, move_base=True)
    assert found.reached, found.error
    np.testing.assert_allclose(robot.center_of_mass(found.q), center, 0, 1e-7)
    np.testing.assert_allclose(robot.frame_pose(found.q, HANDS[0])[:3, 3], hand, 0, 1e-7)
    assert not np.allclose(found.q[:7], start[:7])


def test_a_posture_is_kept_as_far_as_the_others_let_it():
    robot = load_robot(example_robots()["panda"])
    rng = np.random.default_rng(2)
    wanted = reachable(robot, rng)
    target = robot.frame_pose(wanted, "panda_hand")[:3, 3]
    start = wanted + np.where(wanted > 0.0, -0.3, 0.3) * (np.arange(9) < 7)
    loose = robot.inverse_kinematics("panda_hand", target, guess=start)
    tasks = [PositionTask("panda_hand", target), PostureTask(wanted)]
    found = robot.inverse_kinematics(tasks, guess=start)
    assert loose.reached and found.reached
    np.testing.assert_allclose(found.q, wanted, 0, 1e-4)
    assert np.abs(loose.q - wanted).max() > 0.1


def test_orientation_alone_and_weights_where_not_both_can_be_met():
    robot = load_robot(example_robots()["panda"])
    rng = np.random.default_rng(3)
    pose = robot.frame_pose(reachable(robot, rng), "panda_hand")
    turned = robot.inverse_kinematics(OrientationTask("panda_hand", pose[:3, :3]))
    assert turned.reached
    np.testing.assert_allclose(
        robot.frame_pose(turned.q, "panda_hand")[:3, :3], pose[:3, :3], 0, 1e-7
    )
    at = pose[:3, 3]
    tasks = [
        PositionTask("panda_hand", at, 3.0),
        PositionTask("panda_hand", at + np.array([0.0, 0.0, 0.04])),
    ]
    between = robot.inverse_kinematics(tasks, restarts=2)
    assert not between.reached
    reached = robot.frame_pose(between.q, "panda_hand")[:3, 3]
    np.testing.assert_allclose(reached, at + np.array([0.0, 0.0, 0.01]), 0, 1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_steps_solve_the_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    n, m, k = rng.integers(2, 9), rng.integers(1, 7), rng.integers(1, 12)
    J, error, G = rng.normal(size=(m, n)), 3 * rng.normal(size=m), rng.normal(size=(k, n))
    low, high = -rng.uniform(0.0, 1.0, k), rng.uniform(0.0, 1.0, k)
    high[rng.random(k) < 0.3] = np.inf
    low[rng.random(k) < 0.2] = 0.0
    x = limited_least_squares(J, error, 1e-2, G, low, high)
    assert np.all(G @ x <= high + 1e-9) and np.all(G @ x >= low - 1e-9)

    def cost(x):
        return np.sum((J @ x - error) ** 2) + 1e-2 * x @ x

    def slope(x):
        return 2 * J.T @ (J @ x - error) + 2e-2 * x

    bounds = LinearConstraint(G, low, high)
    options = {"maxiter": 2000, "ftol": 1e-15}
    oracle = minimize(
        cost, np.zeros(n), jac=slope, constraints=bounds, method="SLSQP", options=options
    )
    assert cost(x) <= cost(oracle.x) + 1e-6 * (1.0 + cost(oracle.x))


def test_cycles_of_a_controller_reach_the_target_within_limits():
    robot, dt = demo_leg(), 0.01
    rng = np.random.default_rng(4)
    q = reachable(robot, rng)
    task = PositionTask("foot", robot.frame_pose(reachable(robot, rng), "foot")[:3, 3])
    q = robot.inverse_kinematics("foot", robot.frame_pose(q, "foot")[:3, 3]).q
    left = [np.linalg.norm(task.error(robot, robot.state(q)))]
    for _ in range(400):
        yd = robot.inverse_kinematics_step(q, task, dt, gain=0.2)
        qd = robot.spanning_velocity(q, yd)
        assert np.all(np.abs(qd) <= robot.limits.velocity + 1e-9)
        q = robot.close(robot.integrate(q, yd, dt), q)
        assert np.all(q >= robot.limits.lower - 1e-4) and np.all(q <= robot.limits.upper + 1e-4)
        left.append(np.linalg.norm(task.error(robot, robot.state(q))))
    assert left[-1] < 1e-4 or left[-1] < 0.2 * left[0]
    assert np.all(np.diff(left) < 1e-6)


def test_mistakes_are_named():
    robot = demo_leg()
    position = PositionTask("foot", [0.0, 0.0, -0.5])
    for tasks, message in (
        ("foot", "give tasks, or a frame with its target"),
        ([7], "7 is no task"),
        ([PositionTask("nobody", [0, 0, 0])], "has no link 'nobody'"),
        ([PositionTask("foot", [0, 0])], "give a finite"),
        ([PositionTask("foot", [0, 0, 0], weight=-1.0)], "weight is -1.0; give a positive number"),
        ([OrientationTask("foot", np.eye(4))], r"\(3, 3\) rotation"),
        ([PostureTask([0.0])], "posture"),
        ([CenterOfMassTask([np.nan] * 3)], "give a finite"),
    ):
        with pytest.raises(InputError, match=message):
            robot.inverse_kinematics(tasks)
    with pytest.raises(InputError, match=r"dt is 0\.0; give a positive number"):
        robot.inverse_kinematics_step(robot.neutral(), position, 0.0)
