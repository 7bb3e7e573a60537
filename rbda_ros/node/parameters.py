"""The parameters of the node: declared, and read in this one place; `settings` checks them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.exceptions import ParameterException

from rbda_ros.control.settings import (
    ParameterError,
    Settings,
    check_loop_file,
    check_model,
    checked_settings,
    with_start_folder,
)
from rbda_ros.node.parameter_descriptors import DESCRIPTORS
from rbda_ros.robot import Robot

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
    return with_start_folder(read(node))


def read(node: Any) -> Settings:
    """Read the present values, checked."""
    return checked_settings({name: node.get_parameter(name).value for name in DESCRIPTORS})


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
        wanted = checked_settings(values | changed)
        if "loop_constraints" in changed:
            check_loop_file(wanted)
        if robot is not None:
            check_model(wanted, robot)
    except ParameterError as error:
        return settings, SetParametersResult(successful=False, reason=str(error))
    return wanted, SetParametersResult(successful=True)
