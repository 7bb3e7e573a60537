"""How long the node takes to answer, beside a node that only hands messages on.

Both run in processes of their own, with the same executor, and take turns: a third process, this
one, publishes joint states at 1 kHz and hears the answers, then calls services.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from rbda_ros.srv import InverseDynamics, TrajectoryInverseDynamics
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectoryPoint

from benchmark.limbs import limbs
from benchmark.processes import own_domain, program
from rbda_ros import load_robot
from rbda_ros.node.services.in_place import for_client
from rbda_ros.node.spin import init, make_executor, spin

Row = dict[str, object]
Samples = dict[str, list[float]]  # [s], of each contender

JOINTS = (12, 30)
PERIOD = 1e-3  # [s] between messages
BLOCK = 0.5  # [s] that one contender has its turn
ROUNDS = 6
POINTS, COMPILED = 10_000, 10  # of a long trajectory; answers by which it is compiled
CALLS, TURNS = 50, 40  # of a service in a turn, and turns: short, as cores change their pace
WARM_UP = 500  # calls, by which the service is compiled
NEWEST = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
CONTENDERS = ("ours", "plain")


class PassThrough(Node):
    """Answers joint states with as many efforts, and does nothing else."""

    def __init__(self) -> None:
        super().__init__("pass_through")
        self._answer = JointState()
        self._publisher = self.create_publisher(JointState, "~/feedforward", 10)
        self.create_subscription(JointState, "joint_states", self._on_joint_states, NEWEST)
        self.create_service(Trigger, "~/trigger", lambda request, response: response)
        self.create_service(InverseDynamics, "~/inverse_dynamics", self._efforts)

    def _on_joint_states(self, message: JointState) -> None:
        if not self._answer.name:
            self._answer.name = [f"{name}_rotor" for name in message.name]
        self._answer.header.stamp = message.header.stamp
        self._answer.effort = message.velocity
        self._publisher.publish(self._answer)

    def _efforts(
        self, request: InverseDynamics.Request, response: InverseDynamics.Response
    ) -> InverseDynamics.Response:
        response.joint_names = self._answer.name
        response.effort = request.state.position
        return response


class Driver(Node):
    """Publishes joint states to one contender at a time, and times the answers."""

    def __init__(self, names: Sequence[str], executor: Any) -> None:
        super().__init__("driver")
        self._spinning = executor
        self._message = JointState(name=list(names))
        self._message.position = [0.0] * len(names)
        self._message.velocity = [0.1] * len(names)
        self._position = np.frombuffer(self._message.position)
        self._sent: dict[int, float] = {}
        self.taken: list[float] = []  # [s]
        self._drives = {}
        for who, node in zip(CONTENDERS, ("dynamics", "pass_through"), strict=True):
            self._drives[who] = self.create_publisher(JointState, f"/{who}/joint_states", NEWEST)
            topic = f"/{who}/{node}/feedforward"
            self.create_subscription(JointState, topic, self._on_answer, NEWEST)
        self._to = self._drives["ours"]
        self._timer = self.create_timer(PERIOD, self._publish)
        self._timer.cancel()

    def ready(self) -> bool:
        """Whether both contenders have been heard of."""
        return all(p.get_subscription_count() for p in self._drives.values())

    def turn(self, who: str, seconds: float) -> list[float]:
        """Round trips of one contender [s]."""
        self._to, self.taken = self._drives[who], []
        self._timer.reset()
        self._spin(seconds)
        self._timer.cancel()
        self._spin(0.05)  # for the last answers
        return self.taken

    def call(self, client: Any, request: Any, count: int) -> list[float]:
        """Round trips of a service, one call after the other [s]."""
        taken: list[float] = []
        for _ in range(count):
            began = time.perf_counter()
            answer = client.call_async(request)
            self._spinning.spin_until_future_complete(answer, 1.0)
            taken.append(time.perf_counter() - began)
            assert answer.done()
        return taken

    def wait(self, condition: Callable[[], Any]) -> None:
        """Spin until something holds."""
        end = time.monotonic() + 30.0
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError("a node did not come up")
            self._spin(0.05)

    def _spin(self, seconds: float) -> None:
        self._spinning.spin_until_future_complete(Future(), seconds)

    def _publish(self) -> None:
        now = self.get_clock().now()
        self._position[:] = 0.2 * np.sin(now.nanoseconds * 1e-9)
        stamp = self._message.header.stamp
        stamp.sec, stamp.nanosec = divmod(now.nanoseconds, 1_000_000_000)
        self._sent[now.nanoseconds] = time.perf_counter()
        self._to.publish(self._message)

    def _on_answer(self, message: JointState) -> None:
        arrived = time.perf_counter()
        stamp = message.header.stamp
        began = self._sent.pop(stamp.sec * 1_000_000_000 + stamp.nanosec, None)
        if began is not None:
            self.taken.append(arrived - began)


def rows() -> Iterator[Row]:
    """Joint states to efforts, and services, against a node that only hands on."""
    own_domain()
    rclpy.init()
    try:
        for joints in JOINTS:
            with tempfile.TemporaryDirectory() as folder:
                yield from _compare(joints, Path(folder))
    finally:
        rclpy.try_shutdown()


def _compare(joints: int, folder: Path) -> Iterator[Row]:
    urdf, loops = limbs(joints)
    robot = load_robot(urdf, loops)
    parameters = folder / "parameters.yaml"
    values = {"robot_description": urdf, "loop_constraints": yaml.safe_dump(loops)}
    parameters.write_text(yaml.safe_dump({"/**": {"ros__parameters": values}}))
    ours = ["rbda_ros.cli", "serve", "--ros-args", "--params-file", str(parameters)]
    plain = ["benchmark.latency", "--ros-args"]
    executor = make_executor()
    driver = Driver(robot.independent_joint_names, executor)
    executor.add_node(driver)
    with (
        program(folder, *ours, "-r", "__ns:=/ours") as our_id,
        program(folder, *plain, "-r", "__ns:=/plain") as plain_id,
    ):
        driver.wait(driver.ready)
        for who in CONTENDERS:
            driver.wait(lambda who=who: len(driver.turn(who, BLOCK)) > 100)
        driver.turn("ours", 2.0)  # by now its kernel is compiled
        yield from _stream(driver, joints, {"ours": our_id, "plain": plain_id})
        if joints == min(JOINTS):
            yield from _beside_trajectories(driver, joints, folder)
        if joints == max(JOINTS):
            yield from _services(driver, joints)
    executor.shutdown()
    driver.destroy_node()


def _stream(driver: Driver, joints: int, ids: dict[str, int]) -> Iterator[Row]:
    taken: Samples = {who: [] for who in CONTENDERS}
    cpu: Samples = {who: [] for who in CONTENDERS}
    for _ in range(ROUNDS):
        for who in CONTENDERS:
            began = _cpu_time(ids[who])
            trips = driver.turn(who, BLOCK)
            cpu[who].append((_cpu_time(ids[who]) - began) / len(trips))
            taken[who] += trips
    return _rows(f"joint_states, {joints} joints", ("dynamics", "pass-through"), taken, cpu)


def _services(driver: Driver, joints: int) -> Iterator[Row]:
    """Inverse dynamics, called with messages in place and with plain ones."""
    name, kind = "/ours/dynamics/inverse_dynamics", for_client(InverseDynamics)
    trigger = driver.create_client(Trigger, "/plain/pass_through/trigger"), Trigger.Request()
    request = _fill(kind.Request(), joints)
    # Responses reach every client of a service: so not while another is there.
    in_place = driver.create_client(kind, name)
    names = "inverse_dynamics", "std_srvs/Trigger"
    work = f"service, {joints} joints, messages in place"
    yield from _calls(driver, work, names, {"ours": (in_place, request), "plain": trigger})
    driver.destroy_client(in_place)

    request = _fill(InverseDynamics.Request(), joints)
    contenders = {
        "ours": (driver.create_client(InverseDynamics, name), request),
        "same": (
            driver.create_client(InverseDynamics, "/plain/pass_through/inverse_dynamics"),
            request,
        ),
        "plain": trigger,
    }
    names = "inverse_dynamics", "the same type, without work", "std_srvs/Trigger"
    yield from _calls(driver, f"service, {joints} joints, plain client", names, contenders)


def _fill(request: Any, joints: int) -> Any:
    request.state.position, request.state.velocity = [0.1] * joints, [0.2] * joints
    return request


def _calls(
    driver: Driver, work: str, names: Sequence[str], contenders: dict[str, tuple[Any, Any]]
) -> Iterator[Row]:
    for client, request in contenders.values():
        driver.wait(client.service_is_ready)
        driver.call(client, request, WARM_UP)
    taken: Samples = {who: [] for who in contenders}
    for _ in range(TURNS):
        for who, (client, request) in contenders.items():
            taken[who] += driver.call(client, request, CALLS)
    return _rows(work, names, taken, None)


def _beside_trajectories(driver: Driver, joints: int, folder: Path) -> Iterator[Row]:
    """The stream again, while another process has long trajectories computed, one by one."""
    caller = "benchmark.latency", "caller", str(joints)
    taken: Samples = {"ours": [], "same": [], "plain": driver.turn("ours", 4 * BLOCK)}
    with program(folder, *caller):
        log = folder / "benchmark.latency.log"
        driver.wait(lambda: log.read_bytes().count(b"answered") > COMPILED)
        for _ in range(ROUNDS):
            taken["ours"] += driver.turn("ours", BLOCK)
            taken["same"] += driver.turn("plain", BLOCK)
    names = (
        f"while {POINTS} points are computed",
        "pass-through, meanwhile",
        "undisturbed",
    )
    return _rows(f"joint_states, {joints} joints", names, taken, None)


def _call_for_ever(joints: int) -> None:
    """Have a trajectory computed, and again."""
    rclpy.init()
    node, executor = rclpy.create_node("caller"), make_executor()
    executor.add_node(node)
    client = node.create_client(
        TrajectoryInverseDynamics, "/ours/dynamics/trajectory_inverse_dynamics"
    )
    request = TrajectoryInverseDynamics.Request()
    for k in range(POINTS):
        motion = {"positions": [0.2 * k / POINTS] * joints, "velocities": [0.1] * joints}
        request.trajectory.points.append(JointTrajectoryPoint(**motion))
    client.wait_for_service()
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            answer = client.call_async(request)
            executor.spin_until_future_complete(answer, 10.0)
            print("answered" if answer.result().success else answer.result().message, flush=True)


def _rows(work: str, names: Sequence[str], taken: Samples, cpu: Samples | None) -> Iterator[Row]:
    """One row for each contender; ratios to the plain one."""
    medians = {who: statistics.median(trips) for who, trips in taken.items()}
    used = {who: statistics.median(cpu[who]) for who in taken} if cpu else None
    contenders = [who for who in ("ours", "same", "plain") if who in taken]
    for who, name in zip(contenders, names, strict=True):
        yield {
            "work": work,
            "node": name,
            "median_us": 1e6 * medians[who],
            "p99_us": 1e6 * float(np.percentile(taken[who], 99)),
            "cpu_us": 1e6 * used[who] if used else "",
            "ratio": medians[who] / medians["plain"],
            "cpu_ratio": used[who] / used["plain"] if used else "",
        }


def _cpu_time(process: int) -> float:
    """CPU time of a process of ours so far, all threads [s]; see clock_getcpuclockid(3)."""
    return time.clock_gettime((~process << 3) | 2)


if __name__ == "__main__" and sys.argv[1:2] == ["caller"]:
    _call_for_ever(int(sys.argv[2]))
elif __name__ == "__main__":
    signals = init(sys.argv[1:])
    spin(PassThrough(), Future(), signals)
