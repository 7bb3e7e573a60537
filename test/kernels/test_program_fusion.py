"""A program with a check of its first input behind it: the same answers, and what is shared."""

import ctypes

import numpy as np
import pytest
from mechanism_table import MECHANISMS, closed_states

from rbda_ros import load_robot
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.machine import compile_batch
from rbda_ros.kernels.plan import make_plan
from rbda_ros.kernels.program import fuse_check, read_program

KERNELS = "inverse_dynamics", "forward_dynamics", "mass_matrix", "spanning_motion"


@pytest.fixture(params=["gear", "four_bar", "universal_cut"])
def robot(request):
    mechanism = MECHANISMS[request.param]
    return load_robot(mechanism.urdf, mechanism.loops, floating_base=mechanism.floating_base)


def positions(robot, count=11):
    """Closed positions, of which the last is off the loops."""
    mechanism = next(m for m in MECHANISMS.values() if m.name == robot.name)
    q = np.array(closed_states(mechanism, count))
    q[-1] += 1e-3 * np.random.default_rng(0).normal(size=robot.nq)
    return q


def checked(machine, inputs, sizes):
    """Outputs of the entry that checks, the last of them one number a state."""
    count = len(inputs[0])
    outputs = [np.empty((count, size)) for size in (*sizes, 1)]
    memory = np.empty(machine.memory + 8)
    memory = memory[-memory.ctypes.data % 64 // 8 :]
    given = [*(array.ctypes.data for array in (*inputs, *outputs, machine.constants, memory))]
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(given), ctypes.c_int64)
    entry(machine.code.address("checked"))(*given, count)
    return outputs


@pytest.mark.parametrize("name", KERNELS)
def test_answers_are_the_same_to_the_last_bit_with_the_check_and_without(robot, name):
    kernel, check = robot.kernel(name), robot._kernels._check()
    q = positions(robot)
    rng = np.random.default_rng(1)
    inputs = [q, *(rng.normal(size=(len(q), n)) for n in [*kernel.input_sizes.values()][1:])]
    sizes = [kernel.function.numel_out(i) for i in range(kernel.function.n_out())]
    both = compile_batch(kernel.function, check)
    *answers, holding = checked(both, inputs, sizes)
    for given in (None, lambda: check):
        alone = Kernel(kernel.function, check=given)
        assert alone.compile(batch=True)
        outputs = alone.batch(*inputs)
        assert [a.tobytes() for a in outputs] == [a.tobytes() for a in answers]
    phi, conditioning = robot.kernel("loop_state").batch(q)
    expected = (abs(phi) <= 1e-6).sum(axis=1) + (conditioning >= 1e-8).sum(axis=1)
    assert np.array_equal(holding[:, 0], expected)
    assert expected[-1] < expected[0] == phi.shape[1] + conditioning.shape[1]


def test_what_is_not_a_number_does_not_hold(robot):
    kernel, check = robot.kernel("gravity_force"), robot._kernels._check()
    q = positions(robot, 3) * np.nan
    machine = compile_batch(kernel.function, check)
    *_, holding = checked(machine, [q], [robot.ny])
    assert (holding < sum(map(np.size, robot.kernel("loop_state").call(robot.tree.home)))).all()


@pytest.mark.parametrize("name", KERNELS)
def test_what_both_compute_is_computed_once(robot, name):
    program, check = (
        read_program(f) for f in (robot.kernel(name).function, robot._kernels._check())
    )
    both = fuse_check(program, check)
    assert both.answered == len(program.instructions)
    alone = [len(make_plan(each).angles) for each in (program, check)]
    assert len(make_plan(both).angles) == max(alone)
    added = both.instructions[both.answered :]
    known = set(both.instructions[: both.answered])
    assert not [each for each in added if each in known]
