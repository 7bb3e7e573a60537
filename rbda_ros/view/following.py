"""Joint states, efforts and diagnostics of a running node. Imports rclpy."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import GetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from rbda_ros.description.source import loops_without_prefix
from rbda_ros.robot import Robot, load_robot
from rbda_ros.spatial import Array

LOST = 0.5
"""How long the node's own joint states may be missing until measured ones are shown [s]."""
PARAMETERS = ("robot_description", "loop_constraints", "floating_base", "gravity", "joint_prefix")
MAX_NAMES = 10_000
"""Joints that are remembered, whoever names them: as many as the node takes in one message."""
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@dataclass(frozen=True, eq=False)
class Described:
    """The robot of a node, and the path or text of its description."""

    robot: Robot
    source: str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Received:
    """The newest of a node.

    Attributes:
        positions: joint names to positions [rad, m].
        complete: whether the node completed them; else they are as measured, and it may reject
            them.
        base: (7,) pose of a floating base, x y z qx qy qz qw; None where none came.
        efforts: names to efforts of the motors [N m, N]; empty where there are none.
        level: of its diagnostics; 0 is good.
        message: what they say.
        values: what they have, by key.
        velocities: joint names to velocities [rad/s, m/s], where the node completed them.
    """

    positions: Mapping[str, float]
    complete: bool
    base: Array | None
    efforts: Mapping[str, float]
    level: int
    message: str
    values: Mapping[str, str]
    velocities: Mapping[str, float] = field(default_factory=dict)


class Follower:
    """Listens to one node, in a context of its own.

    Args:
        name: of the node with its namespace, e.g. ``/leg/dynamics``.
    """

    def __init__(self, name: str) -> None:
        self.name = "/" + name.strip("/")
        self._namespace = self.name.rpartition("/")[0]
        self._context = rclpy.Context()
        self._context.init()
        self._node = rclpy.create_node(f"view_{os.getpid()}", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._prefix, self._text = "", ""
        self._positions: dict[str, float] = {}
        self._velocities: dict[str, float] = {}
        self._complete, self._completed_at = False, float("-inf")
        self._base: Array | None = None
        self._efforts: dict[str, float] = {}
        self._diagnosis: tuple[int, str, dict[str, str]] = (0, "nothing received yet", {})
        self._new = False
        self._listen()

    def _listen(self) -> None:
        def subscribe(
            kind: Any, topic: str, callback: Any, qos: Any = qos_profile_sensor_data
        ) -> None:
            self._node.create_subscription(kind, topic, callback, qos)

        subscribe(String, f"{self._namespace}/robot_description", self._on_description, LATCHED)
        subscribe(JointState, f"{self.name}/joint_states", self._on_completed)
        subscribe(JointState, f"{self._namespace}/joint_states", self._on_measured)
        subscribe(JointState, f"{self.name}/feedforward", self._on_efforts)
        subscribe(Odometry, f"{self.name}/base_state", self._on_base)
        subscribe(DiagnosticArray, "/diagnostics", self._on_diagnostics)

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()

    def description(
        self,
        stop: threading.Event,
        path: Path | None = None,
        loops: Path | None = None,
        floating_base: bool = False,
    ) -> Described | None:
        """The robot: of the files given, else as the node has it; None if told to stop.

        Raises:
            ModelError: it cannot be loaded, as where the loop file is on another machine.
        """
        values = self._parameters(stop)
        if values is None:
            return None
        self._prefix = values["joint_prefix"]
        source: str | Path = path or values["robot_description"]
        while not source and not stop.is_set():
            self._executor.spin_once(0.1)
            source = self._text
        if stop.is_set():
            return None
        constraints = "" if path else values["loop_constraints"]
        if constraints and isinstance(source, str):
            constraints = loops_without_prefix(constraints, source, self._prefix)
        robot = load_robot(
            source,
            loops or constraints or None,
            floating_base=floating_base or values["floating_base"],
            gravity=values["gravity"],
        )
        return Described(robot, source)

    def _parameters(self, stop: threading.Event) -> dict[str, Any] | None:
        """Description of the model, once the node is there."""
        client = self._node.create_client(GetParameters, f"{self.name}/get_parameters")
        waiting = time.monotonic()
        future = None
        while not stop.is_set():
            if future is None and client.service_is_ready():
                future = client.call_async(GetParameters.Request(names=list(PARAMETERS)))
            self._executor.spin_once(0.1)
            if future is not None and future.done():
                values = [parameter_value_to_python(value) for value in future.result().values]
                return dict(zip(PARAMETERS, values, strict=True))
            if time.monotonic() - waiting > 2.0:
                self._node.get_logger().info(f"waiting for {self.name}")
                waiting, future = float("inf"), None
        return None

    def next(self, seconds: float) -> Received | None:
        """Listen for a while; the newest of everything, or None where nothing new came."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._executor.spin_once(left)
        if not self._new:
            return None
        self._new = False
        return Received(
            dict(self._positions),
            self._complete,
            self._base,
            dict(self._efforts),
            *self._diagnosis,
            velocities=dict(self._velocities),
        )

    def _on_description(self, message: String) -> None:
        self._text = message.data

    def _named(self, names: list[str], numbers: Any) -> dict[str, float]:
        """Finite numbers by the model's names."""
        pairs = zip(names, numbers, strict=False)
        return {n.removeprefix(self._prefix): float(x) for n, x in pairs if np.isfinite(x)}

    def _on_completed(self, message: JointState) -> None:
        self._positions = self._named(message.name, message.position)
        self._velocities = self._named(message.name, message.velocity)
        self._complete, self._completed_at, self._new = True, time.monotonic(), True

    def _on_measured(self, message: JointState) -> None:
        if time.monotonic() - self._completed_at > LOST:
            if self._complete or len(self._positions) > MAX_NAMES:
                self._positions = {}
            self._velocities = {}
            self._positions |= self._named(message.name, message.position)
            self._complete, self._new = False, True

    def _on_efforts(self, message: JointState) -> None:
        self._efforts = self._named(message.name, message.effort)
        self._new = True

    def _on_base(self, message: Odometry) -> None:
        p, r = message.pose.pose.position, message.pose.pose.orientation
        self._base = np.array([p.x, p.y, p.z, r.x, r.y, r.z, r.w])
        self._new = True

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == f"{self.name[1:]}: feedforward":
                level = status.level[0] if isinstance(status.level, bytes) else int(status.level)
                values = {pair.key: pair.value for pair in status.values}
                self._diagnosis = level, status.message, values
                self._new = True
