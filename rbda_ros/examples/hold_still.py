"""Efforts that hold a leg still, and the efforts for it without its loops.

    python -m rbda_ros.examples.hold_still

The idea: gravity asks for a torque at each joint, and the loops decide which motor gives it. With
a belt over the knee, the ankle's motor pulls at the knee too.
"""

from __future__ import annotations

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file


def main() -> dict[str, float]:
    """Print torques and efforts; returns the efforts by motor [N m]."""
    leg = load_robot(
        share_file("config/robots/demo_leg.urdf"), share_file("config/robots/demo_leg_loops.yaml")
    )
    q = leg.close({"hip_abduction": 0.0, "hip_flexion": 0.4, "knee": 0.9, "ankle": -0.2})
    tau = leg.gravity_force(q)
    efforts = dict(zip(leg.actuated_joint_names, leg.actuator_efforts(q, tau), strict=True))
    for joint, torque in zip(leg.independent_joint_names, tau, strict=True):
        print(f"{joint:>20} {torque:+8.4f} N m")
    for motor, effort in efforts.items():
        print(f"{motor:>20} {effort:+8.4f} N m, at the motor")
    return {motor: float(effort) for motor, effort in efforts.items()}


if __name__ == "__main__":
    main()
