"""Values of the node's parameters, checked, without ROS: recordings are answered by them too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from rbda_ros.algorithms.feedforward import TERMS
from rbda_ros.control.parameter_maps import Point, end_effectors, joint_gains
from rbda_ros.description.source import is_yaml_text
from rbda_ros.robot import Robot

ACCELERATION_SOURCES = ("zero", "reference", "estimate")
VELOCITY_SOURCES = ("message", "differentiate")
COMMAND_RELIABILITY = ("best_effort", "reliable")
COMMAND_SOURCES = ("feedforward", "joint_commands")
PUBLISH = ("auto", "always", "never")
ON_REFUSAL = ("silence", "zero")
ON_STALE = ("nothing", "zero", "gravity", "damping")
LARGEST_GRAVITY = 100.0  # [m/s^2]; more is a mistake of units


class ParameterError(ValueError):
    """A parameter has a value that cannot be used; says which, and what to set."""


@dataclass(frozen=True)
class Settings:
    """The values of all parameters, checked. The field names are the parameter names."""

    robot_description: str = ""
    loop_constraints: str = ""
    model_folders: tuple[str, ...] = ()
    floating_base: bool = False
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    joint_prefix: str = ""
    joint_offsets: str = ""
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
    on_stale: str = "zero"
    stale_hold_time: float = 0.5
    measurement_tolerance: float = 0.1
    self_check_period: float = 10.0
    command_joints: tuple[str, ...] = ()
    command_controller: str = ""
    command_source: str = "feedforward"
    command_reliability: str = "best_effort"
    publish_joint_states: str = "auto"
    add_feedforward: bool = False
    stiffness: str = ""
    damping: str = ""
    publish_external_effort: bool = False
    observer_gain: float = 50.0
    contact_threshold: float = 0.0
    contact_end_effector: str = ""
    payload_window: float = 0.0
    joint_state_timeout: float = 0.1
    max_condition_number: float = 1e4
    realtime_priority: int = -1
    end_effectors: str = ""
    autostart: bool = True


def check_model(settings: Settings, robot: Robot) -> None:
    """Refuse settings that do not fit a model."""
    unknown = [n for n in settings.command_joints if n not in robot.actuated_joint_names]
    if unknown:
        raise ParameterError(
            f"command_joints: {', '.join(unknown)} not actuated in '{robot.name}'; use some of "
            f"{', '.join(robot.actuated_joint_names)}"
        )
    for name, (link, _) in _points(settings.end_effectors).items():
        if link not in robot.spanning_tree.links:
            raise ParameterError(
                f"end_effectors: '{name}' is on '{link}', which is no link of '{robot.name}'"
            )

    at = settings.contact_end_effector
    if at and at not in _points(settings.end_effectors) and at not in robot.spanning_tree.links:
        raise ParameterError(
            f"contact_end_effector: '{at}' is none of end_effectors, and no link of '{robot.name}'"
        )
    unknown = [n for n in _gains(settings, "effort_limits") if n not in robot.actuated_joint_names]
    if unknown:
        raise ParameterError(
            f"effort_limits: {', '.join(unknown)} not actuated in '{robot.name}'; use some of "
            f"{', '.join(robot.actuated_joint_names)}"
        )
    for name in ("joint_offsets", "stiffness", "damping"):
        unknown = [j for j in _gains(settings, name) if j not in robot.coordinates.scalar_positions]
        if unknown:
            raise ParameterError(
                f"{name}: {', '.join(unknown)} no joint of one coordinate in '{robot.name}'; use "
                f"some of {', '.join(robot.coordinates.scalar_positions)}"
            )


def with_start_folder(settings: Settings) -> Settings:
    """Settings at start-up: folders resolved, and that of the loop file among them."""
    folders = [Path(folder).resolve() for folder in settings.model_folders]
    if _names_file(settings.loop_constraints):
        folders.append(Path(settings.loop_constraints).resolve().parent)
    return replace(settings, model_folders=tuple(map(str, folders)))


def check_loop_file(settings: Settings) -> None:
    """Refuse a loop file outside `model_folders`, before anything looks at it."""
    if not _names_file(settings.loop_constraints):
        return
    try:
        path = Path(settings.loop_constraints).resolve()
    except (OSError, ValueError):
        path = None  # no path at all
    if path is None or not any(path.is_relative_to(each) for each in settings.model_folders):
        allowed = ", ".join(settings.model_folders) or "none"
        raise ParameterError(
            f"loop_constraints: the file is outside the folders that files may be in ({allowed}); "
            "give its text, or start the node with model_folders that have its folder"
        )


def _names_file(loop_constraints: str) -> bool:
    return bool(loop_constraints.strip()) and not is_yaml_text(loop_constraints)


def joint_offsets(settings: Settings, joints: Sequence[str]) -> np.ndarray | None:
    """Offsets added to measured positions of joints; None where there are none [rad, m]."""
    given = _gains(settings, "joint_offsets")
    offsets = np.array([given.get(name, 0.0) for name in joints])
    return offsets if offsets.any() else None


def publishes_joint_states(settings: Settings, robot: Robot) -> bool:
    """Whether every joint is published: if asked for, or where joints follow from others."""
    wanted = settings.publish_joint_states
    return wanted == "always" or (wanted == "auto" and robot.has_loops)


def _gains(settings: Settings, name: str) -> dict[str, float]:
    try:
        return joint_gains(name, getattr(settings, name), signed=name == "joint_offsets")
    except ValueError as error:
        raise ParameterError(str(error)) from error


def _points(text: str) -> dict[str, Point]:
    try:
        return end_effectors(text)
    except ValueError as error:
        raise ParameterError(str(error)) from error


def checked_settings(values: Mapping[str, Any]) -> Settings:
    """The settings of values for every parameter.

    Raises:
        ParameterError: one of them cannot be used.
    """
    converted = dict(values)
    for name in ("command_joints", "model_folders"):
        converted[name] = _texts(name, values[name])
    for name in ("gravity", "terms"):
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
        ("command_reliability", COMMAND_RELIABILITY),
        ("on_refusal", ON_REFUSAL),
        ("on_stale", ON_STALE),
    ):
        if values[name] not in allowed:
            raise ParameterError(
                f"{name}: '{values[name]}' is unknown; use one of {', '.join(allowed)}"
            )
    for field in fields(settings):
        if isinstance(values[field.name], float) and not math.isfinite(values[field.name]):
            raise ParameterError(f"{field.name}: give a finite number")
    _points(settings.end_effectors)
    for name in ("joint_offsets", "stiffness", "damping", "effort_limits"):
        _gains(settings, name)
    _check_list("terms", settings.terms, TERMS)
    _check_list("command_joints", settings.command_joints, settings.command_joints)
    if not settings.terms:
        raise ParameterError(f"terms: none; name some of {', '.join(TERMS)}")
    return settings


def _texts(name: str, values: Any) -> tuple[str, ...]:
    """The entries of a list of texts. ``[""]``, the old way to write an empty list, has none."""
    given = values if isinstance(values, list | tuple) else () if not values else [values]
    wrong = [value for value in given if not isinstance(value, str)]
    if wrong or isinstance(values, str | bytes):
        raise ParameterError(f"{name}: '{values}' is no list of names; give one, or [] for none")
    return tuple(value for value in given if value)


def _check_list(name: str, values: Sequence[str], allowed: Sequence[str]) -> None:
    unknown = [value for value in values if value not in allowed]
    if unknown:
        raise ParameterError(f"{name}: '{unknown[0]}' is unknown; use some of {', '.join(allowed)}")
    if len(set(values)) < len(values):
        raise ParameterError(f"{name}: {', '.join(values)}; name each once")
