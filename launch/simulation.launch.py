"""A simulated robot that the node drives along a sine. Without arguments: the demo leg."""

import sys
from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

HERE = Path(__file__).resolve().parent
CONFIG = HERE.parent / "config"

ARGUMENTS = [
    DeclareLaunchArgument(
        "description_file",
        default_value="",
        description="URDF, URDF+ or xacro file of the robot. Empty: the demo leg.",
    ),
    DeclareLaunchArgument(
        "loop_file", default_value="", description="Loop-constraint file (YAML) of the robot."
    ),
    DeclareLaunchArgument("namespace", default_value="", description="Namespace of the robot."),
    DeclareLaunchArgument(
        "trajectory", default_value="true", description="Whether the robot follows a sine."
    ),
]


def simulation(context: LaunchContext) -> list[object]:
    """The simulated robot, the node, and what gives it references."""

    def argument(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    demo = not argument("description_file")
    file = str(CONFIG / "robots" / "demo_leg.urdf") if demo else argument("description_file")
    loops = str(CONFIG / "robots" / "demo_leg_loops.yaml") if demo else argument("loop_file")
    files = [file, *(["--loops", loops] if loops else [])]
    namespace = argument("namespace")
    node = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(HERE / "dynamics.launch.py")),
        launch_arguments={
            "description_file": file,
            "loop_file": loops,
            "params_file": str(CONFIG / "tracking.yaml"),
            "namespace": namespace,
        }.items(),
    )
    robot = Node(
        executable=sys.executable,
        arguments=["-m", "rbda_ros.cli", "simulate", *files],
        name="simulated_robot",
        namespace=namespace,
        remappings=[("simulated_robot/motor_commands", "dynamics/feedforward")],
        output="screen",
    )
    trajectory = Node(
        executable=sys.executable,
        arguments=["-m", "rbda_ros.examples.track_trajectory", *files],
        name="track_trajectory",
        namespace=namespace,
        output="screen",
    )
    wanted = argument("trajectory") in ("true", "True", "1")
    return [node, robot, *([trajectory] if wanted else [])]


def generate_launch_description() -> LaunchDescription:
    """For `ros2 launch rbda_ros simulation.launch.py`."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=simulation)])
