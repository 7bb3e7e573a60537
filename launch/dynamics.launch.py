"""The node `dynamics` beside a robot: brought to active, once it has a description."""

import shlex
from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import Command, LaunchConfiguration
from launch_ros.actions import LifecycleNode
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue

ARGUMENTS = [
    DeclareLaunchArgument(
        "description_file",
        default_value="",
        description="URDF, URDF+ or xacro file. Empty: the description comes by the topic "
        "robot_description, or with params_file.",
    ),
    DeclareLaunchArgument(
        "loop_file",
        default_value="",
        description="Loop-constraint file (YAML). Empty: only what the description says.",
    ),
    DeclareLaunchArgument(
        "params_file",
        default_value="",
        description="Parameter file, like config/dynamics.yaml. Empty: the defaults.",
    ),
    DeclareLaunchArgument("namespace", default_value="", description="Namespace of the node."),
    DeclareLaunchArgument(
        "use_sim_time",
        default_value="",
        description="Whether time comes from /clock. Empty: as params_file says, or not.",
    ),
    DeclareLaunchArgument(
        "autostart",
        default_value="",
        description="Whether the node goes to active by itself; else use the lifecycle services. "
        "Empty: as params_file says, or it does.",
    ),
]


def dynamics_node(context: LaunchContext) -> list[LifecycleNode]:
    """The node, with the parameters that the arguments ask for; arguments win over the file."""

    def argument(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    parameters = []
    if file := argument("params_file"):
        # Looking for substitutions spoils texts with quotes, such as a description.
        substitutions = "$(" in Path(file).read_text()
        parameters.append(ParameterFile(file, allow_substs=substitutions))
    if file := argument("description_file"):
        text = (
            Command(["xacro ", shlex.quote(file)])
            if file.endswith(".xacro")
            else Path(file).read_text()
        )
        # As text: launch would otherwise try to read the XML as YAML.
        parameters.append({"robot_description": ParameterValue(text, value_type=str)})
    if file := argument("loop_file"):
        path = str(Path(file).resolve())
        parameters.append({"loop_constraints": ParameterValue(path, value_type=str)})
    for name in ("use_sim_time", "autostart"):
        if argument(name):
            value = ParameterValue(LaunchConfiguration(name), value_type=bool)
            parameters.append({name: value})
    return [
        LifecycleNode(
            package="rbda_ros",
            executable="dynamics",
            name="dynamics",
            namespace=argument("namespace"),
            parameters=parameters,
            output="screen",
        )
    ]


def generate_launch_description() -> LaunchDescription:
    """For `ros2 launch rbda_ros dynamics.launch.py`."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=dynamics_node)])
