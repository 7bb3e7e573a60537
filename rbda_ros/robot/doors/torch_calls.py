"""The only module that imports PyTorch: functions of batches as functions of tensors."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from rbda_ros.errors import InputError, SingularityError
from rbda_ros.robot.doors.argument_layout import ArgumentLayout, TensorFunction, broadcast
from rbda_ros.robot.doors.batch_functions import BatchFunction, as_rows, closed_from_single

_in_torch_func: Any = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)


def _in_forward_ad() -> bool:
    return getattr(forward_ad, "_current_level", 0) >= 0


class TorchFunction(TensorFunction):
    """An operation of a robot as a function of tensors; see `Robot.torch`."""

    library, title, arrays = torch, "PyTorch", "tensors"
    types, prepared = (torch.float64, torch.float32), "spanning"

    def __call__(self, *args: Tensor, **kwargs: Tensor) -> Any:
        """Results (..., shape) at arguments (..., size); see `Robot.torch`."""
        if not kwargs and self._is_read_as_it_is(args):
            results: Any = _call(self._layout.spanning, *args)
            return results[0] if len(results) == 1 else results
        results = super().__call__(*args, **kwargs)
        dtype = (args or tuple(kwargs.values()))[0].dtype
        if dtype == torch.float64:
            return results
        if isinstance(results, Tensor):
            return results.to(dtype)
        return tuple(each.to(dtype) for each in results)

    def _is_read_as_it_is(self, given: tuple[Any, ...]) -> bool:
        """Whether the tensors are what the kernels read, so that nothing is left to check.

        For thousands of states the other checks take a tenth of the time of a short kernel.
        """
        if len(given) != len(self._read_sizes):
            return False
        leading = None
        for x, size in zip(given, self._read_sizes, strict=True):
            if not isinstance(x, Tensor) or x.dtype != torch.float64 or not x.is_cpu:
                return False
            if x.is_nested or x.layout != torch.strided:
                return False
            leading = x.shape[:-1] if leading is None else leading
            if x.shape != (*leading, size):
                return False
        return True

    @cached_property
    def _read_sizes(self) -> tuple[int, ...]:
        """Sizes of the arguments that kernels read; none with parameters, or with wrenches."""
        layout = self._layout
        return () if layout.parameters or layout.program.links else layout.spanning.sizes

    def _array(self, name: str, given: Any) -> Tensor:
        if not isinstance(given, Tensor):
            raise InputError(f"{name} is a {type(given).__name__}; give a torch.Tensor")
        if not given.is_cpu:
            raise InputError(f"{name} is on {given.device}; move it to the CPU")
        if given.is_nested or given.layout != torch.strided:
            layout = "nested" if given.is_nested else given.layout
            raise InputError(f"{name} is {layout}; give a dense tensor")
        return given

    def _evaluate(self, layout: ArgumentLayout, given: list[Tensor]) -> tuple[Tensor, ...]:
        q = self._position(given[0])
        others = [_double(x) for x in given[1:]]
        return self._apply(layout.spanning, [q, *self._read(layout, q, others)])

    def _apply(self, function: BatchFunction, given: list[Tensor]) -> tuple[Tensor, ...]:
        return _call(function, *broadcast(torch, given))

    def _position(self, q: Tensor) -> Tensor:
        """The spanning position of float64."""
        robot = self._layout.robot
        refine = q.dtype == torch.float32 and robot.has_loops
        q64 = _double(q)
        if q.shape[-1] == robot.nq and not refine:
            return q64
        closed: Tensor = _Close.apply(robot, list(self._layout.independent._positions), q64)
        return closed

    def _with_parameters(self, q: Any, qd: Any, third: Any, parameters: Any) -> Any:
        return super()._with_parameters(self._position(q), qd, _double(third), _double(parameters))

    def _solve(self, H: Tensor, right: Tensor) -> Tensor:
        try:
            return torch.linalg.solve(H, right)
        except torch.linalg.LinAlgError as error:
            raise SingularityError(
                f"{self._layout.robot.name}: the mass matrix of these parameters is singular; "
                "give every joint some inertia"
            ) from error


def _call(function: BatchFunction, *given: Tensor) -> tuple[Tensor, ...]:
    """A function of float64 tensors with the same leading axes, as part of the graph if needed.

    Outside ``torch.func`` without `Function.apply` where nothing is differentiated, and without its
    look at the signature of ``forward`` elsewhere: both take as long as a short kernel takes for
    thousands of states.
    """
    if _in_torch_func():
        answers: tuple[Tensor, ...] = _Call.apply(function, *given)
        return answers
    differentiated = torch.is_grad_enabled() and any(x.requires_grad for x in given)
    if not differentiated and not _in_forward_ad():
        return _Call.forward(function, *given)
    apply: Any = super(torch.autograd.Function, _Call).apply
    answers = apply(function, *given)
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
        flat = [
            w if len(shape) == 1 else w.reshape(*batch, math.prod(shape))
            for w, shape in zip(cotangents, function.shapes, strict=True)
        ]
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
    return as_rows(x.numpy(force=True))


def _leading(x: Tensor, dim: int | None, size: int) -> Tensor:
    """The tensor with its mapped axis in front; repeated where it has none."""
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
