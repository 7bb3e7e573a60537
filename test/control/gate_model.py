"""The safety gate of the design, section 10, as a slow and readable model; and its promises.

`GateModel` is one topic's gate: limits, rate limit and ramp. `StreamModel` puts the rest around it:
freshness, and what ends a stream. `check_promises` knows neither of them. It looks at what was
published, and asserts each promise by itself, so that it can judge any implementation: these
models, the gate in C, or a node in another process.

Times are integers [ns]. *Steady* times come from a clock that never jumps, and decide about rates,
ramps and gaps. *Clock* times are those of message stamps, and decide about freshness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Efforts = NDArray[np.float64]

LONGEST_STEP = 100_000_000
"""After a longer pause efforts may still change only as much as in this time [ns]."""
ROUNDING = 1e-9
"""Relative to the numbers that are compared."""
ENDS = ("nothing", "zero", "gravity", "damping")


@dataclass(frozen=True)
class GateSettings:
    """The parameters of the node that the promises are about.

    Attributes:
        limits: largest effort of each joint [N m, N]; none for those that are not named.
        rate: fastest change [N m/s, N/s]; 0 for any.
        ramp: how long efforts grow from zero after a start [ns].
        timeout: oldest input, and longest gap without a new ramp [ns]; 0 for any.
        on_stale: what is published once when inputs stop, one of `ENDS`.
        on_refusal: "silence", or "zero" for zeros after an input that was rejected.
        hold: how long gravity or damping efforts may stand before zeros follow [ns].
        tolerance: largest difference between redundant measurements [rad, m].
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    rate: float = 0.0
    ramp: int = 0
    timeout: int = 100_000_000
    on_stale: str = "zero"
    on_refusal: str = "silence"
    hold: int = 1_000_000_000
    tolerance: float = math.inf

    def limit(self, joints: Sequence[str]) -> Efforts:
        """The largest efforts of these joints."""
        return np.array([self.limits.get(name, math.inf) for name in joints])


@dataclass(frozen=True)
class Sent:
    """One published message.

    Attributes:
        time: when, by the steady clock.
        topic: where.
        joints: whose efforts, by name.
        efforts: (joints,) [N m, N].
        settings: in force at that time.
        event: "effort" for the answer to an input, "end" for what follows inputs that stopped.
        asked: (joints,) what the source wanted; None where that is not known.
        clock: when, by the clock of stamps; None where freshness is not to be checked.
        stamps: of all inputs that the answer was made from.
        difference: largest difference between redundant measurements of that state.
    """

    time: int
    topic: str
    joints: tuple[str, ...]
    efforts: Efforts
    settings: GateSettings
    event: str = "effort"
    asked: Efforts | None = None
    clock: int | None = None
    stamps: tuple[int, ...] = ()
    difference: float = 0.0


@dataclass(frozen=True)
class Happened:
    """Something that the promises depend on, and that is no message.

    Attributes:
        time: when, by the steady clock.
        event: "activate", "deactivate", "robot" (another one), "refusal" (of an input), or "tick"
            (the watchdog had its turn).
        settings: in force at that time.
        topic: which a refusal is about; empty for all.
    """

    time: int
    event: str
    settings: GateSettings
    topic: str = ""


History = Sequence[Sent | Happened]


# The reference model.


class Gate(Protocol):
    """The gate of one topic: makes efforts what may be sent, and remembers what was sent."""

    def restart(self) -> None:
        """Have the next effort begin a ramp."""

    def send(
        self, joints: Sequence[str], asked: Efforts, settings: GateSettings, time: int
    ) -> Efforts:
        """The efforts (joints,) that may be sent at a steady time; they count as sent."""
        ...

    def hold(
        self, joints: Sequence[str], asked: Efforts, settings: GateSettings, time: int
    ) -> Efforts | None:
        """The efforts that may stand after the inputs stopped; None to send nothing new."""
        ...

    def end(self, joints: Sequence[str], time: int) -> None:
        """Zeros end the stream; the next effort begins a ramp."""


class GateModel:
    """The reference `Gate`."""

    def __init__(self) -> None:
        self.last: dict[str, float] = {}  # by joint: another robot may have some of them too
        self.time: int | None = None
        self.began: int | None = None  # of the ramp
        self.started = False  # False: the next effort begins a ramp

    def restart(self) -> None:
        """Have the next effort begin a ramp."""
        self.started = False

    def send(
        self, joints: Sequence[str], asked: Efforts, settings: GateSettings, time: int
    ) -> Efforts:
        """The efforts (joints,) that may be sent at a steady time; they count as sent."""
        pause = 0 if self.time is None else max(time - self.time, 0)
        if not self.started or (settings.timeout and pause > settings.timeout):
            self.began = time
        sent = self._allowed(joints, asked, settings, time)
        self._remember(joints, sent, time)
        self.started = True
        return sent

    def hold(
        self, joints: Sequence[str], asked: Efforts, settings: GateSettings, time: int
    ) -> Efforts | None:
        """The efforts that may stand after the inputs stopped; None to send nothing new."""
        efforts = self._allowed(joints, asked, settings, time)
        first, self.started = self.started, False
        if not first and np.array_equal(efforts, self._last(joints)):
            return None
        self._remember(joints, efforts, time)
        return efforts

    def end(self, joints: Sequence[str], time: int) -> None:
        """Zeros end the stream; the next effort begins a ramp."""
        self._remember(joints, np.zeros(len(joints)), time)
        self.restart()

    def _allowed(
        self, joints: Sequence[str], asked: Efforts, settings: GateSettings, time: int
    ) -> Efforts:
        pause = 0 if self.time is None else max(time - self.time, 0)
        self.began = time if self.began is None else min(self.began, time)
        target = ramp_share(settings, self.began, time) * asked
        limit, step = settings.limit(joints), largest_step(settings, pause)
        return closest_allowed(target, self._last(joints), limit, step)

    def _last(self, joints: Sequence[str]) -> Efforts:
        return np.array([self.last.get(name, 0.0) for name in joints])

    def _remember(self, joints: Sequence[str], efforts: Efforts, time: int) -> None:
        self.last = dict(zip(joints, efforts.tolist(), strict=True))
        self.time = time


def ramp_share(settings: GateSettings, began: int, time: int) -> float:
    """Share of the asked effort that a ramp lets through, 0 to 1."""
    elapsed = max(time - began, 0)
    return 1.0 if elapsed >= settings.ramp else elapsed / settings.ramp


def largest_step(settings: GateSettings, pause: int) -> float:
    """How much an effort may change after a pause [ns]."""
    return settings.rate * 1e-9 * min(pause, LONGEST_STEP) if settings.rate else math.inf


def closest_allowed(target: Efforts, last: Efforts, limit: Efforts, step: float) -> Efforts:
    """The efforts closest to a target within a step of the last ones, and within the limits.

    Where there are none, the limit is obeyed: the effort within it that is closest to the last.
    """
    reachable = np.maximum(last - step, np.minimum(target, last + step))
    return np.maximum(-limit, np.minimum(reachable, limit))


class StreamModel:
    """Gates of several topics, with freshness and ends around them.

    Args:
        joints: actuated joints of the robot.
        settings: in force at first.
        topics: that motors may listen to.
        gate: makes the gate of a topic.

    Attributes:
        history: what was published and what happened, for `check_promises`.
    """

    def __init__(
        self,
        joints: Sequence[str],
        settings: GateSettings,
        topics: Sequence[str],
        gate: Callable[[], Gate] = GateModel,
    ) -> None:
        self.joints, self.settings = tuple(joints), settings
        self.gates = {topic: gate() for topic in topics}
        self.active = False
        self.answered: dict[str, int] = {}  # when, on topics that have not ended since
        self.standing: set[str] = set()  # topics whose last message was not of zeros
        self.held: dict[str, int] = {}  # since when gravity or damping efforts stand
        self.history: list[Sent | Happened] = []

    def apply(self, settings: GateSettings) -> None:
        """Settings take effect with the next message; what was sent stays known."""
        self.settings = settings

    def activate(self, time: int) -> None:
        """Begin to answer: from zero."""
        self.active = True
        self._restart("activate", time)

    def use(self, joints: Sequence[str], time: int) -> None:
        """Go on with another robot: from zero; joints of the same name are the same motors."""
        self.joints = tuple(joints)
        self._restart("robot", time)

    def deactivate(self, time: int) -> None:
        """Stop, with zeros whatever ``on_stale`` says, but for nothing."""
        self._happened("deactivate", time)
        for topic in self.gates:
            self.gates[topic].restart()
            if self.settings.on_stale != "nothing" and topic in self.standing:
                self._zeros(topic, time)
        self.answered.clear()
        self.held.clear()
        self.active = False

    def effort(
        self,
        topic: str,
        asked: Efforts,
        time: int,
        clock: int,
        stamps: Sequence[int],
        difference: float = 0.0,
    ) -> Efforts | None:
        """Efforts that are sent for an input; None where it is rejected."""
        if not self.active:
            return None
        s = self.settings
        stale = s.timeout and any(clock - stamp > s.timeout for stamp in stamps)
        agreed = difference <= s.tolerance
        if stale or not agreed or not np.all(np.isfinite(asked)):
            self._refuse(topic, time)
            return None
        self.held.pop(topic, None)
        efforts = self.gates[topic].send(self.joints, asked, s, time)
        self.answered[topic] = time
        self._note(topic, efforts)
        self.history.append(
            Sent(
                time, topic, self.joints, efforts, s, "effort",
                asked, clock, tuple(stamps), difference,
            )
        )  # fmt: skip
        return efforts

    def tick(self, time: int, end: Efforts) -> None:
        """The watchdog's turn; `end` is what gravity or damping amount to now."""
        if not self.active:
            return
        for topic in self.gates:
            self._watch(topic, time, end)
        self._happened("tick", time)

    def _watch(self, topic: str, time: int, end: Efforts) -> None:
        """End a topic whose inputs stopped: as `on_stale` says, for a while, and then by zeros."""
        s, began = self.settings, self.held.get(topic)
        if topic not in self.standing:
            return
        if began is None:
            late = topic in self.answered and s.timeout and time - self.answered[topic] > s.timeout
            if not late or s.on_stale == "nothing":
                return
        elif s.on_stale == "nothing" and time - began <= s.hold:
            return
        over = began is not None and time - began > s.hold
        if over or s.on_stale not in ("gravity", "damping"):
            self.answered.pop(topic, None)
            self.held.pop(topic, None)
            self._zeros(topic, time)
            return
        self.held.setdefault(topic, time)
        efforts = self.gates[topic].hold(self.joints, end, s, time)
        if efforts is not None:
            self._publish_end(topic, efforts, time)

    def _refuse(self, topic: str, time: int) -> None:
        self._happened("refusal", time, topic)
        if self.settings.on_refusal == "zero" and topic in self.standing:
            self.held.pop(topic, None)
            self.answered.pop(topic, None)
            self._zeros(topic, time)

    def _zeros(self, topic: str, time: int) -> None:
        self.gates[topic].end(self.joints, time)
        self._publish_end(topic, np.zeros(len(self.joints)), time)

    def _publish_end(self, topic: str, efforts: Efforts, time: int) -> None:
        self._note(topic, efforts)
        self.history.append(Sent(time, topic, self.joints, efforts, self.settings, "end"))

    def _note(self, topic: str, efforts: Efforts) -> None:
        (self.standing.add if np.any(efforts) else self.standing.discard)(topic)

    def _restart(self, event: str, time: int) -> None:
        self._happened(event, time)
        for gate in self.gates.values():
            gate.restart()

    def _happened(self, event: str, time: int, topic: str = "") -> None:
        self.history.append(Happened(time, event, self.settings, topic))


# The promises, independent of any model.


class BrokenPromiseError(AssertionError):
    """A published message, or one that is missing, breaks a promise."""


def check_promises(history: History, *, slack: int = 0, rounding: float = ROUNDING) -> None:
    """Assert every promise of the gate, for all that was published.

    Args:
        history: in the order of time.
        slack: how much later than it is due an end may come, and how wrong times may be [ns].
        rounding: allowed error, relative to the numbers that are compared.

    Raises:
        BrokenPromiseError: names the promise, the message and the numbers.
    """
    topics = sorted({record.topic for record in history if record.topic})
    for topic in topics:
        of_topic = [record for record in history if record.topic in (topic, "")]
        checker = PromiseChecker(topic, slack, rounding)
        for record in of_topic:
            checker.take(record)


class PromiseChecker:
    """The promises on one topic: what they depend on, followed through the history.

    Args:
        topic: its name, for messages.
        slack, rounding: as `check_promises` takes them.
    """

    def __init__(self, topic: str, slack: int, rounding: float) -> None:
        self.topic, self.slack, self.rounding = topic, slack, rounding
        self.last: Sent | None = None  # the message before
        self.start: int | None = None  # of the ramp; None: the next effort is one
        self.active = True  # a history may begin while the node is active
        self.zeros_wanted = False  # after a refusal
        self.ended = False  # since the last effort
        self.end_time = 0  # when that was
        self.end_wanted = False  # after a deactivation

    def take(self, record: Sent | Happened) -> None:
        """Check one record, and go on from there: also after a promise was found broken."""
        if isinstance(record, Happened):
            self._happened(record)
            return
        try:
            self._sent(record)
        finally:
            self.last = record

    def _sent(self, record: Sent) -> None:
        self._whole(record)
        self._limit(record)
        if record.event == "end":
            self._ends_once(record)
            if np.any(record.efforts):
                self._rate(record)
            self.end_time = self.end_time if self.ended else record.time
            self.start, self.ended = None, True
            self.zeros_wanted = self.end_wanted = False
        else:
            self._fresh(record)
            self._agreed(record)
            self._ended_in_between(record)
            self._begin(record)
            self._rate(record)
            self._ramp(record)
            self.ended = self.zeros_wanted = False

    def _happened(self, what: Happened) -> None:
        if what.event in ("activate", "robot"):
            self.start = None
        if what.event == "activate":
            missing, self.active, self.end_wanted = self.end_wanted, True, False
            if missing and self.last is not None:
                self._require("ends", self.last, False, "nothing ended it after deactivation")
        if what.event == "deactivate":
            self.active = False
            self.start = None
            standing = self._stands() and not self.ended
            self.end_wanted = standing and what.settings.on_stale != "nothing"
        if what.event == "refusal":
            self.zeros_wanted |= what.settings.on_refusal == "zero" and self._stands()
        if what.event == "tick":
            self._no_end_missing(what.time, what.settings)

    def _stands(self) -> bool:
        return self.last is not None and bool(np.any(self.last.efforts != 0.0))

    def _whole(self, sent: Sent) -> None:
        """Names, sizes and model belong together; numbers are finite."""
        size = len(sent.joints)
        self._require("whole", sent, sent.efforts.shape == (size,), "sizes differ")
        self._require("whole", sent, bool(np.all(np.isfinite(sent.efforts))), "not finite")

    def _limit(self, sent: Sent) -> None:
        """No effort above the limit in force."""
        limit = sent.settings.limit(sent.joints)
        held = np.abs(sent.efforts) <= limit * (1.0 + self.rounding)
        self._require("limit", sent, bool(np.all(held)), "above {}", limit)

    def _rate(self, sent: Sent) -> None:
        """No effort changes faster than the rate limit, but to obey a limit."""
        if not sent.settings.rate:
            return
        last = self._last_efforts(sent)
        step, limit = self._step(sent), sent.settings.limit(sent.joints)
        change = np.abs(sent.efforts - last)
        obeys = (np.abs(last) > limit) & (sent.efforts == np.copysign(limit, last))
        slow = change <= step + self.rounding * (1.0 + np.abs(last))
        self._require("rate", sent, bool(np.all(slow | obeys)), "from {}, step {}", last, step)

    def _ramp(self, sent: Sent) -> None:
        """Efforts grow from zero, reach what was asked for, and are not held back otherwise."""
        if sent.asked is None or self.start is None:
            return
        last, step = self._last_efforts(sent), self._step(sent)
        limit = sent.settings.limit(sent.joints)
        shares = [self._share(sent, sent.time + error) for error in (-self.slack, self.slack)]
        allowed = [closest_allowed(share * sent.asked, last, limit, step) for share in shares]
        low, high = np.minimum(*allowed), np.maximum(*allowed)
        error = self.rounding * (1.0 + np.abs(sent.asked))
        if self.slack and sent.settings.rate:  # the step is not known exactly, either
            error = error + step
        within = (sent.efforts >= low - error) & (sent.efforts <= high + error)
        self._require("ramp", sent, bool(np.all(within)), "between {} and {} wanted", low, high)

    def _fresh(self, sent: Sent) -> None:
        """Nothing from an input older than its timeout, by its own time."""
        timeout = sent.settings.timeout
        if sent.clock is None or not timeout:
            return
        ages = [sent.clock - stamp for stamp in sent.stamps]
        fresh = all(age <= timeout + self.slack for age in ages)
        self._require("fresh", sent, fresh, "ages {}", ages)

    def _agreed(self, sent: Sent) -> None:
        """Redundant measurements agree within the tolerance."""
        agreed = sent.difference <= sent.settings.tolerance
        self._require("agreed", sent, agreed, "they differ by {}", sent.difference)

    def _ends_once(self, sent: Sent) -> None:
        """An end comes once, and is what `on_stale` or `on_refusal` says."""
        zeros = not np.any(sent.efforts)
        # Zeros may follow gravity or damping, and these may take several steps of a rate limit.
        same = np.array_equal(sent.efforts, self._last_efforts(sent))
        again = self.ended and (same or not self._stands())
        self._require("ends", sent, not again, "a second end")
        s = sent.settings
        if not zeros:
            self._require("ends", sent, s.on_stale in ("gravity", "damping"), "zeros wanted")
            self._require("ends", sent, not self.zeros_wanted, "zeros wanted after a refusal")

    def _no_end_missing(self, time: int, settings: GateSettings) -> None:
        """When inputs stop, an end follows; and zeros follow gravity or damping."""
        last = self.last
        if last is None or not self.active or not self._stands():
            return
        self._require("ends", last, not self.zeros_wanted, "no zeros after a refusal")
        if settings.on_stale == "nothing" or not settings.timeout:
            return
        due = self.end_time + settings.hold if self.ended else last.time + settings.timeout
        due += self.slack
        self._require("ends", last, time <= due, "nothing ended it until {}", time)

    def _ended_in_between(self, sent: Sent) -> None:
        """No effort while the node is inactive; none after a refusal without its zeros."""
        self._require("ends", sent, self.active, "the node is not active")
        self._require("ends", sent, not self.zeros_wanted, "no zeros came after a refusal")

    def _begin(self, sent: Sent) -> None:
        """Find out whether a ramp begins here."""
        timeout = sent.settings.timeout
        gap = timeout and self.last is not None and sent.time - self.last.time > timeout
        if self.start is None or gap:
            self.start = sent.time
        self.start = min(self.start, sent.time)

    def _share(self, sent: Sent, time: int) -> float:
        return ramp_share(sent.settings, self.start or 0, time)

    def _step(self, sent: Sent) -> float:
        pause = 0 if self.last is None else max(sent.time - self.last.time, 0) + self.slack
        if self.slack and sent.settings.rate:  # of a process, messages in between may be lost
            return sent.settings.rate * 1e-9 * pause
        return largest_step(sent.settings, pause)

    def _last_efforts(self, sent: Sent) -> Efforts:
        """Efforts that were last sent for these joints; zero where none were."""
        before = self.last
        if before is None:
            return np.zeros(len(sent.joints))
        known = dict(zip(before.joints, before.efforts.tolist(), strict=True))
        return np.array([known.get(name, 0.0) for name in sent.joints])

    def _require(self, promise: str, sent: Sent, holds: bool, why: str, *numbers: object) -> None:
        if not holds:
            raise BrokenPromiseError(
                f"{promise}: {sent.event} on {self.topic} at {sent.time}: {sent.efforts}; "
                + why.format(*numbers)
            )


def broken_promises(history: History, **options: float) -> Iterator[str]:
    """The first broken promise on each topic, as a sentence: for reports that go on."""
    for topic in sorted({record.topic for record in history if record.topic}):
        try:
            check_promises([r for r in history if r.topic in (topic, "")], **options)  # type: ignore[arg-type]
        except BrokenPromiseError as error:
            yield str(error)
