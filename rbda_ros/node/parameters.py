"""The parameters of the node: declared, and read in this one place; `settings` checks them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

import yaml
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterException

from rbda_ros.control.parameter_maps import joint_gains
from rbda_ros.control.settings import (
    ParameterError,
    Settings,
    check_loop_file,
    check_model,
    checked_settings,
    with_start_folder,
)
from rbda_ros.errors import listed
from rbda_ros.node.parameter_descriptors import DESCRIPTORS
from rbda_ros.robot import Robot

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
            if name in MAPS:
                _declare_text(node, name, default, descriptor)
                continue
            if isinstance(default, tuple):
                default = list(default) or [""]  # an empty list has no type in ROS
            node.declare_parameter(name, default, descriptor)
    except ParameterException as error:
        raise ParameterError(f"parameter refused: {error}") from error
    return with_start_folder(read(node))


def read(node: Any) -> Settings:
    """Read the present values, checked."""
    given = {
        name: node.get_parameter(name).value for name in DESCRIPTORS if node.has_parameter(name)
    }
    return checked_settings(vars(Settings()) | given)


def _declare_text(node: Any, name: str, default: str, descriptor: Any) -> None:
    """Declare a map in its old form, if the node was started with that."""
    if name not in node._parameter_overrides:
        return
    if node.declare_parameter(name, default, descriptor).value:
        node.get_logger().warning(_old_form(name))


def _old_form(name: str) -> str:
    nested = MAPS[name][0].format("<joint>")
    return f"{name} as YAML text is an old form; set {nested} for each joint"


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
    roots = tuple(form.split("{}")[0] for form, _, _ in MAPS.values())
    given = [name for name in node._parameter_overrides if name.startswith(roots)]
    unknown = [name for name in given if name not in entries]
    if unknown:
        raise ParameterError(
            f"{unknown[0]}: no such joint in '{robot.name}', or none that can have it; "
            f"use some of {listed(entries)}"
        )
    values = {}
    for name, (of, joint) in entries.items():
        if not node.has_parameter(name):
            present = joint_gains(of, getattr(settings, of), signed=of == "joint_offsets")
            _, neutral, text = MAPS[of]
            descriptor = ParameterDescriptor(description=text, dynamic_typing=True)
            node.declare_parameter(name, present.get(joint, neutral), descriptor)
            if name in given:
                values[name] = node.get_parameter(name).value
    return with_entries(settings, values, robot)


def undeclare_joints(node: Any, robot: Robot) -> None:
    """Withdraw the nested parameters of joints that a robot does not have."""
    roots = tuple(form.split("{}")[0] for form, _, _ in MAPS.values())
    known = _entries(robot)
    for name in [name for name in node._parameters if name.startswith(roots)]:
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
        entry = dict(joint_gains(of, getattr(settings, of), signed=of == "joint_offsets"))
        entry.pop(joint, None)
        if value != neutral:
            entry[joint] = float(value)
        texts: dict[str, Any] = {of: yaml.safe_dump(entry) if entry else ""}
        settings = replace(settings, **texts)
    return settings


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
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    parameters = list(parameters)
    unknown = [p.name for p in parameters if p.name not in MAPS and not node.has_parameter(p.name)]
    if unknown:
        reason = f"{listed(unknown)}: no such parameter of this node; see `ros2 param list`"
        return settings, SetParametersResult(successful=False, reason=reason)
    entries = {} if robot is None else _entries(robot)
    nested = {p.name: p.value for p in parameters if p.name in entries}
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
        wrong = [name for name in MAPS if not isinstance(changed.get(name, ""), str)]
        if wrong:
            raise ParameterError(f"{wrong[0]}: give YAML text, or set its nested parameters")
        wanted = checked_settings(values | changed)
        if robot is not None:
            wanted = with_entries(wanted, nested, robot)
        if "loop_constraints" in changed:
            check_loop_file(wanted)
        if robot is not None:
            check_model(wanted, robot)
    except ParameterError as error:
        return settings, SetParametersResult(successful=False, reason=str(error))
    for name in MAPS:
        if changed.get(name):
            node.get_logger().warning(_old_form(name), once=True)
    return wanted, SetParametersResult(successful=True)
