"""The examples of optimal control and of learning, with fewer steps."""

import shutil

import numpy as np
import pytest

from rbda_ros.examples import linear_regulator, optimal_motion
from rbda_ros.examples.optimal_motion import FORMULATIONS, PROBLEMS, solve


@pytest.mark.parametrize("motion", PROBLEMS)
def test_all_formulations_reach_the_same_optimum(motion):
    problem = PROBLEMS[motion](10)
    found = [solve(problem, build(problem)) for build in FORMULATIONS.values()]
    assert all(each.solved for each in found)
    for each in found[1:]:
        assert each.cost == pytest.approx(found[0].cost, rel=1e-7)
        np.testing.assert_allclose(each.y, found[0].y, atol=1e-5)


def test_fatrop_finds_it_too():
    problem = PROBLEMS["swing"](10)
    stage = optimal_motion.embedded(problem)
    assert solve(problem, stage, "fatrop").cost == pytest.approx(solve(problem, stage).cost)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("solver", ["ipopt", "fatrop"])
def test_compiled_equations_lead_to_the_same_optimum(solver, tmp_path):
    problem = PROBLEMS["jump"](10)
    stage = optimal_motion.lifted(problem)
    quick = optimal_motion.compiled(stage, tmp_path)
    rng = np.random.default_rng(0)
    given = [rng.normal(size=stage.zero.size_in(i)) for i in range(stage.zero.n_in())]
    for one, other in ((stage.zero, quick.zero), (stage.zero.jacobian(), quick.zero.jacobian())):
        more = [np.zeros(other.size_in(i)) for i in range(len(given), other.n_in())]
        for found, expected in zip(
            other.call([*given, *more]), one.call([*given, *more]), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    motions = [solve(problem, each, solver) for each in (stage, quick)]
    assert all(each.solved for each in motions)
    assert motions[1].cost == pytest.approx(motions[0].cost, rel=1e-9)
    np.testing.assert_allclose(motions[1].y, motions[0].y, atol=1e-7)


def test_the_optimal_motion_obeys_the_dynamics():
    """Efforts that the method gives along it are within the motors' limits."""
    problem = PROBLEMS["swing"](10)
    y = solve(problem, optimal_motion.embedded(problem)).y
    h = problem.time / problem.steps
    yd = np.zeros(2)
    for k in range(problem.steps):
        ydd = 2 * (y[k + 1] - y[k] - h * yd) / h**2
        efforts, _ = problem.robot.inverse_dynamics_efforts(y[k], yd, ydd)
        assert np.abs(efforts).max() <= problem.limit + 1e-6
        yd = yd + h * ydd
    np.testing.assert_allclose(yd, 0.0, atol=1e-6)


def test_the_regulator_holds_the_leg():
    assert np.abs(linear_regulator.main(time=2.0, step=1e-3)).max() < 1e-3


def test_friction_is_fitted_and_a_policy_trained():
    pytest.importorskip("jax", reason="JAX is not installed: pip install rbda_ros[jax]")
    from rbda_ros.examples import fitted_friction, learned_policy

    for fitted, true in fitted_friction.main(samples=200, iterations=150).values():
        assert fitted == pytest.approx(true, abs=0.03)
    untrained, _ = learned_policy.main(iterations=0, batch=8)
    trained, _ = learned_policy.main(iterations=25, batch=16)
    assert trained < 0.7 * untrained
