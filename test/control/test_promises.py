"""Random scenarios on the state machine itself: every promise of the gate holds, whoever sends."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from feeding import arms, joint_state
from feeding import settings as node_settings
from gate_model import GateModel, GateSettings, Happened, Sent, check_promises
from gate_scenarios import ROBOTS, Apply, Cycle, Effort, Jump, Swap, play, scenarios
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import booleans
from test_faults import trajectory

from rbda_ros.control import native
from rbda_ros.control.stream import Stream
from rbda_ros.control.topics import Input, Output
from tools.hardening.gate_mutants import CONTROL, Library

NAMES = {
    Output.FEEDFORWARD: "feedforward",
    Output.EFFORT_COMMANDS: "effort_commands",
    Output.MOTOR_COMMANDS: "motor_commands",
}
MASS, REACH = 0.1, 1.0
MODELS = [arms(*names, mass=MASS, reach=REACH, name=f"robot_{k}") for k, names in enumerate(ROBOTS)]
GRAVITY, INERTIA = -9.81 * MASS * REACH, 1.0 + MASS * REACH**2
HOUR = 3_600_000_000_000


@pytest.fixture(scope="module")
def gate_in_c(tmp_path_factory):
    """Makes gates of `gate.c`, compiled alone."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source = (CONTROL / "gate.c").read_text(encoding="utf-8")
    return Library(source, tmp_path_factory.mktemp("gate"), compiler).gate


class Player:
    """Takes the steps of a scenario to a stream, and notes what happened.

    In simulated time there is one clock. When it jumps ahead, time passes; when it jumps back, no
    time passes, but it has another name from then on.
    """

    def __init__(self, begin: GateSettings, simulated: bool = False) -> None:
        self.simulated = simulated
        self.stream, self.robot = Stream(), MODELS[0]
        self.settings, self.source = begin, "feedforward"
        self.time, self.ahead = HOUR, 10**12
        self.history = []
        self.stream.use(self.robot, self._node_settings())
        self._happened("activate")

    def take(self, step):
        """One step."""
        if isinstance(step, Effort):
            self.time += step.wait
            self._effort(step)
        elif isinstance(step, Apply):
            self.settings = replace(self.settings, **dict(step.changes))
            self.stream.apply(self._node_settings())
            self._tick()  # as the node does
        elif isinstance(step, Swap):
            self._swap(MODELS[step.robot])
        elif isinstance(step, Cycle):
            self._note(self.stream.stop(*self.moment), "end")
            self._happened("deactivate")
            self.time += step.wait
            self._happened("activate")
            if self.simulated:  # an active node looks at the time at once
                self._tick()
        elif isinstance(step, Jump):
            if self.simulated and step.by > 0:
                self.time += step.by
            else:
                self.ahead += step.by
            if self.simulated:  # the new time is a message, too
                self._tick()
        else:
            for _ in range(step.turns):
                self.time += step.each
                self._tick()

    def _tick(self):
        self._note(self.stream.tick(*self.moment)[0], "end")
        self._happened("tick")

    @property
    def clock(self):
        return self.time + self.ahead

    @property
    def moment(self):
        """The clock of stamps, and the steady one."""
        return self.clock, self.clock if self.simulated else self.time

    def _node_settings(self):
        s = self.settings
        limits = ", ".join(f"{name}: {value}" for name, value in s.limits.items())
        return node_settings(
            acceleration_source="reference",
            effort_limits="{" + limits + "}",
            effort_rate_limit=s.rate,
            ramp_in=s.ramp * 1e-9,
            joint_state_timeout=s.timeout * 1e-9,
            on_stale=s.on_stale,
            on_refusal=s.on_refusal,
            stale_hold_time=s.hold * 1e-9,
            damping="{" + ", ".join(f"{name}: 7.0" for name in self.robot.joint_names) + "}",
            command_joints=tuple(self.robot.actuated_joint_names),
            command_source=self.source,
        )

    def _swap(self, robot):
        if robot is self.robot:
            return
        before, self.robot = self.robot, robot
        self.stream.use(robot, self._node_settings())
        self._note(self.stream.tick(*self.moment)[0], "end", robot=before)  # as the node does
        self._happened("robot")

    def _effort(self, step):
        names = self.robot.joint_names
        asked = np.resize(np.array(step.asked), len(names))
        commanded = step.topic == 2
        if step.topic == 1:  # another source drives the bare array
            self.source = "joint_commands" if self.source == "feedforward" else "feedforward"
            self.stream.apply(self._node_settings())
            self._tick()
        wanted = np.zeros(len(names)) if commanded else asked
        acceleration = (wanted - GRAVITY) / INERTIA
        self._feed(Input.REFERENCE, trajectory(names, acceleration), wanted, [])
        stamp = self.clock - step.age
        still, moving = np.zeros(len(names)), np.full(len(names), 0.1)
        self._feed(Input.JOINT_STATES, joint_state(names, stamp, still, moving), wanted, [stamp])
        if commanded:
            data = joint_state(names, stamp, effort=asked)
            self._feed(Input.JOINT_COMMANDS, data, asked, [stamp])

    def _feed(self, topic, data, asked, stamps):
        """Feed a message, and again where it had to wait for its kernel."""
        asks = True
        while asks:
            before = dict(self.stream.rejections.counts)
            messages, asks = self.stream.machine.feed(topic, data, *self.moment)
            if asks:
                self.stream.serve()
            self.stream.rejections.collect()
            drives = "joint_commands" if topic is Input.JOINT_COMMANDS else "feedforward"
            rejected = dict(self.stream.rejections.counts) != before
            if rejected and topic is not Input.REFERENCE:
                first = "motor_commands" if topic is Input.JOINT_COMMANDS else "feedforward"
                for name in (first, *(["effort_commands"] if self.source == drives else [])):
                    self._happened("refusal", name)
            self._note(messages, "end" if rejected else "effort", asked, stamps)

    def _note(self, messages, event, asked=None, stamps=(), robot=None):
        for number, data in messages:
            topic = Output(number)
            name = NAMES.get(topic)
            if name is None:
                continue
            bare = topic is Output.EFFORT_COMMANDS
            numbers = data[20:] if bare else native.read_joint_state(data)[4]
            of = {"asked": asked, "clock": self.clock, "stamps": tuple(stamps)}
            of = of if event == "effort" else {}
            self.history.append(
                Sent(
                    self.time,
                    name,
                    tuple((robot or self.robot).actuated_joint_names),
                    np.frombuffer(numbers),
                    self.settings,
                    event,
                    **of,
                )
            )

    def _happened(self, event, topic=""):
        self.history.append(Happened(self.time, event, self.settings, topic))


def run(scenario, simulated=False):
    begin, steps = scenario
    player = Player(begin, simulated)
    for step in steps:
        player.take(step)
    return player.history


@settings(
    max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(scenarios, booleans())
def test_the_machine_keeps_every_promise(scenario, simulated):
    check_promises(run(scenario, simulated), rounding=1e-6)  # forces are computed, not copied


@settings(
    max_examples=1600, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(scenarios)
def test_the_gate_in_c_equals_the_model(gate_in_c, scenario):
    ours, model = play(scenario, gate_in_c), play(scenario, GateModel)
    assert len(ours) == len(model)
    for one, other in zip(ours, model, strict=True):
        if isinstance(one, Sent):
            assert one.topic == other.topic and one.time == other.time
            np.testing.assert_allclose(one.efforts, other.efforts, rtol=1e-15, atol=1e-300)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", range(20))
def test_the_machine_keeps_every_promise_in_many_scenarios(block):
    """100,000 in all, others each night."""

    @settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
    @given(scenarios, booleans())
    def keeps(scenario, simulated):
        check_promises(run(scenario, simulated), rounding=1e-6)

    keeps()
