"""Steps of a robot whose contacts push, stick and slide, whose joints have limits and dry friction.

Forward and inverse, for one state or many. The impulses are found on the Delassus matrix
``J H^-1 J'`` of all constraints together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.algorithms.contact_rows import ContactFrame
from rbda_ros.engine import core
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.robot.contact_dynamics import (
    contact_frame,
    contact_motions,
    read_contacts,
    singular_message,
    undriven,
)
from rbda_ros.robot.contacts import Contact, Wheel
from rbda_ros.robot.friction_contacts import (
    BOX,
    CONE,
    EQUALITY,
    NO_ROWS,
    POSITIVE,
    RECOVERY,
    FrictionalEfforts,
    FrictionalStep,
    FrictionContact,
    Key,
    Rows,
    SolverSettings,
    solve_cones,
    stacked,
)
from rbda_ros.robot.inputs import NOWHERE
from rbda_ros.robot.operations import Position
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array, align_z, cross_matrix

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

NEAR_LIMIT = 0.1
"""Limits are part of the problem below this distance, or that of two steps [rad, m]."""
LEAST = 1e-9
"""Weight of the size of forces in inverse dynamics: of all forces that give a motion it selects
small ones."""
MOVES = 1e-9
"""Velocity of a contact above which inverse dynamics takes it to slide or to lift off [m/s]."""


def frictional_step(
    robot: Robot,
    q: Position,
    qd: ArrayLike,
    tau: ArrayLike,
    contacts: Sequence[FrictionContact],
    dt: float,
    *,
    held: Sequence[Contact | Wheel] = (),
    distances: ArrayLike | None = None,
    joint_limits: bool = True,
    joint_friction: bool = True,
    warm_start: FrictionalStep | None = None,
    tolerance: float = 1e-10,
    max_iterations: int = 500,
) -> FrictionalStep:
    """Velocity after a step of contacts, limits and dry friction: semi-implicit, exact cones.

    ``H (yd+ - yd) = dt (tau - C) + J' p``, with impulses p that satisfy Signorini's condition
    and Coulomb's law at the velocity after the step (see `friction_contacts`). A position
    follows from ``integrate`` with yd+.

    Args:
        q: (nq,) spanning position, or independent position; or a batch.
        qd: (nv,) spanning velocity, or (ny,) independent velocity; or a batch.
        tau: (ny,) force on y, or (nv,) forces on every joint of the spanning tree.
        contacts: points that may touch; the same for all states of a batch.
        dt: the step [s].
        held: contacts and wheels that hold in both directions; for single states.
        distances: (..., c) distances of the points from their planes [m]; None for those of the
            contacts.
        joint_limits: whether the limits of joints hold.
        joint_friction: whether dry friction and damping of joints act.
        warm_start: the last step, whose impulses to start from.
        tolerance: largest error of the velocities [m/s].
        max_iterations: largest number of iterations of the solver.

    Raises:
        SingularityError: the mass matrix is singular.
    """
    state = robot.state(q, qd)
    _check_step(dt)
    force = robot._generalized(state, robot._inputs.vector("tau", tau, robot.ny, robot.nv))
    settings = SolverSettings(tolerance, max_iterations)
    if joint_friction and robot._joint_resistance[0].any():
        resisting = robot._joint_resistance[0] * robot.spanning_velocity(state, state.yd)
        force = force - robot.generalized_force(state, resisting)
    touching = _contact_set(robot, contacts)
    ydd, axes, J, X, A = _response(robot, state, force, touching)
    batch, ny = ydd.shape[:-1], robot.ny
    yd = _of_all(state.yd, batch, ny)
    others = _other_rows(robot, state, yd, ydd, dt, joint_limits, joint_friction, held)
    inverse = None
    if others.kinds or X is None:
        inverse = robot._evaluate("mass_matrix_inverse", state.q)[0]
        inverse = _of_all(inverse, batch, inverse.shape[-1])
    gaps = touching.distances
    if distances is not None:
        gaps = robot._inputs.vector("distances", distances, len(touching.keys))
        if gaps.shape[:-1] not in ((), batch):
            raise InputError(f"distances has shape {gaps.shape}; give a row for each state")
    keys, kinds = (*touching.keys, *others.keys), touching.kinds + others.kinds
    parameters = np.concatenate([touching.numbers[:, 0], others.parameters])
    m = 3 * len(touching.keys) + len(others.kinds)
    solved = core.frictional_steps(
        kinds,
        dt,
        RECOVERY,
        settings.tolerance,
        settings.iterations,
        touching.numbers,
        parameters,
        None if warm_start is None else _matched(keys, (*batch, m), warm_start),
        yd,
        ydd,
        _of_all(gaps, batch, len(touching.keys)),
        axes,
        J,
        X,
        A,
        _of_all(others.J, batch, len(others.kinds), ny),
        _of_all(others.b, batch, len(others.kinds)),
        inverse,
    )
    if solved is None:
        raise SingularityError(singular_message(robot))
    after, mean, forces, p, b, velocities, J, missed, iterations, R = solved
    rows = Rows(keys, kinds, J, b, R, parameters)
    along = _joint_forces(robot, rows, p / dt) if others.keys else np.zeros((*batch, robot.nv))
    converged = np.asarray(missed <= settings.tolerance)
    return FrictionalStep(
        after, mean, forces, along, p, rows, velocities, missed, iterations, converged
    )


def frictional_inverse_dynamics(
    robot: Robot,
    q: Position,
    qd: ArrayLike,
    ydd: ArrayLike,
    contacts: Sequence[FrictionContact],
    dt: float,
) -> FrictionalEfforts:
    """Forces of actuators and contacts that give ydd, each contact's inside its cone.

    The inverse of `frictional_step`: with ``yd+ = yd + dt ydd``, a contact that lifts off exerts no
    force, a sliding one pushes against its slip, and a compliant one exerts the force of its
    compliance. The forces of sticking contacts are chosen so that as little as possible remains for
    coordinates without an actuator.

    Args:
        q: (nq,) spanning position, or independent position; or a batch.
        qd: (nv,) spanning velocity, or (ny,) independent velocity; or a batch.
        ydd: (ny,) independent acceleration; or a batch.
        contacts: points that touch; the same for all states of a batch.
        dt: the step [s].
    """
    state, ydd = robot.state(q, qd), robot._inputs.vector("ydd", ydd, robot.ny)
    _check_step(dt)
    batch = np.broadcast_shapes(state.q.shape[:-1], state.yd.shape[:-1], ydd.shape[:-1])
    if not batch:
        return _inverse_of_one(robot, state, ydd, contacts, dt)
    given = _of_all(state.q, batch, robot.nq), _of_all(state.yd, batch, robot.ny)
    each = [
        _inverse_of_one(robot, robot.state(q_n, yd_n), ydd_n, contacts, dt)
        for q_n, yd_n, ydd_n in zip(*given, _of_all(ydd, batch, robot.ny), strict=True)
    ]
    return FrictionalEfforts(
        np.array([one.tau for one in each]).reshape(*batch, robot.ny),
        np.array([one.forces for one in each]).reshape(*batch, len(contacts), 3),
        np.array([one.residual for one in each]),
    )


def _inverse_of_one(
    robot: Robot, state: State, ydd: Array, contacts: Sequence[FrictionContact], dt: float
) -> FrictionalEfforts:
    """`frictional_inverse_dynamics` of one state."""
    touching = _contact_set(robot, contacts)
    axes, J = _contact_places(robot, state, contacts)
    b, R = core.contact_biases(
        dt, RECOVERY, touching.numbers, touching.distances, J[2::3] @ state.yd
    )
    rows = Rows(touching.keys, touching.kinds, J, b, R, touching.numbers[:, 0])
    needed = robot.inverse_dynamics(state, state.yd, ydd)
    c = rows.J @ (state.yd + dt * ydd) + rows.b
    across = undriven(robot, state)
    given, kinds, mu, D = _determined(rows, c)
    # Of the others: | across (needed - J' (given + D f)) |, least.
    B = D.T @ rows.J @ across
    short = across @ (needed - rows.J.T @ (given / dt))
    damping = LEAST * max(float(np.trace(B @ B.T)), 1e-12) / max(len(B), 1)
    A, f = B @ B.T + damping * np.eye(len(B)), np.zeros(len(B))
    for _ in range(3):  # proximal: the weight of the forces plays no part in the end
        g = -(B @ short) - damping * f
        f, _, _ = solve_cones(kinds, A, g, mu, f, SolverSettings(1e-12), coulomb=False)
    p = given / dt + D @ f
    tau = needed - rows.J.T @ p
    residual = across @ tau
    forces = (axes @ p.reshape(-1, 3, 1))[..., 0]
    return FrictionalEfforts(tau - residual, forces, float(np.abs(residual).max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class ContactSet:
    """Contacts, and their data that are the same at every state.

    Attributes:
        contacts: themselves; their identity is the key by which this is found.
        keys, kinds: of their rows.
        numbers: (c, 4) friction, stiffness, damping and restitution of each.
        distances: (c,) above their planes.
        kernel: of their responses; None where a plane is on another link.
        axes: (c, 3, 3) of each, as columns in world axes.
        points: (3c,) on their bodies.
        flat_axes: (9c,) for the kernel.
    """

    contacts: tuple[FrictionContact, ...]
    keys: tuple[Key, ...]
    kinds: str
    numbers: Array
    distances: Array
    kernel: Kernel | None
    axes: Array
    points: Array
    flat_axes: Array


def _contact_set(robot: Robot, contacts: Sequence[FrictionContact]) -> ContactSet:
    if not isinstance(contacts, Sequence):
        raise InputError(f"contacts: {contacts!r} is no list; give one of FrictionContact")
    key = tuple(map(id, contacts))
    found = robot._friction_sets.get(key)
    if found is not None:
        return found
    for c, contact in enumerate(contacts):
        if not isinstance(contact, FrictionContact):
            raise InputError(f"contacts[{c}] is {contact!r}; give a FrictionContact")
    found = _new_contact_set(robot, tuple(contacts))
    # Contacts with lists or arrays in them may change: they are read again each time.
    if all(isinstance(c.xyz, tuple) and isinstance(c.normal, tuple) for c in contacts):
        robot._friction_sets.put(key, found)
    return found


def _new_contact_set(robot: Robot, contacts: tuple[FrictionContact, ...]) -> ContactSet:
    placed = [_place(robot, c, contact) for c, contact in enumerate(contacts)]
    axes = np.array([axes for _, axes in placed]).reshape(-1, 3, 3)
    numbers = [(c.friction, c.stiffness, c.damping, c.restitution) for c in contacts]
    kernel = None
    if contacts and all(contact.to is None for contact in contacts):
        frames = tuple(replace(frame, point=NOWHERE) for frame, _ in placed)
        kernel = robot._kernels.get("contact_response", frames)
    return ContactSet(
        contacts,
        tuple(("contact", c, 0.0) for c in range(len(contacts))),
        CONE * len(contacts),
        np.array(numbers, dtype=float).reshape(-1, 4),
        np.array([contact.distance for contact in contacts], dtype=float),
        kernel,
        np.ascontiguousarray(axes),
        np.concatenate([np.zeros(0), *(frame.point for frame, _ in placed)]),
        axes.transpose(0, 2, 1).ravel(),
    )


def _response(
    robot: Robot, state: State, force: Array, touching: ContactSet
) -> tuple[Array, Array, Array, Array | None, Array | None]:
    """ydd (..., ny) without contacts; their axes and J; ``H^-1 J'`` and ``J H^-1 J'`` if known."""
    if touching.kernel is not None:
        given = state.q, state.yd, force, touching.flat_axes, touching.points
        ydd, J, X, A = robot._evaluate(touching.kernel, *given)
        return ydd, touching.axes, J, X, A
    ydd = robot.forward_dynamics(state, state.yd, force)
    axes, J = _contact_places(robot, state, touching.contacts)
    return ydd, axes, _of_all(J, ydd.shape[:-1], 3 * len(touching.keys), robot.ny), None, None


def _contact_places(
    robot: Robot, state: State, contacts: Sequence[FrictionContact]
) -> tuple[Array, Array]:
    """Axes (..., c, 3, 3) of contacts in the world, and J (..., 3c, ny) along them."""
    batch = state.q.shape[:-1]
    axes, J = [np.zeros((*batch, 0, 3, 3))], [np.zeros((*batch, 0, robot.ny))]
    for contact in contacts:
        own_axes, rows = contact_place(robot, state, contact)
        axes.append(own_axes[..., None, :, :])
        J.append(rows)
    return np.concatenate(axes, axis=-3), np.concatenate(J, axis=-2)


def _of_all(array: Array, batch: tuple[int, ...], *shape: int) -> Array:
    """An array (*batch, *shape), contiguous; that of a single state is repeated."""
    if array.shape == (*batch, *shape):
        return np.ascontiguousarray(array)
    return np.ascontiguousarray(np.broadcast_to(array, (*batch, *shape)))


def _other_rows(
    robot: Robot,
    state: State,
    yd: Array,
    ydd: Array,
    dt: float,
    joint_limits: bool,
    joint_friction: bool,
    held: Sequence[Contact | Wheel],
) -> Rows:
    """Rows of limits, of dry friction and of what is held."""
    parts = []
    limited = joint_limits and len(robot._scalar_limits[0]) > 0
    rubbing = joint_friction and bool(robot._joint_resistance[1].any())
    if limited or rubbing:
        G = _joint_map(robot, state, yd.shape[:-1])
        if limited:
            parts.append(_limit_rows(robot, state, yd, ydd, G, dt))
        if rubbing:
            parts.append(_friction_rows(robot, G, dt))
    if held:
        if yd.ndim > 1:
            raise InputError("held: only for single states; leave it out for a batch")
        parts.append(_held_rows(robot, state, held))
    parts = [rows for rows in parts if rows.kinds]
    return stacked(parts, yd.shape[:-1], robot.ny) if parts else NO_ROWS


def _place(robot: Robot, number: int, contact: FrictionContact) -> tuple[ContactFrame, Array]:
    """A contact on its body, and its axes (3, 3); checked."""
    where = f"contacts[{number}] on {contact.link!r}"
    contact.check(where)
    frame = contact_frame(robot, where, Contact(contact.link, contact.xyz, normal=contact.normal))
    return frame, align_z(np.asarray(contact.normal, dtype=float))


def contact_place(robot: Robot, state: State, contact: FrictionContact) -> tuple[Array, Array]:
    """Axes (..., 3, 3) of a contact in the world, and its rows (..., 3, ny) along them."""
    pose, J = robot.frame_pose(state, contact.link), robot.jacobian(state, contact.link)
    r = pose[..., :3, :3] @ np.asarray(contact.xyz, dtype=float)
    linear = J[..., :3, :] - cross_matrix(r) @ J[..., 3:, :]
    axes = align_z(np.asarray(contact.normal, dtype=float))
    if contact.to is not None:
        other, J_o = robot.frame_pose(state, contact.to), robot.jacobian(state, contact.to)
        r = pose[..., :3, 3] + r - other[..., :3, 3]
        linear = linear - (J_o[..., :3, :] - cross_matrix(r) @ J_o[..., 3:, :])
        axes = other[..., :3, :3] @ axes
    axes = np.broadcast_to(axes, pose[..., :3, :3].shape)
    return axes, np.swapaxes(axes, -1, -2) @ linear


def _joint_map(robot: Robot, state: State, batch: tuple[int, ...]) -> Array | None:
    """G (..., nv, ny); None for the identity."""
    if not robot.has_loops:
        return None
    G = robot._evaluate("velocity_map", state.q)[0]
    return _of_all(G.reshape(*G.shape[:-1], -1, robot.ny), batch, robot.nv, robot.ny)


def _limit_rows(
    robot: Robot, state: State, yd: Array, ydd: Array, G: Array | None, dt: float
) -> Rows:
    """Limits of joints of one coordinate that some state is near, seen from inside."""
    places, rates, bounds = robot._scalar_limits
    q = _of_all(state.q, yd.shape[:-1], robot.nq)
    near = core.near_limits(dt, NEAR_LIMIT, q, yd, ydd, G, places, rates, bounds)
    if near is None:
        return NO_ROWS
    chosen = np.argwhere(near)
    sides = np.array([1.0, -1.0])[chosen[:, 0]]
    joints, bound = rates[chosen[:, 1]], bounds[chosen[:, 0], chosen[:, 1]]
    J = sides[:, None] * (np.eye(robot.ny) if G is None else G)[..., joints, :]
    b = _recovered(sides * (q[..., places[chosen[:, 1]]] - bound), dt)
    keys = [("limit", int(j), float(side)) for j, side in zip(joints, sides, strict=True)]
    none = np.zeros(len(keys))
    return Rows(tuple(keys), POSITIVE * len(keys), J, b, none, none)


def scalar_limits(robot: Robot) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Of the joints of one coordinate: places in q and in qd, and bounds (2, n)."""
    scalar = robot.coordinates.scalar_positions
    places = np.array(list(scalar.values()), dtype=np.intp)
    rates = [robot.coordinates.velocities[joint].start for joint in scalar]
    return (
        places,
        np.array(rates, dtype=np.intp),
        np.ascontiguousarray(np.stack([robot.limits.lower, robot.limits.upper])[:, places]),
    )


def _friction_rows(robot: Robot, G: Array | None, dt: float) -> Rows:
    """Dry friction of joints."""
    friction = robot._joint_resistance[1]
    joints = np.flatnonzero(friction)
    keys = tuple(("friction", int(j), 0.0) for j in joints)
    J = (np.eye(robot.ny) if G is None else G)[..., joints, :]
    none = np.zeros(len(joints))
    return Rows(keys, BOX * len(joints), J, none, none, dt * friction[joints])


def joint_resistance(robot: Robot) -> Array:
    """(2, nv) damping and dry friction of each velocity coordinate."""
    joints = [b.joint for b in robot.spanning_tree.bodies for _ in range(b.model.nv)]
    return np.array([[j.damping for j in joints], [j.friction for j in joints]]).reshape(2, -1)


def _held_rows(robot: Robot, state: State, held: Sequence[Contact | Wheel]) -> Rows:
    """Contacts that hold: velocities along their rows vanish."""
    read = read_contacts(robot, held, state)
    J = read.along_axes([motion.J for motion in contact_motions(robot, state, read)])
    none = np.zeros(len(J))
    keys = tuple(("held", row, 0.0) for row in range(len(J)))
    return Rows(keys, EQUALITY * len(J), J, none, none, none)


def _joint_forces(robot: Robot, rows: Rows, along: Array) -> Array:
    """(..., nv) of limits and dry friction, of those along the rows (..., m)."""
    forces = np.zeros((*along.shape[:-1], robot.nv))
    for (what, j, side), place in zip(rows.keys, rows.places, strict=True):
        if what in ("limit", "friction"):
            forces[..., j] += (side or 1.0) * along[..., place.start]
    return forces


def _check_step(dt: float) -> None:
    if not 0.0 < dt < np.inf:
        raise InputError(f"dt is {dt!r}; give a positive number [s]")


def _recovered(gap: Array, dt: float) -> Array:
    """b of rigid limits: a step may close a gap, and removes a part of a penetration."""
    gaps = gap.ravel()
    rigid = np.tile([0.0, np.inf, 0.0, 0.0], (gaps.size, 1))
    b, _ = core.contact_biases(dt, RECOVERY, rigid, gaps, np.zeros(gaps.size))
    return np.asarray(b[2::3].reshape(gap.shape), float)


def _matched(keys: Sequence[Key], shape: tuple[int, ...], before: FrictionalStep) -> Array:
    """Impulses (..., m) of the last step, of the blocks that were in it; zero for the others."""
    if before.rows.keys == tuple(keys) and before.impulses.shape == shape:
        return before.impulses
    start = np.zeros(shape)
    if before.impulses.shape[:-1] == shape[:-1]:
        known, at = dict(zip(before.rows.keys, before.rows.places, strict=True)), 0
        for key in keys:
            size = 3 if key[0] == "contact" else 1
            if key in known:
                start[..., at : at + size] = before.impulses[..., known[key]]
            at += size
    return start


def _determined(rows: Rows, c: Array) -> tuple[Array, str, Array, Array]:
    """Impulses that velocities c (m) determine, and directions D (m, k) of the others.

    Returns:
        impulses (m) of compliant contacts; kinds and coefficients of the others; D.
    """
    given, kinds = np.zeros(len(c)), ""
    mu: list[float] = []
    directions: list[Array] = [np.zeros((len(c), 0))]
    for b, place in enumerate(rows.places):
        friction, R = float(rows.parameters[b]), rows.compliance[place.start]
        if R:
            A = R * np.eye(3)
            start, coefficient = np.zeros(3), np.array([friction])
            given[place], _, _ = solve_cones(
                CONE, A, c[place], coefficient, start, SolverSettings()
            )
            continue
        slip = np.hypot(*c[place][:2])
        if c[place.start + 2] > MOVES:
            continue
        D = np.zeros((len(c), 3))
        D[place] = np.eye(3)
        if slip > MOVES:
            D = D[:, 2:] - friction * (D[:, :2] @ c[place][:2] / slip)[:, None]
        kinds += POSITIVE if slip > MOVES else CONE
        mu.append(friction)
        directions.append(D)
    return given, kinds, np.array(mu), np.hstack(directions)
