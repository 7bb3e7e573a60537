"""The simulator against laws of physics, a reference integrator, and itself in other batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipk

from benchmark.simulation import stewart
from rbda_ros import InputError, Simulator, SingularityError, load_robot
from rbda_ros.simulation.simulator import Actuator, SensorNoise

MECHANISMS = Path(__file__).parent.parent / "mechanisms"

LINK = """<link name="{name}"><inertial><origin xyz="{x} 0 {z}"/><mass value="{m}"/>
  <inertia ixx="{i}" iyy="{i}" izz="{k}" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


def one_joint(kind: str, axis: str, dynamics: str = "", link: dict | None = None, limit: str = ""):
    numbers = {"name": "body", "x": 0.0, "z": 0.0, "m": 1.0, "i": 1e-9, "k": 1e-9} | (link or {})
    return load_robot(
        f"""<robot name="one"><link name="base"/>{LINK.format(**numbers)}
        <joint name="j" type="{kind}"><parent link="base"/><child link="body"/>
        <axis xyz="{axis}"/>{dynamics}{limit}</joint></robot>"""
    )


def mechanism(name: str):
    return load_robot(MECHANISMS / f"{name}.urdf", MECHANISMS / f"{name}.yaml")


def energy(robot, q, yd):
    total = 0.5 * yd @ robot.mass_matrix(q) @ yd
    for link in robot.description.links:
        if link.inertia is not None:
            pose = robot.frame_pose(q, link.name)
            total += (
                9.81 * link.inertia.mass * (pose[:3, 3] + pose[:3, :3] @ link.inertia.origin.xyz)[2]
            )
    return float(total)


def test_pendulum_has_its_period():
    robot = one_joint("continuous", "0 1 0", link={"z": -1.0})
    amplitude, dt = 1.0, 1e-3
    sim = Simulator(robot, dt, integrator="rk4")
    sim.reset(q=[amplitude])
    q = sim.rollout(np.zeros((3000, 1))).q[:, 0]
    k = int(np.flatnonzero((q[:-1] < 0.0) & (q[1:] >= 0.0))[0])
    crossing = (k + 1 + q[k] / (q[k] - q[k + 1])) * dt
    period = 4.0 * np.sqrt((1.0 + 1e-9) / 9.81) * ellipk(np.sin(amplitude / 2.0) ** 2)
    assert crossing == pytest.approx(0.75 * period, abs=2e-7)


def test_block_sticks_and_slides():
    friction = '<dynamics friction="3.0"/>'
    limit = '<limit lower="-100" upper="100" effort="100" velocity="100"/>'
    robot = one_joint("prismatic", "1 0 0", friction, {"m": 2.0}, limit)
    sim = Simulator(robot, 1e-3, limits=False)
    sim.step([2.9], steps=1000)
    assert abs(sim.q[0]) < 5e-6
    sim.reset()
    sim.step([5.0], steps=1000)
    assert sim.qd[0] == pytest.approx(1.0, rel=5e-3)  # breaking away takes a few steps
    sim.reset(qd=[1.5])
    sim.step([0.0], steps=990)
    assert sim.qd[0] == pytest.approx(1.5 - 1.5 * 0.99, abs=1e-6)
    sim.step([0.0], steps=1000)
    assert abs(sim.qd[0]) < 1e-9


def test_gyroscope_keeps_momentum_and_energy():
    robot = load_robot(
        """<robot name="top"><link name="body"><inertial><mass value="1"/>
        <inertia ixx="0.2" iyy="0.3" izz="0.45" ixy="0" ixz="0" iyz="0"/></inertial></link>
        </robot>""",
        floating_base=True,
        gravity=(0.0, 0.0, 0.0),
    )
    inertia, w = np.diag([0.2, 0.3, 0.45]), np.array([0.1, 3.0, 0.2])
    for integrator, tolerance in (("rk4", 1e-8), ("midpoint", 1e-4)):
        sim = Simulator(robot, 1e-3, integrator=integrator)
        sim.reset(qd=[0.3, 0.2, 0.1, *w])
        sim.step(steps=5000)
        R = robot.frame_pose(sim.q, "body")[:3, :3]
        np.testing.assert_allclose(R @ inertia @ sim.qd[3:], inertia @ w, atol=tolerance)
        np.testing.assert_allclose(R @ sim.qd[:3], [0.3, 0.2, 0.1], atol=tolerance)
        np.testing.assert_allclose(sim.q[:3], 5.0 * np.array([0.3, 0.2, 0.1]), atol=10 * tolerance)


@pytest.mark.parametrize("name", ["four_bar", "parallel_ankle", "geared_four_bar"])
def test_motion_is_that_of_a_reference_integrator(name):
    robot = mechanism(name)
    effort = 0.1 * np.ones(len(robot.actuated_joint_names))
    spanning = np.zeros(robot.nv)
    spanning[list(robot.actuated_coordinates)] = effort
    sim = Simulator(robot, 1e-3, integrator="rk4", friction=False, limits=False)
    last = robot.neutral()

    def rates(t, state):
        nonlocal last
        y, yd = np.split(state, 2)
        last = robot.close(y, last)
        tau = robot.generalized_force(last, spanning)
        return np.concatenate([yd, robot.forward_dynamics(last, yd, tau)])

    start = np.concatenate([robot.independent_position(last), np.zeros(robot.ny)])
    sim.step(effort, steps=100)
    end = solve_ivp(rates, (0.0, 0.1), start, rtol=1e-11, atol=1e-12, method="DOP853").y[:, -1]
    np.testing.assert_allclose(robot.independent_position(sim.q), end[: robot.ny], atol=1e-8)
    assert np.abs(robot.kernel("loop_state").call(sim.q)[0]).max(initial=0.0) < 1e-10


@pytest.mark.parametrize("name", ["four_bar", "parallel_ankle"])
def test_energy_is_the_work_of_the_motors(name):
    robot = mechanism(name)
    sim = Simulator(robot, 1e-3, integrator="rk4", friction=False, limits=False)
    before = energy(robot, sim.q, np.zeros(robot.ny))
    efforts = np.random.default_rng(1).normal(0.0, 0.1, (1000, len(robot.actuated_joint_names)))
    sim.rollout(efforts)
    after = energy(robot, sim.q, sim.qd[list(robot.independent_coordinates)])
    assert after - before == pytest.approx(sim.work, abs=1e-6)


def test_midpoint_does_not_drift():
    robot = mechanism("four_bar")
    sim = Simulator(robot, 1e-3, integrator="midpoint", friction=False, limits=False)
    sim.reset(qd=np.full(robot.ny, 0.5))
    motion = sim.rollout(np.zeros((4000, len(robot.actuated_joint_names))))
    independent = list(robot.independent_coordinates)
    energies = [energy(robot, motion.q[k], motion.qd[k, independent]) for k in range(0, 4000, 40)]
    assert np.ptp(energies) < 1e-4 * max(1.0, abs(energies[0]))


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_results_do_not_depend_on_batch_and_threads(integrator):
    robot = mechanism("parallel_ankle")
    efforts = np.random.default_rng(2).normal(0.0, 0.2, (30, 37, len(robot.actuated_joint_names)))
    ends = []
    for batch, threads in ((37, 1), (37, 2), (5, 1)):
        sim = Simulator(robot, 1e-3, batch, integrator=integrator, threads=threads)
        sim.reset(seed=3)
        sim.rollout(efforts[:, :batch])
        ends.append((sim.q[:5], sim.qd[:5]))
    single = Simulator(robot, 1e-3, integrator=integrator)
    single.reset(seed=3)
    for each in efforts[:, 0]:
        single.step(each)
    for q, qd in ends:
        np.testing.assert_array_equal(q, ends[0][0])
        np.testing.assert_array_equal(qd, ends[0][1])
        np.testing.assert_array_equal(q[0], single.q)


def test_robots_that_cannot_go_on_are_named_and_the_others_move():
    robot = mechanism("four_bar")
    efforts = np.zeros((300, len(robot.actuated_joint_names)))
    expected = Simulator(robot, batch=300)
    expected.reset(seed=1)
    expected.step(efforts, steps=5)
    stuck = [7, 290]
    efforts[stuck] = 1e14
    others = np.delete(np.arange(300), stuck)
    for threads in (1, 2):
        sim = Simulator(robot, batch=300, threads=threads)
        sim.reset(seed=1)
        with pytest.raises(
            SingularityError, match=r"robot 7 \(and 1 more\).* take step 0"
        ) as caught:
            sim.step(efforts, steps=5)
        assert caught.value.rows == (7, 290)
        assert np.isfinite(sim.q).all()
        np.testing.assert_array_equal(sim.q[others], expected.q[others])
        np.testing.assert_array_equal(sim.qd[others], expected.qd[others])
        efforts[stuck] = 0.0
        sim.step(efforts)  # all go on
        efforts[stuck] = 1e14


def test_random_states_are_the_same_before_and_after_machine_code(monkeypatch):
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")
    robot = mechanism("four_bar")
    first = Simulator(robot, batch=40)
    first.reset(seed=1)
    q, qd = first.q, first.qd
    for kernel in robot.traced_kernels():
        kernel.compile(batch=True)
    first.reset(seed=1)
    np.testing.assert_array_equal(first.q, q)
    np.testing.assert_array_equal(first.qd, qd)


def test_efforts_may_have_any_form_that_is_right():
    robot = mechanism("parallel_ankle")
    efforts = np.array([0.3, -0.2])
    ends = []
    for each in (efforts, [0.3, -0.2], efforts[None], np.repeat(efforts, 2)[::2]):
        sim = Simulator(robot)
        sim.step(each)
        ends.append(sim.q)
    np.testing.assert_array_equal(ends, [ends[0]] * len(ends))
    sims = Simulator(robot, batch=3)
    for wrong in (efforts[:, None], np.zeros(3), np.array([np.nan, 0.0]), 0.3, "fast"):
        for each in (sim, sims):
            with pytest.raises(InputError, match="efforts have shape"):
                each.step(wrong)
            for short in ([0.3], [[0.3]]):  # one number counted for every motor
                with pytest.raises(InputError, match="efforts have shape"):
                    each.step(short)
    for wrong in (np.zeros(6), np.zeros((3, 1)), np.zeros((1, 2))):
        with pytest.raises(InputError, match="efforts have shape"):
            sims.step(wrong)
    sims.step(efforts)
    np.testing.assert_array_equal(sims.q[2], ends[0])


def test_a_platform_starts_from_its_pose_with_the_velocity_that_is_given():
    robot = load_robot(stewart())
    sim, rng = Simulator(robot), np.random.default_rng(0)
    assert sim._charts[0].independent == tuple(range(6))
    assert tuple(robot.independent_coordinates) != tuple(range(6))
    state = robot.random_state(rng)
    qd = robot.spanning_velocity(state.q, state.yd)
    for given in (state.yd, qd):
        sim.reset(state.q, given)
        np.testing.assert_allclose(sim.qd, qd, rtol=0.0, atol=1e-9 * np.abs(qd).max())


def test_dead_points_are_passed():
    robot = mechanism("four_bar")
    sim = Simulator(robot, 1e-3, integrator="rk4", friction=False, limits=False)
    sim.reset(qd=np.full(robot.ny, 8.0))
    before = energy(robot, sim.q, np.full(robot.ny, 8.0))
    sim.step(steps=3000)
    chart = sim._charts[sim._chart[0]]
    assert np.abs(robot.kernel("loop_state").call(sim.q)[0]).max() < 1e-10
    tree_robot = robot.with_independent_joints(at=sim.q) if chart is not sim._charts[0] else robot
    yd = sim.qd[list(tree_robot.independent_coordinates)]
    assert energy(tree_robot, sim.q, yd) == pytest.approx(before, abs=1e-5)


def test_checkpoint_restores_the_motion():
    robot = mechanism("four_bar")
    motor = {robot.actuated_joint_names[0]: Actuator(time_constant=0.01, delay=0.003)}
    sim = Simulator(robot, actuators=motor)
    push = np.full(len(robot.actuated_joint_names), 0.3)
    sim.step(push, steps=20)
    kept = sim.checkpoint()
    sim.step(-push, steps=20)
    end = sim.q, sim.qd, sim.time
    sim.restore(kept)
    sim.step(-push, steps=20)
    np.testing.assert_array_equal(sim.q, end[0])
    np.testing.assert_array_equal(sim.qd, end[1])
    assert sim.time == end[2] == pytest.approx(0.04)


def test_motors_lag_are_late_and_fade_with_speed():
    limit = '<limit lower="-100" upper="100" effort="100" velocity="100"/>'
    robot = one_joint("prismatic", "1 0 0", limit=limit)
    sim = Simulator(robot, 1e-3, actuators={"j": Actuator(delay=0.01)}, limits=False)
    sim.step([1.0], steps=10)
    assert sim.qd[0] == 0.0
    sim.step([1.0], steps=10)
    assert sim.qd[0] == pytest.approx(0.01)
    sim = Simulator(robot, 1e-3, actuators={"j": Actuator(time_constant=0.1)}, limits=False)
    sim.step([1.0], steps=100)
    assert sim.qd[0] == pytest.approx(0.1 * np.exp(-1.0), rel=0.02)
    sim = Simulator(robot, 1e-3, actuators={"j": Actuator(free_speed=2.0)}, limits=False)
    sim.step([1000.0], steps=1000)
    assert sim.qd[0] == pytest.approx(2.0, rel=1e-6)


def test_stops_hold_and_wrenches_push():
    limit = '<limit lower="-0.1" upper="0.1" effort="100" velocity="100"/>'
    robot = one_joint("prismatic", "1 0 0", limit=limit)
    sim = Simulator(robot)
    sim.step(None, {"body": [5.0, 0, 0, 0, 0, 0]}, steps=3000)
    assert 0.1 < sim.q[0] < 0.101
    assert abs(sim.qd[0]) < 1e-6


def test_bad_arguments_are_explained():
    robot = one_joint("continuous", "0 1 0")
    with pytest.raises(InputError, match="integrator"):
        Simulator(robot, integrator="verlet")
    with pytest.raises(InputError, match="dt"):
        Simulator(robot, 0.0)
    for wrong in (0, 2.5):
        with pytest.raises(InputError, match="batch"):
            Simulator(robot, batch=wrong)
    with pytest.raises(InputError, match="threads"):
        Simulator(robot, threads=0)
    with pytest.raises(InputError, match="steps"):
        Simulator(robot).step(steps=-1)
    with pytest.raises(InputError, match="actuated joint"):
        Simulator(robot, actuators={"x": Actuator()})
    sim = Simulator(robot)
    with pytest.raises(InputError, match="efforts"):
        sim.step([1.0, 2.0])
    with pytest.raises(InputError, match="efforts"):
        sim.step([np.nan])
    with pytest.raises(InputError, match="no link"):
        sim.step([1.0], {"x": np.zeros(6)})


def test_noise_is_seeded_and_the_same_for_any_batch():
    robot = load_robot(
        MECHANISMS / "four_bar.urdf", MECHANISMS / "four_bar.yaml", floating_base=True
    )
    noise = SensorNoise(position=1e-3, velocity=0.1, seed=4)
    ends = []
    for batch in (7, 3, None):
        sim = Simulator(robot, batch=batch, noise=noise)
        sim.step(steps=5)
        q, qd = sim.measure()
        np.testing.assert_array_equal(q, sim.measure()[0])  # once a step
        ends.append((q, qd) if batch is None else (q[0], qd[0]))
    for each in ends[1:]:
        np.testing.assert_array_equal(each[0], ends[0][0])
        np.testing.assert_array_equal(each[1], ends[0][1])
    many = Simulator(robot, batch=2000, noise=noise)
    many.step()
    q, qd = many.measure()
    assert np.linalg.norm(q[:, 3:7], axis=1) == pytest.approx(1.0)
    spread = robot.difference(np.tile(many.q[0], (2000, 1)), q)
    assert np.std(spread, axis=0) == pytest.approx(1e-3, rel=0.1)
    assert np.std(qd - many.qd, axis=0) == pytest.approx(0.1, rel=0.1)
    before = q
    many.step()
    assert np.abs(many.measure()[0] - before).max() > 1e-4
