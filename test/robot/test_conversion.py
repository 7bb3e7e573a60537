"""Conversion between joints: power, round trips, and what cannot be converted."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from reference_data import SHARED_ROBOTS, shared_robot

from rbda_ros import ClosureError, InputError, Robot, load_robot
from rbda_ros.demo.resources import share_file

STATES = 1000
WELL = 0.1
"""How well y, and the other joints, determine the rest from which on a state is looked at."""
AWAY = {"four_bar": 0.8, "tello_leg": 0.5}
"""Two branches meet at the assembly: parallelograms lie flat there, Tello's legs are straight."""
SLOW = {"rotors"}
"""A rotor on the floating base: quaternions in a loop, which is closed by a search, one by one."""
SEVERAL = {"ball_joint_loop", "planar_joint_loop"}
"""Their independent joints have several coordinates, which have no single position."""
LEG_URDF = share_file("config/robots/demo_leg.urdf")
LEG_LOOPS = share_file("config/robots/demo_leg_loops.yaml")


@functools.cache
def leg() -> Robot:
    return load_robot(LEG_URDF, LEG_LOOPS)


def other_joints(robot: Robot) -> tuple[str, ...] | None:
    """Joints in the place of y that determine it: of each cluster those that are not y."""
    chosen: list[str] = []
    for cluster in robot.clusters:
        names = [n for n in cluster.joints if n in robot.joint_names]
        dependent = [n for n in names if n not in cluster.independent_joints]
        for joints in (dependent, names):
            try:
                rest = [n for n in robot.independent_joint_names if n not in names]
                found = robot.determining_joints([*rest, *joints])
            except InputError:
                continue
            chosen += [name for name in found if name in names]
            break
        else:
            return None
    return tuple(chosen)


def positions(robot: Robot, joints, q: np.ndarray) -> dict[str, np.ndarray]:
    place = robot.coordinates.scalar_positions
    return {name: q[..., place[name]] for name in joints}


@functools.cache
def random_positions(robot: Robot, states: int = STATES, away: float = 0.0) -> np.ndarray:
    """Closed positions (states, nq), each of y drawn by itself, in no order.

    They are about the assembly, or away from it where two branches meet there; as far as no dead
    point is among them that takes the motors onto another branch: where one goes through it, a
    motor's position has two poses, and a round trip may end at the other. Nearly singular ones,
    where digits are lost, are left out.
    """
    rng = np.random.default_rng(0)
    home = robot.independent_position(robot.tree.home)
    drawn = rng.uniform(-1.0, 1.0, (states + states // 10, home.size))
    drawn[:, : robot.coordinates.base_nq] = 0.0
    home[robot.coordinates.base_nq :] += away
    there = [robot.coordinates.velocities[name].start for name in other_joints(robot)]
    for size in (0.2, 0.06, 0.02):
        try:
            q = robot.close(home + size * drawn)
            robot.state(q)
        except (ClosureError, InputError):
            continue
        G = robot.kernel("velocity_map").batch(q)[0].reshape(len(q), robot.nv, robot.ny)
        W = G[:, there, robot.coordinates.base_nv :]
        W = W / np.median(np.linalg.norm(W, axis=2, keepdims=True), axis=0)
        of_y = robot.kernel("loop_state").batch(q)[1].min(axis=1, initial=1.0)
        well = (np.linalg.svd(W, compute_uv=False)[:, -1] > WELL) & (of_y > WELL / 10.0)
        same = len(set(np.sign(np.linalg.det(W)))) == 1
        if well.sum() >= states and same:
            return q[np.flatnonzero(well)[:states]]
    raise AssertionError("no states without dead points found")


def check_round_trip(robot: Robot, states: int = STATES, away: float = 0.0) -> None:
    """Motion and efforts of y to other joints and back, power the same, in random states."""
    here, there = robot.independent_joint_names, other_joints(robot)
    rng, q = np.random.default_rng(1), random_positions(robot, states, away)
    at = positions(robot, here, q)
    rates = [{name: rng.normal(size=len(q)) for name in here} for _ in range(3)]
    out = robot.convert(at, *rates, targets=there, guess=q[0])
    np.testing.assert_allclose(out.q, q, atol=1e-5)  # the same branch

    power = sum(rates[0][name] * rates[2][name] for name in here)
    size = sum(np.abs(rates[0][name] * rates[2][name]) for name in here)
    size = np.maximum(size, np.abs(out.velocity * out.effort).sum(axis=1))
    assert (np.abs((out.velocity * out.effort).sum(axis=1) - power) <= 1e-12 * size).all()

    arrays = (out.position, out.velocity, out.acceleration, out.effort)
    given = (dict(zip(there, array.T, strict=True)) for array in arrays)
    back = robot.convert(*given, targets=here, guess=q[0])
    arrays = (back.position, back.velocity, back.acceleration, back.effort)
    for array, wanted in zip(arrays, (at, *rates), strict=True):
        np.testing.assert_allclose(
            array, np.stack([wanted[name] for name in here], axis=1), rtol=1e-10, atol=1e-10
        )


@pytest.mark.parametrize("name", SHARED_ROBOTS)
def test_power_and_round_trips_of_shared_robots(name):
    away = AWAY["four_bar"] if name.startswith("four_bar") else 0.0
    check_round_trip(load_robot(shared_robot(name)), away=away)


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - SEVERAL))
def test_power_and_round_trips_of_mechanisms(name):
    states = STATES // 20 if name in SLOW else STATES // 5
    check_round_trip(MECHANISMS[name].load(), states, AWAY["tello_leg"] * (name == "tello_leg"))


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - SEVERAL))
def test_power_and_round_trips_in_all_states(name):
    check_round_trip(MECHANISMS[name].load(), away=AWAY["tello_leg"] * (name == "tello_leg"))


def test_power_and_round_trips_of_the_demo_leg():
    check_round_trip(leg())


@pytest.mark.parametrize("name", MECHANISMS)
def test_motion_and_efforts_equal_a_dense_solve(name):
    """Against G of Pinocchio's spanning tree and a pseudo-inverse."""
    robot, _, states = mechanism_states(name)
    single = robot.coordinates.scalar_positions
    if not set(robot.independent_joint_names) <= set(single):
        with pytest.raises(InputError):
            robot.convert(dict.fromkeys(single, 0.0), targets=["ball"])
        return
    names = [robot.tree.velocity_names.index(n) for n in robot.actuated_joint_names]
    rng = np.random.default_rng(3)
    for s in states[:5]:
        at = positions(robot, robot.independent_joint_names, s.q)
        base = robot.coordinates.base_nv
        yd = np.concatenate([np.zeros(base), rng.normal(size=robot.ny - base)])
        wanted = rng.normal(size=len(names))
        effort = dict(zip(robot.actuated_joint_names, wanted, strict=True))
        velocity = dict(zip(robot.independent_joint_names, yd[base:], strict=True))
        out = robot.convert(at, velocity, None, effort, guess=s.q)
        place = [robot.coordinates.velocities[n].start for n in out.joint_names]
        np.testing.assert_allclose(out.velocity, (s.G @ yd)[place], rtol=1e-9, atol=1e-9)
        on_joints = np.zeros(robot.nv)
        on_joints[place] = out.effort
        W = s.G[names]
        smallest = np.linalg.pinv(W.T, rcond=1e-9) @ (W.T @ wanted)
        np.testing.assert_allclose(on_joints[names], smallest, rtol=1e-8, atol=1e-9)
        assert not np.delete(on_joints, names).any()


def test_a_batch_is_as_one_after_the_other():
    robot = leg()
    q = random_positions(robot)[:20]
    motors = robot.actuated_joint_names
    rng = np.random.default_rng(4)
    rates = [{name: rng.normal(size=len(q)) for name in motors} for _ in range(3)]
    batch = robot.convert(positions(robot, motors, q), *rates, guess=q[0])
    for k in range(len(q)):
        one = robot.convert(
            positions(robot, motors, q[k]),
            *({name: column[k] for name, column in rate.items()} for rate in rates),
            guess=q[k],
        )
        for field in ("position", "velocity", "acceleration", "effort"):
            np.testing.assert_allclose(
                getattr(batch, field)[k], getattr(one, field), rtol=1e-9, atol=1e-9
            )


def test_a_gear_turns_by_hand():
    """Rotor turns = 9 times the hip's; its effort a ninth."""
    at = {"hip_abduction": 0.1, "hip_flexion": 0.2, "knee": 0.9, "ankle": 0.1}
    out = leg().convert(at, at, at, {"hip_abduction": 18.0}, targets=["hip_abduction_rotor"])
    assert out.position == pytest.approx([0.9])
    assert out.velocity == pytest.approx([0.9])
    assert out.acceleration == pytest.approx([0.9])
    assert out.effort == pytest.approx([2.0])


def test_nothing_given_is_rest():
    at = {"hip_abduction": 0.1, "hip_flexion": 0.2, "knee": 0.9, "ankle": 0.1}
    out = leg().convert(at)
    assert out.joint_names == leg().joint_names
    assert not out.velocity.any()
    assert not out.acceleration.any()
    assert not out.effort.any()


AT = {"hip_abduction": 0.1, "hip_flexion": 0.2, "knee": 0.9, "ankle": 0.1}


@pytest.mark.parametrize(
    ("arguments", "targets", "says"),
    [
        (({"hip_abduction": 0.1},), None, "hip_flexion"),
        (({**AT, "kne": 0.1},), None, "no moving joint kne"),
        (({**AT, "knee": np.nan},), None, "finite"),
        (({**AT, "knee": [0.8, np.nan]},), None, "knee is not finite"),
        ((AT, {"knee": 1.0}), None, "hip_abduction"),
        ((AT, AT, AT, {"knee": np.inf}), None, "not finite"),
        ((AT, None, None, {"kne": 1.0}), None, "no moving joint kne"),
        ((AT, None, None, {"knee": 1.0}), ["hip_flexion_rotor"], "cannot give the force on"),
        ((AT,), ["knee", "knee"], "name each once"),
        ((AT,), ["heel"], "no moving joint heel"),
        ((AT, None, None, [1.0]), None, "does not map joints"),
    ],
)
def test_mistakes_are_named(arguments, targets, says):
    with pytest.raises(InputError, match=says):
        leg().convert(*arguments, targets=targets)


def test_motors_that_do_not_determine_the_joints():
    """A leg with one motor less: its own names are in the error."""
    text = LEG_LOOPS.read_text().replace(", ankle_pulley_rotor]", "]")
    robot = load_robot(LEG_URDF, text)
    with pytest.raises(InputError, match=r"do not determine.*ankle"):
        robot.convert(dict.fromkeys(robot.actuated_joint_names, 0.1))
    with pytest.raises(InputError, match="cannot give the force on"):
        robot.convert(AT, effort={"ankle": 1.0})


def test_a_ball_joint_may_be_given_beside_the_motors():
    robot = MECHANISMS["parallel_ankle"].load()
    motors = {"left_motor": 0.2, "right_motor": -0.1}
    q = robot.close(motors)
    ball = q[list(robot.coordinates.positions["left_ball"])]
    for given in (motors | {"left_ball": ball}, {"left_ball": ball} | motors):
        np.testing.assert_allclose(robot.close(given), q, atol=1e-9)
