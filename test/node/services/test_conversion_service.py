"""Motors to joints and back over services."""

import numpy as np
import pytest
from rbda_ros.srv import ConvertState, ConvertTrajectory
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

JOINTS = ("hip_abduction", "hip_flexion", "knee", "ankle")
Y = [0.1, 0.2, 0.9, 0.1]


def convert(client, **fields):
    return client.call(ConvertState, "~/convert_state", ConvertState.Request(**fields))


def convert_trajectory(client, trajectory, **extra):
    request = ConvertTrajectory.Request(trajectory=trajectory, **extra)
    return client.call(ConvertTrajectory, "~/convert_trajectory", request)


def rows(answer, field):
    return np.array([getattr(point, field) for point in answer.trajectory.points])


def swing(count, size=0.2):
    """Positions, velocities and accelerations (N, 4) of the leg's joints."""
    t = np.linspace(0.0, 2 * np.pi, count)[:, None] + np.arange(4)
    return np.array(Y) + size * np.sin(t), size * np.cos(t), -size * np.sin(t)


def trajectory_of(names, *fields):
    trajectory = JointTrajectory(joint_names=list(names))
    for k, point in enumerate(zip(*fields, strict=True)):
        values = dict(
            zip(("positions", "velocities", "accelerations", "effort"), point, strict=False)
        )
        trajectory.points.append(
            JointTrajectoryPoint(**{name: value.tolist() for name, value in values.items()})
        )
        trajectory.points[-1].time_from_start.nanosec = 1000 * k
    return trajectory


def test_motors_and_back(leg):
    client, _, robot = leg
    motors = list(robot.actuated_joint_names)
    velocity, acceleration, effort = (
        [1.0, -2.0, 3.0, 0.5],
        [4.0, 3.0, 2.0, 1.0],
        [5.0, 6.0, -7.0, 8.0],
    )
    there = convert(
        client,
        joint_names=JOINTS,
        position=Y,
        velocity=velocity,
        acceleration=acceleration,
        effort=effort,
        target_joint_names=motors,
    )
    assert there.success, there.message
    assert list(there.joint_names) == motors
    power = np.dot(there.effort, there.velocity)
    assert power == pytest.approx(np.dot(effort, velocity), rel=1e-12)
    np.testing.assert_allclose(there.velocity[:2], [9.0, -18.0], rtol=1e-12)
    np.testing.assert_allclose(there.effort[:2], [5.0 / 9.0, 6.0 / 9.0], rtol=1e-12)
    back = convert(
        client,
        joint_names=there.joint_names,
        position=there.position,
        velocity=there.velocity,
        acceleration=there.acceleration,
        effort=there.effort,
        target_joint_names=JOINTS,
    )
    assert back.success, back.message
    for found, given in (
        (back.position, Y),
        (back.velocity, velocity),
        (back.acceleration, acceleration),
        (back.effort, effort),
    ):
        np.testing.assert_allclose(found, given, rtol=1e-10, atol=1e-10)


def test_no_target_is_every_joint(leg):
    client, _, robot = leg
    answer = convert(client, position=Y)
    assert answer.success, answer.message
    assert tuple(answer.joint_names) == robot.joint_names
    np.testing.assert_allclose(answer.position, robot.close(Y), atol=1e-9)
    assert not np.any(answer.velocity)
    assert not np.any(answer.effort)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"position": Y[:3]}, "position has 3 numbers for 4 joints"),
        ({"position": [*Y[:3], float("nan")]}, "position is not finite"),
        ({"position": [*Y[:3], 9.0]}, "out of its reach"),
        ({"joint_names": ["knee"], "position": [0.1]}, "hip_abduction"),
        ({"joint_names": ["kne"], "position": [0.1]}, "unknown joints: kne"),
        ({"position": Y, "target_joint_names": ["toe"]}, "no moving joint toe"),
        (
            {"position": Y, "effort": [0.0, 0, 1, 0], "target_joint_names": ["hip_flexion_rotor"]},
            "hip_flexion_rotor cannot give the force on",
        ),
    ],
)
def test_mistakes_are_named(leg, fields, says):
    client, _, _ = leg
    answer = convert(client, **fields)
    assert not answer.success
    assert says in answer.message
    assert len(answer.position) == 0


def test_ten_thousand_points_at_once(leg):
    client, _, robot = leg
    q, qd, qdd = swing(10_000)
    asked = trajectory_of(JOINTS, q, qd, qdd)
    answer = convert_trajectory(client, asked, fill_effort=True)
    assert answer.success, answer.message
    motors = robot.actuated_joint_names
    assert tuple(answer.trajectory.joint_names) == motors
    closed = robot.close(q)
    places = [robot.joint_names.index(name) for name in motors]
    np.testing.assert_allclose(rows(answer, "positions"), closed[:, places], atol=1e-8)
    effort, _ = robot.inverse_dynamics_efforts(closed, qd, qdd)
    np.testing.assert_allclose(rows(answer, "effort"), effort, rtol=1e-7, atol=1e-7)
    assert answer.trajectory.points[-1].time_from_start == asked.points[-1].time_from_start


def test_trajectory_there_and_back(leg):
    client, _, _ = leg
    given = [*swing(50), np.random.default_rng(0).normal(size=(50, 4))]
    there = convert_trajectory(client, trajectory_of(JOINTS, *given))
    assert there.success, there.message
    back = convert_trajectory(client, there.trajectory, target_joint_names=JOINTS)
    assert back.success, back.message
    for field, wanted in zip(
        ("positions", "velocities", "accelerations", "effort"), given, strict=True
    ):
        np.testing.assert_allclose(rows(back, field), wanted, rtol=1e-9, atol=1e-9)


def test_what_is_not_given_stays_empty(leg):
    client, _, _ = leg
    answer = convert_trajectory(client, trajectory_of(JOINTS, swing(5)[0]))
    assert answer.success, answer.message
    assert all(len(point.positions) == 4 for point in answer.trajectory.points)
    assert not any(len(point.velocities) or len(point.effort) for point in answer.trajectory.points)


def test_limits_are_named_with_joint_and_point(leg):
    client, _, _ = leg
    q, qd, _ = swing(20)
    q[7, 1], qd[3, 2] = 1.9, 20.0
    asked = trajectory_of(JOINTS, q, qd)
    refused = convert_trajectory(client, asked, target_joint_names=JOINTS)
    assert not refused.success
    assert "points[7]: position of hip_flexion is 1.9, limits -1.6 to 1.6" in refused.violations
    assert "points[3]: velocity of knee is 20, limit 15" in refused.violations
    assert refused.trajectory.points == []
    allowed = convert_trajectory(client, asked, target_joint_names=JOINTS, allow_violations=True)
    assert allowed.success, allowed.message
    assert allowed.violations == refused.violations
    assert len(allowed.trajectory.points) == 20


def test_efforts_beyond_limits_are_named(leg):
    client, _, _ = leg
    q, qd, qdd = swing(20)
    effort = np.zeros((20, 4))
    effort[5, 2] = 90.0
    asked = trajectory_of(JOINTS, q, qd, qdd, effort)
    answer = convert_trajectory(client, asked, target_joint_names=JOINTS)
    assert not answer.success
    assert list(answer.violations) == ["points[5]: effort of knee is 90, limit 60"]


def test_points_that_cannot_be_are_named(leg):
    client, _, _ = leg
    q = swing(20)[0]
    q[11, 3] = 3.0
    answer = convert_trajectory(client, trajectory_of(JOINTS, q))
    assert not answer.success
    assert "points[11]" in answer.message
    q[11, 3] = np.nan
    assert (
        "points[11].positions is not finite"
        in convert_trajectory(client, trajectory_of(JOINTS, q)).message
    )
    assert "no points" in convert_trajectory(client, JointTrajectory()).message
