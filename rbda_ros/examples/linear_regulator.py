"""A linear-quadratic regulator from exact derivatives through the loops.

    python -m rbda_ros.examples.linear_regulator

The idea: `forward_dynamics_derivatives` is the linear model, as control theory wants it: no finite
differences, and the loops are in it.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_continuous_are

from rbda_ros import Robot, load_robot
from rbda_ros.demo.resources import share_file
from rbda_ros.spatial import Array


def gains(robot: Robot, y: Array, effort_cost: float = 1.0) -> Array:
    """K (ny, 2 ny) with ``tau = tau_0 - K (y - y_0, yd)``, optimal near a pose y_0 (ny,)."""
    n, hold = robot.ny, robot.gravity_force(y)
    d = robot.forward_dynamics_derivatives(y, np.zeros(n), hold)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [d.position, d.velocity]])
    B = np.vstack([np.zeros((n, n)), robot.mass_matrix_inverse(y)])
    Q, R = np.diag([100.0] * n + [1.0] * n), effort_cost * np.eye(n)
    P = solve_continuous_are(A, B, Q, R)
    return np.asarray(np.linalg.solve(R, B.T @ P), float)


def main(time: float = 2.0, step: float = 5e-4) -> Array:
    """Move the demo leg back to a pose; returns the remaining error (ny,) [rad]."""
    leg = load_robot(
        share_file("config/robots/demo_leg.urdf"), share_file("config/robots/demo_leg_loops.yaml")
    )
    goal = np.array([0.0, 0.3, 0.9, 0.0])
    K, hold = gains(leg, goal), leg.gravity_force(goal)
    y, yd = goal + np.array([0.05, -0.1, 0.1, 0.05]), np.zeros(4)
    q = leg.close(y)
    for _ in range(round(time / step)):
        tau = hold - K @ np.concatenate([y - goal, yd])
        yd = yd + step * leg.forward_dynamics(q, yd, tau)
        y = y + step * yd
        q = leg.close(y, q)
    for name, error in zip(leg.independent_joint_names, y - goal, strict=True):
        print(f"{name:>14} {error:+.6f} rad off after {time:g} s")
    return y - goal


if __name__ == "__main__":
    main()
