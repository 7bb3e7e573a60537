"""Robots in contact with the world: forward and inverse dynamics, impacts.

The functions here are methods of `Robot`, which checks states; names and numpy arrays go in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.algorithms.contact_rows import ContactFrame, Proximal
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.trace import trace_contacts, trace_damped_delassus_inverse
from rbda_ros.robot.poses import pose_error
from rbda_ros.spatial import align_z

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

Array = NDArray[np.float64]
Kind = Literal["point", "surface", "weld"]
Route = Literal["constrained_aba", "prox_pv", "prox_ltl"]

ROWS: dict[str, tuple[str, ...]] = {
    "point": ("x", "y", "z"),
    "surface": ("z", "rx", "ry"),
    "weld": ("x", "y", "z", "rx", "ry", "rz"),
}
"""What each kind of contact holds, along and about its own axes; z is the normal."""

SETTINGS = {"constrained_aba": (1e3, 4), "prox_pv": (1e6, 3), "prox_ltl": (1e6, 3)}
"""Weight of the constraints, in robot masses, and iterations of one call of the kernel. In
constrainedABA the weight stands beside inertias: too much of it rounds them away."""


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
class _Contacts:
    """Contacts as kernels take them."""

    key: tuple[object, ...]
    frames: tuple[ContactFrame, ...]
    axes: Array  # (c, 3, 3)
    contacts: tuple[Contact, ...]

    @property
    def rows(self) -> int:
        return sum(frame.size for frame in self.frames)


def constrained_forward_dynamics(
    robot: Robot,
    q: Array,
    yd: Array,
    tau: Array,
    contacts: Sequence[Contact],
    stop: Stop,
    route: Route,
) -> ConstrainedMotion:
    """See `Robot.constrained_forward_dynamics`; the state is checked already."""
    read = _read(robot, contacts)
    desired = np.array([_wanted(robot, q, yd, contact) for contact in contacts])
    kernel, each = _kernel(robot, read, route, impact=False)
    return _iterate(robot, kernel, each, read, (q, yd, tau), desired, stop)


def impact(
    robot: Robot, q: Array, yd: Array, contacts: Sequence[Contact], restitution: float
) -> Impact:
    """See `Robot.impact`; the state is checked already."""
    if not 0.0 <= restitution <= 1.0:
        raise InputError(f"restitution is {restitution!r}; give a number from 0 to 1")
    read = _read(robot, contacts)
    kernel, each = _kernel(robot, read, "constrained_aba", impact=True)
    nothing = np.zeros(robot.ny)
    change = np.array([-(1.0 + restitution) * _velocity(robot, q, yd, c) for c in contacts])
    solved = _iterate(robot, kernel, each, read, (q, nothing, nothing), change, Stop())
    return Impact(yd + solved.ydd, solved.forces)


def share_among_contacts(
    robot: Robot, q: Array, tau: Array, contacts: Sequence[Contact]
) -> ContactEfforts:
    """Give actuators and contacts their parts of a force on y (ny): the contacts the smallest.

    See `Robot.contact_inverse_dynamics`; the position is checked already.
    """
    read = _read(robot, contacts)
    J = np.vstack([np.zeros((0, robot.ny)), *_jacobians(robot, q, read)])
    # Actuators give forces in the rows of W; contacts must give what is across them.
    W = robot.spanning_velocity(q, np.eye(robot.ny)).T[list(robot.tree.actuated)]
    across = np.eye(robot.ny) - np.linalg.pinv(W, rcond=1e-10) @ W
    f = np.linalg.lstsq(across @ J.T, across @ tau, rcond=1e-10)[0].astype(float)
    tau = tau - J.T @ f
    residual = across @ tau
    return ContactEfforts(
        tau - residual, _in_world(read, f), float(np.abs(residual).max(initial=0.0))
    )


def damped_delassus_inverse(
    robot: Robot, q: Array, contacts: Sequence[Contact], mu: float
) -> Array:
    """See `Robot.damped_delassus_inverse`; the position is checked already."""
    if not 0.0 < mu < np.inf:
        raise InputError(f"mu is {mu!r}; give a positive number")
    read = _read(robot, contacts)
    kernel = robot.kept(
        ("damped_delassus_inverse", mu, *read.key),
        lambda: trace_damped_delassus_inverse(robot.tree, read.frames, mu),
    )
    return kernel.call(q, _flat_axes(read))[0].reshape(read.rows, read.rows)


def contact_kernel(robot: Robot, contacts: Sequence[Contact], route: Route) -> Kernel:
    """See `Robot.contact_kernel`."""
    return _kernel(robot, _read(robot, contacts), route, impact=False)[0]


def _iterate(
    robot: Robot,
    kernel: Kernel,
    each: int,
    read: _Contacts,
    state: tuple[Array, Array, Array],
    desired: Array,
    stop: Stop,
) -> ConstrainedMotion:
    """Call a kernel, each time from the forces of the last, until its contacts are satisfied."""
    along, iterations, converged = np.zeros(read.rows), 0, False
    while not converged and iterations < stop.iterations:
        inputs = (*state, _flat_axes(read), desired.ravel(), along)
        ydd, forces, along, (residual, change) = kernel.call(*inputs)
        if not np.isfinite(ydd).all():
            raise SingularityError(
                f"{robot.name}: the mass matrix is singular here; a link may have no inertia"
            )
        iterations += each
        enough = stop.tolerance * np.abs(ydd).max(initial=1.0)
        converged = bool(min(residual, change) <= enough)
    return ConstrainedMotion(ydd, forces.reshape(-1, 6), float(residual), iterations, converged)


def _kernel(robot: Robot, read: _Contacts, route: Route, *, impact: bool) -> tuple[Kernel, int]:
    """The kernel for these contacts, and how often it iterates."""
    if route not in SETTINGS:
        raise InputError(f"route {route!r} is unknown; use {', '.join(SETTINGS)}")
    loops = robot.open_loops
    route = "prox_pv" if loops is not None else route
    weight, iterations = SETTINGS[route]
    proximal = Proximal(weight * (robot.mass or 1.0), iterations)

    def traced() -> Kernel:
        # An impact is the same problem without gravity: changes of velocity for accelerations.
        still = (0.0, 0.0, 0.0) if impact else robot.tree.gravity
        tree = replace(robot.tree, gravity=still)
        opened = loops and replace(loops, closed=tree, tree=replace(loops.tree, gravity=still))
        return trace_contacts(tree, read.frames, proximal, route, opened)

    return robot.kept(("contacts", route, impact, *read.key), traced), iterations


def _read(robot: Robot, contacts: Sequence[Contact]) -> _Contacts:
    """Check contacts, and find the bodies they are on."""
    if not contacts:
        raise InputError("contacts: give at least one")
    keys: list[object] = []
    frames, axes = [], []
    for number, contact in enumerate(contacts):
        where = f"contacts[{number}] on {contact.link!r}"
        _check_numbers(where, contact)
        rows = None if contact.rows is None else tuple(contact.rows)
        place = contact.link, tuple(contact.xyz), contact.kind, tuple(contact.normal), rows
        key, frame, own_axes = robot.kept(
            ("contact", *place), partial(_placed, robot, where, contact)
        )
        keys += [key, frame.linear, frame.angular]
        frames.append(frame)
        axes.append(own_axes)
    return _Contacts(tuple(keys), tuple(frames), np.array(axes), tuple(contacts))


def _placed(robot: Robot, where: str, contact: Contact) -> tuple[str, ContactFrame, Array]:
    """A key for a contact's place, the place, and the contact's axes (3, 3) in the world."""
    key, at = robot.body_frame((contact.link, contact.xyz))
    if not at.body:
        raise InputError(f"{where}: the link does not move; name one that does")
    normal = np.asarray(contact.normal, dtype=float)
    if normal.shape != (3,) or not np.isfinite(normal).all() or not normal.any():
        raise InputError(f"{where}: normal {contact.normal!r}; give a vector in world axes")
    held = _rows(where, contact)
    linear = tuple(i for i, name in enumerate("xyz") if name in held)
    angular = tuple(i for i, name in enumerate("xyz") if f"r{name}" in held)
    return key, ContactFrame(at.body, at.frame.p, linear, angular), align_z(normal)


def _rows(where: str, contact: Contact) -> Sequence[str]:
    if contact.rows is not None:
        unknown = [row for row in contact.rows if row not in ROWS["weld"]]
        if unknown or not contact.rows:
            raise InputError(f"{where}: rows {contact.rows!r}; name some of {ROWS['weld']}")
        return contact.rows
    if contact.kind not in ROWS:
        raise InputError(f"{where}: kind {contact.kind!r}; use {', '.join(ROWS)}")
    return ROWS[contact.kind]


def _check_numbers(where: str, contact: Contact) -> None:
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


def _wanted(robot: Robot, q: Array, yd: Array, contact: Contact) -> Array:
    """Acceleration (6,) that a contact should have, with Baumgarte's terms."""
    wanted = np.array(contact.acceleration, dtype=float)
    if contact.damping:
        wanted -= contact.damping * _velocity(robot, q, yd, contact)
    if contact.stiffness:
        pose = robot.frame_pose(q, (contact.link, contact.xyz))
        target = np.asarray(contact.target, dtype=float)
        error = pose_error(target, pose)
        wanted[: len(error)] += contact.stiffness * error
    return wanted


def _velocity(robot: Robot, q: Array, yd: Array, contact: Contact) -> Array:
    """Velocity (6,) of a contact's point, linear then angular, in world axes."""
    return robot.jacobian(q, (contact.link, contact.xyz)) @ yd


def _jacobians(robot: Robot, q: Array, read: _Contacts) -> list[Array]:
    """Rows (m, ny) of each contact, along its own axes."""
    found = []
    for contact, frame, axes in zip(read.contacts, read.frames, read.axes, strict=True):
        J = robot.jacobian(q, (contact.link, contact.xyz))
        found += [(axes.T @ J[:3])[list(frame.linear)], (axes.T @ J[3:])[list(frame.angular)]]
    return found


def _in_world(read: _Contacts, along: Array) -> Array:
    """Forces (c, 6) in world axes, from those along the rows (m,) of the contacts' own axes."""
    forces, start = np.zeros((len(read.frames), 6)), 0
    for c, (frame, axes) in enumerate(zip(read.frames, read.axes, strict=True)):
        middle, end = start + len(frame.linear), start + frame.size
        forces[c, :3] = axes[:, list(frame.linear)] @ along[start:middle]
        forces[c, 3:] = axes[:, list(frame.angular)] @ along[middle:end]
        start = end
    return forces


def _flat_axes(read: _Contacts) -> Array:
    """Axes (3 x 3c), column by column."""
    return read.axes.transpose(0, 2, 1).ravel()
