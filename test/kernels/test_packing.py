"""Equal limbs in the lanes of vectors: what is packed, and that it computes the same."""

import casadi as ca
import numpy as np
import pytest
from pinocchio_oracle import example_robots

from rbda_ros import load_robot
from rbda_ros.kernels import machine
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.machine import vector_lanes
from rbda_ros.kernels.packing import find_packs
from rbda_ros.kernels.plan import make_plan
from rbda_ros.kernels.program import read_program

EXAMPLES = example_robots()


def limbs(count, steps=12, odd=False):
    """Limbs on one trunk, alike but for constants and for the signs of a mirrored one."""
    q, yd = ca.SX.sym("q", 3 * count), ca.SX.sym("yd", 3 * count)
    trunk = ca.SX.sym("trunk", 2)
    force, taus = 1.5 * trunk[0], []
    for k in range(count):
        x, y = trunk[0] + 0.1 * (k + 1), trunk[1]
        for i in range(steps):
            j = 3 * k + i % 3
            c, s, rate = ca.cos(q[j]), ca.sin(q[j]), yd[j]
            rate = -rate if k % 2 else rate
            x, y = c * x - s * y + rate, s * x + c * y - 0.3 * (k + 2) * rate * x
        bent = ca.sin(x / (3 + y**2)) if odd and k == 1 else ca.sqrt(1 + x**2) / (2 + y**2)
        taus += [bent, x * y]
        force = force - x if k % 2 else force + x
    return ca.Function("limbs", [q, yd, trunk], [ca.cse(ca.vertcat(force, *taus))])


def inputs(function, seed=3):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, function.numel_in(i)) for i in range(function.n_in())]


@pytest.mark.parametrize("name, share", [("go2", 0.4), ("talos_reduced", 0.65)])
def test_limbs_of_robots_are_packed(name, share):
    robot = load_robot(EXAMPLES[name], floating_base=True)
    for kernel in ("inverse_dynamics", "forward_dynamics"):
        program = robot.kernel(kernel).program
        packs = find_packs(program, 4)
        left = len(program.instructions) - sum(len(pack) - 1 for pack in packs)
        assert left <= share * len(program.instructions)


def test_nothing_is_packed_where_that_does_not_pay():
    program = load_robot(EXAMPLES["ur5_robot"]).kernel("forward_dynamics").program
    assert not find_packs(program, 4)


@pytest.mark.parametrize("count, widest, width", [(2, 4, 2), (3, 4, 2), (4, 4, 4), (4, 2, 2)])
def test_mirrored_limbs_are_packed(count, widest, width):
    program = read_program(limbs(count))
    packs = find_packs(program, widest)
    assert max(map(len, packs)) == width
    packed = [value for pack in packs for value in pack]
    assert len(packed) == len(set(packed)) > len(program.instructions) / 2


def test_a_plan_computes_everything_once_and_after_what_it_reads():
    program = read_program(limbs(4, odd=True))
    plan = make_plan(program, chunk=20, lanes=4)
    known = set(range(program.first_result)) | {
        value
        for value, instruction in enumerate(program.instructions, start=program.first_result)
        if instruction.operation in ("sin", "cos") and instruction.arguments[0] in plan.angles
    }
    for chunk in plan.chunks:
        for pack in chunk:
            assert known.isdisjoint(pack)
            assert known.issuperset(value for lanes, _ in plan.operands(pack) for value in lanes)
            known.update(pack)
    assert known == set(range(program.first_result + len(program.instructions)))


@pytest.mark.parametrize("chunk", [3, 50, 1000])
@pytest.mark.parametrize("count, odd", [(2, False), (3, True), (4, False), (5, True)])
def test_packed_machine_code_equals_virtual_machine(monkeypatch, count, odd, chunk):
    monkeypatch.setattr(machine, "make_plan", lambda p, _=0, lanes=1: make_plan(p, chunk, lanes))
    function = limbs(count, odd=odd)
    kernel = Kernel(function)
    assert kernel.compile(), kernel.error
    assert find_packs(kernel.program, vector_lanes().count)
    given = inputs(function)
    (expected,) = Kernel(function, compiled=False).call(*given)
    np.testing.assert_allclose(kernel.call(*given)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["inverse_dynamics", "forward_dynamics"])
def test_packed_machine_code_rounds_as_batches_do(kernel):
    """Products fused with sums, in limbs that differ in signs: a batch packs nothing."""
    found = load_robot(EXAMPLES["go2"], floating_base=True).kernel(kernel)
    assert {each.operation for each in found.program.instructions} > {"fma", "fms", "fnma"}
    assert found.compile(batch=True)
    rng = np.random.default_rng(8)
    states = [rng.normal(size=(20, size)) for size in found.input_sizes.values()]
    (together,) = found.batch(*states)
    for k, row in enumerate(together):
        assert np.array_equal(found.call(*(each[k] for each in states))[0], row)
