"""Efforts along whole trajectories."""

import time

import numpy as np
import pytest
from geometry_msgs.msg import Accel, Inertia, Twist
from pinocchio_oracle import PinocchioOracle, random_state
from rbda_ros.srv import SetPayload, TrajectoryInverseDynamics
from ros_requests import pose_of, set_six, six_of, wrench_on
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file

SECONDS = 2.0


def trajectory_of(names, positions, velocities=None, accelerations=None):
    trajectory = JointTrajectory(joint_names=list(names))
    for k, position in enumerate(positions):
        point = JointTrajectoryPoint(positions=position.tolist())
        if velocities is not None:
            point.velocities = velocities[k].tolist()
        if accelerations is not None:
            point.accelerations = accelerations[k].tolist()
        seconds = SECONDS * k / max(1, len(positions) - 1)
        point.time_from_start.sec = int(seconds)
        point.time_from_start.nanosec = round(1e9 * (seconds % 1.0))
        trajectory.points.append(point)
    return trajectory


def ask(client, trajectory, **extra):
    request = TrajectoryInverseDynamics.Request(trajectory=trajectory, **extra)
    return client.call(TrajectoryInverseDynamics, "~/trajectory_inverse_dynamics", request)


def rows(answer, field):
    return np.array([getattr(point, field) for point in answer.trajectory.points])


def swing(robot, count=20):
    """A motion of the demo leg: q (N, nq), qd and qdd (N, nv), ydd (N, ny)."""
    t = np.linspace(0.0, 2 * np.pi, count)[:, None]
    middle, size = np.array([0.0, 0.3, 0.9, -0.1]), np.array([0.1, 0.4, 0.5, 0.2])
    q = robot.close(middle + size * np.sin(t))
    yd, ydd = size * np.cos(t), -size * np.sin(t)
    return q, robot.spanning_velocity(q, yd), robot.spanning_acceleration(q, yd, ydd), ydd


def test_every_point_equals_the_robot(leg):
    client, _, robot = leg
    q, qd, qdd, ydd = swing(robot)
    order = np.random.default_rng(1).permutation(robot.nv)
    names = [robot.joint_names[k] for k in order]
    asked = trajectory_of(names, q[:, order], qd[:, order], qdd[:, order])
    answer = ask(client, asked, external_wrenches=[wrench_on("foot", [0, 0, 50, 0, 0, 0])])
    assert answer.success, answer.message
    assert tuple(answer.trajectory.joint_names) == robot.actuated_joint_names
    push = {"foot": np.array([0.0, 0, 50, 0, 0, 0])}
    expected = robot.actuator_efforts(q, robot.inverse_dynamics(q, qd, ydd, push))
    np.testing.assert_allclose(rows(answer, "effort"), expected, 1e-9, 1e-9)
    motors = [robot.joint_names.index(name) for name in robot.actuated_joint_names]
    np.testing.assert_allclose(rows(answer, "positions"), q[:, motors], 1e-9, 1e-9)
    np.testing.assert_allclose(rows(answer, "velocities"), qd[:, motors], 1e-9, 1e-9)
    np.testing.assert_allclose(rows(answer, "accelerations"), qdd[:, motors], 1e-9, 1e-9)
    times = [point.time_from_start for point in asked.points]
    assert [point.time_from_start for point in answer.trajectory.points] == times
    assert answer.base_wrenches == []


def test_other_joints_of_the_loops_may_say_the_motion(leg):
    client, _, robot = leg
    q, qd, qdd, ydd = swing(robot)
    seen = ["knee_rotor", "hip_abduction_rotor", "hip_flexion", "ankle_pulley"]
    columns = [robot.joint_names.index(name) for name in seen]
    answer = ask(client, trajectory_of(seen, q[:, columns], qd[:, columns], qdd[:, columns]))
    assert answer.success, answer.message
    expected = robot.actuator_efforts(q, robot.inverse_dynamics(q, qd, ydd))
    np.testing.assert_allclose(rows(answer, "effort"), expected, 1e-7, 1e-7)


def test_a_floating_base_equals_pinocchio(solo):
    client, urdf, robot = solo
    oracle, rng = PinocchioOracle(urdf, robot), np.random.default_rng(2)
    states = [random_state(robot, rng) for _ in range(5)]
    q, qd, ydd = (np.array(column) for column in zip(*states, strict=True))
    request = {
        "base_poses": [pose_of(row) for row in q],
        "base_twists": [Twist() for _ in q],
        "base_accelerations": [Accel() for _ in q],
    }
    for k in range(len(q)):
        set_six(request["base_twists"][k], qd[k])
        set_six(request["base_accelerations"][k], ydd[k])
    asked = trajectory_of(robot.joint_names, q[:, 7:], qd[:, 6:], ydd[:, 6:])
    answer = ask(client, asked, **request)
    assert answer.success, answer.message
    wrenches = np.array([six_of(w.force, w.torque) for w in answer.base_wrenches])
    found = np.hstack([wrenches, rows(answer, "effort")])
    expected = np.array([oracle.rnea(*state) for state in states])
    np.testing.assert_allclose(found, expected, 1e-9, 1e-9)


def test_what_is_left_out_is_zero(arm):
    client, urdf, robot = arm
    positions = np.random.default_rng(3).uniform(-1.0, 1.0, (3, 6))
    answer = ask(client, trajectory_of([], positions))
    assert answer.success, answer.message
    oracle, zero = PinocchioOracle(urdf, robot), np.zeros(6)
    expected = [oracle.rnea(row, zero, zero) for row in positions]
    np.testing.assert_allclose(rows(answer, "effort"), expected, 1e-9, 1e-9)


def test_differentiates_if_asked(arm):
    """A motion that is a cubic in time and at rest at both ends is what the spline finds."""
    client, urdf, robot = arm
    s, T = np.linspace(0.0, 1.0, 9)[:, None], SECONDS
    size = np.arange(1.0, 7.0) / 6
    positions, velocities = size * (3 * s**2 - 2 * s**3), size * (6 * s - 6 * s**2) / T
    accelerations = size * (6 - 12 * s) / T**2
    oracle = PinocchioOracle(urdf, robot)
    motion = zip(positions, velocities, accelerations, strict=True)
    expected = [oracle.rnea(*row) for row in motion]
    for asked in (
        trajectory_of(robot.joint_names, positions),
        trajectory_of(robot.joint_names, positions, velocities),
    ):
        answer = ask(client, asked, differentiate=True)
        assert answer.success, answer.message
        np.testing.assert_allclose(rows(answer, "effort"), expected, 1e-6, 1e-6)


NAN = float("nan")


def broken(**changes):
    """Three points of an arm at zero, one of them changed."""
    trajectory = trajectory_of([], np.zeros((3, 6)), np.zeros((3, 6)))
    for name, value in changes.items():
        setattr(trajectory.points[2], name, value)
    return trajectory


@pytest.mark.parametrize(
    ("trajectory", "extra", "says"),
    [
        (JointTrajectory(), {}, "no points"),
        (broken(positions=[0.0] * 5), {}, "points[2].positions has 5 numbers for 6 joints"),
        (broken(velocities=[]), {}, "points[2].velocities has 0 numbers"),
        (broken(accelerations=[0.0] * 6), {}, "points[0].accelerations has 0 numbers"),
        (broken(positions=[0.0] * 5 + [NAN]), {}, "points[2].positions is not finite"),
        (trajectory_of(["elbow"], np.zeros((1, 1))), {}, "unknown joints: elbow"),
        (trajectory_of(["elbow_joint"], np.zeros((1, 1))), {}, "joints missing"),
        (trajectory_of([], np.zeros((1, 6))), {"differentiate": True}, "two points"),
    ],
)
def test_refuses_what_it_cannot_answer(arm, trajectory, extra, says):
    client, _, _ = arm
    answer = ask(client, trajectory, **extra)
    assert not answer.success
    assert says in answer.message
    assert answer.trajectory.points == []


def test_names_the_point_at_which_the_loops_do_not_close(leg):
    client, _, robot = leg
    positions = np.array([[0.0, 0.3, 0.9, -0.1], [0.0, 0.3, 0.9, 0.0], [0.0, 0.3, 0.9, 30.0]])
    answer = ask(client, trajectory_of(robot.independent_joint_names, positions))
    assert not answer.success
    assert answer.message.startswith("points[2]: ")
    assert "ankle_linkage" in answer.message


def test_efforts_keep_coming_while_a_long_trajectory_is_answered(leg):
    """Joint states are answered between asking and the answer, in the same process."""
    client, _, robot = leg
    q, qd, qdd, _ = swing(robot, 4000)
    asked = trajectory_of(robot.joint_names, q, qd, qdd)
    efforts = client.listen(JointState, "~/feedforward")
    states = client.publisher(JointState, "joint_states")
    ask(client, trajectory_of(robot.joint_names, q[:1]))
    service = client.node.create_client(
        TrajectoryInverseDynamics, "dynamics/trajectory_inverse_dynamics"
    )
    client.until(service.service_is_ready)
    client.spin(0.2)
    y = robot.independent_position(q[0])
    future = service.call_async(TrajectoryInverseDynamics.Request(trajectory=asked))
    efforts.clear()

    def answered():
        states.publish(client.joint_states(robot.independent_joint_names, y, np.zeros(4)))
        time.sleep(0.002)
        return future.done()

    client.until(answered)
    assert future.result().success, future.result().message
    assert len(future.result().trajectory.points) == 4000
    assert len(efforts) > 5


def test_ends_cleanly_in_the_midst_of_long_answers(graph):
    """Python must not end beneath the thread that answers them."""
    urdf, loops = (share_file(f"config/robots/demo_leg{end}") for end in (".urdf", "_loops.yaml"))
    node = graph.serve(robot_description=urdf.read_text(), loop_constraints=str(loops))
    client, robot = graph.client(), load_robot(urdf, loops)
    client.until_active()
    q, qd, qdd, _ = swing(robot, 4000)
    asked = TrajectoryInverseDynamics.Request(
        trajectory=trajectory_of(robot.joint_names, q, qd, qdd)
    )
    load = SetPayload.Request(name="box", link="foot", inertia=Inertia(m=1.0))
    for kind, name, request in (
        (TrajectoryInverseDynamics, "trajectory_inverse_dynamics", asked),
        (SetPayload, "set_payload", load),
    ):
        service = client.node.create_client(kind, f"dynamics/{name}")
        client.until(service.service_is_ready)
        service.call_async(request)
    client.spin(0.3)
    assert node.stop() == 0
    assert "Fatal" not in node.log and "Traceback" not in node.log
