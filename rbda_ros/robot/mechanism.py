"""Mechanism: names, sizes and kernels of a robot, and its states: what satisfies the loops."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.algorithms.kinematics import BodyFrame
from rbda_ros.cluster_tree.open_loops import OpenLoops, open_loops
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.description.model import RobotDescription
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.methods import Methods, choose_methods
from rbda_ros.kernels.trace import (
    KERNELS,
    trace,
    trace_closure,
    trace_independent_acceleration,
    trace_independent_velocity,
)
from rbda_ros.robot.closer import Closing
from rbda_ros.robot.inputs import FrameName, Inputs
from rbda_ros.robot.payloads import Payload
from rbda_ros.robot.results import Cluster, clusters_of

Array = NDArray[np.float64]
Kept = TypeVar("Kept")

LOOP_TOLERANCE = 1e-6
"""Largest loop residual of a spanning position that is taken as it is [m, sine of an angle]."""
SINGULAR = 1e-8
"""Conditioning of a loop below which nothing is computed: half of the digits would be lost."""
MOST_FRAMES = 256
"""Kernels about frames that are kept; clients may ask for any point of a link."""
WITHOUT_INERTIA = (trace_closure, trace_independent_velocity, trace_independent_acceleration)
"""Kernels that payloads do not change."""


class Mechanism:
    """The joints and loops of one robot, and the kernels that are traced for it.

    `Robot` adds the dynamics, and tells how states are given.
    """

    def __init__(
        self,
        tree: ClusterTree,
        bare: Mechanism | None = None,
        payloads: Mapping[str, Payload] | None = None,
    ) -> None:
        self._inputs = Inputs(tree)
        self._bare = bare  # the same robot without payloads; None if this is it
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._tracing = threading.Lock()
        self._closing = Closing(tree, self._inputs, partial(self._traced, trace_closure))

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
        if frames and key not in self._kept:
            self._make_room()
        return self.kept(key, lambda: trace(self.tree, name, *options, loops=loops))

    def _make_room(self) -> None:
        """Drop the oldest kernel about frames where there are many: their offsets may be any."""
        with self._tracing:
            framed = [k for k in self._kept if k[0] in KERNELS and KERNELS[k[0]].needs_frames]
            if len(framed) >= MOST_FRAMES:
                del self._kept[framed[0]]

    def kept(self, key: tuple[Any, ...], make: Callable[[], Kept]) -> Kept:
        """What was made for this key, such as a kernel; made once."""
        kept = self._kept.get(key)  # without the lock: it need not wait for what is being made
        if kept is None:
            with self._tracing:
                kept = self._kept.get(key)
                if kept is None:
                    kept = self._kept[key] = make()
        return kept

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
        return self._closing.close(y_or_partial, guess)

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

    def determining_joints(self, joints: Collection[str]) -> tuple[str, ...]:
        """Of joints that are measured, those that `feedforward` goes by: y, or what there is.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
        """
        return self._inputs.determining_joints.measured("position", joints).joints

    def trace_motion_of(self, joints: Collection[str]) -> None:
        """Trace now what positions, velocities and accelerations of these joints will need.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
        """
        determining = self._inputs.determining_joints
        held = determining.coordinates("velocity", joints, self.tree.home)
        for trace_one in (trace_independent_velocity, trace_independent_acceleration):
            self._traced(trace_one, held)
        positions = determining.positions(tuple(joints))
        if positions is not None:
            self._traced(trace_closure, positions[1])

    def body_wrenches(self, wrenches: Mapping[str, ArrayLike]) -> Array:
        """(6 * bodies,) wrenches on bodies, as kernels take them, from wrenches on links."""
        return self._inputs.body_wrenches(wrenches)

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
        if self.tree.has_loops:
            phi, conditioning = self._evaluate("loop_state", q)
            residual = np.abs(phi).max(initial=0.0)
            if residual > LOOP_TOLERANCE:
                raise InputError(
                    f"q does not satisfy the loops: residual {residual:.3g}; close it with"
                    " close(), or give the independent positions"
                )
            self._refuse_dead_points(conditioning, "independent")
        return q

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
