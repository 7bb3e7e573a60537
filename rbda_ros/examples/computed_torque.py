"""A computed-torque controller that calls the node for inverse dynamics.

    python -m rbda_ros.examples.computed_torque --ros-args -p goal:="[0.0, 0.3, 0.9, -0.1]"

It calls ``~/inverse_dynamics`` asynchronously in the callback of ``joint_states``, and publishes
the efforts when the response arrives. Nothing blocks. Only one request is open at a time, so the
efforts belong to the newest state that could be answered. A response that does not arrive within
the parameter ``timeout`` is dropped, and the next state sends a new request.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rclpy.task import Future
from sensor_msgs.msg import JointState

from rbda_ros.node.spin import init, spin
from rbda_ros.srv import InverseDynamics


class ComputedTorque(Node):
    """Drives joints to a goal: ``ydd = kp (goal - y) - kd yd``, and efforts that give it.

    Subscribes to ``joint_states``, publishes ``efforts`` (JointState, on the motors).
    """

    def __init__(self) -> None:
        super().__init__("computed_torque")
        joints = ["hip_abduction", "hip_flexion", "knee", "ankle"]
        self._joints = self.declare_parameter("joints", joints).value
        self._goal = self.declare_parameter("goal", [0.0, 0.3, 0.9, -0.1]).value
        self._kp = self.declare_parameter("kp", 100.0).value  # [1/s^2]
        self._kd = self.declare_parameter("kd", 20.0).value  # [1/s]
        self._timeout = self.declare_parameter("timeout", 0.1).value  # [s]
        self._asked_at = 0.0
        self._dynamics = self.create_client(InverseDynamics, "dynamics/inverse_dynamics")
        self._efforts = self.create_publisher(JointState, "efforts", 10)
        self._asked: Future | None = None
        self.create_subscription(
            JointState, "joint_states", self._on_joint_states, qos_profile_sensor_data
        )

    def _on_joint_states(self, message: JointState) -> None:
        if self._asked is not None and time.monotonic() - self._asked_at > self._timeout:
            self._dynamics.remove_pending_request(self._asked)
            self._asked = None
        if self._asked is not None or not self._dynamics.service_is_ready():
            return
        place = {name: k for k, name in enumerate(message.name)}
        if not all(joint in place for joint in self._joints):
            return  # of other joints
        y = [message.position[place[joint]] for joint in self._joints]
        yd = [message.velocity[place[joint]] for joint in self._joints]

        request = InverseDynamics.Request()
        request.state.joint_names = self._joints
        request.state.position, request.state.velocity = y, yd
        request.acceleration = [
            self._kp * (goal - position) - self._kd * velocity
            for goal, position, velocity in zip(self._goal, y, yd, strict=True)
        ]
        away = max(abs(goal - position) for goal, position in zip(self._goal, y, strict=True))
        self.get_logger().info(f"{away:.4f} rad from the goal", throttle_duration_sec=1.0)
        self._asked, self._asked_at = self._dynamics.call_async(request), time.monotonic()
        self._asked.add_done_callback(lambda future: self._on_answer(future, message.header.stamp))

    def _on_answer(self, future: Future, stamp: Any) -> None:
        if future is self._asked:
            self._asked = None
        answer = future.result()
        if answer is None or not answer.success:
            reason = "the call failed" if answer is None else answer.message
            self.get_logger().warning(f"no efforts: {reason}", throttle_duration_sec=1.0)
            return
        efforts = JointState(name=answer.joint_names, effort=answer.effort)
        efforts.header.stamp = stamp
        self._efforts.publish(efforts)


def main() -> int:
    """Run until Ctrl-C."""
    signals = init(sys.argv[1:])
    spin(ComputedTorque(), Future(), signals)
    return 0


if __name__ == "__main__":
    sys.exit(main())
