"""Scenarios of Le Lidec et al., "Contact models in robotics" (arXiv 2304.06372), and its measures.

At every step, from velocities that are computed anew from the motion: how far impulses leave their
cones (primal feasibility), how far corrected velocities leave the dual cones (dual feasibility),
what is left of Signorini's condition, of the maximum dissipation principle, and of the
complementarity of both together.
"""

import numpy as np
import pytest
from contact_oracle import FEET
from contact_oracle import load as load_robot_in_contact
from pinocchio_oracle import assert_close

from rbda_ros import FrictionContact, Robot, load_robot
from rbda_ros.robot.friction_contacts import RECOVERY, FrictionalStep

GRAVITY, DT, HALF = 9.81, 1e-3, 0.1
CORNERS = [(x, y, z) for x in (-HALF, HALF) for y in (-HALF, HALF) for z in (-HALF, HALF)]
BELOW = [corner for corner in CORNERS if corner[2] < 0.0]
CUBE = """<link name="{name}"><inertial><mass value="{mass}"/>
<inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


def cube(name: str, mass: float) -> str:
    return CUBE.format(name=name, mass=mass, i=mass * (2.0 * HALF) ** 2 / 6.0)


def one_cube(mass: float = 1.0) -> Robot:
    return load_robot(f'<robot name="cube">{cube("cube", mass)}</robot>', floating_base=True)


def measures(robot, q, step: FrictionalStep, contacts, gaps, dt=DT) -> dict[str, float]:
    """The paper's error measures of a step with rigid contacts [N s, m/s, J]."""
    worst = dict.fromkeys(("primal", "dual", "signorini", "dissipation", "complementarity"), 0.0)
    for c, (contact, gap) in enumerate(zip(contacts, gaps, strict=True)):
        J = robot.jacobian(q, (contact.link, contact.xyz))[:3]
        if contact.to is not None:
            point = robot.frame_pose(q, (contact.link, contact.xyz))[:3, 3]
            other = robot.frame_pose(q, contact.to)
            J = J - robot.jacobian(q, (contact.to, other[:3, :3].T @ (point - other[:3, 3])))[:3]
        p, v, mu = dt * step.forces[c], J @ step.yd, contact.friction  # planes are level here
        v[2] += (gap if gap > 0.0 else RECOVERY * gap) / dt
        slip = np.hypot(v[0], v[1])
        found = {
            "primal": max(np.hypot(p[0], p[1]) - mu * p[2], 0.0),
            "dual": max(-v[2], 0.0),  # |v_t| <= (v_n + mu |v_t|) / mu
            "signorini": abs(p[2] * v[2]),
            "dissipation": abs(p[:2] @ v[:2] + mu * p[2] * slip),
            "complementarity": abs(p @ v + p[2] * mu * slip),
        }
        worst = {name: max(value, found[name]) for name, value in worst.items()}
    return worst


def assert_right(robot, q, step, contacts, gaps, dt=DT) -> None:
    assert np.all(step.converged)
    found = measures(robot, q, step, contacts, gaps, dt)
    assert max(found.values()) <= 1e-8, found


@pytest.mark.parametrize("friction", [0.0, 0.4, 0.9])
def test_dragged_cube(friction):
    """A force that rises: the cube sticks to the last Newton, then slides and never lifts off."""
    robot, contacts = one_cube(), [FrictionContact("cube", c, friction=friction) for c in BELOW]
    q, yd = np.array([0.0, 0, HALF, 0, 0, 0, 1]), np.zeros(6)
    for pull in np.linspace(0.0, 2 * 0.9 * GRAVITY, 60):
        tau = np.array([0.0, pull, 0.0, 0.0, 0.0, 0.0])
        step = robot.frictional_step(q, yd, tau, contacts, DT)
        assert_right(robot, q, step, contacts, [0.0] * 4)
        expected = max(pull - friction * GRAVITY, 0.0)
        if yd[1] > 0.0:
            expected = max(pull - friction * GRAVITY, -yd[1] / DT)
        assert_close(step.ydd, np.array([0.0, expected, 0, 0, 0, 0]), 1e-8, size=GRAVITY)
        yd = step.yd


def test_sliding_cube_stops_where_it_must_and_refinement_shows_the_order():
    """Self-consistency: steps of half the length leave half the error."""
    friction, errors = 0.4, []
    contacts = [FrictionContact("cube", c, friction=friction) for c in BELOW]
    for dt in (4e-3, 2e-3, 1e-3):
        robot = one_cube()
        q, yd = np.array([0.0, 0, HALF, 0, 0, 0, 1]), np.array([0.0, 1.0, 0, 0, 0, 0])
        while np.abs(yd).max() > 1e-9:
            step = robot.frictional_step(q, yd, np.zeros(6), contacts, dt)
            assert_right(robot, q, step, contacts, [0.0] * 4, dt)
            assert yd @ robot.mass_matrix(q) @ yd >= step.yd @ robot.mass_matrix(q) @ step.yd
            q, yd = robot.integrate(q, step.yd, dt), step.yd
        errors.append(abs(q[1] - 1.0 / (2.0 * friction * GRAVITY)))
    assert errors[0] < 3e-3
    assert errors[1] / errors[0] == pytest.approx(0.5, abs=0.1)
    assert errors[2] / errors[1] == pytest.approx(0.5, abs=0.1)


def test_a_dropped_cube_comes_to_rest_and_never_gains_energy():
    robot, dt = one_cube(), 2e-3
    contacts = [FrictionContact("cube", corner, friction=0.4) for corner in CORNERS]
    turn = np.random.default_rng(5).normal(size=4)
    q = np.concatenate([[0.0, 0.0, 2.5 * HALF], turn / np.linalg.norm(turn)])
    yd, before = np.zeros(6), np.inf
    for _ in range(500):
        pose = robot.frame_pose(q, "cube")
        gaps = (np.array(CORNERS) @ pose[:3, :3].T + pose[:3, 3])[:, 2]
        step = robot.frictional_step(q, yd, np.zeros(6), contacts, dt, distances=gaps)
        assert_right(robot, q, step, contacts, gaps, dt)
        q, yd = robot.integrate(q, step.yd, dt), step.yd
        kinetic, potential = robot.energy(q, yd)
        # A penetration is taken back in the next steps: some micrometres of lift.
        assert kinetic + potential <= before + 2e-3
        before = kinetic + potential
    assert np.abs(yd).max() < 1e-6
    assert q[2] == pytest.approx(HALF, abs=1e-3)


def two_cubes(light: float, heavy: float) -> Robot:
    joints = "".join(
        f'<joint name="{name}_free" type="floating"><parent link="ground"/><child link="{name}"/>'
        "</joint>"
        for name in ("light", "heavy")
    )
    bodies = f'<link name="ground"/>{cube("light", light)}{cube("heavy", heavy)}'
    return load_robot(f'<robot name="cubes">{bodies}{joints}</robot>')


@pytest.mark.parametrize("drag", [0.0, 0.5, 1.5], ids=["rests", "sticks", "slides"])
@pytest.mark.parametrize("ratio", [1.0, 1e3, 1e6])
def test_a_heavy_cube_on_a_light_one(ratio, drag):
    """Ill-conditioned: masses 1e-3 and 1e3 kg at the most; dragged at the light one."""
    light, heavy = ratio**-0.5, ratio**0.5
    robot, mu_ground, mu_between = two_cubes(light, heavy), 0.5, 0.95
    below = [FrictionContact("light", c, friction=mu_ground) for c in BELOW]
    between = [FrictionContact("heavy", c, friction=mu_between, to="light") for c in BELOW]
    q = np.array([0.0, 0, HALF, 0, 0, 0, 1, 0, 0, 3 * HALF, 0, 0, 0, 1])
    weight = (light + heavy) * GRAVITY
    tau = np.zeros(12)
    tau[1] = drag * mu_ground * weight
    contacts = [*below, *between]
    step = robot.frictional_step(q, np.zeros(12), tau, contacts, DT)
    assert_right(robot, q, step, contacts, [0.0] * 8)
    assert_close(step.forces[:4, 2].sum(), np.array(weight), 1e-7)
    assert_close(step.forces[4:, 2].sum(), np.array(heavy * GRAVITY), 1e-7)
    # Both move alike: the upper one would slip at a greater acceleration than it has.
    expected = max(drag - 1.0, 0.0) * mu_ground * GRAVITY
    assert_close(step.ydd[[1, 7]], np.array([expected, expected]), 1e-6, size=GRAVITY)


def test_a_standing_quadruped_holds_still_under_gains():
    """Solo on four feet that the motors squeeze together: internal forces, nothing moves."""
    robot = load_robot_in_contact("solo12")
    contacts = [FrictionContact(foot, friction=0.9) for foot in FEET["solo12"]]
    names = robot.independent_joint_names
    y = np.zeros(robot.nq)
    y[6] = 1.0
    for joint, name in enumerate(names[-12:]):
        y[7 + joint] = {"HFE": 0.8, "KFE": -1.6}.get(name[-3:], 0.1) * (-1) ** name.startswith("H")
    q, yd, step = y, np.zeros(robot.ny), None
    heights = [robot.frame_pose(q, foot)[2, 3] for foot in FEET["solo12"]]
    q[2] -= min(heights)
    hold, squeeze = q[7:].copy(), 0.2 * np.random.default_rng(1).normal(size=12)
    for _ in range(400):
        gaps = [robot.frame_pose(q, foot)[2, 3] for foot in FEET["solo12"]]
        tau = np.concatenate([np.zeros(6), 8.0 * (hold - q[7:]) - 0.2 * yd[6:] + squeeze])
        options = {"distances": gaps, "warm_start": step, "joint_limits": False}
        step = robot.frictional_step(q, yd, tau, contacts, DT, **options)
        assert_right(robot, q, step, contacts, gaps)
        q, yd = robot.integrate(q, step.yd, DT), step.yd
    weight = robot.mass * GRAVITY
    assert_close(step.forces.sum(axis=0), np.array([0.0, 0.0, weight]), 0.05, size=weight)
    assert np.abs(step.forces[:, :2]).max() > 0.01 * weight  # internal forces
