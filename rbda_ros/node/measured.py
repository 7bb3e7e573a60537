"""What is measured at the joints: the newest of each, however many messages it comes in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.node.parameters import Settings
from rbda_ros.node.rates import NEVER, FilteredRates, Indices, Vector
from rbda_ros.node.refusals import Reason, RefusalError

if TYPE_CHECKING:
    from rbda_ros.robot import Robot

MOST_LAYOUTS = 100
"""Sets of names that are remembered: more are no drivers' but someone's mistake."""


@dataclass
class Layout:
    """Where the joints of the model stand in messages that name the same joints.

    Attributes:
        names: of the joints in the message.
        source: places in the message of those that the model has.
        target: places of the same joints in the model.
        joints: those to go by, if the message determines all others by itself.
        time: stamp of the last such message [ns].
    """

    names: list[str]
    source: Indices
    target: Indices
    joints: tuple[str, ...] | None
    time: int = NEVER


class Measured:
    """Positions and velocities of the joints of one robot, with the time each is from."""

    def __init__(self, robot: Robot, prefix: str) -> None:
        self._robot = robot
        self._prefix = prefix
        self._place = {name: k for k, name in enumerate(robot.joint_names)}
        size = len(self._place)
        self._position, self._velocity = np.zeros(size), np.zeros(size)
        self._times = np.full(size, NEVER)
        self._velocity_estimate, self._acceleration_estimate = (
            FilteredRates(size),
            FilteredRates(size),
        )
        self._layouts: dict[tuple[str, ...], Layout | RefusalError] = {}
        self._last: Layout | None = None
        self._by_fresh: dict[bytes, tuple[str, ...] | RefusalError] = {}
        self._joints: tuple[str, ...] = ()
        self._places = np.zeros(0, np.intp)

    def forget(self) -> None:
        """Let go of all measurements, as when time has jumped back."""
        self._times[:] = NEVER
        self._velocity_estimate.forget()
        self._acceleration_estimate.forget()
        self._layouts.clear()
        self._last = None

    def take(self, message: Any, time: int, settings: Settings) -> Layout:
        """Keep what a JointState says.

        Args:
            message: the JointState.
            time: that it is from [ns].
            settings: where velocities and accelerations come from.

        Raises:
            RefusalError: its names or sizes cannot be used, or it is older than the last one.
        """
        layout = self._last
        if layout is None or message.name != layout.names:
            layout = self._last = self._layout(message.name)
        size = len(layout.names)
        if len(message.position) != size:
            raise _wrong_size("positions", message.position, size)
        if time < layout.time and settings.joint_state_timeout:
            raise RefusalError(
                Reason.OUT_OF_ORDER, "joint_states are older than the last ones; check the stamps"
            )
        layout.time = time
        longest = settings.joint_state_timeout or math.inf
        source, target = layout.source, layout.target
        position = np.frombuffer(message.position)[source]
        if settings.velocity_source == "message":
            if not message.velocity:
                raise RefusalError(
                    Reason.NO_VELOCITY,
                    "joint_states have no velocity; publish velocities, or set velocity_source to "
                    "differentiate",
                )
            if len(message.velocity) != size:
                raise _wrong_size("velocities", message.velocity, size)
            velocity = np.frombuffer(message.velocity)[source]
        else:
            estimate = self._velocity_estimate
            estimate.update(target, position, time, settings.velocity_cutoff, longest)
            velocity = estimate.rates[target]
        if settings.acceleration_source == "estimate":
            self._acceleration_estimate.update(
                target, velocity, time, settings.acceleration_cutoff, longest
            )
        self._position[target] = position
        self._velocity[target] = velocity
        self._times[target] = time
        return layout

    def determining(self, layout: Layout, oldest: int) -> tuple[str, ...]:
        """The joints to go by: of this message, or of all that are not too old.

        Args:
            layout: of the message that has just come.
            oldest: time before which nothing is used [ns].

        Raises:
            RefusalError: they do not determine the others; says which are missing.
        """
        if layout.joints is not None:
            return layout.joints
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
        found = self._by_fresh[key]
        if isinstance(found, RefusalError):
            raise found
        return found

    def give(self, joints: tuple[str, ...], position: Vector, velocity: Vector) -> None:
        """Write positions and velocities of some joints, in their order, into arrays."""
        if joints is not self._joints:
            self._joints = joints
            self._places = np.array([self._place[name] for name in joints], np.intp)
        self._position.take(self._places, out=position)
        self._velocity.take(self._places, out=velocity)

    def give_accelerations(self, acceleration: Vector) -> None:
        """Write estimated accelerations of the joints that `give` was last asked for."""
        self._acceleration_estimate.rates.take(self._places, out=acceleration)

    def _layout(self, names: Sequence[str]) -> Layout:
        key = tuple(names)
        if key not in self._layouts:
            if len(self._layouts) >= MOST_LAYOUTS:
                self._layouts.clear()
            try:
                self._layouts[key] = self._new_layout(list(names))
            except RefusalError as refused:
                self._layouts[key] = refused
        layout = self._layouts[key]
        if isinstance(layout, RefusalError):
            raise layout
        return layout

    def _new_layout(self, names: list[str]) -> Layout:
        found = places(names, self._prefix, self._place)
        if not found:
            ours = ", ".join(self._prefix + name for name in self._place)
            raise RefusalError(
                Reason.MISNAMED,
                f"joint_states name no joint of '{self._robot.name}', which has {ours}; they name "
                f"{', '.join(names) or 'none at all'}",
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
        )


def places(names: list[str], prefix: str, known: Any) -> dict[str, int]:
    """Where the known joints stand among the names of a message; others are skipped.

    Raises:
        RefusalError: a joint is named twice.
    """
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise RefusalError(
            Reason.MISNAMED, f"joints named twice: {', '.join(repeated)}; name each once"
        )
    return {
        name[len(prefix) :]: k
        for k, name in enumerate(names)
        if name.startswith(prefix) and name[len(prefix) :] in known
    }


def _wrong_size(what: str, values: Any, size: int) -> RefusalError:
    return RefusalError(
        Reason.WRONG_SIZE,
        f"joint_states name {size} joints but have {len(values)} {what}; give one per joint",
    )
