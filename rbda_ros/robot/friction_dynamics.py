"""Steps of a robot whose contacts push, stick and slide, whose joints have limits and dry friction.

Forward and inverse, for one state or many. The impulses are found on the Delassus matrix
``J H^-1 J'`` of all constraints together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.cluster_tree.spanning_tree import Body
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.robot.contact_dynamics import ContactDynamics
from rbda_ros.robot.contacts import Contact, Wheel
from rbda_ros.robot.friction_contacts import (
    BOX,
    CONE,
    EQUALITY,
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
from rbda_ros.robot.operations import Position
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array, align_z

NEAR_LIMIT = 0.1
"""Limits nearer than this, or than two steps, are part of the problem [rad, m]."""
LEAST = 1e-9
"""Weight of the forces themselves beside what they must give, in inverse dynamics: of all that do,
small ones are taken."""
MOVES = 1e-9
"""Velocity of a contact above which inverse dynamics takes it to slide or to lift off [m/s]."""


class FrictionDynamics(ContactDynamics):
    """Contacts with Coulomb friction, joint limits and dry friction of joints."""

    def frictional_step(
        self,
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
        state, force, settings = self._step_arguments(q, qd, tau, dt, tolerance, max_iterations)
        if joint_friction:
            damping = np.array([body.joint.damping for body in self._bodies_of_velocities()])
            if damping.any():
                resisting = damping * self.spanning_velocity(state, state.yd)
                force = force - self.generalized_force(state, resisting)
        free = state.yd + dt * self.forward_dynamics(state, state.yd, force)
        rows = self._step_rows(state, free, contacts, dt, distances, joint_limits, joint_friction)
        if held:
            if free.ndim > 1:
                raise InputError("held: only for single states; leave it out for a batch")
            rows = stacked([rows, self._held_rows(state, held)])
        L = self.mass_matrix_factor(state)
        X = np.linalg.solve(np.swapaxes(L, -1, -2), np.swapaxes(rows.J, -1, -2))
        A = np.swapaxes(X, -1, -2) @ X + rows.compliance[..., None] * np.eye(rows.b.shape[-1])
        g = _times(rows.J, free) + rows.b
        start = _matched(rows, warm_start)
        p, missed, iterations = solve_cones(rows.kinds, A, g, rows.parameters, start, settings)
        yd = free + _times(np.linalg.solve(L, X), p)
        if not np.isfinite(yd).all():
            raise SingularityError(self._singular())
        return FrictionalStep(
            yd,
            (yd - state.yd) / dt,
            self._contact_forces(state, contacts, p / dt),
            self._joint_forces(rows, p / dt),
            p,
            rows,
            _times(A, p) + g,
            missed,
            iterations,
            np.asarray(missed <= settings.tolerance),
        )

    def frictional_inverse_dynamics(
        self,
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
        state = self._single_state(q, qd)
        ydd = self._inputs.single("ydd", ydd, self.ny)
        _check_step(dt)
        rows = self._contact_rows(state, contacts, dt, None)
        needed = self.inverse_dynamics(state, state.yd, ydd)
        c = rows.J @ (state.yd + dt * ydd) + rows.b
        W = self.spanning_velocity(state, np.eye(self.ny)).T[list(self.tree.actuated)]
        across = np.eye(self.ny) - np.linalg.pinv(W, rcond=1e-10) @ W
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
            self._contact_forces(state, contacts, p),
            float(np.abs(residual).max(initial=0.0)),
        )

    def _step_arguments(
        self,
        q: Position,
        qd: ArrayLike,
        tau: ArrayLike,
        dt: float,
        tolerance: float,
        max_iterations: int,
    ) -> tuple[State, Array, SolverSettings]:
        state = self.state(q, qd)
        _check_step(dt)
        force = self._generalized(state, self._inputs.vector("tau", tau, self.ny, self.nv))
        return state, force, SolverSettings(tolerance, max_iterations)

    def _step_rows(
        self,
        state: State,
        free: Array,
        contacts: Sequence[FrictionContact],
        dt: float,
        distances: ArrayLike | None,
        joint_limits: bool,
        joint_friction: bool,
    ) -> Rows:
        """The rows of a step, for the states of a batch alike."""
        parts = [self._contact_rows(state, contacts, dt, distances)]
        if joint_limits or joint_friction:
            G = self._evaluate("velocity_map", state.q)[0].reshape(*state.q.shape[:-1], -1, self.ny)
            if joint_limits:
                parts.append(self._limit_rows(state, G, _times(G, free), dt))
            if joint_friction:
                parts.append(self._friction_rows(G, dt))
        batch = free.shape[:-1]
        return stacked([rows.expanded(batch, self.ny) for rows in parts])

    def _contact_rows(
        self,
        state: State,
        contacts: Sequence[FrictionContact],
        dt: float,
        distances: ArrayLike | None,
    ) -> Rows:
        """Cones: two tangents and the normal of each contact."""
        if not isinstance(contacts, Sequence):
            raise InputError(f"contacts: {contacts!r} is no list; give one of FrictionContact")
        batch = np.broadcast_shapes(state.q.shape[:-1], state.yd.shape[:-1])
        heights = self._heights(contacts, distances, batch)
        J, b, R = [np.zeros((*batch, 0, self.ny))], [np.zeros((*batch, 0))], [np.zeros(0)]
        for c, contact in enumerate(contacts):
            if not isinstance(contact, FrictionContact):
                raise InputError(f"contacts[{c}] is {contact!r}; give a FrictionContact")
            contact.check(f"contacts[{c}] on {contact.link!r}")
            _, own = self._contact_place(state, contact)
            own = np.broadcast_to(own, (*batch, 3, self.ny))
            compliance, along = _bias(contact, dt, heights[..., c], _times(own, state.yd)[..., 2])
            J.append(own)
            b.append(along)
            R.append(np.full(3, compliance))
        friction = np.array([contact.friction for contact in contacts], dtype=float)
        return Rows(
            tuple(("contact", c, 0.0) for c in range(len(contacts))),
            CONE * len(contacts),
            np.concatenate(J, axis=-2),
            np.concatenate(b, axis=-1),
            np.concatenate(R),
            friction,
        )

    def _contact_place(self, state: State, contact: FrictionContact) -> tuple[Array, Array]:
        """Axes (..., 3, 3) of a contact in the world, and its rows (..., 3, ny) along them."""
        pose, J = self.frame_pose(state, contact.link), self.jacobian(state, contact.link)
        r = pose[..., :3, :3] @ np.asarray(contact.xyz, dtype=float)
        linear = J[..., :3, :] - _skew(r) @ J[..., 3:, :]
        axes = align_z(np.asarray(contact.normal, dtype=float))
        if contact.to is not None:
            other, J_o = self.frame_pose(state, contact.to), self.jacobian(state, contact.to)
            r = pose[..., :3, 3] + r - other[..., :3, 3]
            linear = linear - (J_o[..., :3, :] - _skew(r) @ J_o[..., 3:, :])
            axes = other[..., :3, :3] @ axes
        axes = np.broadcast_to(axes, pose[..., :3, :3].shape)
        return axes, np.swapaxes(axes, -1, -2) @ linear

    def _heights(
        self,
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

    def _limit_rows(self, state: State, G: Array, velocity: Array, dt: float) -> Rows:
        """Limits of joints of one coordinate that some state is near, seen from inside."""
        lower, upper = self.limits.lower, self.limits.upper
        keys: list[Key] = []
        J, b = [np.zeros((*G.shape[:-2], 0, self.ny))], [np.zeros((*velocity.shape[:-1], 0))]
        for joint, place in self.coordinates.scalar_positions.items():
            j = self.coordinates.velocities[joint].start
            for side, bound in ((1.0, lower[place]), (-1.0, upper[place])):
                gap = side * (state.q[..., place] - bound)
                reach = np.maximum(NEAR_LIMIT, 2.0 * dt * np.abs(velocity[..., j]))
                if np.any(gap < reach):
                    keys.append(("limit", j, side))
                    J.append(side * G[..., j : j + 1, :])
                    b.append(np.broadcast_to(_recovered(gap, dt), velocity.shape[:-1])[..., None])
        none = np.zeros(len(keys))
        stack = np.concatenate(J, axis=-2), np.concatenate(b, axis=-1)
        return Rows(tuple(keys), POSITIVE * len(keys), *stack, none, none)

    def _friction_rows(self, G: Array, dt: float) -> Rows:
        """Dry friction of joints."""
        friction = np.array([body.joint.friction for body in self._bodies_of_velocities()])
        places = np.flatnonzero(friction)
        keys = tuple(("friction", int(j), 0.0) for j in places)
        none = np.zeros(len(places))
        return Rows(keys, BOX * len(places), G[..., places, :], none, none, dt * friction[places])

    def _held_rows(self, state: State, held: Sequence[Contact | Wheel]) -> Rows:
        """Contacts that hold: velocities along their rows vanish."""
        read = self._read(held, state)
        J = read.along_axes([motion.J for motion in self._motions(state, read)])
        none = np.zeros(len(J))
        keys = tuple(("held", row, 0.0) for row in range(len(J)))
        return Rows(keys, EQUALITY * len(J), J, none, none, none)

    def _bodies_of_velocities(self) -> list[Body]:
        return [body for body in self.tree.spanning.bodies for _ in range(body.model.nv)]

    def _contact_forces(
        self, state: State, contacts: Sequence[FrictionContact], along: Array
    ) -> Array:
        """(..., c, 3) in world axes, of those along the rows (..., m)."""
        forces = np.zeros((*along.shape[:-1], len(contacts), 3))
        for c, contact in enumerate(contacts):
            axes, _ = self._contact_place(state, contact)
            forces[..., c, :] = _times(axes, along[..., 3 * c : 3 * c + 3])
        return forces

    def _joint_forces(self, rows: Rows, along: Array) -> Array:
        """(..., nv) of limits and dry friction, of those along the rows (..., m)."""
        forces = np.zeros((*along.shape[:-1], self.nv))
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


def _bias(contact: FrictionContact, dt: float, gap: Array, approach: Array) -> tuple[float, Array]:
    """R of a contact's rows, and b (..., 3) along them.

    With stiffness k and damping d, ``p = -dt (k (gap + dt v) + d v)``: so ``R = 1/(dt (dt k + d))``
    and ``b = k gap / (dt k + d)``.
    """
    b = np.zeros((*gap.shape, 3))
    if np.isinf(contact.stiffness):
        b[..., 2] = _recovered(gap, dt)
        if contact.restitution:
            hits = (gap <= 0.0) & (approach < 0.0)
            b[..., 2] = np.where(hits, contact.restitution * approach, b[..., 2])
        return 0.0, b
    both = dt * contact.stiffness + contact.damping
    b[..., 2] = contact.stiffness * gap / both
    return 1.0 / (dt * both), b


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
    """What contacts at velocities c (m) exert, and directions D (m, k) of what is not determined.

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
