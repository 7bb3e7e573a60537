"""The command line of the node, and a robot's file of any format turned into parameters."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rclpy.parameter import Parameter

from rbda_ros.description import read_description
from rbda_ros.description.source import add_xacro_argument
from rbda_ros.description.writers import write_loop_file, write_urdf


def parameters_of(arguments: Sequence[str]) -> list[Parameter]:
    """Parameters of the node for the arguments that are not ROS's.

    Raises:
        SystemExit: the help was asked for, or an argument is unknown.
        DescriptionError: the robot's file cannot be read.
    """
    given = _parser().parse_args(arguments)
    values: dict[str, Any] = {}
    if given.robot is not None:
        values["robot_description"], values["loop_constraints"] = urdf_and_loops(
            given.robot, given.loops, dict(given.xacro or ())
        )
    elif given.loops is not None:
        values["loop_constraints"] = str(given.loops)
    if given.floating_base:
        values["floating_base"] = True
    return [Parameter(name, value=value) for name, value in values.items()]


def urdf_and_loops(
    robot: Path, loops: Path | None, xacro_arguments: Mapping[str, str] | None = None
) -> tuple[str, str]:
    """Read a robot's file: its URDF text, and the text or path of its loop file.

    A URDF is handed on as it is. Other formats are written as a URDF and a loop file with the same
    dynamics, without meshes: the node draws nothing, and other nodes read the description too.

    Raises:
        DescriptionError: the file cannot be read.
    """
    if robot.suffix == ".urdf" and robot.is_file():
        text = robot.read_text(encoding="utf-8")
        if "xacro" not in text:
            return text, "" if loops is None else str(loops)
    description = read_description(robot, loops, xacro_arguments=xacro_arguments)
    return write_urdf(description), write_loop_file(description)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rbda_ros serve",
        usage="rbda_ros serve [ROBOT] [--loops FILE] [--xacro NAME:=VALUE] [--floating-base]\n"
        "                      [--ros-args ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run the ROS node `dynamics`. It turns joint_states into feedforward efforts\n"
        "on ~/feedforward and answers inverse and forward dynamics as services.",
        epilog="""ROS arguments, after --ros-args:
  -p NAME:=VALUE        set a parameter, e.g. -p saturate:=true
  --params-file FILE    set the parameters of a YAML file such as config/dynamics.yaml
  -r FROM:=TO           rename a topic or service, e.g. -r joint_states:=/arm/joint_states
  -r __ns:=/NAMESPACE   run the node in a namespace
  --log-level LEVEL     debug, info, warn or error

examples:
  rbda_ros serve robot.urdf --loops loops.yaml
  rbda_ros serve robot.xml --ros-args -p acceleration_source:=reference
  rbda_ros serve --ros-args --params-file my_dynamics.yaml

`ros2 run rbda_ros dynamics` is the same program. Ctrl-C ends it. The exit code is 0 after Ctrl-C
or SIGTERM, 1 if the robot or a parameter cannot be used, 2 for a wrong command line.""",
    )
    parser.add_argument(
        "robot",
        metavar="ROBOT",
        nargs="?",
        type=Path,
        help="URDF, URDF+, xacro, MJCF, SDF or USD file; meshes are not needed. Without it "
        "the node takes the parameter robot_description, or waits for the topic robot_description",
    )
    parser.add_argument("--loops", metavar="FILE", type=Path, help="loop-constraint file (YAML)")
    add_xacro_argument(parser)
    parser.add_argument("--floating-base", action="store_true", help="the root link moves freely")
    return parser
