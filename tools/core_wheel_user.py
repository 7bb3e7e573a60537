"""Use the core where there is no ROS: load the demo leg, and call every operation.

Run by `test/packaging/test_distributions.py`, in an environment that has the core alone, with the
folder of the robots.
"""

import sys
from pathlib import Path

import numpy as np

import rbda_ros
from rbda_ros.robot.operations import OPERATIONS

try:
    import rclpy
except ImportError:
    rclpy = None
assert rclpy is None, "ROS is here: this environment does not show that the core works without it"

folder = Path(sys.argv[1])
robot = rbda_ros.load_robot(folder / "demo_leg.urdf", folder / "demo_leg_loops.yaml")
q, zero = robot.neutral(), np.zeros(robot.ny)
given = {"Position": q, "Velocity": zero, "Independent": zero, "Spanning": np.zeros(robot.nv)}
given |= {"Force": zero, "Coordinates": q, "Number": 0.1}
for name, operation in OPERATIONS.items():
    arguments = [given[argument.kind] for argument in operation.arguments]
    if operation.of_frame:
        arguments.append(robot.links[-1])
    one = getattr(robot, name)(*arguments)
    many = getattr(robot, name)(np.tile(q, (3, 1)), *arguments[1:])
    assert one is not None and many is not None, name
robot.prepare("inverse_dynamics", batch=True)
efforts, tau = robot.inverse_dynamics_efforts(q, zero, zero)
assert np.isfinite(efforts).all() and np.isfinite(tau).all()
print(f"{robot!r}: {len(OPERATIONS)} operations, from {rbda_ros.__file__}")
