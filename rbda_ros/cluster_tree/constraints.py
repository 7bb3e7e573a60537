"""phi(q) = 0 for every constraint type of the loop file.

A cut joint compares two frames, one on each link. Both are followed from the nearest common
ancestor of the links, so phi depends on the joints of the loop alone. Its rows are in the frame
of the loop's first joint, whose z axis is that joint's: in a planar loop the rows out of the
plane are then zero by structure and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.spanning_tree import IDENTITY, Frame, SpanningTree, frame_of
from rbda_ros.description.expression import Call, Name, Node, Number
from rbda_ros.description.model import (
    Attachment,
    Constraint,
    Coupling,
    CutJoint,
    Vector3,
    vector3,
)
from rbda_ros.spatial import Matrix, align_z, constant

Positions = Mapping[int, Matrix]
"""Position of each body's joint, by body number."""


@dataclass(frozen=True, eq=False)
class CutFrames:
    """Axes (3x3) and origins (3) of a cut joint's two frames, in the loop's frame.

    The third axis of each is the cut's axis, so all types can speak of x, y and z.
    """

    Rp: Matrix
    pp: Matrix
    Rs: Matrix
    ps: Matrix


def bodies_tied(tree: SpanningTree, constraint: Constraint) -> frozenset[int]:
    """Numbers of the bodies whose joints a constraint ties together."""
    if constraint.links:
        predecessor, successor = (
            set(tree.path(tree.links[link].body)) for link in constraint.links
        )
        return frozenset(predecessor ^ successor)
    return frozenset(tree.body_of_joint[joint] for joint in constraint.joints)


def residual(
    tree: SpanningTree, constraint: Constraint, q: Positions, at_guess: Positions
) -> Matrix:
    """phi (rows), zero where the constraint holds; metres for lengths, sines for angles.

    Args:
        tree: the spanning tree.
        constraint: the constraint.
        q: position of each joint of ``bodies_tied``.
        at_guess: the same as numbers, at the assembly guess: it gives the length of a
            ``distance`` cut that states none.
    """
    if isinstance(constraint, CutJoint):
        frames = cut_frames(tree, constraint, q)
        if constraint.type == "distance":
            length = constraint.length
            if length is None:
                guess = cut_frames(tree, constraint, at_guess)
                length = float(ca.norm_2(guess.pp - guess.ps))
            return _distance(frames, length)
        return CUT_ROWS[constraint.type](frames)
    body_of_joint = tree.body_of_joint
    if isinstance(constraint, Coupling):
        terms = (c * q[body_of_joint[joint]] for joint, c in constraint.terms.items())
        return sum(terms, -constraint.offset)
    return evaluate(constraint.tree, lambda joint: q[body_of_joint[joint]])


def alignment(tree: SpanningTree, constraint: Constraint, q: Positions) -> Matrix:
    """Cosines that a correct assembly has near 1: rows of sines alone also vanish at 180 deg."""
    if not isinstance(constraint, CutJoint):
        return ca.DM(0, 1)
    frames = cut_frames(tree, constraint, q)
    cosines = ca.diag(frames.Rp.T @ frames.Rs)
    if constraint.type in ("prismatic", "fixed"):
        return cosines
    if constraint.type in ("revolute", "cylindrical", "planar"):
        return cosines[2]
    return ca.DM(0, 1)


def whole_residual(
    tree: SpanningTree, constraint: Constraint, q: Positions, at_guess: Positions
) -> Matrix:
    """More rows than `residual` has, with the same zeros and no false ones: to assemble with.

    Rows of sines alone also vanish where axes are opposed. These do not, and what pulls two axes
    together does so from every angle but 180 degrees. Equations have coefficients of length one.
    """
    if isinstance(constraint, CutJoint) and constraint.type in _WHOLE_TURN:
        f = cut_frames(tree, constraint, q)
        return ca.vertcat(_TRAVEL[constraint.type](f), _WHOLE_TURN[constraint.type](f))
    phi = residual(tree, constraint, q, at_guess)
    if isinstance(constraint, Coupling):
        return phi / float(np.linalg.norm([*constraint.terms.values()]))
    return phi


def cut_frames(tree: SpanningTree, cut: CutJoint, q: Positions) -> CutFrames:
    """Both frames of a cut joint, followed along the loop."""
    tied = bodies_tied(tree, cut)
    loop = IDENTITY
    if tied:
        R, p = tree.bodies[min(tied) - 1].X_tree.pose()
        loop = Frame(np.asarray(ca.DM(R)), np.asarray(ca.DM(p)).ravel()).inverse()
    axes = Frame(align_z(np.array(cut.axis)), np.zeros(3))
    second = axes
    if cut.type in ("universal", "perpendicular"):
        second = Frame(align_z(np.array(second_axis(cut))), np.zeros(3))
    Rp, pp = _follow(tree, cut.predecessor, tied, q, loop, axes)
    Rs, ps = _follow(tree, cut.successor, tied, q, loop, second)
    return CutFrames(Rp, pp, Rs, ps)


def point_in_world(tree: SpanningTree, place: Attachment, q: Positions) -> Matrix:
    """(3) where a point of a link is [m]; q has the joints from there to the base."""
    path = frozenset(tree.path(tree.links[place.link].body))
    return _follow(tree, place, path, q, IDENTITY, IDENTITY)[1]


def second_axis(cut: CutJoint) -> Vector3:
    """The axis on the successor, of universal and perpendicular cuts.

    By default one at right angles to the first.
    """
    return vector3(cut.second_axis or align_z(np.array(cut.axis))[:, 0])


def _follow(
    tree: SpanningTree,
    side: Attachment,
    tied: frozenset[int],
    q: Positions,
    loop: Frame,
    axes: Frame,
) -> tuple[Matrix, Matrix]:
    """Pose of a cut frame in the loop's frame, body by body towards the common ancestor."""
    place = tree.links[side.link]
    frame = place.frame @ frame_of(side.origin) @ axes
    R, p = constant(frame.R), constant(frame.p)
    # From the tip: an axis, or the origin, costs nothing where its cut does not ask for it.
    for i in (i for i in tree.path(place.body) if i in tied):
        body = tree.bodies[i - 1]
        model = body.model
        X_J, _, _ = model.jcalc(q[i], ca.DM(model.nv, 1), body.joint.pitch)
        for step in (X_J, body.X_tree):
            R_i, p_i = step.pose()
            R, p = R_i @ R, p_i + R_i @ p
    return constant(loop.R) @ R, constant(loop.p) + constant(loop.R) @ p


def _offset(f: CutFrames) -> Matrix:
    """All three rows of: the origins coincide."""
    return f.pp - f.ps


def _sideways(f: CutFrames) -> Matrix:
    """Two rows: the successor's origin lies on the predecessor's axis."""
    return f.Rp[:, :2].T @ (f.pp - f.ps)


def _height(f: CutFrames) -> Matrix:
    """One row: the successor's origin lies in the predecessor's xy plane."""
    return f.Rp[:, 2].T @ (f.pp - f.ps)


def _axes_parallel(f: CutFrames) -> Matrix:
    """Two rows: the successor's axis is along the predecessor's."""
    return f.Rp[:, :2].T @ f.Rs[:, 2]


def _axes_perpendicular(f: CutFrames) -> Matrix:
    """One row: the axes are at right angles, as the two of a universal joint."""
    return f.Rp[:, 2].T @ f.Rs[:, 2]


def _no_turn(f: CutFrames) -> Matrix:
    """Three rows: the frames have the same axes."""
    return ca.vertcat(_axes_parallel(f), f.Rp[:, 0].T @ f.Rs[:, 1])


def _distance(f: CutFrames, length: float) -> Matrix:
    """One row [m], without the square root that has no derivative at zero."""
    d = f.pp - f.ps
    return (ca.dot(d, d) - length**2) / (2 * length if length > 0.0 else 1.0)


CUT_ROWS: dict[str, Callable[[CutFrames], Matrix]] = {
    "revolute": lambda f: ca.vertcat(_offset(f), _axes_parallel(f)),
    "prismatic": lambda f: ca.vertcat(_sideways(f), _no_turn(f)),
    "cylindrical": lambda f: ca.vertcat(_sideways(f), _axes_parallel(f)),
    "planar": lambda f: ca.vertcat(_height(f), _axes_parallel(f)),
    "universal": lambda f: ca.vertcat(_offset(f), _axes_perpendicular(f)),
    "spherical": _offset,
    "fixed": lambda f: ca.vertcat(_offset(f), _no_turn(f)),
    "perpendicular": _axes_perpendicular,
}

_TRAVEL: dict[str, Callable[[CutFrames], Matrix]] = {
    "revolute": _offset,
    "prismatic": _sideways,
    "cylindrical": _sideways,
    "planar": _height,
    "fixed": _offset,
}


def _same_axis(f: CutFrames) -> Matrix:
    """Three rows, of the length of the chord between the two axes."""
    return f.Rp.T @ f.Rs[:, 2] - ca.DM([0, 0, 1])


def _same_axes(f: CutFrames) -> Matrix:
    """Nine rows: the relative rotation less the identity."""
    return ca.vec(f.Rp.T @ f.Rs - ca.DM.eye(3))


_WHOLE_TURN: dict[str, Callable[[CutFrames], Matrix]] = {
    "revolute": _same_axis,
    "prismatic": _same_axes,
    "cylindrical": _same_axis,
    "planar": _same_axis,
    "fixed": _same_axes,
}

_FUNCTIONS: dict[str, Callable[..., Matrix]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "neg": lambda a: -a,
    "abs": ca.fabs,
} | {
    name: getattr(ca, name)
    for name in (
        "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sqrt", "exp", "log",
        "sinh", "cosh", "tanh",
    )
}  # fmt: skip


def evaluate(node: Node, position: Callable[[str], Matrix]) -> Matrix:
    """The value of a parsed expression, given the position of each joint."""
    match node:
        case Number(value):
            return ca.DM(value)
        case Name(joint):
            return position(joint)
        case Call(function, arguments):
            return _FUNCTIONS[function](*(evaluate(a, position) for a in arguments))
