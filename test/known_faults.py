"""Faults of the safety promises that were once found on a running node, replayed with processes.

    PYTHONPATH=test python test/known_faults.py [numbers]

Each fault is a function of a graph. It starts a node, does what provoked the fault, and returns
what was found: a number, the bound that the promise puts on it, and a sentence. It uses nothing but
parameters and topics that older versions have too, so that it runs beside any of them: give it
their folder as ``PYTHONPATH``. `test/node/test_safety.py` asserts that every bound holds.
"""

from __future__ import annotations

import math
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from chain import chain
from lifecycle_msgs.msg import Transition
from mechanism_table import MECHANISMS
from ros_graph import Graph, own_domain
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rbda_ros import load_robot

ARM = """<robot name="arm"><link name="base"/>
  <link name="rod"><inertial><origin xyz="1 0 0"/><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hip" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
    <limit lower="-9" upper="9" effort="1000" velocity="100"/></joint></robot>"""
TORQUE = 9.81  # [N m] of 1 kg at 1 m
PERIOD = 0.005  # [s] between two states
TIMEOUT = 0.5  # [s] the node's: other work may hold this process up


@dataclass(frozen=True)
class Finding:
    """Result of a fault.

    Attributes:
        found: the number that the promise is about.
        bound: the largest that it may be.
        text: in words.
    """

    found: float
    bound: float
    text: str

    @property
    def kept(self) -> bool:
        """Whether the promise was kept."""
        return self.found <= self.bound


def stamp_of(message: Any) -> int:
    """The stamp of a message [ns]."""
    return int(message.header.stamp.sec) * 10**9 + int(message.header.stamp.nanosec)


class Driver:
    """A robot's driver: a node under test, and a thread that publishes states and commands.

    Attributes:
        names, position, velocity, effort: of the joint states; change them while it runs.
        commands: fields of the joint commands; empty for none.
        age: how old joint states are [s].
        efforts, motors, array: what was received on each topic.
    """

    def __init__(self, graph: Graph, names: list[str], position: list[float], **values: Any):
        self.node = graph.serve(joint_state_timeout=values.pop("timeout", TIMEOUT), **values)
        self.client = graph.client()
        self.client.until_active()
        self.names, self.position = names, position
        self.velocity = [0.0] * len(names)
        self.effort: list[float] = []
        self.commands: dict[str, Any] = {}
        self.age = 0.0
        self.states = self.client.publisher(JointState, "joint_states")
        self._commands = self.client.publisher(JointState, "~/joint_commands")
        self.efforts = self.client.listen(JointState, "~/feedforward")
        self.motors = self.client.listen(JointState, "~/motor_commands")
        self.array: list[Any] = []
        if values.get("command_joints"):
            self.array = self.client.listen(Float64MultiArray, "~/effort_commands")
        self.quiet, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Driver:
        self._thread.start()
        self.client.until(lambda: any(any(each.effort) for each in self.efforts))
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(PERIOD):
            if not self.quiet.is_set():
                self.publish()
            if self.commands:
                self.command(**self.commands)

    def publish(self, stamp: int | None = None) -> int:
        """One joint state; its stamp [ns]."""
        message = JointState(name=self.names, position=self.position, velocity=self.velocity)
        message.effort = self.effort
        stamp = time.time_ns() - int(self.age * 1e9) if stamp is None else stamp
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        self.states.publish(message)
        return stamp

    def command(self, name: list[str], **fields: list[float]) -> None:
        message = JointState(name=name, **fields)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(time.time_ns(), 10**9)
        self._commands.publish(message)

    def set(self, **values: Any) -> int:
        """Set parameters, all at once; when that was accepted [ns]."""
        answer = self.client.set_parameters(**values)
        assert answer.successful, answer.reason
        return time.time_ns()

    def until_received(self, received: list[Any], count: int = 5, seconds: float = 20.0) -> None:
        """Wait for more messages, if they come."""
        before = len(received)
        with suppress(AssertionError):
            self.client.until(lambda: len(received) >= before + count, seconds)


def steps(received: list[Any]) -> list[float]:
    """Largest change of an effort from each message to the next."""
    rows = [np.array(each.effort if hasattr(each, "effort") else each.data) for each in received]
    return [float(np.abs(b - a).max()) for a, b in pairwise(rows) if a.shape == b.shape]


def frozen_state(graph: Graph) -> Finding:
    """1: ours stop, become old, or are all gone but another robot's, which share the topic."""
    with Driver(graph, ["hip"], [0.0], robot_description=ARM, stiffness="{hip: 10.0}") as driver:
        driver.commands = {"name": ["hip"], "position": [0.1]}
        driver.client.until(lambda: any(any(each.effort) for each in driver.motors))
        others = JointState(name=["other"], position=[0.0], velocity=[0.0])

        def wait(seconds: float) -> None:
            for _ in range(int(seconds / 0.01)):
                stamp = divmod(time.time_ns(), 10**9)
                others.header.stamp.sec, others.header.stamp.nanosec = stamp
                if remains == "another robot's states":
                    driver.states.publish(others)
                driver.client.spin(0.01)

        sent = {}
        for remains in ("another robot's states", "old states", "none"):
            driver.quiet.clear()
            driver.age = 0.0
            wait(0.5)
            driver.age = 5.0
            if remains != "old states":
                driver.quiet.set()
            wait(TIMEOUT + 0.3)
            driver.motors.clear()
            wait(1.0)
            sent[remains] = sum(any(each.effort) for each in driver.motors)
    told = ", ".join(f"{name} {count}" for name, count in sent.items())
    return Finding(sum(sent.values()), 0, f"motor commands in 1 s in which there are: {told}")


def rate_limit_jumps(graph: Graph) -> Finding:
    """2: a rate limit is switched on, off and on again; the description gets another name."""
    found, rate = {}, 0.5

    def largest(driver: Driver, name: str, act: Callable[[], object]) -> None:
        """Largest step from the last message before something to those after."""
        last = driver.efforts[-1]
        act()
        driver.until_received(driver.efforts, 40)
        del driver.efforts[: driver.efforts.index(last)]
        found[name] = max(steps(driver.efforts), default=math.inf), 0.1 * rate

    with Driver(graph, ["hip"], [0.0], robot_description=ARM, timeout=5.0) as driver:
        largest(driver, "switched on", lambda: driver.set(effort_rate_limit=rate))
        driver.set(effort_rate_limit=0.0)
        driver.position = [math.pi]
        driver.client.until(lambda: abs(driver.efforts[-1].effort[0] - TORQUE) < 1e-6)
        largest(driver, "off and on again", lambda: driver.set(effort_rate_limit=rate))
    driver.node.stop()
    rate = 5.0  # to be there soon
    options = dict(robot_description=ARM, effort_rate_limit=rate, timeout=5.0)
    with Driver(graph, ["hip"], [0.0], **options) as driver:
        driver.client.until(lambda: abs(driver.efforts[-1].effort[0]) > 0.99 * TORQUE)
        keep = []

        def rename() -> None:
            text = ARM.replace('name="arm"', 'name="another_arm"')
            keep.append(driver.client.describe(text))
            driver.client.until(lambda: "the model is now 'another_arm'" in driver.node.log)

        largest(driver, "another name", rename)
    told = ", ".join(f"{name} {step:.3g} of {most:g}" for name, (step, most) in found.items())
    worst = max(step / most for step, most in found.values())
    return Finding(worst, 1.002, f"largest step, and what the rate limit allows [N m]: {told}")


def limit_yields(graph: Graph) -> Finding:
    """3: a limit is lowered while a rate limit is on."""
    with Driver(
        graph, ["hip"], [0.0], robot_description=ARM, effort_rate_limit=5.0, timeout=5.0
    ) as driver:
        driver.client.until(lambda: abs(driver.efforts[-1].effort[0]) > 0.99 * TORQUE)
        accepted = driver.set(effort_limits="{hip: 0.1}")
        driver.efforts.clear()
        driver.client.spin(3.0)
        after = [abs(e.effort[0]) for e in driver.efforts if stamp_of(e) > accepted]
        above = sum(effort > 0.1 + 1e-9 for effort in after)
    text = f"{above} of {len(after)} efforts above 0.1 N m, up to {max(after, default=0.0):.3g} N m"
    return Finding(above if after else math.inf, 0, text)


def limit_waits(graph: Graph) -> Finding:
    """4: a limit is set together with other terms, whose kernel has to be made."""
    robot = load_robot(chain(40))
    names = list(robot.joint_names)
    position = np.linspace(0.2, 1.0, len(names)).tolist()
    limits = "{" + ", ".join(f"{name}: 0.01" for name in names) + "}"
    with Driver(graph, names, position, robot_description=chain(40), timeout=5.0) as driver:
        accepted = driver.set(terms=["gravity", "inertial"], effort_limits=limits)
        driver.efforts.clear()
        driver.client.spin(3.0)
        after = [max(np.abs(e.effort)) for e in driver.efforts if stamp_of(e) > accepted]
        above = sum(effort > 0.01 + 1e-12 for effort in after)
    text = (
        f"{above} of {len(after)} efforts above 0.01 N m, up to {max(after, default=0.0):.3g} N m"
    )
    return Finding(above if after else math.inf, 0, text)


def four_bar() -> tuple[Any, str, str]:
    """A robot, its description, and its loops; its efforts follow from the rocker."""
    mechanism = MECHANISMS["geared_four_bar"]
    loops = mechanism.loops.read_text().replace("joints: [rotor]", "joints: [rocker]")
    return load_robot(mechanism.urdf, loops), mechanism.urdf.read_text(), loops


def closed(robot: Any, crank: float, q: np.ndarray | None = None) -> np.ndarray:
    """The position with the crank at an angle; on the branch of another position."""
    return np.asarray(robot.close({"crank": crank}, guess=q))


def wrong_branch(graph: Graph) -> Finding:
    """5: crank and rocker of a four-bar are measured, and the crank turns round."""
    robot, text, loops = four_bar()
    at = [robot.coordinates.scalar_positions[name] for name in ("rocker", "crank")]
    q = closed(robot, 1.0)
    truth: dict[int, np.ndarray] = {}
    with Driver(
        graph, ["rocker", "crank"], q[at].tolist(), robot_description=text, loop_constraints=loops
    ) as driver:
        driver.quiet.set()
        driver.client.spin(0.1)
        driver.efforts.clear()
        answers = []
        driver.client.node.create_subscription(
            JointState, "dynamics/feedforward", answers.append, 1000
        )
        for crank in np.arange(1.0, 1.0 + 4 * math.pi, 0.02):
            q = closed(robot, crank, q)
            driver.position = q[at].tolist()
            stamp = driver.publish()
            tau = robot.inverse_dynamics(q, np.zeros(robot.ny), np.zeros(robot.ny))
            truth[stamp] = np.asarray(robot.actuator_efforts(q, tau))
            driver.client.spin(0.004)
        driver.client.spin(0.3)
    given = [(np.array(e.effort), truth[stamp_of(e)]) for e in answers if stamp_of(e) in truth]
    given = [(found, right) for found, right in given if found.any()]
    errors = [float(np.abs(found - right).max()) for found, right in given]
    wrong = sum(error > 1e-6 for error in errors)
    text = f"{wrong} of {len(given)} efforts wrong, by up to {max(errors, default=0.0):.2g} N m"
    return Finding(wrong if len(given) > 100 else math.inf, 0, text)


def hold_here(graph: Graph) -> Finding:
    """6: a four-bar is told to stay where it is, after it passed a dead point of its rocker."""
    robot, text, loops = four_bar()
    crank, rocker = (robot.coordinates.scalar_positions[name] for name in ("crank", "rocker"))
    here = closed(robot, 1.0)
    there, crossed = here, False
    for angle in np.arange(1.0, 1.0 + 2 * math.pi, 0.002):  # until the rocker is where it was
        before, there = there[rocker], closed(robot, angle, there)
        crossed = angle > 1.2 and (before - here[rocker]) * (there[rocker] - here[rocker]) <= 0.0
        if crossed:
            break
    assert crossed
    options = dict(robot_description=text, loop_constraints=loops, stiffness="{crank: 10.0}")
    with Driver(graph, ["crank"], [float(here[crank])], **options) as driver:
        command = {"name": ["rocker"], "position": [float(here[rocker])]}

        def held() -> float:
            """The motor's effort to stay."""
            driver.motors.clear()
            for _ in range(200):
                driver.command(**command)
                driver.client.spin(0.02)
                if driver.motors:
                    break
            sent = [each.effort[0] for each in driver.motors if each.effort]
            return float(max(map(abs, sent), default=math.nan))

        first = held()
        q = here
        for passed in np.arange(1.0, angle, 0.02):  # the robot moves there, and is measured
            q = closed(robot, passed, q)
            driver.position = [float(q[crank])]
            driver.client.spin(0.005)
        driver.position = [float(there[crank])]
        driver.client.spin(2 * TIMEOUT)  # the last command is old
        command["position"] = [float(there[rocker])]
        second = held()
    text = f"{first:.3g} N m before and {second:.3g} N m after the dead point, where 0 is right"
    return Finding(second if math.isfinite(second) else math.inf, 0.05, text)


def ungated_commands(graph: Graph) -> Finding:
    """7: efforts commanded in joint space, inside a ramp, under a rate limit, then a rejection."""
    with Driver(
        graph,
        ["hip"],
        [0.0],
        robot_description=ARM,
        command_source="joint_commands",
        command_joints=["hip"],
        ramp_in=5.0,
        effort_rate_limit=0.5,
        on_refusal="zero",
    ) as driver:
        driver.commands = {"name": ["hip"], "effort": [2.0]}
        driver.until_received(driver.array, 50)
        first = abs(driver.array[0].data[0]) if driver.array else math.inf
        step = max([first, *steps(driver.array)])
        driver.commands = {}
        driver.client.spin(0.05)
        driver.command(["hip"], effort=[math.nan])
        driver.client.spin(0.2)
        standing = abs(driver.array[-1].data[0]) if driver.array else math.inf
    text = (
        f"a step of {step:.3g} N m under a limit of 0.5 N m/s inside a ramp of 5 s; "
        f"{standing:.3g} N m stand after a rejection"
    )
    return Finding(max(step, standing), 0.0501, text)


def standing_torque(graph: Graph) -> Finding:
    """8: what a forward_command_controller would go on with."""
    found = {}
    for end in ("rejected", "states stop", "deactivated", "SIGINT"):
        with Driver(
            graph, ["hip"], [0.0], robot_description=ARM, command_joints=["hip"], on_refusal="zero"
        ) as driver:
            driver.until_received(driver.array)
            if end == "rejected":
                driver.velocity = [math.nan]
            elif end == "states stop":
                driver.quiet.set()
            elif end == "deactivated":
                assert driver.client.change_state(Transition.TRANSITION_DEACTIVATE)
            else:
                driver.node.stop(signal.SIGINT)
            driver.client.spin(TIMEOUT + 0.5)
            found[end] = abs(driver.array[-1].data[0])
        if driver.node.running:
            driver.node.stop()
    told = ", ".join(f"{name} {effort:.3g}" for name, effort in found.items())
    return Finding(max(found.values()), 0.0, f"effort that stands [N m]: {told}")


def unfiltered_difference(graph: Graph) -> Finding:
    """9: a robot at rest whose encoder flips by one count at the start."""
    worst = {}
    options = dict(velocity_source="differentiate", acceleration_source="estimate")
    with Driver(graph, ["hip"], [0.0], robot_description=ARM, timeout=10.0, **options) as driver:
        driver.quiet.set()
        for case, apart, one in (("1 ms", 1_000_000, 1e-5), ("20 us", 20_000, 1e-6)):
            for transition in (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVATE):
                assert driver.client.change_state(transition)
            driver.client.spin(0.5)  # the topics are connected again
            driver.efforts.clear()
            stamp = time.time_ns()
            for k in range(20_000_000 // apart):
                driver.position = [0.0 if k else one]
                driver.publish(stamp)
                stamp += apart
                if k % 10 == 0:
                    driver.client.spin(1e-3)
            driver.client.spin(0.5)
            errors = [abs(abs(e.effort[0]) - TORQUE) for e in driver.efforts if any(e.effort)]
            worst[case] = max(errors, default=math.inf)
    told = ", ".join(f"{error:.3g} with stamps {case} apart" for case, error in worst.items())
    return Finding(max(worst.values()), 0.5, f"wrong at rest, at the start, by [N m] {told}")


def observer_after_a_gap(graph: Graph) -> Finding:
    """10: the external effort after gaps, and of a push when another parameter changes."""
    robot = load_robot(ARM)
    with Driver(
        graph, ["hip"], [0.0], robot_description=ARM, publish_external_effort=True, timeout=0.0
    ) as driver:
        driver.quiet.set()
        received: list[Any] = []
        driver.client.node.create_subscription(
            JointState, "dynamics/external_effort", received.append, 1000
        )
        driver.client.until(
            lambda: driver.client.node.count_publishers("dynamics/external_effort") > 0
        )
        driver.client.spin(0.3)
        begin, t, push = time.time_ns(), 0.0, 0.0

        def swing(count: int, gap: float = 1e-3) -> list[float]:
            nonlocal t
            received.clear()
            for k in range(count):
                t += 1e-3 if k else gap
                q, qd, qdd = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
                tau = robot.inverse_dynamics([q], [qd], [qdd])
                driver.position, driver.velocity = [float(q)], [float(qd)]
                driver.effort = [float(tau[0]) - push]
                driver.publish(begin + int(t * 1e9))
                driver.client.spin(0.001)
            driver.client.spin(0.1)
            return [each.effort[0] for each in received]

        gaps = [max(map(abs, swing(150, gap)), default=math.inf) for gap in (1e-3, 0.2, 0.45, 0.95)]
        push = 2.0
        before = swing(300)[-1]
        driver.set(max_condition_number=9e3)
        after = min(swing(20), default=0.0)
    text = (
        f"{max(gaps):.3g} N m without contact; a push of {before:.3g} N m is {after:.3g} N m after "
        "another parameter changed"
    )
    return Finding(max(max(gaps), abs(after - before)), 0.1, text)


FAULTS: dict[int, Callable[[Graph], Finding]] = {
    1: frozen_state,
    2: rate_limit_jumps,
    3: limit_yields,
    4: limit_waits,
    5: wrong_branch,
    6: hold_here,
    7: ungated_commands,
    8: standing_torque,
    9: unfiltered_difference,
    10: observer_after_a_gap,
}


def main() -> None:
    from known_input_faults import INPUT_FAULTS

    faults = FAULTS | INPUT_FAULTS
    for number in map(int, sys.argv[1:] or faults):
        with own_domain() as domain, tempfile.TemporaryDirectory() as folder:
            graph = Graph(domain, Path(folder))
            try:
                finding = faults[number](graph)
                word = "kept" if finding.kept else "BROKEN"
                print(f"{number:2} {word:7} {finding.text}", flush=True)
            except Exception as error:
                print(f"{number:2} error   {type(error).__name__}: {error}", flush=True)
            finally:
                for program in graph.programs:
                    if program.running:
                        program.process.kill()
                        program.process.wait()
                graph.close()


if __name__ == "__main__":
    main()
