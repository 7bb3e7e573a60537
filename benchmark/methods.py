"""Public methods of `Robot` beside Pinocchio and MuJoCo, called from Python.

Each call is timed by itself, at another state every time, in three ways: hot, one after the other;
with other work in between, as in a program that does more than dynamics; and cold, after 64 MB
were touched, as when a control loop wakes up. The time of an empty call is taken off.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pinocchio as pin

from benchmark.mujoco_methods import mujoco_calls
from benchmark.robots import DEMO_LEG, Pair, demo_leg, example_urdf, pair
from rbda_ros import Robot
from rbda_ros.kernels.registry import REGISTRY
from rbda_ros.robot.operations import OPERATIONS, SIGNS, Operation

Row = dict[str, object]
Call = Callable[[], object]
Contenders = tuple[str, Callable, Callable, int]
"""A method's name, ours, Pinocchio's, and how many of q, v and x both take."""

ROBOTS = {"ur5_robot": False, "panda": False, "solo12": True, "go2": True, "talos_reduced": True}
STATES = 32
DT = 1e-3
COLD_CALLS = 40
CACHES = np.zeros(8 << 20)  # 64 MB


def rows() -> Iterator[Row]:
    """Methods with all their checks, hot, in between other work, and cold."""
    for name, floating_base in ROBOTS.items():
        both = pair(name, example_urdf(name), floating_base=floating_base)
        yield from _robot_rows(both)
    yield from _demo_leg_rows()


def compile_methods(robot: Robot, frame: str) -> None:
    """Have machine code for all methods."""
    robot.prepare()
    for name, record in OPERATIONS.items():
        if record.of_frame:
            robot.prepare((name, frame))


def kernel_calls(
    robot: Robot, record: Operation, frame: str, states: list[dict[str, np.ndarray]]
) -> list[list[Call]]:
    """The kernels of a method, compiled, each called at all states by itself."""
    calls = []
    for step in record.steps:
        if step.kernel in SIGNS:
            continue
        needs_frame = REGISTRY[step.kernel].needs_frames
        kernel = robot.kernel(step.kernel, *([frame] if needs_frame else []))
        kernel.compile()
        calls.append([partial(kernel.call, *chosen(step.inputs, state)) for state in states])
    return calls


def chosen(names: Sequence[str], state: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Arguments by name; x for whatever has no other."""
    return [state.get(name, state["x"]) for name in names]


def _robot_rows(both: Pair) -> Iterator[Row]:
    robot, model = both.robot, both.model
    frame = model.frames[len(model.frames) - 1].name
    robot.kernel("loop_state").compile()
    compile_methods(robot, frame)
    mine, theirs = states(both)
    named = [
        {"q": q, "yd": yd, "x": x, "dt": np.array([DT]), "q1": mine[0][0]} for q, yd, x in mine
    ]
    mujoco = {} if robot.floating_base else mujoco_calls(example_urdf(both.name), STATES)
    for method, ours, peer, count in (*_dynamics(both, frame), *quantities(both, frame)):
        calls: dict[str, list[Call]] = {
            "ours": [partial(ours, *state[:count]) for state in mine],
            "pin": [partial(peer, *state[:count]) for state in theirs],
        }
        if method in mujoco:
            calls["mujoco"] = mujoco[method]
        yield _row(method, both.name, calls, kernel_calls(robot, OPERATIONS[method], frame, named))


def _dynamics(both: Pair, frame: str) -> list[Contenders]:
    """Dynamics, their derivatives, and kinematics of a frame."""
    robot, model = both.robot, both.model
    data, frame_id = model.createData(), model.getFrameId(frame)
    axes, gravity = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED, pin.computeGeneralizedGravity

    def pose(q: np.ndarray) -> object:
        pin.forwardKinematics(model, data, q)
        return pin.updateFramePlacement(model, data, frame_id)

    return [
        ("inverse_dynamics", robot.inverse_dynamics, partial(pin.rnea, model, data), 3),
        ("forward_dynamics", robot.forward_dynamics, partial(pin.aba, model, data), 3),
        ("mass_matrix", robot.mass_matrix, partial(pin.crba, model, data), 1),
        ("bias_force", robot.bias_force, partial(pin.nonLinearEffects, model, data), 2),
        ("gravity_force", robot.gravity_force, partial(gravity, model, data), 1),
        ("frame_pose", lambda q: robot.frame_pose(q, frame), pose, 1),
        (
            "jacobian",
            lambda q: robot.jacobian(q, frame),
            lambda q: pin.computeFrameJacobian(model, data, q, frame_id, axes),
            1,
        ),
        (
            "inverse_dynamics_derivatives",
            robot.inverse_dynamics_derivatives,
            partial(pin.computeRNEADerivatives, model, data),
            3,
        ),
        (
            "forward_dynamics_derivatives",
            robot.forward_dynamics_derivatives,
            partial(pin.computeABADerivatives, model, data),
            3,
        ),
    ]


def quantities(both: Pair, frame: str) -> list[Contenders]:
    """Quantities of the whole robot, velocities and accelerations of frames, and positions."""
    robot, model, data = both.robot, both.model, both.model.createData()
    frame_id, axes = model.getFrameId(frame), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    first_ours, first_theirs = both.ours[0], both.theirs[0]

    def velocity(q: np.ndarray, v: np.ndarray) -> object:
        pin.forwardKinematics(model, data, q, v)
        return pin.getFrameVelocity(model, data, frame_id, axes)

    def acceleration(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> object:
        pin.forwardKinematics(model, data, q, v, a)
        return pin.getFrameClassicalAcceleration(model, data, frame_id, axes)

    def bias(q: np.ndarray, v: np.ndarray) -> object:
        pin.centerOfMass(model, data, q, v, np.zeros(model.nv))
        return data.acom[0]

    def energy(q: np.ndarray, v: np.ndarray) -> object:
        return pin.computeKineticEnergy(model, data, q, v), pin.computePotentialEnergy(model, data)

    theirs: dict[str, tuple[Callable, int]] = {
        "center_of_mass": (partial(pin.centerOfMass, model, data), 1),
        "center_of_mass_jacobian": (partial(pin.jacobianCenterOfMass, model, data), 1),
        "center_of_mass_bias_acceleration": (bias, 2),
        "centroidal_momentum_matrix": (partial(pin.computeCentroidalMap, model, data), 1),
        "centroidal_momentum": (partial(pin.computeCentroidalMomentum, model, data), 2),
        "centroidal_momentum_rate": (
            partial(pin.computeCentroidalMomentumTimeVariation, model, data),
            3,
        ),
        "energy": (energy, 2),
        "coriolis_matrix": (partial(pin.computeCoriolisMatrix, model, data), 2),
        "mass_matrix_inverse": (partial(pin.computeMinverse, model, data), 1),
        "frame_poses": (partial(pin.framesForwardKinematics, model, data), 1),
    }
    work: list[Contenders] = [
        (name, getattr(robot, name), peer, count) for name, (peer, count) in theirs.items()
    ]
    work += [
        ("frame_velocity", lambda q, v: robot.frame_velocity(q, v, frame), velocity, 2),
        (
            "frame_acceleration",
            lambda q, v, a: robot.frame_acceleration(q, v, a, frame),
            acceleration,
            3,
        ),
        (
            "integrate",
            lambda q, v: robot.integrate(q, v, DT),
            lambda q, v: pin.integrate(model, q, DT * v),
            2,
        ),
        (
            "difference",
            lambda q: robot.difference(q, first_ours),
            lambda q: pin.difference(model, q, first_theirs),
            1,
        ),
    ]
    return work


def _demo_leg_rows() -> Iterator[Row]:
    """From independent positions, loops closed, against the same leg with its loops open."""
    robot = demo_leg()
    rng = np.random.default_rng(0)
    home = robot.independent_position(robot.tree.home)
    mine = [
        (home + rng.uniform(-0.1, 0.1, robot.ny), *rng.normal(size=(2, robot.ny)))
        for _ in range(STATES)
    ]
    robot.inverse_dynamics(*mine[0])
    robot.kernel("inverse_dynamics").compile()
    robot.kernel("loop_state").compile()
    robot._kernels.get("closure", robot._inputs.choices.newton_positions).compile()
    model = pin.buildModelFromUrdf(str(DEMO_LEG))
    data = model.createData()
    theirs = [(pin.randomConfiguration(model), *rng.normal(size=(2, model.nv))) for _ in mine]
    calls = {
        "ours": [partial(robot.inverse_dynamics, *state) for state in mine],
        "pin": [partial(pin.rnea, model, data, *state) for state in theirs],
    }
    closed = [(robot.close(y), *rates) for y, *rates in mine]
    named = [{"q": q, "yd": yd, "x": x} for q, yd, x in closed]
    kernels = kernel_calls(robot, OPERATIONS["inverse_dynamics"], "", named)
    yield _row("inverse_dynamics from y", "demo_leg", calls, kernels)
    calls["ours"] = [partial(robot.inverse_dynamics, *state) for state in closed]
    yield _row("inverse_dynamics", "demo_leg", calls, kernels)


def states(both: Pair) -> tuple[list, list]:
    """States near that of the pair, in the order of each library."""
    rng = np.random.default_rng(2)
    robot, model = both.robot, both.model
    mine, theirs = [], []
    for _ in range(STATES):
        step = robot.spanning_velocity(both.ours[0], rng.uniform(-0.3, 0.3, robot.ny))
        q = robot.close(robot.tree.integrate(both.ours[0], step))
        mine.append((q, *rng.normal(size=(2, robot.ny))))
        q = pin.integrate(model, both.theirs[0], rng.uniform(-0.3, 0.3, model.nv))
        theirs.append((q, *rng.normal(size=(2, model.nv))))
    return mine, theirs


def _row(method: str, robot: str, calls: dict[str, list[Call]], kernels: list[list[Call]]) -> Row:
    for several in calls.values():
        for call in several[:3]:
            call()
    row: Row = {"method": method, "robot": robot}
    for way, before in (("hot", None), ("between", _other_work), ("cold", _touch_everything)):
        rounds = COLD_CALLS if way == "cold" else 20 * STATES
        taken = medians(calls, before, rounds)
        row |= {f"{way}_us": taken["ours"], f"{way}_pin_us": taken["pin"]}
        row[f"{way}_ratio"] = taken["pin"] / taken["ours"]
        row[f"{way}_mujoco_us"] = taken.get("mujoco")
    taken = medians({str(k): each for k, each in enumerate(kernels)}, None)
    row["kernel_us"] = sum(taken.values())
    row["over_kernel_us"] = float(str(row["hot_us"])) - sum(taken.values())
    return row


def medians(
    calls: dict[str, list[Call]],
    before: Callable[[], object] | None,
    rounds: int = 20 * STATES,
) -> dict[str, float]:
    """Median wall time of one call of each contender [us]; they take turns, call by call."""
    contenders: dict[str, Sequence[Call]] = {"nothing": [partial(_nothing, 0.0)], **calls}
    samples: dict[str, list[int]] = {name: [] for name in contenders}
    clock = time.perf_counter_ns
    gc.disable()
    try:
        for k in range(rounds):
            for name, several in contenders.items():
                call = several[k % len(several)]
                if before is not None:
                    before()
                else:
                    call()
                began = clock()
                call()
                samples[name].append(clock() - began)
    finally:
        gc.enable()
    medians = {name: statistics.median(taken) / 1e3 for name, taken in samples.items()}
    empty = medians.pop("nothing")
    return {name: max(taken - empty, 1e-3) for name, taken in medians.items()}


def _nothing(x: float) -> float:
    return x


def _other_work() -> object:
    """Some microseconds of what programs do: texts, dictionaries, small arrays."""
    names = {f"joint_{k}": k * 0.5 for k in range(12)}
    array = np.array([*names.values()])
    return np.linalg.norm(np.outer(array, array) @ array) + len(", ".join(names))


def _touch_everything() -> object:
    CACHES[::8] += 1.0
    return None
