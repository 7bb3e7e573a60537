"""Robots that other people made, beside oracles that are not ours: the tables of docs/robots.md.

``PYTHONPATH=.:test python test/other_robots.py mujoco_menagerie=PATH ...`` takes repositories and
where they lie. For each robot it prints sizes, motors, the processor's seconds that loading took,
the largest error of all joint accelerations at its assembly and at random states around it, as a
share of the largest acceleration, and how well motors give joints and joints give motors. The
oracle is a dense solve: over MuJoCo's own terms for MJCF; for the other formats over Pinocchio's
spanning tree of what was read, with constraints written a second time. Where the rows of a file say
the same but for rounding, the error is the distance from the nearest of the solves over several
choices of rows, and how far these are from each other is printed beside it.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rbda_ros import DescriptionError, InputError, ModelError, Robot, load_robot

AWAY = (0.0, 0.05, 0.05, 0.2)
"""How far the fastest joint goes from the assembly in each state [rad, m]."""
GEPETTO = "example-parallel-robots"
FRAGMENTS = ("assets", "scene")
"""Words in the paths of files that are no robots."""
ALSO = ("unitree_g1/g1.xml",)
"""Robots that are looked at though they have no equality."""
CHOSEN = {
    "Parallel_Ankle_Joint": ("*/urdf/*.xml",),
    "reachy_mini": ("src/*/descriptions/*/mjcf/reachy_mini.xml", "src/*/desc*/*/urdf/robot.urdf"),
    "humanoid-description": ("HU_D0*/xml/HU_D0?_0?.xml", "HU_D0*/urdf/HU_D0?_0?.urdf"),
    "placo-examples": ("models/*/robot.urdf", "models/*/robot.xml"),
    "onshape-to-robot-examples": ("*/robot.xml", "*/robot.urdf"),
    "example-robot-data": ("robots/cassie_description/robots/*.sdf",),
    "cassie-mujoco-sim": ("model/cassie.xml", "model/cassie_tray_box.xml", "model/cassiepole.xml"),
    "toddlerbot": ("toddlerbot/descriptions/*/toddlerbot*_fixed.xml",),
    "robosuite": ("robosuite/models/assets/grippers/*.xml",),
    "Berkeley-Humanoid-Lite-Assets": ("data/mjcf/berkeley_humanoid_lite*.xml",),
    "booster_assets": ("robots/*/*.xml", "robots/*/*.urdf"),
    "Open_Duck_Mini": ("mini_bdx/robots/*/robot.urdf", "mini_bdx/robots/*/robot.xml"),
    "mujoco_playground": ("mujoco_playground/_src/*/*/xmls/*robotiq*.xml",),
    "unitree_mujoco": ("unitree_robots/*/[abghr]*.xml",),
    "unitree_ros": ("robots/*/urdf/*.urdf", "robots/g1*/*.urdf"),
    "Cassie_Model": ("urdf/cassie*.urdf",),
    "ros2_kortex": ("kortex_description/robots/*.urdf",),
    "dart": ("data/urdf/**/*.urdf", "data/sdf/**/*.sdf", "data/mjcf/openai/*.xml"),
    "myo_sim": ("*/myo*.xml",),
    "Adroit": ("Adroit_hand.xml",),
    "dm_control": ("dm_control/suite/*.xml",),
    "gz_ros2_control": ("gz_ros2_control_demos/urdf/*.urdf",),
    "icub-models": ("iCub/robots/*/model.urdf",),
    "vuer_mjcf": ("**/robots/**/*.xml",),
    "agibot_x1_infer": ("src/module/sim_module/model/mjcf/xyber_x1_flat.xml",),
    "models": ("**/*.urdf", "**/*.sdf"),
    "newton-assets": ("**/usd/*.usd*", "**/urdf/*.urdf", "**/mjcf/*.xml"),
    "newton": ("newton/examples/assets/*.usda", "newton/tests/assets/**/*.usda"),
    "gz-sim": ("test/worlds/demo_joint_types.sdf", "examples/**/cart_pole.sdf"),
    "gazebo_models": ("*/model.sdf",),
    "delta-simulation": ("simulation/delta-robot/robot.xml",),
    "closed_loop": ("urdf/closed_loop.urdf.xacro",),
    "harmonic_demo": ("harmonic_demo/*[Pp]en*/model.sdf", "harmonic_demo/CartPole/model.sdf"),
    "loco-mujoco": ("loco_mujoco/environments/data/*/*.xml",),
    "ergocub-software": ("urdf/ergoCub/robots/*/model.urdf",),
    "humanoid-gym": ("resources/robots/XBot/*/XBot-L.*",),
    "upkie_description": ("urdf/*.urdf",),
    "kuka_robot_descriptions": ("kuka_*_support/urdf/*.urdf.xacro",),
    "robot_descriptions": ("*/*/*/urdf/*.urdf", "*/*/*/xacro/robot.xacro"),
    "wb_humanoid_mpc": ("robot_models/*/*/urdf/g1_29dof.*",),
    "ros2_robotiq_gripper": ("**/*.urdf", "**/urdf/*.urdf.xacro"),
}
"""Files of repositories that are not searched for an equality."""
MODEL_CHOICES = 40
"""Choices of rows that are compared where a file's rows say nearly the same."""


def models(repository: str, folder: Path) -> Iterator[tuple[str, Path, Path | None]]:
    """Name, model and loop file of every robot that has loops, or couples its joints."""
    if repository == GEPETTO:
        for loops in sorted(folder.glob("robots/*/robot.yaml")):
            yield loops.parent.name, next(loops.parent.glob("*.urdf")), loops
        return
    if repository in CHOSEN:
        found = {path for pattern in CHOSEN[repository] for path in folder.glob(pattern)}
        yield from ((p.relative_to(folder).as_posix(), p, None) for p in sorted(found))
        return
    for model in sorted(folder.rglob("*.xml")):
        name = model.relative_to(folder).as_posix()
        text = model.read_text(errors="replace").lower()
        robot = "<worldbody" in text and not any(word in name for word in FRAGMENTS)
        if robot and ("equality" in text or name in ALSO):  # or of a file that it includes
            yield name, model, None


def state(robot: Robot, away: float, rng: np.random.Generator) -> np.ndarray:
    """A position (nq,) so far from the assembly."""
    q = robot.tree.home
    if away and robot.ny:
        way = robot.spanning_velocity(q, rng.normal(size=robot.ny))
        q = robot.tree.integrate(q, away / np.abs(way).max() * way)
        q = robot.close(q, q) if robot.tree.has_loops else q
    return q


def error(robot: Robot, model: Path, away: float, seed: int) -> tuple[float, float]:
    """Share by which our accelerations differ from the dense solve, at a random state.

    And by which dense solves over several choices of rows differ, where rounding makes them.
    """
    rng = np.random.default_rng(seed)
    q = state(robot, away, rng)
    yd, tau = rng.normal(size=robot.ny), rng.normal(size=robot.nv)
    qd = robot.spanning_velocity(q, yd)
    nearly = any("say the same as the others" in warning for warning in robot.warnings)
    oracle: Any
    if is_mjcf(model):
        from mujoco_oracle import MujocoOracle

        from rbda_ros.description.mjcf_compiler import compile_mjcf
        from rbda_ros.description.report import Report

        oracle = MujocoOracle(compile_mjcf(model, str(model), Report()), robot)
        P = oracle.velocity_map(q)
        tau = P.T @ (P @ tau)  # none along tendons, which MuJoCo has no coordinates for
        J = oracle.rows_at(q, qd)
    else:
        from loop_oracle import LoopOracle

        oracle = LoopOracle(robot)
        J = oracle.K(q)
    choices = independent_rows(J, robot, rng) if nearly else [slice(None)]
    if is_mjcf(model):
        expected = [oracle.accelerations(q, qd, tau, rows) for rows in choices]
    else:
        springs = robot.tree.springs
        held = 0.0 if springs is None else np.asarray(springs.force(q)).ravel()
        expected = [oracle.forward_dynamics(q, qd, tau - held, rows) for rows in choices]
    qdd = robot.spanning_acceleration(q, yd, robot.forward_dynamics(q, yd, tau))
    if is_mjcf(model):
        qdd = oracle.ours(q, qd, qdd)
    size = max(1.0, *(np.abs(each).max(initial=0.0) for each in expected))
    gaps = [np.abs(qdd - each).max(initial=0.0) / size for each in expected]
    apart = [np.abs(a - b).max() / size for a, b in itertools.combinations(expected, 2)]
    return float(min(gaps)), float(max(apart, default=0.0))


def independent_rows(J: np.ndarray, robot: Robot, rng: np.random.Generator) -> list[list[int]]:
    """Choices of as many rows as the robot has lost freedoms, well-conditioned ones."""
    from scipy.linalg import qr

    rank = J.shape[1] - robot.ny if J.shape[1] == robot.nv else np.linalg.matrix_rank(J, 1e-4)
    sizes = np.linalg.norm(J, axis=1, keepdims=True)
    unit = J / np.maximum(sizes, 1e-4 * sizes.max(initial=0.0))  # rows of rounding stay small
    found = []
    for _ in range(MODEL_CHOICES):
        weighed = unit * rng.uniform(0.2, 1.0, (len(J), 1))
        found.append(sorted(int(row) for row in qr(weighed.T, pivoting=True)[2][:rank]))
    return found


def is_mjcf(model: Path) -> bool:
    """Whether MuJoCo reads it."""
    return model.suffix == ".xml"


def round_trip(robot: Robot) -> str:
    """Largest error of joints from motors, and of motors from the other joints [rad, m].

    Where motors leave joints undetermined, these are given too. The independent joints that count
    as motors where a file names none are left out.
    """
    q = state(robot, 0.03, np.random.default_rng(7))
    places = robot.coordinates.positions
    motors, joints = set(robot.actuated_joint_names), set(robot.joint_names)
    errors = []
    for given in (motors, joints - motors):
        told = dict.fromkeys(name for name in robot.joint_names if name in given)
        for name in [*robot.joint_names, ""]:
            values = {n: q[place.start : place.stop] for n in told if (place := places[n])}
            values = {n: float(x[0]) if len(x) == 1 else x for n, x in values.items()}
            try:
                found = robot.close(values)
                break
            except InputError:  # something is not determined: give one joint more
                told[name] = None
        # A floating base is no joint that motors give.
        errors.append(np.abs(found - q)[robot.coordinates.base_nq :].max(initial=0.0))
    return f"{errors[0]:.0e}, {errors[1]:.0e}"


def row(name: str, model: Path, loops: Path | None) -> str:
    """A line of the table; what refuses a robot instead of its error."""
    start = time.process_time()
    try:
        robot = load_robot(model, loops)
        if any("gravity is disabled" in warning for warning in robot.warnings):
            robot = load_robot(model, loops, gravity=(0.0, 0.0, 0.0))
    except (DescriptionError, ModelError) as refusal:
        return f"| {name} | refused: {' '.join(str(refusal).split())[:400]} |"
    took = time.process_time() - start
    errors, spread = [], 0.0
    for seed, away in enumerate(AWAY):
        try:
            found, apart = error(robot, model, away, seed)
        except (ModelError, np.linalg.LinAlgError) as refusal:
            errors.append(f"{type(refusal).__name__}: {' '.join(str(refusal).split())[:120]}")
        else:
            errors.append(f"{found:.0e}")
            spread = max(spread, apart)
    try:
        trip = round_trip(robot) if robot.description.actuated_joints else "no motors"
    except ModelError as refusal:
        trip = f"{type(refusal).__name__}: {' '.join(str(refusal).split())[:120]}"
    sizes = f"{robot.nv} / {robot.ny} | {len(robot.clusters)} | {len(robot.actuated_joint_names)}"
    beside = f" (choices of rows {spread:.0e})" if spread else ""
    return f"| {name} | {sizes} | {took:.1f} | {', '.join(errors)}{beside} | {trip} |"


if __name__ == "__main__":
    # Assemblies that were stored would make loading look faster than it is the first time.
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    print("| model | nv / ny | clusters | motors | load [s] | errors | joints, motors |")
    for argument in sys.argv[1:]:
        repository, _, path = argument.partition("=")
        for robot in models(repository, Path(path)):
            print(row(*robot), flush=True)
