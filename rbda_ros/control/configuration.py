"""Configuration of the machine: a model, settings, and kernels bound to arrays.

``read_config.c`` reads these classes by the names of their fields. Everything in them is checked
and converted here, so that the machine only has to look at sizes.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rbda_ros.algorithms.feedforward import TERMS
from rbda_ros.cluster_tree.closing.tolerances import (
    CLOSED,
    NEARBY,
    PRECISE,
    STREAM_PARTS,
    STREAM_REPEATS,
)
from rbda_ros.control.settings import (
    ACCELERATION_SOURCES,
    ON_STALE,
    Point,
    Settings,
    end_effectors,
    joint_gains,
    joint_offsets,
    publishes_joint_states,
)
from rbda_ros.errors import ClosureError, DescriptionError, InputError, Problem, listed
from rbda_ros.kernels.kernel import BoundCall, Kernel
from rbda_ros.robot import Robot
from rbda_ros.robot.closer import CANNOT_GIVE
from rbda_ros.robot.feedforward_call import FeedforwardCall
from rbda_ros.robot.inputs import LARGEST
from rbda_ros.spatial import Array

Indices = NDArray[np.int32]
Joints = tuple[str, ...]

POSITION, VELOCITY, EFFORT = 1, 2, 4
"""Fields of a JointState, as bits."""
NOWHERE = -1
LONGEST_SCALE = 1e6
SAMPLES = 4
"""Positions at which the ratios of linkages are looked at, beside the assembly."""

_numbers = itertools.count(1)
_identities: dict[int, tuple[weakref.ref[Any], int]] = {}
"""A number of each object, by its id, as long as it lives."""


@dataclass(frozen=True, eq=False)
class BoundKernel:
    """A kernel with its arrays.

    Attributes:
        address: of its machine code; 0 where there is none.
        call: evaluates the arrays, slowly; for a kernel without machine code.
        arrays: inputs, then outputs.
        kernel: whose machine code it is.
    """

    address: int
    call: BoundCall
    arrays: tuple[Array, ...]
    kernel: Kernel

    @classmethod
    def of(cls, kernel: Kernel, call: BoundCall) -> BoundKernel:
        """A bound call, compiled unless there is no machine code of it."""
        kernel.compile()
        return cls(kernel.address or 0, call, (*call.inputs, *call.outputs), kernel)

    @classmethod
    def made(cls, kernel: Kernel) -> BoundKernel:
        """A kernel with arrays of its own."""
        return cls.of(kernel, kernel.bind())


@dataclass(frozen=True, eq=False)
class ModelTable:
    """The model, as numbers and names.

    Attributes:
        joint_names: moving joints, with the prefix of messages.
        entries: of q, for joints of one coordinate; else -1.
        coordinates: first velocity coordinate of each joint.
        angular: whether the position of a joint is an angle.
        nq, nv, ny, base_nq, base_nv, bodies: sizes.
        home: (nq,) assembly.
        actuated_joints, independent_joints: numbers of joints.
        y_coordinates: (ny,) velocity coordinates of y.
        link_names, link_bodies, link_frames: where wrenches on links act.
        description, version: which description this is from, and which model it is.
    """

    joint_names: tuple[str, ...]
    entries: Indices
    coordinates: Indices
    angular: NDArray[np.uint8]
    nq: int
    nv: int
    ny: int
    base_nq: int
    base_nv: int
    bodies: int
    home: Array
    actuated_joints: Indices
    independent_joints: Indices
    y_coordinates: Indices
    link_names: tuple[str, ...]
    link_bodies: Indices
    link_frames: Array
    description: int
    version: int


@dataclass(frozen=True, eq=False)
class SettingsTable:
    """The settings: parameters that C reads as they are, and what follows from the others."""

    parameters: Settings
    differentiate: bool
    zero_on_rejection: bool
    commands_from_joints: bool
    dampers: bool
    complete: bool
    acceleration_source: int
    on_stale: int
    measurement_tolerance: float
    cannot_give: float
    largest: float
    terms: int
    offsets: Array
    damping: Array
    limits: Array
    command_order: Indices
    precise: float
    closed: float
    nearby: float
    repeats: int
    parts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Route:
    """How states with these known joints are answered.

    Attributes:
        measured: (joints,) bytes, 1 for each known joint.
        wanted: the same for a reference; None where none is used.
        acceleration_source, wrenches, terms: what else the kernel is for.
        problem: why these joints do not determine the others; empty if they do.
        reference_problem: the same of the joints of the reference.
        kernel, completion: of efforts, and of the velocity of every joint.
        joints, entries: that are inputs of the kernel, and their entries of q.
        wanted_joints: whose acceleration it takes.
        seeds: measured joints of loops in which more is measured than needed.
        followers: entries of q of the other joints of these loops.
        settling, settling_joints: closes the loops by other measured joints; None where there are
            too few.
        redundant, scales: measured joints that the kernel does not take, and how fast each moves
            beside those it takes, at least 1.
        closer: closes the loops where no kernel does; takes positions and a guess as bytes.
        call: the feedforward call that it is made of.
    """

    measured: bytes
    wanted: bytes | None
    acceleration_source: int
    wrenches: bool
    terms: int
    problem: str = ""
    reference_problem: str = ""
    kernel: BoundKernel | None = None
    completion: BoundKernel | None = None
    joints: Indices = field(default_factory=lambda: indices(()))
    entries: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    wanted_joints: Indices = field(default_factory=lambda: indices(()))
    seeds: Indices = field(default_factory=lambda: indices(()))
    followers: Indices = field(default_factory=lambda: indices(()))
    settling: BoundKernel | None = None
    settling_joints: Indices = field(default_factory=lambda: indices(()))
    redundant: Indices = field(default_factory=lambda: indices(()))
    scales: Array = field(default_factory=lambda: np.zeros(0))
    closer: Any = None
    call: FeedforwardCall | None = None

    @property
    def determined(self) -> bool:
        """Whether the known joints determine the others."""
        return not self.problem

    @property
    def reference_determined(self) -> bool:
        """Whether the joints of the reference determine the others."""
        return not self.reference_problem


@dataclass(frozen=True, eq=False)
class CommandRoute:
    """How commands with these joints and fields are converted.

    Attributes:
        named: (joints,) bytes, 1 for each joint of the command.
        fields: bits of `POSITION`, `VELOCITY` and `EFFORT`.
        measured: (joints,) bytes, joints whose velocity dampers use; None without dampers.
        problem: why these joints do not determine the others; empty if they do.
        moves, holds: whether a position is commanded or held, and whether it is held.
        needs_state, has_efforts: whether it depends on where the robot is; whether motors get
            efforts.
        kernel, joints, entries: as those of a `Route`.
        gains, offsets: inputs that the settings determine.
    """

    named: bytes
    fields: int
    measured: bytes | None
    problem: str = ""
    moves: bool = False
    holds: bool = False
    needs_state: bool = False
    has_efforts: bool = False
    kernel: BoundKernel | None = None
    joints: Indices = field(default_factory=lambda: indices(()))
    entries: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    gains: Array = field(default_factory=lambda: np.zeros(0))
    offsets: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def determined(self) -> bool:
        """Whether the commanded joints determine the others."""
        return not self.problem


@dataclass(frozen=True, eq=False)
class ObserverTable:
    """Kernels of the momentum observer; ``point`` is where the wrench of ``wrench`` acts."""

    force: BoundKernel
    friction: BoundKernel
    momentum: BoundKernel
    wrench: bool = False
    point: Array = field(default_factory=lambda: np.zeros(3))
    jacobian: BoundKernel | None = None
    pose: BoundKernel | None = None


@dataclass(frozen=True, eq=False)
class HoldTable:
    """Kernels of the efforts that hold the robot against gravity."""

    gravity: BoundKernel
    efforts: BoundKernel


@dataclass(frozen=True, eq=False)
class Configuration:
    """Everything that the machine reads: model, settings and kernels."""

    model: ModelTable
    settings: SettingsTable
    routes: Sequence[Route]
    command_routes: Sequence[CommandRoute]
    observer: ObserverTable | None
    hold: HoldTable | None
    wrench_frame: str


def indices(values: Any) -> Indices:
    """Numbers of joints."""
    return np.array(list(values), np.int32)


def check_motors(robot: Robot) -> None:
    """Reject a robot that messages cannot command.

    Raises:
        DescriptionError: a motor is part of a joint with several coordinates.
    """
    parts = [name for name in robot.actuated_joint_names if name not in robot.joint_names]
    if parts:
        raise DescriptionError(
            [
                Problem(
                    f"actuated_joints of '{robot.name}'",
                    f"{listed(parts)} is part of a joint with several coordinates, for which"
                    " joint_states has no place",
                    "list the motors in the loop file, as actuated_joints: [...]; [] if there are"
                    " none",
                )
            ]
        )


def model_table(robot: Robot, prefix: str) -> ModelTable:
    """The model of a robot."""
    layout = robot.coordinates
    place = {name: k for k, name in enumerate(robot.joint_names)}
    links = robot.spanning_tree.links
    frames = [np.concatenate([link.frame.R.ravel(), link.frame.p]) for link in links.values()]
    linear = {joint.name for joint in robot.description.joints if joint.type == "prismatic"}
    return ModelTable(
        joint_names=tuple(prefix + name for name in robot.joint_names),
        entries=indices(layout.scalar_positions.get(n, NOWHERE) for n in robot.joint_names),
        coordinates=indices(layout.velocities[name].start for name in robot.joint_names),
        angular=np.array([name not in linear for name in robot.joint_names], np.uint8),
        nq=robot.nq,
        nv=robot.nv,
        ny=robot.ny,
        base_nq=layout.base_nq,
        base_nv=layout.base_nv,
        bodies=len(robot.spanning_tree.bodies),
        home=robot.neutral(),
        actuated_joints=indices(place[name] for name in robot.actuated_joint_names),
        independent_joints=indices(
            place[name] for name in robot.independent_joint_names if name in place
        ),
        y_coordinates=indices(robot.independent_coordinates),
        link_names=tuple(links),
        link_bodies=indices(link.body - 1 if link.body else NOWHERE for link in links.values()),
        link_frames=np.concatenate([np.zeros(0), *frames]),
        description=_identity(robot.description),
        version=_identity(robot),
    )


def _identity(of: Any) -> int:
    """A number of an object that no other has, as long as it lives."""
    key = id(of)
    known = _identities.get(key)
    if known is None or known[0]() is not of:
        gone = weakref.ref(of, lambda _: _identities.pop(key, None))
        known = _identities[key] = gone, next(_numbers)
    return known[1]


def largest_efforts(robot: Robot, settings: Settings) -> Array:
    """The largest effort of each actuated joint (actuated,), infinite where there is none."""
    described = {joint.name: joint.limits.effort for joint in robot.description.joints}
    given = joint_gains("effort_limits", settings.effort_limits)
    of_urdf = described if settings.saturate else {}
    return np.array(
        [
            min(of_urdf.get(name, math.inf), given.get(name, math.inf))
            for name in robot.actuated_joint_names
        ]
    )


def terms_bits(settings: Settings) -> int:
    """The terms of efforts as bits."""
    return sum(1 << TERMS.index(term) for term in settings.effort_terms)


def settings_table(robot: Robot, settings: Settings) -> SettingsTable:
    """The settings for a robot."""
    actuated = robot.actuated_joint_names
    offsets = joint_offsets(settings, robot.joint_names)
    damping = joint_gains("damping", settings.damping)
    return SettingsTable(
        parameters=settings,
        differentiate=settings.velocity_source == "differentiate",
        zero_on_rejection=settings.on_refusal == "zero",
        commands_from_joints=settings.command_source == "joint_commands",
        dampers=bool(damping),
        complete=publishes_joint_states(settings, robot),
        acceleration_source=ACCELERATION_SOURCES.index(settings.acceleration_source),
        on_stale=ON_STALE.index(settings.on_stale),
        measurement_tolerance=settings.measurement_tolerance or math.inf,
        cannot_give=CANNOT_GIVE,
        largest=LARGEST,
        terms=terms_bits(settings),
        offsets=np.zeros(len(robot.joint_names)) if offsets is None else offsets,
        damping=np.array([damping.get(name, 0.0) for name in actuated]),
        limits=largest_efforts(robot, settings),
        command_order=indices(actuated.index(name) for name in settings.command_joints),
        precise=PRECISE,
        closed=CLOSED,
        nearby=NEARBY,
        repeats=STREAM_REPEATS,
        parts=np.array(STREAM_PARTS, np.int64),
    )


def mask_of(robot: Robot, names: Sequence[str]) -> bytes:
    """(joints,) bytes, 1 for each named joint."""
    named = set(names)
    return bytes(name in named for name in robot.joint_names)


def names_in(robot: Robot, mask: bytes) -> Joints:
    """The joints that a mask names."""
    return tuple(name for name, given in zip(robot.joint_names, mask, strict=True) if given)


class RouteMaker:
    """Makes routes of one robot; calls with the same kernel are shared.

    Args:
        robot: the model.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._place = {name: k for k, name in enumerate(robot.joint_names)}
        self._calls: dict[tuple[Any, ...], FeedforwardCall] = {}
        self._completions: dict[Joints, BoundKernel] = {}
        self._settlings: dict[Joints, BoundKernel] = {}

    def route(self, measured: bytes, wanted: bytes | None, settings: Settings) -> Route:
        """The route for known joints, compiled; in any thread but not in two at once."""
        robot = self.robot
        source = ACCELERATION_SOURCES.index(settings.acceleration_source)
        key = measured, wanted, source, settings.external_wrench, terms_bits(settings)
        try:
            joints = robot.determining_joints(list(names_in(robot, measured)))
        except InputError as error:
            return Route(*key, problem=str(error))
        wanted_joints: Joints | None = None
        reference_problem = ""
        if settings.acceleration_source == "estimate":
            wanted_joints = joints
        elif wanted is not None:
            try:
                wanted_joints = robot.determining_joints(list(names_in(robot, wanted)))
            except InputError as error:
                reference_problem = str(error)
        call = self._call(joints, wanted_joints, settings)
        redundant, seeds, followers = self._redundant(measured, call.joints)
        others = self._others(measured, call.joints, redundant)
        layout = robot.coordinates
        return Route(
            *key,
            reference_problem=reference_problem,
            kernel=BoundKernel.of(call.kernel, call.bound),
            completion=self._completion(call.joints),
            joints=indices(self._place[name] for name in call.joints),
            entries=np.array([layout.scalar_positions[n] for n in call.joints], np.int64),
            wanted_joints=indices(map(self._owner, call.acceleration_joints)),
            seeds=indices(self._place[name] for name in seeds),
            followers=indices(place for name in followers for place in layout.positions[name]),
            settling=self._settling(others) if followers else None,
            settling_joints=indices(self._place[name] for name in others),
            redundant=indices(self._place[name] for name in redundant),
            scales=self._scales(call.joints, redundant),
            closer=None if call.closes_itself else self._closer(call),
            call=call,
        )

    def _owner(self, coordinate: str) -> int:
        """The joint of an independent coordinate, which may be one of several: ``rod.wz``."""
        return self._place.get(coordinate, self._place.get(coordinate.rpartition(".")[0], NOWHERE))

    def _call(self, joints: Joints, wanted: Joints | None, settings: Settings) -> FeedforwardCall:
        key = joints, wanted, settings.external_wrench, settings.effort_terms
        if key not in self._calls:
            self._calls[key] = self.robot.feedforward(
                joints, wanted, terms=settings.effort_terms, wrenches=settings.external_wrench
            )
        return self._calls[key]

    def _completion(self, joints: Joints) -> BoundKernel:
        if joints not in self._completions:
            call = self.robot.completion(joints)
            self._completions[joints] = BoundKernel.of(call.kernel, call.bound)
        return self._completions[joints]

    def _redundant(self, measured: bytes, joints: Joints) -> tuple[list[str], list[str], list[str]]:
        """Measured joints that no kernel takes; of their clusters all measured, and all others."""
        scalar = self.robot.coordinates.scalar_positions
        known = {name for name in names_in(self.robot, measured) if name in scalar}
        redundant: list[str] = []
        seeds: list[str] = []
        followers: list[str] = []
        for cluster in self.robot.clusters:
            here = [name for name in cluster.joints if name in known]
            more = [name for name in here if name not in joints]
            if more:
                redundant += more
                seeds += here
                followers += [name for name in cluster.joints if name not in known]
        return redundant, seeds, followers

    def _others(self, measured: bytes, joints: Joints, redundant: Sequence[str]) -> Joints:
        """Joints that determine the others, with as many redundant ones among them as can be."""
        if not redundant:
            return ()
        names = [name for name in names_in(self.robot, measured) if name not in joints]
        for more in (*joints, ""):
            try:
                return self.robot.determining_joints(names)
            except InputError:
                names = [*names, more]
        return joints

    def _settling(self, joints: Joints) -> BoundKernel:
        if joints not in self._settlings:
            self._settlings[joints] = BoundKernel.made(self.robot.closure_kernel(joints))
        return self._settlings[joints]

    def _scales(self, joints: Joints, redundant: Sequence[str]) -> Array:
        """How fast joints move at least per motion of the joints that the kernel takes; 1 or more.

        A difference is judged on the slower side of a gear. The ratio of a linkage changes with its
        position, and has no bound near a dead point: the least of some positions counts.
        """
        if not redundant:
            return np.zeros(0)
        call = self.robot.completion(joints)
        at = [self.robot.coordinates.velocities[name].start for name in redundant]
        least = np.full(len(redundant), LONGEST_SCALE)
        for q in self._positions:
            call.q[:], call.base_twist[:] = q, 0.0
            fastest = np.zeros(len(redundant))
            for k in range(len(joints)):
                call.velocity[:] = 0.0
                call.velocity[k] = 1.0
                rates = np.abs(call()[at])
                fastest = np.where(rates < LONGEST_SCALE, np.maximum(fastest, rates), fastest)
            least = np.minimum(least, fastest)
        return np.maximum(least, 1.0)

    @cached_property
    def _positions(self) -> list[Array]:
        """Closed positions: the assembly, and some others."""
        found = [self.robot.neutral()]
        for seed in range(SAMPLES):
            with suppress(ClosureError):
                found.append(self.robot.random_state(seed).q)
        return found

    def _closer(self, call: FeedforwardCall) -> Any:
        """Closes the loops that no Newton steps in a kernel close."""
        joints = call.joints

        def close(position: bytes, guess: bytes) -> bytes | None:
            known = dict(zip(joints, np.frombuffer(position).tolist(), strict=True))
            try:
                return call.close_on_any_branch(known, np.frombuffer(guess).copy()).tobytes()
            except (InputError, ClosureError):
                return None

        return close

    def command_route(
        self, named: bytes, fields: int, measured: bytes | None, settings: Settings
    ) -> CommandRoute:
        """The route for commands, compiled."""
        robot = self.robot
        names = names_in(robot, named)
        stiffness = joint_gains("stiffness", settings.stiffness)
        damping = joint_gains("damping", settings.damping)
        moves = bool(fields & (POSITION | VELOCITY))
        made_of = {
            "commanded": bool(fields & EFFORT),
            "springs": bool(stiffness) and bool(fields & POSITION),
            "dampers": bool(damping) and moves,
            "feedforward": settings.add_feedforward,
        }
        efforts = tuple(name for name, used in made_of.items() if used)
        try:
            joints = robot.determining_joints(list(names)) if moves else None
            damped = None if measured is None else names_in(robot, measured)
            call = robot.motor_command(joints, efforts=efforts, measured=damped)
        except InputError as error:
            return CommandRoute(named, fields, measured, problem=str(error))
        goes_by = call.joints if moves else ()
        offsets = joint_offsets(settings, robot.actuated_joint_names)
        layout = robot.coordinates
        return CommandRoute(
            named,
            fields,
            measured,
            moves=moves,
            holds=moves and not fields & POSITION,
            needs_state=not fields & POSITION or bool(efforts),
            has_efforts=bool(efforts),
            kernel=BoundKernel.of(call.kernel, call.bound),
            joints=indices(self._place[name] for name in goes_by),
            entries=np.array([layout.scalar_positions[name] for name in goes_by], np.int64),
            gains=self._gains(stiffness, damping),
            offsets=np.zeros(len(robot.actuated_joint_names)) if offsets is None else offsets,
        )

    def _gains(self, stiffness: Mapping[str, float], damping: Mapping[str, float]) -> Array:
        """(2 nv,) stiffness and damping of every coordinate."""
        gains = np.zeros((2, self.robot.nv))
        for row, given in zip(gains, (stiffness, damping), strict=True):
            for name, gain in given.items():
                if name in self.robot.coordinates.scalar_positions:
                    row[self.robot.coordinates.velocities[name].start] = gain
        return gains.ravel()

    def observer(self, settings: Settings) -> ObserverTable | None:
        """Kernels of the estimate of external efforts, if the settings ask for it."""
        if not settings.publish_external_effort:
            return None
        robot = self.robot
        force, friction, momentum = (
            BoundKernel.made(robot.kernel(name))
            for name in ("generalized_force", "friction_force", "momentum")
        )
        point = wrench_point(robot, settings)
        if point is None:
            return ObserverTable(force, friction, momentum)
        link, xyz = point
        return ObserverTable(
            force,
            friction,
            momentum,
            wrench=True,
            point=np.array(xyz, float),
            jacobian=BoundKernel.made(robot.kernel("jacobian", (link, xyz))),
            pose=BoundKernel.made(robot.kernel("frame_pose", link)),
        )

    def hold(self, settings: Settings) -> HoldTable | None:
        """Kernels of gravity compensation, if `on_stale` asks for it."""
        if settings.on_stale != "gravity":
            return None
        robot = self.robot
        return HoldTable(
            BoundKernel.made(robot.kernel("gravity_force")),
            BoundKernel.made(robot.kernel("actuator_efforts")),
        )


def wrench_point(robot: Robot, settings: Settings) -> Point | None:
    """The end effector, or link, of the estimated wrench; None where the model has none."""
    name = settings.contact_end_effector
    points = end_effectors(settings.end_effectors)
    if name in points:
        return points[name]
    return (name, [0.0, 0.0, 0.0]) if name in robot.spanning_tree.links else None
