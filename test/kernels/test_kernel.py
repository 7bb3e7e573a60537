"""How kernels behave: swapping, batches, threads, bound calls, refusals, the end of a process."""

import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import casadi as ca
import numpy as np
import pytest
from pinocchio_oracle import example_robots

from rbda_ros import load_robot
from rbda_ros.errors import InputError
from rbda_ros.kernels import background, machine
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.plan import make_plan
from rbda_ros.kernels.program import read_program


def function(size=3, steps=200):
    """Something with angles, divisions, two outputs and enough steps for several chunks."""
    x, y = ca.SX.sym("x", size), ca.SX.sym("y", 2)
    z = ca.sin(x) * y[0] + ca.cos(2 * x) / (2 + y[1] ** 2)
    z = ca.vertsplit(z)
    for k in range(steps):
        z = [*z[1:], 0.5 * z[0] * y[k % 2] + 0.4 * ca.sin(z[1]) + 0.01 * k]
    z = ca.vertcat(*z)
    return ca.Function("steps", [x, y], [z, ca.sumsqr(z)], ["x", "y"], ["z", "energy"])


@pytest.fixture(scope="module")
def kernel():
    kernel = Kernel(function())
    assert kernel.compile(batch=True)
    return kernel


@pytest.fixture(scope="module")
def interpreted():
    return Kernel(function(), compiled=False)


def states(count, seed=7):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 3)), rng.uniform(-1, 1, (count, 2))


def test_virtual_machine_first_then_machine_code():
    kernel = Kernel(function(steps=2000))
    x, y = (array[0] for array in states(1))
    before = kernel.call(x, y)
    held = kernel.call
    deadline = time.monotonic() + 60
    while not kernel.compiled and time.monotonic() < deadline:
        kernel.call(x, y)
    assert kernel.compiled
    for after in (kernel.call(x, y), kernel.call(x, y), held(x, y)):
        np.testing.assert_allclose(np.hstack(after), np.hstack(before), rtol=1e-12)
    assert kernel.native.compiled


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 8, 9, 1000])
def test_batch_equals_calls(kernel, interpreted, count):
    inputs = states(count)
    results = kernel.batch(*inputs)
    assert [result.shape for result in results] == [(count, 3), (count, 1)]
    for k in range(count):
        for one, many in zip(kernel.call(inputs[0][k], inputs[1][k]), results, strict=True):
            np.testing.assert_allclose(many[k], one, rtol=1e-14)
    for result, expected in zip(results, interpreted.batch(*inputs), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_batch_before_it_is_compiled(interpreted):
    inputs = states(5)
    only_calls = Kernel(function())
    assert only_calls.compile()
    only_calls._batch_machine.request = lambda: None
    for result, expected in zip(only_calls.batch(*inputs), interpreted.batch(*inputs), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert only_calls._batch_machine.value is None


def test_a_large_batch_waits_for_machine_code():
    x = ca.SX.sym("x")
    kernel = Kernel(ca.Function("f", [x], [x + 1]))
    (result,) = kernel.batch(np.zeros((20_000, 1)))
    assert kernel._batch_machine.value is not None
    assert np.all(result == 1.0)


def test_batch_on_several_threads(kernel):
    count = 100_003  # which is worth several threads, and no multiple of what they take at once
    inputs = states(count)
    parts = [kernel.batch(*(x[k : k + 1000] for x in inputs)) for k in range(0, count, 1000)]
    for result, *some in zip(kernel.batch(*inputs), *parts, strict=True):
        np.testing.assert_array_equal(result, np.vstack(some))


def test_batch_takes_broadcast_and_other_types(kernel):
    x = np.broadcast_to(np.arange(3), (6, 3))
    y = np.asfortranarray(np.ones((6, 2), dtype=np.float32))
    results = kernel.batch(x, y)
    np.testing.assert_allclose(results[0], np.tile(kernel.call([0, 1, 2], [1, 1])[0], (6, 1)))


def test_bound_call(kernel, interpreted):
    for one in (kernel, interpreted):
        bound = one.bind()
        kept = bound.inputs + bound.outputs
        for row in zip(*states(4), strict=True):
            for array, value in zip(bound.inputs, row, strict=True):
                array[:] = value
            assert bound() is None
            np.testing.assert_allclose(np.hstack(bound.outputs), np.hstack(one.call(*row)), 1e-14)
        assert all(a is b for a, b in zip(kept, bound.inputs + bound.outputs, strict=True))


def test_threads_share_a_kernel():
    kernel = Kernel(function(steps=3000))  # swapped while they run
    inputs = states(50)
    expected = Kernel(function(steps=3000), compiled=False).batch(*inputs)
    wrong = []

    def work():
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            for k in range(50):
                result = kernel.call(inputs[0][k], inputs[1][k])
                if not np.allclose(result[0], expected[0][k], rtol=1e-11, atol=0):
                    wrong.append(k)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kernel.compile()
    assert not wrong


@pytest.mark.parametrize("compiled", [True, False])
def test_arguments_are_checked(kernel, interpreted, compiled):
    one = kernel if compiled else interpreted
    x, y = np.zeros(3), np.zeros(2)
    with pytest.raises(InputError, match=r"steps takes 2 arrays \(x, y\), not 1"):
        one.call(x)
    with pytest.raises(InputError, match=r"steps: y has shape \(3,\), not \(2,\)"):
        one.call(x, x)
    with pytest.raises(InputError, match=r"x has shape \(\), not \(3,\)"):
        one.call(0.0, y)
    with pytest.raises(InputError, match=r"x has shape \(1, 3\), not \(3,\)"):
        one.call(x[None], y)
    with pytest.raises(ValueError, match="could not convert"):
        one.call(["a", "b", "c"], y)
    with pytest.raises(InputError, match="takes 2 arrays"):
        one.batch(x[None])
    with pytest.raises(InputError, match=r"y has shape \(1, 2\), not \(2, 2\)"):
        one.batch(np.zeros((2, 3)), np.zeros((1, 2)))
    with pytest.raises(InputError, match="y has shape"):
        one.batch(np.zeros((2, 3)), y)


def test_any_vector_will_do(kernel):
    x, y = (array[0] for array in states(1))
    expected = kernel.call(x, y)
    spread = np.zeros(6)
    spread[::2] = x
    swapped = x.astype(">f8")
    unaligned = np.frombuffer(b"0" + x.tobytes(), dtype=np.uint8)[1:].view(np.float64)
    fixed = x.copy()
    fixed.flags.writeable = False
    for other in (list(x), tuple(x), spread[::2], swapped, unaligned, fixed, x.view(np.memmap)):
        for result, right in zip(kernel.call(other, list(y)), expected, strict=True):
            np.testing.assert_array_equal(result, right)


def test_results_are_new_arrays_and_nothing_leaks(kernel):
    x, y = (array[0] for array in states(1))
    first, second = kernel.call(x, y), kernel.call(x, y)
    assert not np.shares_memory(first[0], second[0])
    assert first[0].flags.owndata and first[0].flags.writeable
    count = sys.getrefcount(first[0])
    assert count == 2
    references = sys.getrefcount(x)
    none = sys.getrefcount(None)
    bound = kernel.bind()
    for _ in range(10_000):
        kernel.call(x, y)
        bound()
    assert sys.getrefcount(x) == references
    assert abs(sys.getrefcount(None) - none) < 1000


def test_machine_code_outlives_its_kernel():
    kernel = Kernel(function())
    kernel.compile()
    kernel.call(np.zeros(3), np.zeros(2))
    call, gone = kernel.call, weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None
    assert call(np.ones(3), np.ones(2))[0].shape == (3,)


def test_dropped_kernels_are_not_compiled_in_vain():
    same = function(steps=5000)
    kernels = [Kernel(same) for _ in range(20)]
    for kernel in kernels:
        kernel.call(np.zeros(3), np.zeros(2))
    gone = [weakref.ref(kernel) for kernel in kernels]
    del kernel, kernels
    gc.collect()
    assert not any(reference() for reference in gone)


def test_floating_point_state_is_untouched(kernel):
    tiny = np.full(64, 5e-324)
    kernel.call(np.zeros(3), np.zeros(2))
    kernel.batch(*states(100))
    assert np.all(tiny * 1.0 == 5e-324)
    assert np.all(tiny + tiny == 1e-323)
    assert 1.0 + 2.0**-53 == 1.0  # still to nearest
    x = ca.SX.sym("x")
    doubling = Kernel(ca.Function("f", [x], [x * 2]))
    assert doubling.compile()
    assert doubling.call(tiny[:1])[0][0] == 1e-323


@pytest.mark.parametrize("chunk", [5, 50, 10_000])
def test_chunks_change_nothing(monkeypatch, interpreted, chunk):
    monkeypatch.setattr(machine, "make_plan", lambda p, _=0, lanes=1: make_plan(p, chunk, lanes))
    kernel = Kernel(function())
    assert kernel.compile(batch=True)
    inputs = states(9)
    for result, expected in zip(kernel.batch(*inputs), interpreted.batch(*inputs), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-12)
    one = kernel.call(inputs[0][0], inputs[1][0])
    np.testing.assert_allclose(one[0], interpreted.call(inputs[0][0], inputs[1][0])[0], rtol=1e-12)


def test_slots_are_used_again():
    plan = make_plan(read_program(function(steps=5000)), chunk=500)
    assert len(plan.chunks) > 20
    assert plan.work < 200


def test_switched_off(monkeypatch):
    monkeypatch.setenv("RBDA_ROS_COMPILE", "0")
    kernel = Kernel(function())
    assert not kernel.compile(batch=True)
    kernel.call(np.zeros(3), np.zeros(2))
    assert not kernel.compiled
    assert kernel.error is None


def test_a_failure_is_kept_and_told_once(monkeypatch, caplog):
    def fail(function):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(machine, "compile_function", fail)
    kernel = Kernel(function())
    for _ in range(3):
        kernel.call(np.zeros(3), np.zeros(2))
        assert not kernel.compile()
    assert str(kernel.error) == "no such luck"
    assert len(caplog.records) == 1
    assert "steps is not compiled and stays slow: no such luck" in caplog.text


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.1, 0.3])
def test_the_process_may_end_while_compiling(delay):
    robot = example_robots()["talos_reduced"]
    code = f"""
        import time
        import numpy as np
        from rbda_ros import load_robot
        robot = load_robot({str(robot)!r})
        robot.inverse_dynamics(np.zeros(robot.nq), np.zeros(robot.nv), np.zeros(robot.ny))
        time.sleep({delay})
        print("end")
    """
    begin = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "end\n", "")
    assert time.monotonic() - begin < 30


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_compiles_what_its_parent_was_compiling():
    kernel = Kernel(function(steps=5000))
    kernel.call(np.zeros(3), np.zeros(2))
    child = multiprocessing.get_context("fork").Process(target=_compile_in_child, args=(kernel,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert kernel.compile()


def _compile_in_child(kernel):
    kernel.call(np.zeros(3), np.zeros(2))
    assert kernel.compile()
    kernel.call(np.zeros(3), np.zeros(2))


def test_a_robot_uses_machine_code():
    robot = load_robot(example_robots()["panda"])
    state = np.full(robot.nq, 0.3), np.full(robot.nv, 0.2), np.full(robot.ny, 0.1)
    before = robot.inverse_dynamics(*state)
    assert robot.kernel("inverse_dynamics").compile(batch=True)
    np.testing.assert_allclose(robot.inverse_dynamics(*state), before, rtol=1e-12)
    together = robot.inverse_dynamics(*(np.tile(array, (9, 1)) for array in state))
    np.testing.assert_allclose(together, np.tile(before, (9, 1)), rtol=1e-12)


def no_more_threads(*_):
    raise RuntimeError("can't start new thread")


def test_where_no_thread_can_be_made_kernels_are_compiled_later(monkeypatch):
    worker = background._Worker()
    first, second = (background.Lazy(name, lambda: "built") for name in ("first", "second"))
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", no_more_threads)
        worker.add(first)
        assert worker.thread is None and first.value is None and first.error is None
    worker.add(second)
    thread = worker.thread
    if thread is not None:  # else it is done already
        thread.join(20.0)
    assert first.value == second.value == "built"
