"""The node on the demo leg, which is simulated and swings its joints."""

import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

HERE = Path(__file__).resolve().parent
ROBOTS = HERE.parent / "config" / "robots"

# Of both the node and the source of joint states.
ARGUMENTS = [
    DeclareLaunchArgument("namespace", default_value="", description="Namespace of the robot."),
    DeclareLaunchArgument(
        "use_sim_time", default_value="false", description="Whether time comes from /clock."
    ),
]


def generate_launch_description() -> LaunchDescription:
    """For `ros2 launch rbda_ros demo.launch.py`."""
    node = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(HERE / "dynamics.launch.py")),
        launch_arguments={
            "description_file": str(ROBOTS / "demo_leg.urdf"),
            "loop_file": str(ROBOTS / "demo_leg_loops.yaml"),
        }.items(),
    )
    sim_time = ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)
    source = Node(
        executable=sys.executable,
        arguments=["-m", "rbda_ros.demo.joint_state_source"],
        name="demo_source",
        namespace=LaunchConfiguration("namespace"),
        parameters=[{"use_sim_time": sim_time}],
        output="screen",
    )
    return LaunchDescription([*ARGUMENTS, node, source])
