"""Springs and lacking weight: forces that depend on the position alone, on every tree joint.

A spring pulls its ends together with the tension ``f = pretension + stiffness s``, where s is how
far its length l is beyond its rest. Its force on the joints is ``f dl/dq``, which is ``dV/dq`` of
its potential energy V(q). Loops leave it so, and what y has to give is ``G' dV/dq``.

All algorithms give every link its weight. Where only a share w of it acts, a force takes the rest
back; its potential is ``V = (1 - w) m g . c``, with the centre of mass c and the acceleration of
gravity g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.constraints import (
    Positions,
    bodies_tied,
    cut_frames,
    point_in_world,
)
from rbda_ros.cluster_tree.joints import rotation_from_quaternion
from rbda_ros.cluster_tree.spanning_tree import SpanningTree, joint_slices, position_rate
from rbda_ros.description.model import Attachment, CutJoint, Link, Pose, Spring
from rbda_ros.errors import DescriptionError, Problem
from rbda_ros.spatial import Array, Matrix, constant

SHORTEST = 1e-9
"""Length [m] of a spring between two points below which it has no direction."""
SMALL_TURN = 1e-8
"""Sine of half an angle below which the rotation vector is twice the quaternion's vector."""


@dataclass(frozen=True, eq=False)
class Springs:
    """The springs and the lacking weights of one robot, as functions of its spanning position.

    Attributes:
        columns: ``q -> (nv x parameters)``: times the parameters, the force on the tree joints
            that holds the springs.
        energy: ``q -> V`` [J].
        names: of the parameters, ``spring.stiffness``, ``spring.pretension`` and
            ``link.lacking_weight``.
        values: theirs [N m/rad, N/m; N m, N; 1].
    """

    columns: ca.Function
    energy: ca.Function
    names: tuple[str, ...]
    values: Array

    def force(self, q: Matrix) -> Matrix:
        """Force (nv) on the tree joints that holds the springs at q (nq)."""
        return self.columns(q) @ constant(self.values)


def build_springs(
    tree: SpanningTree,
    springs: Sequence[Spring],
    links: Sequence[Link],
    gravity: tuple[float, float, float],
) -> Springs | None:
    """Trace all springs and lacking weights of a robot; None where there are none.

    Args:
        tree: the spanning tree, in the numbering of the robot's vectors.
        springs: as described.
        links: of the robot; those with a share of their weight lack the rest.
        gravity: acceleration of gravity in world axes [m/s^2].

    Raises:
        DescriptionError: springs whose ends are on one body.
    """
    light = [link for link in links if _lacks_weight(tree, link, gravity)]
    if not springs and not light:
        return None
    q = ca.SX.sym("q", sum(body.model.nq for body in tree.bodies))
    qd = ca.SX.sym("qd", sum(body.model.nv for body in tree.bodies))
    places = tuple(joint_slices(tree.bodies))
    position = {i: q[in_q] for i, (_, in_q, _) in enumerate(places, start=1)}
    q_rate = position_rate(tree.bodies, q, qd)

    def pull_of(length: Matrix) -> Matrix:
        """Rates (nv) of a length by the velocities."""
        return ca.jacobian(ca.jtimes(length, q, q_rate), qd).T

    parts: list[tuple[Matrix, str, float]] = []
    energy, problems = ca.SX(0), []
    for spring in springs:
        if spring.joint is not None:
            number = tree.body_of_joint[spring.joint]
            body, _, in_qd = places[number - 1]
            force = _of_joint(body.joint.type, position[number], spring.reference)
            column = ca.SX(qd.rows(), 1)
            column[in_qd] = force
            energy += spring.stiffness * ca.sumsqr(force) / 2
            parts.append((column, f"{spring.name}.stiffness", spring.stiffness))
        else:
            if spring.segments and not any(bodies_tied(tree, cut) for cut in _cuts(spring)):
                reason = "its ends are on links that are fixed to each other"
                problems.append(Problem(f"spring {spring.name!r}", reason, "move one of its ends"))
                continue
            length = _length(tree, spring, position)
            pull = pull_of(length)
            stretch = length - ca.fmin(ca.fmax(length, spring.rest[0]), spring.rest[1])
            parts.append((stretch * pull, f"{spring.name}.stiffness", spring.stiffness))
            if spring.pretension:
                parts.append((pull, f"{spring.name}.pretension", spring.pretension))
            energy += spring.stiffness * stretch**2 / 2 + spring.pretension * length
    for link in light:
        assert link.inertia is not None
        place = Attachment(link.name, Pose(link.inertia.origin.xyz))
        height = ca.dot(ca.DM(list(gravity)), point_in_world(tree, place, position))
        column, lacking = link.inertia.mass * pull_of(height), 1.0 - link.weight
        parts.append((column, f"{link.name}.lacking_weight", lacking))
        energy += lacking * link.inertia.mass * height
    if problems:
        raise DescriptionError(problems)
    columns, names, values = zip(*parts, strict=True)
    stacked = ca.cse(ca.horzcat(*columns))
    return Springs(
        ca.Function("springs", [q], [stacked]),
        ca.Function("spring_energy", [q], [energy]),
        names,
        np.array(values),
    )


def _lacks_weight(tree: SpanningTree, link: Link, gravity: tuple[float, float, float]) -> bool:
    """Whether gravity pulls at a link, that moves, by less or more than its weight."""
    if link.inertia is None or link.weight == 1.0 or not any(gravity):
        return False
    return link.inertia.mass > 0.0 and tree.links[link.name].body > 0


def _cuts(spring: Spring) -> list[CutJoint]:
    """The ends of each segment as those of a cut that holds them at a distance."""
    return [CutJoint(spring.name, "distance", s.predecessor, s.successor) for s in spring.segments]


def _length(tree: SpanningTree, spring: Spring, q: Positions) -> Matrix:
    """Length of a spring: a sum over joints [rad, m], or over straight lines [m]."""
    body_of = tree.body_of_joint
    length = sum((c * q[body_of[joint]] for joint, c in spring.terms.items()), ca.SX(0))
    for segment, cut in zip(spring.segments, _cuts(spring), strict=True):
        frames = cut_frames(tree, cut, q)
        distance = ca.sqrt(ca.fmax(ca.sumsqr(frames.pp - frames.ps), SHORTEST**2))
        length += segment.coefficient * distance
    return length


def _of_joint(kind: str, q: Matrix, reference: Sequence[float]) -> Matrix:
    """Displacement (nv) of a ball or floating joint from its reference, in the child's axes.

    The rotation vector of the turn from the reference is the gradient of half its square.
    """
    turn = _rotation_vector(q[-4:], reference[-4:])
    if kind == "spherical":
        return turn
    R = rotation_from_quaternion(q[3:])
    return ca.vertcat(R.T @ (q[:3] - ca.DM(list(reference[:3]))), turn)


def _rotation_vector(quaternion: Matrix, reference: Sequence[float]) -> Matrix:
    """(3) rotation vector of the turn from a reference, both qx qy qz qw; at most pi long."""
    x, y, z, w = reference
    inverse = ca.DM([-x, -y, -z])
    vector, scalar = quaternion[:3], quaternion[3]
    v = w * vector + scalar * inverse + ca.cross(inverse, vector)
    s = w * scalar - ca.dot(inverse, vector)
    nearest = ca.if_else(s < 0.0, -1.0, 1.0)
    v, s = nearest * v, nearest * s
    n = ca.sqrt(ca.fmax(ca.sumsqr(v), SMALL_TURN**2))
    return 2 * ca.atan2(n, s) / n * v
