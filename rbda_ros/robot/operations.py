"""Operations: every public computation of a robot, described once.

A record is a method of `Operations` with `operation` above it. Its signature says what it takes,
its docstring what it means, and `operation` which kernels it evaluates and which of their outputs
are its results. From these records come the methods of `Robot` for one state and for batches, the
engine's calls, ``export-c``, the table in the API reference, and the tables that tests and
benchmarks go over. `docs/architecture.md` shows how to add one.

Arguments are known by their annotations:

| annotation | argument |
|---|---|
| `Position` | spanning or independent position, or a `State`; read as ``q`` |
| `Velocity` | (nv,) spanning or (ny,) independent velocity; read as ``yd`` |
| `Independent` | (ny,) acceleration or force of the independent coordinates |
| `Spanning` | (nv,) force on every joint |
| `Coordinates` | (nq,) another spanning position, which need not satisfy the loops |
| `Number` | a number that is the same for all states of a batch |
| `Force` | (ny,) force on y, or (nv,) force on every joint; read as a force on y |
| `Wrenches` | wrenches on links by name, beside which ``friction`` may be asked for |
| `FrameName` | a frame: the program depends on it |
"""

# Bodies are docstrings alone: the engine evaluates the operation.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from numpy.typing import ArrayLike

from rbda_ros.engine import core
from rbda_ros.kernels.quantities import QUANTITIES
from rbda_ros.kernels.registry import REGISTRY
from rbda_ros.robot.inputs import FrameName
from rbda_ros.robot.results import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

Position = ArrayLike | State
Velocity = ArrayLike
Independent = ArrayLike
Spanning = ArrayLike
Force = ArrayLike
Coordinates = ArrayLike
Number = float
Wrenches = Mapping[str, ArrayLike]

Method = TypeVar("Method", bound=Callable[..., Any])


class Kind(NamedTuple):
    """How arguments with one annotation are read.

    Attributes:
        letter: the engine's name of the kind.
        sizes: lengths that vectors may have, as attributes of `Robot`; kernels read vectors of the
            first. Empty for a number.
    """

    letter: str
    sizes: tuple[str, ...]


KINDS = {
    "Position": Kind("q", ("nq",)),  # and independent positions, where there are any
    "Velocity": Kind("v", ("ny", "nv")),
    "Independent": Kind("x", ("ny",)),
    "Spanning": Kind("x", ("nv",)),
    "Coordinates": Kind("x", ("nq",)),
    "Force": Kind("f", ("ny", "nv")),
    "Number": Kind("s", ()),
}
"""Annotations of arguments that are numbers of each state."""
OTHERS = {"Wrenches | None", "FrameName", "bool", "str | None"}
"""Annotations of arguments that select the program, or add to its results."""
SIGNS = {"+": 1.0, "-": -1.0}
"""Steps that add or subtract two quantities."""
MAX_INVERTED = 24
"""Coordinates up to which the inverse of the mass matrix is one program. Longer programs do not fit
the processor's first-level cache, and the engine's loops are faster."""


class Step(NamedTuple):
    """A kernel, and the names of what it reads and writes; or ``+`` or ``-`` of two."""

    kernel: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def names(self, ports: int, *more: str) -> tuple[str, ...]:
        """Names of so many ports: inputs and ``more`` of these, and outputs.

        If loops are closed by their forces, a kernel has one more port: how well they are closed.
        """
        return (*self.inputs, *more, *self.outputs, "loop_residual")[:ports]


class Argument(NamedTuple):
    """An argument that is numbers of each state.

    Attributes:
        name: of the parameter.
        kind: its annotation.
        read_as: what kernels read it as.
    """

    name: str
    kind: str
    read_as: str


@dataclass(frozen=True)
class Operation:
    """A public computation.

    Attributes:
        name: of the method.
        function: has its signature and its documentation.
        arguments: that are numbers of each state, in their order.
        steps: kernels in the order of evaluation. Inputs that no step writes and no argument gives
            are zero.
        results: names of what is returned; `QUANTITIES` has their shapes and units.
        finite: the quantity that shows whether the mass matrix is singular.
        make: the class of several results; None for one, or a tuple.
        solves: whether results are turned into ``-H^-1`` times them, and the last is ``H^-1``.
        inverts: whether the first result is the inverse of the second and of damping.
        of_frame: whether it is about a frame.
        wrenches: whether it takes external wrenches and friction.
        extend: method ``(result, option)`` of the robot that adds to the result what the last
            argument asks for, where that is given.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Argument, ...]
    steps: tuple[Step, ...]
    results: tuple[str, ...]
    finite: str | None = None
    make: type[Any] | None = None
    solves: bool = False
    inverts: bool = False
    of_frame: bool = False
    wrenches: bool = False
    extend: str | None = None

    @property
    def documentation(self) -> str:
        """Its docstring."""
        return inspect.getdoc(self.function) or ""

    @property
    def solved(self) -> str:
        """The quantity with H, if the operation `solves`."""
        return "mass_matrix" if len(self.results) > 1 else "mass_matrix_rows"

    def reading(self, **instead: str) -> Operation:
        """The same with other kernels, which may have other inputs: ``old=new`` by name."""
        steps = tuple(step_of(instead.get(step.kernel, step.kernel)) for step in self.steps)
        return replace(self, steps=steps)

    def slots(
        self, ports: Iterable[tuple[Iterable[str], Iterable[int]]], ny: int
    ) -> dict[str, int]:
        """The size of each quantity, from names and sizes of the ports of each step."""
        sizes = {argument.read_as: 0 for argument in self.arguments}
        for names, numbers in ports:
            sizes |= dict(zip(names, numbers, strict=True))
        if self.solves:
            sizes["inverse"] = ny**2
        return sizes

    def for_size(self, ny: int) -> Operation:
        """The same for a robot of ny coordinates.

        If the result is ``H^-1`` alone and H is large, the engine's loops over rows invert it
        instead of a program.
        """
        if self.results != ("inverse",) or ny <= MAX_INVERTED:
            return self
        step = step_of("mass_matrix_rows")
        return replace(self, steps=(step,), finite=None, solves=True)

    def with_options(self, wrenches: bool, friction: bool) -> Operation:
        """The same with external wrenches, and with friction of the joints."""
        steps = list(self.steps)
        at = next((k for k, s in enumerate(steps) if f"{s.kernel}_with_wrenches" in REGISTRY), 0)
        arguments = self.arguments
        if wrenches:
            name, inputs, outputs = steps[at]
            steps[at] = Step(f"{name}_with_wrenches", (*inputs, "wrenches"), outputs)
            arguments = (*arguments, Argument("external_wrenches", "Wrenches", "wrenches"))
        if friction:
            of_joints = Step("friction_force", ("q", "yd"), ("friction",))
            name, inputs, outputs = steps[at]
            if "tau" in inputs:  # forward dynamics: friction takes from the force
                driving = tuple("driving" if each == "tau" else each for each in inputs)
                steps[at] = Step(name, driving, outputs)
                steps[at:at] = [of_joints, Step("-", ("tau", "friction"), ("driving",))]
            else:
                steps[at] = Step(name, inputs, ("frictionless",))
                total = Step("+", ("frictionless", "friction"), ("tau",))
                steps[at + 1 : at + 1] = [of_joints, total]
        return replace(self, steps=tuple(steps), arguments=arguments)


OPERATIONS: dict[str, Operation] = {}
"""Every operation by name, in the order of their definitions."""


def operation(
    *kernels: str | Step,
    returns: str,
    finite: str | None = None,
    make: type[Any] | None = None,
    solves: bool = False,
    extend: str | None = None,
) -> Callable[[Method], Method]:
    """Describe a public computation by the method below; see `Operation`.

    Args:
        kernels: names of `REGISTRY`, or `Step` where names differ from those there. None for the
            kernel with the method's own name.
        returns: names of results, separated by spaces.
        finite: as `Operation` has it.
        make: as `Operation` has it.
        solves: as `Operation` has it.
        extend: as `Operation` has it.
    """

    def describe(method: Method) -> Method:
        name = method.__name__
        arguments, others = _arguments_of(method)
        steps = tuple(each if isinstance(each, Step) else step_of(each) for each in kernels)
        record = Operation(
            name,
            method,
            arguments,
            steps or (step_of(name),),
            tuple(returns.split()),
            finite,
            make,
            solves,
            of_frame="FrameName" in others,
            wrenches="Wrenches | None" in others,
            extend=extend,
        )
        _check(record)
        OPERATIONS[name] = record
        return _dispatch(record)

    return describe


METHODS: list[str] = []
"""Methods that the engine evaluates: the operations and a few others, in the order of the engine's
table of a robot."""


def dispatched(kind: str, required: int) -> Callable[[Method], Method]:
    """A method that the engine evaluates; the decorated method handles arguments that it rejects.

    Args:
        kind: of its further arguments; see `engine/method_dispatch.c`.
        required: how many arguments its call requires.
    """

    def dispatch(method: Method) -> Method:
        name = method.__name__
        if len(METHODS) == core.MAX_METHODS:
            raise OperationError(
                f"{name} is one method too many; raise MAX_METHODS in engine/engine.h"
            )
        METHODS.append(name)
        parameters = tuple(inspect.signature(method).parameters)[1:]
        index = len(METHODS) - 1
        made: Any = core.MethodDispatch(method, _prepare, name, index, parameters, required, kind)
        return made

    return dispatch


def _dispatch(record: Operation) -> Any:
    """The method of an operation."""
    signature = inspect.signature(record.function)

    @functools.wraps(record.function)
    def read_and_evaluate(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "yd" in kwargs and "qd" not in kwargs and "qd" in signature.parameters:
            kwargs["qd"] = self._inputs.vector("yd", kwargs.pop("yd"), self.ny)
        record.function(self, *args, **kwargs)  # raises TypeError for wrong numbers of arguments
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        return self._evaluate_operation(record, bound.arguments)

    kind = "o" if record.of_frame else "w" if record.wrenches else "n"
    return dispatched(kind, len(record.arguments))(read_and_evaluate)


def _prepare(robot: Any, method: str, option: Any) -> bool:
    """Make the call of a method; whether there is one."""
    return bool(robot._calls.prepare(robot, method, option))


def step_of(kernel: str) -> Step:
    """A kernel that reads and writes what `REGISTRY` says."""
    if kernel not in REGISTRY:
        raise OperationError(f"there is no kernel {kernel!r} in kernels/registry.py; add it there")
    traceable = REGISTRY[kernel]
    if not traceable.outputs:
        raise OperationError(
            f"kernel {kernel!r} has no names of outputs; give them in kernels/registry.py"
        )
    return Step(kernel, traceable.inputs, traceable.outputs)


class OperationError(Exception):
    """A record is inconsistent; the message says which one, and what to change."""


def _arguments_of(method: Callable[..., Any]) -> tuple[tuple[Argument, ...], set[str]]:
    """The arguments that are numbers, and the annotations of all others."""
    arguments, others = [], set()
    for parameter in [*inspect.signature(method).parameters.values()][1:]:
        kind = str(parameter.annotation)
        if kind in KINDS:
            read_as = {"Position": "q", "Velocity": "yd"}.get(kind, parameter.name)
            arguments.append(Argument(parameter.name, kind, read_as))
        elif kind in OTHERS:
            others.add(kind)
        else:
            raise OperationError(
                f"{method.__name__}: {parameter.name} is annotated with {kind}; use one of"
                f" {', '.join([*KINDS, *OTHERS])}"
            )
    if not arguments or arguments[0].kind != "Position":
        raise OperationError(f"{method.__name__}: its first argument is no Position; take one")
    return tuple(arguments), others


def _check(record: Operation) -> None:
    if record.name in OPERATIONS:
        raise OperationError(
            f"{record.name}: there is another operation of this name; choose another"
        )
    if not record.documentation:
        raise OperationError(f"{record.name} has no docstring; write one")
    known = {argument.read_as for argument in record.arguments} | {"zero"}
    for step in record.steps:
        if missing := [name for name in step.inputs if name not in known]:
            raise OperationError(
                f"{record.name}: nothing gives {', '.join(missing)} to {step.kernel}; take it as"
                " an argument, or name another quantity in a Step"
            )
        known |= set(step.outputs)
    known |= {"inverse"} if record.solves else set()
    if missing := [name for name in record.results if name not in known]:
        raise OperationError(f"{record.name}: no kernel of it gives {', '.join(missing)}; add one")
    if missing := [name for name in record.results if name not in QUANTITIES]:
        raise OperationError(
            f"{record.name}: {', '.join(missing)} is unknown; add it to kernels/quantities.py"
        )
    if unused := [a.name for a in record.arguments if not _is_read(record, a)]:
        raise OperationError(f"{record.name}: no kernel reads {', '.join(unused)}; leave it out")


def _is_read(record: Operation, argument: Argument) -> bool:
    return any(argument.read_as in step.inputs for step in record.steps)


class Operations(core.MethodTable):  # type: ignore[misc, name-defined, unused-ignore]
    """The operations of a robot, as methods."""

    @operation(returns="tau", finite="tau")
    def inverse_dynamics(
        self,
        q: Position,
        qd: Velocity,
        ydd: Independent,
        external_wrenches: Wrenches | None = None,
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
            friction: whether to add the effort that overcomes the URDF's joint friction and
                damping.

        Returns:
            (ny,) force on the independent coordinates [N m, N].
        """

    @operation("inverse_dynamics", "actuator_efforts", returns="efforts tau", finite="tau")
    def inverse_dynamics_efforts(
        self,
        q: Position,
        qd: Velocity,
        ydd: Independent,
        external_wrenches: Wrenches | None = None,
        *,
        friction: bool = False,
    ) -> tuple[Array, Array]:
        """Efforts on the actuated joints that produce ydd, and the generalized force.

        `actuator_efforts` of `inverse_dynamics`, with the same arguments, checked once.

        Returns:
            (actuated,) efforts in the order of ``actuated_joint_names``, (ny,) tau [N m, N].
        """

    @operation(returns="ydd", finite="ydd")
    def forward_dynamics(
        self,
        q: Position,
        qd: Velocity,
        tau: Force,
        external_wrenches: Wrenches | None = None,
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

    @operation(returns="efforts")
    def actuator_efforts(self, q: Position, tau: Independent) -> Array:
        """Efforts on the actuated joints that give the generalized force tau on y.

        They solve ``W' efforts = tau`` (Chignoli 2024, footnotes 3 and 5). If actuators are
        redundant, the smallest efforts are returned. The part of tau that no actuator can produce,
        such as the wrench on a floating base, is ignored.

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            tau: (ny,) generalized force [N m, N].

        Returns:
            (actuated,) efforts in the order of ``actuated_joint_names`` [N m, N].
        """

    @operation(returns="tau")
    def generalized_force(self, q: Position, spanning_tau: Spanning) -> Array:
        """The force ``G' tau`` (ny,) on y that equals forces (nv,) on all joints [N m, N]."""

    @operation(returns="mass_matrix")
    def mass_matrix(self, q: Position) -> Array:
        """H(y) (ny, ny), by composite rigid bodies on the cluster tree (Featherstone 2010)."""

    @operation(returns="factor", finite="factor")
    def mass_matrix_factor(self, q: Position) -> Array:
        """L (ny, ny), lower triangular, with ``H = L' L``, as sparse as the branches make H.

        Raises:
            SingularityError: H is singular here.
        """

    @operation(returns="tau")
    def bias_force(self, q: Position, qd: Velocity) -> Array:
        """C(y, yd) (ny,): inverse dynamics at zero acceleration, gravity included [N m, N]."""

    @operation(returns="tau")
    def gravity_force(self, q: Position) -> Array:
        """The force (ny,) on y that holds the robot still against gravity [N m, N]."""

    @operation(returns="tau")
    def friction_force(self, q: Position, qd: Velocity) -> Array:
        """The force (ny,) on y that overcomes the URDF's joint friction and damping [N m, N]."""

    @operation(
        "inverse_dynamics_derivatives",
        "mass_matrix",
        returns="dtau_dy dtau_dyd mass_matrix",
        make=InverseDynamicsDerivatives,
    )
    def inverse_dynamics_derivatives(
        self, q: Position, qd: Velocity, ydd: Independent
    ) -> InverseDynamicsDerivatives:
        """Partial derivatives of `inverse_dynamics` by position, velocity and acceleration."""

    @operation(
        "forward_dynamics",
        "inverse_dynamics_derivatives",
        "mass_matrix",
        returns="dtau_dy dtau_dyd inverse",
        finite="ydd",
        make=ForwardDynamicsDerivatives,
        solves=True,
    )
    def forward_dynamics_derivatives(
        self, q: Position, qd: Velocity, tau: Force
    ) -> ForwardDynamicsDerivatives:
        """Partial derivatives of `forward_dynamics` by position, velocity and force.

        From ``ID(y, yd, FD(y, yd, tau)) = tau``: that by force is ``H^-1``, and the others are
        ``-H^-1`` times those of inverse dynamics at the same motion.
        """

    @operation(
        Step("spanning_motion", ("q", "yd", "zero"), ("qd", "qdd")),
        returns="qd",
    )
    def spanning_velocity(self, q: Position, yd: Velocity) -> Array:
        """The velocity of every joint, ``qd = G yd`` (nv,) (Chignoli 2024, Eq. 3)."""

    @operation("spanning_motion", returns="qdd")
    def spanning_acceleration(self, q: Position, qd: Velocity, ydd: Independent) -> Array:
        """The acceleration of every joint, ``qdd = G ydd + g`` (nv,) (Chignoli 2024, Eq. 3).

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s].
            ydd: (ny,) independent acceleration [rad/s^2, m/s^2].
        """

    @operation(returns="regressor", extend="_with_payload")
    def regressor(
        self, q: Position, qd: Velocity, ydd: Independent, *, payload: str | None = None
    ) -> Array:
        """Y (ny, parameters): ``Y p`` is inverse dynamics with friction (Atkeson 1986).

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s].
            ydd: (ny,) independent acceleration [rad/s^2, m/s^2].
            payload: a link; ten more columns are for an unknown load on it, in its frame.

        Returns:
            (ny, parameters), or (N, ny, parameters) of a batch, in the order of `parameters`.
        """

    @operation(returns="pose")
    def frame_pose(self, q: Position, frame: FrameName) -> Array:
        """The pose (4, 4) of a frame in the world: rotation, and origin [m]."""

    @operation(returns="jacobian")
    def jacobian(self, q: Position, frame: FrameName) -> Array:
        """The Jacobian (6, ny) of a frame with respect to y.

        World-aligned axes at the frame's origin, linear rows first: ``[v; w] = J yd``.
        """

    @operation(returns="frame_acceleration")
    def frame_bias_acceleration(self, q: Position, qd: Velocity, frame: FrameName) -> Array:
        """``J-dot yd`` (6,): acceleration of the frame's origin, then angular, at ydd = 0."""

    @operation(returns="frame_velocity")
    def frame_velocity(self, q: Position, qd: Velocity, frame: FrameName) -> Array:
        """``J yd`` (6,): velocity of the frame's origin, then angular velocity, in world axes.

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s].
            frame: a link, or a link with an offset.
        """

    @operation(returns="frame_acceleration")
    def frame_acceleration(
        self, q: Position, qd: Velocity, ydd: Independent, frame: FrameName
    ) -> Array:
        """``J ydd + J-dot yd`` (6,): acceleration of the frame's origin, then angular.

        In world axes, as a camera at rest sees it: without gravity, and with the centripetal part
        (Pinocchio's "classical" acceleration).
        """

    @operation(returns="poses")
    def frame_poses(self, q: Position) -> Array:
        """Poses (links, 4, 4) of all links in the world, in the order of ``links``."""

    @operation(returns="center_of_mass", finite="center_of_mass")
    def center_of_mass(self, q: Position) -> Array:
        """The centre of mass (3,) of all that moves, in the world [m].

        Links that are fixed to the world do not count: ``mass`` is that of the others.

        Raises:
            SingularityError: nothing that moves has a mass.
        """

    @operation(returns="center_of_mass_jacobian", finite="center_of_mass_jacobian")
    def center_of_mass_jacobian(self, q: Position) -> Array:
        """J (3, ny) of the centre of mass: its velocity is ``J yd``, in world axes [m/s]."""

    @operation(returns="center_of_mass_acceleration", finite="center_of_mass_acceleration")
    def center_of_mass_bias_acceleration(self, q: Position, qd: Velocity) -> Array:
        """``J-dot yd`` (3,): acceleration of the centre of mass at ydd = 0, in world axes."""

    @operation(returns="momentum_matrix", finite="momentum_matrix")
    def centroidal_momentum_matrix(self, q: Position) -> Array:
        """A (6, ny): ``A yd`` is the momentum of the robot (Orin 2013).

        Linear momentum, then angular momentum about the centre of mass, in world axes. Rotors count
        with all their spin; armature of joints has no momentum that could be seen from outside.
        """

    @operation(returns="centroidal_momentum", finite="centroidal_momentum")
    def centroidal_momentum(self, q: Position, qd: Velocity) -> Array:
        """Linear momentum, then angular momentum about the centre of mass (6,), in world axes.

        Units are kg m/s and kg m^2/s.
        """

    @operation(returns="centroidal_momentum_rate", finite="centroidal_momentum_rate")
    def centroidal_momentum_rate(self, q: Position, qd: Velocity, ydd: Independent) -> Array:
        """The rate ``A ydd + A-dot yd`` (6,) of `centroidal_momentum` [N, N m].

        It is the sum of all forces from outside, gravity included, and of their moments about the
        centre of mass.
        """

    @operation(returns="kinetic potential", finite="kinetic")
    def energy(self, q: Position, qd: Velocity) -> tuple[float, float]:
        """Kinetic energy ``yd' H yd / 2``, and potential energy of gravity and springs [J].

        Potential energy of gravity is ``-m g' c`` of all that moves: zero where the centre of mass
        c is at the world's origin. That of a spring is zero at its rest length. Armature counts as
        kinetic energy. Of a batch, both are (N,).
        """

    @operation(returns="coriolis_matrix")
    def coriolis_matrix(self, q: Position, qd: Velocity) -> Array:
        """C (ny, ny), of the Christoffel symbols of H: ``H-dot - 2 C`` is skew-symmetric.

        ``C yd + gravity_force`` is `bias_force` (Echeandia and Wensing 2021).
        """

    @operation(returns="inverse", finite="inverse")
    def mass_matrix_inverse(self, q: Position) -> Array:
        """H^-1 (ny, ny), from the factorization of H along its branches.

        Raises:
            SingularityError: H is singular here.
        """

    @operation(returns="reached")
    def integrate(self, q: Position, qd: Velocity, dt: Number = 1.0) -> Array:
        """The spanning position (nq,) after moving with a velocity for dt [s].

        Quaternions are turned, and a floating base is moved as by a screw: its velocity keeps its
        components in the base's own axes, as in Pinocchio. Loops are satisfied to first order:
        `close` does the rest.

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s].
            dt: time [s], the same for all states of a batch.
        """

    @operation(returns="step")
    def difference(self, q: Position, q1: Coordinates) -> Array:
        """The spanning velocity (nv,) that leads from q to q1 in unit time: reverses `integrate`.

        Angles are subtracted as they are, also those of continuous joints.

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            q1: (nq,) another spanning position.
        """
