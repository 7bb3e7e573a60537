"""PyTorch and JAX functions with gradients, beside our own batch kernels and adam.

Our own batch kernels are two calls with numpy arrays of the same states: the operation, and its
derivatives (``forward_dynamics`` and ``forward_dynamics_derivatives``). Also shown is the least
that the two libraries could take: the operation, and the kernel of the product of cotangents with
its Jacobian, which is what their backward pass evaluates. The rows of the libraries also have the
sum of all results and its gradient, and arrays of their own, which are not in the caches: PyTorch
takes about 40 us for this and for its graph, whatever the robot.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.robots import example_urdf
from rbda_ros import load_robot

STATES, REPEATS, OF_ADAM = 4096, 40, 1
ROBOTS = Path(__file__).resolve().parents[1] / "docs" / "cookbook"


def rows() -> Iterator[dict[str, object]]:
    """Forward plus backward of forward dynamics for 4,096 states [ms], and ratios."""
    for name, urdf, loops in _robots():
        robot = load_robot(urdf, loops)
        rng = np.random.default_rng(0)
        spread = 0.1 * rng.uniform(-1.0, 1.0, (STATES, robot._inputs.independent_size))
        q = robot.close(robot.independent_position(robot.neutral()) + spread)
        given = [q, *rng.normal(size=(2, STATES, robot.ny))]
        for operation in ("inverse_dynamics", "forward_dynamics"):
            yield from _rows_of(robot, name, operation, given, None if loops else urdf)


def _rows_of(
    robot: Any, name: str, operation: str, given: list[Any], urdf: Any
) -> Iterator[dict[str, object]]:
    from rbda_ros.robot.doors.argument_layout import ArgumentLayout

    function = ArgumentLayout(robot, operation).spanning
    function.prepare()
    function.vjp.prepare()
    robot.prepare(f"{operation}_derivatives", batch=True)
    value, derivatives = getattr(robot, operation), getattr(robot, f"{operation}_derivatives")
    ones = np.ones((STATES, robot.ny))

    def kernels() -> None:
        value(*given)
        derivatives(*given)

    def products() -> None:
        value(*given)
        function.vjp.kernel.batch(*given, ones)

    calls = {"numpy": kernels, "kernels of both passes": products}
    for library, make in (("torch", _torch), ("jax", _jax)):
        try:
            calls[library] = make(robot, operation, given)
        except Exception as error:  # it is not installed
            print(f"{library}: {error}")
    took = dict.fromkeys(calls, np.inf)
    for _ in range(REPEATS):  # in turns, so that all see the same load
        for library, call in calls.items():
            took[library] = min(took[library], _seconds(call))
    if urdf is not None:
        try:
            adam = _adam(urdf, robot, operation, given)
            took["adam"] = min(_seconds(adam) for _ in range(OF_ADAM))
        except Exception as error:  # it is not installed, or does not know the file
            print(f"adam: {error}")
    for library, seconds in took.items():
        yield {
            "robot": name,
            "operation": operation,
            "library": library,
            "ms": f"{1e3 * seconds:.2f}",
            "of_numpy": f"{seconds / took['numpy']:.2f}",
            "of_least": f"{seconds / took['kernels of both passes']:.2f}",
        }


def _robots() -> Iterator[tuple[str, Any, Any]]:
    yield "parallel_ankle", ROBOTS / "parallel_ankle.urdf", ROBOTS / "parallel_ankle.yaml"
    yield "ur5", example_urdf("ur5_robot"), None


def _torch(robot: Any, operation: str, given: list[Any]) -> Callable[[], None]:
    import torch

    function = robot.torch(operation)
    function.prepare()
    tensors = [torch.tensor(x, requires_grad=True) for x in given]

    def call() -> None:
        torch.autograd.grad(function(*tensors).sum(), tensors)  # as JAX: nothing is accumulated

    return call


def _jax(robot: Any, operation: str, given: list[Any]) -> Callable[[], None]:
    import jax

    jax.config.update("jax_enable_x64", True)
    function = robot.jax(operation)
    function.prepare()
    both = jax.jit(jax.value_and_grad(lambda *x: function(*x).sum(), argnums=(0, 1, 2)))
    arrays = [jax.numpy.array(x) for x in given]

    def call() -> None:
        jax.block_until_ready(both(*arrays))

    call()
    return call


def _adam(urdf: Any, robot: Any, operation: str, given: list[Any]) -> Callable[[], None]:
    import torch
    from adam.pytorch import KinDynComputations

    torch.set_default_dtype(torch.float64)
    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
        file.write(urdf)
        file.flush()
        adam = KinDynComputations(file.name, list(robot.joint_names), dtype=torch.float64)
    base = torch.eye(4).repeat(STATES, 1, 1)
    still = torch.zeros(STATES, 6)
    n = robot.ny

    def call() -> None:
        q, qd, x = (torch.tensor(each, requires_grad=True) for each in given)
        H = adam.mass_matrix(base, q)[:, 6:, 6:]
        C = adam.bias_force(base, q, still, qd)[:, 6:]
        if operation == "inverse_dynamics":
            answer = (H @ x[..., None])[..., 0] + C
        else:
            answer = torch.linalg.solve(H, x - C)
        assert answer.shape == (STATES, n)
        answer.sum().backward()

    return call


def _seconds(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
