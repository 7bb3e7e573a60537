"""Steps of a robot whose contacts push, stick and slide, whose joints have limits and dry friction.

Forward and inverse, for one state or many. The impulses are found on the Delassus matrix
``J H^-1 J'`` of all constraints together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.algorithms.contact_rows import ALL, ContactFrame
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.robot.contact_dynamics import contact_motions, read_contacts, singular_message
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
    Rows,
    SolverSettings,
    solve_cones,
    stacked,
)
from rbda_ros.robot.inputs import NOWHERE
from rbda_ros.robot.operations import Position
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array, align_z

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

NEAR_LIMIT = 0.1
"""Limits nearer than this, or than two steps, are part of the problem [rad, m]."""
LEAST = 1e-9
"""Weight of the forces themselves beside what they must give, in inverse dynamics: of all that do,
small ones are taken."""
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
        distances: (..., c) how far the points are above their planes; None for those that the
            contacts say [m].
        joint_limits: whether the limits of joints hold.
        joint_friction: whether dry friction and damping of joints act.
        warm_start: the last step, whose impulses to start from.
        tolerance: what velocities may miss of the laws [m/s].
        max_iterations: most iterations of the solver.

    Raises:
        SingularityError: the mass matrix is singular.
    """
    state, force, settings = _step_arguments(robot, q, qd, tau, dt, tolerance, max_iterations)
    if joint_friction:
        damping = robot._joint_resistance[0]
        if damping.any():
            resisting = damping * robot.spanning_velocity(state, state.yd)
            force = force - robot.generalized_force(state, resisting)
    ydd, J, response = _response(robot, state, force, contacts)
    free = state.yd + dt * ydd
    parts = [_contact_rows(robot, state, contacts, J, dt, distances)]
    if joint_limits:
        parts.append(_limit_rows(robot, state, free, dt))
    if joint_friction:
        parts.append(_friction_rows(robot, state, dt))
    if held:
        if free.ndim > 1:
            raise InputError("held: only for single states; leave it out for a batch")
        parts.append(_held_rows(robot, state, held))
    batch = free.shape[:-1]
    present = [rows for rows in parts if rows.kinds] or [NO_ROWS]
    rows = stacked([rows.expanded(batch, robot.ny) for rows in present])
    response = _responses(robot, state, rows, response)
    A = rows.J @ response + rows.compliance[..., None] * np.eye(rows.b.shape[-1])
    g = _times(rows.J, free) + rows.b
    start = _matched(rows, warm_start)
    p, missed, iterations = solve_cones(rows.kinds, A, g, rows.parameters, start, settings)
    yd = free + _times(response, p)
    if not np.isfinite(yd).all():
        raise SingularityError(singular_message(robot))
    return FrictionalStep(
        yd,
        (yd - state.yd) / dt,
        _contact_forces(robot, state, contacts, p / dt),
        _joint_forces(robot, rows, p / dt),
        p,
        rows,
        _times(A, p) + g,
        missed,
        iterations,
        np.asarray(missed <= settings.tolerance),
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

    The inverse of `frictional_step`: with ``yd+ = yd + dt ydd`` a contact that lifts off exerts
    nothing, one that slides does so along its slip, a compliant one what its compliance says,
    and those that stick whatever leaves least to do where no actuator is.

    Args:
        q: (nq,) spanning position, or independent position; one state, not a batch.
        qd: (nv,) spanning velocity, or (ny,) independent velocity.
        ydd: (ny,) independent acceleration.
        contacts: points that touch.
        dt: the step [s].
    """
    state = robot._single_state(q, qd)
    ydd = robot._inputs.single("ydd", ydd, robot.ny)
    _check_step(dt)
    rows = _contact_rows(robot, state, contacts, _jacobian_of(robot, state, contacts), dt, None)
    needed = robot.inverse_dynamics(state, state.yd, ydd)
    c = rows.J @ (state.yd + dt * ydd) + rows.b
    W = robot.spanning_velocity(state, np.eye(robot.ny)).T[list(robot.tree.actuated)]
    across = np.eye(robot.ny) - np.linalg.pinv(W, rcond=1e-10) @ W
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
    return FrictionalEfforts(
        tau - residual,
        _contact_forces(robot, state, contacts, p),
        float(np.abs(residual).max(initial=0.0)),
    )


def _step_arguments(
    robot: Robot,
    q: Position,
    qd: ArrayLike,
    tau: ArrayLike,
    dt: float,
    tolerance: float,
    max_iterations: int,
) -> tuple[State, Array, SolverSettings]:
    state = robot.state(q, qd)
    _check_step(dt)
    force = robot._generalized(state, robot._inputs.vector("tau", tau, robot.ny, robot.nv))
    return state, force, SolverSettings(tolerance, max_iterations)


def _response(
    robot: Robot, state: State, force: Array, contacts: Sequence[FrictionContact]
) -> tuple[Array, Array, Array | None]:
    """ydd (..., ny) without contacts, J (..., m, ny) of contacts, and ``H^-1 J'`` if known."""
    places = _friction_places(robot, contacts)
    if not contacts or any(contact.to is not None for contact in contacts):
        parts = [contact_place(robot, state, contact)[1] for contact in contacts]
        none = np.zeros((*state.q.shape[:-1], 0, robot.ny))
        J = np.concatenate([none, *parts], axis=-2)
        return robot.forward_dynamics(state, state.yd, force), J, None
    frames = tuple(replace(frame, point=NOWHERE) for frame, _ in places)
    kernel = robot._kernels.get("contact_response", frames)
    axes = np.concatenate([axes.T.ravel() for _, axes in places])
    points = np.concatenate([frame.point for frame, _ in places])
    ydd, J, response, _ = robot._evaluate(kernel, state.q, state.yd, force, axes, points)
    J = J.reshape(*J.shape[:-1], -1, robot.ny)
    return ydd, J, response.reshape(*J.shape[:-2], robot.ny, J.shape[-2])


def _jacobian_of(robot: Robot, state: State, contacts: Sequence[FrictionContact]) -> Array:
    """J (3c, ny) of contacts at one state."""
    _friction_places(robot, contacts)
    parts = [contact_place(robot, state, contact)[1] for contact in contacts]
    return np.concatenate([np.zeros((0, robot.ny)), *parts])


def _responses(robot: Robot, state: State, rows: Rows, known: Array | None) -> Array:
    """``H^-1 J'`` (..., ny, m) of all rows, of which the first may be known."""
    count = 0 if known is None else known.shape[-1]
    if known is not None and count == rows.J.shape[-2]:
        return known
    L, others = robot.mass_matrix_factor(state), np.swapaxes(rows.J[..., count:, :], -1, -2)
    found = np.linalg.solve(L, np.linalg.solve(np.swapaxes(L, -1, -2), others))
    if known is None:
        return found
    found = np.broadcast_to(found, (*known.shape[:-1], found.shape[-1]))
    return np.concatenate([known, found], axis=-1)


def _contact_rows(
    robot: Robot,
    state: State,
    contacts: Sequence[FrictionContact],
    J: Array,
    dt: float,
    distances: ArrayLike | None,
) -> Rows:
    """Cones: two tangents and the normal of each contact, with Jacobian J (..., 3c, ny)."""
    batch = np.broadcast_shapes(state.q.shape[:-1], state.yd.shape[:-1])
    gaps = _heights(robot, contacts, distances, batch)
    b, R = np.zeros((*batch, 3 * len(contacts))), np.zeros(3 * len(contacts))
    b[..., 2::3] = _recovered(gaps, dt)
    for c, contact in enumerate(contacts):
        n, gap = 3 * c + 2, gaps[..., c]
        if np.isfinite(contact.stiffness):
            # p = -dt (k (gap + dt v) + d v): R = 1/(dt (dt k + d)), b = k gap / (dt k + d)
            both = dt * contact.stiffness + contact.damping
            R[3 * c : n + 1], b[..., n] = 1.0 / (dt * both), contact.stiffness * gap / both
        elif contact.restitution:
            approach = _times(J[..., n : n + 1, :], state.yd)[..., 0]
            hits = (gap <= 0.0) & (approach < 0.0)
            b[..., n] = np.where(hits, contact.restitution * approach, b[..., n])
    keys = tuple(("contact", c, 0.0) for c in range(len(contacts)))
    friction = np.array([contact.friction for contact in contacts], dtype=float)
    return Rows(keys, CONE * len(contacts), J, b, R, friction)


def _friction_places(
    robot: Robot, contacts: Sequence[FrictionContact]
) -> list[tuple[ContactFrame, Array]]:
    """Where contacts are on their bodies, and their axes (3, 3); checked."""
    if not isinstance(contacts, Sequence):
        raise InputError(f"contacts: {contacts!r} is no list; give one of FrictionContact")
    found = []
    for c, contact in enumerate(contacts):
        if not isinstance(contact, FrictionContact):
            raise InputError(f"contacts[{c}] is {contact!r}; give a FrictionContact")
        plain = isinstance(contact.xyz, tuple) and isinstance(contact.normal, tuple)
        own = contact if plain else _hashable(contact)
        found.append(
            robot._friction_contact_places.get_or_make(own, partial(_place, robot, c, own))
        )
    return found


def _place(robot: Robot, number: int, contact: FrictionContact) -> tuple[ContactFrame, Array]:
    where = f"contacts[{number}] on {contact.link!r}"
    contact.check(where)
    _, at = robot.body_frame((contact.link, contact.xyz))
    if not at.body:
        raise InputError(f"{where}: the link does not move; name one that does")
    x, y, z = at.frame.p.tolist()
    axes = align_z(np.asarray(contact.normal, dtype=float))
    return ContactFrame(at.body, (x, y, z), ALL, ()), axes


def contact_place(robot: Robot, state: State, contact: FrictionContact) -> tuple[Array, Array]:
    """Axes (..., 3, 3) of a contact in the world, and its rows (..., 3, ny) along them."""
    pose, J = robot.frame_pose(state, contact.link), robot.jacobian(state, contact.link)
    r = pose[..., :3, :3] @ np.asarray(contact.xyz, dtype=float)
    linear = J[..., :3, :] - _skew(r) @ J[..., 3:, :]
    axes = align_z(np.asarray(contact.normal, dtype=float))
    if contact.to is not None:
        other, J_o = robot.frame_pose(state, contact.to), robot.jacobian(state, contact.to)
        r = pose[..., :3, 3] + r - other[..., :3, 3]
        linear = linear - (J_o[..., :3, :] - _skew(r) @ J_o[..., 3:, :])
        axes = other[..., :3, :3] @ axes
    axes = np.broadcast_to(axes, pose[..., :3, :3].shape)
    return axes, np.swapaxes(axes, -1, -2) @ linear


def _heights(
    robot: Robot,
    contacts: Sequence[FrictionContact],
    distances: ArrayLike | None,
    batch: tuple[int, ...],
) -> Array:
    if distances is None:
        distances = [contact.distance for contact in contacts]
    heights = np.asarray(distances, dtype=float)
    if heights.shape[-1:] != (len(contacts),) or not np.isfinite(heights).all():
        raise InputError(
            f"distances: shape {heights.shape}; give {len(contacts)} numbers for each state [m]"
        )
    return np.broadcast_to(heights, (*batch, len(contacts)))


def _joint_map(robot: Robot, state: State) -> Array:
    """G (..., nv, ny)."""
    if not robot.tree.has_loops:
        return np.eye(robot.ny)
    G = robot._evaluate("velocity_map", state.q)[0]
    return G.reshape(*G.shape[:-1], -1, robot.ny)


def _limit_rows(robot: Robot, state: State, free: Array, dt: float) -> Rows:
    """Limits of joints of one coordinate that some state is near, seen from inside."""
    places, rates, bounds = robot._scalar_limits
    if not len(places):
        return NO_ROWS
    gaps = np.stack([state.q[..., places] - bounds[0], bounds[1] - state.q[..., places]])
    G = _joint_map(robot, state)
    velocity = _times(G, free)[..., rates]
    near = gaps < np.maximum(NEAR_LIMIT, 2.0 * dt * np.abs(velocity))
    chosen = np.argwhere(near.reshape(2, -1, len(places)).any(axis=1))
    if not len(chosen):
        return NO_ROWS
    sides = np.array([1.0, -1.0])[chosen[:, 0]]
    joints = rates[chosen[:, 1]]
    J = sides[:, None] * G[..., joints, :]
    b = _recovered(np.moveaxis(gaps[chosen[:, 0], ..., chosen[:, 1]], 0, -1), dt)
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
        np.stack([robot.limits.lower, robot.limits.upper])[:, places],
    )


def _friction_rows(robot: Robot, state: State, dt: float) -> Rows:
    """Dry friction of joints."""
    friction = robot._joint_resistance[1]
    joints = np.flatnonzero(friction)
    if not len(joints):
        return NO_ROWS
    keys = tuple(("friction", int(j), 0.0) for j in joints)
    none, J = np.zeros(len(joints)), _joint_map(robot, state)[..., joints, :]
    return Rows(keys, BOX * len(joints), J, none, none, dt * friction[joints])


def joint_resistance(robot: Robot) -> Array:
    """(2, nv) damping and dry friction of each velocity coordinate."""
    joints = [b.joint for b in robot.tree.spanning.bodies for _ in range(b.model.nv)]
    return np.array([[j.damping for j in joints], [j.friction for j in joints]]).reshape(2, -1)


def _held_rows(robot: Robot, state: State, held: Sequence[Contact | Wheel]) -> Rows:
    """Contacts that hold: velocities along their rows vanish."""
    read = read_contacts(robot, held, state)
    J = read.along_axes([motion.J for motion in contact_motions(robot, state, read)])
    none = np.zeros(len(J))
    keys = tuple(("held", row, 0.0) for row in range(len(J)))
    return Rows(keys, EQUALITY * len(J), J, none, none, none)


def _contact_forces(
    robot: Robot, state: State, contacts: Sequence[FrictionContact], along: Array
) -> Array:
    """(..., c, 3) in world axes, of those along the rows (..., m)."""
    forces = along[..., : 3 * len(contacts)].reshape(*along.shape[:-1], len(contacts), 3)
    if not contacts:
        return forces
    if any(contact.to is not None for contact in contacts):
        axes = np.stack([contact_place(robot, state, c)[0] for c in contacts], axis=-3)
    else:
        axes = np.stack([axes for _, axes in _friction_places(robot, contacts)])
    return _times(axes, forces)


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


def _times(A: Array, x: Array) -> Array:
    """Matrices (..., n, m) times vectors (..., m)."""
    return (A @ x[..., None])[..., 0]


def _skew(r: Array) -> Array:
    """(..., 3, 3) with ``skew(r) @ x = r x x``."""
    out = np.zeros((*r.shape, 3))
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -r[..., 2], r[..., 1], -r[..., 0]
    return out - np.swapaxes(out, -1, -2)


def _recovered(gap: Array, dt: float) -> Array:
    """Velocity that a gap allows toward a limit, or that takes back a part of a penetration."""
    return np.where(gap > 0.0, gap, RECOVERY * gap) / dt


def _hashable(contact: FrictionContact) -> FrictionContact:
    """A contact by whose numbers others like it are found."""
    xyz, normal = (tuple(np.ravel(each).tolist()) for each in (contact.xyz, contact.normal))
    return replace(contact, xyz=xyz, normal=normal)


def _matched(rows: Rows, before: FrictionalStep | None) -> Array:
    """Impulses (..., m) of the last step, of the blocks that were in it; zero for the others."""
    start = np.zeros(rows.b.shape)
    if before is not None and before.impulses.shape[:-1] == rows.b.shape[:-1]:
        known = dict(zip(before.rows.keys, before.rows.places, strict=True))
        for key, place in zip(rows.keys, rows.places, strict=True):
            if key in known:
                start[..., place] = before.impulses[..., known[key]]
    return start


def _determined(rows: Rows, c: Array) -> tuple[Array, str, Array, Array]:
    """Forces of contacts at velocities c (m), and directions D (m, k) of what is not determined.

    Returns:
        impulses (m) of compliant contacts; kinds and coefficients of the rest; D.
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
