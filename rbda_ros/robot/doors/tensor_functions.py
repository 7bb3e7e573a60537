"""Operations as functions of PyTorch tensors and of JAX arrays, with exact derivatives.

PyTorch and JAX are imported when a function is first asked for: `torch_calls` and `jax_calls` need
them, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rbda_ros.errors import InputError
from rbda_ros.robot.doors.argument_layout import ArgumentLayout
from rbda_ros.robot.inputs import FrameName

if TYPE_CHECKING:
    from rbda_ros.robot.doors.jax_calls import JaxFunction
    from rbda_ros.robot.doors.torch_calls import TorchFunction


def torch(
    robot: Any,
    name: str,
    *,
    frame: FrameName | None = None,
    external_wrenches: Sequence[str] = (),
    friction: bool = False,
    parameters: bool = False,
) -> TorchFunction:
    """An operation as a function of PyTorch tensors, with exact derivatives.

    The function takes the method's arguments as tensors on the CPU, of float64 or float32, each
    with any leading batch axes, which are broadcast: ``q`` (..., nq) spanning or independent,
    ``qd`` (..., ny) or (..., nv), forces likewise. It returns a tensor, or a tuple of tensors, of
    the same type. It is computed in float64. Autograd works forward and backward and to any order,
    also by ``torch.func`` (``grad``, ``vjp``, ``jvp``, ``jacrev``, ``jacfwd``, ``vmap``). In code
    that ``torch.compile`` compiles, call ``torch.compiler.disable(function)`` instead.

    Positions vary along the loops: of a spanning position the gradient has zeros in the dependent
    entries, and tangents of these are not read. Values equal those of the method, as do errors.

    Args:
        robot: the robot.
        name: of the operation, e.g. ``"inverse_dynamics"``.
        frame: for operations about a frame: a link, (link, xyz) or (link, xyz, rpy).
        external_wrenches: links that wrenches act on. The function has one more argument then,
            (..., links, 6): force then moment on each, in the link's frame [N, N m].
        friction: whether the URDF's joint friction and damping act.
        parameters: of inverse and forward dynamics: take the robot's parameters as a last argument
            (..., parameters), in the order of `Robot.parameters`, friction and damping included,
            and give derivatives with respect to them: ``tau = Y(q, qd, ydd) parameters``.

    Raises:
        InputError: there is no such operation or frame, it does not take the option, or PyTorch is
            not installed. The function raises it for tensors of wrong shape, type or device, with
            numbers that are not finite, or positions off the loops, and `SingularityError` at a
            dead point.
    """
    try:
        from rbda_ros.robot.doors.torch_calls import TorchFunction
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "torch":
            raise
        raise InputError("PyTorch is not installed; pip install 'torch>=2.6,<3'") from error
    layout = ArgumentLayout(robot, name, frame, tuple(external_wrenches), friction, parameters)
    return TorchFunction(layout)


def jax(
    robot: Any,
    name: str,
    *,
    frame: FrameName | None = None,
    external_wrenches: Sequence[str] = (),
    friction: bool = False,
    parameters: bool = False,
) -> JaxFunction:
    """An operation as a function of JAX arrays, with exact derivatives.

    The function takes the method's arguments as arrays of float64 (with ``jax_enable_x64``) or
    float32, each with any leading batch axes, which are broadcast: ``q`` (..., nq) spanning or
    independent, ``qd`` (..., ny) or (..., nv), forces likewise. It returns an array, or a tuple of
    arrays, of the same type. It is computed on the CPU, in float64. Transformations may be nested:
    ``jit``, ``vmap``, ``grad``, ``jacrev``, ``jacfwd``, ``hessian``.

    Positions vary along the loops: of a spanning position the gradient has zeros in the dependent
    entries, and tangents of these are not read. Values equal those of the method.

    Args:
        robot: the robot.
        name: of the operation, e.g. ``"forward_dynamics"``.
        frame: for operations about a frame: a link, (link, xyz) or (link, xyz, rpy).
        external_wrenches: links that wrenches act on. The function has one more argument then,
            (..., links, 6): force then moment on each, in the link's frame [N, N m].
        friction: whether the URDF's joint friction and damping act.
        parameters: of inverse and forward dynamics: take the robot's parameters as a last argument
            (..., parameters), in the order of `Robot.parameters`, friction and damping included,
            and give derivatives with respect to them: ``tau = Y(q, qd, ydd) parameters``.

    Raises:
        InputError: there is no such operation or frame, it does not take the option, or JAX is not
            installed. The function raises it for arrays of wrong shape or type, at once or while
            it is traced. Numbers that are not finite, positions off the loops and dead points are
            only known when it is evaluated: `InputError` and `SingularityError` outside ``jit``;
            under ``jit`` JAX raises its own ``JaxRuntimeError`` with the same text.
    """
    try:
        from rbda_ros.robot.doors.jax_calls import JaxFunction
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("jax", "jaxlib"):
            raise
        raise InputError("JAX is not installed; pip install 'jax>=0.10,<0.11'") from error
    layout = ArgumentLayout(robot, name, frame, tuple(external_wrenches), friction, parameters)
    return JaxFunction(layout)
