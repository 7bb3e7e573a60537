"""Dynamics: forces from motions and motions from forces, in the independent coordinates."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms import branches
from rbda_ros.algorithms.feedforward import TERMS, Choice
from rbda_ros.cluster_tree.closing.tolerances import ON_LOOPS
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.robot.feedforward_call import FeedforwardCall
from rbda_ros.robot.mechanism import Mechanism, Position
from rbda_ros.robot.native_calls import checked
from rbda_ros.robot.results import Derivatives
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array


class Dynamics(Mechanism):
    """Inverse and forward dynamics, the terms of the equation of motion, efforts of actuators."""

    @checked
    def inverse_dynamics(
        self,
        q: Position,
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
        state, ydd = self.state(q, qd), self._independent("ydd", ydd)
        return self._inverse_dynamics(state, ydd, external_wrenches, friction)

    @checked
    def inverse_dynamics_efforts(
        self,
        q: Position,
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
        state, ydd = self.state(q, qd), self._independent("ydd", ydd)
        tau = self._inverse_dynamics(state, ydd, external_wrenches, friction)
        return self._evaluate("actuator_efforts", state.q, tau)[0], tau

    @checked
    def forward_dynamics(
        self,
        q: Position,
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
        state = self.state(q, qd)
        tau = self._generalized(state, self._inputs.vector("tau", tau, self.ny, self.nv))
        if friction:
            tau = tau - self._evaluate("friction_force", state.q, state.yd)[0]
        return self._dynamics("forward_dynamics", state, tau, external_wrenches)

    @checked
    def actuator_efforts(self, q: Position, tau: ArrayLike) -> Array:
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
        state, tau = self.state(q), self._independent("tau", tau)
        return self._evaluate("actuator_efforts", state.q, tau)[0]

    @checked
    def generalized_force(self, q: Position, spanning_tau: ArrayLike) -> Array:
        """The force ``G' tau`` (ny,) on y that forces (nv,) on all joints amount to [N m, N]."""
        tau = self._inputs.vector("spanning_tau", spanning_tau, self.nv)
        return self._evaluate("generalized_force", self.state(q).q, tau)[0]

    @checked
    def mass_matrix(self, q: Position) -> Array:
        """H(y) (ny, ny), by composite rigid bodies on the cluster tree (Featherstone 2010)."""
        H = self._evaluate("mass_matrix", self.state(q).q)[0]
        return H.reshape(*H.shape[:-1], self.ny, self.ny)

    def mass_matrix_factor(self, q: Position) -> Array:
        """L (ny, ny), lower triangular, with ``H = L' L``, as sparse as the branches make H.

        Raises:
            SingularityError: H is singular here.
        """
        L = self._evaluate("mass_matrix_factor", self.state(q).q)[0]
        if not np.isfinite(L).all():
            raise SingularityError(self._no_inertia())
        return L.reshape(*L.shape[:-1], self.ny, self.ny)

    @checked
    def bias_force(self, q: Position, qd: ArrayLike) -> Array:
        """C(y, yd) (ny,): inverse dynamics at zero acceleration, gravity included [N m, N]."""
        state = self.state(q, qd)
        return self._evaluate("bias_force", state.q, state.yd)[0]

    @checked
    def gravity_force(self, q: Position) -> Array:
        """The force (ny,) on y that holds the robot still against gravity [N m, N]."""
        return self._evaluate("gravity_force", self.state(q).q)[0]

    @checked
    def friction_force(self, q: Position, qd: ArrayLike) -> Array:
        """The force (ny,) on y that overcomes the URDF's joint friction and damping [N m, N]."""
        state = self.state(q, qd)
        return self._evaluate("friction_force", state.q, state.yd)[0]

    @checked
    def inverse_dynamics_derivatives(
        self, q: Position, qd: ArrayLike, ydd: ArrayLike
    ) -> Derivatives:
        """Partial derivatives of `inverse_dynamics`; the third, with respect to ydd, is H."""
        state, ydd = self.state(q, qd), self._independent("ydd", ydd)
        by_y, by_yd = self._evaluate("inverse_dynamics_derivatives", state.q, state.yd, ydd)
        shape = (*by_y.shape[:-1], self.ny, self.ny)
        return Derivatives(by_y.reshape(shape), by_yd.reshape(shape), self.mass_matrix(state))

    @checked
    def forward_dynamics_derivatives(
        self, q: Position, qd: ArrayLike, tau: ArrayLike
    ) -> Derivatives:
        """Partial derivatives of `forward_dynamics`; the third, with respect to tau, is H^-1.

        From ``ID(y, yd, FD(y, yd, tau)) = tau``: the others are ``-H^-1`` times those of inverse
        dynamics at the same motion.
        """
        state = self.state(q, qd)
        ydd = self.forward_dynamics(state, state.yd, tau)
        of_inverse = self.inverse_dynamics_derivatives(state, state.yd, ydd)
        parent = branches.parents(self.tree)
        L = branches.factor(parent, of_inverse.third)
        if L is None:
            raise SingularityError(self._no_inertia())
        one = np.broadcast_to(np.eye(self.ny), of_inverse.third.shape)
        return Derivatives(
            -branches.solve(parent, L, of_inverse.position),
            -branches.solve(parent, L, of_inverse.velocity),
            branches.solve(parent, L, one),
        )

    def feedforward(
        self,
        joints: Collection[str],
        acceleration_joints: Collection[str] | None = None,
        *,
        terms: Collection[str] = ("gravity", "coriolis", "inertial"),
        wrenches: bool = False,
    ) -> FeedforwardCall:
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
        choices = self._inputs.choices
        measured = choices.measured("position", joints)
        wanted, coordinates = self.independent_joint_names, self.tree.independent
        if acceleration_joints is not None:
            wanted, coordinates, _ = choices.measured("acceleration", acceleration_joints)
        choice = Choice(measured.positions, measured.coordinates, coordinates, frozenset(terms))
        name = "feedforward_with_wrenches" if wrenches else "feedforward"
        kernel = self._kernels.get(name, choice)
        return FeedforwardCall(kernel, self.tree, measured, wanted, self._closer.close_anyhow)

    def _inverse_dynamics(
        self, state: State, ydd: Array, wrenches: Mapping[str, ArrayLike] | None, friction: bool
    ) -> Array:
        tau = self._dynamics("inverse_dynamics", state, ydd, wrenches)
        if friction:
            tau = tau + self._evaluate("friction_force", state.q, state.yd)[0]
        return tau

    def _generalized(self, state: State, tau: Array) -> Array:
        """A force on y (ny,), of one on y or on every joint (nv,)."""
        if tau.shape[-1] == self.ny:
            return tau
        return self._evaluate("generalized_force", state.q, tau)[0]

    def _dynamics(
        self,
        name: str,
        state: State,
        third: Array,
        wrenches: Mapping[str, ArrayLike] | None,
    ) -> Array:
        """Call a kernel, or its twin with external wrenches where there are any."""
        inputs = state.q, state.yd, third
        if isinstance(wrenches, np.ndarray) or wrenches:  # an array is none, and is told so
            outputs = self._evaluate(
                f"{name}_with_wrenches", *inputs, self._inputs.body_wrenches(wrenches)
            )
        else:
            outputs = self._evaluate(name, *inputs)
        if not np.isfinite(outputs[0]).all():
            raise SingularityError(self._no_inertia())
        if len(outputs) > 1:  # loops that are closed by their forces say how well
            missed = outputs[1].max(initial=0.0)
            if not missed <= ON_LOOPS * np.abs(outputs[0]).max(initial=1.0):
                raise SingularityError(
                    f"{self.name}: the forces of the loops {', '.join(self.loop_methods.by_forces)}"
                    f" leave {missed:.3g} m/s^2 open; move away from their dead points, or use"
                    " 'method: embed'"
                )
        return outputs[0]

    def _no_inertia(self) -> str:
        return f"{self.name}: the mass matrix is singular here; a movable link may have no inertia"
