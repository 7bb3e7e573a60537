"""Simulation with loops here and in MuJoCo: loop gap, energy balance, time per step.

``python -m benchmark.simulation [seconds]`` moves each robot by the same random efforts in both,
for that many simulated seconds at 1 ms, one robot and a batch. Times are after a first run of the
same motion, which compiles the kernels of every choice of independent joints on the way.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np

from rbda_ros import Robot, Simulator, load_robot

DT, BATCH = 1e-3, 256

FOUR_BAR = """<mujoco model="four_bar"><option timestep="0.001"/><worldbody>
<body name="crank"><joint name="crank" axis="0 1 0"/>
 <inertial pos="0 0 0.05" mass="0.2" diaginertia="3e-4 3e-4 1e-4"/>
 <body name="coupler" pos="0 0 0.1"><joint name="coupler" axis="0 1 0"/>
  <inertial pos="0.15 0 0" mass="0.4" diaginertia="1e-3 3e-3 3e-3"/></body></body>
<body name="rocker" pos="0.3 0 0"><joint name="rocker" axis="0 1 0"/>
 <inertial pos="0 0 0.05" mass="0.3" diaginertia="5e-4 5e-4 1e-4"/></body></worldbody>
<equality><connect body1="coupler" body2="rocker" anchor="0.3 0 0"/></equality>
<actuator><motor joint="crank"/></actuator></mujoco>"""


def stewart() -> str:
    """A platform on six legs of cylinder and piston, each with a universal joint at its foot."""
    bodies, ties, motors = [], [], []
    for i, (foot, top) in enumerate(
        zip([10, 110, 130, 230, 250, 350], [50, 70, 170, 190, 290, 310], strict=True)
    ):
        at = 0.3 * np.array([np.cos(np.radians(foot)), np.sin(np.radians(foot)), 0.0])
        end = 0.18 * np.array([np.cos(np.radians(top)), np.sin(np.radians(top)), 0.0])
        leg = end - at + np.array([0.0, 0.0, 0.4])
        along = leg / np.linalg.norm(leg)
        text = {
            k: " ".join(f"{x:.17g}" for x in v)
            for k, v in {
                "at": at,
                "low": 0.1 * along,
                "high": 0.3 * along,
                "leg": leg,
                "z": along,
            }.items()
        }
        bodies.append(
            f'<body name="cylinder_{i}" pos="{text["at"]}"><joint name="x_{i}" axis="1 0 0"/>'
            f'<joint name="y_{i}" axis="0 1 0"/>'
            f'<inertial pos="{text["low"]}" mass="0.5" diaginertia="2e-3 2e-3 2e-3"/>'
            f'<body name="piston_{i}"><joint name="leg_{i}" type="slide" axis="{text["z"]}"/>'
            f'<inertial pos="{text["high"]}" mass="0.2" diaginertia="1e-3 1e-3 1e-3"/></body>'
            "</body>"
        )
        ties.append(f'<connect body1="piston_{i}" body2="platform" anchor="{text["leg"]}"/>')
        motors.append(f'<motor joint="leg_{i}"/>')
    return (
        '<mujoco model="stewart"><option timestep="0.001"/><worldbody>'
        '<body name="platform" pos="0 0 0.4"><freejoint name="pose"/>'
        '<inertial pos="0 0 0" mass="2" diaginertia="0.02 0.03 0.04"/>'
        f"</body>{''.join(bodies)}</worldbody><equality>{''.join(ties)}</equality>"
        f"<actuator>{''.join(motors)}</actuator></mujoco>"
    )


ROBOTS = {"four_bar": (FOUR_BAR, 0.05, 0.0), "stewart": (stewart(), 1.0, 6.7)}
"""MJCF, standard deviation of efforts and their mean [N m, N]."""


def gap_of_mujoco(model: Any, data: Any) -> float:
    """Largest gap of a connect constraint [m]."""
    return float(np.abs(data.efc_pos[: data.ne]).max(initial=0.0))


def largest_gap(robot: Robot, q: np.ndarray) -> float:
    """Largest |phi| over positions (N, nq)."""
    return float(np.abs(robot.kernel("loop_state").batch(q)[0]).max(initial=0.0))


def compare(name: str, seconds: float) -> None:
    """Print a line for one robot."""
    text, spread, mean = ROBOTS[name]
    robot, model = load_robot(text), mujoco.MjModel.from_xml_string(text)
    steps, na = int(seconds / DT), model.nu
    efforts = np.repeat(
        np.random.default_rng(0).normal(mean, spread, (steps // 50 + 1, na)), 50, axis=0
    )[:steps]
    data = mujoco.MjData(model)
    gap, start = 0.0, time.perf_counter()
    for effort in efforts:
        data.ctrl[:] = effort
        mujoco.mj_step(model, data)
    theirs = (time.perf_counter() - start) / steps
    mujoco.mj_resetData(model, data)
    for effort in efforts:
        data.ctrl[:] = effort
        mujoco.mj_step(model, data)
        gap = max(gap, gap_of_mujoco(model, data))
    line = [f"{name}: mujoco {1e6 * theirs:.2f} us a step, gap {gap:.1e} m"]
    for integrator in ("euler", "rk4"):
        sim = Simulator(robot, DT, integrator=integrator, friction=False, limits=False)
        sim.step(efforts[0])
        sim.reset()
        before = sum(robot.energy(sim.q, sim.qd))
        sim.rollout(efforts)
        sim.reset()
        start = time.perf_counter()
        for effort in efforts:
            sim.step(effort)
        ours = (time.perf_counter() - start) / steps
        sim.reset()
        start = time.perf_counter()
        motion = sim.rollout(efforts)
        native = (time.perf_counter() - start) / steps
        balance = abs(sum(robot.energy(sim.q, sim.qd)) - before - sim.work)
        line.append(
            f"{integrator} {1e6 * ours:.2f} us from Python ({theirs / ours:.1f} x), rollout"
            f" {1e6 * native:.2f} us ({theirs / native:.1f} x), gap"
            f" {largest_gap(robot, motion.q):.1e} m, energy balance {balance:.1e} J"
        )
    line.append(compare_batches(robot, model, efforts[: min(steps, 200)]))
    print("; ".join(line), flush=True)


def compare_batches(robot: Robot, model: Any, efforts: np.ndarray) -> str:
    """Steps a second of a batch in both, on all processors."""
    steps = len(efforts)
    sim = Simulator(robot, DT, BATCH, friction=False, limits=False)
    sim.rollout(efforts)
    sim.reset()
    start = time.perf_counter()
    for effort in efforts:
        sim.step(effort)
    ours = steps * BATCH / (time.perf_counter() - start)
    threads = sim.threads
    datas = [mujoco.MjData(model) for _ in range(threads)]
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    state = np.zeros(size)
    mujoco.mj_getState(model, datas[0], state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    initial, control = np.tile(state, (BATCH, 1)), np.tile(efforts, (BATCH, 1, 1))
    start = time.perf_counter()
    with mujoco.rollout.Rollout(nthread=threads) as rollout:
        rollout.rollout([model] * BATCH, datas, initial, control)
    theirs = steps * BATCH / (time.perf_counter() - start)
    return f"batch {ours:.3g} steps/s beside {theirs:.3g} ({ours / theirs:.1f} x)"


if __name__ == "__main__":
    for each in ROBOTS:
        compare(each, float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
