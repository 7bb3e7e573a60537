"""Calls that are made before they are needed: how many, and for how long."""

import weakref

import numpy as np
import pytest
from native_talk import LEG, LOOPS
from rbda_ros.node.stream.made_calls import MOST_PREPARED, PreparedCalls, prepare_call

from rbda_ros import Payload, load_robot
from rbda_ros.errors import InputError

TERMS = ("gravity", "coriolis", "inertial")


@pytest.fixture(scope="module")
def leg():
    return load_robot(LEG, LOOPS)


def test_a_prepared_call_is_compiled_and_computes_the_efforts(leg):
    kind = leg.independent_joint_names, None, False
    key, call = prepare_call(leg, kind, TERMS)
    assert key == (*kind, TERMS)
    assert call.kernel.compiled
    call.position[:], call.velocity[:] = [0.1, 0.3, 0.9, -0.2], 0.5
    call()
    q = leg.close(call.position)
    expected, _ = leg.inverse_dynamics_efforts(q, call.velocity, np.zeros(leg.ny))
    np.testing.assert_allclose(call.efforts, expected, 1e-7, 1e-9)
    with pytest.raises(InputError):
        prepare_call(leg, (("nobody",), None, False), TERMS)


def test_few_are_kept_and_their_models_are_freed(leg):
    prepared, gone = PreparedCalls(), []
    for mass in range(1, MOST_PREPARED + 3):
        robot = leg.with_payloads({"box": Payload("foot", float(mass))})
        prepared.add(robot, ((robot.independent_joint_names, None, False, TERMS), object()))
        gone.append(weakref.ref(robot))
    assert [one() is None for one in gone] == [True] * 2 + [False] * MOST_PREPARED
    assert prepared.take(robot) is not None
    assert prepared.take(robot) is None
    assert prepared.take(leg) is None
    del robot
    assert gone[-1]() is None
    prepared.clear()
    assert all(one() is None for one in gone)
