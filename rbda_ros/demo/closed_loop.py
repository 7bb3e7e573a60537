"""`rbda_ros demo --mujoco`: tracking errors of the demo leg, with MuJoCo as the hardware.

The same joint-space gains with three models: the exact one, by the node over topics; the open chain
of the URDF; and the open chain with the motors' inertias reflected through constant gears. It also
compares the external forces that the exact model and the open chain estimate.

In MuJoCo the leg has its loops as equality constraints, and motors at the rotors. MuJoCo knows
nothing of clusters, and none of our code computes its motion.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from lxml import etree

from rbda_ros import MomentumObserver, Robot, load_robot
from rbda_ros.demo.open_chain import DEMO_LOOPS, DEMO_ROBOT, OpenChain
from rbda_ros.demo.resources import share_file
from rbda_ros.exports import write_mjcf
from rbda_ros.spatial import Array

TIMESTEP = 1e-4
"""Of the simulation [s]: stiff constraints need a short one."""
STIFF = {"solref": f"{2 * TIMESTEP:g} 1", "solimp": "0.9999 0.9999 0.001"}
"""Equality constraints as stiff as MuJoCo lets them be at this step."""


class MujocoLeg:
    """A simulated leg with the numbers of the bundled robot.

    Args:
        position: (4,) of the independent joints, where it starts, at rest [rad].

    Attributes:
        robot: our model of it, for names and to close the loops at the start.
        model, data: MuJoCo's own.
    """

    def __init__(self, position: Array) -> None:
        import mujoco

        self._mujoco = mujoco
        self.robot: Robot = load_robot(share_file(DEMO_ROBOT), share_file(DEMO_LOOPS))
        self.model = mujoco.MjModel.from_xml_string(mjcf(self.robot))
        self.data = mujoco.MjData(self.model)
        self._at: dict[str, int] = {
            name: int(self.model.joint(name).qposadr[0]) for name in self.robot.joint_names
        }
        self._motors = [self.model.actuator(n).id for n in self.robot.actuated_joint_names]
        q = self.robot.close(position)
        for name, value in zip(self.robot.joint_names, q, strict=True):
            self.data.qpos[self._at[name]] = value
        mujoco.mj_forward(self.model, self.data)

    @property
    def time(self) -> float:
        """Time of the simulation [s]."""
        return float(self.data.time)

    def positions(self, names: Any) -> Array:
        """Positions of these joints [rad]."""
        return np.array([self.data.qpos[self._at[name]] for name in names])

    def velocities(self, names: Any) -> Array:
        """Velocities of these joints [rad/s]."""
        return np.array([self.data.qvel[self._at[name]] for name in names])

    def step(self, efforts: Array, seconds: float) -> None:
        """Go on for some time with efforts (actuated,) of the motors held [N m]."""
        self.data.ctrl[self._motors] = efforts
        for _ in range(round(seconds / TIMESTEP)):
            self._mujoco.mj_step(self.model, self.data)

    def push(self, link: str, force: Array) -> None:
        """Let a force (3,) act at the origin of a link from now on, in world axes [N]."""
        body = self.model.body(link).id
        arm = self.data.xpos[body] - self.data.xipos[body]
        self.data.xfrc_applied[body, :3] = force
        self.data.xfrc_applied[body, 3:] = np.cross(arm, force)

    def gap(self) -> float:
        """How far the loops are open [m, rad]: constraints of MuJoCo are springs."""
        return float(np.abs(self.data.efc_pos[: self.data.ne]).max(initial=0.0))


def mjcf(robot: Robot) -> str:
    """The MJCF that `rbda_ros convert` writes of a robot, with a short timestep and stiff loops."""
    root = etree.fromstring(write_mjcf(robot, balance_inertia=True).text)
    for option in root.iter("option"):
        option.set("timestep", f"{TIMESTEP:g}")
        option.set("integrator", "implicitfast")
    for constraint in root.iterfind("equality/*"):
        for name, value in STIFF.items():
            constraint.set(name, value)
    return etree.tostring(root, encoding="unicode")


PERIOD = 1e-3  # [s] of the control loop
FREQUENCY = 10.0  # [rad/s] of the motion
SETTLED = 1.5  # [s] from which on the error counts
SECONDS = 3.0
MIDDLE, SIZE = np.array([0.0, 0.3, 0.9, -0.1]), np.array([0.1, 0.3, 0.3, 0.2])  # [rad]
STIFFNESS, DAMPING = np.array([60.0, 60.0, 60.0, 30.0]), np.array([2.0, 2.0, 2.0, 1.0])
"""Of hip abduction, hip flexion, knee and ankle [N m/rad, N m s/rad]."""
PATIENCE = 60.0  # [s] for the node to come up, or to answer

Controller = Callable[[MujocoLeg, Array, Array, Array], Array]
"""From the leg and the wanted motion of its joints to efforts of its motors."""
FORCE = np.array([10.0, -5.0, 30.0])  # [N] on the foot, in world axes
OBSERVER_GAIN = 50.0  # [1/s] of the observers


@dataclass(frozen=True, eq=False)
class Tracking:
    """Tracking errors of the leg with one model.

    Attributes:
        name: of the model.
        times: (N,) [s].
        errors: (N, 4) wanted minus measured positions of the joints [rad].
    """

    name: str
    times: Array
    errors: Array

    @property
    def rms(self) -> float:
        """Root mean square error of all joints, once settled [rad]."""
        return float(np.sqrt(np.mean(self.errors[self.times >= SETTLED] ** 2)))


def wanted(t: float) -> tuple[Array, Array, Array]:
    """Position, velocity and acceleration (4,) of the joints: a sine that fades in."""
    x = min(t, 1.0)
    fade, rate, curve = 3 * x**2 - 2 * x**3, 6 * x - 6 * x**2, 6 - 12 * x
    rate, curve = (rate, curve) if t < 1.0 else (0.0, 0.0)
    w = FREQUENCY
    sine, cosine = np.sin(w * t), np.cos(w * t)
    return (
        MIDDLE + SIZE * fade * sine,
        SIZE * (rate * sine + fade * w * cosine),
        SIZE * (curve * sine + 2.0 * rate * w * cosine - fade * w**2 * sine),
    )


def track(name: str, controller: Controller, seconds: float = SECONDS) -> Tracking:
    """Let a controller move the simulated leg."""
    leg = MujocoLeg(MIDDLE)
    joints = leg.robot.independent_joint_names
    times = np.arange(0.0, seconds, PERIOD)
    errors = np.zeros((len(times), len(joints)))
    for k, t in enumerate(times):
        motion = wanted(t)
        errors[k] = motion[0] - leg.positions(joints)
        leg.step(controller(leg, *motion), PERIOD)
    return Tracking(name, times, errors)


def open_chain(reflected: bool) -> Controller:
    """Computed torque on the open chain, with or without the motors' reflected inertias."""
    chain = OpenChain()

    def efforts(leg: MujocoLeg, y: Array, yd: Array, ydd: Array) -> Array:
        joints = leg.robot.independent_joint_names
        at, speed = leg.positions(joints), leg.velocities(joints)
        torques = chain.torques(at, speed, ydd) + STIFFNESS * (y - at) + DAMPING * (yd - speed)
        if reflected:
            torques = torques + chain.reflected_inertia * ydd
        by_motor = chain.on_motors(torques)
        return np.array([by_motor[name] for name in leg.robot.actuated_joint_names])

    return efforts


def exact(leg: MujocoLeg, y: Array, yd: Array, ydd: Array) -> Array:
    """Computed torque on the exact model, in this process: what the node computes."""
    robot = leg.robot
    joints = robot.independent_joint_names
    at, speed = leg.positions(joints), leg.velocities(joints)
    state = robot.state(at, speed)
    tau = robot.inverse_dynamics(state, speed, ydd)
    return robot.actuator_efforts(state, tau + STIFFNESS * (y - at) + DAMPING * (yd - speed))


class NodeController:
    """The node over topics: encoders of the motors and commands of the joints in, efforts out.

    Each tick waits for its answer, so that the simulation does not run away. Its acceleration is
    published right before its state: the node takes messages in the order they were published.
    """

    def __init__(self) -> None:
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.node import Node
        from rclpy.qos import qos_profile_sensor_data
        from sensor_msgs.msg import JointState
        from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

        self._kinds = JointState, JointTrajectory, JointTrajectoryPoint
        self.node = Node("mujoco_leg")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._states = self.node.create_publisher(JointState, "joint_states", 10)
        self._references = self.node.create_publisher(JointTrajectory, "dynamics/reference", 10)
        self._commands = self.node.create_publisher(JointState, "dynamics/joint_commands", 10)
        self._received: dict[str, Any] = {}
        for topic in ("feedforward", "motor_commands"):
            self.node.create_subscription(
                JointState,
                f"dynamics/{topic}",
                lambda message, topic=topic: self._received.__setitem__(topic, message),
                qos_profile_sensor_data,
            )

    def close(self) -> None:
        """Free everything."""
        self._executor.shutdown()
        self.node.destroy_node()

    def __call__(self, leg: MujocoLeg, y: Array, yd: Array, ydd: Array) -> Array:
        """Efforts of the motors for this tick."""
        motors = leg.robot.actuated_joint_names

        def efforts() -> Array | None:
            measured = leg.positions(motors), leg.velocities(motors)
            if self.feedforward(leg.robot, *measured, ydd) is None:
                return None
            joints = leg.robot.independent_joint_names
            return self._efforts("motor_commands", self._commands, (joints, y, yd), motors)

        return until_answered(efforts)

    def feedforward(
        self, robot: Robot, position: Array, velocity: Array, ydd: Array
    ) -> Array | None:
        """Efforts of the motors at a state of theirs; None if a message got lost."""
        motors, (_, reference, point) = robot.actuated_joint_names, self._kinds
        points = [point(accelerations=ydd.tolist())]
        self._references.publish(
            reference(joint_names=list(robot.independent_joint_names), points=points)
        )
        return self._efforts("feedforward", self._states, (motors, position, velocity), motors)

    def _efforts(
        self,
        topic: str,
        publisher: Any,
        state: tuple[Sequence[str], Array, Array],
        motors: Sequence[str],
    ) -> Array | None:
        """The response to names, positions and velocities; None if either message got lost."""
        names, position, velocity = state
        message = self._kinds[0](name=list(names))
        message.position, message.velocity = position.tolist(), velocity.tolist()
        message.header.stamp = self.node.get_clock().now().to_msg()
        publisher.publish(message)
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            self._executor.spin_once(0.005)
            received = self._received.get(topic)
            if received is not None and received.header.stamp == message.header.stamp:
                efforts = dict(zip(received.name, received.effort, strict=True))
                return np.array([efforts[name] for name in motors])
        return None


def until_answered(ask: Callable[[], Array | None]) -> Array:
    """Ask again until there is an answer, for `PATIENCE` seconds."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if (answer := ask()) is not None:
            return answer
    raise TimeoutError(f"the node did not answer within {PATIENCE:.0f} s")


def track_with_node(seconds: float = SECONDS) -> Tracking:
    """Track with the exact model, computed by a node in its own process."""
    import rclpy

    from rbda_ros.demo.run import node_program, use_own_domain

    joints = ("hip_abduction", "hip_flexion", "knee", "ankle")
    values = {
        "acceleration_source": "reference",
        "add_feedforward": True,
        "stiffness": yaml.safe_dump(dict(zip(joints, STIFFNESS.tolist(), strict=True))),
        "damping": yaml.safe_dump(dict(zip(joints, DAMPING.tolist(), strict=True))),
    }
    use_own_domain()
    with (
        tempfile.TemporaryDirectory(prefix="rbda_ros_mujoco_") as folder,
        node_program(Path(folder), values),
    ):
        rclpy.init()
        controller = NodeController()
        try:
            return track("exact, by the node", controller, seconds)
        finally:
            controller.close()
            rclpy.try_shutdown()


def run(picture: str | None = None, seconds: float = SECONDS) -> int:
    """Compare the three models: a table, and a picture if asked for; the exit code."""
    try:
        import mujoco  # noqa: F401
    except ModuleNotFoundError:
        print("rbda_ros demo: MuJoCo is missing; pip install mujoco", file=sys.stderr)
        return 1
    seconds = max(seconds, SETTLED + 0.5)
    results = [
        track_with_node(seconds),
        track("open chain", open_chain(reflected=False), seconds),
        track("reflected inertias", open_chain(reflected=True), seconds),
    ]
    print(f"RMS tracking error at {FREQUENCY:g} rad/s, the same gains, MuJoCo as the hardware:")
    for result in results:
        print(f"  {result.name:20} {1e3 * result.rms:7.3f} mrad")
    if picture is not None:
        draw(results, picture)
        print(f"drawn in {picture}")
    return 0


def draw(results: list[Tracking], file: str) -> None:
    """Errors of every joint over time, a row per model."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "rbda_ros"
    figure, axes = plt.subplots(len(results), 1, figsize=(7.0, 6.0), sharex=True, sharey=True)
    for axis, result in zip(axes, results, strict=True):
        lines = axis.plot(result.times, 1e3 * result.errors, linewidth=0.8)
        axis.set_title(f"{result.name}: {1e3 * result.rms:.2f} mrad RMS", fontsize=9, loc="left")
        axis.set_ylabel("error [mrad]")
        axis.axvline(SETTLED, color="0.8", linewidth=0.8)
    axes[0].legend(lines, ("hip abduction", "hip flexion", "knee", "ankle"), fontsize=7, ncols=4)
    axes[-1].set_xlabel("time [s]")
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None} if file.endswith(".svg") else None)
    plt.close(figure)


def found_force(seconds: float = 2.0) -> Array:
    """Estimated force (3,) on the foot of a leg that is pushed, once it stands still [N]."""
    leg = MujocoLeg(MIDDLE)
    robot, observer = leg.robot, MomentumObserver(leg.robot, OBSERVER_GAIN)
    joints, none = robot.independent_joint_names, np.zeros(4)
    tau = np.zeros(robot.nv)
    for _ in range(round(seconds / PERIOD)):
        leg.push("foot", FORCE)  # where the foot is by now
        efforts = tau[list(robot.actuated_coordinates)] = exact(leg, MIDDLE, none, none)
        leg.step(efforts, PERIOD)
        observer.update(leg.time, leg.positions(joints), leg.velocities(joints), tau)
    return observer.wrench("foot", linear_only=True)[:3]


def false_alarms(seconds: float = 1.5) -> tuple[float, float]:
    """Largest external torque that is estimated while nothing touches the leg, which moves fast.

    Returns:
        By the exact model, and by the open chain from the same efforts [N m].
    """
    leg, chain = MujocoLeg(MIDDLE), OpenChain()
    robot = leg.robot
    observers = MomentumObserver(robot, OBSERVER_GAIN), MomentumObserver(chain.robot, OBSERVER_GAIN)
    joints, motors = robot.independent_joint_names, robot.actuated_joint_names
    per_torque = chain.on_motors(np.ones(4))
    ratio = 1.0 / np.array([per_torque[name] for name in motors])
    tau, largest = np.zeros(robot.nv), np.zeros(2)
    for k in range(round(seconds / PERIOD)):
        efforts = tau[list(robot.actuated_coordinates)] = exact(leg, *wanted(k * PERIOD))
        leg.step(efforts, PERIOD)
        state = leg.time, leg.positions(joints), leg.velocities(joints)
        for i, force in enumerate((tau, efforts * ratio)):
            largest[i] = max(largest[i], np.abs(observers[i].update(*state, force)).max())
    return float(largest[0]), float(largest[1])


def report() -> str:
    """Text about the estimated force, and about torques estimated without contact."""
    found = found_force()
    share = np.linalg.norm(found - FORCE) / np.linalg.norm(FORCE)
    with_loops, without = false_alarms()
    return (
        f"External force of {np.linalg.norm(FORCE):.1f} N on the foot: estimated to within "
        f"{100 * share:.2f} %.\nLargest external torque estimated without contact: "
        f"{with_loops:.2f} N m by the exact model, {without:.2f} N m by the open chain."
    )
