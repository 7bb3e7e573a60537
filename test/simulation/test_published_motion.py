"""Motions of mechanisms with loops against published ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rbda_ros import Simulator, load_robot

# Andrews' squeezer, a planar mechanism of seven bodies and three loops. Hairer and Wanner, "Solving
# Ordinary Differential Equations II", Sec. VII.7; positions after 0.03 s from the Test Set for
# Initial Value Problem Solvers.

# Where each body's joint is on its parent; its mass, inertia about its center, and center of mass.
BODIES = {
    "beta": ("base", (0.0, 0.0), 0.04325, 2.194e-6, (92e-5, 0.0)),
    "theta": ("beta", (7e-3, 0.0), 0.00365, 4.41e-7, (-115e-4, 0.0)),
    "gamma": ("base", (-0.03635, 0.03273), 0.02373, 5.255e-6, (1874e-5, 1043e-5)),
    "delta": ("base", (-0.06934, -0.00227), 0.0705, 1.169e-5, (2308e-5, 916e-5)),
    "phi": ("delta", (0.04, 0.0), 0.00706, 5.667e-7, (0.0, 1421e-5 - 0.02)),
    "epsilon": ("base", (-0.06934, -0.00227), 0.05498, 1.912e-5, (1228e-5, 449e-5)),
    "omega": ("epsilon", (0.0, -0.04), 0.00706, 5.667e-7, (0.02 - 1421e-5, 0.0)),
}
START = {
    "beta": -0.0617138900142764496,
    "theta": 0.0,
    "gamma": 0.455279819163070380,
    "phi": 0.222668390165885885,
    "delta": 0.487364979543842550,
    "omega": -0.222668390165885885,
    "epsilon": 1.23054744454982119,
}
END = {
    "beta": 15.81077119629904,
    "theta": -15.75637105984298,
    "gamma": 0.04082224013073101,
    "phi": -0.5347301163226948,
    "delta": 0.5244099658805304,
    "omega": 0.5347301163226948,
    "epsilon": 1.048080741042263,
}
TIPS = {"gamma": [0.0, -0.035, 0.0], "phi": [0.0, -0.02, 0.0], "omega": [0.02, 0.0, 0.0]}


def squeezer():
    links = ['<link name="base"/>']
    for name, (parent, (x, y), mass, inertia, (cx, cy)) in BODIES.items():
        links.append(
            f"""<link name="{name}"><inertial><origin xyz="{cx} {cy} 0"/><mass value="{mass}"/>
            <inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/>
            </inertial></link><joint name="{name}" type="continuous"><parent link="{parent}"/>
            <child link="{name}"/><origin xyz="{x} {y} 0"/><axis xyz="0 0 1"/></joint>"""
        )
    tip = {"link": "theta", "xyz": [-0.028, 0.0, 0.0]}
    loops = {
        "independent_joints": ["beta"],
        "actuated_joints": ["beta"],
        "constraints": [
            {
                "name": f"tip_{name}",
                "type": "revolute",
                "axis": [0, 0, 1],
                "predecessor": tip,
                "successor": {"link": name, "xyz": xyz},
            }
            for name, xyz in TIPS.items()
        ],
        "assembly": START,
        "springs": [
            {
                "name": "spring",
                "predecessor": {"link": "gamma", "xyz": [0.02, -0.018, 0.0]},
                "successor": {"link": "base", "xyz": [0.014, 0.072, 0.0]},
                "stiffness": 4530.0,
                "rest": 0.07785,
            }
        ],
    }
    return load_robot(f'<robot name="squeezer">{"".join(links)}</robot>', loops, gravity=(0, 0, 0))


def test_squeezer_arrives_where_it_was_published():
    robot = squeezer()
    sim = Simulator(robot, 1e-5, integrator="rk4")
    sim.reset(robot.close([START["beta"]], [START[name] for name in robot.joint_names]))
    sim.step([0.033], steps=3000)
    end = [END[name] for name in robot.joint_names]
    np.testing.assert_allclose(sim.q, end, atol=1e-7)


# N four-bars side by side, the benchmark A02 of the IFToMM library of computational benchmarks:
# uniform bars of 1 m and 1 kg, cranks upright at the start, their ends at 1 m/s. Where the cranks
# are horizontal the mechanism has N + 1 freedoms for an instant.
# https://www.iftomm-multibody.org/benchmark, problem A02.

# Of two four-bars after 10 s, the end of the first crank: x, y and their rates, as converged in
# EXUDYN (TestModels/fourBarMechanismIftomm.py) with steps of 0.25 and 0.125 ms; its integrator is
# of second order.
TWO_STEPS = np.array(
    [
        [0.3284552113, 0.9445195467, 1.423045728, -0.4948619021],
        [0.3284573768, 0.9445187937, 1.423050003, -0.4948670827],
    ]
)
# Of forty four-bars, x and y of the same point at 3, 4 and 5 s: the library's own reference
# solution (A02_solution_data.txt, made with ADAMS).
FORTY = {
    3.0: (-3.38518e-01, -9.40960e-01),
    4.0: (6.93421e-02, 9.97593e-01),
    5.0: (-5.40191e-01, -8.41543e-01),
}


def four_bars(count):
    links, constraints = ['<link name="ground"/>'], []

    def bar(name, parent, xyz, center, inertia):
        links.append(
            f"""<link name="{name}"><inertial><origin xyz="{center}"/><mass value="1"/>
            <inertia {inertia} iyy="{1 / 12}" ixy="0" ixz="0" iyz="0"/></inertial></link>
            <joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{name}"/>
            <origin xyz="{xyz}"/><axis xyz="0 1 0"/></joint>"""
        )

    for k in range(count + 1):
        bar(f"crank_{k}", "ground", f"{k} 0 0", "0 0 0.5", f'ixx="{1 / 12}" izz="0"')
    for k in range(count):
        bar(f"coupler_{k}", f"crank_{k}", "0 0 1", "0.5 0 0", f'ixx="0" izz="{1 / 12}"')
        constraints.append(
            {
                "name": f"tie_{k}",
                "type": "revolute",
                "axis": [0, 1, 0],
                "predecessor": {"link": f"coupler_{k}", "xyz": [1, 0, 0]},
                "successor": {"link": f"crank_{k + 1}", "xyz": [0, 0, 1]},
            }
        )
    loops = {"independent_joints": ["crank_0"], "constraints": constraints}
    return load_robot(f'<robot name="four_bars">{"".join(links)}</robot>', loops)


def end_of_crank(sim):
    """x, y of the end of the first crank, and their rates."""
    j = sim.robot.joint_names.index("crank_0")
    angle, rate = sim.q[j], sim.qd[j]
    x, y = np.sin(angle), np.cos(angle)
    return np.array([x, y, y * rate, -x * rate])


def cranks_alone(count):
    """The angle of the cranks by time: a pendulum upside down, as all couplers stay horizontal."""
    inertia, moment = (count + 1) / 3.0 + count, (count + 1) / 2.0 + count
    return solve_ivp(
        lambda _, s: [s[1], 9.81 * moment / inertia * np.sin(s[0])],
        (0.0, 10.0),
        [0.0, 1.0],
        method="DOP853",
        dense_output=True,
        rtol=1e-13,
        atol=1e-14,
    ).sol


def test_two_four_bars_move_as_published_through_singular_positions():
    robot, angle = four_bars(2), cranks_alone(2)
    sim = Simulator(robot, 1e-3, integrator="rk4")
    sim.reset(qd=[1.0])
    before = sum(robot.energy(sim.q, sim.qd))
    j = robot.joint_names.index("crank_0")
    for k in range(1, 101):
        sim.step(steps=100)
        assert sim.q[j] == pytest.approx(angle(k / 10.0)[0], abs=1e-5)
    coarse, fine = TWO_STEPS
    np.testing.assert_allclose(end_of_crank(sim), fine + (fine - coarse) / 3.0, atol=5e-6)
    assert sum(robot.energy(sim.q, sim.qd)) == pytest.approx(before, abs=1e-4)
    assert sim.q[j] > 10.0 * np.pi  # past twenty singular positions


def test_a_stage_on_a_singular_position_does_not_throw_the_cranks():
    """With this step a stage is 6e-8 rad from it, where the acceleration has no right digit."""
    robot, angle = four_bars(1), cranks_alone(1)
    sim = Simulator(robot, 1e-4, integrator="rk4")
    sim.reset(qd=[1.0])
    sim.step(steps=10_000)
    assert sim.q[robot.joint_names.index("crank_0")] == pytest.approx(angle(1.0)[0], abs=1e-7)


@pytest.mark.nightly
def test_forty_four_bars_move_as_published():
    sim = Simulator(four_bars(40), 1e-3, integrator="rk4")
    sim.reset(qd=[1.0])
    for time, published in FORTY.items():
        sim.step(steps=round((time - sim.time) / sim.dt))
        np.testing.assert_allclose(end_of_crank(sim)[:2], published, atol=1e-3)  # that asked there
