"""Simulation with loops here and in MuJoCo: loop gap, energy balance, time per step.

``python -m benchmark.simulation [seconds [file ...]]`` holds each robot near its assembly by weak
springs and dampers of its motors, and shakes it by random efforts: the same law here and in MuJoCo,
at 1 ms. The efforts are recorded, and applied again by loops in Python that are timed, here
``step`` and there ``mj_step``. Batches of 4,096 robots run beside ``mujoco.rollout`` with as many
threads. Robots that stand on the ground are timed with contacts. The table of docs/simulation.md
comes from this. Times are of the processor; MuJoCo's models are those that ``rbda_ros convert``
writes, without friction and limits. Robots of files, such as Cassie, Digit and Kangaroo, float
without gravity, as weak springs would not hold them away from dead points. They begin at the file's
first keyframe, if it has one. Leaf springs that vibrate with 60 Hz need shorter steps of RK4 for
the energy balance: 0.1 ms.

``python -m benchmark.simulation environments`` times `SimulatorVectorEnv`, and
``python -m benchmark.simulation mjx`` batches of MJX, where it is installed.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
import yaml
from lxml import etree

from benchmark.cassie import cassie
from benchmark.performance_page import write_block
from benchmark.robots import SHARED
from rbda_ros import Robot, Simulator, load_robot
from rbda_ros.description.orientation import to_quaternion
from rbda_ros.examples import learn_to_balance
from rbda_ros.exports import MjcfExport, write_mjcf
from rbda_ros.simulation.collision_shapes import collision_shapes
from rbda_ros.simulation.ground_contacts import Box, Capsule, Plane, Shape, Sphere, clearance
from rbda_ros.spatial import rpy_matrix

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "simulation.md"
DT, BATCH, BATCH_STEPS, HELD = 1e-3, 4096, 100, 50
TIMED, ROUNDS = 2000, 5
"""Steps that are timed, and how often; the fastest counts."""
STANDING = 500
"""The same of robots on the ground, which fall later."""
ACTIONS = 30
"""Of each environment."""
LEGS = ("FR", "FL", "HR", "HL")


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
        by_inertia: whether the three are for each motor per inertia that it feels at the assembly:
            for robots of light and heavy links.
    """

    load: Callable[[], Robot]
    spread: float
    stiffness: float
    damping: float
    by_inertia: bool = False


CASES = {
    "four-bar": Case(lambda: load_robot(FOUR_BAR), 0.05, 0.0, 0.01),
    "demo leg": Case(_demo_leg, 0.05, 0.2, 0.005),
    "delta robot": Case(lambda: _cookbook("delta"), 0.3, 5.0, 0.2),
    "Stewart platform": Case(lambda: load_robot(stewart()), 2.0, 2000.0, 50.0),
    "Cassie, fixed pelvis": Case(lambda: _cassie(), 20.0, 400.0, 20.0, True),
}


HOLDING = Case(lambda: _demo_leg(), 0.0, 1e4, 200.0, True)
"""How motors hold a robot that stands: with a bandwidth of 100 rad/s."""


def of_file(file: str) -> Case:
    """A robot of any file, without gravity; it floats, if its base is free."""

    def load() -> Robot:
        robot = load_robot(file, gravity=(0.0, 0.0, 0.0))
        q, places = begin_of(robot, file), robot.coordinates.scalar_positions
        begin = {"assembly": {name: float(q[place]) for name, place in places.items()}}
        return load_robot(file, begin, gravity=(0.0, 0.0, 0.0))

    return Case(load, 20.0, 400.0, 20.0, True)


def begin_of(robot: Robot, file: str) -> Any:
    """The file's first keyframe (nq,); if it has none, the assembly.

    If that is outside the limits, the middle of these.
    """
    q, limits = robot.neutral(), robot.limits
    try:
        model = mujoco.MjModel.from_xml_path(file)
    except ValueError:  # its meshes are missing
        model = None
    if model is not None and model.nkey:
        for name, place in robot.coordinates.scalar_positions.items():
            q[place] = model.key_qpos[0, model.joint(name).qposadr[0]]
    elif not robot.within_limits(q):
        inside = np.isfinite(limits.lower) & np.isfinite(limits.upper)
        q[inside] = 0.5 * (limits.lower[inside] + limits.upper[inside])
    return q


def _cassie() -> Robot:
    """On a stand, with its feet away from the dead points that they have at zero."""
    text, loops = cassie()
    turned = {"tarsus-crank-joint": -1.5, "crank-rod-joint": 1.5, "foot-op": -1.5}
    begin = {f"{side}-{name}": at for side in ("left", "right") for name, at in turned.items()}
    return load_robot(text, loops | {"assembly": begin}, gravity=(0.0, 0.0, 0.0))


@dataclass(frozen=True)
class Motors:
    """Where motors are in positions and velocities, and the law of their efforts."""

    q: Any
    qd: Any
    start: Any
    home: Any
    random: Any
    stiffness: Any
    damping: Any

    def efforts(self, step: int, q: Any, qd: Any) -> Any:
        """(na,) at a state."""
        return self.law(step, q[self.q], qd[self.qd])

    def law(self, step: int, position: Any, velocity: Any) -> Any:
        """(na,) at positions and velocities of the motors."""
        pull = self.stiffness * (position - self.home) + self.damping * velocity
        return self.random[step // HELD] - pull


def motors_of(robot: Robot, case: Case, steps: int) -> Motors:
    """The motors of a robot, with random efforts for so many steps."""
    names = robot.actuated_joint_names
    q = [robot.coordinates.scalar_positions[name] for name in names]
    qd, home, scale = list(robot.actuated_coordinates), robot.neutral(), np.ones(len(names))
    if case.by_inertia:
        G = np.array([robot.spanning_velocity(home, row) for row in np.eye(robot.ny)]).T[qd]
        scale = 1.0 / np.einsum("ij,ji->i", G, np.linalg.solve(robot.mass_matrix(home), G.T))
    random = np.random.default_rng(0).normal(0.0, case.spread, (steps // HELD + 1, len(names)))
    stiffness, damping = scale * case.stiffness, scale * case.damping
    return Motors(q, qd, home, home[q], scale * random, stiffness, damping)


def largest_gap(robot: Robot, q: Any) -> float:
    """Largest |phi| over positions (N, nq)."""
    return float(np.abs(robot.kernel("loop_state").batch(q)[0]).max(initial=0.0))


@dataclass(frozen=True)
class Motion:
    """A simulated motion here.

    Attributes:
        gap: the largest of its loops [m].
        balance: largest error of the energy balance [J].
        energy: largest change of the energy [J].
        finite: whether all numbers are.
    """

    gap: float
    balance: float
    energy: float
    finite: bool


def shaken(robot: Robot, case: Case, seconds: float, integrator: str) -> Motion:
    """Simulate a case: efforts change every 1 ms."""
    steps, parts = round(seconds / DT), 10 if robot.tree.springs is not None else 1
    motors = motors_of(robot, case, steps)
    sim = Simulator(
        robot, DT / parts, integrator=integrator, friction=False, limits=False, threads=1
    )
    sim.reset(motors.start)
    positions = np.empty((steps, robot.nq))
    before, balance, change, finite = sum(robot.energy(sim.q, sim.qd)), 0.0, 0.0, True
    for step in range(steps):
        q, qd = sim.q, sim.qd
        sim.step(motors.efforts(step, q, qd), steps=parts)
        positions[step] = sim.q
        if step % HELD == HELD - 1:
            energy = sum(robot.energy(sim.q, sim.qd))
            balance = max(balance, abs(energy - before - sim.work))
            change = max(change, abs(energy - before))
            finite = finite and bool(np.isfinite(energy))
    return Motion(largest_gap(robot, positions), balance, change, finite)


def mujoco_model(robot: Robot) -> tuple[Any, MjcfExport]:
    """The robot in MuJoCo, without friction, limits and contacts."""
    export = write_mjcf(robot, balance_inertia=True)
    model = mujoco.MjModel.from_xml_string(export.text)
    model.opt.timestep = DT
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= flags.mjDSBL_LIMIT | flags.mjDSBL_CONTACT
    model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    return model, export


def least_time(begin: Callable[[], None], steps: Callable[[], None], count: int) -> float:
    """Processor time of a step, in the fastest of some rounds [us]."""
    times = []
    for _ in range(ROUNDS):
        begin()
        start = time.thread_time()
        steps()
        times.append(time.thread_time() - start)
    return 1e6 * min(times) / count


def our_time(sim: Simulator, start: Any, efforts: Any) -> float:
    """Of a call of ``step`` [us]."""

    def steps() -> None:
        for each in efforts:
            sim.step(each)

    return least_time(lambda: sim.reset(start), steps, len(efforts))


def mujoco_time(model: Any, qpos: Any, controls: Any) -> float:
    """Of a call of ``mj_step``, without the time that it takes to set the controls [us]."""
    data = mujoco.MjData(model)

    def begin() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = qpos

    def controls_alone() -> None:
        for each in controls:
            data.ctrl[:] = each

    def steps() -> None:
        for each in controls:
            data.ctrl[:] = each
            mujoco.mj_step(model, data)

    count = len(controls)
    return least_time(begin, steps, count) - least_time(begin, controls_alone, count)


def mujoco_gaps(model: Any, data: Any) -> tuple[float, float]:
    """How far loops [m] and gears [rad] are open in MuJoCo, at most."""
    kinds = model.eq_type[data.efc_id[: data.ne]]
    open_by, gears = np.abs(data.efc_pos[: data.ne]), kinds == mujoco.mjtEq.mjEQ_JOINT
    return float(open_by[~gears].max(initial=0.0)), float(open_by[gears].max(initial=0.0))


def driven(sim: Simulator, motors: Motors, start: Any, steps: int) -> tuple[Any, Any]:
    """Efforts and positions of so many steps."""
    sim.reset(start)
    applied, positions = np.empty((steps, len(motors.q))), np.empty((steps, len(sim.q)))
    for step in range(steps):
        applied[step] = motors.efforts(step, sim.q, sim.qd)
        sim.step(applied[step])
        positions[step] = sim.q
    return applied, positions


def mujoco_driven(model: Any, motors: Motors, qpos: Any, steps: int) -> tuple[Any, Any, Any]:
    """The same in MuJoCo: its data at the end, controls, and the largest of `mujoco_gaps`.

    Its motors have their joints' own numbers: the law is the same.
    """
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    joint = [model.actuator_trnid[i, 0] for i in range(model.nu)]
    at_q, at_v = model.jnt_qposadr[joint], model.jnt_dofadr[joint]
    controls, gap = np.empty((steps, model.nu)), np.zeros(2)
    for step in range(steps):
        data.ctrl[:] = controls[step] = motors.law(step, data.qpos[at_q], data.qvel[at_v])
        mujoco.mj_step(model, data)
        gap = np.maximum(gap, mujoco_gaps(model, data))
    return data, controls, gap


def compare(name: str, seconds: float) -> dict[str, Any]:
    """A line of the table."""
    case = CASES[name]
    robot = case.load()
    model, export = mujoco_model(robot)
    steps = round(seconds / DT)
    motors = motors_of(robot, case, steps)
    exact = shaken(robot, case, seconds, "rk4")
    sim = Simulator(robot, DT, friction=False, limits=False, threads=1)
    applied, positions = driven(sim, motors, motors.start, steps)
    qpos = export.qpos(motors.start)
    _, controls, gap = mujoco_driven(model, motors, qpos, steps)
    many, their_many = compare_batches(
        robot, model, qpos, motors.start, applied[:BATCH_STEPS], friction=False, limits=False
    )
    return {
        "robot": name,
        "gap": largest_gap(robot, positions),
        "mujoco_gap": gap,
        "balance": exact.balance,
        "us": our_time(sim, motors.start, applied[:TIMED]),
        "mujoco_us": mujoco_time(model, qpos, controls[:TIMED]),
        "many": many,
        "mujoco_many": their_many,
    }


def compare_batches(
    robot: Robot, model: Any, qpos: Any, start: Any, efforts: Any, **options: Any
) -> tuple[float, float]:
    """Steps per second of processor time, of a batch here and in MuJoCo."""
    steps = len(efforts)
    sim = Simulator(robot, DT, BATCH, **options)
    sim.step(efforts[0])  # compiles
    sim.reset(start)
    begin = time.process_time()
    for effort in efforts:
        sim.step(effort)
    ours = steps * BATCH / (time.process_time() - begin)
    controls = np.tile(efforts, (BATCH, 1, 1))
    return ours, steps * BATCH / rollout_time(model, qpos, controls, sim.threads)


def rollout_time(model: Any, qpos: Any, controls: Any, threads: int) -> float:
    """Processor time of MuJoCo's rollout of a batch that begins at one position [s]."""
    datas = [mujoco.MjData(model) for _ in range(threads)]
    datas[0].qpos[:] = qpos
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros(mujoco.mj_stateSize(model, full))
    mujoco.mj_getState(model, datas[0], state, full)
    initial = np.tile(state, (BATCH, 1))
    with mujoco.rollout.Rollout(nthread=threads) as rollout:
        begin = time.process_time()
        rollout.rollout([model] * BATCH, datas, initial, controls)
        return time.process_time() - begin


@dataclass(frozen=True)
class OnGround:
    """A robot that stands on the ground, held by its motors.

    Attributes:
        load: makes the robot, which floats, at a position to stand in.
        shapes: of its feet.
    """

    load: Callable[[], Robot]
    shapes: Callable[[], Sequence[Shape]]


def _floating(folder: Path, name: str, loops: str, begin: Mapping[str, float] = {}) -> Robot:
    given = yaml.safe_load((folder / loops).read_text())
    assembly = given.get("assembly", {}) | begin
    loops_of = given | ({"assembly": assembly} if assembly else {})
    return load_robot(folder / name, loops_of, floating_base=True)


def _quadruped() -> Robot:
    """Mini Cheetah with its legs bent."""
    bent = {"abad_to_hip": -0.8, "hip_to_knee": 1.6}
    begin = {f"{leg}_{joint}_j": at for leg in LEGS for joint, at in bent.items()}
    file = SHARED / "robots" / "mini_cheetah.urdf"
    return load_robot(file, {"assembly": begin}, floating_base=True)


COOKBOOK, ROBOTS = ROOT / "docs" / "cookbook", ROOT / "config" / "robots"
GROUND_CASES = {
    "parallel ankle": OnGround(
        lambda: _floating(COOKBOOK, "parallel_ankle.urdf", "parallel_ankle.yaml"),
        lambda: [Box("foot", size=(0.22, 0.1, 0.02), xyz=(0.03, 0.0, -0.05))],
    ),
    "mini_cheetah": OnGround(
        _quadruped,
        lambda: [Sphere(f"{leg}_knee_link", 0.02, (0, 0, -0.19)) for leg in LEGS],
    ),
}


def feet_of(file: str) -> OnGround:
    """A robot of a file; its links with foot or toe in their names touch the ground."""

    def load() -> Robot:
        robot = load_robot(file)
        q, places = begin_of(robot, file), robot.coordinates.scalar_positions
        return load_robot(file, {"assembly": {n: float(q[i]) for n, i in places.items()}})

    def shapes() -> Sequence[Shape]:
        links = [
            link for link in load_robot(file).links if re.search("foot$|foot_link$|toe-roll$", link)
        ]
        return collision_shapes(file, links)

    return OnGround(load, shapes)


def touching_model(robot: Robot, shapes: Sequence[Shape]) -> tuple[Any, MjcfExport]:
    """A robot whose shapes touch the ground in MuJoCo, with elliptic cones as here."""
    export = write_mjcf(robot, balance_inertia=True)
    root = etree.fromstring(export.text)
    etree.SubElement(root.find("worldbody"), "geom", type="plane", size="9 9 0.1", condim="3")
    for shape in shapes:
        body = root.find(f".//body[@name='{shape.link}']")
        geom = etree.SubElement(body, "geom", condim="3", friction=f"{shape.friction} 0 0")
        for name, value in _geom(shape).items():
            geom.set(name, value if isinstance(value, str) else " ".join(map(str, value)))
    root.find("option").set("cone", "elliptic")
    for key in root.findall("keyframe"):
        root.remove(key)
    model = mujoco.MjModel.from_xml_string(etree.tostring(root, encoding="unicode"))
    model.opt.timestep = DT
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    # Links may cross here: they do not touch each other in our simulator.
    model.geom_contype[:], model.geom_conaffinity[:] = 1, 0
    model.geom_conaffinity[0] = 1
    model.geom_friction[0] = 0.0  # of two friction coefficients the larger counts
    model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    return model, export


def _geom(shape: Shape) -> dict[str, Any]:
    """The attributes of a shape's <geom>."""
    if isinstance(shape, Box):
        turned = to_quaternion(rpy_matrix(shape.rpy))
        size = [0.5 * edge for edge in shape.size]
        return {"type": "box", "size": size, "pos": shape.xyz, "quat": turned}
    if isinstance(shape, Capsule):
        ends = [*shape.start, *shape.end]
        return {"type": "capsule", "size": [shape.radius], "fromto": ends}
    assert isinstance(shape, Sphere)
    return {"type": "sphere", "size": [shape.radius], "pos": shape.xyz}


def compare_on_ground(name: str) -> str:
    """A line of the table: half a second of a robot on its feet; nobody balances it."""
    case = GROUND_CASES[name]
    robot, shapes = case.load(), case.shapes()
    model, export = touching_model(robot, shapes)
    motors = motors_of(robot, HOLDING, STANDING)
    options: dict[str, Any] = {"friction": False, "limits": False, "contacts": shapes}
    sim = Simulator(robot, DT, threads=1, **options)
    start = motors.start.copy()
    start[2] -= clearance(robot, start, shapes, Plane())

    applied, positions = driven(sim, motors, start, STANDING)
    touching = np.count_nonzero(np.abs(sim.contact_forces).sum(axis=1))

    qpos = export.qpos(start)
    data, controls, gap = mujoco_driven(model, motors, qpos, STANDING)
    print(f"{name}: {touching} of {len(shapes)} shapes touch at the end, base at {sim.q[2]:.3f} m;"
          f" in MuJoCo {data.ncon} contacts, base at {data.qpos[2]:.3f} m")  # fmt: skip

    ours, theirs = our_time(sim, start, applied), mujoco_time(model, qpos, controls)
    rates = compare_batches(robot, model, qpos, start, applied[:BATCH_STEPS], **options)
    return (
        f"| {name}, on the ground | {largest_gap(robot, positions):.0e} | {gap[0]:.0e},"
        f" {gap[1]:.0e} | | {_times(ours, theirs)} | {_rates(*rates)} |"
    )


def environments() -> None:
    """Steps per second of processor time of 4,096 environments; and of MuJoCo's rollout alone.

    The environments are those of the balancing example, on all processors.
    """
    env = learn_to_balance.environment(BATCH)
    env.reset(seed=0)
    random = np.random.default_rng(0)
    actions = random.uniform(-1.0, 1.0, (ACTIONS + 2, *env.action_space.shape))
    for action in actions[:2]:
        env.step(action)
    begin = time.process_time()
    for action in actions[2:]:
        env.step(action)
    ours = ACTIONS * BATCH / (time.process_time() - begin)
    sim, per = env.simulator, env.steps
    robot = sim.robot
    model, export = touching_model(robot, [learn_to_balance.FOOT])
    q = robot.neutral()
    q[2] = learn_to_balance.HEIGHT
    limit = robot.limits.effort[list(robot.actuated_coordinates)]
    control = limit * np.repeat(actions[2:].transpose(1, 0, 2), per, axis=1)
    theirs = ACTIONS * BATCH / rollout_time(model, export.qpos(q), control, sim.threads)
    print(f"{BATCH} environments, {sim.threads} threads: {ours:.2g} actions/s of {per} steps each,"
          f" {per * ours:.2g} steps/s per core; MuJoCo's rollout alone {per * theirs:.2g}"
          f" ({ours / theirs:.1f} x)")  # fmt: skip


def mjx_batches() -> None:
    """Steps per second of processor time of 4,096 robots in MJX, on the same processors."""
    import jax
    from mujoco import mjx

    for name in ("four-bar", "demo leg"):
        robot = CASES[name].load()
        model, export = mujoco_model(robot)
        data = mujoco.MjData(model)
        data.qpos[:] = export.qpos(robot.neutral())
        there, begin = mjx.put_model(model), mjx.put_data(model, data)
        every = jax.vmap(lambda _, begin=begin: begin)(jax.numpy.arange(BATCH))
        step = jax.jit(jax.vmap(lambda each, there=there: mjx.step(there, each)))
        every = jax.block_until_ready(step(every))
        start, wall = time.process_time(), time.perf_counter()
        for _ in range(5):
            every = step(every)
        jax.block_until_ready(every)
        spent, passed = time.process_time() - start, time.perf_counter() - wall
        print(f"{name}, MJX with MuJoCo {mujoco.__version__}: {5 * BATCH / spent:.2g} steps/s per"
              f" core, {5 * BATCH / passed:.2g} on all", flush=True)  # fmt: skip


def main() -> None:
    """Compare all, print, and write the page."""
    if sys.argv[1:] == ["mjx"]:
        return mjx_batches()
    if sys.argv[1:] == ["environments"]:
        return environments()
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    lines = [
        "| robot | loop gap [m] | MuJoCo: loops [m], gears [rad] | energy balance, RK4 [J] | time"
        " per step [us] | MuJoCo | of a batch [steps/s per core] | MuJoCo |",
        "|---|---|---|---|---|---|---|---|",
    ]
    end = ["", f"{seconds:g} s of motion, batches of {BATCH}, MuJoCo {mujoco.__version__}."]

    def add(line: str) -> None:
        """A row, kept on the page even if the rest is not reached."""
        print(line, flush=True)
        lines.append(line)
        write_block("simulation", lines + end, PAGE)

    for file in sys.argv[2:]:
        CASES[Path(file).stem] = of_file(file)
        GROUND_CASES[Path(file).stem] = feet_of(file)
    for name in GROUND_CASES:
        if name != "mini_cheetah" or SHARED.is_dir():
            add(compare_on_ground(name))
    for name in CASES:
        row = compare(name, seconds)
        loops, gears = row["mujoco_gap"]
        add(
            f"| {row['robot']} | {row['gap']:.0e} | {loops:.0e}, {gears:.0e} |"
            f" {row['balance']:.0e} | {_times(row['us'], row['mujoco_us'])}"
            f" | {_rates(row['many'], row['mujoco_many'])} |"
        )


def _times(ours: float, theirs: float) -> str:
    return f"{ours:.1f} | {theirs:.1f} ({theirs / ours:.1f} x)"


def _rates(ours: float, theirs: float) -> str:
    return f"{ours:.2g} | {theirs:.2g} ({ours / theirs:.1f} x)"


if __name__ == "__main__":
    main()
