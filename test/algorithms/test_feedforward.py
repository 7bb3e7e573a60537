"""The feedforward program against Pinocchio's spanning tree and the loop oracle's G and g."""

from pathlib import Path

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import assert_close

from rbda_ros import ClosureError, InputError, SingularityError, load_robot
from rbda_ros.errors import FarError

ALL = ("gravity", "coriolis", "inertial")
# The ball's spin is determined by no joint of one coordinate.
MEASURABLE = [name for name in MECHANISMS if name != "ball_joint_loop"]


def places(robot):
    """Of each joint of one coordinate: its entries in q and in qd."""
    found, iq, iv = {}, 0, 0
    for body in robot.tree.spanning.bodies:
        if body.model.nq == body.model.nv == 1:
            found[body.joint.name] = iq, iv
        iq, iv = iq + body.model.nq, iv + body.model.nv
    return found


def measure(call, robot, s, ydd, qdd=None):
    """Fill in what is measured at a state; accelerations of y, or of the joints they are for."""
    where, base = places(robot), 6 if robot.floating_base else 0
    call.position[:] = [s.q[where[name][0]] for name in call.joints]
    call.velocity[:] = [s.qd[where[name][1]] for name in call.joints]
    call.base_position[:], call.base_twist[:] = s.q[: len(call.base_position)], s.qd[:base]
    call.base_acceleration[:] = ydd[:base]
    wanted = ydd[base:] if qdd is None else [qdd[where[n][1]] for n in call.acceleration_joints]
    call.acceleration[:] = wanted


def measurable(robot, s, rng):
    """Joints of one coordinate, in an order in which the independent ones are not preferred."""
    names = list(places(robot))
    chosen, rows = [], list(range(6 if robot.floating_base else 0))
    for name in rng.permutation(names).tolist():
        more = [*rows, places(robot)[name][1]]
        if np.linalg.matrix_rank(s.G[more], tol=5e-2) == len(more):
            chosen, rows = [*chosen, name], more
    assert len(rows) == robot.ny
    return chosen


@pytest.mark.parametrize("name", MEASURABLE)
def test_equals_pinocchio_on_the_loops(name):
    robot, oracle, states = mechanism_states(name)
    rng = np.random.default_rng(4)
    joints = measurable(robot, states[0], rng)
    call = robot.feedforward(joints, joints)
    for s in states[:4]:
        ydd = rng.normal(size=robot.ny)
        qdd = s.G @ ydd + s.g
        call.forget()
        measure(call, robot, s, ydd, qdd)
        try:
            call()
        except (SingularityError, ClosureError):
            continue  # of these joints here, or beyond it on the way from the assembly
        if np.abs(call.q - s.q).max() > 1e-6:
            continue  # they have two positions there, and the assembly leads to the other
        tau = s.G.T @ oracle.rnea(s.q, s.qd, qdd)
        assert_close(call.efforts, robot.actuator_efforts(s.q, tau), 1e-7)
        break
    else:
        raise AssertionError("no state could be compared")


@pytest.mark.parametrize("name", ["four_bar", "rotors", "planar_joint_loop"])
def test_terms_are_what_pinocchio_gives_them(name):
    robot, oracle, states = mechanism_states(name)
    rng = np.random.default_rng(5)
    joints = measurable(robot, states[0], rng)
    for s in states[:2]:
        ydd, still = rng.normal(size=robot.ny), np.zeros(robot.nv)
        gravity = oracle.rnea(s.q, still, still)
        expected = {
            "gravity": gravity,
            "coriolis": oracle.rnea(s.q, s.qd, s.g) - gravity,
            "inertial": oracle.mass_matrix(s.q) @ (s.G @ ydd),
        }
        for terms in [("gravity",), ("coriolis",), ("inertial",), ("gravity", "inertial"), ALL]:
            call = robot.feedforward(joints, terms=terms)
            measure(call, robot, s, ydd)
            call()
            tau = s.G.T @ sum(expected[term] for term in terms)
            assert_close(call.efforts, robot.actuator_efforts(s.q, tau), 1e-7)


@pytest.fixture(scope="module")
def geared():
    """A four-bar with friction, driven through a gear."""
    urdf = MECHANISMS["geared_four_bar"].urdf.read_text()
    friction = '<dynamics damping="0.3" friction="0.2"/></joint>'
    return load_robot(urdf.replace("</joint>", friction), MECHANISMS["geared_four_bar"].loops)


def motion(robot, crank=0.9):
    """Near the assembly: farther away, a rocker position has a second crank position."""
    q = robot.close({"crank": crank})
    qd = robot.spanning_velocity(q, [1.5])
    return q, qd, np.array([-2.0])


def test_friction_and_wrenches_as_the_methods_give_them(geared):
    q, qd, ydd = motion(geared)
    wrenches = {"rocker_link": np.arange(1.0, 7.0)}
    call = geared.feedforward(["rocker"], terms=(*ALL, "friction"), wrenches=True)
    call.position[:], call.velocity[:] = (x[geared.joint_names.index("rocker")] for x in (q, qd))
    call.acceleration[:], call.wrenches[:] = ydd, geared.body_wrenches(wrenches)
    call()
    tau = geared.inverse_dynamics(q, qd, ydd, wrenches, friction=True)
    assert_close(call.efforts, geared.actuator_efforts(q, tau), 1e-9)
    assert np.abs(geared.friction_force(q, qd)).max() > 0.1


def test_limits_clip_and_say_so(geared):
    call = geared.feedforward(geared.joint_names)
    assert call.joints == geared.independent_joint_names
    call.position[:], call.velocity[:], call.acceleration[:] = 0.4, 1.5, -2.0
    call()
    free = call.efforts.copy()
    assert call.health.limited == 0
    call.limit[:] = 0.5 * np.abs(free)
    call()
    assert_close(call.efforts, 0.5 * free, 1e-12)
    assert call.health.limited == len(free)


def test_follows_a_crank_all_the_way_round(geared):
    call = geared.feedforward(["crank"])
    for crank in np.linspace(0.0, 2.0 * np.pi, 100):
        call.position[:] = crank
        call()
        assert_close(call.q, geared.close({"crank": crank}, guess=call.q), 1e-9)
        assert call.health.residual < 1e-12


def test_jumps_are_searched_for(geared):
    call = geared.feedforward(["crank"])
    for crank in (0.0, 2.5, -1.0):
        call.position[:] = crank
        call()
        assert call.health.residual < 1e-9


def test_searches_only_where_it_may():
    config = Path(__file__).parents[2] / "config" / "robots"
    leg = load_robot(config / "demo_leg.urdf", config / "demo_leg_loops.yaml")
    call = leg.feedforward(leg.independent_joint_names)
    call.searches = False
    call.position[:] = [0.1, 0.3, 0.9, -0.2]
    call()
    call.position[:] = [0.1, 0.3, 0.9, 2.5]  # the linkage cannot go there without being opened
    with pytest.raises(FarError, match="near the last position"):
        call()
    call.start_from(call.find()())
    call()
    assert call.health.residual < 1e-9
    assert_close(call.efforts, leg.actuator_efforts(call.q, leg.gravity_force(call.q)), 1e-9)

    call.position[:] = [0.1, 0.3, 0.9, -1.5]
    search = call.find()
    call.position[:] = 0.0  # the search is for what was there
    with pytest.raises(ClosureError, match="ankle_linkage"):
        search()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["position", "velocity", "acceleration"])
def test_numbers_that_are_not_finite_are_refused_and_forgotten(geared, bad, where):
    call = geared.feedforward(["crank"], terms=("gravity",))
    getattr(call, where)[:] = bad
    with pytest.raises(InputError, match="not finite"):
        call()
    getattr(call, where)[:] = 0.1
    call()
    assert np.isfinite(call.efforts).all()


def test_dead_points_and_open_loops_are_refused():
    four_bar = MECHANISMS["four_bar"]
    text = four_bar.loops.read_text() + "independent_joints: [crank, flag]\n"
    robot = load_robot(four_bar.urdf, text)
    dead = robot.close({"coupler": -0.6, "flag": 0.2}, guess=robot.tree.home)
    rocker = dead[robot.joint_names.index("rocker")]
    call = robot.feedforward(["rocker", "flag"])
    home = robot.tree.home[robot.joint_names.index("rocker")]
    call.max_condition_number = 1e3
    call.position[:] = [rocker + 1e-7 * np.sign(home - rocker), 0.2]
    with pytest.raises(SingularityError, match="condition number"):
        call()
    call.position[:] = [rocker - 0.1 * np.sign(home - rocker), 0.2]
    with pytest.raises(ClosureError, match="pin"):
        call()
    call.position[:] = [home, 0.2]
    call()


def test_what_cannot_be_chosen_is_named(geared):
    with pytest.raises(InputError, match=r"terms: stiction; there are gravity"):
        geared.feedforward(["crank"], terms=("stiction",))
    with pytest.raises(InputError, match="no moving joint elbow"):
        geared.feedforward(["elbow"])
    with pytest.raises(InputError, match=r"joints \(none\) do not determine"):
        geared.feedforward([])
    with pytest.raises(InputError, match=r"joints \(none\) do not determine"):
        geared.feedforward(["crank"], [])
