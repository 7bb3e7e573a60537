"""An operation as PyTorch and JAX users call it: what both libraries have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from rbda_ros.errors import InputError
from rbda_ros.robot.doors.batch_functions import (
    BatchFunction,
    CheckedParameters,
    OperationFunction,
    independent_entries,
)
from rbda_ros.robot.doors.operation_program import argument_sizes, operation_program
from rbda_ros.robot.inputs import FrameName

WITH_PARAMETERS = ("inverse_dynamics", "forward_dynamics")


class ArgumentLayout:
    """An operation with its options, the sizes of its arguments, and its functions of batches.

    Args:
        robot: whose operation it is.
        name: of the operation.
        frame: that it is about, if it is.
        links: where external wrenches act.
        friction: whether joint friction acts.
        parameters: whether the robot's parameters are an argument.

    Attributes:
        names: of the arguments.
        shapes: that each may have, without leading axes.
    """

    def __init__(
        self,
        robot: Any,
        name: str,
        frame: FrameName | None = None,
        links: tuple[str, ...] = (),
        friction: bool = False,
        parameters: bool = False,
    ) -> None:
        if parameters and (name not in WITH_PARAMETERS or links or friction):
            raise InputError(
                f"{name}: parameters=True is only for {' and '.join(WITH_PARAMETERS)}, without "
                "wrenches; friction is among the parameters: leave the option out"
            )
        self.robot, self.operation, self.parameters = robot, name, parameters
        self._frame, self._friction = frame, friction
        self.program = operation_program(robot, name, frame, links, friction)
        self.names: tuple[str, ...] = self.program.names
        entries = independent_entries(robot)
        sizes = argument_sizes(robot)
        if entries is not None:
            sizes["Position"] = robot.nq, len(entries)
        shapes: dict[str, list[tuple[int, ...]]]
        shapes = {kind: [(size,) for size in dict.fromkeys(sizes[kind])] for kind in sizes}
        shapes["Wrenches"] = [(len(links), 6)]
        self.shapes = [shapes[kind] for kind in self.program.kinds]
        if parameters:
            self.names = (*self.names, "parameters")
            self.shapes.append([(len(robot.parameters().values),)])

    def __str__(self) -> str:
        given = (self._described(i) for i in range(len(self.names)))
        results = ", ".join(
            f"{name} {_shape(shape)}"
            for name, shape in zip(self.program.record.results, self.program.shapes, strict=True)
        )
        return f"{self.operation}({', '.join(given)}) -> {results} of {self.robot.name!r}"

    def _described(self, i: int) -> str:
        return f"{self.names[i]} {' or '.join(_shape(shape) for shape in self.shapes[i])}"

    @cached_property
    def spanning(self) -> OperationFunction:
        """The operation as a function of spanning positions."""
        return self._function(range(self.robot.nq))

    @cached_property
    def independent(self) -> OperationFunction:
        """The operation as a function of independent positions."""
        return self._function(independent_entries(self.robot) or range(self.robot.nq))

    def _function(self, positions: Sequence[int]) -> OperationFunction:
        return OperationFunction(self.robot, self.program, self._frame, self._friction, positions)

    @cached_property
    def generalized_force(self) -> ArgumentLayout:
        """The operation that turns forces on all joints into those on y."""
        return ArgumentLayout(self.robot, "generalized_force")

    @cached_property
    def regressor(self) -> ArgumentLayout:
        """The operation that inverse dynamics is, as a linear map of parameters."""
        return ArgumentLayout(self.robot, "regressor")

    @cached_property
    def checked_parameters(self) -> CheckedParameters:
        """The parameters as they are; those that are not finite are rejected."""
        return CheckedParameters(self.robot, *self.shapes[-1][0])

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Arguments in their order.

        Raises:
            InputError: too many or too few, or unknown names.
        """
        if not kwargs and len(args) == len(self.names):
            return list(args)
        if "yd" in kwargs and "qd" in self.names:  # as the methods take it
            kwargs = {"qd" if name == "yd" else name: x for name, x in kwargs.items()}
        given = dict(zip(self.names, args, strict=False))
        twice = [name for name in kwargs if name in given or name not in self.names]
        if len(args) > len(self.names) or twice or len(given) + len(kwargs) < len(self.names):
            raise InputError(f"{self.operation} takes {', '.join(self.names)}; give each once")
        given.update(kwargs)
        return [given[name] for name in self.names]

    def check_shape(self, i: int, shape: Sequence[int]) -> None:
        """Reject an argument of a wrong shape.

        Raises:
            InputError: it says which shapes there may be.
        """
        possible = self.shapes[i]
        tail = len(possible[0])
        if len(shape) < tail or tuple(shape[-tail:]) not in possible:
            wanted = " or ".join(_shape(each) for each in possible)
            raise InputError(
                f"{self.names[i]} has shape {tuple(shape)}; {self.robot.name} needs {wanted}"
            )


class TensorFunction(ABC):
    """An operation as a function of a library's arrays.

    Args:
        layout: the operation and its arguments.

    Attributes:
        library: the module of the library's functions; those that are called here have the same
            names and arguments in PyTorch and in ``jax.numpy``.
        title: of the library.
        arrays: the library's word for its arrays.
        types: of numbers that it takes.
        prepared: the function of the layout that `prepare` compiles.
    """

    library: Any
    title: str
    arrays: str
    types: tuple[Any, ...]
    prepared: str

    def __init__(self, layout: ArgumentLayout) -> None:
        self._layout = layout
        self.__name__ = layout.operation
        self.__doc__ = layout.program.record.documentation

    def __repr__(self) -> str:
        return f"<{self.title}: {self._layout}>"

    @abstractmethod
    def _array(self, name: str, given: Any) -> Any:
        """An argument as an array of the library; what is none is rejected."""

    @abstractmethod
    def _evaluate(self, layout: ArgumentLayout, given: list[Any]) -> Sequence[Any]:
        """Results at arguments whose shapes are checked."""

    @abstractmethod
    def _apply(self, function: BatchFunction, given: list[Any]) -> Sequence[Any]:
        """A function of arrays (..., size), which are broadcast along leading axes."""

    @abstractmethod
    def _solve(self, H: Any, right: Any) -> Any:
        """x (..., ny) with ``H x = right``."""

    def prepare(self) -> None:
        """Wait until value and first derivatives run at full speed."""
        layout = self._layout
        function = getattr(layout.regressor if layout.parameters else layout, self.prepared)
        for each in (function, function.vjp, function.jvp):
            each.prepare()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Results (..., shape) at arguments (..., size); see `Robot.torch` and `Robot.jax`."""
        layout = self._layout
        given = self._checked(layout.bound(args, kwargs))
        if layout.parameters:
            results: Sequence[Any] = (self._with_parameters(*given),)
        else:
            results = self._evaluate(layout, given)
        return results[0] if len(results) == 1 else tuple(results)

    def _checked(self, given: list[Any]) -> list[Any]:
        """Arguments as arrays of one type; those of wrong shape or type are rejected."""
        layout, arrays = self._layout, []
        for i, name in enumerate(layout.names):
            array = self._array(name, given[i])
            if array.dtype not in self.types:
                raise InputError(f"{name} is of {array.dtype}; give float64 or float32")
            layout.check_shape(i, array.shape)
            arrays.append(array)
        if any(array.dtype != arrays[0].dtype for array in arrays):
            kinds = zip(layout.names, (array.dtype for array in arrays), strict=True)
            listed = ", ".join(f"{name} of {dtype}" for name, dtype in kinds)
            raise InputError(f"the {self.arrays} differ in type: {listed}; convert them to one")
        return arrays

    def _with_parameters(self, q: Any, qd: Any, third: Any, parameters: Any) -> Any:
        """Inverse or forward dynamics from the regressor."""
        layout, library, ny = self._layout, self.library, self._layout.robot.ny
        home = library.asarray(layout.robot.neutral(), dtype=parameters.dtype)
        (parameters,) = self._apply(layout.checked_parameters, [home, parameters])

        def force(qd: Any, ydd: Any) -> Any:
            (Y,) = self._evaluate(layout.regressor, [q, qd, ydd])
            return (Y @ parameters[..., None])[..., 0]

        if layout.operation == "inverse_dynamics":
            return force(qd, third)
        if third.shape[-1] != ny:
            (third,) = self._evaluate(layout.generalized_force, [q, third])
        rest = library.zeros(ny, dtype=third.dtype)
        still = force(rest, rest)
        axes = library.eye(ny, dtype=third.dtype)
        H = library.stack([force(rest, axis) - still for axis in axes], axis=-1)
        ydd = self._solve(H, third - force(qd, rest))
        # A step of refinement, which also rejects an acceleration that is not finite.
        return ydd + self._solve(H, third - force(qd, ydd))

    def _read(self, layout: ArgumentLayout, q: Any, given: list[Any]) -> list[Any]:
        """Arguments after the position as the program takes them."""
        robot, read = layout.robot, []
        for kind, x in zip(layout.program.kinds[1:], given, strict=True):
            if kind == "Wrenches":
                x = x.reshape(*x.shape[:-2], -1)
            elif kind == "Velocity" and x.shape[-1] != robot.ny:
                x = x[..., list(robot.independent_coordinates)]
            elif kind == "Force" and x.shape[-1] != robot.ny:
                (x,) = self._evaluate(layout.generalized_force, [q, x])
            read.append(x)
        return read


def broadcast(library: Any, given: list[Any]) -> list[Any]:
    """Arrays (..., size) of the library with the same leading axes.

    Raises:
        InputError: the leading axes do not fit.
    """
    leading = [x.shape[:-1] for x in given]
    if all(each == leading[0] for each in leading):
        return given
    try:
        batch = library.broadcast_shapes(*leading)
    except (RuntimeError, ValueError) as error:
        shapes = ", ".join(str(tuple(x.shape)) for x in given)
        raise InputError(
            f"batches of shapes {shapes} cannot be broadcast; make them fit"
        ) from error
    return [library.broadcast_to(x, (*batch, x.shape[-1])) for x in given]


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(['...', *map(str, shape)])})"
