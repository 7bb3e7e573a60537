"""The stream beside 200 calls a second of every kind, while the model and settings are swapped.

``python -m benchmark.every_call load`` is who calls.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from geometry_msgs.msg import Inertia, Vector3
from rbda_ros.msg import Contact, State
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectoryPoint

from benchmark import native
from benchmark.processes import own_domain, program, until
from benchmark.stream import MESSAGES, PRIORITIES, Client, Row, Trips
from rbda_ros import load_robot, srv
from rbda_ros.demo.resources import share_file
from rbda_ros.node.spin import make_executor

URDF = share_file("config/robots/demo_leg.urdf")
LOOPS = share_file("config/robots/demo_leg_loops.yaml")
RATE = 200.0  # calls [1/s]
PER_LOAD, PER_DESCRIPTION, PER_SETTING = 50, 200, 20  # calls between two swaps of each
ROUNDS = 12  # turns of each contender
MAX_WAITING = 50  # calls that are not answered yet
Y = [0.1, 0.3, 0.9, -0.2]
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def rows() -> Iterator[Row]:
    """Joint states of a leg to efforts, while everything else is asked for and changed."""
    own_domain()
    native.library()
    client = Client(load_robot(URDF, LOOPS).independent_joint_names)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parameters = folder / "parameters.yaml"
        values = {"robot_description": URDF.read_text(), "loop_constraints": str(LOOPS)}
        parameters.write_text(yaml.safe_dump({"/**": {"ros__parameters": values}}))
        ros = "--ros-args", "--params-file", str(parameters), "-r", "__ns:=/ours"
        for priority in PRIORITIES:
            yield from _rows_at(priority, client, folder, ros)


def _rows_at(priority: int, client: Client, folder: Path, ros: Sequence[str]) -> Iterator[Row]:
    at = f"priority {priority}, "
    arguments = *ros, "-p", f"realtime_priority:={priority}"
    with (
        program(folder, "benchmark.stream", "echo", str(priority)),
        program(folder, "rbda_ros.cli", "serve", *arguments),
    ):
        client.turn("ours", 2000)  # by then its kernel is compiled
        idle = client.turns("echo", "ours", rounds=ROUNDS // 2)
        yield from _compare(f"{at}alone", idle, idle, ROUNDS // 2)
        with program(folder, "benchmark.every_call", "load"):
            log = folder / "benchmark.every_call.log"
            until(lambda: b"answered" in log.read_bytes())
            trips = client.turns("echo", "ours", rounds=ROUNDS)
        yield from _compare(f"{at}beside 200 calls a second", trips, idle, ROUNDS)
        print(log.read_text().splitlines()[-1], file=sys.stderr)


def _compare(work: str, trips: Trips, idle: Trips, rounds: int) -> Iterator[Row]:
    for who, these in trips.items():
        p99 = float(np.percentile(these, 99))
        yield {
            "work": f"demo leg, {work}",
            "node": {"echo": "echo in C", "ours": "dynamics"}[who],
            "answered": len(these) / (rounds * MESSAGES),
            "median_us": 1e6 * float(np.median(these)),
            "p99_us": 1e6 * p99,
            "p99_over_alone": p99 / float(np.percentile(idle[who], 99)),
        }


def _requests() -> dict[str, Any]:
    state = State(position=Y, velocity=[0.1, -0.2, 0.3, 0.1])
    trajectory = srv.TrajectoryInverseDynamics.Request()
    trajectory.trajectory.points = [JointTrajectoryPoint(positions=Y)] * 100
    osim = {"state": state, "frames": ["foot"], "linear_only": True}
    contacts = [Contact(link="foot")]
    return {
        "inverse_dynamics": srv.InverseDynamics.Request(state=state),
        "forward_dynamics": srv.ForwardDynamics.Request(state=state, effort=[0.1] * 4),
        "mass_matrix": srv.MassMatrix.Request(state=state),
        "operational_space_inertia": srv.OperationalSpaceInertia.Request(**osim),
        "constrained_forward_dynamics": srv.ConstrainedForwardDynamics.Request(
            state=state, contacts=contacts
        ),
        "trajectory_inverse_dynamics": trajectory,
        "convert_state": srv.ConvertState.Request(position=Y),
        "describe_model": srv.DescribeModel.Request(),
        "describe_actuation": srv.DescribeActuation.Request(state=state),
    }


class Caller:
    """Calls one service after the other, and does not wait for answers."""

    def __init__(self) -> None:
        rclpy.init()
        self._node, self._executor = rclpy.create_node("caller"), make_executor()
        self._executor.add_node(self._node)
        self._clients: dict[str, Any] = {}
        self._waiting: set[Any] = set()
        self._descriptions = self._node.create_publisher(String, "/ours/robot_description", LATCHED)
        self._text = URDF.read_text()
        self.asked = self.answered = self.refused = self.left_out = 0

    def run(self) -> None:
        """Until it is told to stop."""
        requests = list(_requests().items())
        following, k = time.monotonic(), 0
        while True:
            self._executor.spin_until_future_complete(
                rclpy.task.Future(), max(following - time.monotonic(), 1e-4)
            )
            following = max(following + 1.0 / RATE, time.monotonic() - 0.1)
            self.call(*requests[k % len(requests)])
            if k % PER_LOAD == PER_LOAD // 2:
                mass = 1.0 if k % (2 * PER_LOAD) < PER_LOAD else 0.0
                load = Inertia(m=mass, com=Vector3(z=-0.1))
                self.call(
                    "set_payload", srv.SetPayload.Request(name="load", link="foot", inertia=load)
                )
            if k % PER_DESCRIPTION == PER_DESCRIPTION // 2:
                text = self._text.replace('name="demo_leg"', f'name="leg_{k}"', 1)
                self._descriptions.publish(String(data=text))
            if k % PER_SETTING == PER_SETTING // 2:
                self.set("velocity_cutoff", 10.0 + k % 90)
            k += 1
            if k % int(RATE) == 0:
                print(
                    f"{self.asked} asked, {self.answered} answered, {self.refused} of them "
                    f"refused, {self.left_out} not sent",
                    flush=True,
                )

    def set(self, name: str, value: float) -> None:
        number = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
        request = SetParameters.Request(parameters=[Parameter(name=name, value=number)])
        self._send(SetParameters, "set_parameters", request)

    def call(self, name: str, request: Any) -> None:
        kind = getattr(srv, type(request).__name__.removesuffix("_Request"))
        self._send(kind, name, request)

    def _send(self, kind: Any, name: str, request: Any) -> None:
        if name not in self._clients:
            self._clients[name] = self._node.create_client(kind, f"/ours/dynamics/{name}")
            self._clients[name].wait_for_service(10.0)
        if len(self._waiting) >= MAX_WAITING:
            self.left_out += 1
            return
        self.asked += 1
        future = self._clients[name].call_async(request)
        self._waiting.add(future)
        future.add_done_callback(self._done)

    def _done(self, future: Any) -> None:
        self._waiting.discard(future)
        self.answered += 1
        self.refused += not getattr(future.result(), "success", True)


if __name__ == "__main__" and sys.argv[1:2] == ["load"]:
    with contextlib.suppress(KeyboardInterrupt):
        Caller().run()
