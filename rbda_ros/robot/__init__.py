"""Names and numpy arrays around the kernels: what a user of Python works with.

Lives here: `Robot` and `load_robot`, states as callers give them and as they are checked,
coordinates by name, closing of loops by kernels, contacts, payloads.
Comes in: `description`, `cluster_tree`, `algorithms`, `kernels`. No ROS.
Used from outside: what `rbda_ros` itself exports.
"""

from rbda_ros.robot.robot import Robot, load_robot

__all__ = ["Robot", "load_robot"]
