"""Time of a method beyond its computation: checks, closing, and making its result.

Every method with array arguments, hot, on a fixed tree, on a floating one, and on a robot with
loops, beside the same kernels called by hand, and beside the equations that some solve with what
these give. Of loops, the kernel that checks them is shown too: a method with loops has to take that
much longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmark.methods import DT, ROBOTS, STATES, chosen, compile_methods, kernel_calls, medians
from benchmark.robots import demo_leg, example_urdf
from rbda_ros import Contact, Robot, load_robot
from rbda_ros.algorithms.crba import READ_BEYOND
from rbda_ros.engine import core
from rbda_ros.robot.operations import OPERATIONS, Operation

Row = dict[str, object]
Calls = list[Callable[[], object]]
"""The same call at several states."""


def rows() -> Iterator[Row]:
    """Microseconds of methods and of their kernels, called one after the other."""
    for name in ("ur5_robot", "talos_reduced"):
        yield from _rows(name, load_robot(example_urdf(name), floating_base=ROBOTS[name]))
    yield from _rows("demo_leg", demo_leg())


def _rows(name: str, robot: Robot) -> Iterator[Row]:
    link = next(reversed([k for k, place in robot.tree.spanning.links.items() if place.body]))
    compile_methods(robot, link)
    robot.kernel("loop_state").compile()
    rng = np.random.default_rng(0)
    home, states = robot.tree.home, []
    for _ in range(STATES):
        step = robot.spanning_velocity(home, rng.uniform(-0.1, 0.1, robot.ny))
        q = robot.close(robot.tree.integrate(home, step))
        yd, x = rng.normal(size=(2, robot.ny))
        tau = rng.normal(size=robot.nv)
        states.append(
            {"q": q, "yd": yd, "x": x, "spanning_tau": tau, "q1": home, "dt": np.array([DT])}
        )
    checks: Calls = []
    if robot.tree.has_loops:
        checks = [partial(robot.kernel("loop_state").call, state["q"]) for state in states]
    for method, ours, kernels in (*_planned(robot, link, states), *_others(robot, link, states)):
        for call in ours[:3]:
            call()
        contenders = {"method": ours, **{f"kernel {k}": each for k, each in enumerate(kernels)}}
        if checks:
            contenders["checks"] = checks
        taken = medians(contenders, None)
        alone = sum(taken[f"kernel {k}"] for k in range(len(kernels)))
        solving = _solving_us(robot, method, states[0]["q"], link)
        yield {
            "method": method, "robot": name, "us": taken["method"], "kernels_us": alone,
            "solving_us": solving, "over_us": taken["method"] - alone - solving,
            "loop_check_us": taken.get("checks", 0.0),
        }  # fmt: skip


def _planned(
    robot: Robot, link: str, states: list[dict[str, np.ndarray]]
) -> Iterator[tuple[str, Calls, list[Calls]]]:
    """Methods that are their kernels one after the other; not those that invert large matrices."""
    wrench = {link: np.array([1.0, -2.0, 3.0, 0.1, 0.2, -0.3])}
    states = [{**state, "wrenches": robot.body_wrenches(wrench)} for state in states]
    for method, record in OPERATIONS.items():
        if record.for_size(robot.ny) != record:
            continue
        for wrenches in (False, True) if record.wrenches else (False,):
            variant = record.with_options(wrenches, False) if wrenches else record
            kernels = kernel_calls(robot, variant, link, states)
            more: list[object] = [link] if record.of_frame else [wrench] if wrenches else []
            given = [_arguments(record, state) for state in states]
            ours = [partial(getattr(robot, method), *each, *more) for each in given]
            yield f"{method} with wrenches" if wrenches else method, ours, kernels


def _arguments(record: Operation, state: dict[str, np.ndarray]) -> list[object]:
    """What a method takes at a state."""
    numbers = chosen([argument.read_as for argument in record.arguments], state)
    return [
        float(x[0]) if argument.kind == "Number" else x
        for argument, x in zip(record.arguments, numbers, strict=True)
    ]


def _others(
    robot: Robot, link: str, states: list[dict[str, np.ndarray]]
) -> Iterator[tuple[str, Calls, list[Calls]]]:
    """Operational space, and contacts."""
    contacts, frames, home, zero = [Contact(link)], (link,), robot.tree.home, np.zeros(robot.ny)
    robot.operational_space_inertia(home, frames)
    motion = robot.contact_kernel(contacts)
    motion.call(home, zero, zero, np.eye(3).ravel(), np.zeros(6), np.zeros(3))
    name, options, _ = robot._inputs.operational_space(frames, False)
    space = robot._kernels.get(name, *options)
    for kernel in (motion, space):
        kernel.compile()
    yield (
        "operational_space_inertia",
        [partial(robot.operational_space_inertia, state["q"], frames) for state in states],
        [[partial(space.call, state["q"]) for state in states]],
    )
    moving = [(state["q"], state["yd"], state["x"]) for state in states]
    constant = np.eye(3).ravel(), np.zeros(6), np.zeros(3)
    yield (
        "constrained_forward_dynamics",
        [partial(robot.constrained_forward_dynamics, *state, contacts) for state in moving],
        [[partial(motion.call, *state, *constant) for state in moving]],
    )


def _solving_us(robot: Robot, method: str, q: np.ndarray, link: str) -> float:
    """Microseconds of the equations that the engine solves for a method, if any.

    They are solved by a call that copies its arguments in the place of kernels, less the same call
    that does not solve.
    """
    if method == "forward_dynamics_derivatives":
        matrix, count, parent = robot.mass_matrix(q), 3, robot.tree.independent_parents
    elif method == "operational_space_inertia":
        n = len(robot.operational_space_inertia(q, (link,)).inverse_inertia)
        ends = np.cumsum(np.arange(1, n + 1)) - 1  # each row ends with its element of the diagonal
        matrix, count, parent = np.zeros(n * (n + 1) // 2 + READ_BEYOND), 1, [*range(-1, n - 1)]
        matrix[ends] = 1.0
    else:
        return 0.0
    given = matrix.ravel(), np.eye(len(parent)).ravel()
    calls = {
        name: [partial(_solver(robot, parent, count, len(given[0]), name == "solved"), *given)]
        for name in ("solved", "copied")
    }
    taken = medians(calls, None)
    return taken["solved"] - taken["copied"]


def _solver(
    robot: Robot, parent: list[int], count: int, entries: int, solves: bool
) -> Callable[..., object]:
    """A call of the engine that solves for so many matrices, the last of which is the identity."""
    n, size = len(parent), len(parent) ** 2
    # Slots: A, B, zeros and a copy of A, zeros and copies of B, the inverse.
    matrices = 5 + count
    copies = [(1.0, (0, 2, 3)), *((1.0, (1, 4, 5 + k)) for k in range(count - 1))]
    return core.OperationCall(
        validator=robot._calls.validator,
        kinds="xx",
        sizes=(entries, size, entries, entries, *[size] * (1 + count)),
        steps=tuple(copies),
        results=tuple((k, n, n) for k in range(5, matrices)),
        constants=(),
        finite=-1,
        missed=-1,
        make=None,
        fields=(),
        mass_matrix=3 if solves else -1,
        parents=np.array(parent, np.intp),
        least=0.0,
        forces=None,
    )
