"""The program: `ros2 run rbda_ros dynamics`, or `rbda_ros serve`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import rclpy
from rclpy.utilities import remove_ros_args

from rbda_ros.node.dynamics_node import DynamicsNode
from rbda_ros.node.model import one_line
from rbda_ros.node.parameters import ParameterError
from rbda_ros.node.spin import spin

USAGE = "usage: dynamics [--ros-args ...]"
CANNOT_START, BAD_USAGE = 1, 2  # exit codes


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node until it is told to stop; the exit code says whether it could start."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    others = remove_ros_args(["dynamics", *arguments])[1:]
    if others:
        wants_help = others[0] in ("-h", "--help")
        print(USAGE if wants_help else f"{USAGE}\nunknown: {' '.join(others)}", file=sys.stderr)
        return 0 if wants_help else BAD_USAGE
    try:
        rclpy.init(args=arguments)
    except RuntimeError as error:
        print(f"dynamics: {one_line(error)}", file=sys.stderr)
        return BAD_USAGE
    try:
        node = DynamicsNode()
    except (ParameterError, RuntimeError) as error:
        print(f"dynamics: {one_line(error)}", file=sys.stderr)
        rclpy.try_shutdown()
        return CANNOT_START
    spin(node, done=node.given_up, first=node.start)
    if node.given_up.done():
        print(f"dynamics: {node.given_up.result()}", file=sys.stderr)
        return CANNOT_START
    return 0


if __name__ == "__main__":
    sys.exit(main())
