"""An adversary of a running node: everything that must not reach the motors, all mixed.

    python -m tools.hardening.adversary --minutes 10 --seed 1

It publishes 200 joint states a second of the demo leg, whose efforts are known beforehand, and
among them states that are stale, contradict themselves, are not finite or belong to another robot;
and half as many commands in joint space, which need a fresh state to become those of motors.
It falls silent, toggles limits, rate limits and ramps, swaps descriptions, deactivates and
activates the node, and in the second half lets simulated time jump and stand still. Every effort
that the node publishes is held to the promises of the gate (`test/control/gate_model.py`).

Parameters change while states come, so that for a moment nobody outside can tell which settings an
effort was made with. Such an effort must keep the looser of both promises.

The promises are judged by the clock that the node uses. Simulated time may run slower than that
of the computer; when it jumps back, no time passes. A message that answers an input has its stamp;
any other ends the stream, and is zeros here.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from gate_model import BrokenPromiseError, GateSettings, Happened, PromiseChecker, Sent
from known_faults import stamp_of
from lifecycle_msgs.msg import Transition
from rclpy.qos import QoSProfile
from ros_graph import Graph, own_domain
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file
from tools.hardening.driver import LOOPS, STATES, URDF, cycle
from tools.hardening.verdicts import Verdict, conclude, loaded

TIMEOUT = 0.3  # [s] the node's; far from all gaps that are tried
SLACK = 100_000_000  # [ns] that processes may be held up by others
TOLERANCE = 0.05  # [rad] between redundant measurements
LONGEST_RAMP = 0.5  # [s]
QUEUE = QoSProfile(depth=2000)
TOPIC, MOTORS = "feedforward", "motor_commands"
CLOSE = 1e-6
MAX_REPORTED = 20
LOST = 1e-3  # share of messages that a busy machine may lose


@dataclass(frozen=True)
class Published:
    """A joint state or command that was published: what should answer it, if anything may.

    Attributes:
        time: by the steady clock [ns].
        asked: (motors,) the efforts of that state [N m]; None for a command.
        fault: what is wrong with it; empty for a good one.
        difference: between redundant measurements [rad].
    """

    time: int
    asked: np.ndarray | None
    fault: str = ""
    difference: float = 0.0


def loosest(one: GateSettings, other: GateSettings) -> GateSettings:
    """Settings whose promises hold where those of either do."""
    names = one.limits.keys() & other.limits.keys()
    limits = {name: max(one.limits[name], other.limits[name]) for name in names}
    same = one.limits == other.limits  # else an effort may obey a limit that is not among these
    rate = max(one.rate, other.rate) if one.rate and other.rate and same else 0.0
    return replace(one, limits=limits, rate=rate)


def note(published: dict[int, Published], stamp: int, message: Published) -> None:
    """Remember a message by its stamp; old ones are forgotten."""
    published[stamp] = message
    while len(published) > 5000:
        del published[next(iter(published))]


class Adversary:
    """A node, what is done to it, and what it published."""

    def __init__(self, graph: Graph, seed: int, sim_time: bool, rate: float) -> None:
        self.period = 1.0 / rate
        self.rng = np.random.default_rng(seed)
        self.robot = load_robot(share_file(URDF), share_file(LOOPS))
        self.text = share_file(URDF).read_text()
        y, yd, efforts = cycle(self.robot)
        self.positions = self.robot.close(y)
        self.velocities = [
            self.robot.spanning_velocity(q, v) for q, v in zip(self.positions, yd, strict=True)
        ]
        self.efforts = efforts[0]
        self.names = list(self.robot.joint_names)
        self.motors = tuple(self.robot.actuated_joint_names)
        self.settings = GateSettings(timeout=int(TIMEOUT * 1e9), tolerance=TOLERANCE)
        # Settings that were in force, and until when; this process may receive efforts late.
        self.former: deque[tuple[int, GateSettings]] = deque(maxlen=100)
        self.pending: GateSettings | None = None  # asked for, and not yet accepted
        self.checkers = {name: PromiseChecker(name, SLACK, CLOSE) for name in (TOPIC, MOTORS)}
        self.sim_time, self.sim_now, self.sim_runs = sim_time, 1_000_000_000_000, True
        self.sim_steady = self.sim_now  # the same without jumps back
        self.serial = 0  # of a stamp
        self.node = graph.serve(
            robot_description=self.text,
            loop_constraints=str(share_file(LOOPS)),
            joint_state_timeout=TIMEOUT,
            measurement_tolerance=TOLERANCE,
            command_joints=list(self.motors),
            on_stale="zero",
            use_sim_time=sim_time,
        )
        self.client = graph.client()
        self.client.until_active()
        self.states = self.client.publisher(JointState, "joint_states", QUEUE)
        self.commands = self.client.publisher(JointState, "~/joint_commands", QUEUE)
        if sim_time:
            self.clock = self.client.publisher(Clock, "/clock")
        self.descriptions = self.client.describe(self.text)
        self.client.node.create_subscription(JointState, f"dynamics/{TOPIC}", self.on_effort, QUEUE)
        self.client.node.create_subscription(
            JointState, f"dynamics/{MOTORS}", self.on_motors, QUEUE
        )
        self.client.node.create_subscription(
            Float64MultiArray, "dynamics/effort_commands", self.on_array, QUEUE
        )
        self.sent: dict[int, Published] = {}  # states, by their stamps
        self.commanded: dict[int, Published] = {}
        self.recent: deque[np.ndarray] = deque(maxlen=1000)
        self.arrays: deque[np.ndarray] = deque()  # not yet compared
        self.counts: Counter[str] = Counter()
        self.actions: Counter[str] = Counter()
        self.broken: list[str] = []
        self.unsure_until = 0  # [ns] nobody outside can tell when a ramp began
        self.last_received, self.last_action = 0, "start"
        self.last_good = self.steady()  # when a good state was published
        self.cycling = False  # the lifecycle
        self.swapping = False  # the model
        self.quiet = threading.Event()
        self.stop = threading.Event()
        self.bad: deque[str] = deque()
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.publish_all)

    # What is published, in a thread of its own.

    def publish_all(self) -> None:
        following, k, turn = time.monotonic(), 0, False
        while not self.stop.is_set():
            following += self.period
            time.sleep(max(following - time.monotonic(), 0.0))
            following = max(following, time.monotonic() - 0.05)
            if self.sim_time:
                self.tick()
            if self.bad:
                self.publish_bad(self.bad.popleft(), k)
            if not self.quiet.is_set():
                self.publish(k)
                self.last_good = self.steady()
                k = (k + 1) % STATES
            turn = not turn
            if turn and not self.cycling:
                self.command()

    def tick(self) -> None:
        with self.lock:
            if self.sim_runs:
                self.sim_now += int(self.period * 1e9)
                self.sim_steady += int(self.period * 1e9)
            sec, nanosec = divmod(self.sim_now, 1_000_000_000)
        self.clock.publish(Clock(clock=Time(sec=sec, nanosec=nanosec)))

    def now(self) -> int:
        """Time of stamps [ns]; each once."""
        with self.lock:
            if not self.sim_time:
                return time.time_ns()
            self.sim_now += 1000
            self.sim_steady += 1000
            self.serial = (self.serial + 1) % 1000  # time that jumped back comes by again
            return self.sim_now - self.sim_now % 1000 + self.serial

    def steady(self) -> int:
        """Time that decides about rates, ramps and ends, as the node's [ns]."""
        return self.sim_steady if self.sim_time else time.monotonic_ns()

    def command(self) -> None:
        """Efforts of the joints, whoever is silent."""
        message = JointState(name=list(self.robot.independent_joint_names))
        message.effort = [1.0, -2.0, 1.5, 0.5]
        stamp = self.now()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        note(self.commanded, stamp, Published(self.steady(), None))
        self.commands.publish(message)

    def publish(
        self, k: int, fault: str = "", age: float = 0.0, difference: float = 0.0, **changes: Any
    ) -> None:
        message = JointState(name=self.names)
        message.position, message.velocity = self.positions[k].tolist(), self.velocities[k].tolist()
        for field, values in changes.items():
            setattr(message, field, values)
        stamp = self.now() - int(age * 1e9)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(max(stamp, 0), 10**9)
        note(self.sent, stamp, Published(self.steady(), self.efforts[k], fault, difference))
        self.states.publish(message)
        self.counts["states"] += 1

    def publish_bad(self, kind: str, k: int) -> None:
        q = self.positions[k].copy()
        if kind == "stale":
            self.publish(k, kind, age=float(self.rng.uniform(0.6, 5.0)))
        elif kind == "not finite":
            q[:] = self.rng.choice([math.nan, math.inf])  # one alone may follow from the others
            self.publish(k, kind, position=q.tolist())
        elif kind == "contradiction":
            knee, rotor = self.names.index("knee"), self.names.index("knee_rotor")
            q[knee if self.rng.random() < 0.5 else rotor] += 8.0
            self.publish(k, kind, position=q.tolist(), difference=8.0)
        else:  # another robot
            names = ["arm_shoulder", "arm_elbow"]
            self.publish(k, kind, name=names, position=[1.0, 2.0], velocity=[0.0, 0.0])

    # What is received.

    def on_effort(self, message: Any) -> None:
        stamp = stamp_of(message)
        efforts = np.array(message.effort)
        self.recent.append(efforts)
        found = self.sent.pop(stamp, None)  # a state is answered once
        now = self.when_sent(stamp) if found is None else self.steady()
        is_end = not efforts.any() and (found is None or bool(found.fault))
        settings = self.settings_since(now if found is None else found.time)
        if found is not None:
            if now - found.time > SLACK // 2:
                self.be_unsure(now)  # somebody was held up: the node, or this process
            now = max(found.time, self.last_received)  # about when the node took it
        if self.last_received and abs(now - self.last_received - int(TIMEOUT * 1e9)) < SLACK:
            self.be_unsure(now)
        self.last_received = now
        self.counts["ends" if is_end else "efforts"] += 1
        changing = self.pending is not None or self.swapping
        unknown = changing or now < self.unsure_until or found is None
        record = Sent(
            now,
            TOPIC,
            tuple(message.name),
            efforts,
            settings,
            "end" if is_end else "effort",
            asked=None if unknown or is_end or found is None else found.asked,
            difference=0.0 if found is None or is_end else found.difference,
        )
        if not is_end and (found is None or found.fault):
            which = "no state" if found is None else f"a state of this fault: {found.fault}"
            self.report(f"fresh: {efforts} answers {which}")
        self.take(record)

    def on_motors(self, message: Any) -> None:
        """Commands of motors: within limit and rate, and none without a fresh state."""
        stamp, efforts = stamp_of(message), np.array(message.effort)
        self.counts["motor commands"] += 1
        found = self.commanded.pop(stamp, None)  # a command is answered once
        if found is None and efforts.any():
            self.report(f"fresh: {efforts} on {MOTORS} answers no command")
        sent = self.when_sent(stamp) if found is None else found.time
        age = sent - self.last_good
        if efforts.any() and age > TIMEOUT * 1e9 + SLACK:
            self.report(f"fresh: {efforts} on {MOTORS}, {age * 1e-9:.2f} s after the last state")
        settings = self.settings_since(sent)
        event = "effort" if efforts.any() or found is not None else "end"
        self.take(Sent(sent, MOTORS, tuple(message.name), efforts, settings, event))

    def on_array(self, message: Any) -> None:
        """The bare array has the numbers of a message of efforts."""
        self.counts["arrays"] += 1
        self.arrays.append(np.array(message.data))
        if len(self.arrays) > 200:  # while what they are compared with is still known
            self.compare_arrays()

    def compare_arrays(self) -> None:
        """Each array has the efforts of a message that came about then."""
        known = {each.tobytes() for each in self.recent}
        while len(self.arrays) > 20:
            array = self.arrays.popleft()
            if array.tobytes() not in known:
                self.counts["arrays of their own"] += 1

    def take(self, record: Sent | Happened) -> None:
        for name, checker in self.checkers.items():
            if record.topic in ("", name):
                try:
                    checker.take(record)
                except BrokenPromiseError as error:
                    changes = [time for time, _ in self.former][-3:]
                    self.report(f"{error}; now {self.steady()}, settings changed at {changes}")

    def report(self, what: str) -> None:
        self.counts["broken"] += 1
        if len(self.broken) < MAX_REPORTED:
            self.broken.append(what)
            print(f"broken: {what}; after {self.last_action}", flush=True)

    def be_unsure(self, now: int) -> None:
        until = now + int(1e9 * LONGEST_RAMP) + 2 * SLACK
        self.unsure_until = max(self.unsure_until, until)

    def happened(self, event: str) -> None:
        self.take(Happened(self.steady(), event, self.settings))

    def when_sent(self, stamp: int) -> int:
        """When a message was sent that answers no input: it has the node's time as its stamp."""
        if self.sim_time:
            return self.steady()
        return stamp + time.monotonic_ns() - time.time_ns()

    def settings_since(self, time: int) -> GateSettings:
        """The loosest of all settings that may have been in force since then."""
        found = self.settings if self.pending is None else loosest(self.settings, self.pending)
        for until, settings in self.former:
            if until >= time:
                found = loosest(found, settings)
        return found

    # What is done.

    def run(self, seconds: float) -> None:
        self.thread.start()
        actions = [
            self.change_rate, self.change_limits, self.change_ramp, self.send_bad, self.fall_silent,
            self.only_others, self.swap, self.cycle_lifecycle,
        ]  # fmt: skip
        if self.sim_time:
            actions += [self.jump, self.pause_clock]
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end and self.node.running:
                action = actions[self.rng.integers(len(actions))]
                self.last_action = action.__name__
                self.actions[action.__name__] += 1
                action()
                self.client.spin(float(self.rng.uniform(0.05, 0.6)))
                self.compare_arrays()
        finally:
            self.stop.set()
            self.thread.join()

    def change(self, name: str, value: Any, settings: GateSettings) -> None:
        """Set a parameter while states come."""
        self.pending = settings
        answer = self.client.set_parameter(name, value)
        now = self.steady()
        if answer.successful:
            self.former.append((now, self.settings))
            self.settings = settings
        else:
            self.report(f"settings: {name} = {value!r} is rejected: {answer.reason}")
        self.pending = None
        self.be_unsure(now)

    def change_rate(self) -> None:
        rate = 0.0 if self.settings.rate else float(self.rng.choice([0.2, 1.0]))
        self.change("effort_rate_limit", rate, replace(self.settings, rate=rate))

    def change_limits(self) -> None:
        limits: dict[str, float] = {}
        if not self.settings.limits or self.rng.random() < 0.5:
            sizes = self.rng.uniform(0.05, 1.0) * np.abs(self.efforts).max(axis=0)
            limits = dict(zip(self.motors, sizes.tolist(), strict=True))
        text = str(limits) if limits else ""
        self.change("effort_limits", text, replace(self.settings, limits=limits))

    def change_ramp(self) -> None:
        ramp = 0.0 if self.settings.ramp else LONGEST_RAMP
        self.change("ramp_in", ramp, replace(self.settings, ramp=int(ramp * 1e9)))

    def send_bad(self) -> None:
        kinds = ["stale", "not finite", "contradiction", "another robot"]
        self.bad.extend(self.rng.choice(kinds, size=int(self.rng.integers(1, 20))).tolist())

    def fall_silent(self) -> None:
        """No states at all, for a moment or for longer than the timeout."""
        self.silence(float(self.rng.choice([0.05, 0.1, 0.6, 1.0])))

    def only_others(self) -> None:
        """Another robot's states, or stale ones, are all that comes."""
        kind = str(self.rng.choice(["another robot", "stale", "contradiction"]))
        self.quiet.set()
        self.bad.extend([kind] * 200)
        self.client.spin(1.0)
        self.judge_silence()
        self.bad.clear()
        self.quiet.clear()

    def silence(self, seconds: float) -> None:
        self.quiet.set()
        self.client.spin(seconds)
        self.judge_silence()
        self.quiet.clear()

    def judge_silence(self) -> None:
        """The watchdog had its turn; on a loaded machine this process may be yet to receive it."""
        now, received = self.steady(), -1
        for _ in range(100):
            before = received
            received = sum(self.counts[name] for name in ("efforts", "ends", "motor commands"))
            if received == before:
                break
            self.client.spin(0.2)
        self.take(Happened(now, "tick", self.settings))

    def swap(self) -> None:
        """The same robot under another name: nobody outside knows when it comes into use."""
        before = self.node.log.count("the model is now")
        self.swapping = True
        name = f"leg_{int(self.rng.integers(1_000_000))}"
        text = self.text.replace('name="demo_leg"', f'name="{name}"', 1)
        self.descriptions.publish(String(data=text))
        self.client.until(lambda: self.node.log.count("the model is now") > before)
        self.swapping = False
        self.be_unsure(self.steady())

    def cycle_lifecycle(self) -> None:
        """Deactivate and activate; what was under way is answered before."""
        self.quiet.set()
        self.cycling = True
        self.client.spin(0.1)
        self.judge_silence()
        self.happened("deactivate")
        if not self.client.change_state(Transition.TRANSITION_DEACTIVATE):
            self.report("lifecycle: deactivate is rejected")
        self.client.spin(0.1)
        self.happened("activate")
        if not self.client.change_state(Transition.TRANSITION_ACTIVATE):
            self.report("lifecycle: activate is rejected")
        self.be_unsure(self.steady())
        self.quiet.clear()
        self.cycling = False

    def jump(self) -> None:
        """Simulated time jumps, forward or back; states have the new time."""
        by = int(self.rng.choice([-500, -1, 1, 500])) * 1_000_000_000
        with self.lock:
            self.sim_now += by
            self.sim_steady += max(by, 0)
        self.be_unsure(self.steady())

    def pause_clock(self) -> None:
        """Simulated time stands still, and states with it: by their own time they stay fresh."""
        self.sim_runs = False
        self.quiet.set()
        self.client.spin(0.6)
        self.quiet.clear()
        self.sim_runs = True
        self.be_unsure(self.steady())


def attack(seconds: float, seed: int, sim_time: bool, rate: float) -> list[Verdict]:
    """Run one adversary; what it came to."""
    with own_domain() as domain, tempfile.TemporaryDirectory() as folder:
        graph = Graph(domain, Path(folder))
        adversary = Adversary(graph, seed, sim_time, rate)
        adversary.run(seconds)
        running = adversary.node.running
        errors = adversary.node.log.count("Traceback")
        code = adversary.node.stop() if running else -1
        graph.close()
    counts = adversary.counts
    clock = "simulated time" if sim_time else "system time"
    done = ", ".join(f"{n} {name}" for name, n in sorted(adversary.actions.items()))
    return [
        Verdict(
            f"promises, {clock}",
            not counts["broken"] and counts["efforts"] > 100,
            f"{counts['broken']} broken; {counts['efforts']} efforts, {counts['ends']} ends and "
            f"{counts['motor commands']} commands of motors "
            f"to {counts['states']} states" + "".join(f"; {each}" for each in adversary.broken[:3]),
        ),
        Verdict(
            f"arrays, {clock}",
            _arrays_right(counts["arrays"], counts["arrays of their own"]),
            f"{counts['arrays']}, {counts['arrays of their own']} with efforts of their own",
        ),
        Verdict(
            f"node, {clock}", running and code == 0 and not errors, f"exit code {code}; {done}"
        ),
    ]


def _arrays_right(count: int, alone: int) -> bool | None:
    """Whether arrays are like messages of efforts; None where it cannot be told.

    On a busy machine a message is lost now and then, and its array is alone.
    """
    if 0 < alone < LOST * count and loaded():
        return None
    return count > 100 and not alone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--rate", type=float, default=200.0, help="joint states a second; fewer on a loaded machine"
    )
    parser.add_argument("--write", action="store_true", help="keep the table in docs")
    asked = parser.parse_args()
    verdicts = []
    for sim_time in (False, True):
        verdicts += attack(30.0 * asked.minutes, asked.seed, sim_time, asked.rate)
    cores = f"on {os.cpu_count()} {'busy' if loaded() else 'quiet'} cores"
    conclude(
        "adversary",
        f"{asked.minutes:g} minutes, {asked.rate:g} Hz, {cores}.",
        verdicts,
        asked.write,
    )


if __name__ == "__main__":
    main()
