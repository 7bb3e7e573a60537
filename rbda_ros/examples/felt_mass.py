"""Mass that a push at the foot of a leg feels, with its rotors and without.

    python -m rbda_ros.examples.felt_mass

The idea: a push feels the operational-space inertia, and rotors behind gears count in it with the
square of their ratios. A robot that looks light may be heavy to run into.
"""

from __future__ import annotations

import numpy as np

from rbda_ros import Robot, load_robot
from rbda_ros.demo.resources import share_file

POSE = {"hip_abduction": 0.0, "hip_flexion": 0.4, "knee": 0.9, "ankle": -0.2}
DIRECTIONS = {"forward": (1.0, 0.0, 0.0), "sideways": (0.0, 1.0, 0.0), "upward": (0.0, 0.0, 1.0)}


def felt(robot: Robot, position: dict[str, float]) -> dict[str, float]:
    """Mass that a push at the foot feels, by direction [kg]."""
    q = robot.close({name: position[name] for name in robot.independent_joint_names})
    mobility = robot.operational_space_inertia(q, "foot", linear_only=True).inverse_inertia
    return {name: 1.0 / float(np.dot(way, mobility @ way)) for name, way in DIRECTIONS.items()}


def main() -> tuple[dict[str, float], dict[str, float]]:
    """Print both; returns the masses felt of the whole leg, and of its links as a tree [kg]."""
    urdf, loops = "config/robots/demo_leg.urdf", "config/robots/demo_leg_loops.yaml"
    leg, tree = load_robot(share_file(urdf), share_file(loops)), load_robot(share_file(urdf))
    position = dict(zip(leg.joint_names, leg.close(POSE), strict=True))
    whole, bare = felt(leg, position), felt(tree, position)
    for name in DIRECTIONS:
        print(f"{name:>10}: {whole[name]:6.2f} kg; the links as a tree {bare[name]:6.2f} kg")
    return whole, bare


if __name__ == "__main__":
    main()
