"""Feedforward: from what is measured at some joints to the efforts of the actuators, in one go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import casadi as ca

from rbda_ros.algorithms.closure import followed
from rbda_ros.algorithms.friction import friction_force
from rbda_ros.algorithms.loop_motion import (
    actuator_efforts,
    independent_acceleration,
    independent_velocity,
    loop_health,
)
from rbda_ros.algorithms.rnea import inverse_dynamics
from rbda_ros.cluster_tree.closing.tolerances import STREAM_STEPS
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix

TERMS = ("gravity", "coriolis", "inertial", "friction")
"""Terms that an effort may have."""


@dataclass(frozen=True)
class Choice:
    """Inputs and terms of a feedforward program; another choice is another program.

    Attributes:
        positions: entries of q that are measured, as `followed` takes them; None where the
            position comes closed, as the guess.
        velocities: spanning velocity coordinates that are measured, ascending.
        accelerations: spanning velocity coordinates whose acceleration is given, ascending.
        terms: some of ``TERMS``.
    """

    positions: tuple[int, ...] | None
    velocities: tuple[int, ...]
    accelerations: tuple[int, ...]
    terms: frozenset[str]


class Health(NamedTuple):
    """How far efforts, or commands of motors, can be trusted; numbers, or symbols of a program.

    Attributes:
        inputs: sum of squares of what is given; not finite if any of it is not.
        moved: longest way of a coordinate of a loop from its guess [rad, m]; one more for each loop
            that may have changed its branch on the way.
        residual: |phi| of the loops that are left open [m, or sine of an angle].
        conditioning: how well the coordinates determine each other in the worst loop, 0 to 1.
        efforts: sum of squares of the efforts before they are limited.
        limited: how many efforts were beyond their limit.
        missed: of commands: largest force on y that the motors cannot give; and
        force: the largest that is commanded [N m, N].
    """

    inputs: Any
    moved: Any
    residual: Any
    conditioning: Any
    efforts: Any
    limited: Any
    missed: Any = 0.0
    force: Any = 0.0


def feedforward(
    tree: ClusterTree,
    position: Matrix,
    velocity: Matrix,
    acceleration: Matrix,
    guess: Matrix,
    limit: Matrix,
    wrenches: Matrix | None = None,
    *,
    choice: Choice,
) -> tuple[Matrix, Matrix, Matrix]:
    """Efforts (actuated) of the chosen terms, the spanning position (nq) they are for, `Health`.

    With terms left out of ``tau = H(y) ydd + C(y, yd)``: gravity is C at rest, springs
    included; Coriolis forces are the rest of C, and H ydd is inertial; tau is linear in these, so
    each can act alone.

    Args:
        position: of the measured coordinates [rad, m].
        velocity: (ny) of the measured coordinates [rad/s, m/s].
        acceleration: (ny) of the coordinates it is given for [rad/s^2, m/s^2].
        guess: (nq) spanning position near the measured one; it has the floating base's pose.
        limit: (actuated) largest effort of each actuator; infinite for none [N m, N].
        wrenches: (6 x bodies) external force on each body in its frame, angular first.
        choice: which coordinates and terms.
    """
    q, doubt = closed_position(tree, position, guess, choice.positions)
    yd, as_measured = independent_velocity(tree, q, velocity, choice.velocities)
    ydd, as_wanted = independent_acceleration(tree, q, yd, acceleration, choice.accelerations)

    none = ca.DM(tree.ny, 1)
    tau = inverse_dynamics(
        tree if "gravity" in choice.terms else tree.without_potential,
        q,
        yd if "coriolis" in choice.terms else none,
        ydd if "inertial" in choice.terms else none,
        wrenches,
    )
    if "friction" in choice.terms:
        tau += friction_force(tree, q, yd)
    efforts = actuator_efforts(tree, q, tau)

    given, rates = ca.vertcat(position, velocity, acceleration), ca.vertcat(as_measured, as_wanted)
    health = health_of(tree, q, guess, doubt, given, rates, efforts, limit)
    return ca.fmax(-limit, ca.fmin(efforts, limit)), q, ca.vertcat(*health[:6])


def closed_position(
    tree: ClusterTree, position: Matrix, guess: Matrix, positions: tuple[int, ...] | None
) -> tuple[Matrix, Matrix]:
    """The spanning position (nq) near a guess at known coordinates, and doubts about its branch."""
    if positions is None:
        return guess, ca.DM(0, 1)
    q, _, doubt = followed(tree, position, guess, positions, STREAM_STEPS)
    return q, doubt


def health_of(
    tree: ClusterTree,
    q: Matrix,
    guess: Matrix,
    doubt: Matrix,
    given: Matrix,
    conditioning: Matrix,
    efforts: Matrix,
    limit: Matrix,
) -> Health:
    """`Health` of a position that was closed from a guess, and of efforts (actuated) there.

    ``conditioning`` is how well the ``given`` velocities and accelerations determine those of y.
    """
    moved, residual, as_independent = ca.vertsplit(loop_health(tree, q, guess))
    return Health(
        inputs=ca.sumsqr(given),
        moved=moved + ca.sum1(doubt),
        residual=residual,
        conditioning=reduce(ca.fmin, ca.vertsplit(ca.vertcat(as_independent, conditioning))),
        efforts=ca.sumsqr(efforts),
        limited=ca.sum1(ca.fabs(efforts) > limit),
    )
