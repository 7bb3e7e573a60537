"""From the motors of a leg to its joints and back: position, velocity and effort.

    python -m rbda_ros.examples.motors_to_joints

The idea: power is the same on both sides. What motors turn, times their efforts, is what joints
turn, times their torques, whatever gears and rods are between.
"""

from __future__ import annotations

import numpy as np

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file


def main() -> tuple[float, float]:
    """Print both sides; returns the power of the motors and of the joints [W]."""
    leg = load_robot(
        share_file("config/robots/demo_leg.urdf"), share_file("config/robots/demo_leg_loops.yaml")
    )
    motors, joints = leg.actuated_joint_names, leg.independent_joint_names
    turned = dict(zip(motors, (0.5, 2.0, 9.0, 6.0), strict=True))
    speeds = dict(zip(motors, (1.0, -3.0, 12.0, 5.0), strict=True))
    efforts = dict(zip(motors, (0.3, 0.2, -0.1, 0.05), strict=True))
    there = leg.convert(turned, speeds, effort=efforts, targets=joints)
    for k, name in enumerate(joints):
        print(
            f"{name:>15} {there.position[k]:+.3f} rad {there.velocity[k]:+.3f} rad/s"
            f" {there.effort[k]:+.3f} N m"
        )
    power = float(np.dot([*speeds.values()], [*efforts.values()]))
    print(f"power of the motors {power:.6f} W, of the joints {there.velocity @ there.effort:.6f} W")
    return power, float(there.velocity @ there.effort)


if __name__ == "__main__":
    main()
