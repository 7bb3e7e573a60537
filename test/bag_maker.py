"""Recordings for tests: the demo leg, moving, in bags of any kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file

LEG = share_file("config/robots/demo_leg.urdf")
LOOPS = share_file("config/robots/demo_leg_loops.yaml")
START = 1_700_000_000_000_000_000  # [ns]
STORE = get_typestore(Stores.ROS2_JAZZY)
JOINT_STATE = "sensor_msgs/msg/JointState"
ODOMETRY = "nav_msgs/msg/Odometry"


def demo_leg():
    """The robot of the recordings."""
    return load_robot(LEG, LOOPS)


@dataclass(frozen=True)
class Motion:
    """Time [ns], and names, positions, velocities and efforts at it."""

    times: np.ndarray
    names: tuple[str, ...]
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


def swinging(robot, count=200, rate=200.0, effort=None):
    """Every independent joint swings at its own pace; motors' efforts hold it, but for friction."""
    t = np.arange(count) / rate
    paces = 2 * np.pi * (0.4 + 0.17 * np.arange(robot.ny))
    middle = robot.independent_position(robot.tree.home)
    y = middle + 0.15 * np.sin(np.outer(t, paces))
    yd = 0.15 * paces * np.cos(np.outer(t, paces))
    ydd = -0.15 * paces**2 * np.sin(np.outer(t, paces))
    q = robot.close(y)
    qd = robot.spanning_velocity(q, yd)
    names = (*robot.independent_joint_names, *robot.actuated_joint_names)
    in_q = [robot.coordinates.scalar_positions[name] for name in names]
    in_qd = [robot.coordinates.velocities[name].start for name in names]
    if effort is None:
        effort = robot.inverse_dynamics_efforts(q, yd, ydd)[0]
    efforts = np.concatenate([np.zeros((count, robot.ny)), effort], axis=1)
    return Motion(START + (t * 1e9).astype(np.int64), names, q[:, in_q], qd[:, in_qd], efforts)


def joint_state(names, position, velocity, effort, time):
    """A message of rosbags."""
    types = STORE.types
    sec, nanosec = divmod(int(time), 10**9)
    header = types["std_msgs/msg/Header"](types["builtin_interfaces/msg/Time"](sec, nanosec), "")
    numbers = [np.array(values, float) for values in (position, velocity, effort)]
    return types[JOINT_STATE](header, list(names), *numbers)


def messages_of(motion):
    """The motion as serialized messages: (time, bytes)."""
    rows = zip(motion.times, motion.position, motion.velocity, motion.effort, strict=True)
    for time, *numbers in rows:
        message = joint_state(motion.names, *numbers, time)
        yield int(time), bytes(STORE.serialize_cdr(message, JOINT_STATE))


def odometry(pose, twist, time):
    """A serialized Odometry: pose (7) of the base, twist (6) in its frame."""
    types = {name.rpartition("/")[2]: kind for name, kind in STORE.types.items()}
    sec, nanosec = divmod(int(time), 10**9)
    header = types["Header"](STORE.types["builtin_interfaces/msg/Time"](sec, nanosec), "world")
    no_covariance = np.zeros(36)
    position, orientation = types["Point"](*pose[:3]), types["Quaternion"](*pose[3:])
    linear, angular = types["Vector3"](*twist[:3]), types["Vector3"](*twist[3:])
    message = types["Odometry"](
        header,
        "base",
        types["PoseWithCovariance"](types["Pose"](position, orientation), no_covariance),
        types["TwistWithCovariance"](types["Twist"](linear, angular), no_covariance),
    )
    return bytes(STORE.serialize_cdr(message, ODOMETRY))


def write_bag(path, messages, storage=StoragePlugin.MCAP, topic="/joint_states", base=()):
    """A bag with joint states, and something else that must come through; and a base's states."""
    with Writer(path, version=9, storage_plugin=storage) as writer:
        if base:
            states = writer.add_connection("/dynamics/base_state", ODOMETRY, typestore=STORE)
            for time, data in base:
                writer.write(states, time, data)
        states = writer.add_connection(topic, JOINT_STATE, typestore=STORE)
        other = writer.add_connection("/chatter", "std_msgs/msg/String", typestore=STORE)
        text = STORE.types["std_msgs/msg/String"]("hello")
        said = STORE.serialize_cdr(text, "std_msgs/msg/String")
        for k, (time, data) in enumerate(messages):
            writer.write(states, time, data)
            if not k % 50:
                writer.write(other, time, said)
    return path
