"""External efforts of a robot that moves, in the node: motions by hand, forces by Pinocchio.

Positions, velocities and accelerations are prescribed; the efforts that they take, less those of a
known force on a foot, come from Pinocchio's terms and are what drivers would measure. So all that
the node can find is the force, behind the observer's lag.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from conversation import Diagnoses
from geometry_msgs.msg import WrenchStamped
from loop_oracle import LoopOracle
from nav_msgs.msg import Odometry
from node_fixtures import example_robot as path_of
from pinocchio_oracle import example_robot
from ros_requests import odometry_of
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file

LEG = share_file("config/robots/demo_leg.urdf")
LOOPS = share_file("config/robots/demo_leg_loops.yaml")
STEP, SECONDS, BEGIN = 2e-3, 0.6, 0.15  # [s] between messages, of the motion, before the push
GAIN = 50.0
DAMPING, FRICTION = 0.4, 0.3  # of the knee [N m s/rad, N m]


@dataclass(frozen=True, eq=False)
class Sample:
    """One state, the efforts that are measured there, and the force on y that comes from outside.

    Attributes:
        q, qd: spanning position and velocity.
        efforts: of the motors.
        outside: on the independent joints.
    """

    q: np.ndarray
    qd: np.ndarray
    efforts: np.ndarray
    outside: np.ndarray


def pushes(k):
    """Whether the foot is pushed at a sample."""
    return float(k * STEP >= BEGIN)


def behind(samples):
    """r of ``dr/dt = gain (outside - r)``, at each sample, in ten steps between two."""
    r, found = np.zeros_like(samples[0].outside), []
    share = -np.expm1(-GAIN * STEP / 10)
    for before, after in zip([samples[0], *samples[:-1]], samples, strict=True):
        for part in np.linspace(0.05, 0.95, 10):
            r = r + share * (before.outside + part * (after.outside - before.outside) - r)
        found.append(r)
    return np.array(found)


def played(client, samples, names, of, before=lambda sample, stamp: None):
    """External efforts (N, ny) that the node publishes for a motion, by the number of the sample.

    Args:
        client: talks to the node.
        samples: of the motion.
        names: of the motors.
        of: places of the motors in q and qd.
        before: what is published before each state.
    """
    publisher = client.publisher(JointState, "joint_states")
    received = client.listen(JointState, "~/external_effort")
    first = client.joint_states(names, samples[0].q[of[0]], np.zeros(len(names)))
    first.effort = [0.0] * len(names)
    client.until(lambda: publisher.get_subscription_count() > 0)

    def warm():
        first.header.stamp.sec += 2  # so late after the last one that it begins anew
        before(samples[0], first.header.stamp)
        client.spin(0.01)
        publisher.publish(first)
        client.spin(0.01)
        return received

    client.until(warm)
    numbers = {}
    start = (first.header.stamp.sec + 2) * 10**9
    for k, sample in enumerate(samples):
        message = client.joint_states(names, sample.q[of[0]], sample.qd[of[1]])
        stamp = message.header.stamp
        stamp.sec, stamp.nanosec = divmod(start + round(k * STEP * 1e9), 10**9)
        message.effort = sample.efforts.tolist()
        numbers[stamp.sec, stamp.nanosec] = k
        before(sample, stamp)
        publisher.publish(message)
        for _ in range(100):  # one after the other: a queue that runs over loses some
            client.spin(STEP)
            if received[-1].header.stamp == stamp:
                break
    stamped = {(m.header.stamp.sec, m.header.stamp.nanosec): m for m in received}
    found = {k: np.array(stamped[at].effort) for at, k in numbers.items() if at in stamped}
    assert len(found) > 0.9 * len(samples)  # the topic is best-effort
    return found


def check(samples, found):
    """To 1 % but for the push's first tenth of a second: steps of the observer are implicit."""
    wanted = behind(samples)
    size = np.abs(wanted).max()
    for k, effort in found.items():
        begins = 0.0 <= k * STEP - BEGIN < 0.1
        np.testing.assert_allclose(effort, wanted[k], atol=(0.05 if begins else 0.01) * size)


def test_a_push_on_the_moving_leg_with_friction(graph):
    """From the motors' efforts; the knee rubs; the force at an end effector beside the foot."""
    limit = '<limit lower="0.05" upper="2.4" velocity="15" effort="60"/>'
    text = LEG.read_text()
    assert text.count(limit) == 1
    text = text.replace(limit, f'{limit}<dynamics damping="{DAMPING}" friction="{FRICTION}"/>')
    robot = load_robot(text, LOOPS)
    point, force = [0.05, 0.0, -0.02], np.array([15.0, -8.0, 30.0])
    samples = motion_of_the_leg(robot, ("foot", point), force)
    graph.serve(
        robot_description=text,
        loop_constraints=str(LOOPS),
        publish_external_effort=True,
        observer_gain=GAIN,
        joint_state_timeout=0.0,
        end_effectors=f"{{toe: {{link: foot, xyz: {point}}}}}",
        contact_end_effector="toe",
        contact_threshold=2.0,
    )
    client = graph.client()
    client.until_active()
    wrenches = client.listen(WrenchStamped, "~/estimated_wrench")
    motors = robot.actuated_joint_names
    of = [robot.joint_names.index(name) for name in motors]
    diagnoses = Diagnoses(client)
    found = played(client, samples, motors, (of, of))
    check(samples, found)
    still = [np.abs(effort).max() for k, effort in found.items() if not pushes(k)]
    assert max(still) < 0.01 * np.abs(samples[-1].outside).max()
    # In the frame of the foot, and at its origin; the lag is part of the tolerance.
    R = robot.frame_pose(samples[-1].q, "foot")[:3, :3]
    wrench = wrenches[-1].wrench
    assert wrenches[-1].header.frame_id == "foot"
    at_origin = np.array([wrench.force.x, wrench.force.y, wrench.force.z])
    np.testing.assert_allclose(R @ at_origin, force, atol=0.04 * np.linalg.norm(force))
    moment = [wrench.torque.x, wrench.torque.y, wrench.torque.z]
    np.testing.assert_allclose(moment, np.cross(point, at_origin), atol=1e-9)
    _, values = diagnoses.next()
    assert values["contact"] == "True"


def motion_of_the_leg(robot, frame, force):
    """The knee never turns back, so that its friction is known."""
    oracle = LoopOracle(robot)
    knee = robot.joint_names.index("knee")
    motors = list(robot.tree.actuated)
    rate = np.array([3.0, 4.0, 5.0, 6.0])
    q, samples = robot.close([0.1, 0.3, 0.7, -0.1]), []
    for k in range(int(SECONDS / STEP)):
        t = k * STEP
        y = np.array([0.1, 0.3, 0.7, -0.1]) + 0.1 * np.sin(rate * t)
        yd, ydd = 0.1 * rate * np.cos(rate * t), -0.1 * rate**2 * np.sin(rate * t)
        y[2] += 0.8 * t
        yd[2] += 0.8
        q = robot.close(y, q)
        qd = robot.spanning_velocity(q, yd)
        G, g = oracle.explicit(q, qd)
        spanning = oracle.rnea(q, qd, G @ ydd + g)
        assert qd[knee] > 0.1
        spanning[knee] += DAMPING * qd[knee] + FRICTION
        outside = pushes(k) * G.T @ oracle.jacobian(q, frame)[:3].T @ force
        efforts = np.linalg.solve(G[motors].T, G.T @ spanning - outside)
        samples.append(Sample(q, qd, efforts, outside))
    return samples


def test_a_push_on_a_leg_of_a_quadruped(graph):
    """The base floats, and its state comes by another topic."""
    robot, oracle = example_robot("solo12", True)
    rng, force = np.random.default_rng(5), np.array([2.0, -1.0, 4.0])
    rate, phase = rng.uniform(2.0, 5.0, robot.nv), rng.uniform(0.0, 6.0, robot.nv)
    home = np.concatenate([[0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0], rng.uniform(-0.5, 0.5, 12)])
    samples, h = [], 1e-5

    def swing(t):
        return robot.tree.integrate(home, 0.2 * np.sin(rate * t + phase))

    def velocity(t):
        """Of the swing, by central differences on the group."""
        before, after = (oracle.position(swing(t + side)) for side in (-h, h))
        return pin.difference(oracle.model, before, after)[oracle.velocity_index] / (2 * h)

    for k in range(int(SECONDS / STEP)):
        t = k * STEP
        q, qd = swing(t), velocity(t)
        qdd = (velocity(t + 1e-4) - velocity(t - 1e-4)) / 2e-4
        outside = pushes(k) * oracle.jacobian(q, "FL_FOOT")[:3].T @ force
        tau = oracle.rnea(q, qd, qdd) - outside
        samples.append(Sample(q, qd, tau[6:], outside[6:]))
    graph.serve(
        robot_description=path_of("solo12").read_text(),
        floating_base=True,
        publish_external_effort=True,
        observer_gain=GAIN,
        joint_state_timeout=0.0,
    )
    client = graph.client()
    client.until_active()
    odometry = client.publisher(Odometry, "~/base_state")

    def base(sample, stamp):
        odometry.publish(odometry_of(Header(stamp=stamp), sample.q, sample.qd))

    names = robot.actuated_joint_names
    places = [robot.joint_names.index(name) for name in names]
    of = [7 + k for k in places], [6 + k for k in places]
    check(samples, played(client, samples, names, of, base))
