"""What the node would have answered, message by message, by the code that answers in the node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rbda_ros.errors import InputError, ModelError
from rbda_ros.node.joint_map import places
from rbda_ros.node.refusals import Refusals, refusal
from rbda_ros.node.settings import Settings, check_model
from rbda_ros.node.stream.completed_states import CompletedStates
from rbda_ros.node.stream.context import Context
from rbda_ros.node.stream.external_effort import ExternalEffort
from rbda_ros.node.stream.joint_states import JointStates
from rbda_ros.node.stream.meter import Meter
from rbda_ros.node.stream.rates import Vector
from rbda_ros.node.stream.responder import Responder
from rbda_ros.recordings.bags import typestore
from rbda_ros.recordings.cdr import CdrCodec, CdrWriter, UnreadableError, stamp
from rbda_ros.robot import Robot
from rbda_ros.robot.feedforward_call import FeedforwardCall

LABELS = ("feedforward", "joint_states", "external_effort", "residual")
"""Topics that are added, under the node's name."""
OTHER_TOPICS = {
    "~/reference": "trajectory_msgs/msg/JointTrajectory",
    "~/base_state": "nav_msgs/msg/Odometry",
    "~/external_wrench": "geometry_msgs/msg/WrenchStamped",
}
"""Topics that the node listens to beside joint states, and their types."""
UNREADABLE = "not readable"
"""Why a message is not answered that is none of its type."""


@dataclass(frozen=True)
class Sample:
    """What is known at one joint state, for a row of a table; None where it is not.

    Attributes:
        stamp: of the message [ns].
        position, velocity: of every joint of one coordinate, completed.
        measured: efforts of the actuated joints, as measured; not a number where one is not.
        feedforward: efforts of the actuated joints, of the model.
        external: force on the independent joints from outside.
        joints: that positions and velocities follow from.
        base: pose (7) and twist (6) of a floating base; empty without one.
    """

    stamp: int
    position: Vector
    velocity: Vector
    measured: Vector | None
    feedforward: Vector
    external: Vector | None
    joints: tuple[str, ...]
    base: Vector

    @property
    def residual(self) -> Vector | None:
        """Efforts as measured minus those of the model."""
        return None if self.measured is None else self.measured - self.feedforward


class Labeller:
    """Answers the messages of one recording in their order; not for several threads.

    Args:
        robot: the model.
        settings: the parameters of the node; what publishes labels is on unless told otherwise.

    Attributes:
        refused: messages that were not answered, by reason.
        joints, actuated, independent: names in the order of a sample's numbers.
        floating_base: whether samples have the state of a base.
    """

    def __init__(self, robot: Robot, settings: Settings) -> None:
        check_model(settings, robot)
        # Commands, and wrenches of contacts, are no labels.
        settings = replace(settings, command_joints=(), contact_end_effector="")
        self._robot, self._settings = robot, settings
        self._now = 0
        self._refusals = Refusals()
        self._unreadable = 0
        self._labels: list[tuple[str, bytes]] = []
        self._sample: Sample | None = None
        self._codec = CdrCodec()
        prefix = settings.joint_prefix
        self._context = Context(
            publish=self._publisher("feedforward"),
            publish_commands=lambda commands: None,
            now=lambda: self._now,
            background=_at_once,
            refusals=self._refusals,
            meter=_NoMeter(),
            codec=self._codec,
            answered=self._answered,
            closed=lambda *given: self._completed.on_state(*given),
        )
        self._completed = CompletedStates(
            robot, prefix, self._publisher("joint_states"), _at_once, self._codec
        )
        self._external: ExternalEffort | None = None
        if settings.publish_external_effort:
            self._external = ExternalEffort(
                robot,
                settings,
                self._publisher("external_effort"),
                lambda wrench: None,
                self._codec,
            )
            for name in ("momentum", "generalized_force", "friction_force", "loop_state"):
                robot.kernel(name).compile()
        self._responder = Responder(robot, settings, self._context)
        self.joints = tuple(
            name for name in robot.joint_names if name in robot.coordinates.scalar_positions
        )
        self.floating_base = robot.floating_base
        self.actuated, self.independent = robot.actuated_joint_names, robot.independent_joint_names
        self._take = {
            "~/reference": self._responder.on_reference,
            "~/base_state": self._responder.on_base_state,
            "~/external_wrench": self._responder.on_external_wrench,
        }
        names = {
            "feedforward": self.actuated,
            "external_effort": self.independent,
            "residual": self.actuated,
        }
        self._writers = {
            label: CdrWriter([prefix + name for name in of], ("effort",))
            for label, of in names.items()
        }
        self._some_residuals: dict[tuple[str, ...], CdrWriter] = {}  # the last set of joints
        # Of efforts in messages that name certain joints: whose they are, and where they stand.
        self._places: tuple[tuple[str, ...], tuple[str, ...], list[int]] = (), (), []

    @property
    def refused(self) -> Counter[str]:
        """Messages that were not answered, by reason."""
        counts = Counter({str(reason): n for reason, n in self._refusals.counts.items()})
        if self._unreadable:
            counts[UNREADABLE] = self._unreadable
        return counts

    @property
    def last_refusal(self) -> str:
        """What was said of the last of them."""
        return self._refusals.last_message

    def joint_states(self, data: bytes, time: int) -> tuple[list[tuple[str, bytes]], Sample | None]:
        """Answer a serialized JointState.

        Args:
            data: the message.
            time: when it was recorded [ns]: the node's present.

        Returns:
            The labels, each by its name in `LABELS`, serialized; and what is known by them.
        """
        self._now = time
        self._labels, self._sample = [], None
        try:
            self._responder.on_joint_states(data)
        except UnreadableError as error:
            self._unreadable += 1
            self._refusals.last_message = str(error)
        return self._labels, self._sample

    def effort_labels(self, sample: Sample, like: bytes) -> list[tuple[str, bytes]]:
        """Labels of a sample whose efforts were changed, with the stamp of a message."""
        numbers = {
            "feedforward": sample.feedforward,
            "external_effort": sample.external,
        }
        labels = []
        for label, values in numbers.items():
            if values is not None:
                writer = self._writers[label]
                writer.efforts[:] = values
                labels.append((label, writer.serialized(like)))
        residual = sample.residual
        if residual is not None:
            labels.append(("residual", self._residual(residual, like)))
        return labels

    def other(self, topic: str, msgtype: str, data: bytes, time: int) -> None:
        """Take a message of one of `OTHER_TOPICS`, serialized; one of another type is skipped."""
        if msgtype != OTHER_TOPICS[topic]:
            return
        self._now = time
        try:
            message = typestore().deserialize_cdr(data, msgtype)
        except Exception:  # rosbags raises whatever the bytes lead it to
            self._unreadable += 1
            return
        self._take[topic](message)

    def _publisher(self, label: str) -> Callable[[bytes], None]:
        return lambda data: self._labels.append((label, data))

    def _answered(self, call: FeedforwardCall, data: bytes, states: JointStates) -> None:
        self._completed.on_state(call, data, states)
        external = None
        if self._external is not None:
            before = len(self._labels)
            try:
                self._external.on_state(call, data, states, self._now)
            except (InputError, ModelError) as error:
                self._refusals.add(refusal(error))
            if len(self._labels) > before:
                external = self._codec.writers["effort",].values["effort"].copy()
        completed = self._completed.values
        sample = self._sample = Sample(
            stamp(data) or self._now,
            completed["position"].copy(),
            completed["velocity"].copy(),
            self._measured(states, call.q),
            call.efforts.copy(),
            external,
            call.joints,
            np.concatenate([call.base_position, call.base_twist]) if self.floating_base else _NONE,
        )
        residual = sample.residual
        if residual is not None:
            self._labels.append(("residual", self._residual(residual, data)))

    def _residual(self, residual: Vector, like: bytes) -> bytes:
        """The label of a residual: of the joints whose effort is measured."""
        measured = np.isfinite(residual)
        writer = self._writers["residual"]
        if not measured.all():
            names = tuple(name for name, has in zip(self.actuated, measured, strict=True) if has)
            if names not in self._some_residuals:
                prefix = self._settings.joint_prefix
                self._some_residuals = {
                    names: CdrWriter([prefix + name for name in names], ("effort",))
                }
            writer = self._some_residuals[names]
        writer.efforts[:] = residual[measured]
        return writer.serialized(like)

    def _measured(self, states: JointStates, q: Vector) -> Vector | None:
        """Efforts of the actuated joints, not a number for those that the message has none of.

        Where it has those of every independent joint instead, what these come to at the motors.
        """
        names, which, at = self._places
        if states.names is not names:
            found = places(states.names, self._settings.joint_prefix, set(self._robot.joint_names))
            all_of = (n for n in (self.actuated, self.independent) if found.keys() >= {*n})
            which = next(all_of, tuple(name for name in self.actuated if name in found))
            at = [found[name] for name in which]
            self._places = states.names, which, at
        if not at or len(states.effort) != len(states.names):
            return None
        measured = states.effort[at]
        finite = np.isfinite(measured)
        if which is self.independent and which is not self.actuated:
            if not finite.all():
                return None
        elif not finite.any():
            return None
        else:
            efforts = np.full(len(self.actuated), np.nan)
            where = [self.actuated.index(name) for name in which]
            efforts[where] = np.where(finite, measured, np.nan)
            return efforts
        tau = np.concatenate([np.zeros(self._robot.coordinates.base_nv), measured])
        return self._robot.actuator_efforts(q, tau)


_NONE: Vector = np.zeros(0)


class _NoMeter(Meter):
    """Times of a recording say nothing."""

    def add(self, duration: float, age: float, health: list[float]) -> None:
        """Forget it."""


def _at_once(make: Callable[[], Any]) -> Future[Any]:
    """In the place of another thread: nothing waits here; and kernels are compiled at once."""
    made: Future[Any] = Future()
    try:
        result = make()
        kernel = getattr(result, "kernel", None)
        if kernel is not None:
            kernel.compile()
        made.set_result(result)
    except Exception as error:
        made.set_exception(error)
    return made
