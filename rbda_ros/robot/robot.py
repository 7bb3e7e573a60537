"""Robot: names and numpy arrays around the kernels."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NoReturn

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.contact_rows import ContactFrame
from rbda_ros.algorithms.kinematics import BodyFrame, NamedFrame, body_poses
from rbda_ros.cluster_tree.closing.tolerances import SINGULAR
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.inertia_check import massless_motions
from rbda_ros.cluster_tree.spanning_tree import Coordinates, SpanningTree, parameter_map
from rbda_ros.cluster_tree.tree import ClusterTree, build_cluster_tree
from rbda_ros.description import read_description
from rbda_ros.description.model import RobotDescription
from rbda_ros.engine import core
from rbda_ros.errors import DescriptionError, InputError, Problem, SingularityError, counted
from rbda_ros.kernels.assembly_store import stored_assemblies
from rbda_ros.kernels.cache import KernelCache, LruCache
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.methods import Methods
from rbda_ros.kernels.registry import KERNELS
from rbda_ros.robot import (
    actuation,
    closer,
    contact_derivatives,
    contact_dynamics,
    conversion,
    feedforward_call,
    friction_dynamics,
    kinematic_tasks,
    linear_dynamics,
    motor_command,
    state,
)
from rbda_ros.robot.calls import VARIANTS, RobotCalls
from rbda_ros.robot.closer import Given, LoopCloser
from rbda_ros.robot.doors import casadi_functions, tensor_functions
from rbda_ros.robot.inputs import (
    MAX_TRACED_FRAMES,
    BodyWrenches,
    FrameName,
    Inputs,
    batch_length,
    contiguous,
    numbers,
)
from rbda_ros.robot.joint_choices import with_independent_joints
from rbda_ros.robot.operations import (
    KINDS,
    OPERATIONS,
    Operation,
    Operations,
    Position,
    dispatched,
)
from rbda_ros.robot.payloads import Payload, with_payloads
from rbda_ros.robot.results import Cluster, OperationalSpace, RobotLimits, clusters_of, limits_of
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array


def load_robot(
    urdf: str | os.PathLike[str],
    loops: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    floating_base: bool = False,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    xacro_arguments: Mapping[str, str] | None = None,
) -> Robot:
    """Build a robot from its file and its loop-constraint file.

    Args:
        urdf: a path or XML text: URDF, URDF+, MJCF or SDF (the root element decides); or the path
            of a xacro or USD file.
        loops: a path, YAML text or a mapping; None for no loops except those of the description.
        floating_base: whether the root link moves freely. The one floating joint that a URDF
            has on its root link is the floating base in any case.
        gravity: (3,) acceleration of gravity in world axes [m/s^2].
        xacro_arguments: values of <xacro:arg> elements by name, for a xacro file.

    Raises:
        ModelError: the files cannot be used; the message names each problem and its remedy.
    """
    try:
        g = np.asarray(gravity, dtype=float)
    except (TypeError, ValueError):
        g = np.zeros(0)
    if g.shape != (3,) or not np.all(np.isfinite(g)):
        remedy = "give three finite numbers, m/s^2 in world axes"
        raise DescriptionError([Problem("gravity", f"{gravity!r} is no vector", remedy)])
    description = read_description(urdf, loops, xacro_arguments=xacro_arguments)
    tree = build_cluster_tree(description, floating_base, (g[0], g[1], g[2]), stored_assemblies)
    return Robot(tree)


class Robot(Operations):
    """The dynamics of one robot. Threads may share it.

    Positions and velocities may be spanning vectors (every joint) or independent ones (y); the
    length decides. Only the independent entries of a spanning velocity are used, because measured
    velocities never satisfy the loops exactly. With a floating base, ``q`` starts with
    ``x y z qx qy qz qw``; ``qd``, accelerations and forces start with the base twist or wrench,
    linear then angular, in the base frame. Every vector may have a leading batch axis; the result
    then has one too.

    Methods that take a position also take a `State`, which `state` returns. It is checked once and
    not again. Every method raises `InputError` for arguments of wrong shape, with values that
    are not finite, or off the loops, and `SingularityError` at a dead point of a loop.

    The attribute ``tree`` is what algorithms are traced on. Facts about joints, bodies and clusters
    are attributes of the robot itself.
    """

    inverse_kinematics = kinematic_tasks.inverse_kinematics
    inverse_kinematics_step = kinematic_tasks.inverse_kinematics_step
    convert = conversion.convert
    actuation = actuation.actuation
    feedforward = feedforward_call.feedforward
    closure_kernel = closer.closure_kernel
    completion = closer.completion
    motor_command = motor_command.motor_command
    parameters = linear_dynamics.parameters
    base_parameters = linear_dynamics.base_parameters
    random_positions = linear_dynamics.random_positions
    random_state = state.random_state
    constrained_forward_dynamics = contact_dynamics.constrained_forward_dynamics
    contact_kernel = contact_dynamics.contact_kernel
    contact_forces = contact_dynamics.contact_forces
    impact = contact_dynamics.impact
    contact_inverse_dynamics = contact_dynamics.contact_inverse_dynamics
    damped_delassus_inverse = contact_dynamics.damped_delassus_inverse
    damped_delassus_inverse_product = contact_dynamics.damped_delassus_inverse_product
    delassus_product = contact_dynamics.delassus_product
    cut_joint_jacobian = contact_dynamics.cut_joint_jacobian
    cut_joint_force = contact_dynamics.cut_joint_force
    frictional_step = friction_dynamics.frictional_step
    frictional_inverse_dynamics = friction_dynamics.frictional_inverse_dynamics
    constrained_forward_dynamics_derivatives = (
        contact_derivatives.constrained_forward_dynamics_derivatives
    )
    frictional_step_derivatives = contact_derivatives.frictional_step_derivatives
    _scalar_limits = cached_property(friction_dynamics.scalar_limits)
    _joint_resistance = cached_property(friction_dynamics.joint_resistance)
    casadi = casadi_functions.casadi
    torch = tensor_functions.torch
    jax = tensor_functions.jax

    def __init__(
        self,
        tree: ClusterTree,
        unloaded: Robot | None = None,
        payloads: Mapping[str, Payload] | None = None,
    ) -> None:
        self._unloaded = unloaded  # the same robot without payloads; None if this is it
        self._kernels: KernelCache = KernelCache(tree, unloaded._kernels if unloaded else None)
        self._inputs = Inputs(tree)
        self._identity: object = unloaded._identity if unloaded else object()
        self._calls = RobotCalls(tree, self._inputs, self._kernels, self._identity)
        self._closer = LoopCloser(tree, self._inputs, self._kernels, self._calls)

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
        self.links: tuple[str, ...] = tuple(tree.spanning.links)
        self.frames: tuple[str, ...] = self.links
        self.gravity: Array = np.array(tree.gravity)
        self.gravity.flags.writeable = False
        self.has_loops: bool = tree.has_loops
        self.independent_coordinates: tuple[int, ...] = tree.independent
        self.actuated_coordinates: tuple[int, ...] = tree.actuated
        self.coordinate_names: tuple[str, ...] = names
        self._contact_places: LruCache[tuple[object, ...], tuple[ContactFrame, Array]] = LruCache(
            contact_dynamics.MAX_PLACES
        )
        self._friction_sets: LruCache[tuple[int, ...], friction_dynamics.ContactSet] = LruCache(
            contact_dynamics.MAX_PLACES
        )

    def __repr__(self) -> str:
        facts = [
            counted(len(self.joint_names), "joint"),
            counted(self.ny, "degree of freedom", "degrees of freedom"),
            counted(len(self.clusters), "cluster"),
            *(["floating base"] if self.floating_base else []),
        ]
        return f"Robot({self.name!r}: {', '.join(facts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the description without the kernels, which are cached on disk."""
        unloaded = self._unloaded or self
        tree = unloaded.tree
        return _unpickled, (
            tree.as_described,
            tree.spanning.floating_base,
            tree.gravity,
            tree.home,
            tuple(self.independent_joint_names),
            dict(self.payloads),
        )

    # The model: what tables, pictures and files are made of.

    @property
    def spanning_tree(self) -> SpanningTree:
        """The bodies, with joints and inertias, and which body each link is on."""
        return self.tree.spanning

    @property
    def cluster_nodes(self) -> tuple[ClusterNode, ...]:
        """The clusters with their bodies, loops and coordinates; `clusters` has their names."""
        return self.tree.clusters

    @property
    def cluster_positions(self) -> tuple[range, ...]:
        """Which entries of q (nq,) are the positions of each cluster."""
        return self.tree.position_ranges

    @property
    def idle_links(self) -> tuple[str, ...]:
        """Links whose spin about their own axis no joint determines; the spin is frozen."""
        return tuple(lock.successor.link for lock in self.tree.idle_locks)

    def body_pose_function(self) -> ca.Function:
        """Poses of all bodies at any spanning position (nq,), also off the loops.

        ``q -> rotations (3n, 3), one below the other, origins (3n, 1)`` in the world [m], in the
        order of the bodies of `spanning_tree`.
        """
        q = ca.SX.sym("q", self.nq)
        return ca.Function("body_poses", [q], [*body_poses(self.tree, q)])

    @cached_property
    def limits(self) -> RobotLimits:
        """Bounds of positions, velocities and efforts, as the description has them."""
        return limits_of(self.tree)

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

    def prepare(self, *operations: str | tuple[str, FrameName], batch: bool = False) -> None:
        """Wait until operations run at full speed: in machine code, from the next call on.

        Without it, CasADi's virtual machine evaluates them for the first second or so. With
        ``RBDA_ROS_COMPILE=0`` in the environment it always does.

        Args:
            operations: names of operations, such as ``"inverse_dynamics"``, or ``"close"``; of
                those about a frame, (name, frame), and ("operational_space_inertia", frames). None
                for every operation, and for all that was used so far.
            batch: whether to prepare batches as well.

        Raises:
            InputError: there is no such operation, or no such frame.
        """
        wanted = [*operations] or [n for n, each in OPERATIONS.items() if not each.of_frame]
        kernels = [] if operations else self.traced_kernels()
        for each in wanted:
            named = (each,) if isinstance(each, str) else each
            if not isinstance(named, tuple) or len(named) not in (1, 2):
                raise InputError(f"prepare: {each!r}; give a name, or (name, frame)")
            name, *frame = named
            kernels += self._kernels_of(str(name), *frame)
        if self.tree.has_loops:
            kernels.append(self._kernels.get("loop_state"))
            if self._calls.use_closure():
                positions = self._inputs.choices.newton_positions
                kernels.append(self._kernels.get("closure", positions))
        for kernel in kernels:
            kernel.compile(batch=batch)

    def _kernels_of(self, name: str, *frame: FrameName) -> list[Kernel]:
        """Every kernel that an operation may take, whatever its options."""
        if name == "close" and not frame:
            return []  # `prepare` adds its kernel
        if name == "operational_space_inertia" and frame:
            return self._kernels_of_operational_space(*frame)
        record = OPERATIONS.get(name)
        if record is None:
            listed = ", ".join([*OPERATIONS, "close", "operational_space_inertia of frames"])
            raise InputError(f"there is no operation {name!r}; there are {listed}")
        if record.of_frame != bool(frame):
            about = "is about a frame" if record.of_frame else "is about no frame"
            raise InputError(f"{name} {about}; give its name, and a frame only to those about one")
        options: list[Any] = [*VARIANTS] if record.wrenches else [*frame] or [None]
        for option in options:
            self._calls.prepare(self, name, option)
        return [kernel for option in options for kernel in self._calls.kernels(name, option)]

    def _kernels_of_operational_space(self, frames: Any) -> list[Kernel]:
        listed = _listed_frames(frames)
        if len(listed) > MAX_TRACED_FRAMES:
            jacobians = [each for frame in listed for each in self._kernels_of("jacobian", frame)]
            return [*jacobians, *self._kernels_of("mass_matrix_factor")]
        name = "operational_space_inertia"
        options = [(listed, linear_only) for linear_only in (False, True)]
        return [kernel for option in options for kernel in self._calls.kernels(name, option)]

    def traced_kernels(self) -> list[Kernel]:
        """All kernels that were traced so far."""
        shared = self._unloaded.traced_kernels() if self._unloaded else []
        return list({id(k): k for k in (*shared, *self._kernels.kernels().values())}.values())

    def body_frame(self, frame: FrameName) -> tuple[NamedFrame, BodyFrame]:
        """A frame as its kernels are known by, and on its body."""
        named = self._inputs.frame(frame)
        return named, named.on_body(self.tree)

    @property
    def loop_methods(self) -> Methods:
        """How forward dynamics closes each loop, as chosen by ``method`` in the loop file."""
        return self._kernels.loop_methods

    # States.

    def state(self, q: Position, qd: ArrayLike | None = None) -> State:
        """Check a state once. Methods accept it instead of ``q`` and do not check it again.

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
        check = self._calls.validator.check
        found = check(q, qd)
        if isinstance(found, core.Rejection):
            position = self._spanning_position(q)
            found = check(contiguous(position), None)
            if isinstance(found, core.Rejection):
                self._reject_position(position)
            yd = np.zeros(self.ny) if qd is None else self._inputs.velocity(qd)
            found = found[0], contiguous(yd).copy(), *found[2:]
        position, yd, residual, conditioning = found
        position.flags.writeable = yd.flags.writeable = False  # they are new: no need to copy them
        return State(position, yd, residual, conditioning, self._identity)

    def _spanning_position(self, q: ArrayLike) -> Array:
        """A spanning position with unit quaternions, of that or an independent one."""
        position = self._inputs.vector("q", q, self.nq, self._inputs.independent_size)
        if position.shape[-1] == self.nq:
            return self._inputs.normalized(position)
        self._calls.use_closure()  # from the next time on the engine closes it at once
        return self._closer.close(position, None)

    def _single_state(self, q: Position, qd: ArrayLike | None = None) -> State:
        state = self.state(q, qd)
        if not state.single:
            which = "qd: give one velocity" if state.q.ndim == 1 else "q: give one position"
            raise InputError(f"{which}, not a batch")
        return state

    @dispatched("f", 1)
    def operational_space_inertia(
        self,
        q: Position,
        frames: str | Sequence[FrameName],
        damping: float = 0.0,
        linear_only: bool = False,
    ) -> OperationalSpace:
        """The operational-space inertia of some frames, by force propagation (PV-OSIMr).

        The program of many frames would grow with their square: above `MAX_TRACED_FRAMES` it is
        ``J H^-1 J'``, multiplied out.

        Args:
            q: (nq,) spanning position, or independent position; one state, not a batch.
            frames: links, or links with offsets.
            damping: added to the diagonal of the inverse inertia before it is inverted
                [1/kg, 1/(kg m^2)].
            linear_only: leave out the angular rows.
        """
        frames = _listed_frames(frames)
        if np.ndim(numbers("damping", damping)) or not 0.0 <= damping < np.inf:
            raise InputError(f"damping is {damping!r}; give a number that is not negative")
        state = self._single_state(q)
        if len(frames) > MAX_TRACED_FRAMES:
            rows = 3 if linear_only else 6
            jacobian = np.vstack([self.jacobian(state, frame)[:rows] for frame in frames])
            L = self.mass_matrix_factor(state)  # H = L' L
            halves = np.linalg.solve(L.T, jacobian.T)
            inverse = halves.T @ halves
            if not np.isfinite(inverse).all():
                raise SingularityError(self._no_inertia())
            return OperationalSpace(inverse, jacobian, damping)
        named = tuple(self._inputs.frame(frame) for frame in frames)
        call = self._calls.call(self, "operational_space_inertia", (named, bool(linear_only)))
        return self._result(call(state, float(damping)))

    @dispatched("k", 1)
    def close(self, y_or_partial: Given, guess: ArrayLike | None = None) -> Array:
        """The spanning position (nq,) that satisfies every loop.

        A batch (N, ...) is treated as a motion: each position is closed from an earlier one nearby.

        Args:
            y_or_partial: independent position, or spanning position to be closed, or joint names
                to positions of any joints that determine the others [rad, m].
            guess: (nq,) initial position, e.g. the last one. It selects the branch of the loops,
                and gives the pose of a floating base if only joints are named.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
            ClosureError: the loops cannot be closed there; it names the loop and the gap.
        """
        return self._closer.close(y_or_partial, guess)

    def determining_joints(self, joints: Collection[str]) -> tuple[str, ...]:
        """Those of the measured joints that `feedforward` uses: y if possible, else others.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
        """
        return self._inputs.choices.measured("position", joints).joints

    # From coordinates to others.

    def independent_position(self, q: ArrayLike) -> Array:
        """The entries of a spanning position (nq,) that are the position of y."""
        positions = self._inputs.choices.independent_positions
        if positions is None:
            raise InputError(
                f"{self.name}: y has only some coordinates of a joint, so it has no position"
            )
        return self._inputs.vector("q", q, self.nq)[..., list(positions)]

    def independent_velocity(
        self,
        q: Position,
        velocities: Mapping[str, ArrayLike],
        base_twist: ArrayLike | None = None,
    ) -> Array:
        """The independent velocity yd (ny,) from those of any joints that determine the others.

        ``qd = G_x xd`` (Chignoli 2024, Eq. 3) with the given joints x instead of y. If more are
        given than needed, the independent joints are preferred and nothing is averaged.

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

    def trace_motion_of(self, joints: Collection[str]) -> None:
        """Trace the kernels for positions, velocities and accelerations of these joints now.

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
        return self._inputs.body_wrenches(wrenches, self._calls.validator.add_wrenches)

    # What the methods share.

    def _evaluate_operation(self, record: Operation, arguments: Mapping[str, Any]) -> Any:
        """Evaluate an operation for arguments that the engine did not take as they are.

        Args:
            record: the operation.
            arguments: by name, as they were given.

        Raises:
            InputError: arguments of wrong shapes, not finite, or off the loops.
            SingularityError: a dead point, or a singular mass matrix.
        """
        given, option = self._read_arguments(record, arguments)
        answer = self._result(self._calls.call(self, record.name, option)(*given))
        wanted = [*arguments.values()][-1] if record.extend else None
        return answer if wanted is None else getattr(self, str(record.extend))(answer, wanted)

    def _read_arguments(
        self, record: Operation, arguments: Mapping[str, Any]
    ) -> tuple[list[Any], Any]:
        """Arguments as the engine takes them, and the option of its call."""
        velocity = next((a.name for a in record.arguments if a.kind == "Velocity"), None)
        position, *others = record.arguments
        state = self.state(arguments[position.name], arguments[velocity] if velocity else None)
        given: list[Any] = [state]
        for argument in others:
            if argument.kind == "Number":
                given.append(self._inputs.number(argument.name, arguments[argument.name]))
            elif argument.kind == "Velocity":
                given.append(contiguous(state.yd))
            else:
                sizes = (getattr(self, size) for size in KINDS[argument.kind].sizes)
                array = self._inputs.vector(argument.name, arguments[argument.name], *sizes)
                given.append(contiguous(array))
        arrays = [state.q, *(each for each in given if isinstance(each, np.ndarray))]
        option: Any = None
        if record.wrenches:
            wrenches = arguments["external_wrenches"]
            # An array is no mapping: `body_wrenches` rejects it.
            option = 1 if isinstance(wrenches, np.ndarray) or wrenches else 0
            if option:
                given.append(BodyWrenches(self.body_wrenches(wrenches)))
                arrays.append(given[-1].values)
            option += 2 if arguments["friction"] else 0
        elif record.of_frame:
            option = self._inputs.frame(arguments["frame"])
        count = batch_length(arrays)
        if count is not None:  # forces on all joints are turned into those on y row by row
            for i, argument in enumerate(record.arguments):
                if argument.kind == "Force" and given[i].shape == (self.nv,):
                    given[i] = np.tile(given[i], (count, 1))
        return given, option

    def _result(self, answer: Any) -> Any:
        """The engine's result for arguments that were read; explains its rejections."""
        if not isinstance(answer, core.Rejection):
            return answer
        if answer.status == core.LOOPS_MISSED:
            raise SingularityError(
                f"{self.name}: the forces of the loops {', '.join(self.loop_methods.by_forces)}"
                f" leave {answer.value:.3g} m/s^2 open; move away from their dead points,"
                " or use 'method: embed'"
            )
        if answer.status in (core.NOT_FINITE, core.SINGULAR):
            raise SingularityError(self._no_inertia())
        raise AssertionError(f"{self.name}: the engine rejects what was read: {answer}")

    def _reject_position(self, q: Array) -> NoReturn:
        """Say why a spanning position (..., nq) is rejected: loops open, or at a dead point."""
        phi, conditioning = self._evaluate("loop_state", q)
        self._check_residual(phi)
        self._reject_dead_point(conditioning, "independent")

    def _check_residual(self, phi: Array) -> None:
        residual = float(np.abs(phi).max(initial=0.0))
        if not residual <= self.tree.on_loops:  # also if it is NaN
            raise InputError(
                f"q does not satisfy the loops: residual {residual:.3g}; close it with"
                " close(), or give the independent positions"
            )

    def _with_payload(self, Y: Array, link: str) -> Array:
        """Y (..., ny, parameters) with ten columns more, for what a link carries."""
        body, into_body = self._payload_columns(link)
        return np.concatenate([Y, Y[..., 10 * body : 10 * body + 10] @ into_body], axis=-1)

    def _payload_columns(self, link: str) -> tuple[int, Array]:
        """Which body carries a link, and the map of a payload's parameters onto the body's."""
        links = self.tree.spanning.links
        place = links.get(link)
        if place is None:
            raise InputError(f"payload: {self.name} has no link {link!r}")
        if not place.body:
            raise InputError(f"payload: link {link!r} does not move; name one that does")
        own = links[self.tree.spanning.bodies[place.body - 1].name]
        return place.body - 1, parameter_map(own.frame.inverse() @ place.frame)

    def _no_inertia(self) -> str:
        return f"{self.name}: the mass matrix is singular here; a movable link may have no inertia"

    def _generalized(self, state: State, tau: Array) -> Array:
        """A force on y (ny,), of one on y or on every joint (nv,)."""
        if tau.shape[-1] == self.ny:
            return tau
        return self._evaluate("generalized_force", state.q, tau)[0]

    def _independent_rates(
        self, name: str, coordinates: tuple[int, ...], known: Array, *state: Array
    ) -> Array:
        kernel = self._kernels.get(name, coordinates)
        rates, conditioning = self._evaluate(kernel, *state, known)
        if conditioning.size and not conditioning.min() >= SINGULAR:
            self._reject_dead_point(conditioning, "given")
        return rates

    def _evaluate(self, name: str | Kernel, *inputs: Array) -> tuple[Array, ...]:
        """Call a kernel at one state, or at each of a batch; inputs broadcast along the batch."""
        kernel = self._kernels.get(name) if isinstance(name, str) else name
        count = batch_length(inputs)
        if count is None:
            return kernel.call(*inputs)
        return kernel.batch(*(np.broadcast_to(a, (count, a.shape[-1])) for a in inputs))

    def _reject_dead_point(self, conditioning: Array, which: str) -> NoReturn:
        varying = [n.loop for n in self.tree.clusters if n.loop and not n.loop.constant]
        loop = varying[int(np.argmin(conditioning)) % len(varying)]
        loops = ", ".join(constraint.name for constraint in loop.constraints)
        raise SingularityError(
            f"loop {loops} is at a dead point: its {which} joints do not determine its motion;"
            f" move away from it, or choose other {which} joints"
        )

    # Positions, and robots made from this one.

    def neutral(self) -> Array:
        """The position (nq,) of the assembly; it satisfies every loop."""
        return self.tree.home.copy()

    def within_limits(self, q: ArrayLike) -> Any:
        """Whether a spanning position (nq,) is inside all limits; (N,) of a batch."""
        position = self._inputs.vector("q", q, self.nq)
        inside = (position >= self.limits.lower) & (position <= self.limits.upper)
        return inside.all(axis=-1) if position.ndim == 2 else bool(inside.all())

    def with_payloads(self, payloads: Mapping[str, Payload]) -> Robot:
        """The same robot with these payloads, by name, instead of those that it has now.

        Only inertias change: clusters, loops and kernels that do not depend on inertia are shared.
        Without payloads the result is the robot that was loaded.

        Raises:
            InputError: a payload is physically impossible, or its link does not exist.
        """
        unloaded = self._unloaded or self
        if not payloads:
            return unloaded
        return Robot(with_payloads(unloaded.tree, payloads), unloaded, payloads)

    def with_independent_joints(
        self, joints: Collection[str] | None = None, *, at: ArrayLike | None = None
    ) -> Robot:
        """The same robot with other independent joints, e.g. to pass a dead point of y.

        Positions (nq,) and velocities (nv,) of all joints have the same meaning for both robots,
        and the actuators are the same; y and ``tau`` are those of the chosen joints.

        Args:
            joints: names; loops without a named joint keep theirs. None selects the joints that
                determine the others best at the given position.
            at: (nq,) a position on the loops, from which the new robot closes them; None for the
                assembly.

        Raises:
            InputError: unknown names, joints that do not determine the others of their loop, or a
                position off the loops.
        """
        unloaded = self._unloaded or self
        q = self.tree.home
        if at is not None:  # which may be at a dead point of the present y
            q = self._inputs.normalized(self._inputs.single("q", at, self.nq))
            self._check_residual(self._evaluate("loop_state", q)[0])
        return Robot(with_independent_joints(unloaded.tree, q, joints)).with_payloads(self.payloads)

    def interpreted(self, why: Exception) -> Robot:
        """The same robot without machine code. This robot stops using it too."""
        unloaded = self._unloaded or self
        same = Robot(unloaded.tree)
        same._kernels.take_over(unloaded._kernels, why)
        if unloaded is self:
            return same
        loaded = same.with_payloads(self.payloads)
        loaded._kernels.take_over(self._kernels, why)
        return loaded


def _listed_frames(frames: Any) -> list[FrameName]:
    """One link, or several frames, as a list."""
    if not isinstance(frames, Iterable):
        raise InputError(f"frames: {frames!r}; give links, or links with offsets")
    several = [frames] if isinstance(frames, str) else list(frames)
    if not several:
        raise InputError("frames: name at least one link")
    return several


def _unpickled(
    description: RobotDescription,
    floating_base: bool,
    gravity: tuple[float, float, float],
    home: Array,
    independent: tuple[str, ...],
    payloads: Mapping[str, Payload],
) -> Robot:
    robot = Robot(build_cluster_tree(description, floating_base, gravity, stored_assemblies))
    if independent != robot.independent_joint_names or not np.array_equal(home, robot.tree.home):
        robot = robot.with_independent_joints(independent, at=home)
    return robot.with_payloads(payloads)
