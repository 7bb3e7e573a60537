"""From a description to its spanning tree: bodies, tree joints, and links lumped onto bodies.

Inertia is a matrix (6, 6), or the ten numbers that dynamics is linear in, ``pi = (m, m c_x, m c_y,
m c_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz)``: mass, first moment and rotational inertia about the
frame's origin, in its axes. The order is Pinocchio's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from rbda_ros.cluster_tree.joints import AXIS_TYPES, JOINT_MODELS, JointModel, integrate
from rbda_ros.description.model import Inertia, Joint, RobotDescription
from rbda_ros.description.model import Pose as DescribedPose
from rbda_ros.spatial import (
    Array,
    Matrix,
    Transform,
    align_z,
    cross_matrix,
    frame_transform,
    rpy_matrix,
    snap,
    spatial_inertia,
)

FLOATING_BASE = "floating_base"
"""Name of the joint that ``floating_base=True`` puts under the root link."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame: axes R (3, 3, its axes to the reference's) and origin p (3,) [m]."""

    R: NDArray[np.float64]
    p: NDArray[np.float64]

    def __matmul__(self, other: Frame) -> Frame:
        return Frame(self.R @ other.R, self.R @ other.p + self.p)

    def inverse(self) -> Frame:
        """The reference frame in this frame."""
        return Frame(self.R.T, -self.R.T @ self.p)

    def transform(self) -> Transform:
        """The Pluecker transform from the reference to this frame."""
        return frame_transform(self.R, self.p)


IDENTITY = Frame(np.eye(3), np.zeros(3))
NO_OFFSET = 1e-14
"""Offsets below this [m] are rounding."""


@dataclass(frozen=True, eq=False)
class Body:
    """A node of the spanning tree and the tree joint that moves it.

    Attributes:
        name: of the link that the joint moves.
        joint: the tree joint, as described.
        parent: regular number of the parent body; 0 is the fixed base, bodies count from 1.
        X_tree: parent body frame to joint frame (the body frame at zero); a constant.
        inertia: (6, 6) of all its links about the body frame's origin, in its axes.
        mass: of all its links [kg].
        turns: whether its frame turns with it; see `regroup`.
    """

    name: str
    joint: Joint
    parent: int
    X_tree: Transform
    inertia: NDArray[np.float64]
    mass: float
    turns: bool = True

    @property
    def model(self) -> JointModel:
        """Kinematics of the tree joint."""
        return JOINT_MODELS[self.joint.type]

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of its velocity coordinates: the joint's, with a suffix where it has several."""
        name = self.joint.name
        return tuple(f"{name}.{c}" if c else name for c in self.model.coordinates)


@dataclass(frozen=True, eq=False)
class LinkFrame:
    """Where a link is: the body it is lumped onto (0: the fixed base) and its frame there."""

    body: int
    frame: Frame


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """Bodies in regular numbering (parents before children), and every link's place on them.

    ``bodies[i - 1]`` is body i. ``floating_base`` tells that body 1 is the floating base.
    """

    bodies: tuple[Body, ...]
    links: Mapping[str, LinkFrame]
    floating_base: bool

    def path(self, body: int) -> tuple[int, ...]:
        """kappa_t(body): the body and its supporting bodies, tip first."""
        path = []
        while body:
            path.append(body)
            body = self.bodies[body - 1].parent
        return tuple(path)

    @cached_property
    def coordinates(self) -> Coordinates:
        """Where each joint's positions are in q, and its velocities in qd."""
        names = [body.joint.name for body in self.bodies]
        positions = dict(zip(names, ranges(b.model.nq for b in self.bodies), strict=True))
        velocities = dict(zip(names, ranges(b.model.nv for b in self.bodies), strict=True))
        base = self.bodies[0].model if self.floating_base else None
        return Coordinates(positions, velocities, base.nq if base else 0, base.nv if base else 0)

    @cached_property
    def body_of_joint(self) -> Mapping[str, int]:
        """Number of the body that each moving joint moves."""
        return {body.joint.name: i for i, body in enumerate(self.bodies, start=1)}


def integrate_bodies(
    bodies: Sequence[Body], q: NDArray[np.float64], step: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The position reached from q (nq,) with velocity ``step`` (nv,) for unit time.

    Both stack the joints of the bodies. Loops are satisfied only to first order.
    """
    parts = (integrate(body.joint.type, q[i], step[j]) for body, i, j in joint_slices(bodies))
    return np.concatenate([np.zeros(0), *parts])


def position_rate(bodies: Sequence[Body], q: Matrix, qd: Matrix) -> Matrix:
    """dq/dt (nq) of a spanning velocity qd (nv); all stack the joints of the bodies."""
    rates = (body.model.rate(q[i], qd[j]) for body, i, j in joint_slices(bodies))
    return ca.vertcat(ca.DM(0, 1), *rates)


def velocity_names(bodies: Iterable[Body]) -> tuple[str, ...]:
    """Name of each velocity coordinate of the joints of some bodies."""
    return tuple(name for body in bodies for name in body.velocity_names)


def joint_slices(bodies: Sequence[Body]) -> Iterator[tuple[Body, slice, slice]]:
    """Each body, and where its joint is in positions (nq) and in velocities (nv) of all."""
    nq = nv = 0
    for body in bodies:
        yield body, slice(nq, nq + body.model.nq), slice(nv, nv + body.model.nv)
        nq, nv = nq + body.model.nq, nv + body.model.nv


def frame_of(pose: DescribedPose) -> Frame:
    """The frame that a URDF origin means."""
    return Frame(snap(rpy_matrix(pose.rpy)), np.array(pose.xyz, dtype=float))


def build_spanning_tree(description: RobotDescription, floating_base: bool) -> SpanningTree:
    """Number the bodies depth first in the order of the file, and lump fixed joints.

    The one floating joint on the root link is the floating base, whether or not
    ``floating_base`` asks for one; otherwise ``floating_base=True`` puts one under the root.
    Without either, the root link is fixed where the description has it. The mass of what is
    fixed to the world does not enter the dynamics.
    """
    children: dict[str, list[Joint]] = {}
    for joint in description.joints:
        children.setdefault(joint.parent, []).append(joint)
    root = description.root
    described = [joint.type for joint in children.get(root, [])].count("floating") == 1
    if described:
        children[root].sort(key=lambda joint: joint.type != "floating")

    links: dict[str, LinkFrame] = {}
    joints: list[tuple[Joint, int, Frame]] = []
    at_root = frame_of(description.root_pose)
    pending: list[tuple[str, int, Frame, Joint | None]] = [(root, 0, at_root, None)]
    if floating_base and not described:
        base_joint = Joint(FLOATING_BASE, "floating", parent="world", child=root)
        pending = [(root, 0, IDENTITY, base_joint)]
    while pending:
        link, body, frame, mover = pending.pop()
        if mover is not None:
            align = body_frame(mover, frame)
            joints.append((mover, body, _tidy(frame @ align)))
            body, frame = len(joints), align.inverse()
        links[link] = LinkFrame(body, frame)
        for child in reversed(children.get(link, [])):
            moves = None if child.type == "fixed" else child
            pending.append((child.child, body, frame @ frame_of(child.origin), moves))

    inertias = _lump(description, links, len(joints))
    bodies = tuple(
        Body(joint.child, joint, parent, frame.transform(), inertias[i], inertias[i][5, 5])
        for i, (joint, parent, frame) in enumerate(joints, start=1)
    )
    return SpanningTree(bodies, links, floating_base or described)


def body_frame(joint: Joint, at_zero: Frame) -> Frame:
    """The body frame in the frame of the link that the joint moves.

    Its z axis is on the joint axis, where there is one. Along a revolute joint's axis the origin
    may lie anywhere: it lies where its offset from the parent body has the most zeros.

    Args:
        joint: the tree joint.
        at_zero: the link's frame at zero, in the parent body's frame.
    """
    if joint.type not in AXIS_TYPES:
        return IDENTITY
    axes = Frame(align_z(np.array(joint.axis)), np.zeros(3))
    if joint.type not in ("revolute", "continuous"):
        return axes
    along = snap(at_zero.R @ axes.R[:, 2])
    steep = np.abs(along) > 0.5  # along a shallow component the origin would go far away
    shifts = [0.0, *(-at_zero.p[steep] / along[steep])]
    offsets = [at_zero.p + shift * along for shift in shifts]
    zeros = [int(np.sum(np.abs(offset) < NO_OFFSET)) for offset in offsets]
    shift = shifts[int(np.argmax(zeros))]
    return Frame(axes.R, shift * axes.R[:, 2])


def _tidy(frame: Frame) -> Frame:
    """The frame without the rounding that products of rotations and shifts leave."""
    return Frame(snap(frame.R), np.where(np.abs(frame.p) < NO_OFFSET, 0.0, frame.p))


def _lump(
    description: RobotDescription, links: Mapping[str, LinkFrame], body_count: int
) -> list[NDArray[np.float64]]:
    """(6, 6) inertia of each body, from those of its links; entry 0 is the fixed base."""
    inertias = [np.zeros((6, 6)) for _ in range(body_count + 1)]
    for link in description.links:
        if link.inertia is not None:
            place = links[link.name]
            inertias[place.body] += link_inertia(link.inertia, place.frame)
    return inertias


def link_inertia(inertia: Inertia, frame: Frame) -> NDArray[np.float64]:
    """(6, 6) of a link in the axes, and about the origin, of the frame that ``frame`` is in."""
    inertial = frame @ frame_of(inertia.origin)
    return spatial_inertia(inertia.mass, inertial.p, inertial.R @ inertia.tensor @ inertial.R.T)


PARAMETERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Their names [kg, kg m, kg m^2]."""


def inertial_parameters(inertia: Array) -> Array:
    """pi (10,) of a spatial inertia (6, 6), angular first."""
    I = inertia
    first_moment = I[2, 4], I[0, 5], I[1, 3]
    return np.array([I[5, 5], *first_moment, I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]])


def spatial_inertia_of(parameters: Array) -> Array:
    """The spatial inertia (6, 6), angular first, that has the parameters pi (10,)."""
    m, _, _, _, xx, xy, yy, xz, yz, zz = parameters
    moment = cross_matrix(parameters[1:4])
    rotational = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return np.block([[rotational, moment], [moment.T, m * np.eye(3)]])


def parameter_map(frame: Frame) -> Array:
    """T (10, 10): parameters in a frame to those in the frame that it is given in, ``T pi``."""
    X = np.asarray(frame.transform() @ np.eye(6))  # from the reference's motions to the frame's
    units = (X.T @ spatial_inertia_of(unit) @ X for unit in np.eye(10))
    return np.column_stack([inertial_parameters(moved) for moved in units])


@dataclass(frozen=True)
class Coordinates:
    """The layout of spanning vectors: positions q (nq,) and velocities qd (nv,).

    A floating base, if there is one, comes first in both.

    Attributes:
        positions: entries of q by joint name, in model order.
        velocities: entries of qd, likewise.
        base_nq: how many entries of q are the floating base's: 7, or 0 without one.
        base_nv: how many entries of qd are: 6, or 0.
    """

    positions: Mapping[str, range]
    velocities: Mapping[str, range]
    base_nq: int
    base_nv: int

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Joints that move, in model order, without the floating base's own."""
        names = tuple(self.positions)
        return names[1:] if self.base_nq else names

    @cached_property
    def scalar_positions(self) -> dict[str, int]:
        """Entry of q of each joint that has just one."""
        return {joint: place[0] for joint, place in self.positions.items() if len(place) == 1}

    @cached_property
    def owners(self) -> tuple[str, ...]:
        """For each entry of qd, the joint it belongs to."""
        return tuple(joint for joint, place in self.velocities.items() for _ in place)


def ranges(sizes: Iterable[int]) -> tuple[range, ...]:
    """Where parts of these sizes are in the vector that stacks them."""
    starts = itertools.accumulate(sizes, initial=0)
    return tuple(range(start, stop) for start, stop in itertools.pairwise(starts))
