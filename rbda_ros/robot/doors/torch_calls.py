"""The only module that imports PyTorch: functions of batches as functions of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rbda_ros.errors import InputError, SingularityError
from rbda_ros.robot.doors.argument_layout import ArgumentLayout
from rbda_ros.robot.doors.batch_functions import BatchFunction, closed_from_single

TYPES = (torch.float64, torch.float32)
_in_torch_func: Any = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)


class TorchFunction:
    """An operation of a robot as a function of tensors; see `Robot.torch`.

    Args:
        layout: the operation and its arguments.
    """

    def __init__(self, layout: ArgumentLayout) -> None:
        self._layout = layout
        self.__name__ = layout.operation
        self.__doc__ = layout.program.record.documentation
        self._positions = list(layout.independent._positions)

    def __repr__(self) -> str:
        return f"<PyTorch: {self._layout}>"

    def prepare(self) -> None:
        """Wait until value and first derivatives run at full speed."""
        function = (self._layout.regressor if self._layout.parameters else self._layout).spanning
        for each in (function, function.vjp, function.jvp):
            each.prepare()

    def __call__(self, *args: Tensor, **kwargs: Tensor) -> Any:
        """Results (..., shape) at arguments (..., size); see `Robot.torch`."""
        layout = self._layout
        given = layout.bound(args, kwargs)
        dtype = _checked(layout, given)
        if layout.parameters:
            *given, parameters = given
            results: Any = (self._with_parameters(given, parameters.to(torch.float64)),)
        else:
            results = self._evaluate(layout, given)
        if dtype != torch.float64:
            results = tuple(each.to(dtype) for each in results)
        return results[0] if len(results) == 1 else results

    def _evaluate(self, layout: ArgumentLayout, given: list[Tensor]) -> tuple[Tensor, ...]:
        """Results of float64 at arguments whose shapes are checked."""
        robot = layout.robot
        q = self._position(given[0])
        read = [q]
        for kind, x in zip(layout.program.kinds[1:], given[1:], strict=True):
            x = _double(x)
            if kind == "Wrenches":
                x = x.flatten(-2)
            elif kind == "Velocity" and x.shape[-1] != robot.ny:
                x = x[..., list(robot.independent_coordinates)]
            elif kind == "Force" and x.shape[-1] != robot.ny:
                (x,) = _apply(layout.generalized_force.spanning, [q, x])
            read.append(x)
        return _apply(layout.spanning, read)

    def _position(self, q: Tensor) -> Tensor:
        """The spanning position of float64."""
        robot = self._layout.robot
        refine = q.dtype == torch.float32 and robot.has_loops
        q64 = _double(q)
        if q.shape[-1] == robot.nq and not refine:
            return q64
        closed: Tensor = _Close.apply(robot, self._positions, q64)
        return closed

    def _with_parameters(self, given: list[Tensor], parameters: Tensor) -> Tensor:
        """Inverse or forward dynamics from the regressor."""
        layout = self._layout
        q, qd, third = given
        ny = layout.robot.ny

        def force(qd: Tensor, ydd: Tensor) -> Tensor:
            (Y,) = self._evaluate(layout.regressor, [q, qd, ydd])
            return (Y @ parameters.unsqueeze(-1)).squeeze(-1)

        if layout.operation == "inverse_dynamics":
            return force(qd, third)
        if third.shape[-1] != ny:
            (third,) = _apply(
                layout.generalized_force.spanning, [self._position(q), third.to(torch.float64)]
            )
        rest = torch.zeros(ny, dtype=torch.float64)
        still = force(rest, rest)
        columns = [force(rest, axis) - still for axis in torch.eye(ny, dtype=torch.float64)]
        H = torch.stack(columns, dim=-1)
        third = third.to(torch.float64)
        try:
            ydd = torch.linalg.solve(H, third - force(qd, rest))
            # A step of refinement, which also rejects an acceleration that is not finite.
            return ydd + torch.linalg.solve(H, third - force(qd, ydd))
        except torch.linalg.LinAlgError as error:
            raise SingularityError(
                f"{layout.robot.name}: the mass matrix of these parameters is singular; "
                "give every joint some inertia"
            ) from error


def _checked(layout: ArgumentLayout, given: list[Any]) -> torch.dtype:
    """The type of all tensors; those of wrong shape, type or device are rejected."""
    for i, x in enumerate(given):
        name = layout.names[i]
        if not isinstance(x, Tensor):
            raise InputError(f"{name} is a {type(x).__name__}; give a torch.Tensor")
        if x.dtype not in TYPES:
            raise InputError(f"{name} is of {x.dtype}; give float64 or float32")
        if x.device.type != "cpu":
            raise InputError(f"{name} is on {x.device}; move it to the CPU")
        layout.check_shape(i, x.shape)
    if len({x.dtype for x in given}) > 1:
        kinds = ", ".join(f"{n} of {x.dtype}" for n, x in zip(layout.names, given, strict=True))
        raise InputError(f"the tensors differ in type: {kinds}; convert them to one")
    dtype: torch.dtype = given[0].dtype
    return dtype


def _apply(function: BatchFunction, given: list[Tensor]) -> tuple[Tensor, ...]:
    """A function of float64 tensors (..., size), broadcast along leading axes."""
    leading = [x.shape[:-1] for x in given]
    if any(each != leading[0] for each in leading):
        try:
            batch = torch.broadcast_shapes(*leading)
        except RuntimeError as error:
            shapes = ", ".join(str(tuple(x.shape)) for x in given)
            raise InputError(
                f"batches of shapes {shapes} cannot be broadcast; make them fit"
            ) from error
        given = [x.expand(*batch, x.shape[-1]) for x in given]
    return _call(function, *given)


def _call(function: BatchFunction, *given: Tensor) -> tuple[Tensor, ...]:
    """`_Call.apply`. Outside ``torch.func`` without its look at the signature of ``forward``.

    That look takes as long as a short kernel takes for thousands of states.
    """
    apply: Any = _Call.apply if _in_torch_func() else super(torch.autograd.Function, _Call).apply
    answers: tuple[Tensor, ...] = apply(function, *given)
    return answers


class _Call(torch.autograd.Function):
    """A function of batches; its derivatives are such functions again."""

    @staticmethod
    def forward(function: BatchFunction, *given: Tensor) -> tuple[Tensor, ...]:
        """Evaluate at tensors (..., size) with the same leading axes."""
        batch = given[0].shape[:-1]
        answers = map(torch.from_numpy, function.evaluate(*map(_rows, given)))
        if len(batch) == 1:
            return tuple(answers)
        return tuple(answer.reshape((*batch, *answer.shape[1:])) for answer in answers)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what derivatives need."""
        ctx.function, *given = inputs
        ctx.save_for_backward(*given)
        ctx.save_for_forward(*given)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        """Cotangents of the inputs."""
        function, given = ctx.function, ctx.saved_tensors
        batch = given[0].shape[:-1]
        flat = [w if w.dim() == len(batch) + 1 else w.reshape(*batch, -1) for w in cotangents]
        return None, *_call(function.vjp, *given, *flat)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Tangents of the outputs."""
        function, given = ctx.function, ctx.saved_tensors
        moves = [
            torch.zeros_like(x) if dx is None else dx
            for x, dx in zip(given, tangents[1:], strict=True)
        ]
        return _Call.apply(function.jvp, *given, *moves)

    @staticmethod
    def vmap(info: Any, in_dims: Any, function: BatchFunction, *given: Tensor) -> Any:
        """One more leading axis."""
        dims = in_dims[1:]
        moved = [_leading(x, dim, info.batch_size) for x, dim in zip(given, dims, strict=True)]
        answers = _Call.apply(function, *moved)
        return answers, (0,) * len(answers)


class _Close(torch.autograd.Function):
    """Independent positions, or spanning ones of single precision, to closed spanning ones.

    What is made of the result reads derivatives of its independent entries alone, so these are
    what is passed on.
    """

    @staticmethod
    def forward(robot: Any, positions: list[int], q: Tensor) -> Tensor:
        """Closed positions (..., nq)."""
        rows = _rows(q)
        spanning = q.shape[-1] == robot.nq
        closed = closed_from_single(robot, rows) if spanning else robot.state(rows).q
        return torch.from_numpy(np.array(closed)).reshape(*q.shape[:-1], robot.nq)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep which entries were given."""
        robot, positions, q = inputs
        ctx.positions = list(range(robot.nq)) if q.shape[-1] == robot.nq else positions
        ctx.nq = robot.nq

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        """The entries that were given."""
        return None, None, cotangent[..., ctx.positions]

    @staticmethod
    def jvp(ctx: Any, robot: Any, positions: Any, tangent: Tensor) -> Tensor:
        """The tangents in their entries, and zeros."""
        if tangent.shape[-1] == ctx.nq:
            return tangent.clone()
        place = torch.zeros(tangent.shape[-1], ctx.nq, dtype=tangent.dtype)
        place[range(tangent.shape[-1]), ctx.positions] = 1.0
        return tangent @ place

    @staticmethod
    def vmap(info: Any, in_dims: Any, robot: Any, positions: list[int], q: Tensor) -> Any:
        """One more leading axis."""
        q = _leading(q, in_dims[2], info.batch_size)
        return _Close.apply(robot, positions, q), 0


def _double(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.to(torch.float64)


def _rows(x: Tensor) -> Any:
    """(N, size) of numpy, the same memory where that can be."""
    x = x.detach()
    return (x if x.dim() == 2 else x.reshape(-1, x.shape[-1])).contiguous().numpy()


def _leading(x: Tensor, dim: int | None, size: int) -> Tensor:
    """The tensor with its mapped axis in front; repeated where it has none."""
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
