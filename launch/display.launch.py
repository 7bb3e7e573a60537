"""A robot with its loops closed on the screen: dynamics completes the joint states, and
robot_state_publisher turns them into transforms. Without arguments: the demo leg, moving."""

import shlex
import sys
from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import Command, LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

HERE = Path(__file__).resolve().parent
ROBOTS = HERE.parent / "config" / "robots"

ARGUMENTS = [
    DeclareLaunchArgument(
        "description_file",
        default_value="",
        description="URDF or xacro file of the robot, whose drivers publish joint_states. Empty: "
        "the demo leg, which is simulated.",
    ),
    DeclareLaunchArgument(
        "loop_file", default_value="", description="Loop-constraint file (YAML) of the robot."
    ),
    DeclareLaunchArgument("namespace", default_value="", description="Namespace of the robot."),
    DeclareLaunchArgument(
        "use_sim_time", default_value="false", description="Whether time comes from /clock."
    ),
]


def display(context: LaunchContext) -> list[object]:
    """The nodes that the arguments ask for."""

    def argument(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    demo = not argument("description_file")
    file = str(ROBOTS / "demo_leg.urdf") if demo else argument("description_file")
    loops = str(ROBOTS / "demo_leg_loops.yaml") if demo else argument("loop_file")
    text = Path(file).read_text() if not file.endswith(".xacro") else None
    description = text if text is not None else Command(["xacro ", shlex.quote(file)])
    common = {"namespace": argument("namespace")}
    time = {"use_sim_time": argument("use_sim_time") in ("true", "True", "1")}
    node = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(HERE / "dynamics.launch.py")),
        launch_arguments={
            "description_file": file,
            "loop_file": loops,
            "use_sim_time": argument("use_sim_time"),
            **common,
        }.items(),
    )
    transforms = Node(
        package="robot_state_publisher",
        executable="robot_state_publisher",
        parameters=[{"robot_description": ParameterValue(description, value_type=str)}, time],
        remappings=[("joint_states", "dynamics/joint_states")],
        output="screen",
        **common,
    )
    source = Node(
        executable=sys.executable,
        arguments=["-m", "rbda_ros.demo.joint_state_source"],
        name="demo_source",
        parameters=[time],
        output="screen",
        **common,
    )
    return [node, transforms, *([source] if demo else [])]


def generate_launch_description() -> LaunchDescription:
    """For `ros2 launch rbda_ros display.launch.py`."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=display)])
