"""The command line: ``rbda_ros serve``, ``demo``, ``inspect``, ``export-c``, ``actuation``.

Lives here: a module per command, and what commands draw and print.
Comes in: everything; rclpy only once a command needs it.
Used from outside: `main`, the entry point.
"""

from rbda_ros.cli.commands import main

__all__ = ["main"]
