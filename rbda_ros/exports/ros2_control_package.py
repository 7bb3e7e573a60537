"""A robot as a ros2_control package: exported C, and plugins around it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import yaml

from rbda_ros.errors import InputError
from rbda_ros.exports.c_library import ExportReport, export_robot
from rbda_ros.exports.operation_code import c_identifier
from rbda_ros.robot.robot import Robot

FUNCTIONS = ("feedforward", "convert", "motor_command", "gate")
"""Of the exported C, all that the plugins call."""
_TEMPLATES = Path(__file__).parent / "ros2_control_templates"
_PACKAGE_NAME = re.compile(r"[a-z][a-z0-9_]*[a-z0-9]")


@dataclass(frozen=True)
class PackageReport:
    """The package that was written.

    Attributes:
        folder: of the package.
        files: every file.
        name: what C names begin with; the package is called ``NAME_control``.
        library: of the exported C.
    """

    folder: Path
    files: tuple[Path, ...]
    name: str
    library: ExportReport


def export_ros2_control(
    robot: Robot,
    directory: str | Path,
    *,
    name: str | None = None,
    joints: tuple[str, ...] | None = None,
) -> PackageReport:
    """Write a colcon package with a transmission, a chainable controller and a solver.

    Args:
        robot: the model; its base is fixed and its motors determine it.
        directory: of the package; it is made.
        name: the package is ``NAME_control``; by default from the directory's name.
        joints: that are commanded; by default joints without motors that determine the robot.

    Raises:
        InputError: a floating base, motors that do not determine the robot, joints that are
            unknown, or a name that is none of a package.
    """
    folder = Path(directory)
    name = _name(folder) if name is None else name
    if not _PACKAGE_NAME.fullmatch(name) or "__" in name:
        raise InputError(
            f"{name!r} is no name of a ROS package; use small letters, digits and single _"
        )
    if robot.coordinates.base_nq:
        raise InputError(
            f"{robot.name} has a floating base, which ros2_control has no interfaces for; export"
            " its loops without the base, or use export-c"
        )
    motors = tuple(robot.actuated_joint_names)
    library = export_robot(
        robot, folder / "c", name=name, functions=FUNCTIONS, measured=motors, joints=joints
    )
    values = _substitutions(robot, name, library)
    files = list(library.files)
    for template in sorted(path for path in _TEMPLATES.rglob("*") if path.is_file()):
        path = folder / template.relative_to(_TEMPLATES)
        files.append(_write(path, _filled(template.read_text(encoding="utf-8"), name, values)))
    files.append(_write(folder / "config" / "controllers.yaml", values["CONTROLLERS_YAML"]))
    return PackageReport(folder, tuple(files), name, library)


def _name(folder: Path) -> str:
    """`ankle` for the folder `ankle_control`."""
    return c_identifier(folder.resolve().name).lower().removesuffix("_control")


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _filled(text: str, name: str, values: dict[str, str]) -> str:
    """A template with this robot's names and numbers."""
    for word, value in values.items():
        text = re.sub(rf"\b{word}\b", lambda _, value=value: value, text)  # type: ignore[misc]
    return text.replace("MYROBOT", name.upper()).replace("myrobot", name)


def _substitutions(robot: Robot, name: str, library: ExportReport) -> dict[str, str]:
    motors, joints = library.motors, library.joints
    return {
        "INDEPENDENT_PLACES": ", ".join(map(str, _independent_places(robot, library))),
        "MOTOR_NAMES": ", ".join(f'"{motor}"' for motor in motors),
        "MOTOR_COUNT": str(len(motors)),
        "JOINT_COUNT": str(len(joints)),
        "MOTOR_ZEROS": ", ".join(["0.0"] * len(motors)),
        "JOINT_ZEROS": ", ".join(["0.0"] * len(joints)),
        "ROBOT_TITLE": f"`{robot.name}`",
        "MOTOR_LIST": ", ".join(f"`{motor}`" for motor in motors),
        "JOINT_LIST": ", ".join(f"`{joint}`" for joint in joints),
        "CONTROLLERS_YAML": _controllers(name, library),
        "HARDWARE_XML": _hardware(name, robot, motors),
        "TRANSMISSION_XML": _transmission(name, library),
    }


def _independent_places(robot: Robot, library: ExportReport) -> list[int]:
    """Of each independent joint: its place among the joints, or -1 - that among the motors."""
    places = []
    for joint in robot.independent_joint_names:
        if joint in library.joints:
            places.append(library.joints.index(joint))
        elif joint in library.motors:
            places.append(-1 - library.motors.index(joint))
        else:
            raise InputError(
                f"independent joint {joint} of {robot.name} is neither a motor nor commanded; name"
                " it in joints, or choose other independent joints"
            )
    return places


def _controllers(name: str, library: ExportReport) -> str:
    """Parameters of the controller manager, of the controller and of one above it."""
    joints = [f"{name}_controller/{joint}" for joint in library.joints]
    document: dict[str, Any] = {
        "controller_manager": {
            "ros__parameters": {
                "update_rate": 1000,
                f"{name}_controller": {"type": f"{name}_control/Controller"},
                "joint_trajectory_controller": {
                    "type": "joint_trajectory_controller/JointTrajectoryController"
                },
            }
        },
        f"{name}_controller": {
            "ros__parameters": {
                "motors": list(library.motors),
                "command_interfaces": ["effort"],
                "stiffness": [0.0] * len(library.joints),
                "damping": [0.0] * len(library.joints),
                "ramp_time": 1.0,
                "reference_timeout": 0.01,
            }
        },
        "joint_trajectory_controller": {
            "ros__parameters": {
                "joints": joints,
                "command_interfaces": ["position", "velocity", "acceleration"],
                "state_interfaces": ["position", "velocity"],
            }
        },
    }
    return yaml.safe_dump(document, sort_keys=False)


def _hardware(name: str, robot: Robot, motors: tuple[str, ...]) -> str:
    """A tag with mock hardware; rotors that are no joints of the URDF are gpio."""
    lines = [
        f'<ros2_control name="{name}" type="system">',
        "  <hardware><plugin>mock_components/GenericSystem</plugin></hardware>",
    ]
    for motor in motors:
        kind = "joint" if _in_urdf(robot, motor) else "gpio"
        lines += [
            f"  <{kind} name={quoteattr(motor)}>",
            '    <command_interface name="effort"/>',
            '    <state_interface name="position"><param name="initial_value">0.0</param>'
            "</state_interface>",
            '    <state_interface name="velocity"><param name="initial_value">0.0</param>'
            "</state_interface>",
            f"  </{kind}>",
        ]
    return "\n".join([*lines, "</ros2_control>", ""])


def _in_urdf(robot: Robot, joint: str) -> bool:
    """False for rotors of the loop file: only these have a link of their joint's name."""
    child = next(each.child for each in robot.description.joints if each.name == joint)
    return not (joint.endswith("_rotor") and child == f"{joint}_link")


def _transmission(name: str, library: ExportReport) -> str:
    lines = [
        f'<transmission name="{name}_linkage">',
        f"  <plugin>{name}_control/Transmission</plugin>",
        *(f"  <actuator name={quoteattr(m)} role={quoteattr(m)}/>" for m in library.motors),
        *(f"  <joint name={quoteattr(j)} role={quoteattr(j)}/>" for j in library.joints),
        "</transmission>",
        "",
    ]
    return "\n".join(lines)
