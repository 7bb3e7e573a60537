"""The native module where it must not be trusted: under sanitizers, and built wrongly."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rbda_ros import _native

SANITIZE = Path(__file__).parents[2] / "tools" / "sanitize.py"
calls = _native.calls


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_sanitizers_report_nothing_about_good_and_bad_calls_from_threads():
    ended = subprocess.run([sys.executable, SANITIZE, "100000"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "nothing reported, nothing leaked" in ended.stdout


def reader(**changed):
    """A robot of two joints without loops."""
    none = np.zeros(0, np.intp)
    given = {
        "sizes": (2, 2, 2),
        "bounds": (1e12, 1e50, 1e-3, 1e-15, 1e-9, 0.3, 1e-6, 1e-8, 0.1, 256),
        "indices": (np.arange(2), none, none, none, np.array([1, 4])),
        "home": np.zeros(2),
        "state": dict,
        "identity": None,
        "loops": False,
    }
    return calls.Reader(*(given | changed).values())


@pytest.mark.parametrize(
    "changed",
    [
        {"home": np.zeros(3)},
        {"home": [0.0, 0.0]},
        {"indices": (np.array([0, 2]), *[np.zeros(0, np.intp)] * 4)},
        {"indices": (np.array([0.0, 1.0]), *[np.zeros(0, np.intp)] * 4)},
        {"indices": (np.arange(2), np.array([0]), *[np.zeros(0, np.intp)] * 3)},
        {"indices": (np.arange(2), *[np.zeros(0, np.intp)] * 3, np.array([0]))},
        {"sizes": (2, 2)},
    ],
)
def test_what_does_not_belong_together_is_refused(changed):
    assert reader().ready
    with pytest.raises((ValueError, TypeError)):
        reader(**changed)


def test_kernels_of_other_sizes_are_refused():
    kernel = calls.Kernel(0, (2, 3), (2,), print, False)
    assert kernel.sizes == (2, 3, 2)
    one = reader()
    with pytest.raises(ValueError, match="loop_state"):
        one.use_loops(calls.Kernel(0, (3,), (2, 1), print, False))
    with pytest.raises(ValueError, match="closure"):
        one.use_closure(kernel)
    with pytest.raises(ValueError, match="more than 16"):
        calls.Kernel(0, (1,) * 9, (1,) * 9, print, False)
    nothing = np.zeros(0, np.intp)
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
            calls.CheckedCall(
                *(one, kinds, sizes, ((kernel, slots),), results, ()),
                *(-1, -1, (None, ()), (-1, nothing, 0.0), False),
            )
