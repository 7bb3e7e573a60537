"""Torques along a whole motion in one call.

    python -m rbda_ros.examples.many_states

The idea: every method takes a batch. Loops are closed along the motion, each from near the one
before, and the arithmetic runs in SIMD lanes across the states.
"""

from __future__ import annotations

import numpy as np

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file
from rbda_ros.spatial import Array


def main(count: int = 1000) -> Array:
    """Print the largest efforts of a swing; returns the efforts (count, motors) [N m]."""
    leg = load_robot(
        share_file("config/robots/demo_leg.urdf"), share_file("config/robots/demo_leg_loops.yaml")
    )
    time = np.linspace(0.0, 2.0, count)[:, None]
    middle, swing, pace = np.array([0.0, 0.3, 0.9, 0.0]), np.array([0.2, 0.4, 0.4, 0.2]), 3.0
    y = middle + swing * np.sin(pace * time)
    yd = swing * pace * np.cos(pace * time)
    ydd = -swing * pace**2 * np.sin(pace * time)
    state = leg.state(leg.close(y), yd)
    efforts, _ = leg.inverse_dynamics_efforts(state, yd, ydd)
    for name, largest in zip(leg.actuated_joint_names, np.abs(efforts).max(axis=0), strict=True):
        print(f"{name:>20} up to {largest:.3f} N m")
    return efforts


if __name__ == "__main__":
    main()
