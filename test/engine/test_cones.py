"""The solver of friction cones, limits and bounds, on problems of its own."""

import numpy as np
import pytest

from rbda_ros.robot.friction_contacts import SolverSettings, solve_cones

SETTINGS = SolverSettings(1e-11, 500)


def problem(kinds: str, seed: int, freedoms: int, count: int = 40):
    """Constraints of bodies with unit masses, and velocities that bodies can have."""
    rng = np.random.default_rng(seed)
    m = sum(3 if kind == "c" else 1 for kind in kinds)
    J = rng.normal(size=(count, m, freedoms))
    A = J @ np.swapaxes(J, -1, -2)
    g = (J @ rng.normal(size=(count, freedoms, 1)))[..., 0]
    return A, g, rng.uniform(0.1, 0.8, size=(count, len(kinds)))


def check_laws(kinds: str, A, g, parameters, p, tolerance: float) -> None:
    """Signorini, Coulomb, bounds: each as it is written in a textbook."""
    c = (A @ p[..., None])[..., 0] + g
    row = 0
    for b, kind in enumerate(kinds):
        size = parameters[:, b]
        if kind == "c":
            f, v = p[:, row : row + 3], c[:, row : row + 3]
            sideways, slip = np.hypot(f[:, 0], f[:, 1]), np.hypot(v[:, 0], v[:, 1])
            assert np.all(f[:, 2] >= -tolerance)
            assert np.all(v[:, 2] >= -tolerance)
            assert np.abs(f[:, 2] * v[:, 2]).max() < tolerance
            assert np.all(sideways <= size * f[:, 2] + tolerance)
            # Sliding: the force is all that there is, and against the slip.
            assert np.abs(slip[:, None] * f[:, :2] + (size * f[:, 2])[:, None] * v[:, :2]).max() < (
                tolerance
            )
            row += 3
            continue
        f, v = p[:, row], c[:, row]
        if kind == "e":
            assert np.abs(v).max() < tolerance
        elif kind == "p":
            assert min(f.min(), v.min()) > -tolerance
            assert np.abs(f * v).max() < tolerance
        else:
            assert np.all(np.abs(f) <= size + tolerance)
            assert np.abs(f * v + size * np.abs(v)).max() < tolerance
        row += 1


@pytest.mark.parametrize("kinds", ["c", "cccc", "ppp", "bbb", "eee", "ccppbbe", "cccccccc"])
@pytest.mark.parametrize("freedoms", [6, 30])
def test_every_law_holds(kinds, freedoms):
    if kinds == "cccccccc" and freedoms == 6:
        pytest.skip("random directions of eight contacts on one body: mostly jammed")
    A, g, parameters = problem(kinds, 1, freedoms)
    p, missed, _ = solve_cones(kinds, A, g, parameters, np.zeros_like(g), SETTINGS)
    solved = missed <= SETTINGS.tolerance
    assert solved.mean() >= 0.95
    check_laws(kinds, A[solved], g[solved], parameters[solved], p[solved], 1e-8)


def test_a_heavy_block_on_a_light_one():
    """Mass ratio 1e4: ill-conditioned stacks (Le Lidec et al., "Contact models in robotics")."""
    light, heavy, dt, g = 1e-2, 1e2, 1e-3, 9.81
    # Blocks that move along x, y, z; contacts: ground to light, light to heavy.
    J = np.zeros((6, 6))
    J[:3, :3] = J[3:, 3:] = np.eye(3)
    J[3:, :3] = -np.eye(3)
    inverse = np.diag([1 / light] * 3 + [1 / heavy] * 3)
    push = np.array([0.0, 0.0, -g, 0.3 * g, 0.0, -g]) * dt
    for mu, slides in ((0.4, False), (0.2, True)):
        A, free = (J @ inverse @ J.T)[None], (J @ push)[None]
        settings, start = SolverSettings(1e-12, 500), np.zeros((1, 6))
        p, missed, _ = solve_cones("cc", A, free, np.array([[mu, mu]]), start, settings)
        assert missed[0] <= 1e-12
        assert abs(p[0, 5] - heavy * g * dt) < 1e-9
        assert abs(p[0, 2] - (heavy + light) * g * dt) < 1e-9
        after = push + inverse @ J.T @ p[0]
        assert abs(after[3] - (0.1 * g * dt if slides else 0.0)) < 1e-9


def test_answers_do_not_depend_on_company_or_time():
    A, g, parameters = problem("ccpb", 3, 8)
    start = np.zeros_like(g)
    together = solve_cones("ccpb", A, g, parameters, start, SETTINGS)[0]
    again = solve_cones("ccpb", A, g, parameters, start, SETTINGS)[0]
    assert np.array_equal(together, again)
    for n in range(len(g)):
        alone = solve_cones("ccpb", A[n], g[n], parameters[n], start[n], SETTINGS)[0]
        assert np.array_equal(alone, together[n])


def test_a_warm_start_takes_no_iterations_and_a_bound_is_kept():
    A, g, parameters = problem("cccc", 4, 12)
    p, _, cold = solve_cones("cccc", A, g, parameters, np.zeros_like(g), SETTINGS)
    _, again, warm = solve_cones("cccc", A, g, parameters, p, SETTINGS)
    assert np.all(again <= 1e-10)
    assert warm.max() <= cold.max()
    assert np.median(warm) <= 1
    _, _, few = solve_cones("cccc", A, g, parameters, np.zeros_like(g), SolverSettings(1e-300, 30))
    assert few.max() <= 30 + 30  # a round of each method at most


def test_the_convex_problem_is_solved_without_coulombs_law():
    A, g, parameters = problem("cc", 5, 12)
    p, missed, _ = solve_cones("cc", A, g, parameters, np.zeros_like(g), SETTINGS, coulomb=False)
    assert missed.max() <= SETTINGS.tolerance
    rng = np.random.default_rng(0)

    def value(p):
        return 0.5 * np.einsum("ni,nij,nj->n", p, A, p) + np.einsum("ni,ni->n", g, p)

    for _ in range(100):  # no point of the cones is better
        f = rng.normal(size=g.shape)
        for c in (0, 3):
            f[:, c + 2] = np.abs(f[:, c + 2])
            size = np.hypot(f[:, c], f[:, c + 1]) / (parameters[:, c // 3] * f[:, c + 2])
            f[:, c : c + 2] /= np.maximum(size, 1.0)[:, None]
        for share in (1.0, 1e-2, 1e-4):
            assert np.all(value(p + share * (f - p)) >= value(p) - 1e-9)
