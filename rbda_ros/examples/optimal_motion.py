"""Optimal motions of robots with loops by IPOPT or fatrop: a jump, and a swing of an ankle.

    python -m rbda_ros.examples.optimal_motion jump
    python -m rbda_ros.examples.optimal_motion swing --solver fatrop

The idea: equations of motion, velocities, accelerations and forces are those of the independent
coordinates. Each rod of a linkage adds one variable, the position of the joint that it moves, and
one constraint, its length: that is ``lifted``. With ``--formulation embedded`` the loops are closed
inside the functions, and the problem has the independent coordinates alone. The same problem on the
open tree needs positions, velocities and accelerations of every joint, forces of the loops, and
constraints for all of them: ``--formulation tree``. All reach the same optimum. The equations are
compiled first, as a controller would, which needs a C compiler; ``--interpreted`` leaves that out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from rbda_ros import load_robot
from rbda_ros.spatial import Array

# A leg on a vertical rail with two geared motors. A crank at the hip moves the knee by a rod.
LEG = """<robot name="jumping_leg">
  <link name="rail"/>
  <joint name="height" type="prismatic">
    <parent link="rail"/><child link="body"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="1" effort="0" velocity="10"/>
  </joint>
  <link name="body"><inertial><mass value="4"/>
    <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
  <joint name="hip" type="revolute">
    <parent link="body"/><child link="thigh"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.5" effort="35" velocity="30"/>
  </joint>
  <link name="thigh"><inertial><origin xyz="0 0 -0.1"/><mass value="0.8"/>
    <inertia ixx="0.005" ixy="0" ixz="0" iyy="0.005" iyz="0" izz="0.001"/></inertial></link>
  <joint name="knee" type="revolute">
    <parent link="thigh"/><child link="shank"/><origin xyz="0 0 -0.25"/><axis xyz="0 1 0"/>
    <limit lower="0.1" upper="2.4" effort="0" velocity="30"/>
  </joint>
  <link name="shank"><inertial><origin xyz="0 0 -0.1"/><mass value="0.4"/>
    <inertia ixx="0.003" ixy="0" ixz="0" iyy="0.003" iyz="0" izz="0.0005"/></inertial></link>
  <joint name="crank" type="revolute">
    <parent link="thigh"/><child link="crank_link"/><axis xyz="0 1 0"/>
    <limit lower="0.15" upper="2.2" effort="35" velocity="30"/>
  </joint>
  <link name="crank_link"><inertial><origin xyz="-0.02 0 0"/><mass value="0.2"/>
    <inertia ixx="1e-4" ixy="0" ixz="0" iyy="2e-3" iyz="0" izz="1e-4"/></inertial></link>
  <joint name="rod" type="revolute">
    <parent link="crank_link"/><child link="rod_link"/><origin xyz="-0.05 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="0" velocity="30"/>
  </joint>
  <link name="rod_link"><inertial><origin xyz="0 0 -0.125"/><mass value="0.1"/>
    <inertia ixx="5e-4" ixy="0" ixz="0" iyy="5e-4" iyz="0" izz="1e-5"/></inertial></link>
  <joint name="hip_rotor" type="continuous">
    <parent link="body"/><child link="hip_rotor_link"/><axis xyz="0 1 0"/>
    <limit effort="4" velocity="300"/>
  </joint>
  <link name="hip_rotor_link"><inertial><mass value="0.1"/>
    <inertia ixx="6e-5" ixy="0" ixz="0" iyy="6e-5" iyz="0" izz="6e-5"/></inertial></link>
  <joint name="crank_rotor" type="continuous">
    <parent link="thigh"/><child link="crank_rotor_link"/><axis xyz="0 1 0"/>
    <limit effort="4" velocity="300"/>
  </joint>
  <link name="crank_rotor_link"><inertial><mass value="0.1"/>
    <inertia ixx="6e-5" ixy="0" ixz="0" iyy="6e-5" iyz="0" izz="6e-5"/></inertial></link>
</robot>"""
LEG_LOOPS = {
    "independent_joints": ["height", "hip", "crank"],
    "actuated_joints": ["hip_rotor", "crank_rotor"],
    "constraints": [
        {
            "name": "pin",
            "type": "revolute",
            "predecessor": {"link": "rod_link", "xyz": [0, 0, -0.25]},
            "successor": {"link": "shank", "xyz": [-0.055, 0, 0]},
            "axis": [0, 1, 0],
        },
        *(
            {"name": f"{joint}_gear", "type": "coupling", "terms": {f"{joint}_rotor": 1, joint: -9}}
            for joint in ("hip", "crank")
        ),
    ],
    "assembly": {"hip": -0.7, "crank": 1.4, "knee": 1.1, "rod": -1.3},
}
Rods = dict[str, tuple[str, tuple[str, ...]]]
"""By the name of the cut at its end: the joint that a rod moves, and the rod's own joints."""
LEG_RODS: Rods = {"pin": ("knee", ("rod",))}
SMOOTH = 1e-5
"""Cost of an acceleration, beside the square of an effort: of like motions the smooth one."""
FOOT = [0.0, 0.0, -0.25]

# A foot on two cranks and rods, whose far ends are ball joints.
ANKLE_LOOPS = {
    "independent_joints": ["ankle_pitch", "ankle_roll"],
    "actuated_joints": ["left_motor", "right_motor"],
    "constraints": [
        {
            "name": f"{side}_ball",
            "type": "spherical",
            "predecessor": {"link": f"{side}_rod", "xyz": [0, 0, -0.27]},
            "successor": {"link": "foot", "xyz": [-0.06, y, -0.02]},
        }
        for side, y in (("left", 0.05), ("right", -0.05))
    ],
}
ANKLE_RODS: Rods = {
    f"{side}_ball": (f"{side}_motor", (f"{side}_tilt", f"{side}_lean"))
    for side in ("left", "right")
}


def _link(name: str, mass: float, z: float, inertia: float) -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="0.02 0 {z}"/><mass value="{mass}"/>'
        f'<inertia ixx="{inertia}" ixy="0" ixz="0" iyy="{inertia}" iyz="0" izz="{inertia}"/>'
        "</inertial></link>"
    )


def _joint(name: str, parent: str, child: str, xyz: str, axis: str, limit: float) -> str:
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="{axis}"/>'
        f'<limit lower="-{limit}" upper="{limit}" effort="6" velocity="20"/></joint>'
    )


ANKLE = "".join(
    [
        '<robot name="swinging_ankle"><link name="shank"/>',
        _joint("ankle_pitch", "shank", "cross", "0 0 -0.3", "0 1 0", 0.8),
        _link("cross", 0.1, 0.0, 1e-4),
        _joint("ankle_roll", "cross", "foot", "0 0 0", "1 0 0", 0.6),
        _link("foot", 0.9, -0.04, 4e-3),
        *(
            part
            for side, y in (("left", 0.05), ("right", -0.05))
            for part in (
                _joint(f"{side}_motor", "shank", f"{side}_crank", f"0 {y} -0.05", "0 1 0", 1.2),
                _link(f"{side}_crank", 0.1, 0.0, 5e-4),
                _joint(f"{side}_tilt", f"{side}_crank", f"{side}_pin", "-0.06 0 0", "0 1 0", 1.5),
                _link(f"{side}_pin", 0.01, 0.0, 1e-6),
                _joint(f"{side}_lean", f"{side}_pin", f"{side}_rod", "0 0 0", "1 0 0", 1.0),
                _link(f"{side}_rod", 0.08, -0.13, 5e-4),
            )
        ),
        "</robot>",
    ]
)


@dataclass
class Problem:
    """A motion in steps of equal time, with the acceleration constant in each.

    Attributes:
        robot: with loops, for start and end.
        time: [s]; steps: how many.
        start, end: independent positions; the end is a guess where the robot takes off.
        limit: largest effort of each motor [N m].
        lower, upper: bounds of the independent position.
        takeoff: velocity that the body has when the foot leaves the ground [m/s]; None for a
            motion in the air.
    """

    robot: Any
    time: float
    steps: int
    start: Array
    end: Array
    limit: float
    lower: Array
    upper: Array
    takeoff: float | None

    @property
    def contact(self) -> bool:
        """Whether the foot is on the ground."""
        return self.takeoff is not None


@dataclass(frozen=True)
class Stage:
    """The equations of one step: ``zero(y, yd, ydd, efforts, ground force, others) = 0``.

    Attributes:
        zero: a CasADi function.
        guess: the first guess of the other numbers that the formulation has, at a position y.
    """

    zero: ca.Function
    guess: Callable[[Array], Array]


def jump(steps: int = 25) -> Problem:
    """The leg pushes off the ground from a crouch, and leaves it at 1.5 m/s, with little effort."""
    leg = load_robot(LEG, LEG_LOOPS)
    crouch, stretched = np.array([0.0, -0.6, 1.4]), np.array([0.0, -0.4, 0.9])
    for y in (crouch, stretched):
        y[0] = -leg.frame_pose(y, ("shank", FOOT))[2, 3]
    return Problem(
        leg,
        *(0.2, steps, crouch, stretched, 6.0),
        np.array([0.0, -1.5, 0.3]),
        np.array([1.0, 1.5, 2.2]),
        takeoff=1.5,
    )


def swing(steps: int = 30) -> Problem:
    """The foot goes from one corner of its range to another, with little effort."""
    ankle = load_robot(ANKLE, ANKLE_LOOPS)
    return Problem(
        ankle,
        *(0.2, steps, np.array([-0.4, -0.25]), np.array([0.4, 0.25]), 5.0),
        np.array([-0.6, -0.4]),
        np.array([0.6, 0.4]),
        takeoff=None,
    )


def embedded(problem: Problem) -> Stage:
    """The equations in independent coordinates: loops are closed inside, once for all functions."""
    robot, n = problem.robot, problem.robot.ny
    y, yd, ydd = (ca.MX.sym(name, n) for name in ("y", "yd", "ydd"))
    u, f = ca.MX.sym("u", len(robot.actuated_joint_names)), ca.MX.sym("f", 2)
    rows = spanning_rows(problem)
    zero = rows(robot.casadi("close")(y), yd, ydd, u, f)
    return Stage(
        ca.Function("zero", [y, yd, ydd, u, f, ca.MX(0, 1)], [zero]), lambda y: np.zeros(0)
    )


def lifted(problem: Problem) -> Stage:
    """The same with a variable and a constraint for each rod: its length is between its ends.

    The constraint determines the joint that moves the rod, which is the variable. The angles of
    the rod itself follow from its ends (`hang_rod`), and positions behind gears are linear in y.
    """
    robot, n = problem.robot, problem.robot.ny
    y, yd, ydd = (ca.SX.sym(name, n) for name in ("y", "yd", "ydd"))
    u, f = ca.SX.sym("u", len(robot.actuated_joint_names)), ca.SX.sym("f", 2)
    place, q = robot.joint_names.index, ca.SX(robot.nq, 1)
    q[list(robot.independent_coordinates)] = y
    rods = LEG_RODS if problem.contact else ANKLE_RODS
    moving = [place(joint) for joint, _ in rods.values()]
    others = ca.SX.sym("others", len(moving))
    q[moving] = others
    if problem.contact:
        for joint in ("hip", "crank"):
            q[place(f"{joint}_rotor")] = 9 * q[place(joint)]
    loops: dict[str, Any] = LEG_LOOPS if problem.contact else ANKLE_LOOPS
    cuts = {cut["name"]: cut for cut in loops["constraints"]}
    excess = [hang_rod(robot, q, cuts[name], joints) for name, (_, joints) in rods.items()]
    zero = ca.vertcat(spanning_rows(problem)(q, yd, ydd, u, f), *excess)
    stage = ca.Function("zero", [y, yd, ydd, u, f, others], [ca.cse(zero)])
    return Stage(stage, lambda y: robot.close(y)[moving])


def hang_rod(robot: Any, q: Any, cut: dict[str, Any], joints: Sequence[str]) -> Any:
    """Point a rod at its far end; returns what is missing of its length, to first order [m].

    Args:
        robot: with the rod.
        q: spanning position; the angles of the rod are written into it.
        cut: the loop's cut, at the far end of the rod, which is on its negative z axis.
        joints: joints of the rod: about its y axis, and then about x if there is a second one.
    """
    rod, end = cut["predecessor"], cut["successor"]
    places = [robot.joint_names.index(joint) for joint in joints]
    q[places] = 0
    hinge = robot.casadi("frame_pose", "spanning", frame=rod["link"])(q)
    far = robot.casadi("frame_pose", "spanning", frame=(end["link"], end["xyz"]))(q)
    d = hinge[:3, :3].T @ (far[:3, 3] - hinge[:3, 3])
    length, across = -rod["xyz"][2], d[0] ** 2 + d[2] ** 2
    angles = [ca.atan2(-d[0], -d[2]), ca.atan2(d[1], ca.sqrt(across))]
    q[places] = ca.vertcat(*angles[: len(places)])
    return (across + d[1] ** 2 - length**2) / (2 * length)


def spanning_rows(problem: Problem) -> ca.Function:
    """Equations of motion, and of a foot that stays in its place, at a closed position."""
    robot = problem.robot
    q, yd, ydd = ca.SX.sym("q", robot.nq), ca.SX.sym("yd", robot.ny), ca.SX.sym("ydd", robot.ny)
    u, f = ca.SX.sym("u", len(robot.actuated_joint_names)), ca.SX.sym("f", 2)
    qd, on_joints = ca.SX(robot.nv, 1), ca.SX(robot.nv, 1)
    qd[list(robot.independent_coordinates)] = yd
    on_joints[list(robot.actuated_coordinates)] = u
    needed, rows = needed_force(robot, problem.contact, q, qd, ydd, f)
    tau = robot.casadi("generalized_force", "spanning")(q, on_joints)
    zero = ca.cse(ca.vertcat(needed - tau, *rows))
    return ca.Function("rows", [q, yd, ydd, u, f], [zero])


def needed_force(
    robot: Any, contact: bool, q: Any, qd: Any, ydd: Any, f: Any
) -> tuple[Any, list[Any]]:
    """Force on y that gives ydd; and, of a foot on the ground, its acceleration, to be zero."""
    if not contact:
        return robot.casadi("inverse_dynamics", "spanning")(q, qd, ydd), []
    dynamics = robot.casadi("inverse_dynamics", "spanning", external_wrenches=("shank",))
    pose = robot.casadi("frame_pose", "spanning", frame="shank")(q)
    foot = robot.casadi("frame_acceleration", "spanning", frame=("shank", FOOT))
    return dynamics(q, qd, ydd, ground_wrench(pose, f)), [foot(q, qd, ydd)[[0, 2]]]


def as_tree(problem: Problem) -> Stage:
    """The same on the open tree, with constraints and forces for its loops."""
    robot = problem.robot
    urdf, loops = (LEG, LEG_LOOPS) if problem.contact else (ANKLE, ANKLE_LOOPS)
    tree = load_robot(urdf)
    places = {name: i for i, name in enumerate(tree.joint_names)}
    first = [places[name] for name in robot.independent_joint_names]
    rest = [i for i in range(tree.nv) if i not in first]
    motors = [places[name] for name in robot.actuated_joint_names]
    q, qd, qdd = (ca.SX.sym(name, tree.nv) for name in ("q", "qd", "qdd"))
    phi = loop_rows(tree, q, loops)
    K = ca.jacobian(phi, q)
    rate = ca.jtimes(phi, q, qd)
    forces, f = ca.SX.sym("forces", phi.rows()), ca.SX.sym("f", 2)
    u = ca.SX.sym("u", len(motors))
    on_joints = ca.SX(tree.nv, 1)
    on_joints[motors] = u
    needed, rows = needed_force(tree, problem.contact, q, qd, qdd, f)
    rows += [phi, rate, K @ qdd + ca.jtimes(rate, q, qd)]
    zero = ca.vertcat(needed - on_joints - K.T @ forces, *rows)
    given = [x[first] for x in (q, qd, qdd)]
    others = ca.vertcat(*(x[rest] for x in (q, qd, qdd)), forces)
    stage = ca.Function("zero", [*given, u, f, others], [ca.cse(zero)])
    in_robot = [robot.joint_names.index(tree.joint_names[i]) for i in rest]
    more = np.zeros(others.rows() - len(rest))
    return Stage(stage, lambda y: np.concatenate([robot.close(y)[in_robot], more]))


def loop_rows(tree: Any, q: Any, loops: dict[str, Any]) -> Any:
    """phi (rows) of the cuts and of the gears, zero where they are closed."""
    rows = []
    for cut in loops["constraints"]:
        if cut["type"] == "coupling":
            turns = [c * q[tree.joint_names.index(joint)] for joint, c in cut["terms"].items()]
            rows.append(sum(turns) / 9)
            continue
        ends = [
            tree.casadi("frame_pose", frame=(cut[end]["link"], cut[end]["xyz"]))(q)
            for end in ("predecessor", "successor")
        ]
        gap = ends[0][:3, 3] - ends[1][:3, 3]
        rows.append(gap if cut["type"] == "spherical" else gap[[0, 2]])
    return ca.vertcat(*rows)


def ground_wrench(pose: Any, f: Any) -> Any:
    """The ground's force (x, z) on the foot's point, as a wrench (1, 6) on the shank."""
    force = pose[:3, :3].T @ ca.vertcat(f[0], 0, f[1])
    return ca.horzcat(force.T, ca.cross(ca.DM(FOOT), force).T)


@dataclass(frozen=True)
class Motion:
    """An optimal motion: its cost, positions (steps + 1, ny), and how it was found.

    ``seconds`` is the processor time of the solver.
    """

    cost: float
    y: Array
    iterations: int
    seconds: float
    solved: bool


def compiled(stage: Stage, folder: Path) -> Stage:
    """The same equations in machine code, with their first and second derivatives.

    CasADi differentiates one step, and not the whole problem: the Jacobian, and the Jacobian of
    its product with multipliers, are short programs of their own. A call of the library is
    differentiated by them and by nothing else. Needs a C compiler.

    Args:
        stage: the equations of a step.
        folder: where the library is written.
    """
    zero = stage.zero
    by_multipliers = zero.reverse(1)
    code = ca.CodeGenerator("zero.c")
    for function in (zero, zero.jacobian(), by_multipliers, by_multipliers.jacobian()):
        code.add(function)
    code.generate(f"{folder}{os.sep}")
    source, library = str(folder / "zero.c"), str(folder / "zero.so")
    command = [_compiler(), "-O1", "-shared", "-fPIC", source, "-o", library, "-lm"]
    subprocess.run(command, check=True)
    options = {"enable_forward": False, "enable_fd": False}
    return replace(stage, zero=ca.external("zero", library, options))


def _compiler() -> str:
    return os.environ.get("CC", "cc")


def solve(problem: Problem, stage: Stage, solver: str = "ipopt") -> Motion:
    """The optimal motion. Variables and constraints are in the order of time, as fatrop needs.

    Args:
        problem: what to do.
        stage: the equations of a step.
        solver: ``"ipopt"`` or ``"fatrop"``.
    """
    n, motors = problem.robot.ny, len(problem.robot.actuated_joint_names)
    h, ground, steps = problem.time / problem.steps, 2 if problem.contact else 0, problem.steps
    guesses = [problem.start + k / steps * (problem.end - problem.start) for k in range(steps + 1)]
    others = np.array([stage.guess(y) for y in guesses[:-1]])
    force = np.tile([0.0, 50.0][:ground], (steps, 1))
    zeros = [np.zeros((steps, size)) for size in (n, n, motors)]
    first = np.hstack([guesses[:-1], *zeros, force, others])
    bounds = [
        (problem.lower, problem.upper),
        *((-limit, limit) for limit in (np.full(n, 30.0), np.full(n, 5e3))),
        *((-limit, limit) for limit in (np.full(motors, problem.limit), np.full(ground, 2e3))),
        (np.full(others.shape[1], -1e4), np.full(others.shape[1], 1e4)),
    ]
    lower, upper = (np.concatenate([bound[side] for bound in bounds]) for side in (0, 1))

    # One column for each step: y, yd, ydd, u, f, others. The state at the end comes last.
    x = ca.MX.sym("x", first.size + 2 * n)
    each = ca.reshape(x[: first.size], first.shape[1], steps)
    y, yd, ydd, u, f, rest = ca.vertsplit(
        each, np.cumsum([0, n, n, n, motors, ground, others.shape[1]]).tolist()
    )
    end = x[first.size :]
    state = ca.horzcat(each[: 2 * n, 1:], end)
    reached = ca.vertcat(y + h * yd + h**2 / 2 * ydd, yd + h * ydd)
    path = stage.zero.map(steps)(y, yd, ydd, u, f if ground else ca.MX(2, steps), rest)
    least, most = np.zeros((path.rows(), 1)), np.zeros((path.rows(), 1))
    if ground:  # inside the friction cone
        path = ca.vertcat(path, 0.6 * f[1, :] - f[0, :], 0.6 * f[1, :] + f[0, :], f[1, :])
        least, most = np.vstack([least, np.zeros((3, 1))]), np.vstack([most, np.full((3, 1), 4e3)])
    rows, low, high = [], [], []

    def constrain(row: Any, least: Array | float = 0.0, most: Array | float = 0.0) -> None:
        rows.append(row)
        low.append(np.broadcast_to(least, row.numel()))
        high.append(np.broadcast_to(most, row.numel()))

    whole = ca.vertcat(state - reached, path)
    low_step = np.concatenate([np.zeros(2 * n), least[:, 0]])
    high_step = np.concatenate([np.zeros(2 * n), most[:, 0]])
    constrain(whole[: 2 * n, 0])
    constrain(ca.vertcat(y[:, 0] - problem.start, yd[:, 0]))
    constrain(whole[2 * n :, 0], low_step[2 * n :], high_step[2 * n :])
    constrain(ca.vec(whole[:, 1:]), np.tile(low_step, steps - 1), np.tile(high_step, steps - 1))
    if problem.takeoff is None:
        constrain(end - np.concatenate([problem.end, np.zeros(n)]))
    else:
        constrain(end[n] - problem.takeoff)
    nlp = {
        "x": x,
        "f": ca.sumsqr(u) + SMOOTH * ca.sumsqr(ydd),
        "g": ca.vertcat(*rows),
    }
    lbg, ubg = np.concatenate(low), np.concatenate(high)
    options: dict[str, Any] = {"print_time": False}
    if solver == "ipopt":
        options["ipopt"] = {"print_level": 0, "sb": "yes", "tol": 1e-8}
    else:
        options |= {"structure_detection": "auto", "equality": (lbg == ubg).tolist()}
        options["fatrop"] = {"print_level": 0, "tolerance": 1e-8}
    nlpsol = ca.nlpsol("motion", solver, nlp, options)
    began = time.process_time()
    found = nlpsol(
        x0=np.concatenate([first.ravel(), problem.end, np.zeros(n)]),
        lbx=np.concatenate([np.tile(lower, steps), lower[: 2 * n]]),
        ubx=np.concatenate([np.tile(upper, steps), upper[: 2 * n]]),
        lbg=lbg,
        ubg=ubg,
    )
    seconds = time.process_time() - began
    positions = ca.Function("positions", [x], [ca.horzcat(y, end[:n]).T])
    stats = nlpsol.stats()
    return Motion(
        float(found["f"]),
        np.array(positions(found["x"])),
        stats["iter_count"],
        seconds,
        stats["success"],
    )


FORMULATIONS = {"embedded": embedded, "lifted": lifted, "tree": as_tree}
PROBLEMS = {"jump": jump, "swing": swing}


def main(args: Sequence[str] | None = None) -> Motion:
    """Print how a motion was found; returns it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("motion", choices=PROBLEMS)
    parser.add_argument("--formulation", choices=FORMULATIONS, default="lifted")
    parser.add_argument("--solver", choices=("ipopt", "fatrop"), default="ipopt")
    parser.add_argument("--interpreted", action="store_true", help="do not compile the equations")
    given = parser.parse_args(args)
    problem = PROBLEMS[given.motion]()
    stage = FORMULATIONS[given.formulation](problem)
    with tempfile.TemporaryDirectory() as folder:
        if not given.interpreted and shutil.which(_compiler()):
            stage = compiled(stage, Path(folder))
        motion = solve(problem, stage, given.solver)
    print(
        f"{given.motion}, {given.formulation}, {given.solver}: cost {motion.cost:.6f} after"
        f" {motion.iterations} iterations in {motion.seconds:.2f} s"
    )
    names = problem.robot.independent_joint_names
    for name, begin, end in zip(names, motion.y[0], motion.y[-1], strict=True):
        print(f"{name:>14} from {begin:+.3f} to {end:+.3f}")
    return motion


if __name__ == "__main__":
    main()
