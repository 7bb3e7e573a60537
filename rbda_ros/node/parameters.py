"""The parameters of the node: declared, and read in this one place; `settings` checks them."""

from __future__ import annotations

import array
import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields, replace
from typing import Any

import yaml
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import ParameterException
from rclpy.parameter import Parameter

from rbda_ros.control.settings import (
    MAPS,
    ParameterError,
    Settings,
    check_loop_file,
    check_model,
    checked_settings,
    end_effectors,
    joint_gains,
    with_start_folder,
)
from rbda_ros.errors import listed
from rbda_ros.robot import Robot

PREFIXES = tuple(form.split("{}")[0] for form, _, _ in MAPS.values())
"""Of the nested parameters of all maps."""
POINT = re.compile(r"end_effectors\.(?P<name>.+)\.(?P<field>link|xyz)")
"""Nested parameters of ``end_effectors``: points may have any names."""
SPELLING = 0.8
"""Similarity from which on an unknown parameter counts as misspelled, from 0 to 1."""
POINT_TEXT = "Link of an end effector, or its point in the frame of that link [m]."


def _descriptor(of: Field) -> ParameterDescriptor:
    """The descriptor that ROS tools show for a parameter."""
    about = of.metadata
    descriptor = ParameterDescriptor(
        description=about["description"],
        additional_constraints=about["constraints"],
        read_only=about["read_only"],
    )
    if about["within"] is not None:
        low, high = about["within"]
        if isinstance(of.default, int):
            descriptor.integer_range = [IntegerRange(from_value=low, to_value=high)]
        else:
            descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return descriptor


DESCRIPTORS = {field.name: _descriptor(field) for field in fields(Settings)}
# These change at the next configuration.
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
            if name in MAPS or name == "end_effectors":
                _declare_text(node, name, default, descriptor)
            elif default == ():
                declare_list(node, name, descriptor)
            else:
                default = list(default) if isinstance(default, tuple) else default
                node.declare_parameter(name, default, descriptor)
        points = {n: p.value for n, p in node._parameter_overrides.items() if POINT.fullmatch(n)}
        for name in points:
            node.declare_parameter(name, points[name], ParameterDescriptor(description=POINT_TEXT))
    except ParameterException as error:
        raise ParameterError(f"parameter rejected: {error}") from error
    _warn_of_misspelled(node)
    return with_points(with_start_folder(read(node)), points)


def _warn_of_misspelled(node: Any) -> None:
    """Warn of given names that are nearly those of parameters; ROS ignores unknown ones.

    A parameter file may be for several nodes, so names that are like none of ours are not reported.
    """
    roots = {prefix.removesuffix(".") for prefix in PREFIXES}
    for name in node._parameter_overrides:
        root, dot, rest = name.partition(".")
        known = root in roots if dot else node.has_parameter(name)
        if known or POINT.fullmatch(name):
            continue
        alike = difflib.get_close_matches(root, {*DESCRIPTORS, *roots}, 1, SPELLING)
        if alike:
            node.get_logger().warning(
                f"parameter {name} is unknown and ignored; did you mean {alike[0]}{dot}{rest}?"
            )


def read(node: Any) -> Settings:
    """Read the present values, checked."""
    given = {
        name: node.get_parameter(name).value for name in DESCRIPTORS if node.has_parameter(name)
    }
    return checked_settings(vars(Settings()) | given)


def declare_list(node: Any, name: str, descriptor: ParameterDescriptor) -> None:
    """Declare a list of texts that may be empty.

    ROS tools give an empty list the type of any array, or none; so its type may change, and
    `checked_settings` looks at the entries.
    """
    descriptor.dynamic_typing = True
    if not node.declare_parameter(name, [], descriptor).value:
        node._parameters[name] = Parameter(name, Parameter.Type.STRING_ARRAY, [])


def _declare_text(node: Any, name: str, default: str, descriptor: Any) -> None:
    """Declare a map in its old form, if the node was started with that."""
    if name not in node._parameter_overrides:
        return
    if node.declare_parameter(name, default, descriptor).value:
        node.get_logger().warning(_old_form(name))


def _old_form(name: str) -> str:
    if name in MAPS:
        nested = f"{MAPS[name][0].format('<joint>')} for each joint"
    else:
        nested = "end_effectors.<name>.link and end_effectors.<name>.xyz"
    return f"{name} as YAML text is an old form; set {nested}"


def _entries(robot: Robot) -> dict[str, tuple[str, str]]:
    """The nested parameters of a robot: the map and the joint of each."""
    found = {}
    for name, (form, _, _) in MAPS.items():
        limited = name == "effort_limits"
        joints = robot.actuated_joint_names if limited else robot.coordinates.scalar_positions
        found.update({form.format(joint): (name, joint) for joint in joints})
    return found


def declare_joints(node: Any, robot: Robot, settings: Settings) -> Settings:
    """Declare the nested parameters of a robot's joints; the settings with what was given for them.

    Raises:
        ParameterError: one of them cannot be used, or names a joint that the robot lacks.
    """
    entries = _entries(robot)
    given = [name for name in node._parameter_overrides if name.startswith(PREFIXES)]
    unknown = [name for name in given if name not in entries]
    if unknown:
        raise ParameterError(
            f"{unknown[0]}: no such joint in '{robot.name}', or none that can have it; "
            f"use some of {listed(entries)}"
        )
    values = {}
    for name, (of, joint) in entries.items():
        if not node.has_parameter(name):
            present = _map(settings, of)
            _, neutral, text = MAPS[of]
            descriptor = ParameterDescriptor(description=text, dynamic_typing=True)
            node.declare_parameter(name, present.get(joint, neutral), descriptor)
            if name in given:
                values[name] = node.get_parameter(name).value
    return with_entries(settings, values, robot)


def _map(settings: Settings, name: str) -> dict[str, float]:
    return joint_gains(name, getattr(settings, name), signed=name == "joint_offsets")


def undeclare_joints(node: Any, robot: Robot) -> None:
    """Withdraw the nested parameters of joints that a robot does not have."""
    known = _entries(robot)
    for name in [name for name in node._parameters if name.startswith(PREFIXES)]:
        if name not in known:
            node.undeclare_parameter(name)


def with_entries(settings: Settings, values: Mapping[str, Any], robot: Robot) -> Settings:
    """Settings in which entries of maps, by the names of nested parameters, have other values."""
    entries = _entries(robot)
    for name, value in values.items():
        of, joint = entries[name]
        neutral = MAPS[of][1]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or math.isnan(value) or (value < 0.0 and of != "joint_offsets"):
            more = "" if of == "joint_offsets" else " of zero or more"
            raise ParameterError(f"{name}: '{value}' cannot be used; give a number{more}")
        entry = dict(_map(settings, of))
        entry.pop(joint, None)
        if value != neutral:
            entry[joint] = float(value)
        texts: dict[str, Any] = {of: yaml.safe_dump(entry) if entry else ""}
        settings = replace(settings, **texts)
    return settings


def with_points(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Settings in which points have other values, by the names of nested parameters.

    A point whose link is set to "" is removed.
    """
    if not values:
        return settings
    points: dict[str, dict[str, Any]] = {
        name: {"link": link, "xyz": xyz}
        for name, (link, xyz) in end_effectors(settings.end_effectors).items()
    }
    for parameter, value in values.items():
        match = POINT.fullmatch(parameter)
        assert match is not None
        listed_value = list(value) if isinstance(value, list | tuple | array.array) else value
        points.setdefault(match["name"], {})[match["field"]] = listed_value
    kept = {name: entry for name, entry in points.items() if entry.get("link") != ""}
    return checked_settings(
        vars(settings) | {"end_effectors": yaml.safe_dump(kept) if kept else ""}
    )


def change(
    node: Any,
    settings: Settings,
    parameters: Iterable[Any],
    robot: Robot | None,
    configured: bool,
) -> tuple[Settings, SetParametersResult]:
    """Give the settings after a change, and whether ROS may apply it: all of it or nothing.

    Args:
        node: whose parameters they are.
        settings: the present ones.
        parameters: those that change.
        robot: the model in use; None while the node is unconfigured.
        configured: whether the node is configured, or being so.
    """
    parameters = list(parameters)
    texts = {*MAPS, "end_effectors"}
    unknown = [
        p.name
        for p in parameters
        if p.name not in texts and not POINT.fullmatch(p.name) and not node.has_parameter(p.name)
    ]
    if unknown:
        reason = f"{listed(unknown)}: no such parameter of this node; see `ros2 param list`"
        return settings, SetParametersResult(successful=False, reason=reason)
    entries = {} if robot is None else _entries(robot)
    nested = {p.name: p.value for p in parameters if p.name in entries}
    changed = {p.name: p.value for p in parameters if p.name in DESCRIPTORS}
    late = sorted(MODEL_PARAMETERS & changed.keys())
    if configured and late:
        reason = (
            f"{', '.join(late)}: changes only while unconfigured; deactivate and clean up first"
        )
        return settings, SetParametersResult(successful=False, reason=reason)
    try:
        wrong = [name for name in texts if not isinstance(changed.get(name, ""), str)]
        if wrong:
            raise ParameterError(
                f"{wrong[0]} is no text; give YAML text, or set its nested parameters"
            )
        wanted = checked_settings(vars(settings) | changed)
        points = {p.name: p.value for p in parameters if POINT.fullmatch(p.name)}
        wanted = with_points(wanted, points)
        if robot is not None:
            wanted = with_entries(wanted, nested, robot)
        if "loop_constraints" in changed:
            check_loop_file(wanted)
        if robot is not None:
            check_model(wanted, robot)
    except ParameterError as error:
        return settings, SetParametersResult(successful=False, reason=str(error))
    for name in texts:
        if changed.get(name):
            node.get_logger().warning(_old_form(name), once=True)
    return wanted, SetParametersResult(successful=True)
