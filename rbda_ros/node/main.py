"""The program: `ros2 run rbda_ros dynamics`, or `rbda_ros serve`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import rclpy
from rclpy.utilities import remove_ros_args

from rbda_ros.node.dynamics_node import DynamicsNode
from rbda_ros.node.model_builder import one_line
from rbda_ros.node.parameters import ParameterError
from rbda_ros.node.spin import init, spin

USAGE = "usage: dynamics [--ros-args ...]"
CANNOT_START, BAD_USAGE = 1, 2  # exit codes


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node until it is told to stop; the exit code says whether it could start."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        others = remove_ros_args(["dynamics", *arguments])[1:]
        if others:
            return _usage(others)
        signals = init(arguments)
    except RuntimeError as error:
        print(f"dynamics: {one_line(error)}", file=sys.stderr)
        return BAD_USAGE
    try:
        node = DynamicsNode()
    except (ParameterError, RuntimeError) as error:
        print(f"dynamics: {one_line(error)}", file=sys.stderr)
        rclpy.try_shutdown()
        return CANNOT_START
    spin(node, node.given_up, signals, first=node.start)
    if why := node.given_up.result():
        print(f"dynamics: {why}", file=sys.stderr)
        return CANNOT_START
    return 0


def _usage(others: Sequence[str]) -> int:
    if others[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    print(f"{USAGE}\ndynamics: unknown: {' '.join(others)}", file=sys.stderr)
    return BAD_USAGE


if __name__ == "__main__":
    sys.exit(main())
