"""Commands in joint space as commands of the motors: an impedance at the joints, in one program."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from rbda_ros.algorithms.contact_rows import largest
from rbda_ros.algorithms.feedforward import closed_position, health_of
from rbda_ros.algorithms.loop_motion import (
    completed_velocity,
    converted_efforts,
    generalized_force,
    independent_velocity,
    spanning_velocity,
)
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix

EFFORTS = ("commanded", "springs", "dampers", "feedforward")
"""Terms that the effort of a motor may have."""


@dataclass(frozen=True)
class CommandChoice:
    """Inputs and terms of a program; another choice is another program.

    Attributes:
        positions: entries of q that are commanded, as `followed` takes them; None where the
            position comes closed, as the guess.
        velocities: spanning velocity coordinates that are commanded, ascending.
        measured: spanning velocity coordinates that are measured, ascending; for dampers.
        efforts: some of ``EFFORTS``; none where motors get positions and velocities alone.
    """

    positions: tuple[int, ...] | None
    velocities: tuple[int, ...]
    measured: tuple[int, ...]
    efforts: frozenset[str]


def state_sizes(tree: ClusterTree) -> tuple[int, int, int]:
    """Of what a state is made of: measured velocity, spanning position, and feedforward."""
    return tree.ny, tree.nq, len(tree.actuated)


def commanded_motors(
    tree: ClusterTree,
    position: Matrix,
    velocity: Matrix,
    effort: Matrix,
    guess: Matrix,
    state: Matrix,
    gains: Matrix,
    limit: Matrix,
    offsets: Matrix,
    choice: CommandChoice,
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Motor commands that follow from a command for joints.

    Positions and velocities are turned over where the robot should be; efforts where it is. With
    springs and dampers, ``tau = e + K (q - q_measured) + D (qd - qd_measured)`` on every joint.

    Args:
        position: of the commanded coordinates [rad, m].
        velocity: (ny) of the commanded coordinates [rad/s, m/s].
        effort: (nv) commanded, on every joint [N m, N].
        guess: (nq) spanning position near the commanded one.
        state: what is measured, as `state_sizes` says; its efforts are the feedforward.
        gains: (2 nv) stiffness and damping of every joint of one coordinate.
        limit: (actuated) largest effort of each motor; infinite for none [N m, N].
        offsets: (actuated) where the motors' own zeros are [rad, m].
        choice: which coordinates and efforts.

    Returns:
        (ny) the force on y that the motors miss; (3 x actuated) position, velocity and effort of
        the motors; (nq) the commanded spanning position; `Health`.
    """
    ny, nq, _ = state_sizes(tree)
    measured_velocity, q_measured, feedforward = ca.vertsplit(state, [0, ny, ny + nq, state.rows()])
    stiffness, damping = ca.vertsplit(gains, tree.nv)
    q, doubt = closed_position(tree, position, guess, choice.positions)
    yd, as_commanded = independent_velocity(tree, q, velocity, choice.velocities)
    qd = spanning_velocity(tree, q, yd)

    velocities, scalar = tree.coordinates.velocities, tree.coordinates.scalar_positions
    entries = {velocities[name].start: entry for name, entry in scalar.items()}
    spanning = ca.SX(tree.nv, 1)
    if "commanded" in choice.efforts:
        spanning += effort
    if "springs" in choice.efforts:
        for j, entry in entries.items():
            spanning[j] += stiffness[j] * (q[entry] - q_measured[entry])
    if "dampers" in choice.efforts:
        qd_measured = completed_velocity(tree, q_measured, measured_velocity, choice.measured)
        spanning += damping * (qd - qd_measured)
    tau = generalized_force(tree, q_measured, spanning)
    efforts, missed = converted_efforts(tree, q_measured, tau, tree.actuated)
    if "feedforward" in choice.efforts:
        efforts += feedforward

    motors = ca.vertcat(
        ca.vertcat(*(q[entries[j]] if j in entries else 0.0 for j in tree.actuated)) - offsets,
        qd[list(tree.actuated)],
        ca.fmax(-limit, ca.fmin(efforts, limit)),
    )
    given = ca.vertcat(position, velocity, *([effort] if "commanded" in choice.efforts else []))
    health = health_of(tree, q, guess, doubt, given, as_commanded, efforts, limit)
    health = health._replace(missed=largest([missed]), force=largest([tau]))
    return missed, motors, q, ca.vertcat(*health)
