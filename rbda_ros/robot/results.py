"""Results of a robot: its clusters, and results of more than one array."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rbda_ros.cluster_tree.spanning_tree import velocity_names
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Array

RANK_TOLERANCE = 1e-9
"""Eigenvalues of an inverse inertia below this share of the largest count as zero."""


@dataclass(frozen=True)
class Cluster:
    """Bodies that loop constraints connect, by name.

    ``parent`` is the name of the parent cluster, or None if that is the fixed base.
    """

    name: str
    links: tuple[str, ...]
    joints: tuple[str, ...]
    independent_joints: tuple[str, ...]
    constraints: tuple[str, ...]
    parent: str | None


@dataclass(frozen=True, eq=False)
class OperationalSpace:
    """The inertia felt at some frames; rows and columns frame by frame, linear first.

    Attributes:
        inverse_inertia: (m, m) ``J H^-1 J'``.
        jacobian: (m, ny) of the frames, world-aligned.
        damping: added to the diagonal of the inverse inertia before it is inverted.
    """

    inverse_inertia: Array
    jacobian: Array
    damping: float = 0.0

    @cached_property
    def inertia(self) -> Array:
        """(m, m) Lambda, the inverse of ``inverse_inertia`` plus the damping.

        Where that is singular, the pseudo-inverse. The engine computes it with the rest where it
        is regular; else it is computed from eigenvalues when it is asked for, as rank and
        condition are.
        """
        values, vectors = np.linalg.eigh(self.inverse_inertia)
        regular = values > RANK_TOLERANCE * values.max(initial=0.0)
        damped = values + self.damping
        used = regular | (self.damping > 0.0)
        return (vectors * np.divide(1.0, damped, where=used, out=0.0 * values)) @ vectors.T

    @cached_property
    def rank(self) -> int:
        """Of ``inverse_inertia``."""
        values = self._eigenvalues
        return int(np.sum(values > RANK_TOLERANCE * values.max(initial=0.0)))

    @cached_property
    def condition(self) -> float:
        """Largest over smallest eigenvalue of ``inverse_inertia``; infinite if rank-deficient."""
        values = self._eigenvalues
        return float(values[-1] / values[0]) if self.rank == len(values) else np.inf

    @cached_property
    def _eigenvalues(self) -> Array:
        return np.asarray(np.linalg.eigvalsh(self.inverse_inertia), float)


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Partial derivatives (ny, ny) of a force or of an acceleration.

    Positions vary along the constraint manifold; those of a floating base along its twist,
    linear then angular, in the base frame.

    Attributes:
        position: with respect to y.
        velocity: with respect to yd.
    """

    position: Array
    velocity: Array


@dataclass(frozen=True, eq=False)
class InverseDynamicsDerivatives(Derivatives):
    """Partial derivatives (ny, ny) of the force on y.

    Attributes:
        acceleration: with respect to ydd: the mass matrix H.
    """

    acceleration: Array


@dataclass(frozen=True, eq=False)
class ForwardDynamicsDerivatives(Derivatives):
    """Partial derivatives (ny, ny) of the acceleration of y.

    Attributes:
        force: with respect to tau: the inverse of the mass matrix.
    """

    force: Array


@dataclass(frozen=True, eq=False)
class RobotLimits:
    """Bounds of a robot's joints; infinite where the description has none. Arrays are read-only.

    Attributes:
        lower, upper: (nq,) of the spanning position [rad, m]; infinite for quaternions and for
            joints of several degrees of freedom.
        velocity: (nv,) largest speed of every spanning coordinate [rad/s, m/s].
        effort: (nv,) largest effort on every spanning coordinate [N m, N].
    """

    lower: Array
    upper: Array
    velocity: Array
    effort: Array


def limits_of(tree: ClusterTree) -> RobotLimits:
    """The limits of a tree's joints."""
    lower: list[float] = []
    upper: list[float] = []
    velocity: list[float] = []
    effort: list[float] = []
    for body in tree.spanning.bodies:
        limits, nq, nv = body.joint.limits, body.model.nq, body.model.nv
        bounded = nq == 1 and limits.lower <= limits.upper
        lower += [limits.lower if bounded else -np.inf] * nq
        upper += [limits.upper if bounded else np.inf] * nq
        velocity += [limits.velocity] * nv
        effort += [limits.effort] * nv
    arrays = [np.array(each) for each in (lower, upper, velocity, effort)]
    for array in arrays:
        array.flags.writeable = False
    return RobotLimits(*arrays)


def clusters_of(tree: ClusterTree) -> tuple[Cluster, ...]:
    """The clusters of a tree, by name."""
    links: dict[int, list[str]] = {}
    for link, place in tree.spanning.links.items():
        links.setdefault(place.body, []).append(link)
    clusters = []
    for node in tree.clusters:
        names = velocity_names(node.bodies)
        clusters.append(
            Cluster(
                name=node.name,
                links=tuple(link for i in node.numbers for link in links[i]),
                joints=tuple(body.joint.name for body in node.bodies),
                independent_joints=tuple(names[j] for j in node.independent),
                constraints=tuple(c.name for c in node.loop.constraints) if node.loop else (),
                parent=None if node.parent is None else tree.clusters[node.parent].name,
            )
        )
    return tuple(clusters)
