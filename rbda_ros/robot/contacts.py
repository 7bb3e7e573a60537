"""Contacts with the world as users describe them, and the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.contact_rows import ContactFrame
from rbda_ros.errors import InputError
from rbda_ros.robot.inputs import pose_error
from rbda_ros.spatial import Array, align_z, cross, cross_matrix

Kind = Literal["point", "surface", "weld"]
Route = Literal["auto", "constrained_aba", "prox_pv", "prox_ltl", "prox_ltls"]

ROWS: dict[str, tuple[str, ...]] = {
    "point": ("x", "y", "z"),
    "surface": ("z", "rx", "ry"),
    "weld": ("x", "y", "z", "rx", "ry", "rz"),
}
"""Directions that each kind of contact holds, along and about its own axes; z is the normal."""

SETTINGS = {"constrained_aba": (1e3, 4), "prox_pv": (1e6, 3), "prox_ltl": (1e6, 3)}
SETTINGS["prox_ltls"] = SETTINGS["constrained_aba"]
"""Weight of the constraints, in robot masses, and iterations of one call of the kernel.
constrainedABA and proxLTLs add the weight to inertias, whose digits a larger one would lose."""

FLAT = 1e-6
"""Sine of the angle between axle and normal below which a wheel lies on its side."""
STILL = 1e-7
"""How much the acceleration may change in the last iteration, relative to its largest entry."""


@dataclass(frozen=True)
class Stop:
    """Conditions at which a proximal algorithm stops.

    Attributes:
        tolerance: largest error of the contact accelerations [m/s^2, rad/s^2].
        iterations: largest number of them, done in groups of SETTINGS.
    """

    tolerance: float = 1e-10
    iterations: int = 20

    def __post_init__(self) -> None:
        if not self.tolerance > 0.0:
            raise InputError(f"tolerance is {self.tolerance!r}; give a positive number")
        if self.iterations < 1:
            raise InputError(f"max_iterations is {self.iterations!r}; give one at least")


@dataclass(frozen=True)
class Contact:
    """A place where the world, or another link, holds a link.

    Attributes:
        link: the link.
        xyz: the contact's point in the link's frame [m].
        kind: ``point`` holds the point, ``weld`` also the orientation; ``surface`` holds the link
            flat on a plane, on which it may slide and spin.
        normal: the contact's z axis, in world axes.
        rows: constrained directions instead of those of kind: some of x, y, z, rx, ry, rz, along
            and about the contact's axes.
        acceleration: (6,) desired acceleration of the point, linear then angular, in world axes
            [m/s^2, rad/s^2].
        target: where the point should be, for stabilization: (3,) position, or (4, 4) pose [m].
        stiffness: added acceleration per distance from the target [1/s^2] (Baumgarte).
        damping: added acceleration per velocity of the point [1/s].
        weight: weight of its squared error if contacts contradict each other.
        to: another link that holds it instead of the world (Featherstone 2010, Eq. 34, a loop joint
            at run time): ``normal``, ``acceleration`` and ``target`` are then in that link's frame,
            velocities and accelerations are as seen from it, and the opposite force acts on it.
    """

    link: str
    xyz: Sequence[float] = (0.0, 0.0, 0.0)
    kind: Kind = "point"
    normal: Sequence[float] = (0.0, 0.0, 1.0)
    rows: Sequence[str] | None = None
    acceleration: ArrayLike = (0.0,) * 6
    target: ArrayLike | None = None
    stiffness: float = 0.0
    damping: float = 0.0
    weight: float = 1.0
    to: str | None = None


@dataclass(frozen=True)
class Wheel:
    """A wheel or ball that rolls on a plane: a constraint on velocities (Jain 2009, Sec. II).

    The material point that touches the plane is another one at each moment, so its velocity
    vanishes, not its acceleration. Its axes: x where the wheel heads, y along the axle on the
    plane, z the plane's normal.

    Attributes:
        link: the wheel.
        radius: [m].
        xyz: its centre in the link's frame [m].
        axis: its axle in the link's frame; None for a ball.
        normal: of the plane, in world axes, pointing to the wheel.
        rows: what the plane holds: without ``x`` it spins freely, without ``y`` it skids sideways.
        damping: added acceleration per velocity of the point that touches the plane [1/s].
        weight: as for `Contact`.
    """

    link: str
    radius: float
    xyz: Sequence[float] = (0.0, 0.0, 0.0)
    axis: Sequence[float] | None = (0.0, 1.0, 0.0)
    normal: Sequence[float] = (0.0, 0.0, 1.0)
    rows: Sequence[str] = ("x", "y", "z")
    damping: float = 0.0
    weight: float = 1.0

    def at(self, motion: ContactMotion) -> Contact:
        """The contact that it is at one moment."""
        return Contact(self.link, tuple(motion.offset.tolist()), rows=tuple(self.rows))


@dataclass(frozen=True, eq=False)
class ConstrainedMotion:
    """Motion of a robot in contact.

    Attributes:
        ydd: (ny) independent acceleration.
        forces: (c, 6) force then moment that each contact exerts on the robot, at its point, in
            world axes [N, N m]. If contacts are redundant or contradict each other, many
            forces give the same motion; without a warm start these are the ones of least norm.
        residual: largest error of a contact acceleration [m/s^2, rad/s^2];
            not zero if contacts contradict each other; the sum of squares is then minimal.
        iterations: of the proximal algorithm.
        converged: whether ydd is accurate to seven digits: the iterations converged with contacts
            satisfied, or the rank of the least-squares solution was certain.
    """

    ydd: Array
    forces: Array
    residual: float
    iterations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Impact:
    """Result of a plastic or elastic impact.

    Attributes:
        yd: (ny) independent velocity after it.
        impulses: (c, 6) linear then angular, on the robot, at each contact, in world axes
            [N s, N m s].
    """

    yd: Array
    impulses: Array


@dataclass(frozen=True, eq=False)
class ContactEfforts:
    """Forces that a motion in contact requires.

    Attributes:
        tau: (ny) generalized force; zero on coordinates without an actuator, such as a floating
            base.
        forces: (c, 6) force then moment of each contact on the robot, in world axes [N, N m]:
            of all forces that give the motion, those of least norm.
        residual: force that remains on coordinates that no actuator drives [N, N m]; not zero
            where the contacts cannot give the motion.
    """

    tau: Array
    forces: Array
    residual: float


@dataclass(frozen=True, eq=False)
class ReadContacts:
    """Contacts as kernels take them.

    Attributes:
        frames: where they hold bodies.
        axes: (c, 3, 3) their own axes, as columns in the world's.
        contacts: as they were given.
        motions: of wheels, and of contacts with gains or between links; None for the others.
    """

    frames: tuple[ContactFrame, ...]
    axes: Array
    contacts: tuple[Contact | Wheel, ...]
    motions: tuple[ContactMotion | None, ...]

    @property
    def offset(self) -> bool:
        """Whether some are elsewhere than at the origin of their link."""
        return any(isinstance(c, Wheel) or np.any(c.xyz) for c in self.contacts)

    @property
    def between_links(self) -> bool:
        """Whether some hold a link to another one, which the recursive algorithms do not take."""
        return any(isinstance(c, Contact) and c.to is not None for c in self.contacts)

    @property
    def points(self) -> list[Array]:
        """(3c,) places on their bodies, if kernels are to take them; else nothing."""
        if not self.offset:
            return []
        return [np.array([frame.point for frame in self.frames]).ravel()]

    @property
    def rows(self) -> int:
        """Number of rows of all contacts."""
        return sum(frame.size for frame in self.frames)

    @property
    def desired(self) -> Array:
        """(c, 6) acceleration that each contact's material point should have, in world axes."""
        wanted = np.zeros((len(self.contacts), 6))
        for c, (contact, motion) in enumerate(zip(self.contacts, self.motions, strict=True)):
            if motion is not None:
                wanted[c] = motion.wanted + motion.carried
            elif isinstance(contact, Contact):
                wanted[c] = contact.acceleration
        return wanted

    @property
    def weights(self) -> Array:
        """(m,) of each row."""
        each = [contact.weight for contact in self.contacts]
        return np.repeat(each, [frame.size for frame in self.frames])

    @property
    def flat_axes(self) -> Array:
        """(9c,) axis by axis."""
        return self.axes.transpose(0, 2, 1).ravel()

    def along_axes(self, vectors: Sequence[Array]) -> Array:
        """Rows (m, ...) along the contacts' own axes, of linear and angular ones (6, ...)."""
        rows = []
        for x, frame, axes in zip(vectors, self.frames, self.axes, strict=True):
            rows += [(axes.T @ x[:3])[list(frame.linear)], (axes.T @ x[3:])[list(frame.angular)]]
        return np.concatenate(rows)

    def in_world(self, along: Array) -> Array:
        """Forces (c, 6) in world axes, from those along the rows (m,)."""
        forces, start = np.zeros((len(self.frames), 6)), 0
        for c, (frame, axes) in enumerate(zip(self.frames, self.axes, strict=True)):
            middle, end = start + len(frame.linear), start + frame.size
            forces[c, :3] = axes[:, list(frame.linear)] @ along[start:middle]
            forces[c, 3:] = axes[:, list(frame.angular)] @ along[middle:end]
            start = end
        return forces


@dataclass(frozen=True, eq=False)
class LinkMotion:
    """Where a link is and how it moves, in world axes; of the world itself, all zero.

    Attributes:
        R: (3, 3) its axes.
        p: (3,) its origin [m].
        J: (6, ny) Jacobian of its origin, linear rows first.
        bias: (6,) ``J-dot yd``.
        velocity: (6,) ``J yd``.
    """

    R: Array
    p: Array
    J: Array
    bias: Array
    velocity: Array

    def at(self, r: Array) -> tuple[Array, Array, Array]:
        """J (6, ny), bias (6,) and velocity (6,) of its point at r (3,) from its origin."""
        J, bias, velocity = self.J.copy(), self.bias.copy(), self.velocity.copy()
        w = velocity[3:]
        J[:3] -= cross_matrix(r) @ J[3:]
        bias[:3] += cross(bias[3:], r) + cross(w, cross(w, r))
        velocity[:3] += cross(w, r)
        return J, bias, velocity


@dataclass(frozen=True, eq=False)
class ContactMotion:
    """A contact at one state: what it holds accelerates by ``J ydd + bias``, in world axes.

    Attributes:
        axes: (3, 3) the contact's axes, as columns.
        offset: (3,) its point in its link's frame [m].
        J: (6, ny) Jacobian of what is held, linear rows first.
        bias: (6,) of its acceleration at ydd = 0.
        velocity: (6,) of what is held.
        carried: (6,) acceleration of the material point less that of what is held.
        wanted: (6,) acceleration that it should have, with Baumgarte's terms.
    """

    axes: Array
    offset: Array
    J: Array
    bias: Array
    velocity: Array
    carried: Array
    wanted: Array


def contact_motion(
    contact: Contact, link: LinkMotion, other: LinkMotion | None = None
) -> ContactMotion:
    """A contact between two links, or between a link and the world, which is None.

    Relative to the other link, of which the point that coincides with the contact's counts:
    ``a - a_o - 2 w_o x (v - v_o)``, and ``alpha - alpha_o - w_o x (w - w_o)`` (Featherstone 2010).
    """
    offset = np.asarray(contact.xyz, dtype=float)
    p = link.p + link.R @ offset
    J, bias, velocity = link.at(link.R @ offset)
    axes = align_z(np.asarray(contact.normal, dtype=float))
    desired = np.asarray(contact.acceleration, dtype=float)
    if other is None:
        carried, position, R = np.zeros(6), p, link.R
    else:
        J_o, bias_o, velocity_o = other.at(p - other.p)
        J, velocity, w = J - J_o, velocity - velocity_o, velocity_o[3:]
        turning = np.concatenate([2.0 * cross(w, velocity[:3]), cross(w, velocity[3:])])
        carried, bias = turning, bias - bias_o - turning
        position, R, axes = other.R.T @ (p - other.p), other.R.T @ link.R, other.R @ axes
        desired = _turned(other.R, desired)
    wanted = desired - contact.damping * velocity
    if contact.stiffness:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = R, position
        error = np.zeros(6)
        found = pose_error(np.asarray(contact.target, dtype=float), pose)
        error[: len(found)] = found
        wanted += contact.stiffness * (error if other is None else _turned(other.R, error))
    return ContactMotion(axes, offset, J, bias, velocity, carried, wanted)


def _turned(R: Array, vector: Array) -> Array:
    """A linear and an angular part (6,), both turned."""
    return np.concatenate([R @ vector[:3], R @ vector[3:]])


def wheel_motion(wheel: Wheel, link: LinkMotion) -> ContactMotion:
    """Where a wheel touches its plane: ``e (v_c + w x r) = 0`` for each held axis e, and its rate.

    r goes from the centre to the point that touches; it turns with the axle, not with the wheel.
    """
    n = align_z(np.asarray(wheel.normal, dtype=float))
    centre = link.R @ np.asarray(wheel.xyz, dtype=float)
    w = link.velocity[3:]
    axes, down, rates, down_rate = n, -n[:, 2], np.zeros((3, 3)), np.zeros(3)
    if wheel.axis is not None:
        a = link.R @ (np.asarray(wheel.axis, dtype=float) / np.linalg.norm(wheel.axis))
        a_rate = cross(w, a)
        if np.linalg.norm(cross(a, n[:, 2])) < FLAT:
            raise InputError(f"wheel {wheel.link!r} lies flat on its plane; it cannot roll there")
        x, x_rate = _unit(cross(a, n[:, 2]), cross(a_rate, n[:, 2]))
        y, y_rate = cross(n[:, 2], x), cross(n[:, 2], x_rate)
        axes = np.column_stack([x, y, n[:, 2]])
        rates = np.column_stack([x_rate, y_rate, np.zeros(3)])
        down, down_rate = cross(a, x), cross(a_rate, x) + cross(a, x_rate)
        if down @ n[:, 2] > 0.0:
            down, down_rate = -down, -down_rate
    r, r_rate = wheel.radius * down, wheel.radius * down_rate
    J, bias, velocity = link.at(centre + r)
    carried = np.zeros(6)
    carried[:3] = cross(w, cross(w, r) - r_rate) - axes @ (rates.T @ velocity[:3])
    wanted = -wheel.damping * velocity
    offset = link.R.T @ (centre + r)
    return ContactMotion(axes, offset, J, bias - carried, velocity, carried, wanted)


def _unit(x: Array, rate: Array) -> tuple[Array, Array]:
    """A vector over its length, and the rate of that."""
    length = np.linalg.norm(x)
    x = x / length
    return x, (rate - x * (x @ rate)) / length


def check_vector(where: str, name: str, given: ArrayLike) -> None:
    """Reject what is no direction."""
    vector = np.asarray(given, dtype=float)
    if vector.shape != (3,) or not np.isfinite(vector).all() or not vector.any():
        raise InputError(f"{where}: {name} {given!r}; give a vector, not zero")


def held_rows(where: str, contact: Contact) -> Sequence[str]:
    """Names of the directions that a contact holds; checked."""
    if contact.rows is not None:
        unknown = [row for row in contact.rows if row not in ROWS["weld"]]
        if unknown or not contact.rows:
            raise InputError(f"{where}: rows {contact.rows!r}; name some of {ROWS['weld']}")
        return contact.rows
    if contact.kind not in ROWS:
        raise InputError(f"{where}: kind {contact.kind!r}; use {', '.join(ROWS)}")
    return ROWS[contact.kind]


def check_numbers(where: str, contact: Contact) -> None:
    """Reject invalid accelerations, gains and targets."""
    if np.shape(contact.acceleration) != (6,) or not np.isfinite(contact.acceleration).all():
        raise InputError(f"{where}: acceleration {contact.acceleration!r}; give six numbers")
    gains = contact.stiffness, contact.damping
    if not all(np.isfinite(gain) and gain >= 0.0 for gain in gains):
        raise InputError(f"{where}: stiffness and damping are {gains}; give numbers from zero on")
    if contact.stiffness and contact.target is None:
        raise InputError(f"{where}: stiffness needs a target; give the point's position")
    if contact.target is not None:
        target = np.asarray(contact.target, dtype=float)
        if target.shape not in ((3,), (4, 4)) or not np.isfinite(target).all():
            raise InputError(f"{where}: target; give a position (3,) or a pose (4, 4)")
    check_weight(where, contact.weight)


def check_weight(where: str, weight: float) -> None:
    """Reject invalid weights."""
    if not 0.0 < weight < np.inf:
        raise InputError(f"{where}: weight is {weight!r}; give a positive number")


def check_wheel(where: str, wheel: Wheel) -> None:
    """Reject invalid wheels."""
    if not 0.0 < wheel.radius < np.inf:
        raise InputError(f"{where}: radius is {wheel.radius!r}; give a positive number [m]")
    if not 0.0 <= wheel.damping < np.inf:
        raise InputError(f"{where}: damping is {wheel.damping!r}; give a number from zero on")
    if np.shape(wheel.xyz) != (3,) or not np.isfinite(wheel.xyz).all():
        raise InputError(f"{where}: xyz {wheel.xyz!r}; give three numbers")
    check_vector(where, "normal", wheel.normal)
    if wheel.axis is not None:
        check_vector(where, "axis", wheel.axis)
    if not wheel.rows or any(row not in ("x", "y", "z") for row in wheel.rows):
        raise InputError(f"{where}: rows {wheel.rows!r}; name some of x, y, z")
    check_weight(where, wheel.weight)
