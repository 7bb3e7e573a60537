"""Quantities that kernels and operations take and give: shapes, units and meanings, by name.

A shape is made of numbers and of sizes of the robot: ``nq``, ``nv``, ``ny``, ``na`` (actuated
coordinates), ``bodies``; other letters stand for any number. ``()`` is one number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

Shape = tuple[int | str, ...]


class Quantity(NamedTuple):
    """Meaning of a name."""

    shape: Shape
    unit: str
    meaning: str


QUANTITIES: dict[str, Quantity] = {
    "q": Quantity(("nq",), "rad, m", "spanning position"),
    "guess": Quantity(("nq",), "rad, m", "spanning position to start from"),
    "origin": Quantity(("nq",), "rad, m", "spanning position that a shift leads from"),
    "yd": Quantity(("ny",), "rad/s, m/s", "independent velocity"),
    "ydd": Quantity(("ny",), "rad/s^2, m/s^2", "independent acceleration"),
    "tau": Quantity(("ny",), "N m, N", "generalized force on the independent coordinates"),
    "qd": Quantity(("nv",), "rad/s, m/s", "spanning velocity"),
    "qdd": Quantity(("nv",), "rad/s^2, m/s^2", "spanning acceleration"),
    "spanning_tau": Quantity(("nv",), "N m, N", "force on every joint"),
    "efforts": Quantity(("na",), "N m, N", "efforts on the actuated joints"),
    "limit": Quantity(("na",), "N m, N", "largest efforts on the actuated joints"),
    "offsets": Quantity(("na",), "N m, N", "efforts added on the actuated joints"),
    "mass_matrix": Quantity(
        ("ny", "ny"), "kg m^2, kg m, kg", "mass matrix of the independent coordinates"
    ),
    "mass_matrix_rows": Quantity(
        ("entries",), "kg m^2, kg m, kg", "entries of the mass matrix along its branches"
    ),
    "factor": Quantity(("ny", "ny"), "", "lower triangular L with H = L' L"),
    "dtau_dy": Quantity(("ny", "ny"), "", "derivative of tau with respect to y"),
    "dtau_dyd": Quantity(("ny", "ny"), "", "derivative of tau with respect to yd"),
    "inverse": Quantity(("ny", "ny"), "", "inverse of the mass matrix"),
    "regressor": Quantity(("ny", "p"), "", "tau as a linear map of p parameters"),
    "pose": Quantity((4, 4), "-, m", "pose of a frame in the world"),
    "jacobian": Quantity((6, "ny"), "", "Jacobian of a frame, linear rows first"),
    "poses": Quantity(("links", 4, 4), "-, m", "poses of all links in the world"),
    "frame_velocity": Quantity((6,), "m/s, rad/s", "velocity of a frame, linear first"),
    "frame_acceleration": Quantity((6,), "m/s^2, rad/s^2", "acceleration of a frame"),
    "center_of_mass": Quantity((3,), "m", "centre of mass in the world"),
    "center_of_mass_jacobian": Quantity((3, "ny"), "", "Jacobian of the centre of mass"),
    "center_of_mass_acceleration": Quantity((3,), "m/s^2", "of the centre of mass at ydd = 0"),
    "momentum_matrix": Quantity((6, "ny"), "", "momentum as a linear map of yd, linear first"),
    "centroidal_momentum": Quantity(
        (6,), "kg m/s, kg m^2/s", "linear, and angular about the centre of mass"
    ),
    "centroidal_momentum_rate": Quantity((6,), "N, N m", "rate of the momentum"),
    "kinetic": Quantity((), "J", "kinetic energy"),
    "potential": Quantity((), "J", "potential energy of gravity and springs"),
    "coriolis_matrix": Quantity(("ny", "ny"), "", "C with C yd the Coriolis forces"),
    "dt": Quantity((), "s", "time"),
    "reached": Quantity(("nq",), "rad, m", "spanning position that is reached"),
    "q1": Quantity(("nq",), "rad, m", "another spanning position"),
    "step": Quantity(("nv",), "rad, m", "spanning velocity that leads there in unit time"),
    "frame_jacobians": Quantity(("m", "ny"), "", "Jacobians of several frames"),
    "inverse_inertia": Quantity(("m", "m"), "", "inverse operational-space inertia"),
    "inertia": Quantity(("m", "m"), "", "operational-space inertia"),
    "wrenches": Quantity(("bodies", 6), "N m, N", "moment then force on every body"),
    "wrench": Quantity((6,), "N, N m", "force then moment on a frame, in world axes"),
    "stepping": Quantity((3,), "", "of an integrator: factor of ydd, h, speed of stiction"),
    "loop_residual": Quantity(
        (1,),
        "m/s^2",
        "largest acceleration by which the loops that are closed by their forces miss",
    ),
}
"""Every name that an operation's results may have, and inputs of kernels."""


def shape_of(shape: Shape, size: int, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A shape in numbers, of a quantity with so many entries."""
    known = math.prod(sizes.get(each, 1) if isinstance(each, str) else each for each in shape)
    unknown = [each for each in shape if isinstance(each, str) and each not in sizes]
    left = size // known if known else 0
    each_unknown = math.isqrt(left) if len(unknown) == 2 else left
    return tuple(sizes.get(each, each_unknown) if isinstance(each, str) else each for each in shape)
