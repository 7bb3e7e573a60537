"""What is measured at the joints: the newest of each, however many messages it comes in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from rbda_ros.errors import InputError, listed
from rbda_ros.node.joint_map import places
from rbda_ros.node.refusals import Reason, RefusalError
from rbda_ros.node.settings import Settings, joint_offsets
from rbda_ros.node.stream.joint_states import Form, JointStates
from rbda_ros.node.stream.rates import NEVER, FilteredRates, Indices, Vector
from rbda_ros.robot import Robot
from rbda_ros.robot.feedforward_call import FeedforwardCall

Joints = tuple[str, ...]
T = TypeVar("T")

MOST_LAYOUTS = 100
"""Sets of names that are remembered: more are no drivers' but someone's mistake."""


@dataclass(eq=False)
class Layout:
    """Where the joints of the model stand in messages that name the same joints.

    Attributes:
        names: of the joints in the message.
        source: places in the message of those that the model has.
        target: places of the same joints in the model.
        joints: those to go by, if the message determines all others by itself.
        order: places of these in the message.
        time: stamp of the last such message [ns].
    """

    names: Joints
    source: Indices
    target: Indices
    joints: Joints | None
    order: Indices
    time: int = NEVER


KnownForm = tuple[Form, Layout | RefusalError, Indices | None]
"""A form, its layout or why it is refused, and where in the robot its joints are to be kept."""


class Measured:
    """Positions and velocities of the joints of one robot.

    A message that determines the robot is used by itself. What others say is kept, each joint
    with the time it is from, and put together.
    """

    def __init__(self, robot: Robot, settings: Settings) -> None:
        self._robot = robot
        self._place = {name: k for k, name in enumerate(robot.joint_names)}
        size = len(self._place)
        self._position, self._velocity = np.zeros(size), np.zeros(size)
        self._times = np.full(size, NEVER, np.int64)
        self._moving = np.ones(size, bool)  # whether their last message had velocities
        self._velocity_rates, self._acceleration_rates = FilteredRates(size), FilteredRates(size)
        self._layouts: dict[Joints, Layout | RefusalError] = {}
        self._last: Layout | None = None
        self._by_fresh: dict[bytes, Joints | RefusalError] = {}
        self._fresh: bytes | None = None  # which joints `_together_joints` follow from
        self._together_joints: Joints = ()
        self._joints: Joints = ()  # that `_places` are of
        self._places: Indices = np.zeros(0, np.intp)
        self._offsets: Vector | None = None  # of these, in their order
        self._settings = settings
        self.apply(settings)

    def apply(self, settings: Settings) -> None:
        """Go on with other settings."""
        if self.forgets_by(settings):
            self.forget()
        self._settings = settings
        self._joints = ()  # their offsets may be others
        self._differences = (
            settings.velocity_source == "differentiate"
            or settings.acceleration_source == "estimate"
        )

    def forgets_by(self, settings: Settings) -> bool:
        """Whether other settings undo what was heard: names or rates mean something else."""
        names = ("joint_prefix", "velocity_source", "acceleration_source")
        return any(getattr(self._settings, name) != getattr(settings, name) for name in names)

    def forget(self) -> None:
        """Let go of all measurements, as when time has jumped back."""
        self._times[:] = NEVER
        self._velocity_rates.forget()
        self._acceleration_rates.forget()
        self._layouts.clear()
        self._last = None

    def take(self, states: JointStates, time: int, oldest: int) -> Joints:
        """Take a message; the joints to go by now.

        Args:
            states: the message.
            time: that it is from [ns].
            oldest: time before which nothing of other messages is used [ns].

        Raises:
            RefusalError: the message cannot be used, or what is known by now does not determine
                the robot; says why.
        """
        layout = self._last
        if layout is None or states.names is not layout.names:
            layout = self._last = self._layout(states.names)
        self._check(states, layout, time)
        layout.time = time
        if layout.joints is not None and not self._differences:
            return layout.joints
        self._keep(states, layout, time)
        return layout.joints or self._together(oldest)

    def take_positions(self, states: JointStates, time: int, oldest: int) -> Joints:
        """As `take`, of a message without velocities: it says where joints are, and no more."""
        layout = self._last = self._layout(states.names)
        self._check(states, layout, time, moving=False)
        layout.time = time
        self._times[layout.target] = time
        self._position[layout.target] = states.position[layout.source]
        self._velocity[layout.target] = np.nan
        self._moving[layout.target] = False
        return layout.joints or self._together(oldest)

    def expected(self, forms: Sequence[Form]) -> Joints:
        """The joints to go by, if messages come as they did; none where that is not known."""
        for form in forms:
            with suppress(RefusalError):
                if joints := self._layout(form.names).joints:
                    return joints
        return ()

    def known(self, forms: Sequence[Form], joints: Joints) -> list[KnownForm]:
        """Forms of messages that need no more thought, one for each set of names.

        Those that certain joints follow from, by themselves or with others that are fresh; and
        those that are always refused.
        """
        found: list[KnownForm] = []
        names: set[Joints] = set()
        velocities = self._settings.velocity_source == "message"
        for form in forms:
            layout = self._layouts.get(form.names)
            if form.names in names or layout is None:
                continue
            names.add(form.names)
            if isinstance(layout, RefusalError):
                found.append((form, layout, None))
            elif form.has_positions and (form.has_velocities or not velocities):
                goes_by = layout.joints or self._together_joints
                keeps = layout.joints is None or self._differences
                if goes_by == joints:
                    found.append((form, layout, layout.target if keeps else None))
        return found

    def kept(self, joints: Joints) -> tuple[Any, ...]:
        """What is kept of all messages, as `plan.c` reads it, to go by certain joints."""
        settings = self._settings
        return (
            self._position,
            self._velocity,
            self._times,
            (
                settings.velocity_source == "differentiate",
                settings.velocity_cutoff,
                *self._velocity_rates.arrays,
            ),
            (
                settings.acceleration_source == "estimate",
                settings.acceleration_cutoff,
                *self._acceleration_rates.arrays,
            ),
            settings.joint_state_timeout or math.inf,
            self._places_of(joints),
            self._offsets,
            self._fresh,
        )

    def give(
        self, states: JointStates, joints: Joints, call: FeedforwardCall, *, moving: bool = True
    ) -> None:
        """Write positions and velocities of joints, in their order, into a call's inputs.

        The message and the joints are those of the last `take`; or of `take_positions`, then with
        ``moving`` false, and zeros for velocities.
        """
        layout, places = self._last, self._places_of(joints)
        if not moving:
            self._position.take(places, out=call.position)
            call.velocity[:] = 0.0
        elif layout is not None and joints is layout.joints and not self._differences:
            states.position.take(layout.order, out=call.position, mode="clip")
            states.velocity.take(layout.order, out=call.velocity, mode="clip")
        else:
            self._position.take(places, out=call.position)
            self._velocity.take(places, out=call.velocity)
            if self._settings.acceleration_source == "estimate":
                self._acceleration_rates.rates.take(places, out=call.acceleration)
        if self._offsets is not None:
            call.position += self._offsets

    def not_finite(self, call: FeedforwardCall) -> RefusalError:
        """Which inputs of a call are not finite: measured ones, or rates that are not known."""
        settings = self._settings
        later = "comes from differences, and is known from the next message on"
        bad = _not_finite_at(call.joints, call.position)
        if not bad:
            bad = _not_finite_at(call.joints, call.velocity)
            if bad and settings.velocity_source == "differentiate":
                return RefusalError(Reason.NO_VELOCITY, f"the velocity {later}")
            if bad and not self._moving[self._places_of(call.joints)].all():
                return _no_velocity()
        if not bad and settings.acceleration_source == "estimate":
            return RefusalError(Reason.NO_ACCELERATION, f"the acceleration {later}")
        return RefusalError(
            Reason.NOT_FINITE, f"joint_states are not finite: {bad or 'numbers too large'}"
        )

    def _places_of(self, joints: Joints) -> Indices:
        if joints is not self._joints:
            self._joints = joints
            self._places = np.array([self._place[name] for name in joints], np.intp)
            self._offsets = joint_offsets(self._settings, joints)
        return self._places

    def _check(
        self, states: JointStates, layout: Layout, time: int, *, moving: bool = True
    ) -> None:
        size = len(layout.names)
        if len(states.position) != size:
            raise _wrong_size("positions", states.position, size)
        measured = moving and self._settings.velocity_source == "message"
        if measured and len(states.velocity) != size:
            if not len(states.velocity):
                raise _no_velocity()
            raise _wrong_size("velocities", states.velocity, size)
        if time < layout.time and self._settings.joint_state_timeout:
            raise RefusalError(
                Reason.OUT_OF_ORDER, "joint_states are older than the last ones; check the stamps"
            )

    def _keep(self, states: JointStates, layout: Layout, time: int) -> None:
        """Keep what a message says of each joint, and what follows from the one before."""
        settings, target = self._settings, layout.target
        longest = settings.joint_state_timeout or math.inf
        self._times[target] = time
        self._position[target] = position = states.position[layout.source]
        if settings.velocity_source == "message":
            velocity = states.velocity[layout.source]
        else:
            rates = self._velocity_rates
            rates.update(target, position, time, settings.velocity_cutoff, longest)
            velocity = rates.rates[target]
        self._velocity[target] = velocity
        self._moving[target] = True
        if settings.acceleration_source == "estimate":
            self._acceleration_rates.update(
                target, velocity, time, settings.acceleration_cutoff, longest
            )

    def _together(self, oldest: int) -> Joints:
        """The joints to go by of all that are not too old."""
        fresh = self._times >= oldest
        key = fresh.tobytes()
        if key not in self._by_fresh:
            if len(self._by_fresh) >= MOST_LAYOUTS:
                self._by_fresh.clear()
            names = [name for name, k in self._place.items() if fresh[k]]
            try:
                self._by_fresh[key] = self._robot.determining_joints(names)
            except InputError as error:
                self._by_fresh[key] = RefusalError(Reason.PARTIAL, f"joint_states: {error}")
        self._fresh, self._together_joints = key, _or_raise(self._by_fresh[key])
        return self._together_joints

    def _layout(self, names: Joints) -> Layout:
        if names not in self._layouts:
            if len(self._layouts) >= MOST_LAYOUTS:
                self._layouts.clear()
            try:
                self._layouts[names] = self._new_layout(names)
            except RefusalError as refused:
                self._layouts[names] = refused
        layout = _or_raise(self._layouts[names])
        layout.names = names  # equal, and now the same
        return layout

    def _new_layout(self, names: Joints) -> Layout:
        prefix = self._settings.joint_prefix
        found = places(names, prefix, self._place)
        if not found:
            ours = listed(prefix + name for name in self._place)
            raise RefusalError(
                Reason.MISNAMED,
                f"joint_states name no joint of '{self._robot.name}', which has {ours}; they name "
                f"{listed(names) or 'none at all'}",
            )
        try:
            joints = self._robot.determining_joints(list(found))
        except InputError:
            joints = None  # together with other messages, perhaps
        return Layout(
            names,
            np.array(list(found.values()), np.intp),
            np.array([self._place[name] for name in found], np.intp),
            joints,
            np.array([found[name] for name in joints or ()], np.intp),
        )


def _or_raise(found: T | RefusalError) -> T:
    if not isinstance(found, RefusalError):
        return found
    try:
        raise found.with_traceback(None)  # else it has one more frame each time
    finally:
        del found  # or this frame and the traceback would keep each other


def _wrong_size(what: str, values: Vector, size: int) -> RefusalError:
    return RefusalError(
        Reason.WRONG_SIZE,
        f"joint_states name {size} joints but have {len(values)} {what}; give one per joint",
    )


def _no_velocity() -> RefusalError:
    return RefusalError(
        Reason.NO_VELOCITY,
        "joint_states have no velocity; publish velocities, or set velocity_source to "
        "differentiate",
    )


def _not_finite_at(joints: Joints, values: Vector) -> str:
    return ", ".join(name for name, x in zip(joints, values, strict=True) if not np.isfinite(x))
