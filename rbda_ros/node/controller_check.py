"""Whether the controller that takes our efforts has its motors in our order."""

from __future__ import annotations

from typing import Any

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.exceptions import InvalidServiceNameException

from rbda_ros.control.settings import Settings
from rbda_ros.errors import listed, shown

PERIOD = 1.0
"""How often a controller that does not answer is asked again [s]."""


class ControllerCheck:
    """Compares ``command_joints`` with the parameter ``joints`` of a controller.

    A bare array has no names: in another order, each effort reaches another motor.

    Args:
        node: the dynamics node.

    Attributes:
        problem: what differs, and what to change; empty where nothing is known to.
        finding: the state of the comparison, for diagnostics; empty where none was asked for.
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self._client: Any = None
        self._timer: Any = None
        self._asked: Any = None
        self._controller = ""
        self.problem = self.finding = ""

    def begin(self, settings: Settings) -> None:
        """Ask the controller for its joints, as soon as it answers."""
        self.end()
        self._controller = settings.command_controller
        if not self._controller or not settings.command_joints:
            return
        name = f"{self._controller.rstrip('/')}/get_parameters"
        try:
            self._client = self._node.create_client(GetParameters, name)
        except InvalidServiceNameException:
            self.problem = self.finding = (
                f"command_controller: '{shown(self._controller)}' is no name of a node; give one "
                "such as /feedforward"
            )
            self._node.get_logger().error(self.problem)
            return
        self.finding = f"waiting for {self._controller}"
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self._node.create_timer(PERIOD, self._ask, clock=steady)
        self._ask()

    def end(self) -> None:
        """Stop asking, and forget what was found."""
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
        if self._client is not None:
            self._node.destroy_client(self._client)
        self._timer = self._client = self._asked = None
        self.problem = self.finding = ""

    def _ask(self) -> None:
        if self._asked is not None and not self._asked.done():
            self._client.remove_pending_request(self._asked)  # it ended before it answered
        if not self._client.service_is_ready():
            return
        self._asked = self._client.call_async(GetParameters.Request(names=["joints"]))
        self._asked.add_done_callback(self._on_answer)

    def _on_answer(self, asked: Any) -> None:
        if asked is not self._asked or asked.cancelled():
            return
        self._node.destroy_timer(self._timer)
        self._timer = None
        values = asked.result().values if asked.exception() is None else []
        if not values or values[0].type != ParameterType.PARAMETER_STRING_ARRAY:
            self.finding = f"{self._controller} has no parameter 'joints' to compare with"
            return
        theirs = list(values[0].string_array_value)
        settings: Settings = self._node.settings
        ours = [settings.joint_prefix + name for name in settings.command_joints]
        if ours == theirs:
            self.finding = f"the same as of {self._controller}"
            return
        kind = "in another order" if sorted(ours) == sorted(theirs) else "other joints"
        self.problem = self.finding = (
            f"command_joints are {listed(ours)}, but {self._controller} has {kind}: "
            f"{listed(theirs)}; give command_joints in the order of the controller's joints"
        )
        self._node.get_logger().error(self.problem)
