"""Arguments of operations for tests of the doors: CasADi, PyTorch and JAX functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from mechanism_table import MECHANISMS, closed_states
from scipy.optimize import brentq

from rbda_ros import Robot
from rbda_ros.robot.operations import OPERATIONS, Operation


def frame_of(robot: Robot, operation: str) -> str | None:
    """The frame that an operation is asked about."""
    return robot.links[-1] if OPERATIONS[operation].of_frame else None


def options_of(robot: Robot, operation: str) -> dict[str, Any]:
    """The frame as a keyword, where there is one."""
    frame = frame_of(robot, operation)
    return {} if frame is None else {"frame": frame}


def positions_of(mechanism: str, count: int) -> np.ndarray:
    """(count, nq) closed positions away from singularities."""
    robot = MECHANISMS[mechanism].load()
    return np.array([robot.state(q).q for q in closed_states(MECHANISMS[mechanism], count)])


def arguments_of(mechanism: str, operation: str, count: int) -> list[np.ndarray]:
    """(count, size) arguments: spanning positions, independent velocities, random vectors."""
    robot = MECHANISMS[mechanism].load()
    rng = np.random.default_rng(0)
    positions = positions_of(mechanism, count + 1)
    sizes = {"Spanning": robot.nv, "Number": 1}
    arguments = [positions[:count]]
    for argument in OPERATIONS[operation].arguments[1:]:
        if argument.kind == "Coordinates":
            arguments.append(positions[1:])
        else:
            arguments.append(rng.normal(size=(count, sizes.get(argument.kind, robot.ny))))
    return arguments


def method_results(robot: Robot, operation: str, given: list[np.ndarray]) -> list[np.ndarray]:
    """Results of the method at one state, in order."""
    record = OPERATIONS[operation]
    pairs = zip(record.arguments, given, strict=True)
    numbers = [float(x[0]) if argument.kind == "Number" else x for argument, x in pairs]
    return results_of(record, getattr(robot, operation)(*numbers, **options_of(robot, operation)))


def results_of(record: Operation, answer: Any) -> list[np.ndarray]:
    """Results of a method in the order of its record."""
    if record.make is not None:
        return [np.asarray(getattr(answer, field)) for field in record.make.__dataclass_fields__]
    return [np.asarray(each) for each in (answer if isinstance(answer, tuple) else (answer,))]


def dead_point() -> tuple[Robot, np.ndarray]:
    """A slider-crank whose position is that of its wrist pin, where the pin turns back."""
    robot = MECHANISMS["slider_crank"].load()
    pin = robot.joint_names.index("wrist_pin")

    def rate_of_pin(crank: float) -> float:
        return robot.spanning_velocity(robot.close({"crank": crank}), [1.0])[pin]

    cranks = np.linspace(0.0, 2 * np.pi, 9)
    signs = np.sign([rate_of_pin(crank) for crank in cranks])
    k = int(np.flatnonzero(signs[1:] != signs[:-1])[0])
    crank = brentq(rate_of_pin, cranks[k], cranks[k + 1], xtol=1e-14)
    return robot.with_independent_joints(["wrist_pin"]), robot.close({"crank": crank})
