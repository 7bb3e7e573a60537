"""A simulated robot as ROS 2 hardware: efforts in, joint states out. `rbda_ros simulate`.

The state moves in `rbda_ros.Simulator`; here are topics, services and the pace. Messages have the
forms of real drivers, so that a controller cannot tell the difference.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future
from rclpy.time import Time
from rclpy.utilities import remove_ros_args
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from rbda_ros.control.settings import ParameterError, texts
from rbda_ros.description.source import add_xacro_argument
from rbda_ros.errors import InputError, ModelError, SingularityError, counted, one_line
from rbda_ros.node.parameters import declare_list
from rbda_ros.node.robot_file import urdf_and_loops
from rbda_ros.node.spin import init, join_xacro_arguments, spin
from rbda_ros.robot.robot import Robot, load_robot
from rbda_ros.simulation.collision_shapes import collision_shapes
from rbda_ros.simulation.ground_contacts import Plane, Shape, clearance
from rbda_ros.simulation.simulator import Simulator
from rbda_ros.spatial import Array
from rbda_ros.srv import SetSpeed

try:
    from tf2_msgs.msg import TFMessage
except ImportError:  # it has no wheel for machines without ROS
    TFMessage = None

WORST_LAG = 0.1
"""Time that the simulation may be late before it gives the rest up [s]."""
MAX_DELAYED = 10_000
"""Joint states that wait for their delay; older ones are lost."""

PARAMETERS: dict[str, tuple[Any, str]] = {
    "rate": (500.0, "joint states per second of simulated time [Hz]"),
    "joints": ([], "joints of joint_states, in this order; empty for all with one coordinate"),
    "command_joints": ([], "order of ~/effort_array; empty for the actuated joints"),
    "effort_timeout": (0.1, "simulated time after which a motor without commands gives none [s]"),
    "stiffness": (0.0, "of motors that are commanded a position [N m/rad, N/m]"),
    "damping": (0.0, "of motors that are commanded a velocity [N m s/rad, N s/m]"),
    "speed": (1.0, "simulated seconds per second; 0 for as fast as possible"),
    "publish_clock": (False, "whether simulated time is published on /clock, and stamps are in it"),
    "position_noise": (0.0, "standard deviation of measured positions [rad, m]"),
    "velocity_noise": (0.0, "standard deviation of measured velocities [rad/s, m/s]"),
    "seed": (0, "of noise and lost messages"),
    "message_loss": (0.0, "share of joint states that are lost, 0 to 1"),
    "delay": (0.0, "simulated time from measurement to publication of joint states [s]"),
    "failed_motors": ([], "actuated joints whose motors give no effort"),
}
FIXED = ("rate", "joints", "command_joints", "publish_clock", "seed")
"""Parameters that cannot change while it runs."""


class SimulatedRobot(Node):
    """The robot's drivers and physics in one node.

    Args:
        simulator: the robot, at its initial state.
        description: URDF text to publish.
        options: of `rclpy.node.Node`.
    """

    def __init__(self, simulator: Simulator, description: str, **options: Any) -> None:
        super().__init__("simulated_robot", **options)
        self.simulator, self.robot = simulator, simulator.robot
        motors = self.robot.actuated_joint_names
        self._motor = {name: i for i, name in enumerate(motors)}
        self._declare()
        published = self._names("joints") or list(self.robot.coordinates.scalar_positions)
        self._measured = _places(self.robot, published)
        self._ordered = [self._motor[name] for name in self._names("command_joints") or motors]
        self._of_motors = _places(self.robot, motors)
        self._noise = np.random.default_rng(self._value("seed"))
        self._start = simulator.checkpoint()
        self._paused, self._told = False, ""
        self._delayed: collections.deque[tuple[float, JointState]] = collections.deque(
            maxlen=MAX_DELAYED
        )
        self._reset_commands()

        self._state = JointState(name=published)
        self._states = self.create_publisher(JointState, "joint_states", 10)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._description = self.create_publisher(String, "robot_description", latched)
        self._description.publish(String(data=description))
        self._clock_topic = None
        if self._value("publish_clock"):
            self._clock_topic = self.create_publisher(ClockMessage, "/clock", 10)
        self._odometry = self._transforms = None
        if self.robot.floating_base:
            self._odometry = self.create_publisher(Odometry, "odom", 10)
            if TFMessage is not None:
                self._transforms = self.create_publisher(TFMessage, "/tf", 100)
        self.create_subscription(JointState, "~/motor_commands", self._on_commands, 10)
        self.create_subscription(Float64MultiArray, "~/effort_array", self._on_array, 10)
        self.create_service(SetBool, "~/pause", self._on_pause)
        self.create_service(Trigger, "~/step", self._on_step)
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(SetSpeed, "~/set_speed", self._on_speed)
        self.add_on_set_parameters_callback(self._on_parameters)

        commands = self.resolve_topic_name("~/motor_commands")
        self.get_logger().info(
            f"simulates '{self.robot.name}': joint states of {counted(len(published), 'joint')}, "
            f"efforts from {commands}"
        )
        self._steps = max(round(1.0 / (self._value("rate") * simulator.dt)), 1)
        self._origin = time.monotonic()
        period = self._steps * simulator.dt / max(self._value("speed"), 1.0)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(min(period, 0.01), self._on_timer, clock=steady)

    # Parameters.

    def _declare(self) -> None:
        for name, (value, text) in PARAMETERS.items():
            descriptor = ParameterDescriptor(description=text, read_only=name in FIXED)
            if value == []:
                declare_list(self, name, descriptor)
            else:
                self.declare_parameter(name, value, descriptor)
        given = [self.get_parameter(name) for name in PARAMETERS]
        if problem := self._problem(given):
            raise InputError(problem)

    def _value(self, name: str) -> Any:
        return self.get_parameter(name).value

    def _names(self, name: str) -> list[str]:
        return list(texts(name, self._value(name)))

    def _problem(self, parameters: Sequence[Parameter]) -> str:
        """Why some parameters cannot be used; empty where they can."""
        for parameter in parameters:
            name, value = parameter.name, parameter.value
            if PARAMETERS.get(name, (0,))[0] == []:
                try:
                    value = texts(name, value)
                except ParameterError as error:
                    return str(error)
            if name == "joints":
                known: Any = self.robot.coordinates.scalar_positions
            elif name in ("command_joints", "failed_motors"):
                known = self._motor
            elif name == "rate" and not value > 0.0:
                return f"rate is {value}; give a positive number"
            elif name == "message_loss" and not 0.0 <= value <= 1.0:
                return f"message_loss is {value}; give a share from 0 to 1"
            elif isinstance(value, float) and not 0.0 <= value < float("inf"):
                return f"{name} is {value}; give a finite number that is not negative"
            else:
                continue
            if unknown := [each for each in value if each not in known]:
                return f"{name}: {unknown[0]!r} is unknown; use some of {', '.join(known)}"
        return ""

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        reason = self._problem(parameters)
        if any(parameter.name == "speed" for parameter in parameters):
            self._rebase = True
        return SetParametersResult(successful=not reason, reason=reason)

    # Commands.

    def _reset_commands(self) -> None:
        count = len(self._motor)
        self._effort = np.zeros(count)
        self._position, self._velocity = np.full(count, np.nan), np.full(count, np.nan)
        self._commanded_at = np.full(count, -np.inf)
        self._rebase = True

    def _on_commands(self, message: JointState) -> None:
        """Efforts, positions and velocities of motors by name; NaN where one is not commanded."""
        count = len(message.name)
        given = [message.effort, message.position, message.velocity]
        if any(len(each) not in (0, count) for each in given):
            return self._reject("a command has arrays of different lengths")
        fields = np.array([each if len(each) else np.full(count, np.nan) for each in given])
        if np.isinf(fields).any():
            return self._reject("a command has an infinite number")
        commanded = [i for i in range(count) if not np.isnan(fields[:, i]).all()]
        for i in commanded:
            if message.name[i] not in self._motor:
                motors = ", ".join(self._motor)
                return self._reject(f"{message.name[i]!r} is no motor; they are {motors}")
        places = [self._motor[message.name[i]] for i in commanded]
        effort, position, velocity = fields[:, commanded]
        self._effort[places] = np.nan_to_num(effort)
        self._position[places], self._velocity[places] = position, velocity
        self._commanded_at[places] = self.simulator.time

    def _on_array(self, message: Float64MultiArray) -> None:
        """Efforts in the order of ``command_joints``."""
        data = np.asarray(message.data)
        if len(data) != len(self._ordered):
            return self._reject(f"~/effort_array has {len(data)} numbers, not {len(self._ordered)}")
        if not np.isfinite(data).all():
            return self._reject("~/effort_array has a number that is not finite")
        self._effort[self._ordered] = data
        self._position[self._ordered] = self._velocity[self._ordered] = np.nan
        self._commanded_at[self._ordered] = self.simulator.time

    def _reject(self, why: str) -> None:
        if why != self._told:
            self._told = why
            self.get_logger().warning(f"rejected: {why}")

    def _efforts(self) -> Array:
        """Efforts (na,) that the motors give now: those commanded, and their own feedback."""
        q, qd = self.simulator.q, self.simulator.qd
        position, velocity = self._of_motors
        spring = self._value("stiffness") * (self._position - q[position])
        damper = self._value("damping") * (self._velocity - qd[velocity])
        efforts = self._effort + np.nan_to_num(spring) + np.nan_to_num(damper)
        efforts[self.simulator.time - self._commanded_at > self._value("effort_timeout")] = 0.0
        efforts[[self._motor[name] for name in self._names("failed_motors")]] = 0.0
        return efforts

    # Motion.

    def _on_timer(self) -> None:
        if self._paused:
            self._rebase = True
            return
        speed = self._value("speed")
        now = time.monotonic()
        if self._rebase or speed == 0.0:
            self._origin, self._rebase = now - self.simulator.time / (speed or 1.0), False
        wanted = (now - self._origin) * speed
        if wanted - self.simulator.time > WORST_LAG * max(speed, 1.0):
            self._rebase = True  # late: go on from here
        deadline = now + 0.01
        interval = self._steps * self.simulator.dt
        while speed == 0.0 or self.simulator.time + interval <= wanted:
            if not self._advance(self._steps) or time.monotonic() > deadline:
                break

    def _advance(self, steps: int) -> bool:
        """Move on, and publish; whether that was possible."""
        try:
            for _ in range(steps):
                self.simulator.step(self._efforts())
        except (InputError, ModelError) as error:
            self._paused = True
            self.get_logger().error(f"paused: {one_line(error)}; ~/reset starts anew")
            return False
        self._publish()
        return True

    def _stamp(self) -> Any:
        if self._clock_topic is None:
            return self.get_clock().now().to_msg()
        return Time(nanoseconds=round(self.simulator.time * 1e9)).to_msg()

    def _publish(self) -> None:
        stamp, now = self._stamp(), self.simulator.time
        if self._clock_topic is not None:
            self._clock_topic.publish(ClockMessage(clock=stamp))
        q, qd = self.simulator.q, self.simulator.qd
        if self._odometry is not None:
            odometry = _odometry(q, qd, stamp, self.robot.links[0])
            self._odometry.publish(odometry)
            if self._transforms is not None:
                self._transforms.publish(TFMessage(transforms=[transform_of(odometry)]))
        if self._noise.random() >= self._value("message_loss"):
            positions, velocities = self._measured
            message = JointState(name=self._state.name)
            message.header.stamp = stamp
            message.position = self._noisy(q[positions], "position_noise").tolist()
            message.velocity = self._noisy(qd[velocities], "velocity_noise").tolist()
            self._delayed.append((now + self._value("delay"), message))
        while self._delayed and self._delayed[0][0] <= now:
            self._states.publish(self._delayed.popleft()[1])

    def _noisy(self, values: Array, parameter: str) -> Array:
        size = self._value(parameter)
        return values + self._noise.normal(scale=size, size=values.shape) if size else values

    # Services.

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._paused = request.data
        response.success = True
        response.message = "paused" if request.data else "running"
        return response

    def _on_step(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if not self._paused:
            response.message = "it is running; pause it first"
            return response
        response.success = self._advance(self._steps)
        response.message = f"at {self.simulator.time:.6g} s"
        return response

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self.simulator.restore(self._start)
        self._reset_commands()
        self._delayed.clear()
        self._paused = False
        response.success, response.message = True, "at 0 s"
        return response

    def _on_speed(self, request: SetSpeed.Request, response: SetSpeed.Response) -> Any:
        speed = Parameter("speed", Parameter.Type.DOUBLE, request.speed)
        (result,) = self.set_parameters([speed])
        response.success, response.message = result.successful, result.reason
        return response


def _places(robot: Robot, joints: Sequence[str]) -> tuple[list[int], list[int]]:
    """Indices of joints with one coordinate, in q and in qd."""
    layout = robot.coordinates
    return (
        [layout.scalar_positions[name] for name in joints],
        [layout.velocities[name].start for name in joints],
    )


def _odometry(q: Array, qd: Array, stamp: Any, base: str) -> Odometry:
    """Pose of the base in the world, and its twist in its own frame."""
    message = Odometry()
    message.header.stamp, message.header.frame_id, message.child_frame_id = stamp, "world", base
    pose, twist = message.pose.pose, message.twist.twist
    pose.position.x, pose.position.y, pose.position.z = map(float, q[:3])
    turned = pose.orientation
    turned.x, turned.y, turned.z, turned.w = map(float, q[3:7])
    twist.linear.x, twist.linear.y, twist.linear.z = map(float, qd[:3])
    twist.angular.x, twist.angular.y, twist.angular.z = map(float, qd[3:6])
    return message


def transform_of(odometry: Odometry) -> TransformStamped:
    """The pose of an odometry message as a transform."""
    pose = odometry.pose.pose
    transform = TransformStamped(header=odometry.header, child_frame_id=odometry.child_frame_id)
    moved = transform.transform.translation
    moved.x, moved.y, moved.z = pose.position.x, pose.position.y, pose.position.z
    transform.transform.rotation = pose.orientation
    return transform


def main(argv: Sequence[str]) -> int:
    """Run the simulated robot until it is told to stop; returns the exit code."""
    argv = join_xacro_arguments(argv)
    given = _parser().parse_args(remove_ros_args(["simulate", *argv])[1:])
    signals = init(argv)
    try:
        xacro = dict(given.xacro or ())
        simulator = _simulator(given, xacro)
        description, _ = urdf_and_loops(given.robot, given.loops, xacro)
        node = SimulatedRobot(simulator, description)
    except (InputError, ModelError) as error:
        print(f"rbda_ros simulate: {one_line(error)}", file=sys.stderr)
        rclpy.try_shutdown()
        return 1
    spin(node, Future(), signals)
    return 0


def _simulator(given: argparse.Namespace, xacro: Mapping[str, str]) -> Simulator:
    """The robot of the command line at its start, compiled."""
    robot = load_robot(
        given.robot, given.loops, floating_base=given.floating_base, xacro_arguments=xacro
    )
    ground, shapes = Plane(given.ground_normal, given.ground_height), []
    if given.ground or given.contact:
        shapes = _touching(robot, given, xacro)
    simulator = Simulator(
        robot, given.dt, integrator=given.integrator, contacts=shapes, ground=ground
    )
    simulator.reset(seed=given.seed)
    q, qd = simulator.q, simulator.qd
    try:
        simulator.step()  # have it compiled before time begins
    except SingularityError:
        remedy = "give another 'assembly' in the loop file, or start elsewhere with --seed"
        raise InputError(f"{robot.name} cannot move from where it starts; {remedy}") from None
    if shapes and robot.floating_base:
        height = given.drop - clearance(robot, q, shapes, ground)
        q[:3] += height * np.asarray(ground.normal) / np.linalg.norm(ground.normal)
    simulator.reset(q, qd)
    return simulator


def _touching(robot: Robot, given: argparse.Namespace, xacro: Mapping[str, str]) -> list[Shape]:
    """Shapes of the links that touch the ground; those that are named, or all that move."""
    shapes = collision_shapes(
        given.robot, given.contact, given.friction, given.restitution, xacro_arguments=xacro
    )
    if not given.contact:
        places = robot.spanning_tree.links
        shapes = [shape for shape in shapes if places[shape.link].body]
    if not shapes:
        none = "--contact: none of these links" if given.contact else "--ground: no link that moves"
        raise InputError(f"{none} has a <collision> element; add some")
    return shapes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rbda_ros simulate",
        usage="rbda_ros simulate ROBOT [--loops FILE] [options] [--ros-args ...]",
        description="Simulate a robot as ROS 2 hardware: it takes efforts of its motors and"
        " publishes joint_states.",
        epilog="docs/simulation.md describes its topics, services and ROS parameters.",
    )
    parser.add_argument(
        "robot", metavar="ROBOT", type=Path, help="URDF, URDF+, xacro, MJCF, SDF or USD file"
    )
    parser.add_argument("--loops", metavar="FILE", type=Path, help="loop-constraint file (YAML)")
    add_xacro_argument(parser)
    parser.add_argument("--floating-base", action="store_true", help="the root link moves freely")
    parser.add_argument(
        "--dt", type=float, default=1e-3, help="length of a step [s] (default: %(default)s)"
    )
    parser.add_argument("--integrator", default="euler", help="euler (default), rk4 or midpoint")
    parser.add_argument(
        "--seed", type=int, help="seed of a random start position (default: start at the assembly)"
    )
    ground = parser.add_argument_group(
        "ground",
        "A plane that the <collision> elements of links touch: boxes, spheres, capsules and"
        " cylinders. A robot with a floating base starts with its lowest shape on the plane.",
    )
    ground.add_argument("--ground", action="store_true", help="all links touch the ground")
    ground.add_argument(
        "--contact",
        metavar="LINK",
        action="append",
        help="only this link touches the ground; may be given several times",
    )

    def number(name: str, default: Any, text: str, **more: Any) -> None:
        ground.add_argument(name, type=float, default=default, help=text, **more)

    number("--friction", 0.8, "Coulomb's coefficient (default: %(default)s)")
    number(
        "--restitution", 0.0, "fraction of the approach velocity that remains, 0 to 1 (default: 0)"
    )
    number(
        "--ground-normal",
        (0.0, 0.0, 1.0),
        "normal of the ground in world axes, of any length (default: 0 0 1)",
        metavar=("X", "Y", "Z"),
        nargs=3,
    )
    number(
        "--ground-height",
        0.0,
        "height of the ground along its normal [m] (default: 0)",
        metavar="H",
    )
    number("--drop", 0.0, "start H above the ground [m] (default: 0)", metavar="H")
    return parser
