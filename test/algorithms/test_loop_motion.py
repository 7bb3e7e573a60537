"""The loops of a whole robot: explicit form, residual, and what happens at a dead point."""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
import yaml
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import assert_close

from rbda_ros import ClosureError, InputError, SingularityError, load_robot
from rbda_ros.algorithms.loop_motion import loop_health

FOUR_BAR = MECHANISMS["four_bar"]
COUPLER_STRETCHED = -0.6
"""The coupler's position with crank and coupler in one line, by the 0.6 rad of its origin."""


@pytest.mark.parametrize("name", MECHANISMS)
def test_explicit_form_satisfies_the_implicit_one(name):
    robot, oracle, states = mechanism_states(name)
    rng = np.random.default_rng(1)
    for s in states:
        ydd = rng.normal(size=robot.ny)
        K, k = oracle.K(s.q), oracle.k(s.q, s.qd)
        size = np.abs(K).max(initial=1.0) * np.abs(s.qd).max(initial=1.0)
        assert np.abs(K @ s.qd).max(initial=0.0) < 1e-12 * size
        qdd = robot.spanning_acceleration(s.q, s.qd, ydd)
        assert_close(K @ qdd, k, 1e-10, size=np.abs(K).max(initial=1.0) * np.abs(qdd).max())
        assert_close(s.qd, s.G @ s.yd, 1e-11)
        assert_close(qdd, s.G @ ydd + s.g, 1e-10)
        assert np.array_equal(s.qd[list(robot.tree.independent)], s.yd)


@pytest.mark.parametrize("name", MECHANISMS)
def test_residual_is_zero_on_the_loops_and_not_off_them(name):
    robot, _, states = mechanism_states(name)
    kernel = robot.kernel("loop_state")
    dependent = [j for j in range(robot.nv) if j not in robot.tree.independent]
    for s in states[:3]:
        phi, conditioning = kernel.call(s.q)
        assert np.abs(phi).max() < 1e-9
        assert np.all((conditioning > 1e-3) & (conditioning <= 1.0 + 1e-12))
        step = np.zeros(robot.nv)
        step[dependent[0]] = 1e-3
        off, _ = kernel.call(robot.tree.integrate(s.q, step))
        assert np.abs(off).max() > 1e-6


@pytest.mark.parametrize("name", MECHANISMS)
def test_health_of_a_position(name):
    """Off the loops too, where there is a residual to see."""
    robot, _, states = mechanism_states(name)
    symbols = ca.SX.sym("q", robot.nq), ca.SX.sym("guess", robot.nq)
    function = ca.Function("health", symbols, [loop_health(robot.tree, *symbols)])
    rng = np.random.default_rng(3)
    for s in states[:3]:
        q, guess = robot.tree.integrate(s.q, rng.normal(size=robot.nv)), s.q
        phi, conditioning = robot.kernel("loop_state").call(q)
        expected = [
            np.abs(q - guess)[robot.tree.curved].max(initial=0.0),
            np.linalg.norm(phi),
            conditioning.min(initial=1.0),
        ]
        health = np.array(function(q, guess)).ravel()
        np.testing.assert_allclose(health, expected, rtol=1e-12, atol=1e-14)


def driven_by_the_rocker():
    """The four-bar with the rocker for y: dead where crank and coupler are in one line."""
    text = FOUR_BAR.loops.read_text() + "independent_joints: [rocker, flag]\n"
    return load_robot(FOUR_BAR.urdf, text)


def driven_by_the_crank():
    """The same four-bar, which as a crank-rocker has no dead point."""
    text = FOUR_BAR.loops.read_text() + "independent_joints: [crank, flag]\n"
    return load_robot(FOUR_BAR.urdf, text)


def beside_the_dead_point(robot, s):
    """Closed q with the coupler turned by s from the line of crank and coupler."""
    near = robot.close({"crank": 1.5, "flag": 0.2})
    return robot.close({"coupler": COUPLER_STRETCHED + s, "flag": 0.2}, guess=near)


def test_walk_through_a_dead_point():
    by_rocker, by_crank = driven_by_the_rocker(), driven_by_the_crank()
    rng = np.random.default_rng(2)
    crank = by_rocker.tree.velocity_names.index("crank")
    gearings = []
    for s in np.concatenate([np.linspace(-0.2, 0.2, 41), 10.0 ** np.arange(-7.0, -1.0)]):
        q = beside_the_dead_point(by_crank, s)
        order = [by_crank.joint_names.index(name) for name in by_rocker.joint_names]
        q = q[order]
        if abs(s) < 1e-10:
            with pytest.raises(SingularityError, match="loop pin is at a dead point"):
                by_rocker.forward_dynamics(q, np.zeros(2), np.ones(2))
            continue
        gearing = by_rocker.spanning_velocity(q, [1.0, 0.0])[crank]
        gearings.append(abs(gearing) * abs(s))
        yd, tau = rng.normal(size=(2, 2))
        ydd = by_rocker.forward_dynamics(q, yd, tau)
        assert np.isfinite(ydd).all()
        assert np.isfinite(by_rocker.inverse_dynamics(q, yd, ydd)).all()
        if abs(s) > 1e-4:  # the same motion, with coordinates that are regular there
            qd = by_rocker.spanning_velocity(q, yd)
            qdd = by_rocker.spanning_acceleration(q, yd, ydd)
            back = np.argsort(order)
            spanning_tau = np.zeros(by_rocker.nv)
            spanning_tau[list(by_rocker.tree.independent)] = tau
            expected = by_crank.forward_dynamics(q[back], qd[back], spanning_tau[back])
            mine = qdd[back][list(by_crank.tree.independent)]
            assert_close(mine, expected, 1e-13 / s**2)
    # The crank turns ever faster, as 1/s, and does not stop doing so before the dead point.
    assert max(gearings) / min(gearings) < 2.0


def test_every_method_refuses_a_dead_point():
    robot = driven_by_the_rocker()
    q = robot.close({"coupler": COUPLER_STRETCHED, "flag": 0.2}, guess=robot.tree.home)
    x = np.ones(robot.ny)
    calls = [
        lambda: robot.inverse_dynamics(q, x, x),
        lambda: robot.forward_dynamics(q, x, x),
        lambda: robot.actuator_efforts(q, x),
        lambda: robot.generalized_force(q, np.ones(robot.nv)),
        lambda: robot.spanning_velocity(q, x),
        lambda: robot.spanning_acceleration(q, x, x),
        lambda: robot.mass_matrix(q),
        lambda: robot.bias_force(q, x),
        lambda: robot.gravity_force(q),
        lambda: robot.friction_force(q, x),
        lambda: robot.jacobian(q, "crank_link"),
        lambda: robot.frame_bias_acceleration(q, x, "crank_link"),
        lambda: robot.operational_space_inertia(q, "crank_link"),
        lambda: robot.inverse_dynamics_derivatives(q, x, x),
        lambda: robot.forward_dynamics_derivatives(q, x, x),
        lambda: robot.mass_matrix(np.array([robot.tree.home, q])),
    ]
    for call in calls:
        with pytest.raises(SingularityError, match="pin"):
            call()


def test_the_right_loop_is_named():
    chained = MECHANISMS["chained_loops"]
    text = chained.loops.read_text() + "independent_joints: [crank, far_rocker]\n"
    robot = load_robot(chained.urdf, text)
    q = robot.close({"crank": 1.0, "far_coupler": COUPLER_STRETCHED}, guess=robot.tree.home)
    with pytest.raises(SingularityError, match="loop far_pin is at a dead point"):
        robot.mass_matrix(q)


def test_beyond_the_dead_point_there_is_no_position():
    robot = driven_by_the_rocker()
    q = robot.close({"coupler": COUPLER_STRETCHED, "flag": 0.2}, guess=robot.tree.home)
    furthest = q[robot.joint_names.index("rocker")]
    home = robot.tree.home[robot.joint_names.index("rocker")]
    beyond = furthest + 0.05 * np.sign(furthest - home)
    with pytest.raises(ClosureError, match="pin"):
        robot.mass_matrix([beyond, 0.2])


def determining_sets(robot, s, rng, count=2):
    """Joints that determine the rest at s, by a full-rank choice of rows of the oracle's G."""
    base = 6 if robot.floating_base else 0
    names, place = [], base
    for body in robot.tree.spanning.bodies[1 if base else 0 :]:
        names.append((body.joint.name, range(place, place + body.model.nv)))
        place += body.model.nv
    found = []
    for _ in range(count):
        rows, joints = list(range(base)), {}
        for k in rng.permutation(len(names)):
            name, columns = names[k]
            more = [*rows, *columns]
            if np.linalg.matrix_rank(s.G[more], tol=1e-2) > len(rows):
                rows, joints = more, joints | {name: columns}
            if np.linalg.matrix_rank(s.G[rows], tol=1e-2) == robot.ny:
                found.append(joints)
                break
    return found


@pytest.mark.parametrize("name", MECHANISMS)
def test_any_joints_that_determine_the_others_give_the_motion(name):
    robot, _, states = mechanism_states(name)
    rng = np.random.default_rng(3)
    base = 6 if robot.floating_base else 0
    sets = 0
    for s in states[:2]:
        ydd = rng.normal(size=robot.ny)
        qd, qdd = s.G @ s.yd, s.G @ ydd + s.g  # of the oracle
        for joints in determining_sets(robot, s, rng):
            sets += 1
            velocities = {joint: qd[list(place)] for joint, place in joints.items()}
            yd = robot.independent_velocity(s.q, velocities, qd[:6] if base else None)
            assert_close(yd, s.yd, 1e-9)
            accelerations = {joint: qdd[list(place)] for joint, place in joints.items()}
            got = robot.independent_acceleration(s.q, yd, accelerations, qdd[:6] if base else None)
            assert_close(got, ydd, 1e-8)
    assert sets


def test_known_rates_in_batches():
    robot, _, states = mechanism_states("geared_four_bar")
    q = np.array([s.q for s in states])
    qd = np.array([s.qd for s in states])
    rocker, twists = qd[:, robot.tree.velocity_names.index("rocker")], qd[:, :6]
    yd = robot.independent_velocity(q, {"rocker": rocker}, twists)
    assert_close(yd, np.array([s.yd for s in states]), 1e-9)
    one = robot.independent_velocity(q[0], {"rocker": rocker[0]}, twists[0])
    assert_close(yd[0], one, 1e-14)


def test_independent_joints_go_before_others_that_are_given_too():
    robot = driven_by_the_crank()
    q = robot.close({"crank": 1.0, "flag": 0.2})
    measured = {"crank": 2.0, "coupler": 99.0, "rocker": -99.0, "flag": 3.0}
    assert robot.independent_velocity(q, measured).tolist() == [2.0, 3.0]
    assert robot.independent_acceleration(q, [2.0, 3.0], measured).tolist() == [2.0, 3.0]


def test_joints_that_do_not_determine_the_others_are_named():
    robot = driven_by_the_crank()
    q = robot.close({"crank": 1.0, "flag": 0.2})
    with pytest.raises(InputError, match="no velocity for flag"):
        robot.independent_velocity(q, {"crank": 1.0})
    with pytest.raises(InputError, match=r"joints \(none\) do not determine crank, coupler"):
        robot.independent_acceleration(q, [1.0, 0.0], {"flag": 1.0})
    with pytest.raises(InputError, match="no moving joint elbow"):
        robot.independent_velocity(q, {"crank": 1.0, "flag": 1.0, "elbow": 1.0})
    with pytest.raises(InputError, match=r"velocity of crank.* is not finite"):
        robot.independent_velocity(q, {"crank": np.nan, "flag": 1.0})
    with pytest.raises(InputError, match="no floating base"):
        robot.independent_velocity(q, {"crank": 1.0, "flag": 1.0}, np.zeros(6))


def test_given_joints_at_their_dead_point_are_refused():
    robot = driven_by_the_crank()
    q = robot.close({"coupler": COUPLER_STRETCHED, "flag": 0.2}, guess=robot.tree.home)
    with pytest.raises(SingularityError, match=r"loop pin .* its given joints"):
        robot.independent_velocity(q, {"rocker": 1.0, "flag": 0.0})


def test_a_row_that_vanishes_is_a_dead_point():
    """A piston drives its crank; where both are in line, no joint of the loop's row moves it."""
    folder = Path(__file__).parents[2] / "docs" / "cookbook"
    loops = yaml.safe_load((folder / "slider_crank.yaml").read_text())
    loops |= {"independent_joints": ["piston"]}
    robot = load_robot(folder / "slider_crank.urdf", loops)
    kernel = robot.kernel("loop_state")
    seen = []
    for crank in (0.8, 1e-2, 1e-4, 1e-6):
        q = robot.close({"crank": crank}, robot.tree.home)
        (conditioning,) = kernel.call(q)[1]
        G = np.abs(np.array(ca.DM(robot.tree.clusters[0].velocity_map(ca.DM(q))))).max()
        seen.append(conditioning * float(G))
        assert conditioning < 2.0 * crank
    np.testing.assert_allclose(seen[1:], seen[1], rtol=0.02)  # as lever arms go, so does it
    with pytest.raises(SingularityError, match="dead point"):
        robot.inverse_dynamics(robot.close({"crank": 0.0}, robot.tree.home), [0.0], [1.0])
