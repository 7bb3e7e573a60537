"""Machine code that went wrong is found, and used no more."""

import pickle

import casadi as ca
import numpy as np
import pytest
from damage import damage
from mechanism_table import MECHANISMS
from parallel_robots import delta, stewart
from served_robots import load

from rbda_ros import Payload, load_robot
from rbda_ros.demo.resources import share_file
from rbda_ros.kernels import assembly_store, cache, disk_cache
from rbda_ros.robot import machine_code_check
from rbda_ros.robot.machine_code_check import (
    MachineCodeError,
    check_kernel,
    check_machine_code,
    reassembled,
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
    assert check_kernel(call.kernel, [array.copy() for array in call.bound.inputs]) is None


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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache folder whose secret the attacker knows: only the self-check is left."""
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")
    monkeypatch.setenv("RBDA_ROS_CACHE", str(tmp_path / "stored"))
    return tmp_path / "stored"


def plant(folder, change):
    """Store other blobs under the same names, with a valid HMAC."""
    for path in folder.glob("*.kernel"):
        facts, blobs = disk_cache.load(path.stem)
        disk_cache.store(path.stem, *change(facts, blobs))


def test_a_program_from_disk_is_held_to_a_fresh_trace(folder):
    served = MECHANISMS["four_bar"]
    robot = load_robot(served.urdf, served.loops)
    expected = robot.inverse_dynamics(*state(robot))

    def doubled(facts, blobs):
        if facts:
            return facts, blobs  # machine code, if the background has made some by now
        function = ca.Function.deserialize(blobs[0].decode())
        symbols = function.sx_in()
        names = function.name_in(), function.name_out()
        outputs = [2 * output for output in function.call(symbols)]
        return facts, [ca.Function(function.name(), symbols, outputs, *names).serialize().encode()]

    assert list(folder.glob("*.kernel"))
    plant(folder, doubled)
    victim = load_robot(served.urdf, served.loops)
    kernel = victim.kernel("inverse_dynamics")
    bound = kernel.bind()
    for array, given in zip(bound.inputs, state(victim), strict=True):
        array[:] = given
    bound()
    assert np.abs(bound.outputs[0] - expected).max() > 1e-3  # what was planted answers
    said = check_machine_code(victim, 1)
    assert any("inverse_dynamics: the program on disk" in each for each in said)
    bound()
    np.testing.assert_allclose(bound.outputs[0], expected, 1e-12)
    np.testing.assert_allclose(kernel.call(*state(victim))[0], expected, 1e-12)
    trusted = victim.interpreted(MachineCodeError("planted"))
    for name in ("inverse_dynamics", "mass_matrix", "gravity_force"):
        assert not trusted.kernel(name).stored and not trusted.kernel(name).compile()
    np.testing.assert_allclose(trusted.inverse_dynamics(*state(trusted)), expected, 1e-12)


def test_a_sound_program_from_disk_is_traced_again_once(folder, monkeypatch):
    served = MECHANISMS["four_bar"]
    for _ in range(2):
        robot = load_robot(served.urdf, served.loops)
        kernel = robot.kernel("inverse_dynamics")
        assert kernel.compile()
    assert kernel.stored
    assert check_machine_code(robot, 1) == [] and not kernel.stored and kernel.compiled
    monkeypatch.setattr(cache, "trace_function", None)
    assert check_machine_code(robot, 2) == []


@pytest.mark.parametrize("make", [delta, stewart])
def test_frozen_rods_are_assembled_again_as_before(make, monkeypatch):
    """They were compared with rods that the description's own constraints freeze."""
    monkeypatch.setattr(machine_code_check, "FEWEST", 1)
    robot = load_robot(*make())
    assert robot.idle_links
    assert reassembled(robot) is None
    again = pickle.loads(pickle.dumps(robot))
    assert again.idle_links == robot.idle_links


def test_loops_from_disk_are_held_to_fresh_ones(folder, monkeypatch):
    monkeypatch.setattr(assembly_store, "FEWEST", 1)
    monkeypatch.setattr(machine_code_check, "FEWEST", 1)
    served = MECHANISMS["four_bar"]
    load_robot(served.urdf, served.loops)
    sound = load_robot(served.urdf, served.loops)
    assert reassembled(sound) is None
    payload = {"box": Payload(sound.description.links[-1].name, 2.0)}
    assert reassembled(sound.with_payloads(payload)) is None

    def scaled(facts, blobs):
        """Loops that close at home, and nowhere else where the described ones do."""
        functions = ca.StringDeserializer(blobs[0].decode()).unpack()
        q = functions[0].sx_in(0)
        shifted = functions[0](q) + 0.1 * (q[0] - float(np.frombuffer(blobs[1])[0]))
        functions[0] = ca.Function("phi", [q], [shifted])
        packer = ca.StringSerializer()
        packer.pack(functions)
        return facts, [packer.encode().encode(), *blobs[1:]]

    plant(folder, scaled)
    victim = load_robot(served.urdf, served.loops).with_payloads(payload)
    fresh = reassembled(victim)
    assert fresh is not None and fresh.payloads == victim.payloads
    q = fresh.close(fresh.tree.home[list(fresh.tree.independent)] + 0.1)
    np.testing.assert_allclose(
        fresh.mass_matrix(q), sound.with_payloads(payload).mass_matrix(q), 1e-12
    )
