"""The model of the gate keeps its promises, and the checker notices when one is broken."""

import math
from dataclasses import replace

import gate_model
import numpy as np
import pytest
from gate_model import (
    BrokenPromiseError,
    GateModel,
    GateSettings,
    Happened,
    Sent,
    StreamModel,
    broken_promises,
    check_promises,
)
from gate_scenarios import play, scenarios
from hypothesis import HealthCheck, Phase, find, given, settings

TOPIC, HIP = "feedforward", ("hip",)
MS = 1_000_000


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios)
def test_the_model_keeps_every_promise(scenario):
    check_promises(play(scenario))


class NoLimit(GateModel):
    """Forgets limits."""

    def send(self, joints, asked, settings, time):
        return super().send(joints, asked, replace(settings, limits={}), time)


class NoRate(GateModel):
    """Forgets the rate limit."""

    def send(self, joints, asked, settings, time):
        return super().send(joints, asked, replace(settings, rate=0.0), time)


class NoRamp(GateModel):
    """Forgets the ramp."""

    def send(self, joints, asked, settings, time):
        return super().send(joints, asked, replace(settings, ramp=0), time)


class NoRampAfterGap(GateModel):
    """Knows of no gap."""

    def send(self, joints, asked, settings, time):
        return super().send(joints, asked, replace(settings, timeout=0), time)


class NoRestart(GateModel):
    """Begins no ramp after activation and other robots."""

    def restart(self):
        pass


class RateAboveLimit(GateModel):
    """Has the limit yield to the rate limit."""

    def send(self, joints, asked, settings, time):
        last = np.array([self.last.get(name, 0.0) for name in joints])
        sent = super().send(joints, asked, settings, time)
        return np.where(settings.rate and np.abs(last) > np.abs(sent), last, sent)


class ForgetsWhileOff(GateModel):
    """Remembers nothing that was sent without a rate limit."""

    def send(self, joints, asked, settings, time):
        last = dict(self.last)
        sent = super().send(joints, asked, settings, time)
        if not settings.rate:
            self.last = last
        return sent


class ForgetsOtherRobots(GateModel):
    """Takes the last efforts as zero after a restart."""

    def restart(self):
        super().restart()
        self.last = {}


class ByPlace(GateModel):
    """Takes the last effort of a place in the message for that of a joint."""

    def send(self, joints, asked, settings, time):
        numbers = [str(k) for k in range(len(joints))]
        limits = dict(zip(numbers, settings.limit(joints), strict=True))
        return super().send(numbers, asked, replace(settings, limits=limits), time)


class HoldsBack(GateModel):
    """Always sends zero."""

    def send(self, joints, asked, settings, time):
        return super().send(joints, 0.0 * asked, settings, time)


class LongSteps(GateModel):
    """Allows any step after a pause."""

    def send(self, joints, asked, settings, time):
        if self.time is not None and time - self.time > gate_model.LONGEST_STEP:
            settings = replace(settings, rate=0.0)
        return super().send(joints, asked, settings, time)


BROKEN = {
    NoLimit: "limit",
    NoRate: "rate",
    NoRamp: "ramp",
    NoRampAfterGap: "ramp",
    NoRestart: "ramp",
    RateAboveLimit: "limit|ramp",
    ForgetsWhileOff: "rate|ramp",
    ForgetsOtherRobots: "rate|ramp",
    ByPlace: "rate|ramp",
    HoldsBack: "ramp",
    LongSteps: "rate|ramp",
}


@pytest.mark.parametrize("gate", BROKEN, ids=lambda gate: gate.__name__)
def test_a_gate_without_a_clause_is_found(gate):
    def breaks(scenario):
        return any(broken_promises(play(scenario, gate)))

    options = settings(
        max_examples=3000, deadline=None, phases=[Phase.generate], database=None,
        derandomize=True, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    found = find(scenarios, breaks, settings=options)
    with pytest.raises(BrokenPromiseError, match=BROKEN[gate]):
        check_promises(play(found, gate))


def sent(time, effort, event="effort", **options):
    chosen = GateSettings(
        **{k: options.pop(k) for k in list(options) if k in GateSettings.__dataclass_fields__}
    )
    return Sent(time, TOPIC, HIP, np.array([effort]), chosen, event, **options)


def happened(time, event, **options):
    return Happened(time, event, GateSettings(**options))


@pytest.mark.parametrize(
    ("promise", "history"),
    [
        # The faults of issue 27, as they were seen.
        ("rate", [sent(0, -0.91), sent(MS, 1.04, rate=0.5)]),
        ("rate", [sent(0, 1.04), happened(0, "robot"), sent(MS, 0.0, rate=0.5)]),
        ("limit", [sent(0, 1.04), sent(MS, 1.0395, rate=0.5, limits={"hip": 0.1})]),
        ("fresh", [sent(0, 1.0, clock=10**10, stamps=(0,))]),
        ("fresh", [sent(0, 1.0, clock=10**10, stamps=(10**10, 0))]),
        ("agreed", [sent(0, 1.0, difference=3.1, tolerance=0.05)]),
        ("whole", [sent(0, math.nan)]),
        ("ends", [sent(0, 40.0), happened(101 * MS, "tick")]),
        ("ends", [sent(0, 40.0, on_refusal="zero"), happened(MS, "refusal", on_refusal="zero"),
                  happened(2 * MS, "tick", on_refusal="zero")]),
        ("ends", [sent(0, 1.0), sent(MS, 0.0, "end"), sent(2 * MS, 0.0, "end")]),
        ("ends", [sent(0, 1.0), sent(MS, 0.5, "end")]),
        ("ends", [sent(0, 1.0), sent(MS, 0.5, "end", on_stale="gravity"),
                  happened(2000 * MS, "tick", on_stale="gravity")]),
        ("ends", [sent(0, 1.0), sent(MS, 0.5, "end", on_stale="gravity"),
                  sent(2 * MS, 0.5, "end", on_stale="gravity")]),
        ("rate", [sent(0, 1.0), sent(MS, 5.0, "end", on_stale="gravity", rate=0.5)]),
        ("ends", [happened(0, "deactivate"), sent(0, 1.0)]),
        ("ends", [sent(0, 1.0), happened(MS, "deactivate"), happened(2 * MS, "activate")]),
        ("limit", [sent(0, 1.0), sent(MS, 0.5, "end", on_stale="gravity", limits={"hip": 0.1})]),
        ("ramp", [happened(0, "activate"), sent(0, 0.1, ramp=1000 * MS, asked=np.ones(1))]),
        ("ramp", [sent(0, 1.0), sent(101 * MS, 1.0, ramp=1000 * MS, asked=np.ones(1))]),
    ],
)  # fmt: skip
def test_each_broken_promise_is_named(promise, history):
    with pytest.raises(BrokenPromiseError, match=f"^{promise}:"):
        check_promises(history)


def test_what_the_promises_allow():
    check_promises([sent(0, 1.0), sent(MS, 0.1, rate=0.5, limits={"hip": 0.1})])  # the rate yields
    check_promises([sent(0, 1.0), sent(MS, 0.0, "end", rate=0.5)])  # an end is no change to slow
    check_promises([sent(0, 40.0), happened(99 * MS, "tick")])
    check_promises([sent(0, 40.0), happened(150 * MS, "tick")], slack=100 * MS)
    check_promises([sent(0, 40.0), happened(10**12, "tick", on_stale="nothing")])


def test_one_run_by_hand():
    """Ramp, limit, rate limit and end of one motor, with numbers that can be read."""
    begin = GateSettings(limits={"hip": 1.0}, ramp=100 * MS, timeout=50 * MS)
    stream = StreamModel(HIP, begin, [TOPIC])
    stream.activate(0)

    def ask(time, effort):
        return stream.effort(TOPIC, np.array([effort]), time, time, [time])[0]

    assert ask(0, 2.0) == 0.0
    assert ask(25 * MS, 2.0) == 0.5  # a quarter of the ramp
    assert ask(50 * MS, 2.0) == 1.0
    assert ask(100 * MS, 2.0) == 1.0  # the limit
    stream.apply(replace(begin, rate=10.0))
    assert ask(110 * MS, 0.0) == pytest.approx(0.9)  # 10 N m/s for 10 ms
    stream.apply(replace(begin, rate=10.0, limits={"hip": 0.2}))
    assert ask(120 * MS, 1.0) == 0.2  # at once
    stream.tick(171 * MS, np.zeros(1))
    stream.tick(300 * MS, np.zeros(1))
    ends = [each for each in stream.history if isinstance(each, Sent) and each.event == "end"]
    assert [(each.time, each.efforts[0]) for each in ends] == [(171 * MS, 0.0)]
    assert ask(400 * MS, 0.1) == 0.0  # a new ramp
    assert stream.effort(TOPIC, np.ones(1), 410 * MS, 410 * MS, [300 * MS]) is None  # stale
    check_promises(stream.history)
