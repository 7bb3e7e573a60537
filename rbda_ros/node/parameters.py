"""The parameters of the node: declared, checked and read in this one place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.exceptions import ParameterException

from rbda_ros.algorithms.feedforward import TERMS
from rbda_ros.node.end_effectors import Point, end_effectors
from rbda_ros.node.joint_gains import joint_gains
from rbda_ros.node.parameter_descriptors import (
    ACCELERATION_SOURCES,
    COMMAND_SOURCES,
    DESCRIPTORS,
    LARGEST_GRAVITY,
    ON_REFUSAL,
    PUBLISH,
    VELOCITY_SOURCES,
)
from rbda_ros.robot import Robot


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
    effort_limits: str = ""
    effort_rate_limit: float = 0.0
    ramp_in: float = 0.0
    on_refusal: str = "silence"
    self_check_period: float = 10.0
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
    unknown = [n for n in _gains(settings, "effort_limits") if n not in robot.actuated_joint_names]
    if unknown:
        raise ParameterError(
            f"effort_limits: {', '.join(unknown)} not actuated in '{robot.name}'; use some of "
            f"{', '.join(robot.actuated_joint_names)}"
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
        ("on_refusal", ON_REFUSAL),
    ):
        if values[name] not in allowed:
            raise ParameterError(
                f"{name}: '{values[name]}' is unknown; use one of {', '.join(allowed)}"
            )
    for field in fields(settings):
        if isinstance(values[field.name], float) and not math.isfinite(values[field.name]):
            raise ParameterError(f"{field.name}: give a finite number")
    _points(settings.end_effectors)
    for name in ("stiffness", "damping", "effort_limits"):
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
