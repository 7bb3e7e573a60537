"""Runs cases in the environment of one tree, and writes down what came out.

    TREE/.venv/bin/python tools/trees/record.py CASES OUTPUT

It runs beside trees with the state machine ``rbda_ros.control``, and beside older ones, such as
commit 88f33bf, which answer messages by ``rbda_ros.node.stream``.
"""

from __future__ import annotations

import dataclasses
import pickle
import sys
import warnings
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rbda_ros import Contact, load_robot


def plain(value: Any, depth: int = 0) -> Any:
    """A result without types of the project."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (bool, int, float, str, bytes, type(None), np.generic)):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Mapping):
        return {str(k): plain(v, depth + 1) for k, v in value.items()}
    if dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value) if not f.name.startswith("_")]
        return {name: plain(getattr(value, name), depth + 1) for name in names}
    if hasattr(value, "_asdict"):
        return {k: plain(v, depth + 1) for k, v in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, depth + 1) for v in value]
    return type(value).__name__


def argument(value: Any) -> Any:
    """An argument with what is of the project's types."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "contacts":
        return [Contact(**each) for each in value[1]]
    return value


def attempt(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The result, or the error."""
    try:
        return "result", plain(function(*args, **kwargs))
    except Exception as error:
        return "error", type(error).__name__, str(error)


def record_calls(cases: Mapping[str, Any], robots: list[Any]) -> list[Any]:
    """What every method returned."""
    found = []
    for k, name, args, kwargs in cases["calls"]:
        try:
            given = [argument(x) for x in args]
        except Exception as error:
            found.append(("error", type(error).__name__, str(error)))
            continue
        found.append(attempt(getattr(robots[k], name), *given, **kwargs))
    return found


class StateMachine:
    """The stream of trees that have one."""

    def __init__(self, robot: Any, values: Mapping[str, Any]) -> None:
        from rbda_ros.control.stream import Stream
        from rbda_ros.control.topics import Input

        self.stream, self.robot = Stream(), robot
        self.inputs = {str(topic.name).lower(): topic for topic in Input}
        self.counts: dict[str, int] = {}
        self.stream.use(robot, self.settings(values))

    @staticmethod
    def settings(values: Mapping[str, Any]) -> Any:
        from rbda_ros.control.settings import Settings, checked_settings

        given = vars(Settings()) | {"on_stale": "nothing"} | dict(values)
        return checked_settings(given)

    def apply(self, values: Mapping[str, Any]) -> None:
        self.stream.apply(self.settings(values))

    def stop(self, now: int, steady: int) -> None:
        self.stream.stop(now, steady)

    def feed(self, topic: str, data: bytes, now: int, steady: int) -> Any:
        messages = self.stream.answer(self.inputs[topic], data, now, steady)
        self.stream.collect()
        counts = {str(r): n for r, n in self.stream.rejections.counts.items()}
        new = [r for r, n in counts.items() if n > self.counts.get(r, 0)]
        self.counts = counts
        text = self.stream.rejections.last_message if new else ""
        out = {topic.name.lower(): bytes(data) for topic, data in messages}
        return out, new, text


class Numbers:
    """Stands for a Float64MultiArray, which keeps an array."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, array("d", value))


class Responding:
    """The stream of trees that answer messages in Python, by the code that recordings use."""

    def __init__(self, robot: Any, values: Mapping[str, Any]) -> None:
        from rbda_ros.node.refusals import Refusals
        from rbda_ros.node.stream.completed_states import CompletedStates
        from rbda_ros.node.stream.context import Context
        from rbda_ros.node.stream.external_effort import ExternalEffort
        from rbda_ros.node.stream.joint_commands import JointCommands
        from rbda_ros.node.stream.responder import Responder
        from rbda_ros.recordings.cdr import CdrCodec

        from rbda_ros.recordings import labeller

        self.robot, self.now, self.out = robot, 0, {}
        self.refusals, self.background = Refusals(), labeller._at_once
        self.codec = CdrCodec()
        self.codec.commands = Numbers  # type: ignore[method-assign]
        self.settings = self.checked(values)
        self.completed_states, self.external_effort = CompletedStates, ExternalEffort
        context = Context(
            publish=self.publisher("feedforward"),
            publish_commands=self.arrays,
            now=lambda: self.now,
            background=self.background,
            refusals=self.refusals,
            meter=labeller._NoMeter(),
            codec=self.codec,
            answered=self.answered,
            closed=self.closed,
        )
        self.responder = Responder(robot, self.settings, context)
        self.commands = JointCommands(
            robot,
            self.settings,
            self.publisher("motor_commands"),
            self.command_arrays,
            self.background,
            CdrCodec(),
        )
        self.offer()

    def offer(self) -> None:
        settings, robot = self.settings, self.robot
        self.completed = self.external = None
        wanted = settings.publish_joint_states
        if wanted == "always" or (wanted == "auto" and robot.tree.has_loops):
            self.completed = self.completed_states(
                robot,
                settings.joint_prefix,
                self.publisher("completed_states"),
                self.background,
                self.codec,
            )
        if settings.publish_external_effort:
            publish = self.publisher("external_effort")
            self.external = self.external_effort(
                robot, settings, publish, lambda wrench: None, self.codec
            )

    @staticmethod
    def checked(values: Mapping[str, Any]) -> Any:
        from rbda_ros.node.settings import Settings, checked_settings

        return checked_settings(vars(Settings()) | dict(values))

    def publisher(self, topic: str) -> Any:
        return lambda data: self.out.__setitem__(topic, bytes(data))

    def arrays(self, commands: Any) -> None:
        if self.settings.command_source == "feedforward":
            self.out["effort_commands"] = np.array(commands.data).tobytes()

    def command_arrays(self, values: Mapping[str, Any]) -> None:
        if self.settings.command_source == "joint_commands" and self.settings.command_joints:
            order = [self.robot.actuated_joint_names.index(n) for n in self.settings.command_joints]
            for field, numbers in values.items():
                self.out[f"{field}_commands"] = numbers[order].tobytes()

    def answered(self, call: Any, data: bytes, states: Any) -> None:
        self.commands.on_state(call, self.now)
        self.closed(call, data, states)
        if self.external is not None:
            self.counted(self.external.on_state, call, data, states, self.now)

    def closed(self, call: Any, data: bytes, states: Any, moving: bool = True) -> None:
        if self.completed is not None:
            self.completed.on_state(call, data, states, moving)

    def counted(self, function: Any, *args: Any) -> None:
        from rbda_ros.node.refusals import refusal

        from rbda_ros.errors import InputError, ModelError

        try:
            function(*args)
        except (InputError, ModelError) as error:
            self.refusals.add(refusal(error))

    def apply(self, values: Mapping[str, Any]) -> None:
        before, self.settings = self.settings, self.checked(values)
        self.responder.apply(self.settings)
        self.commands.apply(self.settings)
        names = "publish_joint_states", "publish_external_effort", "joint_prefix", "observer_gain"
        if any(getattr(before, n) != getattr(self.settings, n) for n in names):
            self.offer()

    def stop(self, now: int, steady: int) -> None:
        self.responder.forget()
        self.commands.forget()
        if self.external is not None:
            self.external.forget()

    def feed(self, topic: str, data: bytes, now: int, steady: int) -> Any:
        from rbda_ros.recordings.cdr import UnreadableError

        from rbda_ros.recordings.bags import typestore
        from rbda_ros.recordings.labeller import OTHER_TOPICS

        self.now, self.out = now, {}
        before, self.refusals.last_message = dict(self.refusals.counts), ""
        try:
            if topic == "joint_states":
                self.responder.on_joint_states(data)
            elif topic == "joint_commands":
                self.counted(self.commands.on_command, data, now)
            else:
                message = typestore().deserialize_cdr(data, OTHER_TOPICS[f"~/{topic}"])
                getattr(self.responder, f"on_{topic}")(message)
        except UnreadableError as error:
            return self.out, ["not readable"], str(error)
        new = [str(r) for r, n in self.refusals.counts.items() if n > before.get(r, 0)]
        return self.out, new, self.refusals.last_message


def record_streams(cases: Mapping[str, Any], robots: list[Any]) -> list[Any]:
    """What every message led to: messages by topic, reasons of a rejection, and its text."""
    try:
        import rbda_ros.control.stream  # noqa: F401

        kind: Any = StateMachine
    except ImportError:
        kind = Responding
    found = []
    for stream in cases["streams"]:
        made = attempt(lambda: None)
        try:
            fed = kind(robots[stream["robot"]], stream["settings"])
        except Exception as error:
            found.append([("error", type(error).__name__, str(error))])
            continue
        made = []
        last = (0, 0)
        for what, *event in stream["events"]:
            if what == "message":
                last = tuple(event[2:])
                made.append(attempt(fed.feed, *event))
            elif what == "settings":
                made.append(attempt(fed.apply, *event))
            else:
                made.append(attempt(fed.stop, *last))
        found.append(made)
    return found


class Node:
    """What services ask of a node, without DDS: handlers are called directly."""

    def __init__(self, robot: Any) -> None:
        from types import SimpleNamespace

        from rbda_ros.node.services import advertise

        try:
            from rbda_ros.control.settings import Settings
        except ImportError:
            from rbda_ros.node.settings import Settings  # type: ignore[no-redef, import-not-found, unused-ignore]
        self.robot, self.settings, self.active = robot, Settings(), True
        self.stream = SimpleNamespace(latest_state=lambda *given: None)
        self.answers: dict[str, tuple[Any, Any]] = {}
        advertise.for_service = lambda kind: kind
        advertise.SlowServices = lambda node: SimpleNamespace(add=self.add, start=lambda: None)
        advertise.advertise(self)

    def add(self, kind: Any, name: str, answer: Any) -> None:
        self.answers[name.removeprefix("~/")] = kind, answer

    def create_service(self, kind: Any, name: str, answer: Any, **options: Any) -> None:
        self.add(kind, name, answer)

    def get_logger(self) -> Any:
        import logging

        return logging.getLogger("trees")

    def call(self, name: str, request: Mapping[str, Any]) -> Any:
        kind, answer = self.answers[name]
        return of_message(answer(filled(kind.Request(), request), kind.Response()))


def filled(message: Any, values: Mapping[str, Any]) -> Any:
    """A ROS message with some fields; lists of messages are given with their type first."""
    for field, value in values.items():
        if isinstance(value, Mapping):
            filled(getattr(message, field), value)
        elif isinstance(value, tuple) and value and isinstance(value[0], str):
            package, kind = value[0].split("/")
            module = __import__(f"{package}.msg", fromlist=[kind])
            setattr(message, field, [filled(getattr(module, kind)(), x) for x in value[1]])
        else:
            setattr(message, field, value)
    return message


def of_message(message: Any) -> Any:
    """A ROS message as plain data."""
    if hasattr(message, "get_fields_and_field_types"):
        names = message.get_fields_and_field_types()
        return {name: of_message(getattr(message, name)) for name in names}
    if isinstance(message, (list, tuple)):
        return [of_message(each) for each in message]
    return np.array(message) if hasattr(message, "typecode") else plain(message)


def record_services(cases: Mapping[str, Any], robots: list[Any]) -> list[Any]:
    """The response to every request."""
    nodes: dict[int, Node] = {}
    found = []
    for k, name, request in cases["services"]:
        if k not in nodes:
            nodes[k] = Node(robots[k])
        found.append(attempt(nodes[k].call, name, request))
    return found


def main() -> None:
    """Record all cases of a file."""
    warnings.simplefilter("ignore")
    cases = pickle.loads(Path(sys.argv[1]).read_bytes())
    robots = [load_robot(**{k: v for k, v in m.items() if k != "name"}) for m in cases["models"]]
    recorded: dict[str, Any] = {}
    parts = ("streams", record_streams), ("services", record_services), ("calls", record_calls)
    for name, record in parts:
        recorded[name] = record(cases, robots) if cases[name] else []
        Path(sys.argv[2]).write_bytes(pickle.dumps(recorded))  # with what there is by now


if __name__ == "__main__":
    main()
