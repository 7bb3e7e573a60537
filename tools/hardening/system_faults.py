"""Faults of the computer around a node: its threads, folders, clients and clocks."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rbda_ros.msg import State
from ros_graph import Graph
from ros_requests import odometry_of
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from rbda_ros import load_robot, srv
from rbda_ros.demo.resources import share_file
from tools.hardening.driver import LOOPS, URDF
from tools.hardening.leg_node import LEG, NAMES, Y, answers, serve, start

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 0.1  # [s] the node's, by default
LATE = 0.2  # [s] that a process may be held up by others
STILL = [0.0] * 4


SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
/* What somebody else writes to a file: how far the system clock is set [s]; no more threads. */
static volatile int64_t *told(void)
{
  static volatile int64_t *at, none[2];
  if (at == NULL) {
    const int file = open(getenv("RBDA_ROS_SHIM"), O_RDONLY);
    void *mapped = mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);
    at = mapped == MAP_FAILED ? none : mapped;
  }
  return at;
}
int clock_gettime(clockid_t id, struct timespec *time)
{
  static int (*real)(clockid_t, struct timespec *);
  if (real == NULL) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const int status = real(id, time);
  if (id == CLOCK_REALTIME) time->tv_sec += told()[0];
  return status;
}
int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}
int pthread_create(pthread_t *thread, const pthread_attr_t *options, void *(*run)(void *), void *of)
{
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (real == NULL)
    real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
        RTLD_NEXT, "pthread_create");
  return told()[1] ? EAGAIN : real(thread, options, run, of);
}
"""
"""A library that is loaded before the C library, for a node to see what only root could do."""


class Shim:
    """The library, compiled; and what it tells the node."""

    def __init__(self, folder: Path, compiler: str) -> None:
        source, self._library, self._file = (folder / name for name in ("s.c", "s.so", "told"))
        source.write_text(SHIM)
        options = ["-shared", "-fPIC", "-O1", "-o", str(self._library), str(source), "-ldl"]
        subprocess.run([compiler, *options], check=True, capture_output=True)
        self.tell()

    def tell(self, clock: int = 0, no_threads: bool = False) -> None:
        """Set the node's clock so far [s], and whether it may make threads."""
        if not self._file.exists():
            self._file.write_bytes(bytes(16))
        with self._file.open("r+b") as file:
            for value in (clock, int(no_threads)):
                file.write(value.to_bytes(8, sys.byteorder, signed=True))

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "RBDA_ROS_SHIM": str(self._file)}


def make_shim(graph: Graph) -> Shim | None:
    """None where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    return None if compiler is None else Shim(graph.folder, compiler)


def thread_limit(graph: Graph) -> str | None:
    """No thread can be made any more: efforts go on, and requests are answered."""
    shim = make_shim(graph)
    if shim is None:
        return None
    node, client, talk = start(graph, environment=shim.environment)
    assert answers(talk)
    shim.tell(no_threads=True)
    slow = srv.TrajectoryInverseDynamics.Request()
    slow.trajectory.points = [JointTrajectoryPoint(positions=Y, velocities=STILL)] * 1000
    answer = client.call(srv.TrajectoryInverseDynamics, "~/trajectory_inverse_dynamics", slow)
    assert answer.success or "threads" in answer.message, answer.message
    said = "answered" if answer.success else answer.message[:100]
    request = srv.MassMatrix.Request(state=State(position=list(Y)))
    answer = client.call(srv.MassMatrix, "~/mass_matrix", request)
    assert answer.success, answer.message
    description = client.describe(LEG.replace('name="demo_leg"', 'name="limited"', 1))
    client.spin(2.0)
    assert answers(talk)
    assert node.running
    shim.tell()
    client.node.destroy_publisher(description)
    code = node.stop()
    assert code == 0, f"exit code {code}: {node.log[-300:]}"
    return f"efforts go on, through a new description too; a slow service: {said}"


@contextmanager
def full_folder(graph: Graph) -> Iterator[Path | None]:
    """A folder on a disk of its own that is full; None where the system does not allow it."""
    folder = graph.folder / "full"
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", bytes(folder), b"tmpfs", 0, b"size=16k,mode=0700") != 0:
        yield None
        return
    try:
        with suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
            while filler.write(b"x" * 1024):
                pass
        yield folder
    finally:
        libc.umount2(bytes(folder), 2)


def full_tmp(graph: Graph) -> str | None:
    """The folder of temporary files is full, and so is that of the cache."""
    with full_folder(graph) as folder:
        if folder is None:
            return None
        nowhere = dict.fromkeys(("TMPDIR", "TMP", "TEMP", "RBDA_ROS_CACHE"), str(folder))
        node, _, talk = start(graph, environment=nowhere)
        assert answers(talk)
        assert node.stop() == 0
        assert "Traceback" not in node.log
    return "starts without a cache, answers and ends"


CLIENTS = """
import sys, time, rclpy
from rbda_ros.srv import InverseDynamics
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint
rclpy.init()
nodes = [rclpy.create_node(f"client_{sys.argv[1]}_{k}") for k in range(10)]
received, answered, asked, since = [0] * 10, [0] * 10, [None] * 10, [0.0] * 10
executor = rclpy.executors.SingleThreadedExecutor()
clients = []
for k, node in enumerate(nodes):
    def receive(_, k=k):
        received[k] += 1
    node.create_subscription(JointState, "dynamics/feedforward", receive, 1)
    clients.append(node.create_client(InverseDynamics, "dynamics/inverse_dynamics"))
    executor.add_node(node)
request = InverseDynamics.Request()
request.state.position = [0.1, 0.3, 0.9, -0.2]
for client in clients:
    client.wait_for_service(30.0)
end = time.monotonic() + 15.0
while time.monotonic() < end:
    for k, client in enumerate(clients):
        done = asked[k] is not None and asked[k].done()
        answered[k] += done and asked[k].result().success
        if done or time.monotonic() > since[k] + 2.0:  # the middleware loses an answer now and then
            asked[k], since[k] = client.call_async(request), time.monotonic()
    executor.spin_once(0.01)
print(min(received), min(answered), sum(answered), flush=True)
"""


def fifty_clients(graph: Graph) -> str:
    """Fifty nodes receive the efforts and call a service, beside joint states at 200 Hz."""
    start(graph)
    report = graph.folder / "driver.json"
    graph.run("--report", str(report), "--rate", "200", module="tools.hardening.driver")
    environment = os.environ | graph._environment
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", CLIENTS, str(k)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for k in range(5)
    ]
    said = [program.communicate(timeout=120)[0].split() for program in programs]
    assert all(len(each) == 3 for each in said), said
    fewest_received, fewest_answers = (min(int(each[k]) for each in said) for k in (0, 1))
    assert fewest_received and fewest_answers, said
    counts = json.loads(report.read_text())
    assert counts["answered"] > 100 and not counts["wrong"], counts
    total = sum(int(each[2]) for each in said)
    return (
        f"{total} requests answered, each client at least {fewest_answers}; "
        f"{counts['answered']} efforts, all right"
    )


def floating_base(graph: Graph) -> str:
    """A leg whose base floats: efforts only with a fresh base state, and right ones."""
    serve(graph, floating_base=True)
    client = graph.client()
    client.until_active()
    robot = load_robot(share_file(URDF), share_file(LOOPS), floating_base=True)
    states = client.publisher(JointState, "joint_states")
    bases = client.publisher(Odometry, "~/base_state")
    received = client.listen(JointState, "~/feedforward")
    rng = np.random.default_rng(0)
    checked = 0

    def publish(base: np.ndarray, twist: np.ndarray, with_base: bool) -> Any:
        message = client.joint_states(NAMES, Y, STILL)
        if with_base:
            bases.publish(odometry_of(message.header, base, twist))
            client.spin(0.02)
        states.publish(message)
        client.spin(0.03)
        return message

    for _ in range(60):
        turn = rng.normal(size=4)
        base = np.concatenate([rng.normal(size=3), turn / np.linalg.norm(turn)])
        twist = rng.normal(size=6)
        message = publish(base, twist, with_base=True)
        found = [each for each in received if each.header.stamp == message.header.stamp]
        if not found:
            continue
        q = robot.close(np.concatenate([base, Y]))
        yd = np.concatenate([twist, STILL])
        right = robot.inverse_dynamics_efforts(q, yd, np.zeros(robot.ny))[0]
        error = float(np.abs(np.array(found[0].effort) - right[-len(found[0].effort) :]).max())
        assert error < 1e-6, f"wrong by {error:.2g} N m"
        checked += 1
    assert checked > 20, f"{checked} efforts"
    client.spin(3 * TIMEOUT)
    received.clear()
    for _ in range(20):
        publish(base, twist, with_base=False)
    without = sum(bool(np.any(each.effort)) for each in received)
    assert not without, f"{without} efforts without a base state"
    return f"{checked} efforts, all right; none without a base state"


def stepped_clock(graph: Graph) -> str | None:
    """Somebody sets the system clock, forward and back, while the node runs."""
    shim = make_shim(graph)
    if shim is None:
        return None
    node = serve(graph, environment=shim.environment)
    client = graph.client()
    client.until_active()
    states = client.publisher(JointState, "joint_states")
    received = client.listen(JointState, "~/feedforward")

    def answered(ahead: int) -> bool:
        """Whether a state is answered whose stamp is so far ahead of our clock [s]."""
        for _ in range(100):
            message = client.joint_states(NAMES, Y, STILL)
            message.header.stamp.sec += ahead
            states.publish(message)
            client.spin(0.03)
            if any(
                each.header.stamp == message.header.stamp and any(each.effort) for each in received
            ):
                return True
        return False

    assert answered(0), "no effort before any step"
    for seconds in (3600, -3600, 0):
        shim.tell(clock=seconds)
        assert answered(seconds), f"no effort after a step to {seconds} s"
        received.clear()
        old = client.joint_states(NAMES, Y, STILL)
        old.header.stamp.sec += seconds - 60
        states.publish(old)
        client.spin(0.2)
        stale = [e for e in received if e.header.stamp == old.header.stamp and any(e.effort)]
        assert not stale, f"a state of a minute ago is answered after a step to {seconds} s"
    assert node.stop() == 0
    return "efforts again after steps by 3,600 s forward, 7,200 s back and forward again"


def suspended(graph: Graph) -> str:
    """The node is suspended for two seconds while states come: it answers none of these."""
    node, client, talk = start(graph)
    assert answers(talk)
    os.kill(node.process.pid, signal.SIGSTOP)
    published = []
    for _ in range(200):
        message = client.joint_states(NAMES, Y, STILL)
        talk.publisher.publish(message)
        published.append(message.header.stamp)
        client.spin(0.01)
    talk.received.clear()
    os.kill(node.process.pid, signal.SIGCONT)
    resumed = time.time()
    client.spin(0.5)
    ages = [
        resumed - (each.header.stamp.sec + 1e-9 * each.header.stamp.nanosec)
        for each in talk.received
        if any(each.effort)
    ]
    assert not ages or max(ages) <= TIMEOUT + LATE, f"a state {max(ages):.2f} s old is answered"
    assert answers(talk)
    return f"{len(ages)} of {len(published)} states answered, those of the last {TIMEOUT:g} s alone"


def simulated_time(graph: Graph) -> str:
    """Simulated time is paused, goes on, and is switched off and on while the node runs."""
    node, client, talk = start(graph, use_sim_time=True)
    clock = client.publisher(Clock, "/clock")
    now = [1_000_000_000_000]

    def tick(passed: int = 10_000_000) -> None:
        now[0] += passed
        sec, nanosec = divmod(now[0], 10**9)
        clock.publish(Clock(clock=Time(sec=sec, nanosec=nanosec)))

    def publish(stamp: int) -> Any:
        message = client.joint_states(NAMES, Y, STILL)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        talk.publisher.publish(message)
        return message

    def answered_in_simulation() -> bool:
        talk.received.clear()
        for _ in range(200):
            tick()
            client.spin(0.01)
            message = publish(now[0])
            client.spin(0.02)
            if talk.answered(message):
                return True
        return False

    assert answered_in_simulation(), "no effort in simulated time"
    talk.received.clear()
    for _ in range(50):  # the clock stands, and so do the stamps
        publish(now[0])
        client.spin(0.02)
    while_paused = len(talk.received)
    assert answered_in_simulation(), "no effort after the pause"
    assert client.set_parameter("use_sim_time", False).successful
    assert answers(talk), "no effort by the system clock"
    assert client.set_parameter("use_sim_time", True).successful
    assert answered_in_simulation(), "no effort in simulated time again"
    assert node.stop() == 0
    return f"{while_paused} efforts to 50 states with one stamp; efforts after each change"


SYSTEM_FAULTS: dict[str, Callable[[Graph], str | None]] = {
    "thread limit": thread_limit,
    "full /tmp": full_tmp,
    "50 clients": fifty_clients,
    "floating base": floating_base,
    "stepped system clock": stepped_clock,
    "suspended node": suspended,
    "simulated time paused and toggled": simulated_time,
}
