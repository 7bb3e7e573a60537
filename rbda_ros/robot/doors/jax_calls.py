"""The only module that imports JAX: functions of batches as functions of its arrays.

One primitive evaluates a `BatchFunction`, and the function is its parameter. Its tangents are the
same primitive with ``function.jvp``, which is linear in the tangents and transposed to
``function.vjp``: so every order of forward and reverse derivatives is there.

Code that JAX compiled for the CPU calls the engine (`engine/xla_call.c`) through XLA's
foreign-function interface, with a key of the function. Of float64 the engine reads the arguments
and writes the results where XLA has them, without Python. What it cannot take comes here. No array
of JAX is made, so that the call needs no other thread of JAX's.
"""

from __future__ import annotations

import secrets
from typing import Any
from weakref import WeakValueDictionary, finalize

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from rbda_ros.engine import core
from rbda_ros.errors import InputError, ModelError
from rbda_ros.robot.doors.argument_layout import ArgumentLayout
from rbda_ros.robot.doors.batch_functions import BatchFunction, Jvp, closed_from_single

TYPES = (np.dtype("float64"), np.dtype("float32"))
TARGET = "rbda_ros_call"
INVALID_ARGUMENT, INTERNAL = 3, 13
"""XLA's codes of errors."""


class JaxFunction:
    """An operation of a robot as a function of JAX arrays; see `Robot.jax`.

    Args:
        layout: the operation and its arguments.
    """

    def __init__(self, layout: ArgumentLayout) -> None:
        self._layout = layout
        self.__name__ = layout.operation
        self.__doc__ = layout.program.record.documentation

    def __repr__(self) -> str:
        return f"<JAX: {self._layout}>"

    def prepare(self) -> None:
        """Wait until value and first derivatives run at full speed."""
        function = (self._layout.regressor if self._layout.parameters else self._layout).independent
        for each in (function, function.vjp, function.jvp):
            each.prepare()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Results (..., shape) at arguments (..., size); see `Robot.jax`."""
        layout = self._layout
        given = _checked(layout, layout.bound(args, kwargs))
        if layout.parameters:
            *given, parameters = given
            return self._with_parameters(given, parameters)
        results = _evaluate(layout, given)
        return results[0] if len(results) == 1 else tuple(results)

    def _with_parameters(self, given: list[Any], parameters: Any) -> Any:
        """Inverse or forward dynamics from the regressor."""
        layout = self._layout
        q, qd, third = given
        ny = layout.robot.ny

        def force(qd: Any, ydd: Any) -> Any:
            (Y,) = _evaluate(layout.regressor, [q, qd, ydd])
            return (Y @ parameters[..., None])[..., 0]

        if layout.operation == "inverse_dynamics":
            return force(qd, third)
        if third.shape[-1] != ny:
            (third,) = _evaluate(layout.generalized_force, [q, third])
        rest = jnp.zeros(ny, q.dtype)
        still = force(rest, rest)
        H = jnp.stack([force(rest, axis) - still for axis in jnp.eye(ny, dtype=q.dtype)], axis=-1)
        ydd = _solved(H, third - force(qd, rest))
        # A step of refinement, which also rejects an acceleration that is not finite.
        return ydd + _solved(H, third - force(qd, ydd))


def _solved(H: Any, right: Any) -> Any:
    return jnp.linalg.solve(H, right[..., None])[..., 0]


def _evaluate(layout: ArgumentLayout, given: list[Any]) -> list[Any]:
    """Results at arguments whose shapes are checked."""
    robot = layout.robot
    q = given[0]
    read = [q]
    for kind, x in zip(layout.program.kinds[1:], given[1:], strict=True):
        if kind == "Wrenches":
            x = x.reshape(*x.shape[:-2], -1)
        elif kind == "Velocity" and x.shape[-1] != robot.ny:
            x = x[..., list(robot.independent_coordinates)]
        elif kind == "Force" and x.shape[-1] != robot.ny:
            (x,) = _evaluate(layout.generalized_force, [q, x])
        read.append(x)
    spanning = q.shape[-1] == robot.nq
    return _apply(layout.spanning if spanning else layout.independent, read)


def _checked(layout: ArgumentLayout, given: list[Any]) -> list[Any]:
    """Arguments as arrays of one type; those of wrong shape or type are rejected."""
    arrays = []
    for i, x in enumerate(given):
        name = layout.names[i]
        try:
            array = jnp.asarray(x)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} is a {type(x).__name__}; give an array") from error
        if array.dtype not in TYPES:
            raise InputError(f"{name} is of {array.dtype}; give float64 or float32")
        layout.check_shape(i, array.shape)
        arrays.append(array)
    if len({x.dtype for x in arrays}) > 1:
        kinds = ", ".join(f"{n} of {x.dtype}" for n, x in zip(layout.names, arrays, strict=True))
        raise InputError(f"the arrays differ in type: {kinds}; convert them to one")
    return arrays


def _apply(function: BatchFunction, given: list[Any]) -> list[Any]:
    """A function of arrays (..., size), broadcast along leading axes."""
    try:
        batch = jnp.broadcast_shapes(*(x.shape[:-1] for x in given))
    except ValueError as error:
        shapes = ", ".join(str(x.shape) for x in given)
        raise InputError(
            f"batches of shapes {shapes} cannot be broadcast; make them fit"
        ) from error
    given = [jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in given]
    answers: list[Any] = CALL.bind(*given, function=function)
    return answers


CALL = Primitive("rbda_ros_call")
CALL.multiple_results = True


def _on_host(function: BatchFunction, arrays: list[np.ndarray[Any, Any]]) -> list[Any]:
    """Evaluate with numpy arrays (..., size); results of float64."""
    batch, dtype = arrays[0].shape[:-1], arrays[0].dtype
    rows = [np.ascontiguousarray(x, np.float64).reshape(-1, x.shape[-1]) for x in arrays]
    robot = function._robot
    if dtype == np.float32 and robot.has_loops and rows[0].shape[-1] == robot.nq:
        rows[0] = closed_from_single(robot, rows[0])
    return [a.reshape((*batch, *a.shape[1:])) for a in function.evaluate(*rows)]


def _shapes(*given: Any, function: BatchFunction) -> list[Any]:
    """Abstract results of the primitive for arguments of these shapes."""
    batch, dtype = given[0].shape[:-1], given[0].dtype
    return [jax.core.ShapedArray((*batch, *shape), dtype) for shape in function.shapes]


@CALL.def_impl
def _evaluate_now(*given: Any, function: BatchFunction) -> list[Any]:
    arrays = [np.asarray(x) for x in given]
    answers = _on_host(function, arrays)
    return [jnp.asarray(a.astype(arrays[0].dtype, copy=False)) for a in answers]


FUNCTIONS: WeakValueDictionary[int, BatchFunction] = WeakValueDictionary()
"""Functions of compiled code by their keys, which no other process has: code that JAX kept on disk
finds none. Compiled code keeps its functions alive."""
TARGETS: dict[int, Any] = {}
"""Engine's calls by the same keys, from the first call on."""


def _lowered(ctx: Any, *operands: Any, function: BatchFunction) -> Any:
    """The call inside compiled code for the CPU."""
    key = next((k for k, each in FUNCTIONS.items() if each is function), None)
    if key is None:
        key = secrets.randbits(62)
        FUNCTIONS[key] = function
        finalize(function, TARGETS.pop, key, None)
    ctx.module_context.add_keepalive(function)
    return jax.ffi.ffi_lowering(TARGET)(ctx, *operands, key=np.int64(key))


Described = tuple[memoryview, tuple[int, ...], int]
"""Memory of XLA's, the shape of an array in it, and how many bytes a number has."""


def _evaluate_buffers(
    key: int, given: tuple[Described, ...], results: tuple[Described, ...]
) -> tuple[int, str] | None:
    """Answer a call that the engine does not; or say with XLA's code what is wrong."""
    try:
        function = FUNCTIONS.get(key)
        if function is None:
            return INTERNAL, "rbda_ros: code of another process; clear JAX's compilation cache"
        answers = _on_host(function, [_array(each) for each in given])
        for answer, place in zip(answers, results, strict=True):
            _array(place)[...] = answer
        if key not in TARGETS:
            TARGETS[key] = function.engine_call
    except (InputError, ModelError) as error:
        return INVALID_ARGUMENT, f"{type(error).__name__}: {error}"
    except Exception as error:
        return INTERNAL, f"rbda_ros: {type(error).__name__}: {error}"
    return None


def _array(described: Described) -> np.ndarray[Any, Any]:
    memory, shape, size = described
    return np.frombuffer(memory, np.dtype(f"f{size}")).reshape(shape)


def _traced(*given: Any, function: BatchFunction) -> list[Any]:
    """The same inside code for other devices: JAX brings the numbers to the CPU and back."""
    batch, dtype = given[0].shape[:-1], given[0].dtype
    shapes = [jax.ShapeDtypeStruct((*batch, *shape), dtype) for shape in function.shapes]

    def call(*given: Any) -> list[Any]:
        answers = _on_host(function, [np.asarray(x) for x in given])
        return [answer.astype(dtype, copy=False) for answer in answers]

    answers: list[Any] = jax.pure_callback(call, shapes, *given)
    return answers


def _tangents(primals: Any, tangents: Any, *, function: BatchFunction) -> Any:
    moves = [ad.instantiate_zeros(each) for each in tangents]
    answers = CALL.bind(*primals, function=function)
    return answers, CALL.bind(*primals, *moves, function=function.jvp)


def _transposed(cotangents: Any, *given: Any, function: BatchFunction) -> list[Any]:
    """Cotangents of the tangents that a function's ``jvp`` is linear in."""
    assert isinstance(function, Jvp)
    count = len(function.base.sizes)
    primals, moves = given[:count], given[count:]
    batch = primals[0].shape[:-1]
    flat = [ad.instantiate_zeros(w).reshape(*batch, -1) for w in cotangents]
    gradients = CALL.bind(*primals, *flat, function=function.base.vjp)
    wanted = [ad.is_undefined_primal(each) for each in moves]
    found = [g if w else None for g, w in zip(gradients, wanted, strict=True)]
    return [None] * count + found


def _mapped(given: Any, axes: Any, *, function: BatchFunction) -> Any:
    """One more leading axis."""
    size = next(x.shape[axis] for x, axis in zip(given, axes, strict=True) if axis is not None)
    moved = [
        jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(given, axes, strict=True)
    ]
    answers = CALL.bind(*moved, function=function)
    return answers, [0] * len(answers)


CALL.def_abstract_eval(_shapes)
mlir.register_lowering(CALL, mlir.lower_fun(_traced, multiple_results=True))
jax.ffi.register_ffi_target(TARGET, core.xla_handler(_evaluate_buffers, TARGETS), platform="cpu")
mlir.register_lowering(CALL, _lowered, platform="cpu")
ad.primitive_jvps[CALL] = _tangents
ad.primitive_transposes[CALL] = _transposed
batching.primitive_batchers[CALL] = _mapped
