"""Robot: names and numpy arrays around the kernels."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.algorithms.feedforward import TERMS, Choice
from rbda_ros.cluster_tree.tree import build_cluster_tree
from rbda_ros.description import read_description
from rbda_ros.errors import DescriptionError, InputError, Problem, SingularityError
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.trace import trace_closure, trace_feedforward
from rbda_ros.robot.contacts import (
    ConstrainedMotion,
    Contact,
    ContactEfforts,
    Impact,
    Route,
    Stop,
    constrained_forward_dynamics,
    contact_kernel,
    damped_delassus_inverse,
    impact,
    share_among_contacts,
)
from rbda_ros.robot.feedforward_call import Feedforward
from rbda_ros.robot.inputs import FrameName, numbers
from rbda_ros.robot.mechanism import LOOP_TOLERANCE, SINGULAR, Mechanism
from rbda_ros.robot.native_dynamics import NativeInverseDynamics
from rbda_ros.robot.payloads import Payload, with_payloads
from rbda_ros.robot.reaching import Reached, reach
from rbda_ros.robot.results import Derivatives, OperationalSpace

Array = NDArray[np.float64]

RANK_TOLERANCE = 1e-9
"""Eigenvalues of the inverse OSIM below this share of the largest count as zero."""


def load_robot(
    urdf: str | os.PathLike[str],
    loops: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    floating_base: bool = False,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Robot:
    """Build a robot from its URDF and its loop-constraint file.

    Args:
        urdf: a path or XML text (URDF or URDF+).
        loops: a path, YAML text or a mapping; None for no loops beyond the URDF's.
        floating_base: whether the root link moves freely. The one floating joint that a URDF
            has on its root link is the floating base in any case.
        gravity: (3,) acceleration of gravity in world axes [m/s^2].

    Raises:
        ModelError: the files cannot be used; it names every element and what to change.
    """
    try:
        g = np.asarray(gravity, dtype=float)
    except (TypeError, ValueError):
        g = np.zeros(0)
    if g.shape != (3,) or not np.all(np.isfinite(g)):
        remedy = "give three finite numbers, m/s^2 in world axes"
        raise DescriptionError([Problem("gravity", f"{gravity!r} is no vector", remedy)])
    description = read_description(urdf, loops)
    return Robot(build_cluster_tree(description, floating_base, (g[0], g[1], g[2])))


class Robot(Mechanism):
    """The dynamics of one robot. Threads may share it.

    Positions and velocities may be spanning vectors (every joint) or independent ones (y); the
    length decides. Of a spanning velocity only the independent entries are read: measured ones
    never fit the loops exactly. With a floating base, ``q`` starts with ``x y z qx qy qz qw``,
    and ``qd``, accelerations and forces with the base twist or wrench, linear then angular, in
    the base frame. Every vector may carry a leading batch axis, and so does the answer then.

    Every method raises `InputError` for arguments of wrong shape, with values that are not
    finite, or off the loops, and `SingularityError` at a dead point of a loop.
    """

    _bare: Robot | None

    def with_payloads(self, payloads: Mapping[str, Payload]) -> Robot:
        """The same robot carrying these payloads, by name, in place of those it carries now.

        Only inertias change: clusters, loops and the kernels that do not see inertia are shared.
        Without payloads it is the very robot that was loaded.

        Raises:
            InputError: a payload that no body can be, or on no link of this robot.
        """
        bare = self._bare or self
        return Robot(with_payloads(bare.tree, payloads), bare, payloads) if payloads else bare

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        ydd: ArrayLike,
        external_wrenches: Mapping[str, ArrayLike] | None = None,
        *,
        friction: bool = False,
    ) -> Array:
        """The generalized force on y that gives ydd: constraint-embedding RNEA.

        ``tau = H(y) ydd + C(y, yd) - J' w`` (Chignoli 2024, Sec. V): with gravity, Coriolis and
        centrifugal forces, rotors and linkages.

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s].
            ydd: (ny,) independent acceleration [rad/s^2, m/s^2].
            external_wrenches: link name to (6,) force then moment that acts on the link, in the
                link's frame, at its origin [N, N m].
            friction: whether to add what overcomes the URDF's joint friction and damping.

        Returns:
            (ny,) force on the independent coordinates [N m, N].
        """
        return self._inverse_dynamics(q, qd, ydd, external_wrenches, friction)[1]

    def inverse_dynamics_efforts(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        ydd: ArrayLike,
        external_wrenches: Mapping[str, ArrayLike] | None = None,
        *,
        friction: bool = False,
    ) -> tuple[Array, Array]:
        """Efforts on the actuated joints that give ydd, and the generalized force they amount to.

        `actuator_efforts` of `inverse_dynamics`, with the same arguments, checked once.

        Returns:
            (actuated,) efforts in the order of ``actuated_joint_names``, (ny,) tau [N m, N].
        """
        position, tau = self._inverse_dynamics(q, qd, ydd, external_wrenches, friction)
        return self._evaluate("actuator_efforts", position, tau)[0], tau

    def _inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        ydd: ArrayLike,
        external_wrenches: Mapping[str, ArrayLike] | None,
        friction: bool,
    ) -> tuple[Array, Array]:
        """The checked position (nq,), and the force tau (ny,) on y."""
        state = self._position(q), self._inputs.velocity(qd), self._independent("ydd", ydd)
        tau = self._dynamics("inverse_dynamics", state, external_wrenches)
        if friction:
            tau = tau + self._evaluate("friction_force", *state[:2])[0]
        return state[0], tau

    def native_inverse_dynamics(self) -> NativeInverseDynamics | None:
        """Inverse dynamics of y as one C function; its kernels are compiled first.

        None where y has no position of its own, or where there is no machine code.
        """
        positions = self._inputs.determining_joints.independent
        if positions is None:
            return None
        closure = self._traced(trace_closure, positions) if self.tree.has_loops else None
        kernels = (
            self.kernel("inverse_dynamics"),
            self.kernel("actuator_efforts"),
            self.kernel("answer_health"),
        )
        if not all(kernel.compile() for kernel in (closure, *kernels) if kernel is not None):
            return None
        return NativeInverseDynamics(
            self.tree, len(positions), closure, *kernels, singular=SINGULAR
        )

    def feedforward(
        self,
        joints: Collection[str],
        acceleration_joints: Collection[str] | None = None,
        *,
        terms: Collection[str] = ("gravity", "coriolis", "inertial"),
        wrenches: bool = False,
    ) -> Feedforward:
        """Efforts from joint states as they come, again and again, by one kernel.

        Closure, velocities and accelerations of y, RNEA and actuator efforts in one program: the
        same numbers as from the methods, without their checks and copies in between.

        Args:
            joints: that will be measured; of these, as many are used as determine the others.
            acceleration_joints: that accelerations will be given for; None for y.
            terms: what efforts are made of, some of gravity, coriolis, inertial and friction.
            wrenches: whether external wrenches will be given.

        Raises:
            InputError: unknown names or terms, or joints that do not determine the others.
        """
        unknown = sorted(set(terms) - set(TERMS))
        if unknown:
            raise InputError(f"terms: {', '.join(unknown)}; there are {', '.join(TERMS)}")
        determining = self._inputs.determining_joints
        measured = determining.measured("position", joints)
        wanted, coordinates = self.independent_joint_names, self.tree.independent
        if acceleration_joints is not None:
            wanted, coordinates, _ = determining.measured("acceleration", acceleration_joints)
        choice = Choice(
            measured.positions, measured.coordinates, coordinates, frozenset(terms), wrenches
        )
        kernel = self._traced(trace_feedforward, choice)
        return Feedforward(kernel, self.tree, measured, wanted, self.close)

    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        external_wrenches: Mapping[str, ArrayLike] | None = None,
        *,
        friction: bool = False,
    ) -> Array:
        """The independent acceleration that forces give: constraint-embedding ABA.

        Chignoli 2024, Algorithm 1: ``H(y) ydd = tau - C(y, yd) + J' w``.

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s].
            tau: (ny,) force on y, or (nv,) forces on every joint of the spanning tree [N m, N].
            external_wrenches: as for `inverse_dynamics`.
            friction: whether the URDF's joint friction and damping act.

        Returns:
            (ny,) acceleration; `spanning_acceleration` gives that of every joint.
        """
        q, yd = self._position(q), self._inputs.velocity(qd)
        tau = self._inputs.vector("tau", tau, self.ny, self.nv)
        if tau.shape[-1] != self.ny:
            tau = self._evaluate("generalized_force", q, tau)[0]
        if friction:
            tau = tau - self._evaluate("friction_force", q, yd)[0]
        return self._dynamics("forward_dynamics", (q, yd, tau), external_wrenches)

    def actuator_efforts(self, q: ArrayLike, tau: ArrayLike) -> Array:
        """Efforts on the actuated joints that give the generalized force tau on y.

        They solve ``W' efforts = tau`` (Chignoli 2024, footnotes 3 and 5), and are the smallest
        that do where actuators are redundant. What no actuator can give, such as the wrench on
        a floating base, is left out.

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            tau: (ny,) generalized force [N m, N].

        Returns:
            (actuated,) efforts in the order of ``actuated_joint_names`` [N m, N].
        """
        return self._evaluate("actuator_efforts", self._position(q), self._independent("tau", tau))[
            0
        ]

    def generalized_force(self, q: ArrayLike, spanning_tau: ArrayLike) -> Array:
        """The force ``G' tau`` (ny,) on y that forces (nv,) on all joints amount to [N m, N]."""
        tau = self._inputs.vector("spanning_tau", spanning_tau, self.nv)
        return self._evaluate("generalized_force", self._position(q), tau)[0]

    def mass_matrix(self, q: ArrayLike) -> Array:
        """H(y) (ny, ny), by composite rigid bodies on the cluster tree (Featherstone 2010)."""
        H = self._evaluate("mass_matrix", self._position(q))[0]
        return H.reshape(*H.shape[:-1], self.ny, self.ny)

    def mass_matrix_factor(self, q: ArrayLike) -> Array:
        """L (ny, ny), lower triangular, with ``H = L' L``, as sparse as the branches make H.

        Raises:
            SingularityError: H is singular here.
        """
        L = self._evaluate("mass_matrix_factor", self._position(q))[0]
        if not np.isfinite(L).all():
            raise SingularityError(self._no_inertia())
        return L.reshape(*L.shape[:-1], self.ny, self.ny)

    def bias_force(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(y, yd) (ny,): inverse dynamics at zero acceleration, gravity included [N m, N]."""
        return self._evaluate("bias_force", self._position(q), self._inputs.velocity(qd))[0]

    def gravity_force(self, q: ArrayLike) -> Array:
        """The force (ny,) on y that holds the robot still against gravity [N m, N]."""
        return self._evaluate("gravity_force", self._position(q))[0]

    def friction_force(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """The force (ny,) on y that overcomes the URDF's joint friction and damping [N m, N]."""
        return self._evaluate("friction_force", self._position(q), self._inputs.velocity(qd))[0]

    def frame_pose(self, q: ArrayLike, frame: FrameName) -> Array:
        """The pose (4, 4) of a frame in the world: rotation, and origin [m]."""
        R, p = self._evaluate("frame_pose", self._position(q), frames=(frame,))
        pose = np.zeros((*p.shape[:-1], 4, 4))
        pose[..., :3, :3] = R.reshape(*R.shape[:-1], 3, 3)
        pose[..., :3, 3] = p
        pose[..., 3, 3] = 1.0
        return pose

    def jacobian(self, q: ArrayLike, frame: FrameName) -> Array:
        """The Jacobian (6, ny) of a frame with respect to y.

        World-aligned axes at the frame's origin, linear rows first: ``[v; w] = J yd``.
        """
        J = self._evaluate("jacobian", self._position(q), frames=(frame,))[0]
        return J.reshape(*J.shape[:-1], 6, self.ny)

    def frame_bias_acceleration(self, q: ArrayLike, qd: ArrayLike, frame: FrameName) -> Array:
        """``J-dot yd`` (6,): acceleration of the frame's origin, then angular, at ydd = 0."""
        state = self._position(q), self._inputs.velocity(qd)
        return self._evaluate("frame_bias_acceleration", *state, frames=(frame,))[0]

    def operational_space_inertia(
        self,
        q: ArrayLike,
        frames: str | Sequence[FrameName],
        damping: float = 0.0,
        linear_only: bool = False,
    ) -> OperationalSpace:
        """The operational-space inertia of some frames, by cluster force propagators (C-EFPA).

        Args:
            q: (nq,) spanning position, or independent position; one state, not a batch.
            frames: links, or links with offsets.
            damping: added to the diagonal of the inverse inertia before it is inverted
                [1/kg, 1/(kg m^2)].
            linear_only: leave out the angular rows.
        """
        frames = [frames] if isinstance(frames, str) else list(frames)
        if not frames:
            raise InputError("frames: name at least one link")
        if np.ndim(numbers("damping", damping)) or not 0.0 <= damping < np.inf:
            raise InputError(f"damping is {damping!r}; give a number that is not negative")
        position = self._single_position(q)
        kernel = self.kernel("inverse_operational_space_inertia", *frames, linear_only=linear_only)
        flat = kernel.call(position)[0]
        rows = 3 if linear_only else 6
        if not np.isfinite(flat).all():
            raise SingularityError(self._no_inertia())
        inverse = flat.reshape(rows * len(frames), -1)
        jacobian = np.vstack([self.jacobian(position, frame)[:rows] for frame in frames])
        values, vectors = np.linalg.eigh(inverse)
        regular = values > RANK_TOLERANCE * values.max(initial=0.0)
        damped = values + damping
        reciprocal = np.divide(1.0, damped, where=regular | (damping > 0.0), out=0.0 * values)
        return OperationalSpace(
            inertia=(vectors * reciprocal) @ vectors.T,
            inverse_inertia=inverse,
            jacobian=jacobian,
            rank=int(regular.sum()),
            condition=float(values[-1] / values[0]) if regular.all() else np.inf,
        )

    def constrained_forward_dynamics(
        self,
        q: ArrayLike,
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
        force = self._inputs.single("tau", tau, self.ny, self.nv)
        if force.size != self.ny:
            force = self._evaluate("generalized_force", state[0], force)[0]
        if external_wrenches:  # J' w is what they spare the actuators
            rest = np.zeros(self.ny)
            held = self.inverse_dynamics(state[0], rest, rest, external_wrenches)
            force = force + self.gravity_force(state[0]) - held
        stop = Stop(tolerance, max_iterations)
        return constrained_forward_dynamics(self, *state, force, contacts, stop, route)

    def contact_kernel(
        self, contacts: Sequence[Contact], route: Route = "constrained_aba"
    ) -> Kernel:
        """The kernel of `constrained_forward_dynamics` for these contacts, e.g. for batches.

        ``q, yd, tau, axes (9c), desired (6c), start (m) -> ydd, forces (6c), along (m), health
        (2)``: axes column by column, ``start`` zero or the last ``along``, and of the contacts'
        accelerations what they miss and how much that last changed.
        """
        return contact_kernel(self, contacts, route)

    def contact_forces(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, contacts: Sequence[Contact]
    ) -> Array:
        """Force then moment (c, 6) of each contact, as `constrained_forward_dynamics` has them."""
        return self.constrained_forward_dynamics(q, qd, tau, contacts).forces

    def impact(
        self, q: ArrayLike, qd: ArrayLike, contacts: Sequence[Contact], restitution: float = 0.0
    ) -> Impact:
        """Velocity after contacts have hit: ``H (yd+ - yd) = J' p``, ``J yd+ = -e J yd``.

        Args:
            q: (nq,) spanning position, or independent position; one state, not a batch.
            qd: (nv,) spanning velocity, or (ny,) independent velocity, before.
            contacts: what hits; their accelerations and gains play no part.
            restitution: e, from 0 (plastic) to 1.
        """
        return impact(self, *self._single_state(q, qd), contacts, restitution)

    def contact_inverse_dynamics(
        self,
        q: ArrayLike,
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
        needed = self.inverse_dynamics(*state, ydd, external_wrenches)
        return share_among_contacts(self, state[0], needed, contacts)

    def damped_delassus_inverse(
        self, q: ArrayLike, contacts: Sequence[Contact], mu: float
    ) -> Array:
        """``(J H^-1 J' + I/mu)^-1`` (m, m) of contacts' rows, by cABA-OSIM (Sathya 2024, Alg. 5).

        Args:
            q: (nq,) spanning position, or independent position; one state, not a batch.
            contacts: rows are along and about their own axes, contact by contact, linear first.
            mu: inverse of the damping [kg].
        """
        return damped_delassus_inverse(self, self._single_position(q), contacts, mu)

    def inverse_kinematics(
        self,
        frame: FrameName,
        target: ArrayLike,
        guess: ArrayLike | None = None,
        *,
        tolerance: float = 1e-8,
    ) -> Reached:
        """A position that puts a frame where it should be (Featherstone 2010, Fig. 6).

        Within the joint limits; a floating base stays where the guess has it. A target out of
        reach gives the nearest position found, with ``reached`` False and the error that is left.

        Args:
            frame: a link, or a link with an offset.
            target: (4, 4) pose in the world, or (3,) position alone [m].
            guess: (nq,) spanning or independent position to start from.
            tolerance: largest error of any coordinate [m, rad].
        """
        sizes = self.nq, self._inputs.independent_size
        given = self.tree.home if guess is None else self._inputs.single("guess", guess, *sizes)
        start = self.close(given)
        return reach(self, frame, target, start, tolerance)

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, qd: ArrayLike, ydd: ArrayLike
    ) -> Derivatives:
        """Partial derivatives of `inverse_dynamics`; the third, with respect to ydd, is H."""
        state = self._position(q), self._inputs.velocity(qd), self._independent("ydd", ydd)
        by_y, by_yd = self._evaluate("inverse_dynamics_derivatives", *state)
        shape = (*by_y.shape[:-1], self.ny, self.ny)
        return Derivatives(by_y.reshape(shape), by_yd.reshape(shape), self.mass_matrix(state[0]))

    def forward_dynamics_derivatives(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike
    ) -> Derivatives:
        """Partial derivatives of `forward_dynamics`; the third, with respect to tau, is H^-1.

        From ``ID(y, yd, FD(y, yd, tau)) = tau``: the others are ``-H^-1`` times those of inverse
        dynamics at the same motion.
        """
        ydd = self.forward_dynamics(q, qd, tau)
        of_inverse = self.inverse_dynamics_derivatives(q, qd, ydd)
        H_inverse = np.asarray(np.linalg.inv(of_inverse.third), float)
        return Derivatives(
            -H_inverse @ of_inverse.position, -H_inverse @ of_inverse.velocity, H_inverse
        )

    def _dynamics(
        self, name: str, state: Sequence[Array], wrenches: Mapping[str, ArrayLike] | None
    ) -> Array:
        """Call a kernel, or its twin with external wrenches where there are any."""
        if wrenches:
            outputs = self._evaluate(
                f"{name}_with_wrenches", *state, self._inputs.body_wrenches(wrenches)
            )
        else:
            outputs = self._evaluate(name, *state)
        if not np.isfinite(outputs[0]).all():
            raise SingularityError(self._no_inertia())
        if len(outputs) > 1:  # loops that are closed by their forces say how well
            missed = outputs[1].max(initial=0.0)
            if missed > LOOP_TOLERANCE * np.abs(outputs[0]).max(initial=1.0):
                raise SingularityError(
                    f"{self.name}: the forces of the loops {', '.join(self.loop_methods.by_forces)}"
                    f" leave {missed:.3g} m/s^2 open; move away from their dead points, or use"
                    " 'method: embed'"
                )
        return outputs[0]

    def _no_inertia(self) -> str:
        return f"{self.name}: the mass matrix is singular here; a movable link may have no inertia"
