"""Robot: names and numpy arrays around the kernels."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.algorithms.feedforward import TERMS, Choice
from rbda_ros.algorithms.kinematics import BodyFrame
from rbda_ros.cluster_tree.closure import CLOSED
from rbda_ros.cluster_tree.open_loops import OpenLoops, open_loops
from rbda_ros.cluster_tree.tree import ClusterTree, build_cluster_tree
from rbda_ros.contacts import (
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
from rbda_ros.description import read_description
from rbda_ros.description.model import RobotDescription
from rbda_ros.errors import DescriptionError, InputError, Problem, SingularityError
from rbda_ros.feedforward import NEARBY, Feedforward
from rbda_ros.inputs import FrameName, Inputs, numbers
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.methods import Methods, choose_methods
from rbda_ros.kernels.trace import (
    KERNELS,
    trace,
    trace_closure,
    trace_feedforward,
    trace_independent_acceleration,
    trace_independent_velocity,
)
from rbda_ros.payloads import Payload, with_payloads
from rbda_ros.reaching import Reached, reach
from rbda_ros.results import Cluster, Derivatives, OperationalSpace, clusters_of

Array = NDArray[np.float64]
Kept = TypeVar("Kept")

CLOSURE_STEPS = (1, 4, 16)
"""In how many steps the known joints may go from a guess to where they are."""
LOOP_TOLERANCE = 1e-6
"""Largest loop residual of a spanning position that is taken as it is [m, sine of an angle]."""
SINGULAR = 1e-8
"""Conditioning of a loop below which nothing is computed: half of the digits would be lost."""
RANK_TOLERANCE = 1e-9
"""Eigenvalues of the inverse OSIM below this share of the largest count as zero."""

WITHOUT_INERTIA = (trace_closure, trace_independent_velocity, trace_independent_acceleration)
"""Kernels that payloads do not change."""


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


class Robot:
    """The dynamics of one robot. Threads may share it.

    Positions and velocities may be spanning vectors (every joint) or independent ones (y); the
    length decides. Of a spanning velocity only the independent entries are read: measured ones
    never fit the loops exactly. With a floating base, ``q`` starts with ``x y z qx qy qz qw``,
    and ``qd``, accelerations and forces with the base twist or wrench, linear then angular, in
    the base frame. Every vector may carry a leading batch axis, and so does the answer then.

    Every method raises `InputError` for arguments of wrong shape, with values that are not
    finite, or off the loops, and `SingularityError` at a dead point of a loop.
    """

    def __init__(
        self,
        tree: ClusterTree,
        bare: Robot | None = None,
        payloads: Mapping[str, Payload] | None = None,
    ) -> None:
        self._inputs = Inputs(tree)
        self._bare = bare  # the same robot without payloads; None if this is it
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._tracing = threading.Lock()
        self._has_loops = any(node.loop for node in tree.clusters)

        self.tree: ClusterTree = tree
        self.description: RobotDescription = tree.description
        self.name: str = tree.description.name
        self.warnings: tuple[str, ...] = tree.warnings
        self.floating_base: bool = tree.spanning.floating_base
        self.nq, self.nv, self.ny = tree.nq, tree.nv, tree.ny
        self.payloads: Mapping[str, Payload] = MappingProxyType(dict(payloads or {}))
        self.mass: float = float(sum(body.mass for body in tree.spanning.bodies))
        base = 1 if self.floating_base else 0
        names = tree.velocity_names
        self.joint_names: tuple[str, ...] = tuple(
            body.joint.name for body in tree.spanning.bodies[base:]
        )
        self.independent_joint_names: tuple[str, ...] = tuple(
            names[j] for j in tree.independent[6 * base :]
        )
        self.actuated_joint_names: tuple[str, ...] = tuple(names[j] for j in tree.actuated)
        self.clusters: tuple[Cluster, ...] = clusters_of(tree)

    def with_payloads(self, payloads: Mapping[str, Payload]) -> Robot:
        """The same robot carrying these payloads, by name, in place of those it carries now.

        Only inertias change: clusters, loops and the kernels that do not see inertia are shared.
        Without payloads it is the very robot that was loaded.

        Raises:
            InputError: a payload that no body can be, or on no link of this robot.
        """
        bare = self._bare or self
        return Robot(with_payloads(bare.tree, payloads), bare, payloads) if payloads else bare

    def kernel(self, name: str, *frames: FrameName, linear_only: bool = False) -> Kernel:
        """The traced kernel of an algorithm, e.g. ``"inverse_dynamics"``; traced once.

        Args:
            name: one of ``rbda_ros.kernels.trace.KERNELS``.
            frames: for the kernels that are about frames.
            linear_only: for the inverse operational-space inertia.
        """
        if not frames and (kernel := self._kept.get((name, linear_only))) is not None:
            return kernel
        if name not in KERNELS:
            raise InputError(f"there is no kernel {name!r}; there are {', '.join(KERNELS)}")
        if KERNELS[name].needs_frames != bool(frames):
            raise InputError(f"kernel {name!r}: name its frames, and only for kernels about frames")
        if self._bare is not None and not KERNELS[name].sees_inertia:
            return self._bare.kernel(name, *frames, linear_only=linear_only)
        keys_and_frames = [self._inputs.frame(frame) for frame in frames]
        key = (name, *(key for key, _ in keys_and_frames), linear_only)
        bodies = tuple(frame for _, frame in keys_and_frames)
        options: tuple[Any, ...] = bodies
        if name == "inverse_operational_space_inertia":
            options = (bodies, linear_only)
        loops = self.open_loops if KERNELS[name].by_loop_forces else None
        return self.kept(key, lambda: trace(self.tree, name, *options, loops=loops))

    def kept(self, key: tuple[Any, ...], make: Callable[[], Kept]) -> Kept:
        """What was made for this key, such as a kernel; made once."""
        with self._tracing:
            if key not in self._kept:
                self._kept[key] = make()
            return self._kept[key]

    def body_frame(self, frame: FrameName) -> tuple[str, BodyFrame]:
        """A key for a frame, and the frame on its body."""
        return self._inputs.frame(frame)

    @cached_property
    def loop_methods(self) -> Methods:
        """How forward dynamics closes each loop: what ``method`` in the loop file comes to."""
        return choose_methods(self.tree if self._bare is None else self._bare.tree)

    @cached_property
    def open_loops(self) -> OpenLoops | None:
        """The robot with the loops open that forward dynamics closes by their forces, if any."""
        names = self.loop_methods.by_forces
        return open_loops(self.tree, names) if names else None

    def close(
        self,
        y_or_partial: ArrayLike | Mapping[str, ArrayLike],
        guess: ArrayLike | None = None,
    ) -> Array:
        """The spanning position (nq,) that satisfies every loop.

        Args:
            y_or_partial: independent position, or spanning position to be closed, or joint names
                to positions of any joints that determine the others [rad, m].
            guess: (nq,) where to start, e.g. the last position; it also picks the branch of the
                assembly, and gives the pose of a floating base where only joints are named.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
            ClosureError: the loops cannot be closed there; it names the loop and the gap.
        """
        if not isinstance(y_or_partial, Mapping) and np.ndim(y_or_partial) == 2:
            rows: list[Array] = []
            for row in np.asarray(y_or_partial):
                rows.append(self.close(row, rows[-1] if rows else guess))
            return np.array(rows).reshape(-1, self.nq)
        closed = self._close_by_kernel(y_or_partial, guess)
        return self._inputs.close(y_or_partial, guess) if closed is None else closed

    def _close_by_kernel(
        self, y_or_partial: ArrayLike | Mapping[str, ArrayLike], guess: ArrayLike | None
    ) -> Array | None:
        """Closure by the kernel, from a guess or the assembly; None where that leads nowhere.

        The known joints go there in one step or, where the others would move too far to be sure
        of the branch, in several.
        """
        known = self._inputs.determining(y_or_partial) if self._has_loops else None
        if known is None:
            return None
        positions, values, given = known
        if guess is not None:
            start = self._inputs.single("guess", guess, self.nq)
        else:
            start = self.tree.home if given is None else given
        kernel = self._traced(trace_closure, positions)
        way = values - start[list(positions)]
        for steps in CLOSURE_STEPS:
            q = start
            for left in range(steps - 1, -1, -1):
                last, (q, phi) = q, kernel.call(values - way * (left / steps), q)
                moved = np.abs(q - last)[self.tree.curved].max(initial=0.0)
                if not (np.abs(phi).max() <= CLOSED and moved <= NEARBY):
                    break
            else:
                return self._inputs.normalized(q)
        return None

    def independent_position(self, q: ArrayLike) -> Array:
        """The entries of a spanning position (nq,) that are the position of y."""
        positions = self._inputs.independent_positions
        if positions is None:
            raise InputError(f"{self.name}: y has only part of some joint, so it has no position")
        return self._inputs.vector("q", q, self.nq)[..., positions]

    def independent_velocity(
        self,
        q: ArrayLike,
        velocities: Mapping[str, ArrayLike],
        base_twist: ArrayLike | None = None,
    ) -> Array:
        """The independent velocity yd (ny,) from those of any joints that determine the others.

        ``qd = G_x xd`` (Chignoli 2024, Eq. 3) with the given joints x in the place of y. Where
        more are given than needed, the independent joints go first and nothing is averaged.

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            velocities: joint names to velocities [rad/s, m/s]; a number each, or one per
                coordinate of a joint that has several.
            base_twist: (6,) of a floating base, linear then angular, in its frame; None for zero.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
            SingularityError: the joints given, or y, are at a dead point of a loop.
        """
        q = self._position(q)
        held, known = self._inputs.known_rates("velocity", velocities, base_twist, q)
        return self._known_rates(trace_independent_velocity, held, q, known)

    def independent_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        accelerations: Mapping[str, ArrayLike],
        base_acceleration: ArrayLike | None = None,
    ) -> Array:
        """The independent acceleration ydd (ny,); as `independent_velocity`, one rate further.

        ``qdd = G_x xdd + g_x`` (Chignoli 2024, Eq. 3) with the given joints x in the place of y.

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s].
            accelerations: joint names to accelerations [rad/s^2, m/s^2].
            base_acceleration: (6,) of a floating base, as its twist; None for zero.
        """
        q, yd = self._position(q), self._inputs.velocity(qd)
        held, known = self._inputs.known_rates("acceleration", accelerations, base_acceleration, q)
        return self._known_rates(trace_independent_acceleration, held, q, yd, known)

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
        state = self._position(q), self._inputs.velocity(qd), self._independent("ydd", ydd)
        tau = self._dynamics("inverse_dynamics", state, external_wrenches)
        return tau + self._evaluate("friction_force", *state[:2])[0] if friction else tau

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
        state = self._position(q), self._inputs.velocity(qd), self._independent("ydd", ydd)
        tau = self._dynamics("inverse_dynamics", state, external_wrenches)
        if friction:
            tau = tau + self._evaluate("friction_force", *state[:2])[0]
        return self._evaluate("actuator_efforts", state[0], tau)[0], tau

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

    def determining_joints(self, joints: Collection[str]) -> tuple[str, ...]:
        """Of joints that are measured, those that `feedforward` goes by: y, or what there is.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
        """
        return self._inputs.determining_joints.measured("position", joints).joints

    def body_wrenches(self, wrenches: Mapping[str, ArrayLike]) -> Array:
        """(6 * bodies,) wrenches on bodies, as kernels take them, from wrenches on links."""
        return self._inputs.body_wrenches(wrenches)

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
        ydd = self._dynamics("forward_dynamics", (q, yd, tau), external_wrenches)
        return ydd

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

    def spanning_velocity(self, q: ArrayLike, yd: ArrayLike) -> Array:
        """The velocity of every joint, ``qd = G yd`` (nv,) (Chignoli 2024, Eq. 3)."""
        state = self._position(q), self._inputs.velocity(yd), np.zeros(self.ny)
        return self._evaluate("spanning_motion", *state)[0]

    def spanning_acceleration(self, q: ArrayLike, qd: ArrayLike, ydd: ArrayLike) -> Array:
        """The acceleration of every joint, ``qdd = G ydd + g`` (nv,) (Chignoli 2024, Eq. 3).

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s].
            ydd: (ny,) independent acceleration [rad/s^2, m/s^2].
        """
        state = self._position(q), self._inputs.velocity(qd), self._independent("ydd", ydd)
        return self._evaluate("spanning_motion", *state)[1]

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

    def _single_position(self, q: ArrayLike) -> Array:
        position = self._position(q)
        if position.ndim != 1:
            raise InputError("q: give one position, not a batch")
        return position

    def _single_state(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
        velocity = self._inputs.velocity(qd)
        if velocity.ndim != 1:
            raise InputError("qd: give one velocity, not a batch")
        return self._single_position(q), velocity

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

    def _traced(self, trace_one: Callable[[ClusterTree, Any], Kernel], choice: Any) -> Kernel:
        """The kernel for one choice of known coordinates; traced once."""
        if self._bare is not None and trace_one in WITHOUT_INERTIA:
            return self._bare._traced(trace_one, choice)
        return self.kept((trace_one, choice), lambda: trace_one(self.tree, choice))

    def _known_rates(
        self,
        trace_one: Callable[[ClusterTree, tuple[int, ...]], Kernel],
        held: tuple[int, ...],
        *inputs: Array,
    ) -> Array:
        rates, conditioning = self._evaluate(self._traced(trace_one, held), *inputs)
        self._refuse_dead_points(conditioning, "given")
        return rates

    def _independent(self, name: str, value: ArrayLike) -> Array:
        return self._inputs.vector(name, value, self.ny)

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

    def _evaluate(
        self, name: str | Kernel, *inputs: Array, frames: Sequence[FrameName] = ()
    ) -> tuple[Array, ...]:
        """Call a kernel at one state, or at each of a batch; inputs broadcast along the batch."""
        kernel = self.kernel(name, *frames) if isinstance(name, str) else name
        if all(array.ndim == 1 for array in inputs):
            return kernel.call(*inputs)
        sizes = {len(array) for array in inputs if array.ndim == 2}
        if len(sizes) > 1:
            raise InputError(f"the batches have different lengths: {sorted(sizes)}")
        count = sizes.pop()
        return kernel.batch(*(np.broadcast_to(a, (count, a.shape[-1])) for a in inputs))

    def _position(self, q: ArrayLike) -> Array:
        """A spanning position on the constraint manifold and away from its dead points."""
        q = self._inputs.vector("q", q, self.nq, self._inputs.independent_size)
        q = self._inputs.normalized(q) if q.shape[-1] == self.nq else self.close(q)
        if self._has_loops:
            phi, conditioning = self._evaluate("loop_state", q)
            residual = np.abs(phi).max(initial=0.0)
            if residual > LOOP_TOLERANCE:
                raise InputError(
                    f"q does not satisfy the loops: residual {residual:.3g}; close it with"
                    " close(), or give the independent positions"
                )
            self._refuse_dead_points(conditioning, "independent")
        return q

    def _no_inertia(self) -> str:
        return f"{self.name}: the mass matrix is singular here; a movable link may have no inertia"

    def _refuse_dead_points(self, conditioning: Array, which: str) -> None:
        """Raise where the independent joints, or those given, hardly determine the others."""
        if not conditioning.size or conditioning.min() >= SINGULAR:
            return
        varying = [n for n in self.tree.clusters if n.loop is not None and not n.loop.constant]
        node = varying[int(np.argmin(conditioning)) % len(varying)]
        loops = ", ".join(constraint.name for constraint in node.loop.constraints)  # type: ignore[union-attr]
        raise SingularityError(
            f"loop {loops} is at a dead point: its {which} joints do not determine its motion;"
            f" move away from it, or choose other {which} joints"
        )
