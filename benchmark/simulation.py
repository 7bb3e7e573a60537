"""Simulation with loops here and in MuJoCo: loop gap, energy balance, time per step.

``python -m benchmark.simulation [seconds]`` holds each robot near its assembly by weak springs and
dampers of its motors, and shakes it by random efforts: the same law here and in MuJoCo, at 1 ms,
one robot and a batch. It writes the table of docs/simulation.md. Times are of the processor, after
a first run that compiles. MuJoCo's models are those that ``rbda_ros convert`` writes, without
friction, limits and contacts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np

from benchmark.cassie import cassie
from benchmark.performance_page import write_block
from rbda_ros import Robot, Simulator, load_robot
from rbda_ros.exports import MjcfExport, write_mjcf

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "simulation.md"
DT, BATCH, BATCH_STEPS, HELD = 1e-3, 4096, 20, 50


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


def _cookbook(name: str) -> Robot:
    folder = ROOT / "docs" / "cookbook"
    return load_robot(folder / f"{name}.urdf", folder / f"{name}.yaml")


def _demo_leg() -> Robot:
    folder = ROOT / "config" / "robots"
    return load_robot(folder / "demo_leg.urdf", folder / "demo_leg_loops.yaml")


@dataclass(frozen=True)
class Case:
    """A robot, and how its motors hold and shake it.

    Attributes:
        load: makes the robot.
        spread: standard deviation of the random efforts [N m, N].
        stiffness: of the motors about the assembly [N m/rad, N/m].
        damping: [N m s/rad, N s/m].
    """

    load: Callable[[], Robot]
    spread: float
    stiffness: float
    damping: float


CASES = {
    "four-bar": Case(lambda: load_robot(FOUR_BAR), 0.05, 0.0, 0.01),
    "demo leg": Case(_demo_leg, 0.05, 0.2, 0.005),
    "delta robot": Case(lambda: _cookbook("delta"), 0.3, 5.0, 0.2),
    "Stewart platform": Case(lambda: load_robot(stewart()), 2.0, 2000.0, 50.0),
    "Cassie, fixed pelvis": Case(lambda: load_robot(*cassie()), 0.5, 5.0, 0.05),
}


@dataclass(frozen=True)
class Motors:
    """Where motors are in positions and velocities, and the law of their efforts."""

    case: Case
    q: Any
    qd: Any
    home: Any
    random: Any

    def efforts(self, step: int, q: Any, qd: Any) -> Any:
        """(na,) at a state."""
        case = self.case
        pull = case.stiffness * (q[self.q] - self.home) + case.damping * qd[self.qd]
        return self.random[step // HELD] - pull


def motors_of(robot: Robot, case: Case, steps: int) -> Motors:
    """The motors of a robot, with random efforts for so many steps."""
    names = robot.actuated_joint_names
    q = [robot.coordinates.scalar_positions[name] for name in names]
    random = np.random.default_rng(0).normal(0.0, case.spread, (steps // HELD + 1, len(names)))
    qd = list(robot.actuated_coordinates)
    return Motors(case, q, qd, robot.neutral()[q], random)


def largest_gap(robot: Robot, q: Any) -> float:
    """Largest |phi| over positions (N, nq)."""
    return float(np.abs(robot.kernel("loop_state").batch(q)[0]).max(initial=0.0))


@dataclass(frozen=True)
class Motion:
    """A simulated motion here.

    Attributes:
        gap: the largest of its loops [m].
        balance: largest error of the energy balance [J].
        finite: whether all numbers are.
    """

    gap: float
    balance: float
    finite: bool


def shaken(robot: Robot, case: Case, seconds: float, integrator: str) -> Motion:
    """Simulate a case."""
    steps = round(seconds / DT)
    motors = motors_of(robot, case, steps)
    sim = Simulator(robot, DT, integrator=integrator, friction=False, limits=False, threads=1)
    positions = np.empty((steps, robot.nq))
    before, balance, finite = sum(robot.energy(sim.q, sim.qd)), 0.0, True
    for step in range(steps):
        q, qd = sim.q, sim.qd
        sim.step(motors.efforts(step, q, qd))
        positions[step] = sim.q
        if step % HELD == HELD - 1:
            energy = sum(robot.energy(sim.q, sim.qd))
            balance = max(balance, abs(energy - before - sim.work))
            finite = finite and bool(np.isfinite(energy))
    return Motion(largest_gap(robot, positions), balance, finite)


def mujoco_model(robot: Robot) -> tuple[Any, MjcfExport]:
    """The robot in MuJoCo, without friction, limits and contacts."""
    export = write_mjcf(robot, balance_inertia=True)
    model = mujoco.MjModel.from_xml_string(export.text)
    model.opt.timestep = DT
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= flags.mjDSBL_LIMIT | flags.mjDSBL_CONTACT
    model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    return model, export


def compare(name: str, seconds: float) -> dict[str, Any]:
    """A line of the table."""
    case = CASES[name]
    robot = case.load()
    model, export = mujoco_model(robot)
    steps = round(seconds / DT)
    motors = motors_of(robot, case, steps)
    exact = shaken(robot, case, seconds, "rk4")
    sim = Simulator(robot, DT, friction=False, limits=False, threads=1)
    q, qd = sim.q, sim.qd
    sim.step(motors.efforts(0, q, qd))  # compiles
    sim.reset()
    applied = np.empty((steps, len(motors.q)))
    ours, positions = 0.0, np.empty((steps, robot.nq))
    for step in range(steps):
        applied[step] = motors.efforts(step, sim.q, sim.qd)
        start = time.thread_time()
        sim.step(applied[step])
        ours += time.thread_time() - start
        positions[step] = sim.q
    # MuJoCo's motors have their joints' own numbers: its law is the same.
    data = mujoco.MjData(model)
    data.qpos[:] = export.qpos(robot.neutral())
    joint = [model.actuator_trnid[i, 0] for i in range(model.nu)]
    at_q, at_v = model.jnt_qposadr[joint], model.jnt_dofadr[joint]
    theirs, gap = 0.0, 0.0
    for step in range(steps):
        pull = case.stiffness * (data.qpos[at_q] - motors.home) + case.damping * data.qvel[at_v]
        data.ctrl[:] = motors.random[step // HELD] - pull
        start = time.thread_time()
        mujoco.mj_step(model, data)
        theirs += time.thread_time() - start
        gap = max(gap, float(np.abs(data.efc_pos[: data.ne]).max(initial=0.0)))
    many, their_many = compare_batches(robot, model, export, applied[:BATCH_STEPS])
    return {
        "robot": name,
        "gap": largest_gap(robot, positions),
        "mujoco_gap": gap,
        "balance": exact.balance,
        "us": 1e6 * ours / steps,
        "mujoco_us": 1e6 * theirs / steps,
        "many": many,
        "mujoco_many": their_many,
    }


def compare_batches(
    robot: Robot, model: Any, export: MjcfExport, efforts: Any
) -> tuple[float, float]:
    """Steps per second of processor time, of a batch here and in MuJoCo."""
    steps = len(efforts)
    sim = Simulator(robot, DT, BATCH, friction=False, limits=False)
    sim.rollout(efforts)
    sim.reset()
    start = time.process_time()
    for effort in efforts:
        sim.step(effort)
    ours = steps * BATCH / (time.process_time() - start)
    datas = [mujoco.MjData(model) for _ in range(sim.threads)]
    datas[0].qpos[:] = export.qpos(robot.neutral())
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros(mujoco.mj_stateSize(model, full))
    mujoco.mj_getState(model, datas[0], state, full)
    initial, control = np.tile(state, (BATCH, 1)), np.tile(efforts, (BATCH, 1, 1))
    with mujoco.rollout.Rollout(nthread=sim.threads) as rollout:
        start = time.process_time()
        rollout.rollout([model] * BATCH, datas, initial, control)
        theirs = steps * BATCH / (time.process_time() - start)
    return ours, theirs


def main() -> None:
    """Compare all, print, and write the page."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    lines = [
        "| robot | loop gap [m] | MuJoCo | energy balance, RK4 [J] | time per step [us] | MuJoCo"
        " | of a batch [steps/s per core] | MuJoCo |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in CASES:
        row = compare(name, seconds)
        lines.append(
            f"| {row['robot']} | {row['gap']:.0e} | {row['mujoco_gap']:.0e} | {row['balance']:.0e}"
            f" | {row['us']:.1f} | {row['mujoco_us']:.1f} ({row['mujoco_us'] / row['us']:.1f} x)"
            f" | {row['many']:.2g} | {row['mujoco_many']:.2g}"
            f" ({row['many'] / row['mujoco_many']:.1f} x) |"
        )
        print(lines[-1], flush=True)
    lines += ["", f"{seconds:g} s of motion, batches of {BATCH}, MuJoCo {mujoco.__version__}."]
    write_block("simulation", lines, PAGE)


if __name__ == "__main__":
    main()
