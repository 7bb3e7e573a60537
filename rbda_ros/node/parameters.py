"""The parameters of the node: declared, checked and read in this one place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterException

ACCELERATION_SOURCES = ("zero", "reference")
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
    acceleration_source: str = "zero"
    joint_state_timeout: float = 0.1
    autostart: bool = True


# What the model is made from: these wait for the next configuration.
MODEL_PARAMETERS = frozenset({"robot_description", "loop_constraints", "floating_base", "gravity"})

_DESCRIPTORS = {
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
    "acceleration_source": ParameterDescriptor(
        description="Acceleration that the feedforward effort is for: 'zero' (holds the "
        "present velocity), or 'reference' (first point of the topic ~/reference).",
        additional_constraints=f"One of: {', '.join(ACCELERATION_SOURCES)}.",
    ),
    "joint_state_timeout": ParameterDescriptor(
        description="Oldest input that is answered [s], by its stamp. 0: any age, stamped or not.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=10.0)],
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
        for name, descriptor in _DESCRIPTORS.items():
            default = getattr(defaults, name)
            node.declare_parameter(
                name, list(default) if isinstance(default, tuple) else default, descriptor
            )
    except ParameterException as error:
        raise ParameterError(f"parameter refused: {error}") from error
    return read(node)


def read(node: Any) -> Settings:
    """Read the present values, checked."""
    return _settings({name: node.get_parameter(name).value for name in _DESCRIPTORS})


def change(
    settings: Settings, parameters: Iterable[Any], configured: bool
) -> tuple[Settings, SetParametersResult]:
    """Give the settings after a change, and whether ROS may apply it: all of it or nothing."""
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
        return _settings(values | changed), SetParametersResult(successful=True)
    except ParameterError as error:
        return settings, SetParametersResult(successful=False, reason=str(error))


def _settings(values: Mapping[str, Any]) -> Settings:
    gravity = tuple(values["gravity"])
    if len(gravity) != 3 or not math.hypot(*gravity) <= LARGEST_GRAVITY:
        raise ParameterError(
            f"gravity: {list(gravity)} is not an acceleration; give three finite numbers "
            f"[m/s^2], together no longer than {LARGEST_GRAVITY:g}"
        )
    source = values["acceleration_source"]
    if source not in ACCELERATION_SOURCES:
        raise ParameterError(
            f"acceleration_source: '{source}' is unknown; use one of "
            f"{', '.join(ACCELERATION_SOURCES)}"
        )
    if not math.isfinite(values["joint_state_timeout"]):
        raise ParameterError("joint_state_timeout: give a finite number of seconds")
    return Settings(**{**values, "gravity": gravity})
