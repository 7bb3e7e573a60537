"""Configuration of the machine: a model, settings, and kernels bound to arrays.

``configuration.h`` lists the fields of every `Record` made here, with their types and sizes;
``read_config.c`` reads them by name, and rejects what does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from types import SimpleNamespace as Record
from typing import Any, TypeVar

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
from rbda_ros.control.native import EFFORT_FIELD, NOWHERE, POSITION_FIELD, VELOCITY_FIELD
from rbda_ros.control.settings import (
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

T = TypeVar("T")
Joints = tuple[str, ...]

LONGEST_SCALE = 1e6
SAMPLES = 4
"""Positions at which the ratios of linkages are looked at, beside the assembly."""


def bound_kernel(kernel: Kernel, call: BoundCall | None = None) -> Record:
    """A kernel with the arrays of a call, or arrays of its own; compiled if it can be."""
    kernel.compile()
    if call is None:
        call = kernel.bind()
    return Record(
        address=kernel.address or 0,  # of its machine code; without it, the machine runs `call`
        call=call,
        arrays=(*call.inputs, *call.outputs),
        kernel=kernel,  # whose machine code it is
    )


def configuration(
    settings: Settings,
    maker: RouteMaker,
    routes: Iterable[Record],
    command_routes: Iterable[Record],
) -> Record:
    """All that the machine reads: model, settings and kernels."""
    robot = maker.robot
    point = wrench_point(robot, settings)
    return Record(
        robot=robot,  # kept: its identity is a number of the model
        model=model_record(robot, settings.joint_prefix),
        settings=settings_record(robot, settings),
        routes=list(routes),
        command_routes=list(command_routes),
        observer=maker.observer(settings),
        hold=maker.hold(settings),
        wrench_frame="" if point is None else point[0],
    )


def indices(values: Any) -> NDArray[np.int32]:
    """Numbers of joints, or of other things, as the machine reads them."""
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


def model_record(robot: Robot, prefix: str) -> Record:
    """The model of a robot."""
    layout = robot.coordinates
    place = {name: k for k, name in enumerate(robot.joint_names)}
    links = robot.spanning_tree.links
    frames = [np.concatenate([link.frame.R.ravel(), link.frame.p]) for link in links.values()]
    linear = {joint.name for joint in robot.description.joints if joint.type == "prismatic"}
    return Record(
        joints=tuple(prefix + name for name in robot.joint_names),
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
        links=tuple(links),
        link_bodies=indices(link.body - 1 if link.body else NOWHERE for link in links.values()),
        link_frames=np.concatenate([np.zeros(0), *frames]),
        description=id(robot.description),  # unique: configurations that the machine compares are
        version=id(robot),  # there at the same time
    )


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


def settings_record(robot: Robot, settings: Settings) -> Record:
    """The settings for a robot: parameters, and what follows from them."""
    actuated = robot.actuated_joint_names
    offsets = joint_offsets(settings, robot.joint_names)
    stiffness = joint_gains("stiffness", settings.stiffness)
    damping = joint_gains("damping", settings.damping)
    return Record(
        parameters=settings,
        closing=Record(
            precise=PRECISE,
            closed=CLOSED,
            nearby=NEARBY,
            repeats=STREAM_REPEATS,
            parts=np.array(STREAM_PARTS, np.int64),
        ),
        differentiate=settings.velocity_source == "differentiate",
        zero_on_rejection=settings.on_refusal == "zero",
        commands_from_joints=settings.command_source == "joint_commands",
        dampers=bool(damping),
        complete=publishes_joint_states(settings, robot),
        tolerance=settings.measurement_tolerance or math.inf,
        cannot_give=CANNOT_GIVE,
        largest=LARGEST,
        terms=terms_bits(settings),
        offsets=np.zeros(len(robot.joint_names)) if offsets is None else offsets,
        damping=np.array([damping.get(name, 0.0) for name in actuated]),
        gains=np.concatenate([_by_coordinate(robot, gains) for gains in (stiffness, damping)]),
        limits=largest_efforts(robot, settings),
        command_order=indices(actuated.index(name) for name in settings.command_joints),
    )


def _by_coordinate(robot: Robot, gains: Mapping[str, float]) -> Array:
    """(nv,) gains of joints at their velocity coordinates."""
    layout, found = robot.coordinates, np.zeros(robot.nv)
    for name, gain in gains.items():
        if name in layout.scalar_positions:
            found[layout.velocities[name].start] = gain
    return found


def mask_of(robot: Robot, names: Sequence[str]) -> bytes:
    """(joints,) bytes, 1 for each named joint."""
    named = set(names)
    return bytes(name in named for name in robot.joint_names)


def names_in(robot: Robot, mask: bytes) -> Joints:
    """The joints that a mask names."""
    return tuple(name for name, given in zip(robot.joint_names, mask, strict=True) if given)


class RouteMaker:
    """Makes routes of one robot; they share kernels with the same joints.

    Args:
        robot: the model.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._place = {name: k for k, name in enumerate(robot.joint_names)}
        self._shared: dict[tuple[Any, ...], Any] = {}

    def _once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if key not in self._shared:
            self._shared[key] = make()
        made: T = self._shared[key]
        return made

    def route(self, measured: bytes, wanted: bytes | None, settings: Settings) -> Record:
        """The route for known joints, compiled; in any thread but not in two at once.

        ``call`` of it is the feedforward call; None where the joints do not determine the others.
        """
        robot = self.robot
        key = dict(
            measured=measured,
            wanted=wanted,
            acceleration_source=settings.acceleration_source,
            wrenches=settings.external_wrench,
            terms=terms_bits(settings),
        )
        joints = self._determining(measured)
        if joints is None:
            return Record(**key, determined=False, call=None)
        wanted_joints = None if wanted is None else self._determining(wanted)
        if settings.acceleration_source == "estimate":
            wanted_joints = joints
        call = self._call(joints, wanted_joints, settings)
        redundant, seeds, followers = self._redundant(measured, call.joints)
        settling = self._settling_joints(measured, call.joints, redundant)
        layout = robot.coordinates
        return Record(
            **key,
            determined=True,
            reference_determined=wanted is None or wanted_joints is not None,
            kernel=bound_kernel(call.kernel, call.bound),
            completion=self._completion(call.joints),
            joints=indices(self._place[name] for name in call.joints),
            entries=np.array([layout.scalar_positions[n] for n in call.joints], np.int64),
            wanted_joints=indices(map(self._owner, call.acceleration_joints)),
            seeds=indices(self._place[name] for name in seeds),
            followers=indices(place for name in followers for place in layout.positions[name]),
            settling=self._settling(settling) if followers else None,
            settling_joints=indices(self._place[name] for name in settling),
            redundant=indices(self._place[name] for name in redundant),
            scales=self._scales(call.joints, redundant),
            closer=None if call.closes_itself else self._closer(call),
            call=call,
        )

    def _determining(self, mask: bytes) -> Joints | None:
        """Some of these joints, which determine all others; None where they do not."""
        try:
            return self.robot.determining_joints(names_in(self.robot, mask))
        except InputError:
            return None

    def _owner(self, coordinate: str) -> int:
        """The joint of an independent coordinate, which may be one of several: ``rod.wz``."""
        return self._place.get(coordinate, self._place.get(coordinate.rpartition(".")[0], NOWHERE))

    def _call(self, joints: Joints, wanted: Joints | None, settings: Settings) -> FeedforwardCall:
        terms, wrenches = settings.effort_terms, settings.external_wrench
        return self._once(
            ("feedforward", joints, wanted, wrenches, terms),
            lambda: self.robot.feedforward(joints, wanted, terms=terms, wrenches=wrenches),
        )

    def _completion(self, joints: Joints) -> Record:
        def make() -> Record:
            call = self.robot.completion(joints)
            return bound_kernel(call.kernel, call.bound)

        return self._once(("completion", joints), make)

    def _settling(self, joints: Joints) -> Record:
        """Closes the loops by other measured joints."""
        return self._once(
            ("settling", joints), lambda: bound_kernel(self.robot.closure_kernel(joints))
        )

    def _redundant(self, measured: bytes, joints: Joints) -> tuple[list[str], list[str], list[str]]:
        """Joints for redundant measurements, by cluster.

        These are measured joints that the kernel does not take; and of clusters with such joints,
        those that are measured, and those that are not.
        """
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

    def _settling_joints(self, measured: bytes, joints: Joints, redundant: Sequence[str]) -> Joints:
        """Joints that determine all others, as many redundant ones as possible among them."""
        if not redundant:
            return ()
        names = [name for name in names_in(self.robot, measured) if name not in joints]
        for more in (*joints, ""):
            try:
                return self.robot.determining_joints(names)
            except InputError:
                names = [*names, more]
        return joints

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
    ) -> Record:
        """The route for commands, compiled."""
        robot = self.robot
        key = dict(named=named, fields=fields, measured=measured)
        stiffness = joint_gains("stiffness", settings.stiffness)
        damping = joint_gains("damping", settings.damping)
        moves = bool(fields & (POSITION_FIELD | VELOCITY_FIELD))
        made_of = {
            "commanded": bool(fields & EFFORT_FIELD),
            "springs": bool(stiffness) and bool(fields & POSITION_FIELD),
            "dampers": bool(damping) and moves,
            "feedforward": settings.add_feedforward,
        }
        efforts = tuple(name for name, used in made_of.items() if used)
        try:
            joints = robot.determining_joints(names_in(robot, named)) if moves else None
            damped = None if measured is None else names_in(robot, measured)
            call = robot.motor_command(joints, efforts=efforts, measured=damped)
        except InputError:
            return Record(**key, determined=False)
        tracked = call.joints if moves else ()
        layout = robot.coordinates
        return Record(
            **key,
            determined=True,
            moves=moves,
            holds=moves and not fields & POSITION_FIELD,
            needs_state=not fields & POSITION_FIELD or bool(efforts),
            has_efforts=bool(efforts),
            kernel=bound_kernel(call.kernel, call.bound),
            joints=indices(self._place[name] for name in tracked),
            entries=np.array([layout.scalar_positions[name] for name in tracked], np.int64),
        )

    def observer(self, settings: Settings) -> Record | None:
        """Kernels of the estimate of external efforts, if the settings ask for it."""
        if not settings.publish_external_effort:
            return None
        robot = self.robot
        observer = Record(
            force=bound_kernel(robot.kernel("generalized_force")),
            friction=bound_kernel(robot.kernel("friction_force")),
            momentum=bound_kernel(robot.kernel("momentum")),
            wrench=False,
        )
        point = wrench_point(robot, settings)
        if point is not None:
            link, xyz = point
            observer.wrench = True
            observer.point = np.array(xyz, float)
            observer.jacobian = bound_kernel(robot.kernel("jacobian", (link, xyz)))
            observer.pose = bound_kernel(robot.kernel("frame_pose", link))
        return observer

    def hold(self, settings: Settings) -> Record | None:
        """Kernels of gravity compensation, if `on_stale` asks for it."""
        if settings.on_stale != "gravity":
            return None
        return Record(
            gravity=bound_kernel(self.robot.kernel("gravity_force")),
            efforts=bound_kernel(self.robot.kernel("actuator_efforts")),
        )


def wrench_point(robot: Robot, settings: Settings) -> Point | None:
    """The end effector, or link, of the estimated wrench; None where the model has none."""
    name = settings.contact_end_effector
    points = end_effectors(settings.end_effectors)
    if name in points:
        return points[name]
    return (name, [0.0, 0.0, 0.0]) if name in robot.spanning_tree.links else None
