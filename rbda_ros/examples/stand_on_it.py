"""Ground forces on a leg that stands with its motors off.

    python -m rbda_ros.examples.stand_on_it

The idea: contacts are found with the motion, in one call. Two points of a sole say some things
twice, and that is no special case.
"""

from __future__ import annotations

import numpy as np

from rbda_ros import Contact, load_robot
from rbda_ros.demo.resources import share_file

SOLE = [Contact("foot", (0.0, 0.0, -0.05)), Contact("foot", (0.1, 0.0, -0.05))]


def main() -> tuple[float, float]:
    """Print forces; returns how fast the sole would fall and how fast it does [m/s^2]."""
    leg = load_robot(
        share_file("config/robots/demo_leg.urdf"), share_file("config/robots/demo_leg_loops.yaml")
    )
    q = leg.close({"hip_abduction": 0.0, "hip_flexion": 0.4, "knee": 0.9, "ankle": -0.2})
    rest = np.zeros(leg.ny)
    falls = leg.forward_dynamics(q, rest, rest)
    stands = leg.constrained_forward_dynamics(q, rest, rest, SOLE)
    for contact, force in zip(SOLE, stands.forces, strict=True):
        x, y, z = force[:3]
        print(f"at {contact.xyz} of the {contact.link}: {x:+7.2f} {y:+7.2f} {z:+7.2f} N")
    J = leg.jacobian(q, (SOLE[0].link, tuple(SOLE[0].xyz)))[:3]
    accelerations = [float(np.linalg.norm(J @ ydd)) for ydd in (falls, stands.ydd)]
    print(f"without the ground it falls with {accelerations[0]:.2f} m/s^2, on it with", end=" ")
    print(f"{accelerations[1]:.1e}, after {stands.iterations} iterations")
    return accelerations[0], accelerations[1]


if __name__ == "__main__":
    main()
