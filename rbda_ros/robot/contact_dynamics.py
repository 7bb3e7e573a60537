"""Dynamics in contact with the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.contact_rows import ContactFrame, Proximal
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.kernels.cache import LruCache
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.robot.contacts import (
    SETTINGS,
    ConstrainedMotion,
    Contact,
    ContactEfforts,
    Impact,
    ReadContacts,
    Route,
    Stop,
    check_numbers,
    place_contact,
)
from rbda_ros.robot.inputs import NOWHERE
from rbda_ros.robot.mechanism import Mechanism
from rbda_ros.robot.operations import Position, dispatched
from rbda_ros.robot.poses import pose_error
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

MOST_PLACES = 256
"""Places of contacts that are cached; clients may name any point."""


class ContactDynamics(Mechanism):
    """Forward and inverse dynamics with contacts, and impacts."""

    @dispatched("c", 3)
    def constrained_forward_dynamics(
        self,
        q: Position,
        qd: ArrayLike,
        tau: ArrayLike,
        contacts: Sequence[Contact],
        *,
        external_wrenches: Mapping[str, ArrayLike] | None = None,
        tolerance: float = 1e-10,
        max_iterations: int = 100,
        route: Route = "constrained_aba",
    ) -> ConstrainedMotion:
        """The acceleration that forces and contacts give: constrainedABA (Sathya 2024).

        Minimises Gauss' ``|ydd - ydd_free|^2_H / 2`` subject to ``J ydd + J-dot yd = a*``.
        Redundant contacts are allowed; contradictory ones are satisfied in the least squares.

        Args:
            q: (nq,) spanning position, or independent position; one state, not a batch.
            qd: (nv,) spanning velocity, or (ny,) independent velocity.
            tau: (ny,) force on y, or (nv,) forces on every joint of the spanning tree.
            contacts: where the world holds the robot.
            external_wrenches: as for `inverse_dynamics`.
            tolerance: what contacts may miss, relative to the largest acceleration.
            max_iterations: most proximal iterations; they come in fours.
            route: ``constrained_aba``, or ``prox_pv`` or ``prox_ltl`` to compare with. With loops
                that are closed by their forces it is always ``prox_pv``.
        """
        state = self._single_state(q, qd)
        force = self._generalized(state, self._inputs.single("tau", tau, self.ny, self.nv))
        if external_wrenches:  # J' w is what they spare the actuators
            rest = np.zeros(self.ny)
            holding = self.inverse_dynamics(state, rest, rest, external_wrenches)
            force = force + self.gravity_force(state) - holding
        stop = Stop(tolerance, max_iterations)
        read = self._read(contacts)
        desired = np.array([self._wanted(state, contact) for contact in contacts])
        kernel, each = self._contact_kernel(read, route, impact=False, at_points=read.offset)
        return self._iterate(kernel, each, read, (state.q, state.yd, force), desired, stop)

    def contact_kernel(
        self, contacts: Sequence[Contact], route: Route = "constrained_aba"
    ) -> Kernel:
        """The kernel of `constrained_forward_dynamics` for these contacts, e.g. for batches.

        ``q, yd, tau, axes (9c), desired (6c), start (m) -> ydd, forces (6c), along (m), health
        (2)``: axes column by column, ``start`` zero or the last ``along``, and of the contacts'
        accelerations what they miss and how much that last changed.
        """
        return self._contact_kernel(self._read(contacts), route, impact=False)[0]

    def _contact_call(
        self, contacts: Sequence[Contact], route: Route = "constrained_aba"
    ) -> tuple[Kernel, int, tuple[Array, ...]]:
        """The kernel of `constrained_forward_dynamics`, iterations of a call, what is constant.

        For contacts without gains: axes, wanted accelerations, zero forces to start from, and
        points where some are elsewhere than at the origin of their link.
        """
        read = self._read(contacts)
        kernel, each = self._contact_kernel(read, route, impact=False, at_points=read.offset)
        wanted = np.array([contact.acceleration for contact in contacts], dtype=float)
        return kernel, each, (read.flat_axes, wanted.ravel(), np.zeros(read.rows), *read.points)

    def contact_forces(
        self, q: Position, qd: ArrayLike, tau: ArrayLike, contacts: Sequence[Contact]
    ) -> Array:
        """Force then moment (c, 6) of each contact, as `constrained_forward_dynamics` has them."""
        return self.constrained_forward_dynamics(q, qd, tau, contacts).forces

    def impact(
        self, q: Position, qd: ArrayLike, contacts: Sequence[Contact], restitution: float = 0.0
    ) -> Impact:
        """Velocity after contacts have hit: ``H (yd+ - yd) = J' p``, ``J yd+ = -e J yd``.

        Args:
            q: (nq,) spanning position, or independent position; one state, not a batch.
            qd: (nv,) spanning velocity, or (ny,) independent velocity, before.
            contacts: what hits; their accelerations and gains play no part.
            restitution: e, from 0 (plastic) to 1.
        """
        state = self._single_state(q, qd)
        if not 0.0 <= restitution <= 1.0:
            raise InputError(f"restitution is {restitution!r}; give a number from 0 to 1")
        read = self._read(contacts)
        kernel, each = self._contact_kernel(
            read, "constrained_aba", impact=True, at_points=read.offset
        )
        nothing = np.zeros(self.ny)
        change = [-(1.0 + restitution) * self._contact_velocity(state, c) for c in contacts]
        inputs = state.q, nothing, nothing
        solved = self._iterate(kernel, each, read, inputs, np.array(change), Stop())
        return Impact(state.yd + solved.ydd, solved.forces)

    def contact_inverse_dynamics(
        self,
        q: Position,
        qd: ArrayLike,
        ydd: ArrayLike,
        contacts: Sequence[Contact],
        external_wrenches: Mapping[str, ArrayLike] | None = None,
    ) -> ContactEfforts:
        """Forces of actuators and contacts that give ydd: ``tau + J' f = H ydd + C``.

        Of all contact forces that leave nothing to do where no actuator is (a floating base), those
        of least norm are taken; friction cones are not looked at.

        Args:
            q: (nq,) spanning position, or independent position; one state, not a batch.
            qd: (nv,) spanning velocity, or (ny,) independent velocity.
            ydd: (ny,) independent acceleration.
            contacts: where the world may push; their accelerations and gains play no part.
            external_wrenches: as for `inverse_dynamics`.
        """
        state = self._single_state(q, qd)
        ydd = self._inputs.single("ydd", ydd, self.ny)
        needed = self.inverse_dynamics(state, state.yd, ydd, external_wrenches)
        return self._share(state, needed, contacts)

    def damped_delassus_inverse(self, q: Position, contacts: Sequence[Contact], mu: float) -> Array:
        """``(J H^-1 J' + I/mu)^-1`` (m, m) of contacts' rows, by cABA-OSIM (Sathya 2024, Alg. 5).

        Args:
            q: (nq,) spanning position, or independent position; one state, not a batch.
            contacts: rows are along and about their own axes, contact by contact, linear first.
            mu: inverse of the damping [kg].
        """
        state = self._single_state(q)
        if not 0.0 < mu < np.inf:
            raise InputError(f"mu is {mu!r}; give a positive number")
        read = self._read(contacts)
        kernel = self._kernels.get("damped_delassus_inverse", read.frames, mu)
        return kernel.call(state.q, read.flat_axes)[0].reshape(read.rows, read.rows)

    def _iterate(
        self,
        kernel: Kernel,
        each: int,
        read: ReadContacts,
        inputs: tuple[Array, Array, Array],
        desired: Array,
        stop: Stop,
    ) -> ConstrainedMotion:
        """Call a kernel, each time from the forces of the last, until contacts are satisfied."""
        along, iterations, converged = np.zeros(read.rows), 0, False
        while not converged and iterations < stop.iterations:
            given = (*inputs, read.flat_axes, desired.ravel(), along, *read.points)
            ydd, forces, along, (residual, change) = kernel.call(*given)
            if not (np.isfinite(ydd).all() and np.isfinite(forces).all()):
                raise SingularityError(
                    f"{self.name}: the mass matrix is singular here; a link may have no inertia"
                )
            iterations += each
            enough = stop.tolerance * np.abs(ydd).max(initial=1.0)
            converged = bool(min(residual, change) <= enough)
        return ConstrainedMotion(ydd, forces.reshape(-1, 6), float(residual), iterations, converged)

    def _contact_kernel(
        self, read: ReadContacts, route: Route, *, impact: bool, at_points: bool = False
    ) -> tuple[Kernel, int]:
        """The kernel for these contacts, or for others on the same bodies; how often it iterates.

        Points as inputs cost 2 to 10 % more instructions, and spare a trace for each new point:
        clients may name any. The origins of links are few, and stay constants.
        """
        if route not in SETTINGS:
            raise InputError(f"route {route!r} is unknown; use {', '.join(SETTINGS)}")
        route = "prox_pv" if self._kernels.open_loops is not None else route
        weight, iterations = SETTINGS[route]
        proximal = Proximal(weight * (self.mass or 1.0), iterations)
        name, frames = "constrained_forward_dynamics", read.frames
        if at_points:
            name, frames = f"{name}_at", tuple(replace(frame, point=NOWHERE) for frame in frames)
        return self._kernels.get(name, frames, proximal, route, impact), iterations

    def _read(self, contacts: Sequence[Contact]) -> ReadContacts:
        """Check contacts, and find the bodies they are on."""
        if not isinstance(contacts, Sequence) or not contacts:
            raise InputError("contacts: give at least one")
        frames, axes = [], []
        for number, contact in enumerate(contacts):
            if not isinstance(contact, Contact):
                raise InputError(f"contacts[{number}] is {contact!r}; give a Contact")
            where = f"contacts[{number}] on {contact.link!r}"
            check_numbers(where, contact)
            frame, own_axes = self._placed(where, contact)
            frames.append(frame)
            axes.append(own_axes)
        return ReadContacts(tuple(frames), np.array(axes), tuple(contacts))

    def _placed(self, where: str, contact: Contact) -> tuple[ContactFrame, Array]:
        rows = None if contact.rows is None else tuple(contact.rows)
        key = contact.link, tuple(contact.xyz), contact.kind, tuple(contact.normal), rows

        def place() -> tuple[ContactFrame, Array]:
            _, at = self.body_frame((contact.link, contact.xyz))
            return place_contact(where, contact, at)

        return self._places.get_or_make(key, place)

    def _wanted(self, state: State, contact: Contact) -> Array:
        """Acceleration (6,) that a contact should have, with Baumgarte's terms."""
        wanted = np.array(contact.acceleration, dtype=float)
        if contact.damping:
            wanted -= contact.damping * self._contact_velocity(state, contact)
        if contact.stiffness:
            pose = self.frame_pose(state, (contact.link, contact.xyz))
            error = pose_error(np.asarray(contact.target, dtype=float), pose)
            wanted[: len(error)] += contact.stiffness * error
        return wanted

    def _contact_velocity(self, state: State, contact: Contact) -> Array:
        """Velocity (6,) of a contact's point, linear then angular, in world axes."""
        return self.jacobian(state, (contact.link, contact.xyz)) @ state.yd

    def _share(self, state: State, tau: Array, contacts: Sequence[Contact]) -> ContactEfforts:
        """Give actuators and contacts their parts of a force on y (ny,): contacts the smallest."""
        read = self._read(contacts)
        J = read.along_axes([self.jacobian(state, (c.link, c.xyz)) for c in contacts])
        # Actuators give forces in the rows of W; contacts must give what is across them.
        W = self.spanning_velocity(state, np.eye(self.ny)).T[list(self.tree.actuated)]
        across = np.eye(self.ny) - np.linalg.pinv(W, rcond=1e-10) @ W
        f = np.linalg.lstsq(across @ J.T, across @ tau, rcond=1e-10)[0].astype(float)
        tau = tau - J.T @ f
        residual = across @ tau
        return ContactEfforts(
            tau - residual, read.in_world(f), float(np.abs(residual).max(initial=0.0))
        )

    @cached_property
    def _places(self) -> LruCache[tuple[object, ...], tuple[ContactFrame, Array]]:
        return LruCache(MOST_PLACES)
