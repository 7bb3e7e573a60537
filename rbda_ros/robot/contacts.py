"""Contacts with the world, as users describe them, and the answers that they get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.contact_rows import ContactFrame
from rbda_ros.algorithms.kinematics import BodyFrame
from rbda_ros.errors import InputError
from rbda_ros.spatial import Array, align_z

Kind = Literal["point", "surface", "weld"]
Route = Literal["constrained_aba", "prox_pv", "prox_ltl", "prox_ltls"]

ROWS: dict[str, tuple[str, ...]] = {
    "point": ("x", "y", "z"),
    "surface": ("z", "rx", "ry"),
    "weld": ("x", "y", "z", "rx", "ry", "rz"),
}
"""What each kind of contact holds, along and about its own axes; z is the normal."""

SETTINGS = {"constrained_aba": (1e3, 4), "prox_pv": (1e6, 3), "prox_ltl": (1e6, 3)}
SETTINGS["prox_ltls"] = SETTINGS["constrained_aba"]
"""Weight of the constraints, in robot masses, and iterations of one call of the kernel. In
constrainedABA and proxLTLs the weight stands beside inertias: too much of it rounds them away."""


@dataclass(frozen=True)
class Stop:
    """When a proximal algorithm has done enough.

    Attributes:
        tolerance: what contacts may miss of their accelerations, relative to the largest
            acceleration.
        iterations: most of them; they come in the steps of SETTINGS.
    """

    tolerance: float = 1e-10
    iterations: int = 100

    def __post_init__(self) -> None:
        if not self.tolerance > 0.0:
            raise InputError(f"tolerance is {self.tolerance!r}; give a positive number")
        if self.iterations < 1:
            raise InputError(f"max_iterations is {self.iterations!r}; give one at least")


@dataclass(frozen=True)
class Contact:
    """A place where the world holds a link.

    Attributes:
        link: the link.
        xyz: the contact's point in the link's frame [m].
        kind: ``point`` holds the point, ``weld`` also the orientation; ``surface`` holds the link
            flat on a plane, on which it may slide and spin.
        normal: the contact's z axis, in world axes.
        rows: what is held instead, of x, y, z, rx, ry, rz along and about the contact's axes.
        acceleration: (6,) wanted of the point, linear then angular, in world axes
            [m/s^2, rad/s^2].
        target: where the point should be, for stabilization: (3,) position, or (4, 4) pose [m].
        stiffness: added acceleration per distance from the target [1/s^2] (Baumgarte).
        damping: added acceleration per velocity of the point [1/s].
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


@dataclass(frozen=True, eq=False)
class ConstrainedMotion:
    """Motion of a robot in contact.

    Attributes:
        ydd: (ny) independent acceleration.
        forces: (c, 6) force then moment that each contact exerts on the robot, at its point, in
            world axes [N, N m].
        residual: most that a contact's acceleration misses of the wanted one [m/s^2, rad/s^2];
            not zero where contacts contradict each other, and least in squares then.
        iterations: of the proximal algorithm.
        converged: whether residual, or its last change, came below the tolerance.
    """

    ydd: Array
    forces: Array
    residual: float
    iterations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Impact:
    """What a plastic or elastic impact does.

    Attributes:
        yd: (ny) independent velocity after it.
        impulses: (c, 6) linear then angular, on the robot, at each contact, in world axes
            [N s, N m s].
    """

    yd: Array
    impulses: Array


@dataclass(frozen=True, eq=False)
class ContactEfforts:
    """Forces that a motion in contact takes.

    Attributes:
        tau: (ny) generalized force; zero on what no actuator drives, such as a floating base.
        forces: (c, 6) force then moment of each contact on the robot, in world axes [N, N m]:
            of all that do, the ones of least norm.
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
    """

    frames: tuple[ContactFrame, ...]
    axes: Array
    contacts: tuple[Contact, ...]

    @property
    def offset(self) -> bool:
        """Whether some are elsewhere than at the origin of their link."""
        return any(np.any(contact.xyz) for contact in self.contacts)

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
    def flat_axes(self) -> Array:
        """(9c,) axis by axis."""
        return self.axes.transpose(0, 2, 1).ravel()

    def along_axes(self, jacobians: Sequence[Array]) -> Array:
        """Rows (m, n) along the contacts' own axes, from world-aligned Jacobians (6, n)."""
        rows = []
        for J, frame, axes in zip(jacobians, self.frames, self.axes, strict=True):
            rows += [(axes.T @ J[:3])[list(frame.linear)], (axes.T @ J[3:])[list(frame.angular)]]
        return np.vstack(rows)

    def in_world(self, along: Array) -> Array:
        """Forces (c, 6) in world axes, from those along the rows (m,)."""
        forces, start = np.zeros((len(self.frames), 6)), 0
        for c, (frame, axes) in enumerate(zip(self.frames, self.axes, strict=True)):
            middle, end = start + len(frame.linear), start + frame.size
            forces[c, :3] = axes[:, list(frame.linear)] @ along[start:middle]
            forces[c, 3:] = axes[:, list(frame.angular)] @ along[middle:end]
            start = end
        return forces


def place_contact(where: str, contact: Contact, at: BodyFrame) -> tuple[ContactFrame, Array]:
    """A contact on its body, and the contact's axes (3, 3) in the world; checked.

    Args:
        where: which one it is, for messages.
        contact: as it was given.
        at: its point on its body.
    """
    if not at.body:
        raise InputError(f"{where}: the link does not move; name one that does")
    normal = np.asarray(contact.normal, dtype=float)
    if normal.shape != (3,) or not np.isfinite(normal).all() or not normal.any():
        raise InputError(f"{where}: normal {contact.normal!r}; give a vector in world axes")
    rows = _rows(where, contact)
    linear = tuple(i for i, name in enumerate("xyz") if name in rows)
    angular = tuple(i for i, name in enumerate("xyz") if f"r{name}" in rows)
    x, y, z = at.frame.p.tolist()
    return ContactFrame(at.body, (x, y, z), linear, angular), align_z(normal)


def _rows(where: str, contact: Contact) -> Sequence[str]:
    if contact.rows is not None:
        unknown = [row for row in contact.rows if row not in ROWS["weld"]]
        if unknown or not contact.rows:
            raise InputError(f"{where}: rows {contact.rows!r}; name some of {ROWS['weld']}")
        return contact.rows
    if contact.kind not in ROWS:
        raise InputError(f"{where}: kind {contact.kind!r}; use {', '.join(ROWS)}")
    return ROWS[contact.kind]


def check_numbers(where: str, contact: Contact) -> None:
    """Refuse accelerations, gains and targets that are none."""
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
