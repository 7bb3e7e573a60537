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

import math
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
from rbda_ros.robot.doors.argument_layout import ArgumentLayout, TensorFunction, broadcast
from rbda_ros.robot.doors.batch_functions import BatchFunction, Jvp, as_rows, closed_from_single

TARGET = "rbda_ros_call"
INVALID_ARGUMENT, INTERNAL = 3, 13
"""XLA's codes of errors."""


class JaxFunction(TensorFunction):
    """An operation of a robot as a function of JAX arrays; see `Robot.jax`."""

    library, title, arrays = jnp, "JAX", "arrays"
    types, prepared = (np.dtype("float64"), np.dtype("float32")), "independent"

    def _array(self, name: str, given: Any) -> Any:
        try:
            return jnp.asarray(given)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} is a {type(given).__name__}; give an array") from error

    def _evaluate(self, layout: ArgumentLayout, given: list[Any]) -> list[Any]:
        q, *others = given
        spanning = q.shape[-1] == layout.robot.nq
        function = layout.spanning if spanning else layout.independent
        return self._apply(function, [q, *self._read(layout, q, others)])

    def _apply(self, function: BatchFunction, given: list[Any]) -> list[Any]:
        answers: list[Any] = CALL.bind(*broadcast(jnp, given), function=function)
        return answers

    def _solve(self, H: Any, right: Any) -> Any:
        return jnp.linalg.solve(H, right[..., None])[..., 0]


CALL = Primitive("rbda_ros_call")
CALL.multiple_results = True


def _on_host(function: BatchFunction, arrays: list[np.ndarray[Any, Any]]) -> list[Any]:
    """Evaluate with numpy arrays (..., size); results of float64."""
    batch, dtype = arrays[0].shape[:-1], arrays[0].dtype
    rows = [as_rows(x) for x in arrays]
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
    sizes = map(math.prod, function.shapes)
    flat = [
        ad.instantiate_zeros(w).reshape(*batch, size)
        for w, size in zip(cotangents, sizes, strict=True)
    ]
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
