"""Contacts with the ground against the laws of physics, through loops, and in batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rbda_ros import FrictionContact, InputError, Simulator, load_robot
from rbda_ros.simulation.ground_contacts import Box, Capsule, HeightField, Plane, Point, Sphere

MECHANISMS = Path(__file__).parent.parent / "mechanisms"
G = 9.81


def body(mass=2.0, inertia=(0.02, 0.02, 0.02)):
    """A body that moves freely."""
    ixx, iyy, izz = inertia
    return load_robot(
        f"""<robot name="body"><link name="body"><inertial><mass value="{mass}"/>
        <inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial></link>
        </robot>""",
        floating_base=True,
    )


def slope(angle):
    return Plane((np.sin(angle), 0.0, np.cos(angle)))


def on_slope(angle, height):
    """q of a body at a height over a slope that falls along +x, turned with it."""
    x, _, z = height * np.array([np.sin(angle), 0.0, np.cos(angle)])
    return [x, 0.0, z, 0.0, np.sin(angle / 2.0), 0.0, np.cos(angle / 2.0)]


def box_on_slope(friction, angle):
    box = Box("body", (0.2, 0.2, 0.1), friction=friction)
    sim = Simulator(body(), 1e-3, contacts=[box], ground=slope(angle))
    sim.reset(on_slope(angle, 0.05))
    return sim


def test_block_sticks_below_the_angle_of_friction():
    sim = box_on_slope(0.5, 0.4)  # tan 0.4 = 0.42
    start = sim.q
    sim.step(steps=1000)
    np.testing.assert_allclose(sim.q, start, atol=1e-9)
    np.testing.assert_allclose(sim.contact_forces, [[0.0, 0.0, 2.0 * G]], atol=1e-6)


def test_block_slides_above_the_angle_of_friction():
    friction, angle = 0.3, 0.5
    sim = box_on_slope(friction, angle)
    sim.step(steps=1000)
    speed = G * (np.sin(angle) - friction * np.cos(angle)) * 1.0
    assert sim.qd[0] == pytest.approx(speed, rel=1e-9)  # in the body's axes: along the slope
    np.testing.assert_allclose(sim.qd[1:], 0.0, atol=1e-8)
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    force = 2.0 * G * np.cos(angle) * (normal - friction * down)
    np.testing.assert_allclose(sim.contact_forces[0], force, atol=1e-6)


def test_sliding_block_stops_where_friction_has_taken_its_energy():
    sim = Simulator(body(), 1e-4, contacts=[Box("body", (0.2, 0.2, 0.1), friction=0.4)])
    sim.reset([0, 0, 0.05, 0, 0, 0, 1], [1.0, 0, 0, 0, 0, 0])
    sim.step(steps=4000)
    assert sim.q[0] == pytest.approx(1.0 / (2.0 * 0.4 * G), abs=1e-4)  # v^2 / (2 mu g)
    np.testing.assert_allclose(sim.qd, 0.0, atol=1e-8)
    assert sim.work == pytest.approx(-1.0, rel=1e-6)  # m v^2 / 2


@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.9, 1.0])
def test_ball_bounces(restitution):
    ball = Sphere("body", 0.1, friction=0.0, restitution=restitution)
    sim = Simulator(body(), 1e-4, contacts=[ball])
    height = 0.5
    sim.reset([0, 0, 0.1 + height, 0, 0, 0, 1])
    z = sim.rollout(np.zeros((12000, 0))).q[:, 2] - 0.1
    assert z.min() > -1e-12
    fall = np.sqrt(2.0 * height / G)
    hit = int(fall / 1e-4)
    apex = z[hit + 5 : hit + 5 + int(2.0 * restitution * fall / 1e-4) + 2].max()
    assert apex == pytest.approx(restitution**2 * height, abs=5e-4)
    if restitution == 0.5:
        again = hit + int(2.0 * restitution * fall / 1e-4)
        second = z[again + 20 : again + 20 + int(2.0 * restitution**2 * fall / 1e-4)].max()
        assert second == pytest.approx(restitution**4 * height, abs=5e-4)


def test_sphere_rolls_without_slipping():
    radius, mass, inertia, angle = 0.1, 2.0, 0.008, 0.3
    sim = Simulator(
        body(mass, (inertia,) * 3), 1e-3, contacts=[Sphere("body", radius)], ground=slope(angle)
    )
    sim.reset(on_slope(angle, radius))
    sim.step(steps=1000)
    R = sim.robot.frame_pose(sim.q, "body")[:3, :3]
    speed = np.linalg.norm(R @ sim.qd[:3])
    expected = G * np.sin(angle) / (1.0 + inertia / (mass * radius**2))
    assert speed == pytest.approx(expected, rel=1e-6)
    assert (R @ sim.qd[3:])[1] == pytest.approx(speed / radius, rel=1e-6)


def test_sliding_sphere_begins_to_roll():
    radius, mass = 0.1, 2.0
    inertia = 0.4 * mass * radius**2
    sim = Simulator(
        body(mass, (inertia,) * 3), 1e-3, contacts=[Sphere("body", radius, friction=0.3)]
    )
    sim.reset([0, 0, radius, 0, 0, 0, 1], [2.0, 0, 0, 0, 0, 0])
    sim.step(steps=500)
    R = sim.robot.frame_pose(sim.q, "body")[:3, :3]
    assert (R @ sim.qd[:3])[0] == pytest.approx(2.0 * 5.0 / 7.0, rel=1e-6)


def test_capsule_lies_down_and_field_is_a_plane_where_it_is_flat():
    capsule = Capsule("body", 0.05, (-0.2, 0, 0), (0.2, 0, 0))
    angle = 0.2
    x = np.linspace(-1.0, 1.0, 5)
    heights = np.repeat(-np.tan(angle) * x[:, None], 3, axis=1)
    ends = []
    for ground in (slope(angle), HeightField(heights, (0.5, 0.4), (-1.0, -0.4))):
        sim = Simulator(body(), 1e-3, contacts=[capsule], ground=ground)
        sim.reset(on_slope(angle, 0.07))
        sim.step(steps=500)
        ends.append(sim.q)
        distance = np.array([np.sin(angle), 0.0, np.cos(angle)]) @ sim.q[:3]
        assert distance == pytest.approx(0.05, abs=1e-6)
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)


def test_ball_comes_to_rest_in_a_bowl():
    x = np.linspace(-0.5, 0.5, 41)
    bowl = HeightField(x[:, None] ** 2 + x**2, (0.025, 0.025), (-0.5, -0.5))
    sim = Simulator(body(), 1e-3, contacts=[Point("body")], ground=bowl)
    sim.reset([0.3, 0.1, 0.3, 0, 0, 0, 1])
    sim.step(steps=8000)
    assert np.hypot(*sim.q[:2]) < 0.35
    assert np.linalg.norm(sim.qd[:3]) < 1e-3
    assert -1e-3 < sim.q[2] - (sim.q[0] ** 2 + sim.q[1] ** 2) < 2e-3


def hopper():
    robot = load_robot(
        MECHANISMS / "four_bar.urdf", MECHANISMS / "four_bar.yaml", floating_base=True
    )
    links = [name for name, at in robot.tree.spanning.links.items() if at.body]
    return robot, [Sphere(link, 0.02, friction=0.6, restitution=0.2) for link in links]


def points_on_the_ground(robot, q, links, corners):
    """Points about links (link, xyz) that are all at the same height."""
    origins = [robot.frame_pose(q, link) for link in links]
    height = min(pose[2, 3] for pose in origins) - 0.02
    points = []
    for link, pose in zip(links, origins, strict=True):
        for turn in 2.0 * np.pi * np.arange(corners) / corners:
            way = [0.04 * np.cos(turn), 0.03 * np.sin(turn), height - pose[2, 3]]
            points.append((link, tuple(pose[:3, :3].T @ way)))
    return height, points


def random_touches(corners, down):
    """A robot with loops on two links, thrown: simulator before the step, and its arguments."""
    robot, _ = hopper()
    links = [name for name, at in robot.tree.spanning.links.items() if at.body][-2:]
    motors = list(robot.actuated_coordinates)
    rng = np.random.default_rng(5)
    for _ in range(20):
        state = robot.random_state(rng)
        q, yd = state.q.copy(), state.yd.copy()
        yd[3:6] = 0.0  # its axes do not turn: no matter whose they are
        yd[:3] -= down * robot.frame_pose(q, robot.links[0])[2, :3]
        height, points = points_on_the_ground(robot, q, links, corners)
        q[2] -= height
        shapes = [Point(link, xyz, friction=0.5) for link, xyz in points]
        sim = Simulator(robot, 1e-3, friction=False, limits=False, contacts=shapes)
        limit = robot.limits.effort[motors]
        efforts = np.clip(rng.normal(0.0, 1.0, len(motors)), -limit, limit)
        spanning = np.zeros(robot.nv)
        spanning[motors] = efforts
        sim.reset(q, yd)
        yield sim, points, q, yd, efforts, robot.generalized_force(q, spanning)


def velocity_of_way(robot, q, end):
    """yd of a step of 1 ms, in the axes of its start."""
    way = robot.difference(q, end)[list(robot.independent_coordinates)] / 1e-3
    base = robot.frame_pose(q, robot.links[0])[:3, :3]
    way[:3] = base.T @ (end - q)[:3] / 1e-3  # along a straight line
    return way


def test_step_is_that_of_the_friction_solver():
    """Through loops: the step is `Robot.frictional_step`'s."""
    for sim, points, q, yd, efforts, tau in random_touches(1, 0.0):
        robot = sim.robot
        contacts = [FrictionContact(link, xyz, friction=0.5) for link, xyz in points]
        without = {"joint_limits": False, "joint_friction": False}
        step = robot.frictional_step(q, yd, tau, contacts, 1e-3, **without)
        sim.step(efforts)
        np.testing.assert_allclose(sim.contact_forces, step.forces, rtol=1e-6, atol=1e-5)
        np.testing.assert_allclose(velocity_of_way(robot, q, sim.q), step.yd, atol=1e-7)


def test_coulombs_law_holds_at_many_points_of_few_bodies():
    """Forces are not determined there: what they are satisfies the laws of motion and friction."""
    touched = 0
    for sim, points, q, yd, efforts, tau in random_touches(6, 1.0):
        robot, h = sim.robot, 1e-3
        sim.step(efforts)
        after = velocity_of_way(robot, q, sim.q)
        force = tau - robot.bias_force(q, yd)
        for (link, xyz), f in zip(points, sim.contact_forces, strict=True):
            pose, jacobian = robot.frame_pose(q, link), robot.jacobian(q, link)
            arm = pose[:3, :3] @ xyz
            J = jacobian[:3] + np.cross(jacobian[3:].T, arm).T
            force += J.T @ f
            v, slip = J @ after, np.linalg.norm((J @ after)[:2])
            assert v[2] > -1e-6
            assert f[2] >= 0.0
            assert np.linalg.norm(f[:2]) <= (0.5 + 1e-9) * f[2] + 1e-9
            assert f[2] * h * v[2] < 1e-8
            if f[2] * slip > 1e-6:
                np.testing.assert_allclose(f[:2], -0.5 * f[2] * v[:2] / slip, atol=1e-4 * f[2])
            touched += f[2] > 0.0
        change = robot.mass_matrix(q) @ (after - yd) / h
        np.testing.assert_allclose(change, force, atol=1e-6 * np.abs(change).max())
    assert touched > 40


def test_results_do_not_depend_on_batch_and_threads():
    robot, contacts = hopper()
    efforts = np.random.default_rng(2).normal(0.0, 0.2, (200, 19, len(robot.actuated_joint_names)))
    ends = []
    for batch, threads in ((19, 1), (19, 2), (5, 1)):
        sim = Simulator(robot, 1e-3, batch, contacts=contacts, threads=threads)
        q = np.tile(robot.neutral(), (batch, 1))
        q[:, 2] = 0.1 + 0.01 * np.arange(batch)
        sim.reset(q)
        sim.rollout(efforts[:, :batch])
        ends.append((sim.q[:5], sim.qd[:5], sim.contact_forces[:5]))
    single = Simulator(robot, 1e-3, contacts=contacts)
    q = robot.neutral()
    q[2] = 0.1
    single.reset(q)
    for each in efforts[:, 0]:
        single.step(each)
    for end in ends:
        for each, first in zip(end, ends[0], strict=True):
            np.testing.assert_array_equal(each, first)
        np.testing.assert_array_equal(end[0][0], single.q)
    assert np.abs(ends[0][2]).max() > 0.0
    assert np.abs(robot.kernel("loop_state").batch(ends[0][0])[0]).max() < 1e-10


def test_checkpoint_restores_contacts():
    sim = box_on_slope(0.3, 0.5)
    sim.step(steps=20)
    kept = sim.checkpoint()
    sim.step(steps=20)
    end = sim.q
    sim.restore(kept)
    sim.step(steps=20)
    np.testing.assert_array_equal(sim.q, end)


def test_bad_contacts_are_explained():
    robot = body()
    with pytest.raises(InputError, match="no link that moves"):
        Simulator(robot, contacts=[Sphere("none", 0.1)])
    with pytest.raises(InputError, match="friction"):
        Simulator(robot, contacts=[Sphere("body", 0.1, friction=-1.0)])
    with pytest.raises(InputError, match="restitution"):
        Simulator(robot, contacts=[Sphere("body", 0.1, restitution=2.0)])
    with pytest.raises(InputError, match="euler"):
        Simulator(robot, contacts=[Point("body")], integrator="rk4")
    with pytest.raises(InputError, match="normal"):
        Simulator(robot, contacts=[Point("body")], ground=Plane((0, 0, 0)))
    with pytest.raises(InputError, match="heights"):
        Simulator(robot, contacts=[Point("body")], ground=HeightField([[0.0]], (1, 1)))
    with pytest.raises(InputError, match="at most"):
        Simulator(robot, contacts=[Box("body", (1, 1, 1))] * 9)
