"""A state is checked once, and taken by every method in the place of a position."""

import ctypes
import gc
import weakref

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS

from rbda_ros import InputError, Payload, Robot, SingularityError, State
from rbda_ros.cluster_tree.tree import build_cluster_tree


@pytest.mark.parametrize("name", ["four_bar", "tello_leg", "gear"])
def test_methods_give_the_same_for_a_state_as_for_its_position(name):
    robot, _, states = mechanism_states(name)
    link = robot.clusters[-1].links[-1]
    rng = np.random.default_rng(0)
    for given in states[:3]:
        qd, ydd = rng.normal(size=(2, robot.ny))
        state = robot.state(given.q, qd)
        assert state.residual < 1e-6 and 0.0 < state.conditioning <= 1.0
        pairs = [
            (robot.inverse_dynamics(given.q, qd, ydd), robot.inverse_dynamics(state, qd, ydd)),
            (
                robot.inverse_dynamics(given.q, qd, ydd),
                robot.inverse_dynamics(state, state.yd, ydd),
            ),
            (robot.forward_dynamics(given.q, qd, ydd), robot.forward_dynamics(state, qd, ydd)),
            (robot.mass_matrix(given.q), robot.mass_matrix(state)),
            (robot.jacobian(given.q, link), robot.jacobian(state, link)),
            (
                robot.spanning_acceleration(given.q, qd, ydd),
                robot.spanning_acceleration(state, state.yd, ydd),
            ),
        ]
        for of_position, of_state in pairs:
            np.testing.assert_array_equal(of_position, of_state)


def test_a_checked_position_is_not_checked_again():
    robot, _, states = mechanism_states("four_bar")
    state = robot.state(states[0].q)
    calls = []
    checks = robot.kernel("loop_state").native
    signature = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.POINTER(ctypes.c_double)))

    @signature
    def count_and_approve(ports):
        calls.append(1)
        for port, number, size in ((1, 0.0, checks.sizes[1]), (2, 1.0, checks.sizes[2])):
            for k in range(size):
                ports[port][k] = number

    checks.use(ctypes.cast(count_and_approve, ctypes.c_void_p).value, count_and_approve)
    try:
        robot.inverse_dynamics_efforts(state, state.yd, state.yd)
        robot.spanning_velocity(state, state.yd)
        assert not calls
        robot.gravity_force(states[0].q)
        assert calls
    finally:
        checks.withdraw()


def test_states_are_shared_among_loads_and_refused_by_other_robots():
    robot, _, states = mechanism_states("four_bar")
    state = robot.state(states[0].q)
    link = robot.clusters[-1].links[-1]
    loaded = robot.with_payloads({"load": Payload(link, 1.0)})
    np.testing.assert_array_equal(loaded.gravity_force(state), loaded.gravity_force(states[0].q))
    other = Robot(build_cluster_tree(robot.description))
    with pytest.raises(InputError, match="another robot"):
        other.gravity_force(state)


def test_bad_states_are_refused_where_they_are_made():
    robot, _, states = mechanism_states("four_bar")
    with pytest.raises(InputError, match="does not satisfy the loops"):
        robot.state(states[0].q + 0.1 * (np.arange(robot.nq) == robot.coordinates.base_nq + 1))
    with pytest.raises(InputError, match="not finite"):
        robot.state(states[0].q, np.full(robot.ny, np.nan))
    with pytest.raises((InputError, SingularityError)):
        robot.state([])


def test_numbers_of_a_state_stay_as_they_were_checked():
    """A NaN written into a state, or into the velocity that it was made of, came out as a force."""
    robot, _, states = mechanism_states("four_bar")
    given, velocity = states[0].q.copy(), np.ones(robot.ny)
    state = robot.state(given, velocity)
    made = [state, robot.state(state, velocity), robot.state(robot.independent_position(given))]
    made += [robot.state([given, given], velocity), robot.random_state(1)]
    right = robot.bias_force(state, state.yd)
    given[:] = velocity[:] = np.nan
    np.testing.assert_array_equal(robot.bias_force(made[1], made[1].yd), right)
    for each in made:
        for array in (each.q, each.yd):
            assert np.isfinite(array).all()
            with pytest.raises(ValueError, match="read-only"):
                array[..., 0] = np.nan


def test_a_batch_is_a_state_too():
    robot, _, states = mechanism_states("four_bar")
    batch = robot.state(np.array([s.q for s in states[:4]]))
    assert isinstance(batch, State) and not batch.single
    forces = robot.gravity_force(batch)
    for k in range(4):
        np.testing.assert_array_equal(forces[k], robot.gravity_force(states[k].q))
    with pytest.raises(InputError, match="not a batch"):
        robot.operational_space_inertia(batch, robot.clusters[-1].links[-1])


@pytest.mark.parametrize("name", ["four_bar", "gear", "tello_leg"])
def test_a_robot_is_freed_as_soon_as_nobody_has_it(name):
    """Nothing in it refers back to it: no collector is needed."""
    robot = Robot(build_cluster_tree(MECHANISMS[name].tree().description))
    loaded = robot.with_payloads({"load": Payload(robot.clusters[-1].links[-1], 1.0)})
    call = loaded.feedforward(loaded.independent_joint_names)
    call()
    loaded.close(loaded.independent_position(loaded.tree.home))
    refs = [weakref.ref(thing) for thing in (robot, loaded, call, loaded.tree, robot._kernels)]
    gc.collect()
    gc.disable()
    try:
        del robot, loaded, call
        assert [ref() for ref in refs] == [None] * len(refs)
    finally:
        gc.enable()
