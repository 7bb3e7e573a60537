"""The engine where it must not be trusted: under sanitizers, and given what does not fit."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rbda_ros.engine import core

SANITIZE = Path(__file__).parents[2] / "tools" / "sanitize.py"


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_sanitizers_report_nothing_about_good_and_bad_calls_from_threads():
    ended = subprocess.run([sys.executable, SANITIZE, "100000"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "nothing reported, nothing leaked" in ended.stdout


NONE = np.zeros(0, np.intp)
INDICES = {
    "independent": np.arange(2),
    "quaternions": NONE,
    "curved": NONE,
    "known": NONE,
    "parts": np.array([1, 4]),
}
LIMITS = {
    "largest_position": 1e12,
    "largest": 1e50,
    "quaternion_tolerance": 1e-3,
    "unit": 1e-15,
    "closed": 1e-9,
    "nearby": 0.3,
    "on_loops": 1e-6,
    "singular": 1e-8,
    "batch_near": 0.1,
    "batch_block": 256,
}


def kernel(inputs, outputs, interpret=print):
    arrays = [tuple(map(np.zeros, sizes)) for sizes in (inputs, outputs)]
    return core.Kernel(*arrays, interpret, print, print)


def validator(**changed):
    """A robot of two joints without loops."""
    given = {
        **{"nq": 2, "nv": 2, "ny": 2, "limits": LIMITS, "indices": INDICES},
        **{"home": np.zeros(2), "loop_state": None, "state_type": dict, "wrenches_type": dict},
        **{"identity": None, "link_names": (), "link_frames": np.zeros(0), "bodies": 2},
    }
    return core.StateValidator(**(given | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"home": np.zeros(3)},
        {"home": [0.0, 0.0]},
        {"indices": INDICES | {"independent": np.array([0, 2])}},
        {"indices": INDICES | {"independent": np.array([0.0, 1.0])}},
        {"indices": INDICES | {"quaternions": np.array([0])}},
        {"indices": INDICES | {"parts": np.array([0])}},
        {"indices": {}},
        {"limits": {}},
        {"limits": LIMITS | {"unit": "one"}},
        {"loop_state": kernel((3,), (2, 1))},
        {"link_names": ("a",)},
    ],
)
def test_what_does_not_belong_together_is_refused(changed):
    assert not validator().closes
    with pytest.raises((ValueError, TypeError)):
        validator(**changed)


def test_kernels_of_other_sizes_are_refused():
    two = kernel((2, 3), (2,))
    assert two.sizes == (2, 3, 2)
    one = validator()
    with pytest.raises(ValueError, match="closure"):
        one.use_closure(two)
    with pytest.raises(ValueError, match="more than 16"):
        kernel((1,) * 9, (1,) * 9)
    for kinds, sizes, slots, results in [
        ("qv", (2, 2, 2), (0, 1, 2), ((2, 2),)),  # the kernel's second input has three
        ("qv", (2, 3, 2), (0, 1, 2), ((2, 2),)),  # a velocity has two
        ("qx", (2, 3, 2), (0, 1, 7), ((2, 2),)),  # there is no such slot
        ("qx", (2, 3, 2), (0, 1, 2), ((0, 2),)),  # an argument is no result
        ("qx", (2, 3, 2), (0, 1, 2), ((2, 3),)),  # nor has it three
        ("qx", (2, 3, 2), (0, 1), ((2, 2),)),
        ("q" * 9, (2,) * 9, (0, 1, 2), ((2, 2),)),
    ]:
        with pytest.raises(ValueError, match="belong together"):
            core.OperationCall(
                **{"validator": one, "kinds": kinds, "sizes": sizes, "steps": ((two, slots),)},
                **{"results": results, "constants": (), "finite": -1, "missed": -1, "make": None},
                **{"fields": (), "mass_matrix": -1, "parents": NONE, "least": 0.0, "forces": None},
            )


def test_an_exception_of_the_evaluator_comes_out():
    def fail():
        raise RuntimeError("out of order")

    broken = kernel((2,), (2,), fail)
    with pytest.raises(RuntimeError, match="out of order"):
        broken(np.zeros(2))
    with pytest.raises(RuntimeError, match="out of order"):
        broken.batch(np.zeros((3, 2)), np.zeros((3, 2)))


def test_a_kernel_is_evaluated_by_python_until_there_is_machine_code():
    given, result = np.zeros(2), np.zeros(2)

    def double():
        result[:] = 2.0 * given

    one = core.Kernel((given,), (result,), double, lambda count: None, print)
    assert not one.compiled and not one.batch_compiled
    np.testing.assert_array_equal(one(np.array([1.0, 2.0]))[0], [2.0, 4.0])
    into = np.zeros(2)
    one(np.array([3.0, 4.0]), into)
    np.testing.assert_array_equal(into, [6.0, 8.0])
    rows, results = np.arange(6.0).reshape(3, 2), np.zeros((3, 2))
    assert one.batch(rows, results)  # all are finite
    np.testing.assert_array_equal(results, 2.0 * rows)
    assert not one.batch(np.where(rows == 3.0, np.inf, rows), results)
    signature = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.POINTER(ctypes.c_double)))

    @signature
    def triple(ports):
        for k in range(2):
            ports[1][k] = 3.0 * ports[0][k]

    one.use(ctypes.cast(triple, ctypes.c_void_p).value, triple)
    assert one.compiled
    np.testing.assert_array_equal(one(np.array([1.0, 2.0]))[0], [3.0, 6.0])
    one.withdraw()
    np.testing.assert_array_equal(one(np.array([1.0, 2.0]))[0], [2.0, 4.0])
