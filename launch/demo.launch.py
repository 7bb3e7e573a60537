"""The node on the demo leg, whose joints a stand-in for a driver moves."""

import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import ExecuteProcess, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

HERE = Path(__file__).resolve().parent
ROBOTS = HERE.parent / "config" / "robots"


def generate_launch_description() -> LaunchDescription:
    """For `ros2 launch rbda_ros demo.launch.py`."""
    node = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(HERE / "dynamics.launch.py")),
        launch_arguments={
            "description_file": str(ROBOTS / "demo_leg.urdf"),
            "loop_file": str(ROBOTS / "demo_leg_loops.yaml"),
        }.items(),
    )
    source = ExecuteProcess(
        cmd=[sys.executable, "-m", "rbda_ros.node.demo_source"], name="demo_source", output="screen"
    )
    return LaunchDescription([node, source])
