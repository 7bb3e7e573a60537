"""Methods with many states beside their kernels' `batch` and beside a loop over Pinocchio.

On one core: batches would use several. All contenders have the same number of different states.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pinocchio as pin

from benchmark.robots import Pair, demo_leg, example_urdf, pair
from benchmark.timing import interleaved
from rbda_ros import Robot
from rbda_ros.cluster_tree.closing.tolerances import BATCH_BLOCK

Row = dict[str, object]

ROBOTS = {"ur5_robot": False, "solo12": True, "talos_reduced": True}
BATCH = 4096
LOOP = 256
"""States of a loop over Pinocchio, which takes as long for each, however many there are."""
WORK: tuple[tuple[str, Callable, int], ...] = (
    ("inverse_dynamics", pin.rnea, 3),
    ("forward_dynamics", pin.aba, 3),
    ("mass_matrix", pin.crba, 1),
)


def rows() -> Iterator[Row]:
    """Microseconds a state of the method, of its kernel, and of Pinocchio in a loop.

    The loop throws away what it gets, or keeps it in an array, as the method does. What it takes to
    fill such an array with ones bounds them all.
    """
    for name, floating_base in ROBOTS.items():
        both = pair(name, example_urdf(name), floating_base=floating_base)
        yield from _tree_rows(both)
    yield from _demo_leg_rows()


@contextmanager
def one_core() -> Iterator[None]:
    """Let this thread, and those it starts, use one core only."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _tree_rows(both: Pair) -> Iterator[Row]:
    robot, model, data = both.robot, both.model, both.model.createData()
    rng = np.random.default_rng(1)
    states = _motion(robot, both.ours[0], rng)
    theirs = [
        (pin.integrate(model, both.theirs[0], rng.uniform(-0.3, 0.3, model.nv)),
         *rng.normal(size=(2, model.nv)))
        for _ in range(LOOP)
    ]  # fmt: skip
    for method, peer, count in WORK:
        size = np.shape(peer(model, data, *theirs[0][:count]))

        def loop(peer: Callable = peer, count: int = count) -> None:
            for state in theirs:
                peer(model, data, *state[:count])

        def keeping(peer: Callable = peer, count: int = count, size: tuple = size) -> object:
            kept = np.empty((BATCH, *size))
            for k in range(BATCH):
                kept[k] = peer(model, data, *theirs[k % LOOP][:count])
            return kept

        held = np.empty((BATCH, *size))
        beside = {"loop": loop, "keeping": keeping, "filling": partial(held.fill, 1.0)}
        yield _row(robot, both.name, method, states[:count], f"pin.{peer.__name__}", beside)


def _demo_leg_rows() -> Iterator[Row]:
    """With loops to be checked, checked before, and from independent positions, to be closed."""
    robot = demo_leg()
    rng = np.random.default_rng(2)
    home = robot.independent_position(robot.tree.home)
    phase = np.linspace(0.0, 4.0, BATCH)[:, None] + np.arange(robot.ny)
    y = home + 0.2 * np.sin(phase)
    q, (yd, ydd) = robot.close(y), rng.normal(size=(2, BATCH, robot.ny))
    positions = robot._inputs.choices.newton_positions
    closure = robot._kernels.get("closure", positions)
    for kernel in (robot.kernel("loop_state"), closure):
        kernel.compile(batch=True)
    for position, how in ((q, ""), (robot.state(q), " of a state")):
        yield _row(robot, "demo_leg", "inverse_dynamics", [position, yd, ydd], how)
    # A kernel that closes too: from as near as the method does, which has to find that out.
    near = q[np.arange(BATCH) // BATCH_BLOCK * BATCH_BLOCK]
    kernel = robot.kernel("inverse_dynamics")

    def both() -> object:
        return kernel.batch(closure.batch(y, near)[0], yd, ydd)

    yield _row(robot, "demo_leg", "inverse_dynamics", [y, yd, ydd], " from y", kernels=both)


def _motion(robot: Robot, q: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """(BATCH, ...) positions around one, velocities and accelerations."""
    steps = rng.uniform(-0.3, 0.3, (BATCH, robot.ny))
    positions = [robot.tree.integrate(q, robot.spanning_velocity(q, step)) for step in steps]
    return [np.array(positions), *rng.normal(size=(2, BATCH, robot.ny))]


def _row(
    robot: Robot,
    name: str,
    method: str,
    states: list,
    peer: str = "",
    beside: dict[str, Callable[[], object]] | None = None,
    kernels: Callable[[], object] | None = None,
) -> Row:
    kernel, call = robot.kernel(method), getattr(robot, method)
    kernel.compile(batch=True)
    closed = [robot.state(states[0]).q, *states[1:]]
    alone = kernels or (lambda: kernel.batch(*closed))
    with one_core():
        for _ in range(3):  # native code comes in after the first
            call(*states)
        taken = interleaved({"method": lambda: call(*states), "kernel": alone} | (beside or {}))
    ours, of_kernel = taken["method"] / BATCH, taken["kernel"] / BATCH
    nothing = float("nan")
    loop, keeping = taken.get("loop", nothing) / LOOP, taken.get("keeping", nothing) / BATCH
    return {
        "method": f"{method}{'' if beside else peer}", "robot": name, "us": ours,
        "kernel_us": of_kernel, "over_kernel": ours / of_kernel,
        "peer": peer if beside else "", "peer_us": loop, "ratio": loop / ours,
        "peer_keeping_us": keeping, "ratio_keeping": keeping / ours,
        "filling_us": taken.get("filling", nothing) / BATCH,
    }  # fmt: skip
