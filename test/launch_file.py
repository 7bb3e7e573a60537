"""Launch a file with arguments, ``name:=value``, until Ctrl-C: what `ros2 launch` does."""

import sys

from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource


def main(file: str, *arguments: str) -> int:
    source = PythonLaunchDescriptionSource(file)
    given = [argument.split(":=", 1) for argument in arguments]
    included = IncludeLaunchDescription(source, launch_arguments=given)
    service = LaunchService()
    service.include_launch_description(LaunchDescription([included]))
    return service.run()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
