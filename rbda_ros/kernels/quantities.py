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
    """What a name stands for."""

    shape: Shape
    unit: str
    meaning: str


QUANTITIES: dict[str, Quantity] = {
    "q": Quantity(("nq",), "rad, m", "spanning position"),
    "guess": Quantity(("nq",), "rad, m", "spanning position to start from"),
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
    "factor": Quantity(("ny", "ny"), "", "lower triangular L with H = L' L"),
    "dtau_dy": Quantity(("ny", "ny"), "", "derivative of tau with respect to y"),
    "dtau_dyd": Quantity(("ny", "ny"), "", "derivative of tau with respect to yd"),
    "inverse": Quantity(("ny", "ny"), "", "inverse of the mass matrix"),
    "regressor": Quantity(("ny", "p"), "", "tau as a linear map of p parameters"),
    "pose": Quantity((4, 4), "-, m", "pose of a frame in the world"),
    "jacobian": Quantity((6, "ny"), "", "Jacobian of a frame, linear rows first"),
    "frame_acceleration": Quantity((6,), "m/s^2, rad/s^2", "acceleration of a frame at ydd = 0"),
    "frame_jacobians": Quantity(("m", "ny"), "", "Jacobians of several frames"),
    "inverse_inertia": Quantity(("m", "m"), "", "inverse operational-space inertia"),
    "inertia": Quantity(("m", "m"), "", "operational-space inertia"),
    "wrenches": Quantity(("bodies", 6), "N m, N", "moment then force on every body"),
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
