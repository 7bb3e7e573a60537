"""Mechanism: names, sizes and kernels of a robot, and its states: what satisfies the loops."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.kinematics import BodyFrame, NamedFrame
from rbda_ros.cluster_tree.closing.tolerances import SINGULAR
from rbda_ros.cluster_tree.coordinates import Coordinates
from rbda_ros.cluster_tree.inertia_check import massless_motions
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.description.model import RobotDescription
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.kernels.cache import KernelCache
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.methods import Methods
from rbda_ros.kernels.registry import KERNELS
from rbda_ros.robot.closer import Given, LoopCloser
from rbda_ros.robot.inputs import FrameName, Inputs
from rbda_ros.robot.native_calls import Answering, NativeCalls, checked
from rbda_ros.robot.payloads import Payload
from rbda_ros.robot.results import Cluster, clusters_of
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

Position = ArrayLike | State
"""A spanning or independent position, or a state that was checked before."""


class Mechanism(Answering):
    """The joints and loops of one robot, its kernels, and its states.

    `Dynamics`, `Frames` and `ContactDynamics` ask it for both; `Robot` is all of them.
    """

    def __init__(
        self,
        tree: ClusterTree,
        unloaded: Mechanism | None = None,
        payloads: Mapping[str, Payload] | None = None,
    ) -> None:
        self._unloaded = unloaded  # the same robot without payloads; None if this is it
        self._kernels: KernelCache = KernelCache(tree, unloaded._kernels if unloaded else None)
        self._inputs = Inputs(tree)
        self._closer = LoopCloser(tree, self._inputs, self._kernels)
        self._identity: object = unloaded._identity if unloaded else object()
        self._native = NativeCalls(tree, self._inputs, self._kernels, self._identity)

        self.tree: ClusterTree = tree
        self.coordinates: Coordinates = tree.coordinates
        self.description: RobotDescription = tree.description
        self.name: str = tree.description.name
        self.warnings: tuple[str, ...] = (
            unloaded.warnings if unloaded else (*tree.warnings, *massless_motions(tree))
        )
        self.floating_base: bool = tree.spanning.floating_base
        self.nq, self.nv, self.ny = tree.nq, tree.nv, tree.ny
        self.payloads: Mapping[str, Payload] = MappingProxyType(dict(payloads or {}))
        self.mass: float = float(sum(body.mass for body in tree.spanning.bodies))
        names = tree.velocity_names
        self.joint_names: tuple[str, ...] = self.coordinates.joints
        self.independent_joint_names: tuple[str, ...] = tuple(
            names[j] for j in tree.independent[self.coordinates.base_nv :]
        )
        self.actuated_joint_names: tuple[str, ...] = tuple(names[j] for j in tree.actuated)
        self.clusters: tuple[Cluster, ...] = clusters_of(tree)

    # Kernels.

    def kernel(self, name: str, *frames: FrameName, linear_only: bool = False) -> Kernel:
        """The traced kernel of an algorithm, e.g. ``"inverse_dynamics"``; traced once.

        Args:
            name: one of ``rbda_ros.kernels.registry.KERNELS``.
            frames: for the kernels that are about frames.
            linear_only: for the inverse operational-space inertia.
        """
        if name not in KERNELS:
            raise InputError(f"there is no kernel {name!r}; there are {', '.join(KERNELS)}")
        if KERNELS[name].needs_frames != bool(frames):
            raise InputError(f"kernel {name!r}: name its frames, and only for kernels about frames")
        named = tuple(self._inputs.frame(frame) for frame in frames)
        if name == "inverse_operational_space_inertia":
            return self._kernels.get(name, named, linear_only)
        return self._kernels.get(name, *named)

    def traced_kernels(self) -> list[Kernel]:
        """Every kernel there is by now."""
        shared = self._unloaded.traced_kernels() if self._unloaded else []
        return list({id(k): k for k in (*shared, *self._kernels.kernels().values())}.values())

    def body_frame(self, frame: FrameName) -> tuple[NamedFrame, BodyFrame]:
        """A frame as its kernels are known by, and on its body."""
        named = self._inputs.frame(frame)
        return named, named.on_body(self.tree)

    @property
    def loop_methods(self) -> Methods:
        """How forward dynamics closes each loop: what ``method`` in the loop file comes to."""
        return self._kernels.loop_methods

    # States.

    def state(self, q: Position, qd: ArrayLike | None = None) -> State:
        """Check a state once, for methods to trust it: each takes it in the place of ``q``.

        Args:
            q: (nq,) spanning position, or independent position [rad, m]; or a batch of them.
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s]; None for rest.

        Raises:
            InputError: wrong shapes, numbers that are not finite, or a position off the loops.
            SingularityError: a loop is at a dead point.
        """
        if isinstance(q, State):
            if q.of is not self._identity:
                raise InputError(f"q is a state of another robot than {self.name}")
            return q if qd is None or qd is q.yd else q.with_velocity(self._inputs.velocity(qd))
        if self._native.reader is not None:
            found = self._native.reader.check(q, qd)
            if found is not None:
                position, yd, residual, conditioning = found
                return State(position, yd, residual, conditioning, self._identity)
        position = self._inputs.vector("q", q, self.nq, self._inputs.independent_size)
        if position.shape[-1] == self.nq:
            position = self._inputs.normalized(position)
        else:
            position = self._closer.close(position, None)
        residual, conditioning = 0.0, 1.0
        if self.tree.has_loops:
            residual, each = self._check_loops(position)
            self._refuse_dead_points(each, "independent")
            conditioning = float(each.min(initial=1.0))
            self._native.prepare_reader()
        yd = np.zeros(self.ny) if qd is None else self._inputs.velocity(qd)
        return State(position, yd, residual, conditioning, self._identity)

    def _single_state(self, q: Position, qd: ArrayLike | None = None) -> State:
        state = self.state(q, qd)
        if not state.single:
            which = "qd: give one velocity" if state.q.ndim == 1 else "q: give one position"
            raise InputError(f"{which}, not a batch")
        return state

    @checked
    def close(self, y_or_partial: Given, guess: ArrayLike | None = None) -> Array:
        """The spanning position (nq,) that satisfies every loop.

        Of a batch (N, ...), taken as a motion, each is closed from near where one before it is.

        Args:
            y_or_partial: independent position, or spanning position to be closed, or joint names
                to positions of any joints that determine the others [rad, m].
            guess: (nq,) where to start, e.g. the last position; it also picks the branch of the
                assembly, and gives the pose of a floating base where only joints are named.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
            ClosureError: the loops cannot be closed there; it names the loop and the gap.
        """
        return self._closer.close(y_or_partial, guess)

    def determining_joints(self, joints: Collection[str]) -> tuple[str, ...]:
        """Of joints that are measured, those that `feedforward` goes by: y, or what there is.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
        """
        return self._inputs.choices.measured("position", joints).joints

    # From coordinates to others.

    def independent_position(self, q: ArrayLike) -> Array:
        """The entries of a spanning position (nq,) that are the position of y."""
        positions = self._inputs.choices.independent_positions
        if positions is None:
            raise InputError(f"{self.name}: y has only part of some joint, so it has no position")
        return self._inputs.vector("q", q, self.nq)[..., list(positions)]

    def independent_velocity(
        self,
        q: Position,
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
        position = self.state(q).q
        given = self._inputs.known_rates("velocity", velocities, base_twist, position)
        return self._independent_rates("independent_velocity", *given, position)

    def independent_acceleration(
        self,
        q: Position,
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
        state = self.state(q, qd)
        given = self._inputs.known_rates("acceleration", accelerations, base_acceleration, state.q)
        return self._independent_rates("independent_acceleration", *given, state.q, state.yd)

    @checked
    def spanning_velocity(self, q: Position, yd: ArrayLike) -> Array:
        """The velocity of every joint, ``qd = G yd`` (nv,) (Chignoli 2024, Eq. 3)."""
        state = self.state(q, yd)
        return self._evaluate("spanning_motion", state.q, state.yd, np.zeros(self.ny))[0]

    @checked
    def spanning_acceleration(self, q: Position, qd: ArrayLike, ydd: ArrayLike) -> Array:
        """The acceleration of every joint, ``qdd = G ydd + g`` (nv,) (Chignoli 2024, Eq. 3).

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s].
            ydd: (ny,) independent acceleration [rad/s^2, m/s^2].
        """
        state, ydd = self.state(q, qd), self._independent("ydd", ydd)
        return self._evaluate("spanning_motion", state.q, state.yd, ydd)[1]

    def trace_motion_of(self, joints: Collection[str]) -> None:
        """Trace now what positions, velocities and accelerations of these joints will need.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
        """
        choices = self._inputs.choices
        coordinates = choices.coordinates("velocity", joints, self.tree.home)
        self._kernels.get("independent_velocity", coordinates)
        self._kernels.get("independent_acceleration", coordinates)
        positions = choices.positions(tuple(joints))
        if positions is not None:
            self._kernels.get("closure", positions[1])

    def body_wrenches(self, wrenches: Mapping[str, ArrayLike]) -> Array:
        """(6 * bodies,) wrenches on bodies, as kernels take them, from wrenches on links."""
        return self._inputs.body_wrenches(wrenches)

    # What the methods share.

    def _independent(self, name: str, value: ArrayLike) -> Array:
        return self._inputs.vector(name, value, self.ny)

    def _independent_rates(
        self, name: str, coordinates: tuple[int, ...], known: Array, *state: Array
    ) -> Array:
        kernel = self._kernels.get(name, coordinates)
        rates, conditioning = self._evaluate(kernel, *state, known)
        self._refuse_dead_points(conditioning, "given")
        return rates

    def _evaluate(
        self, name: str | Kernel, *inputs: Array, frames: Sequence[FrameName] = ()
    ) -> tuple[Array, ...]:
        """Call a kernel at one state, or at each of a batch; inputs broadcast along the batch."""
        kernel: Any = name
        if isinstance(name, str):
            kernel = self.kernel(name, *frames) if frames else self._kernels.get(name)
        if all(array.ndim == 1 for array in inputs):
            return kernel.call(*inputs)
        sizes = {len(array) for array in inputs if array.ndim == 2}
        if len(sizes) > 1:
            raise InputError(f"the batches have different lengths: {sorted(sizes)}")
        count = sizes.pop()
        return kernel.batch(*(np.broadcast_to(a, (count, a.shape[-1])) for a in inputs))

    def _check_loops(self, q: Array) -> tuple[float, Array]:
        """The residual of the loops at a spanning position, and how y is conditioned in each."""
        phi, conditioning = self._evaluate("loop_state", q)
        residual = float(np.abs(phi).max(initial=0.0))
        if not residual <= self.tree.on_loops:  # nor where it is NaN
            raise InputError(
                f"q does not satisfy the loops: residual {residual:.3g}; close it with"
                " close(), or give the independent positions"
            )
        return residual, conditioning

    def _refuse_dead_points(self, conditioning: Array, which: str) -> None:
        """Raise where the independent joints, or those given, hardly determine the others."""
        if not conditioning.size or conditioning.min() >= SINGULAR:
            return
        varying = [n.loop for n in self.tree.clusters if n.loop and not n.loop.constant]
        loop = varying[int(np.argmin(conditioning)) % len(varying)]
        loops = ", ".join(constraint.name for constraint in loop.constraints)
        raise SingularityError(
            f"loop {loops} is at a dead point: its {which} joints do not determine its motion;"
            f" move away from it, or choose other {which} joints"
        )
