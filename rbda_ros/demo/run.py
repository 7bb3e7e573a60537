"""`rbda_ros demo`: runs the node on a bundled robot that moves, and prints its efforts.

Three processes, as on a robot: a source of joint states, the node, and this one, which listens
to the efforts and calls a service.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text
from sensor_msgs.msg import JointState

from rbda_ros.demo.open_chain import DEMO_LOOPS, DEMO_ROBOT, OpenChain
from rbda_ros.demo.resources import share_file
from rbda_ros.node.stop_signals import StopSignals
from rbda_ros.srv import InverseDynamics

PATIENCE = 120.0  # [s] until the first efforts: a busy machine takes long to import ROS
FRAME = 0.25  # [s] between two pictures
ASK_AGAIN = 2.0  # [s]; an answer can get lost while the processes are still finding each other
ENOUGH = 100  # efforts that give a rate and a latency worth showing

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1  # of Linux's prctl
WINDOW = 1000  # efforts that rate and latency are taken over
LINE = 1.0  # [s] between two lines where there is no terminal


Program = tuple[subprocess.Popen[bytes], Path]
"""A process, and the file of its log."""


class DemoError(Exception):
    """The demo cannot go on; says why."""


class Monitor(Node):
    """Receives joint states and efforts, and measures the latency between them."""

    def __init__(self) -> None:
        super().__init__("demo_monitor")
        self.state: JointState | None = None
        self.effort: JointState | None = None
        self.pace = Pace()
        self._open_chain = OpenChain()
        self._inverse_dynamics = self.create_client(InverseDynamics, "dynamics/inverse_dynamics")
        self.create_subscription(
            JointState, "joint_states", self._on_state, qos_profile_sensor_data
        )
        self.create_subscription(
            JointState, "dynamics/feedforward", self._on_effort, qos_profile_sensor_data
        )

    def _on_state(self, message: JointState) -> None:
        self.state = message

    def _on_effort(self, message: JointState) -> None:
        stamp = message.header.stamp
        now = self.get_clock().now().nanoseconds
        self.pace.add(now * 1e-9, now * 1e-9 - (stamp.sec + stamp.nanosec * 1e-9))
        self.effort = message

    @property
    def ready(self) -> bool:
        """Whether everything has arrived once: joint states, efforts, and the service."""
        return None not in (self.state, self.effort) and self._inverse_dynamics.service_is_ready()

    def without_loops(self) -> dict[str, float]:
        """Efforts by motor that the open chain gives at the same state."""
        assert self.state is not None and self.effort is not None
        motion = zip(self.state.position, self.state.velocity, strict=True)
        named = dict(zip(self.state.name, motion, strict=True))
        y, yd = zip(*(named[name] for name in self._open_chain.robot.joint_names), strict=True)
        torques = self._open_chain.torques(y, yd, [0.0] * len(y))
        efforts = self._open_chain.on_motors(torques)
        return {name: float(efforts[name]) for name in self.effort.name}

    def ask(self) -> Any:
        """Call ~/inverse_dynamics at the present position, at rest; the answer is a future."""
        assert self.state is not None
        request = InverseDynamics.Request()
        request.state.joint_names = self.state.name
        request.state.position = self.state.position
        return self._inverse_dynamics.call_async(request)


def run(seconds: float | None = None, once: bool = False) -> int:
    """Show the demo until Ctrl-C, for some seconds, or until all was shown once."""
    use_own_domain()
    stop = threading.Event()
    StopSignals().then(stop.set)
    try:
        with tempfile.TemporaryDirectory(prefix="rbda_ros_demo_") as folder:
            logs = Path(folder)
            with (
                node_program(logs) as serving,
                program(logs / "source.log", "rbda_ros.demo.joint_state_source") as moving,
                _monitor() as (monitor, executor),
            ):
                _show(monitor, executor, {"node": serving, "source": moving}, seconds, once, stop)
    except DemoError as error:
        print(f"rbda_ros demo: {error}", file=sys.stderr)
        return 1
    return 0


def _show(
    monitor: Monitor,
    executor: Any,
    programs: dict[str, Program],
    seconds: float | None,
    once: bool,
    stop: threading.Event,
) -> None:
    asked, sent, answered = None, 0.0, False
    next_frame = time.monotonic()
    end = next_frame + PATIENCE
    with View(robot=Path(DEMO_ROBOT).stem, domain=os.environ["ROS_DOMAIN_ID"]) as view:
        while (now := time.monotonic()) < end:
            if stop.is_set():
                return
            executor.spin_once(0.05)
            for name, (process, log) in programs.items():
                if process.poll() is not None:
                    raise DemoError(f"the {name} ended: {_last_line(log)}")
            if asked is None:
                if not monitor.ready:
                    continue
                asked, sent = monitor.ask(), time.perf_counter()
                end = now + seconds if seconds else float("inf")
            if not answered and not asked.done() and time.perf_counter() - sent > ASK_AGAIN:
                asked, sent = monitor.ask(), time.perf_counter()
            if asked.done() and not answered:
                answered = True
                view.answer(asked.result(), time.perf_counter() - sent)
            if once and answered and monitor.pace.count >= ENOUGH:
                break
            if now >= next_frame:
                next_frame = now + FRAME
                view.frame(monitor.state, monitor.effort, monitor.without_loops(), monitor.pace)
        if asked is None:
            raise DemoError(f"no efforts within {PATIENCE:.0f} s")
        without_loops = monitor.without_loops()
        view.frame(monitor.state, monitor.effort, without_loops, monitor.pace, last=True)


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def use_own_domain() -> None:
    """Use a ROS domain of this process, on this machine: the demo must not stir a robot nearby."""
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")


def node_program(
    folder: Path, parameters: Mapping[str, Any] | None = None
) -> AbstractContextManager[Program]:
    """Run the node, on the demo leg unless told otherwise, as a process that ends with this one.

    Args:
        folder: where its parameters and its log are written.
        parameters: of the node, beside or in place of the description of the leg.
    """
    values = {
        "robot_description": share_file(DEMO_ROBOT).read_text(),
        "loop_constraints": str(share_file(DEMO_LOOPS)),
        **(parameters or {}),
    }
    file = folder / "parameters.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": values}}))
    node = ["rbda_ros.cli", "serve", "--ros-args", "--params-file", str(file)]
    return program(folder / "node.log", *node)


@contextmanager
def program(log: Path, *command: str) -> Iterator[Program]:
    """Run a module of this package as a process that ends with this one."""
    # In its own session, Ctrl-C reaches it only through us, once.
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGINT),
        )
    try:
        yield process, log
    finally:
        for ask in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            process.send_signal(ask)
            with suppress(subprocess.TimeoutExpired):
                process.wait(5.0)
                break


@contextmanager
def _monitor() -> Iterator[tuple[Monitor, Any]]:
    # Signals are ours; rclpy's handlers would end the context first.
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    monitor = Monitor()
    executor = SingleThreadedExecutor()
    executor.add_node(monitor)
    try:
        yield monitor, executor
    finally:
        executor.shutdown()
        monitor.destroy_node()
        rclpy.try_shutdown()


class Pace:
    """Rate and latency of the efforts."""

    def __init__(self) -> None:
        self.count = 0
        self._arrivals: deque[float] = deque(maxlen=WINDOW)  # [s]
        self._latencies: deque[float] = deque(maxlen=WINDOW)  # [s]

    def add(self, arrival: float, latency: float) -> None:
        """One effort."""
        self.count += 1
        self._arrivals.append(arrival)
        self._latencies.append(latency)

    def __str__(self) -> str:
        elapsed = self._arrivals[-1] - self._arrivals[0]
        rate = (len(self._arrivals) - 1) / elapsed if elapsed else 0.0
        median, p99 = np.percentile(np.array(self._latencies) * 1e3, [50, 99])
        return (
            f"{rate:.0f} Hz, latency {median:.2f} ms, 99th percentile {p99:.2f} ms "
            f"({self.count} efforts)"
        )


class View:
    """Shows the state of the robot, the efforts, how fast they come, and a service's answer."""

    def __init__(self, robot: str, domain: str) -> None:
        self._title = f"{robot} · ROS_DOMAIN_ID {domain} · Ctrl-C ends it"
        self._hint = (
            "In the browser, from a second terminal:\n"
            f"  ROS_DOMAIN_ID={domain} .venv/bin/rbda_ros view --node /dynamics"
        )
        self._console = Console()
        self._live = Live(
            Text(f"{self._title}\nstarting the node ..."),
            console=self._console,
            auto_refresh=False,
        )
        self._answer = ""
        self._next_line = 0.0

    def __enter__(self) -> View:
        if self._console.is_terminal:
            self._live.start(refresh=True)
        else:
            self._print(f"{self._title}: starting the node ...")
        return self

    def __exit__(self, *error: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def answer(self, response: Any, seconds: float) -> None:
        """Take the answer of ~/inverse_dynamics, and how long it took."""
        if response.success:
            efforts = zip(response.joint_names, response.effort, strict=True)
            listed = ", ".join(f"{name} {effort:.3f} N m" for name, effort in efforts)
            self._answer = (
                f"~/inverse_dynamics, to hold it still: {listed} ({seconds * 1e3:.1f} ms)"
            )
        else:
            self._answer = f"~/inverse_dynamics refused: {response.message}"
        if not self._console.is_terminal:
            self._print(self._answer)

    def frame(
        self,
        state: Any,
        effort: Any,
        without_loops: Mapping[str, float],
        pace: Pace,
        *,
        last: bool = False,
    ) -> None:
        """Draw the present: joint states, efforts, and those of the open chain by motor."""
        if self._console.is_terminal:
            self._live.update(
                Group(
                    Text(self._title),
                    _tables(state, effort, without_loops),
                    Text(str(pace)),
                    Text(self._answer),
                    Text(self._hint),
                ),
                refresh=True,
            )
        elif time.monotonic() >= self._next_line or last:
            self._next_line = time.monotonic() + LINE
            efforts = zip(effort.name, effort.effort, strict=True)
            listed = ", ".join(
                f"{name} {value:+.2f} N m ({without_loops[name]:+.2f} without loops)"
                for name, value in efforts
            )
            self._print(f"{pace}: {listed}")

    def _print(self, line: str) -> None:
        print(line, flush=True)


def _tables(state: Any, effort: Any, without_loops: Mapping[str, float]) -> Columns:
    """Inputs of the node beside its outputs; below them where the terminal is narrow."""
    moving = zip(state.name, state.position, state.velocity, strict=True)
    driving = (
        (name, value, without_loops[name])
        for name, value in zip(effort.name, effort.effort, strict=True)
    )
    return Columns(
        [
            _table("joint_states", ("joint", "position [rad]", "velocity [rad/s]"), moving),
            _table("dynamics/feedforward", ("joint", "effort [N m]", "without loops"), driving),
        ],
        padding=(0, 2),
    )


def _table(title: str, headings: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(headings[0], no_wrap=True)
    for heading in headings[1:]:
        # Text: rich would take [rad] for markup.
        table.add_column(Text(heading), justify="right", min_width=len(heading))
    for name, *values in rows:
        table.add_row(name, *(f"{value:+.3f}" for value in values))
    return table
