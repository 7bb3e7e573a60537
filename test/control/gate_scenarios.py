"""Random scenarios for the safety gate: settings, gaps, other robots, clocks and sources.

A scenario is a list of steps. `play` takes them to a `StreamModel`, around any gate, and returns
the history for `check_promises`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from gate_model import ENDS, Gate, GateModel, GateSettings, Happened, Sent, StreamModel
from hypothesis import strategies as st

TOPICS = ("feedforward", "effort_commands", "motor_commands")
ROBOTS = (("hip", "knee"), ("knee", "hip"), ("hip", "knee", "ankle"), ("wheel",))
"""Actuated joints: the same robot in another order, a larger one, and another one."""
MILLISECOND = 1_000_000
EFFORTS = (0.0, 0.05, 0.1, 0.7, 1.04, -0.91, 40.0, -40.0, 1e300)
"""Among them 0.7, which efforts that stand are, too."""


@dataclass(frozen=True)
class Effort:
    """A source asks for efforts.

    Attributes:
        wait: since the step before [ns].
        topic: number of the topic.
        asked: wanted efforts; those of further joints repeat.
        age: of the input, by its stamp [ns]; negative where its clock is ahead.
        difference: between redundant measurements [rad].
    """

    wait: int
    topic: int
    asked: tuple[float, ...]
    age: int
    difference: float


@dataclass(frozen=True)
class Apply:
    """Some settings change."""

    changes: tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Swap:
    """Another description comes into use."""

    robot: int


@dataclass(frozen=True)
class Cycle:
    """The node is deactivated and activated again.

    Attributes:
        wait: in between [ns].
    """

    wait: int


@dataclass(frozen=True)
class Jump:
    """The clock of the stamps jumps, by this much [ns]."""

    by: int


@dataclass(frozen=True)
class Wait:
    """Nothing comes but the watchdog's turns, each after this time [ns]."""

    turns: int
    each: int


Step = Effort | Apply | Swap | Cycle | Jump | Wait

SETTINGS: dict[str, st.SearchStrategy[object]] = {
    "limits": st.sampled_from(
        [{}, {"hip": 0.1}, {"hip": 1.0, "knee": 0.5}, {"knee": 0.0}, {"wheel": 2.0, "hip": 30.0}]
    ),
    "rate": st.sampled_from([0.0, 0.0, 0.5, 100.0]),
    "ramp": st.sampled_from([0, 0, 0, 1, 50 * MILLISECOND, 5000 * MILLISECOND]),
    "timeout": st.sampled_from([0, 0, 20 * MILLISECOND, 100 * MILLISECOND]),
    "on_stale": st.sampled_from(ENDS),
    "on_refusal": st.sampled_from(["silence", "zero"]),
    "hold": st.sampled_from([0, 30 * MILLISECOND, 1000 * MILLISECOND]),
    "tolerance": st.sampled_from([float("inf"), float("inf"), 0.05]),
}
WAITS = st.sampled_from(
    [0, 1, 20_000, MILLISECOND, 10 * MILLISECOND, 20 * MILLISECOND + 1, 150 * MILLISECOND]
)
FREQUENT = ("rate", "rate", "rate", "limits", "limits", "ramp")
"""Settings whose change says more than that of others, and is drawn more often."""
settings = st.fixed_dictionaries(SETTINGS).map(lambda given: GateSettings(**given))  # type: ignore[arg-type]
changes = st.one_of(
    *(SETTINGS[name].map(lambda v, n=name: ((n, v),)) for name in (*SETTINGS, *FREQUENT))
)
asked = st.lists(st.sampled_from(EFFORTS), min_size=1, max_size=3).map(tuple)
ages = st.sampled_from([0, 0, 0, MILLISECOND, 30 * MILLISECOND, 500 * MILLISECOND, -MILLISECOND])
efforts = st.builds(
    Effort,
    WAITS,
    st.sampled_from([0, 0, 0, 1, 2]),
    asked,
    ages,
    st.sampled_from([0.0, 0.0, 0.0, 0.2]),
)
KINDS = (
    st.builds(Apply, changes),
    st.builds(Swap, st.integers(0, len(ROBOTS) - 1)),
    st.builds(Cycle, WAITS),
    st.builds(Jump, st.sampled_from([-(10**10), -MILLISECOND, MILLISECOND, 10**12])),
    st.builds(Wait, st.integers(1, 4), WAITS),
)


def _steps(*kinds: st.SearchStrategy[Step]) -> st.SearchStrategy[list[Step]]:
    return st.lists(st.one_of(efforts, *kinds), min_size=5, max_size=40)


# Some scenarios have all kinds of steps, others efforts and one kind alone: among many kinds, most
# steps only undo what others did.
scenarios = st.tuples(settings, st.one_of(_steps(*KINDS), *map(_steps, KINDS)))


def play(
    scenario: tuple[GateSettings, Sequence[Step]], gate: Callable[[], Gate] = GateModel
) -> list[Sent | Happened]:
    """Take the steps of a scenario; what was published, and what happened."""
    begin, steps = scenario
    stream = StreamModel(ROBOTS[0], begin, TOPICS, gate)
    time, ahead = 0, 10**12  # of the clock of stamps
    stream.activate(time)
    for step in steps:
        if isinstance(step, Effort):
            time += step.wait
            wanted = np.resize(np.array(step.asked), len(stream.joints))
            clock = time + ahead
            topic = TOPICS[step.topic]
            stream.effort(topic, wanted, time, clock, [clock - step.age], step.difference)
        elif isinstance(step, Apply):
            stream.apply(replace(stream.settings, **dict(step.changes)))  # type: ignore[arg-type]
        elif isinstance(step, Swap):
            stream.use(ROBOTS[step.robot], time)
        elif isinstance(step, Cycle):
            stream.deactivate(time)
            time += step.wait
            stream.activate(time)
        elif isinstance(step, Jump):
            ahead += step.by
        else:
            for _ in range(step.turns):
                time += step.each
                stream.tick(time, _held(stream))
    return stream.history


def _held(stream: StreamModel) -> np.ndarray:
    """Gravity or damping efforts: any numbers will do."""
    return np.full(len(stream.joints), 0.7)
