"""Machine code that went wrong is found, and used no more."""

import numpy as np
import pytest
from damage import damage
from served_robots import load

from rbda_ros import Payload, load_robot
from rbda_ros.demo.resources import share_file
from rbda_ros.robot.machine_code_check import (
    MachineCodeError,
    check_kernel,
    check_machine_code,
)


@pytest.fixture
def robot(monkeypatch):
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")
    folder = share_file("config/robots/demo_leg.urdf").parent
    robot = load_robot(folder / "demo_leg.urdf", folder / "demo_leg_loops.yaml")
    assert robot.kernel("inverse_dynamics").compile()
    return robot


def state(robot):
    return robot.tree.home, np.full(robot.ny, 0.3), np.full(robot.ny, 2.0)


def test_sound_code_passes(robot):
    assert robot.kernel("forward_dynamics").compile()
    assert check_machine_code(robot, 1) == []
    assert robot.kernel("inverse_dynamics").compiled


def test_damaged_code_is_found_and_the_virtual_machine_takes_over(robot):
    kernel = robot.kernel("inverse_dynamics")
    right = kernel.interpret(*state(robot))[0]
    held = kernel.bind()
    damage(kernel)
    assert np.abs(kernel.call(*state(robot))[0] - right).max() > 1e-3
    (wrong,) = check_machine_code(robot, 1)
    assert "inverse_dynamics" in wrong
    np.testing.assert_allclose(kernel.call(*state(robot))[0], right, 1e-12)
    for given, array in zip(state(robot), held.inputs, strict=True):
        array[:] = given
    held()
    np.testing.assert_allclose(held.outputs[0], right, 1e-12)
    assert not kernel.compiled
    assert not kernel.compile()
    assert kernel.address is None
    assert isinstance(kernel.error, MachineCodeError)


@pytest.mark.parametrize(
    "kernel", ["inverse_dynamics", pytest.param("loop_state", marks=pytest.mark.nightly)]
)
def test_calls_that_exist_go_to_the_virtual_machine_too(virtual_machine, monkeypatch, kernel):
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")
    served = load("demo_leg")
    served.take_rows()
    robot, state = served.robot, served.motions[0][:3]
    call, rows = served.native("inverse_dynamics"), [np.tile(each, (5, 1)) for each in state]
    one, many = robot.inverse_dynamics(*state), robot.inverse_dynamics(*rows)
    given = robot.kernel(kernel).call  # somebody has it
    inputs = state[: len(robot.kernel(kernel).input_sizes)]
    by_machine = given(*inputs)
    robot.kernel(kernel).disable_machine_code(MachineCodeError("damaged"))
    np.testing.assert_allclose(call(*state), one, 1e-9)
    np.testing.assert_allclose(call(*rows), many, 1e-9)
    np.testing.assert_allclose(robot.inverse_dynamics(*state), one, 1e-9)
    np.testing.assert_allclose(robot.inverse_dynamics(*rows), many, 1e-9)
    assert not robot.kernel(kernel).native.compiled
    for found, expected in zip(
        given(*inputs), robot.kernel(kernel).interpret(*inputs), strict=True
    ):
        assert found.tobytes() == expected.tobytes()
    for found, expected in zip(given(*inputs), by_machine, strict=True):
        np.testing.assert_allclose(found, expected, 1e-9, 1e-12)


def test_what_is_live_is_compared_too(robot):
    call = robot.feedforward(robot.independent_joint_names)
    call()
    assert call.kernel.compile()
    call()
    assert check_kernel(call.kernel, [array.copy() for array in call.inputs]) is None


def test_a_robot_without_machine_code_answers_the_same(robot):
    robot = robot.with_payloads({"box": Payload("foot", 2.0)})
    kernel = robot.kernel("inverse_dynamics")
    assert kernel.compile()
    expected = kernel.call(*state(robot))[0]
    twin = robot.interpreted(MachineCodeError("damaged"))
    assert twin.payloads == robot.payloads
    assert twin.kernel("inverse_dynamics") is kernel
    assert not any(k.compiled for k in (kernel, twin.kernel("mass_matrix")))
    assert not twin.kernel("forward_dynamics").compile()
    np.testing.assert_allclose(twin.inverse_dynamics(*state(twin)), expected, 1e-9)
