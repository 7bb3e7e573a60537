"""Effect of a payload on the foot, without loading the robot again.

    python -m rbda_ros.examples.heavier_foot

The idea: `with_payloads` gives the same robot with a load. Clusters, loops and all that does not
see inertia are shared, so that it is cheap enough to do between two motions.
"""

from __future__ import annotations

from rbda_ros import Payload, load_robot
from rbda_ros.demo.resources import share_file


def main() -> tuple[float, float]:
    """Print the torque at the knee; returns it without and with the load [N m]."""
    leg = load_robot(
        share_file("config/robots/demo_leg.urdf"), share_file("config/robots/demo_leg_loops.yaml")
    )
    loaded = leg.with_payloads({"boot": Payload("foot", 1.5, (0.03, 0.0, -0.05))})
    y = {"hip_abduction": 0.0, "hip_flexion": 0.4, "knee": 0.9, "ankle": -0.2}
    knee = leg.independent_joint_names.index("knee")
    bare, heavy = (float(robot.gravity_force(robot.close(y))[knee]) for robot in (leg, loaded))
    print(f"knee: {bare:.3f} N m, with a boot of 1.5 kg {heavy:.3f} N m")
    return bare, heavy


if __name__ == "__main__":
    main()
