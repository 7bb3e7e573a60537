"""Functions in numbers: those of CasADi's own calls, to the last bit."""

from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.loops import Evaluated

Q = ca.SX.sym("q", 3)
MATRIX = ca.sparsify(ca.vertcat(ca.horzcat(0, ca.sin(Q[0]), 0), ca.horzcat(Q[1] / Q[2], 0, 2)))


def test_outputs_are_those_of_a_call():
    function = ca.Function("f", [Q], [MATRIX, ca.exp(Q), ca.SX(0, 1), ca.SX(0, 3), ca.SX(2, 2)])
    evaluated = Evaluated(function)
    for q in np.random.default_rng(0).normal(size=(5, 3)):
        called = [np.asarray(output) for output in function(q)]
        found = evaluated(q)
        assert [array.shape for array in found] == [array.shape for array in called]
        assert [array.tobytes() for array in found] == [array.tobytes() for array in called]


def test_a_function_of_nothing():
    (found,) = Evaluated(ca.Function("f", [ca.SX(0, 1)], [ca.SX(2, 1) + 3.0]))(np.zeros(0))
    assert found.tolist() == [[3.0], [3.0]]


def test_arrays_are_new_and_threads_do_not_meet():
    evaluated = Evaluated(ca.Function("f", [Q], [Q * 2.0]))
    first = evaluated(np.ones(3))[0]

    def differs(number):
        return any(
            np.any(evaluated(np.full(3, float(k)))[0] != 2.0 * k) for k in range(number, 3000, 8)
        )

    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(differs, range(8)))
    assert first.tolist() == [[2.0], [2.0], [2.0]]
