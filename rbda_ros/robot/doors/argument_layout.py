"""Arguments of an operation as PyTorch and JAX users give them, described once for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from rbda_ros.errors import InputError
from rbda_ros.robot.doors.batch_functions import OperationFunction, independent_entries
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
        sizes: lengths of the last axis that each may have.
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
        sizes = argument_sizes(robot) | {"Wrenches": (6,)}
        if entries is not None:
            sizes["Position"] = robot.nq, len(entries)
        self.sizes = [sizes[kind] for kind in self.program.kinds]
        if parameters:
            self.names = (*self.names, "parameters")
            self.sizes.append((len(robot.parameters().values),))
        self._shapes = [self._shapes_of(i) for i in range(len(self.names))]

    def __str__(self) -> str:
        given = (self._described(i) for i in range(len(self.names)))
        results = ", ".join(
            f"{name} {_shape(shape)}"
            for name, shape in zip(self.program.record.results, self.program.shapes, strict=True)
        )
        return f"{self.operation}({', '.join(given)}) -> {results} of {self.robot.name!r}"

    def _described(self, i: int) -> str:
        return f"{self.names[i]} {' or '.join(_shape(shape) for shape in self._shapes[i])}"

    def _shapes_of(self, i: int) -> list[tuple[int, ...]]:
        """Shapes that an argument may have, without leading axes."""
        rows: tuple[int, ...] = ()
        if i < len(self.program.kinds) and self.program.kinds[i] == "Wrenches":
            rows = (len(self.program.links),)
        return [(*rows, size) for size in dict.fromkeys(self.sizes[i])]

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

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Arguments in their order.

        Raises:
            InputError: too many or too few, or unknown names.
        """
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
        possible = self._shapes[i]
        tail = len(possible[0])
        if len(shape) < tail or tuple(shape[-tail:]) not in possible:
            wanted = " or ".join(_shape(each) for each in possible)
            raise InputError(
                f"{self.names[i]} has shape {tuple(shape)}; {self.robot.name} needs {wanted}"
            )


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(['...', *map(str, shape)])})"
