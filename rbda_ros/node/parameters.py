"""The parameters of the node: declared, checked and read in this one place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterException

from rbda_ros.algorithms.feedforward import TERMS
from rbda_ros.node.end_effectors import FORM, Point, end_effectors
from rbda_ros.node.joint_gains import GAIN_FORM, joint_gains
from rbda_ros.robot import Robot

ACCELERATION_SOURCES = ("zero", "reference", "estimate")
VELOCITY_SOURCES = ("message", "differentiate")
COMMAND_SOURCES = ("feedforward", "joint_commands")
PUBLISH = ("auto", "always", "never")
LARGEST_GRAVITY = 100.0  # [m/s^2]; more is a mistake of units


class ParameterError(ValueError):
    """A parameter has a value that cannot be used; says which, and what to set."""


@dataclass(frozen=True)
class Settings:
    """The values of all parameters, checked. The field names are the parameter names."""

    robot_description: str = ""
    loop_constraints: str = ""
    floating_base: bool = False
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    joint_prefix: str = ""
    velocity_source: str = "message"
    velocity_cutoff: float = 50.0
    acceleration_source: str = "zero"
    acceleration_cutoff: float = 20.0
    external_wrench: bool = False
    terms: tuple[str, ...] = ("gravity", "coriolis", "inertial")
    saturate: bool = False
    command_joints: tuple[str, ...] = ()
    command_source: str = "feedforward"
    publish_joint_states: str = "auto"
    add_feedforward: bool = False
    stiffness: str = ""
    damping: str = ""
    publish_external_effort: bool = False
    observer_gain: float = 50.0
    contact_threshold: float = 0.0
    contact_end_effector: str = ""
    joint_state_timeout: float = 0.1
    max_condition_number: float = 1e4
    end_effectors: str = ""
    autostart: bool = True


# What the model is made from: these wait for the next configuration.
MODEL_PARAMETERS = frozenset({"robot_description", "loop_constraints", "floating_base", "gravity"})

CUTOFF_RANGE = [FloatingPointRange(from_value=0.01, to_value=10000.0)]

DESCRIPTORS = {
    "robot_description": ParameterDescriptor(
        description="URDF or URDF+ text of the robot. Empty: taken from the topic "
        "robot_description.",
        additional_constraints="XML text, not a path. Changes only while unconfigured.",
    ),
    "loop_constraints": ParameterDescriptor(
        description="Loop-constraint file: a path, or its YAML text. Empty: no loops beyond "
        "those in the description.",
        additional_constraints="Changes only while unconfigured.",
    ),
    "floating_base": ParameterDescriptor(
        description="Whether the root link floats (legged and flying robots) or is fixed to "
        "the world.",
        additional_constraints="Changes only while unconfigured.",
    ),
    "gravity": ParameterDescriptor(
        description="Acceleration of gravity in the world frame [m/s^2]: x, y, z.",
        additional_constraints="Three finite numbers, together no longer than "
        f"{LARGEST_GRAVITY:g}. Changes only while unconfigured.",
    ),
    "joint_prefix": ParameterDescriptor(
        description="What joint names in messages begin with and the model's do not: taken off "
        "names that come in, and put before those that go out.",
    ),
    "velocity_source": ParameterDescriptor(
        description="Joint velocities: 'message' (of joint_states; refused without), or "
        "'differentiate' (filtered differences of the positions).",
        additional_constraints=f"One of: {', '.join(VELOCITY_SOURCES)}.",
    ),
    "velocity_cutoff": ParameterDescriptor(
        description="Corner frequency of the filter of 'differentiate' [Hz].",
        floating_point_range=CUTOFF_RANGE,
    ),
    "acceleration_source": ParameterDescriptor(
        description="Acceleration that the feedforward effort is for: 'zero' (holds the "
        "present velocity), 'reference' (first point of the topic ~/reference), or 'estimate' "
        "(filtered differences of the velocities).",
        additional_constraints=f"One of: {', '.join(ACCELERATION_SOURCES)}.",
    ),
    "acceleration_cutoff": ParameterDescriptor(
        description="Corner frequency of the filter of 'estimate' [Hz].",
        floating_point_range=CUTOFF_RANGE,
    ),
    "external_wrench": ParameterDescriptor(
        description="Whether efforts hold against the wrenches on the topic ~/external_wrench; "
        "then there is no effort without a fresh one.",
    ),
    "terms": ParameterDescriptor(
        description="What efforts are made of.",
        additional_constraints=f"Some of: {', '.join(TERMS)}; at least one.",
    ),
    "saturate": ParameterDescriptor(
        description="Whether efforts are clipped at the URDF's effort limits.",
    ),
    "command_joints": ParameterDescriptor(
        description="Joints, by the model's names, whose efforts go to ~/effort_commands too, in "
        "this order, for forward_command_controller. [''] for none.",
        additional_constraints="Each actuated, and named once.",
    ),
    "command_source": ParameterDescriptor(
        description="What ~/effort_commands has: the 'feedforward', or what ~/joint_commands come "
        "to ('joint_commands'; then there are ~/position_commands and ~/velocity_commands too).",
        additional_constraints=f"One of: {', '.join(COMMAND_SOURCES)}.",
    ),
    "publish_joint_states": ParameterDescriptor(
        description="Whether ~/joint_states has every joint, completed from those measured: "
        "'always', 'never', or 'auto' (where the robot has loops).",
        additional_constraints=f"One of: {', '.join(PUBLISH)}.",
    ),
    "add_feedforward": ParameterDescriptor(
        description="Whether the efforts of ~/motor_commands have the feedforward in them.",
    ),
    "stiffness": ParameterDescriptor(
        description="Springs between commanded and measured positions of joints, in the efforts of "
        f"~/motor_commands, as YAML text: {GAIN_FORM} [N m/rad, N/m].",
    ),
    "damping": ParameterDescriptor(
        description="Dampers between commanded and measured velocities of joints, likewise: "
        f"{GAIN_FORM} [N m s/rad, N s/m].",
    ),
    "publish_external_effort": ParameterDescriptor(
        description="Whether ~/external_effort has what acts on the robot beyond its motors, "
        "estimated from measured efforts; then joint_states must have these.",
    ),
    "observer_gain": ParameterDescriptor(
        description="Gain of that estimate [1/s]: the inverse of the time it takes.",
        floating_point_range=[FloatingPointRange(from_value=0.01, to_value=10000.0)],
    ),
    "contact_threshold": ParameterDescriptor(
        description="External effort on an independent joint past which diagnostics tell of a "
        "contact [N m, N]. 0: never.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=1e6)],
    ),
    "contact_end_effector": ParameterDescriptor(
        description="One of end_effectors, or a link, whose wrench ~/estimated_wrench has. Empty: "
        "none.",
    ),
    "joint_state_timeout": ParameterDescriptor(
        description="Oldest input that is answered [s], by its stamp. 0: any age, stamped or not.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=10.0)],
    ),
    "max_condition_number": ParameterDescriptor(
        description="Condition number of a loop from which on it is too near to a dead point "
        "for an effort.",
        floating_point_range=[FloatingPointRange(from_value=1.0, to_value=1e8)],
    ),
    "end_effectors": ParameterDescriptor(
        description="Points on links that ~/operational_space_inertia knows by name, as YAML text: "
        f"{FORM}, in the frame of the link [m].",
    ),
    "autostart": ParameterDescriptor(
        description="Whether the node configures and activates itself once it has a "
        "description. Without it, use the lifecycle services.",
        read_only=True,
    ),
}


def declare(node: Any) -> Settings:
    """Declare every parameter on the node, and read what it was started with.

    Raises:
        ParameterError: one of them cannot be used.
    """
    defaults = Settings()
    try:
        for name, descriptor in DESCRIPTORS.items():
            default = getattr(defaults, name)
            if isinstance(default, tuple):
                default = list(default) or [""]  # an empty list has no type in ROS
            node.declare_parameter(name, default, descriptor)
    except ParameterException as error:
        raise ParameterError(f"parameter refused: {error}") from error
    return read(node)


def read(node: Any) -> Settings:
    """Read the present values, checked."""
    return _settings({name: node.get_parameter(name).value for name in DESCRIPTORS})


def change(
    settings: Settings, parameters: Iterable[Any], robot: Robot | None, configured: bool
) -> tuple[Settings, SetParametersResult]:
    """Give the settings after a change, and whether ROS may apply it: all of it or nothing.

    Args:
        settings: the present ones.
        parameters: those that change.
        robot: the model in use; None while the node is unconfigured.
        configured: whether the node is configured, or being so.
    """
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    changed = {
        parameter.name: parameter.value for parameter in parameters if parameter.name in values
    }
    late = sorted(MODEL_PARAMETERS & changed.keys())
    if configured and late:
        reason = (
            f"{', '.join(late)}: changes only while unconfigured; deactivate and clean up first"
        )
        return settings, SetParametersResult(successful=False, reason=reason)
    try:
        wanted = _settings(values | changed)
        if robot is not None:
            check_model(wanted, robot)
    except ParameterError as error:
        return settings, SetParametersResult(successful=False, reason=str(error))
    return wanted, SetParametersResult(successful=True)


def check_model(settings: Settings, robot: Robot) -> None:
    """Refuse settings that do not fit a model."""
    unknown = [n for n in settings.command_joints if n not in robot.actuated_joint_names]
    if unknown:
        raise ParameterError(
            f"command_joints: {', '.join(unknown)} not actuated in '{robot.name}'; use some of "
            f"{', '.join(robot.actuated_joint_names)}"
        )
    for name, (link, _) in _points(settings.end_effectors).items():
        if link not in robot.tree.spanning.links:
            raise ParameterError(
                f"end_effectors: '{name}' is on '{link}', which is no link of '{robot.name}'"
            )

    at = settings.contact_end_effector
    if at and at not in _points(settings.end_effectors) and at not in robot.tree.spanning.links:
        raise ParameterError(
            f"contact_end_effector: '{at}' is none of end_effectors, and no link of '{robot.name}'"
        )
    for name in ("stiffness", "damping"):
        unknown = [j for j in _gains(settings, name) if j not in robot.coordinates.scalar_positions]
        if unknown:
            raise ParameterError(
                f"{name}: {', '.join(unknown)} no joint of one coordinate in '{robot.name}'; use "
                f"some of {', '.join(robot.coordinates.scalar_positions)}"
            )


def _gains(settings: Settings, name: str) -> dict[str, float]:
    try:
        return joint_gains(name, getattr(settings, name))
    except ValueError as error:
        raise ParameterError(str(error)) from error


def _points(text: str) -> dict[str, Point]:
    try:
        return end_effectors(text)
    except ValueError as error:
        raise ParameterError(str(error)) from error


def _settings(values: Mapping[str, Any]) -> Settings:
    converted = dict(values)
    for name in ("gravity", "terms", "command_joints"):
        converted[name] = tuple(values[name])
    settings = Settings(**converted)
    gravity = settings.gravity
    if len(gravity) != 3 or not math.hypot(*gravity) <= LARGEST_GRAVITY:
        raise ParameterError(
            f"gravity: {list(gravity)} is not an acceleration; give three finite numbers "
            f"[m/s^2], together no longer than {LARGEST_GRAVITY:g}"
        )
    for name, allowed in (
        ("acceleration_source", ACCELERATION_SOURCES),
        ("velocity_source", VELOCITY_SOURCES),
        ("publish_joint_states", PUBLISH),
        ("command_source", COMMAND_SOURCES),
    ):
        if values[name] not in allowed:
            raise ParameterError(
                f"{name}: '{values[name]}' is unknown; use one of {', '.join(allowed)}"
            )
    for field in fields(settings):
        if isinstance(values[field.name], float) and not math.isfinite(values[field.name]):
            raise ParameterError(f"{field.name}: give a finite number")
    _points(settings.end_effectors)
    for name in ("stiffness", "damping"):
        _gains(settings, name)
    commands = tuple(name for name in settings.command_joints if name)
    _check_list("terms", settings.terms, TERMS)
    _check_list("command_joints", commands, commands)
    if not settings.terms:
        raise ParameterError(f"terms: none; name some of {', '.join(TERMS)}")
    return replace(settings, command_joints=commands)


def _check_list(name: str, values: Sequence[str], allowed: Sequence[str]) -> None:
    unknown = [value for value in values if value not in allowed]
    if unknown:
        raise ParameterError(f"{name}: '{unknown[0]}' is unknown; use some of {', '.join(allowed)}")
    if len(set(values)) < len(values):
        raise ParameterError(f"{name}: {', '.join(values)}; name each once")
