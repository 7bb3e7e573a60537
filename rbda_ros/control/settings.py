"""Checked values of the node's parameters, without ROS; recordings use them too."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rbda_ros.algorithms.feedforward import TERMS
from rbda_ros.control.native import ACCELERATION_SOURCES, ON_STALE
from rbda_ros.description.source import is_yaml_text
from rbda_ros.robot import Robot

GAIN_FORM = "{<joint>: <number>, ...}"
POINT_FORM = "{<name>: {link: <link>, xyz: [x, y, z]}, ...}"

Point = tuple[str, list[float]]
"""A link, and where on it [m, in its frame]."""


class ParameterError(ValueError):
    """A parameter has a value that cannot be used; says which, and what to set."""


@lru_cache
def joint_gains(name: str, text: str, *, signed: bool = False) -> dict[str, float]:
    """Read the YAML text of a parameter: numbers by joint name, of zero or more unless signed.

    Raises:
        ParameterError: it is not of that form; says which entry, and what to write.
    """
    given = _read_mapping(name, text, GAIN_FORM)
    for joint, gain in given.items():
        number = isinstance(gain, int | float) and not isinstance(gain, bool)
        if not number or not math.isfinite(gain) or (gain < 0.0 and not signed):
            more = "" if signed else " of zero or more"
            raise ParameterError(f"{name}: '{joint}' is {gain}; give a finite number{more}")
    return {str(joint): float(gain) for joint, gain in given.items()}


@lru_cache
def end_effectors(text: str) -> dict[str, Point]:
    """Read the YAML text of the parameter ``end_effectors``: points by name.

    Raises:
        ParameterError: it is not of that form; says which entry, and what to write.
    """
    given = _read_mapping("end_effectors", text, POINT_FORM)
    return {str(name): _point(name, entry) for name, entry in given.items()}


def _point(name: Any, entry: Any) -> Point:
    if isinstance(entry, dict) and set(entry) <= {"link", "xyz"}:
        link, xyz = entry.get("link"), entry.get("xyz", [0.0, 0.0, 0.0])
        if isinstance(link, str) and isinstance(xyz, list) and len(xyz) == 3:
            numbers = [x for x in xyz if isinstance(x, int | float) and math.isfinite(x)]
            if len(numbers) == 3:
                return link, [float(x) for x in numbers]
    raise ParameterError(f"end_effectors: '{name}' is {entry}; write {POINT_FORM}")


def _read_mapping(parameter: str, text: str, form: str) -> dict[Any, Any]:
    """The mapping that a parameter holds as YAML text; empty text is an empty one."""
    try:
        given = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ParameterError(f"{parameter}: not YAML ({error}); write {form}") from error
    if not isinstance(given, dict):
        raise ParameterError(f"{parameter}: '{text}' is no mapping; write {form}")
    return given


VELOCITY_SOURCES = ("message", "differentiate")
COMMAND_RELIABILITY = ("best_effort", "reliable")
COMMAND_SOURCES = ("feedforward", "joint_commands")
PUBLISH = ("auto", "always", "never")
ON_REFUSAL = ("silence", "zero")
LARGEST_GRAVITY = 100.0  # [m/s^2]; more is a mistake of units


CUTOFFS = (0.01, 10000.0)
"""Corner frequencies of filters [Hz]."""


def parameter(
    default: Any,
    description: str,
    *,
    constraints: str = "",
    choices: tuple[str, ...] = (),
    within: tuple[float, float] | None = None,
    read_only: bool = False,
) -> Any:
    """A field of `Settings`, with all that ROS and the reference say about a parameter.

    Args:
        default: its value unless it is given.
        description: its meaning and unit.
        constraints: other conditions on its value.
        choices: texts that it may be; any where there are none.
        within: smallest and largest number.
        read_only: whether it is set at the start only.
    """
    about = {"description": description, "choices": choices, "within": within}
    about["constraints"] = f"One of: {', '.join(choices)}." if choices else constraints
    return field(default=default, metadata=about | {"read_only": read_only})


@dataclass(frozen=True)
class Settings:
    """The values of all parameters, checked. The field names are the parameter names.

    This is the one description of a parameter: ROS descriptors and the reference are made from it.
    Rules of the gate are read from here by the list in ``gate.h``.
    """

    robot_description: str = parameter(
        "",
        "URDF or URDF+ text of the robot. Empty: the topic robot_description is used.",
        constraints="XML text, not a path. Changes only while unconfigured.",
    )
    loop_constraints: str = parameter(
        "",
        "Loop-constraint file: a path, or YAML text. Empty: only the loops of the description.",
        constraints="Changes only while unconfigured, and only to files in model_folders.",
    )
    model_folders: tuple[str, ...] = parameter(
        (),
        "Folders (with their subfolders) that may contain a loop file if "
        "loop_constraints changes while the node runs. The folder of the first loop file is always "
        "allowed.",
        read_only=True,
    )
    floating_base: bool = parameter(
        False,
        "Whether the root link floats (legged and flying robots) or is fixed to the world.",
        constraints="Changes only while unconfigured.",
    )
    gravity: tuple[float, float, float] = parameter(
        (0.0, 0.0, -9.81),
        "Acceleration of gravity in the world frame [m/s^2]: x, y, z.",
        constraints="Three finite numbers, together no longer than "
        f"{LARGEST_GRAVITY:g}. Changes only while unconfigured.",
    )
    joint_prefix: str = parameter(
        "",
        "Prefix of joint names in messages, which the names of the model lack. It is "
        "removed from received names and added to published names. Names in the loop file may "
        "have it or not.",
    )
    joint_offsets: str = parameter(
        "",
        "Offsets that are added to measured positions, for encoders whose zero differs "
        "from that of the model [rad, m]: set joint_offsets.<joint>. `rbda_ros identify --what "
        "offset` estimates them. They are subtracted from position commands to motors. "
        f"Old form: YAML text, {GAIN_FORM}.",
    )
    velocity_source: str = parameter(
        "message",
        "Joint velocities: 'message' (from joint_states; messages without them are "
        "rejected), or 'differentiate' (filtered differences of the positions).",
        choices=VELOCITY_SOURCES,
    )
    velocity_cutoff: float = parameter(
        50.0,
        "Corner frequency of the filter of 'differentiate' [Hz].",
        within=CUTOFFS,
    )
    acceleration_source: str = parameter(
        "zero",
        "Acceleration for which efforts are computed: 'zero' (keeps the present "
        "velocity), 'reference' (first point of the topic ~/reference), or 'estimate' (filtered "
        "differences of the velocities).",
        choices=ACCELERATION_SOURCES,
    )
    acceleration_cutoff: float = parameter(
        20.0,
        "Corner frequency of the filter of 'estimate' [Hz].",
        within=CUTOFFS,
    )
    external_wrench: bool = parameter(
        False,
        "Whether efforts compensate the wrenches on the topic ~/external_wrench. If "
        "so, there is no effort without a recent wrench.",
    )
    terms: tuple[str, ...] = parameter(
        ("gravity", "coriolis", "inertial"),
        "Parts of the efforts.",
        constraints=f"Some of: {', '.join(TERMS)}; at least one.",
    )
    friction: bool = parameter(
        False,
        "Whether friction is a part of the efforts, as if `terms` contained it.",
    )
    saturate: bool = parameter(
        False,
        "Whether efforts are clipped at the effort limits of the URDF.",
    )
    effort_limits: str = parameter(
        "",
        "Largest efforts of actuated joints, in addition to the limits of the URDF "
        "[N m, N]: set effort_limits.<joint>. Efforts are clipped at these limits; inf: no limit. "
        f"Old form: YAML text, {GAIN_FORM}.",
    )
    effort_rate_limit: float = parameter(
        0.0,
        "Largest rate of change of an effort [N m/s, N/s]. 0: no limit.",
        within=(0.0, 1e9),
    )
    ramp_in: float = parameter(
        0.0,
        "Time in which efforts grow from zero to their full size after the node was "
        "activated, or another description came into use [s]. 0: no ramp.",
        within=(0.0, 60.0),
    )
    on_refusal: str = parameter(
        "silence",
        "After joint states were rejected: 'silence' (nothing is published), or 'zero' "
        "(one message of zero efforts, then nothing until a valid state arrives).",
        choices=ON_REFUSAL,
    )
    on_stale: str = parameter(
        "zero",
        "Last message on each topic of efforts when its inputs stop for longer than "
        "joint_state_timeout: 'nothing'; 'zero'; 'gravity' (efforts that hold the last pose) or "
        "'damping' (efforts against the last velocity, with the gains of damping). 'gravity' and "
        "'damping' are followed by zeros after stale_hold_time. When the node is deactivated or "
        "ends, it publishes zeros, unless this is 'nothing'.",
        choices=ON_STALE,
    )
    stale_hold_time: float = parameter(
        0.5,
        "Time after which zeros follow the efforts of on_stale [s].",
        within=(0.0, 10.0),
    )
    measurement_tolerance: float = parameter(
        0.1,
        "Largest difference between a measured position and the one that follows from "
        "the other measured joints [rad, m]; on the fast side of a gear the tolerance is "
        "multiplied by the ratio. States that differ by more are rejected. 0: no check.",
        within=(0.0, 100.0),
    )
    self_check_period: float = parameter(
        10.0,
        "Period of the comparison of machine code with the virtual machine [s]. If "
        "they differ, the virtual machine takes over. 0: no comparison.",
        within=(0.0, 3600.0),
    )
    command_joints: tuple[str, ...] = parameter(
        (),
        "Actuated joints, with the names of the model, whose efforts are also "
        "published on ~/effort_commands, in this order, for forward_command_controller. []: the "
        "topic is not published.",
        constraints="Each actuated, and named once.",
    )
    command_controller: str = parameter(
        "",
        "The controller that subscribes to ~/effort_commands, e.g. /feedforward. At "
        "activation, its parameter 'joints' is compared with command_joints; diagnostics report a "
        "difference. Empty: no comparison.",
    )
    command_source: str = parameter(
        "feedforward",
        "Content of ~/effort_commands: 'feedforward', or 'joint_commands' (the "
        "converted ~/joint_commands; the node then also publishes ~/position_commands and "
        "~/velocity_commands).",
        choices=COMMAND_SOURCES,
    )
    command_reliability: str = parameter(
        "best_effort",
        "Reliability that the node asks for on ~/reference and ~/joint_commands: "
        "'best_effort' (a lost message is not sent again), or 'reliable' (publishers must be "
        "reliable too). Takes effect when the node is activated.",
        choices=COMMAND_RELIABILITY,
    )
    publish_joint_states: str = parameter(
        "auto",
        "Whether ~/joint_states, with all joints computed from the measured ones, is "
        "published: 'always', 'never', or 'auto' (if the robot has loops).",
        choices=PUBLISH,
    )
    add_feedforward: bool = parameter(
        False,
        "Whether the efforts of ~/motor_commands include the feedforward.",
    )
    stiffness: str = parameter(
        "",
        "Springs between commanded and measured positions of joints, in the efforts of "
        "~/motor_commands [N m/rad, N/m]: set gains.<joint>.stiffness. Old form: YAML text, "
        f"{GAIN_FORM}.",
    )
    damping: str = parameter(
        "",
        "Dampers between commanded and measured velocities of joints, in the efforts "
        "of ~/motor_commands [N m s/rad, N s/m]: set gains.<joint>.damping. "
        f"Old form: YAML text, {GAIN_FORM}.",
    )
    publish_external_effort: bool = parameter(
        False,
        "Whether ~/external_effort is published. It is estimated from measured efforts "
        "in joint_states.",
    )
    observer_gain: float = parameter(
        50.0,
        "Gain of the estimate of ~/external_effort [1/s]: the inverse of its time constant.",
        within=(0.01, 10000.0),
    )
    contact_threshold: float = parameter(
        0.0,
        "External effort on an independent joint above which diagnostics report a "
        "contact [N m, N]. 0: never.",
        within=(0.0, 1e6),
    )
    contact_end_effector: str = parameter(
        "",
        "One of end_effectors, or a link, whose wrench is published on "
        "~/estimated_wrench. Empty: none.",
    )
    payload_window: float = parameter(
        0.0,
        "Duration of the joint states that the node keeps for ~/identify_payload [s]. "
        "0: none, and the service is not available.",
        within=(0.0, 60.0),
    )
    joint_state_timeout: float = parameter(
        0.1,
        "Largest age of inputs [s]. 0: any age, with or without a stamp.",
        within=(0.0, 10.0),
    )
    max_condition_number: float = parameter(
        1e4,
        "Largest condition number of a loop. Above it, the loop is close to a dead "
        "point and there is no effort.",
        within=(1.0, 1e8),
    )
    realtime_priority: int = parameter(
        -1,
        "Real-time priority (SCHED_FIFO of Linux) of the threads that receive and "
        "answer joint_states, if the system permits it. 0: none; -1: 40 if the node has the "
        "process to itself, else 0.",
        within=(-1, 99),
    )
    end_effectors: str = parameter(
        "",
        "Points on links that services know by name: set end_effectors.<name>.link "
        "and end_effectors.<name>.xyz [m, in the frame of the link; the origin unless given]. "
        f"Old form: YAML text, {POINT_FORM}.",
    )
    autostart: bool = parameter(
        True,
        "Whether the node configures and activates itself once it has a "
        "description. Without it, use the lifecycle services.",
        read_only=True,
    )

    @property
    def effort_terms(self) -> tuple[str, ...]:
        """The terms of the efforts: those that are named, and friction if it is asked for."""
        added = self.friction and "friction" not in self.terms
        return (*self.terms, "friction") if added else self.terms


def check_model(settings: Settings, robot: Robot) -> None:
    """Reject settings that do not fit a model."""
    actuated, links = robot.actuated_joint_names, robot.spanning_tree.links
    scalar = robot.coordinates.scalar_positions
    no_motor = f"not actuated in '{robot.name}'"
    _check_joints("command_joints", settings.command_joints, actuated, no_motor)
    points = end_effectors(settings.end_effectors)
    for name, (link, _) in points.items():
        if link not in links:
            raise ParameterError(
                f"end_effectors: '{name}' is on '{link}', which is no link of '{robot.name}'"
            )
    at = settings.contact_end_effector
    if at and at not in points and at not in links:
        raise ParameterError(
            f"contact_end_effector: '{at}' is none of end_effectors, and no link of '{robot.name}'"
        )
    _check_joints("effort_limits", _gains(settings, "effort_limits"), actuated, no_motor)
    for name in ("joint_offsets", "stiffness", "damping"):
        problem = f"no joint of one coordinate in '{robot.name}'"
        _check_joints(name, _gains(settings, name), scalar, problem)


def _check_joints(name: str, joints: Iterable[str], known: Collection[str], problem: str) -> None:
    unknown = [joint for joint in joints if joint not in known]
    if unknown:
        raise ParameterError(
            f"{name}: {', '.join(unknown)} {problem}; use some of {', '.join(known)}"
        )


def with_start_folder(settings: Settings) -> Settings:
    """Settings at start-up: folders resolved, and that of the loop file among them."""
    folders = [Path(folder).resolve() for folder in settings.model_folders]
    if _names_file(settings.loop_constraints):
        folders.append(Path(settings.loop_constraints).resolve().parent)
    return replace(settings, model_folders=tuple(map(str, folders)))


def check_loop_file(settings: Settings) -> None:
    """Reject a loop file outside `model_folders`, before anything looks at it."""
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
    return joint_gains(name, getattr(settings, name), signed=name == "joint_offsets")


def checked_settings(values: Mapping[str, Any]) -> Settings:
    """The settings of values for every parameter.

    Raises:
        ParameterError: one of them cannot be used.
    """
    converted = dict(values)
    for name in ("command_joints", "model_folders"):
        converted[name] = texts(name, values[name])
    for name in ("gravity", "terms"):
        converted[name] = tuple(values[name])
    settings = Settings(**converted)
    gravity = settings.gravity
    if len(gravity) != 3 or not math.hypot(*gravity) <= LARGEST_GRAVITY:
        raise ParameterError(
            f"gravity: {list(gravity)} is not an acceleration; give three finite numbers "
            f"[m/s^2], together no longer than {LARGEST_GRAVITY:g}"
        )
    for each in fields(settings):
        allowed = each.metadata["choices"]
        if allowed and values[each.name] not in allowed:
            raise ParameterError(
                f"{each.name}: '{values[each.name]}' is unknown; use one of {', '.join(allowed)}"
            )
    for each in fields(settings):
        if isinstance(values[each.name], float) and not math.isfinite(values[each.name]):
            raise ParameterError(f"{each.name}: give a finite number")
    end_effectors(settings.end_effectors)
    for name in ("joint_offsets", "stiffness", "damping", "effort_limits"):
        _gains(settings, name)
    _check_list("terms", settings.terms, TERMS)
    _check_list("command_joints", settings.command_joints, settings.command_joints)
    if not settings.terms:
        raise ParameterError(f"terms: none; name some of {', '.join(TERMS)}")
    return settings


def texts(name: str, values: Any) -> tuple[str, ...]:
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


MAPS = {
    "effort_limits": ("effort_limits.{}", math.inf, "Largest effort [N m, N]; inf for none."),
    "joint_offsets": ("joint_offsets.{}", 0.0, "Added to the measured position [rad, m]."),
    "stiffness": ("gains.{}.stiffness", 0.0, "Spring of ~/motor_commands [N m/rad, N/m]."),
    "damping": ("gains.{}.damping", 0.0, "Damper of ~/motor_commands [N m s/rad, N s/m]."),
}
"""Maps by joint: the nested parameter of each entry, its neutral value, and its description.

The name of the map itself is a parameter that holds all of it as YAML text: the old form. It is
declared only where it is given, because tools write ``map`` and ``map.joint`` into one YAML key.
"""
