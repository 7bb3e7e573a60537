"""The stream of one node or recording: the machine, what prepares its configurations, its meters.

A `Meter` tells how often, how fast and how well messages are answered.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from rbda_ros.algorithms.feedforward import Health
from rbda_ros.control import native
from rbda_ros.control.configuration import (
    Record,
    RouteMaker,
    check_motors,
    configuration,
    mask_of,
    names_in,
)
from rbda_ros.control.rejections import Explainer, Rejections
from rbda_ros.control.settings import Settings, joint_gains
from rbda_ros.control.topics import Input, Output
from rbda_ros.errors import ClosureError, InputError, ModelError
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array


@dataclass(frozen=True)
class Reading:
    """Values since the last reading; NaN if nothing was measured.

    Attributes:
        answers: messages answered.
        rate: of the answers [Hz].
        processing: median and 99th percentile of the time from taking a message to having
            published its answer [s].
        latency: the same of the time from a message's stamp to having published its answer [s].
        residual: largest |phi| of the loops [m, or sine of an angle].
        condition: largest condition number of a loop.
        limited: answers with an effort that was clipped at its limit.
    """

    answers: int
    rate: float
    processing: tuple[float, float]
    latency: tuple[float, float]
    residual: float
    condition: float
    limited: int


class Meter:
    """Collects what each answer took until it is read."""

    ROW = 2 + len(Health._fields) - len(Health._field_defaults)
    """Numbers of one answer: duration and age of its message [s] (or NaN), `Health` of states."""

    def __init__(self) -> None:
        self.limited = 0  # ever
        self.total = 0  # answers, ever
        self._since = perf_counter()
        self._answers = 0  # since the last reading, as the rows
        self._rows: list[Array] = []

    def add(self, count: int, rows: Array) -> None:
        """Answers, and of some of them the numbers (few or all of them, ROW)."""
        self.total += count
        self._answers += count
        self._rows.append(rows)

    def read(self) -> Reading:
        """Sum up what was collected, and begin anew."""
        now = perf_counter()
        elapsed, self._since = now - self._since, now
        answers, self._answers = self._answers, 0
        rows, self._rows = np.concatenate([np.zeros((0, self.ROW)), *self._rows]), []
        duration, age = rows[:, 0], rows[:, 1]
        health = Health(*rows[:, 2:].T)
        limited = int(np.count_nonzero(health.limited))
        self.limited += limited
        return Reading(
            answers=answers,
            rate=answers / elapsed,
            processing=_median_and_p99(duration),
            latency=_median_and_p99((duration + age)[~np.isnan(age)]),
            residual=float(max(health.residual, default=math.nan)),
            condition=float(max(1.0 / health.conditioning, default=math.nan)),
            limited=limited,
        )


def _median_and_p99(values: Array) -> tuple[float, float]:
    if not len(values):
        return math.nan, math.nan
    ordered, last = np.sort(values), len(values) - 1
    return float(ordered[last // 2]), float(ordered[min(last, int(0.99 * len(values)))])


MAX_ROUTES = 30
"""Routes of states, and of commands, that are kept; the least recently made ones are dropped."""
MAX_TRIES = 4
"""How often a message is fed again after what it needs was prepared."""

Messages = list[tuple[Output, bytes]]
Background = Callable[[Callable[[], Any]], "Future[Any]"]
RouteKey = tuple[bytes, bytes | None, str, bool, tuple[str, ...]]
CommandKey = tuple[bytes, int, bytes | None, tuple[bool, ...]]


class LastState(NamedTuple):
    """The state that was answered last.

    Attributes:
        time: its stamp [ns].
        q: (nq,) spanning position.
        velocity: (ny,) of the base and of ``joints``.
        efforts: (actuated,) feedforward.
        joints: that were measured.
    """

    time: int
    q: Array
    velocity: Array
    efforts: Array
    joints: tuple[str, ...]


@dataclass
class Prepared:
    """Routes that were made for a robot, by joints and by the settings that they depend on."""

    maker: RouteMaker
    routes: OrderedDict[RouteKey, Record] = field(default_factory=OrderedDict)
    commands: OrderedDict[CommandKey, Record] = field(default_factory=OrderedDict)
    making: set[Any] = field(default_factory=set)

    @property
    def robot(self) -> Robot:
        """The model."""
        return self.maker.robot


def at_once(make: Callable[[], Any]) -> Future[Any]:
    """Run something in the place of another thread."""
    made: Future[Any] = Future()
    try:
        made.set_result(make())
    except Exception as error:
        made.set_exception(error)
    return made


class Stream:
    """Takes messages and times, gives messages and rejections.

    Any thread may call it; the machine has its own lock.

    Args:
        background: runs something in another thread.

    Attributes:
        machine: the state machine.
        rejections: input that was not answered, by reason.
        states, commands: how often and how fast messages were answered.
    """

    def __init__(self, background: Background = at_once) -> None:
        self.machine = native.Machine()
        self.rejections = Rejections(self.machine)
        self.states, self.commands = Meter(), Meter()
        self._background = background
        self._lock = threading.RLock()
        self._settings = Settings()
        self._made: Prepared | None = None
        self._search: Future[Any] | None = None

    # Models and settings.

    def prepare(self, robot: Robot, settings: Settings | None = None) -> Prepared:
        """Make what the first messages of a robot will need, compiled; in any thread.

        Raises:
            DescriptionError: messages cannot command this robot.
        """
        check_motors(robot)
        with self._lock:
            wanted, made = settings or self._settings, self._made
            same = made is not None and made.robot.joint_names == robot.joint_names
            routes = list(made.routes) if made is not None and same else []
            commands = list(made.commands) if made is not None and same else []
        prepared, kernels = Prepared(RouteMaker(robot)), _command_kernels(wanted)
        keys = [_route_key(key[0], key[1], wanted) for key in routes]
        for key in dict.fromkeys([*_likely(robot, wanted), *keys]):
            prepared.routes[key] = prepared.maker.route(key[0], key[1], wanted)
        for named in dict.fromkeys(key[:3] for key in commands):
            prepared.commands[*named, kernels] = prepared.maker.command_route(*named, wanted)
        return prepared

    def use(self, robot: Robot, settings: Settings, prepared: Prepared | None = None) -> None:
        """Replace the model between two messages."""
        made = prepared or self.prepare(robot, settings)
        with self._lock:
            self._made, self._settings = made, settings
            self._configure(made)

    def apply(self, settings: Settings) -> None:
        """Use other settings from the next message on."""
        with self._lock:
            self._settings, made = settings, self._made
            if made is None:
                return
            used = self.machine.inputs()
            masks = None if used is None else [list(made.routes)[used[0]][0]]  # of the last answer
            self._configure(made)
            # What the next messages will need; until it is there, they are rejected.
            for key in _likely(made.robot, settings, masks):
                self._make_route(made, key)

    def free(self) -> None:
        """Forget the model."""
        with self._lock:
            self._made = self.rejections.explainer = None
            self.machine.configure(None)

    def _configure(self, made: Prepared) -> None:
        settings = self._settings
        for key in [k for k in made.commands if k[3] != _command_kernels(settings)]:
            del made.commands[key]  # they are made again when needed
        self.rejections.explainer = Explainer(made.robot, settings)
        routes, commands = made.routes.values(), made.commands.values()
        self.machine.configure(configuration(settings, made.maker, routes, commands))

    # Messages.

    def feed(self, topic: Input, data: bytes, now: int, steady: int | None = None) -> Messages:
        """Take a message; the messages that go out.

        Args:
            topic: of the message.
            data: the message, serialized.
            now: present time of the clock that stamps are from [ns].
            steady: present time of a clock that never jumps [ns]; the same unless given.
        """
        messages, asks = self.machine.feed(topic, data, now, now if steady is None else steady)
        if asks:
            self.serve()
        return [(Output(topic), data) for topic, data in messages]

    def answer(self, topic: Input, data: bytes, now: int, steady: int | None = None) -> Messages:
        """As `feed`, but prepare what the message needs before it is answered.

        For recordings, which can wait: with a background that runs everything at once.
        """
        for _ in range(MAX_TRIES):
            messages, asks = self.machine.feed(topic, data, now, now if steady is None else steady)
            if not asks:
                break
            self.serve()
            self.rejections.forget_last()
        return [(Output(topic), data) for topic, data in messages]

    def tick(self, now: int, steady: int | None = None) -> tuple[Messages, int]:
        """Messages that are due because nothing came; and when to ask again [ns, steady]."""
        messages, due = self.machine.tick(now, now if steady is None else steady)
        return [(Output(topic), data) for topic, data in messages], due

    def stop(self, now: int, steady: int | None = None) -> Messages:
        """End the topics of motors, and forget all inputs."""
        messages = self.machine.stop(now, now if steady is None else steady)
        return [(Output(topic), data) for topic, data in messages]

    def last_state(self) -> LastState | None:
        """The state that was answered last; None where there is none."""
        state, made = self.machine.state(), self._made
        if not state or made is None or len(state["joints"]) != len(made.robot.joint_names):
            return None
        q, velocity, efforts = (np.frombuffer(state[k]) for k in ("q", "velocity", "efforts"))
        joints = names_in(made.robot, state["joints"])
        return LastState(state["time"], q, velocity, efforts, joints)

    def collect(self) -> None:
        """Read what the machine counted; once a second or so."""
        for meter, of_commands in ((self.states, False), (self.commands, True)):
            found = self.machine.records(of_commands)
            meter.add(found["count"], np.frombuffer(found["rows"]).reshape(-1, Meter.ROW))
        self.rejections.collect()

    def read_meters(self) -> tuple[Reading, Reading]:
        """Readings of states and of commands since the last reading."""
        self.collect()
        return self.states.read(), self.commands.read()

    def in_use(self) -> tuple[Any, list[Array]] | None:
        """The kernel that answered last, and copies of what it was given."""
        with self._lock:
            given = self.machine.inputs()
            if given is None or self._made is None:
                return None
            index, inputs = given
            route = list(self._made.routes.values())[index]
            return route.call.kernel, [np.frombuffer(x).copy() for _, x in inputs]

    @property
    def kernel_state(self) -> str:
        """How efforts are computed: by machine code, or not."""
        used = self.in_use()
        if used is None:
            return "none in use yet"
        kernel = used[0]
        if kernel.compiled:
            return "compiled"
        return f"interpreted: {kernel.error}" if kernel.error else "interpreted"

    # Requests of the machine.

    def serve(self) -> None:
        """Prepare what the machine requested."""
        with self._lock:
            asked, made, settings = self.machine.request(), self._made, self._settings
            if not asked or made is None:
                return
            if asked["route"]:
                key = _route_key(asked["measured"], asked.get("wanted"), settings)
                self._make_route(made, key)
            if asked["command"]:
                named = asked["named"], asked["fields"], asked.get("damped")
                make = partial(made.maker.command_route, *named, settings)
                self._make(made, made.commands, (*named, _command_kernels(settings)), make)
            if asked["search"]:
                self._begin_search(made, asked)

    def _make_route(self, made: Prepared, key: RouteKey) -> None:
        make = partial(made.maker.route, key[0], key[1], self._settings)
        self._make(made, made.routes, key, make)

    def _make(
        self, made: Prepared, kept: OrderedDict[Any, Record], key: Any, make: Callable[[], Record]
    ) -> None:
        """Make a route in the background, unless it is there or being made."""
        if key in kept or key in made.making:
            return
        made.making.add(key)

        def run() -> None:
            route = make()
            with self._lock:
                made.making.discard(key)
                if made is not self._made:
                    return
                kept[key] = route
                while len(kept) > MAX_ROUTES:
                    kept.popitem(last=False)
                self._configure(made)  # with other settings by now, the machine asks again

        self._background(run)

    def _begin_search(self, made: Prepared, asked: dict[str, Any]) -> None:
        """Search for a closed position, one at a time: it may take half a second."""
        if self._search is not None and not self._search.done():
            return
        chosen = set(names_in(made.robot, asked["chosen"]))
        calls = (route.call for route in made.routes.values() if route.call is not None)
        call = next((call for call in calls if set(call.joints) == chosen), None)
        if call is None:
            return
        positions = np.frombuffer(asked["position"])[: len(call.joints)]
        known = dict(zip(call.joints, positions.tolist(), strict=True))
        guess = np.frombuffer(asked["guess"]).copy()

        def search() -> None:
            try:
                q = call.close_on_any_branch(known, guess)
            except (InputError, ModelError, ClosureError) as error:
                self.rejections.search_failed(str(error))
                return
            with self._lock:
                if made is self._made:
                    self.machine.start_from(q.tobytes())

        self._search = self._background(search)


def _route_key(measured: bytes, wanted: bytes | None, settings: Settings) -> RouteKey:
    source = settings.acceleration_source
    reference = wanted if source == "reference" else None
    return measured, reference, source, settings.external_wrench, settings.effort_terms


def _likely(robot: Robot, settings: Settings, masks: list[bytes] | None = None) -> list[RouteKey]:
    """Routes that the next messages will most likely need: like the last, or the usual joints."""
    scalar = robot.coordinates.scalar_positions
    every = mask_of(robot, tuple(scalar))
    usual = masks or [
        mask_of(robot, robot.independent_joint_names),
        every,
        mask_of(robot, robot.actuated_joint_names),
    ]
    wanted: list[bytes | None] = [None]
    if settings.acceleration_source == "reference":
        nothing = bytes(len(robot.joint_names))
        wanted = [nothing, mask_of(robot, robot.independent_joint_names), every]
    keys = (_route_key(mask, w, settings) for mask in usual for w in wanted if any(mask))
    return list(dict.fromkeys(keys))


def _command_kernels(settings: Settings) -> tuple[bool, ...]:
    """Settings that kernels of commands depend on."""
    return (
        bool(joint_gains("stiffness", settings.stiffness)),
        bool(joint_gains("damping", settings.damping)),
        settings.add_feedforward,
    )
