"""K, G and g of every mechanism against finite differences of the closed position."""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np
import pytest
from mechanism_table import MECHANISMS, closed_states, cluster_positions, moved

from rbda_ros.cluster_tree.closing.newton import solve
from rbda_ros.cluster_tree.cluster_joint import ClusterNode

LOOPS = [
    (name, k)
    for name, mechanism in MECHANISMS.items()
    for k, node in enumerate(mechanism.tree().clusters)
    if node.loop is not None
]
IDS = [f"{name}-{MECHANISMS[name].tree().clusters[k].name}" for name, k in LOOPS]
STATES = 20


def cluster_states(name: str, k: int) -> list[np.ndarray]:
    """Closed positions of one cluster."""
    mechanism = MECHANISMS[name]
    states = closed_states(mechanism, STATES)
    return [cluster_positions(mechanism.tree(), q)[k] for q in states]


def dense(matrix) -> np.ndarray:
    return np.asarray(ca.DM(ca.densify(matrix)))


@functools.cache
def traced(node: ClusterNode) -> tuple[ca.Function, ca.Function]:
    """G and g as kernels have them: traced on symbols, with all zeros that structure gives."""
    q, qd = ca.SX.sym("q", node.nq), ca.SX.sym("qd", node.nv)
    G, g = ca.SX(node.velocity_map(q)), ca.SX(node.bias(q, qd))
    return ca.Function("G", [q], [ca.densify(G)]), ca.Function("g", [q, qd], [ca.densify(g)])


def velocity_map(node: ClusterNode, q: np.ndarray) -> np.ndarray:
    return np.asarray(traced(node)[0](q))


def bias(node: ClusterNode, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    return np.asarray(traced(node)[1](q, qd)).ravel()


def follow(node: ClusterNode, q: np.ndarray, qd: np.ndarray, t: float) -> np.ndarray:
    """The closed position at time t of the motion that has velocity qd at q, and ydd = 0.

    Independent coordinates that are part of a ball joint move at constant body rate.
    """
    free = [j for j in range(node.nv) if j not in node.independent]
    closed = solve(node.loop, node.loop.integrate(q, t * qd), free)
    assert closed.error < 1e-14
    return closed.q


def difference(node: ClusterNode, q: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The velocity (nv,) that goes from q to ``other`` in unit time, for short ways."""
    parts, iq = [], 0
    for body in node.bodies:
        here, there = q[iq : iq + body.model.nq], other[iq : iq + body.model.nq]
        if body.joint.type == "spherical":
            u, w = here[:3], here[3]
            v = w * there[:3] - there[3] * u - np.cross(u, there[:3])
            parts.append(2 * np.arcsin(np.linalg.norm(v)) * v / max(np.linalg.norm(v), 1e-300))
        elif body.joint.type == "floating":
            parts.append(np.zeros(6))  # it stays where it is in these tests
            np.testing.assert_allclose(here, there, atol=1e-15)
        else:
            parts.append(there - here)
        iq += body.model.nq
    return np.concatenate(parts)


def without_base(node: ClusterNode, yd: np.ndarray) -> np.ndarray:
    """The velocity with the floating base at rest, where a cluster has it."""
    names = [body.joint.type for body in node.bodies for _ in range(body.model.nv)]
    return np.where([names[j] == "floating" for j in node.independent], 0.0, yd)


@pytest.mark.parametrize("name", MECHANISMS)
def test_freedom_rows_and_constancy_are_those_counted_by_hand(name):
    mechanism, tree = MECHANISMS[name], MECHANISMS[name].tree()
    loops = [node.loop for node in tree.clusters if node.loop is not None]
    assert tree.ny == mechanism.freedom + (6 if mechanism.floating_base else 0)
    assert tuple(loop.K.size1_out(0) for loop in loops) == mechanism.rows
    assert [loop.constant for loop in loops] == [mechanism.constant] * len(loops)


@pytest.mark.parametrize(("name", "k"), LOOPS, ids=IDS)
def test_explicit_form_satisfies_the_implicit_one(name, k):
    node = MECHANISMS[name].tree().clusters[k]
    rng = np.random.default_rng(k)
    for q in cluster_states(name, k):
        K, G = node.loop.jacobian(q), velocity_map(node, q)
        assert np.abs(node.loop.residual(q)).max() < 1e-12
        assert np.linalg.matrix_rank(K) == K.shape[0]  # no redundant row is left
        # 1e-12 for entries of order one: gears of 30 have larger ones.
        assert np.abs(K @ G).max() < 1e-12 * max(1.0, np.abs(G).max() * np.abs(K).max())
        np.testing.assert_array_equal(G[list(node.independent)], np.eye(node.ny))
        on_numbers = dense(node.velocity_map(ca.DM(q)))  # another way through least_squares
        np.testing.assert_allclose(G, on_numbers, atol=1e-10 * np.abs(G).max())
        qd = G @ rng.normal(size=node.ny)
        g = bias(node, q, qd)
        k_ = dense(node.loop.k(q, qd)).ravel()
        assert np.abs(K @ g - k_).max() < 1e-11 * max(1.0, np.abs(g).max())
        np.testing.assert_array_equal(g[list(node.independent)], 0.0)


@pytest.mark.parametrize(("name", "k"), LOOPS, ids=IDS)
def test_velocity_map_is_the_slope_of_the_closed_position(name, k):
    node = MECHANISMS[name].tree().clusters[k]
    rng = np.random.default_rng(k)
    h = 1e-4  # truncation of the fourth-order formula h^4, rounding 1e-15 / h
    for q in cluster_states(name, k):
        yd = without_base(node, rng.normal(size=node.ny))
        qd = velocity_map(node, q) @ yd
        at = {n: difference(node, q, follow(node, q, qd, n * h)) for n in (-2, -1, 1, 2)}
        slope = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * h)
        np.testing.assert_allclose(slope, qd, atol=1e-9 * max(1.0, np.abs(qd).max() ** 3))


@pytest.mark.parametrize(("name", "k"), LOOPS, ids=IDS)
def test_bias_is_the_curvature_of_the_closed_position(name, k):
    node = MECHANISMS[name].tree().clusters[k]
    rng = np.random.default_rng(k)
    for q in cluster_states(name, k):
        yd = without_base(node, rng.normal(size=node.ny))
        qd = velocity_map(node, q) @ yd
        qd /= max(1.0, np.abs(qd).max())
        g = bias(node, q, qd)
        # Truncation h^4 times sixth derivatives, which grow with g; rounding 1e-15 / h^2.
        h = 2e-3 / np.sqrt(1.0 + np.abs(g).max())
        at = {n: difference(node, q, follow(node, q, qd, n * h)) for n in (-2, -1, 1, 2)}
        curvature = (16 * (at[1] + at[-1]) - (at[2] + at[-2])) / (12 * h**2)
        np.testing.assert_allclose(curvature, g, atol=1e-6 * max(1.0, np.abs(g).max()))


@pytest.mark.parametrize("name", MECHANISMS)
def test_closed_path_of_the_whole_robot_has_the_velocity_of_the_kernel(name):
    """The same through the public API: close() along y, and spanning_velocity()."""
    robot, tree = MECHANISMS[name].load(), MECHANISMS[name].tree()
    rng = np.random.default_rng(3)
    h = 1e-4
    for q in closed_states(MECHANISMS[name], 5):
        qd = robot.spanning_velocity(q, rng.normal(size=robot.ny))
        ahead = robot.close(moved(tree, q, h * qd), guess=q)
        behind = robot.close(moved(tree, q, -h * qd), guess=q)
        rates = dense(
            ca.vertcat(
                *(
                    body.model.rate(ca.DM(q_i), ca.DM(qd_i))
                    for body, q_i, qd_i in zip(
                        tree.spanning.bodies,
                        np.split(q, np.cumsum([b.model.nq for b in tree.spanning.bodies])[:-1]),
                        np.split(qd, np.cumsum([b.model.nv for b in tree.spanning.bodies])[:-1]),
                        strict=True,
                    )
                )
            )
        ).ravel()
        scale = max(1.0, np.abs(qd).max() ** 3)
        np.testing.assert_allclose((ahead - behind) / (2 * h), rates, atol=1e-6 * scale)


def test_a_planar_loop_in_a_tilted_plane_keeps_two_rows():
    """Its revolute cut has five rows, of which the plane leaves two."""
    (node,) = (n for n in MECHANISMS["four_bar"].tree().clusters if n.loop)
    assert node.loop.K.size1_out(0) == 2
    # The rows are written in a frame of the plane, so that the others vanish by structure.
    assert node.loop.row_constraint == (0, 0)


def test_a_gear_beside_a_four_bar_stays_out_of_its_factorization():
    """G of the gear's rotor is a constant, although K of the cluster is not."""
    node = next(n for n in MECHANISMS["geared_four_bar"].tree().clusters if n.loop)
    q = ca.SX.sym("q", node.nq)
    G = ca.SX(node.velocity_map(q))
    crank = [body.joint.name for body in node.bodies].index("crank")
    assert not node.loop.constant
    assert not ca.symvar(G[crank, :])
    assert float(G[crank, 0]) == pytest.approx(-1 / 6, rel=1e-15)


@pytest.mark.parametrize("name", [n for n, m in MECHANISMS.items() if m.constant])
def test_constant_maps_are_folded(name):
    """Gears cost nothing: G is a matrix of numbers and g is zero by structure."""
    for node in MECHANISMS[name].tree().clusters:
        if node.loop is not None:
            q, qd = ca.SX.sym("q", node.nq), ca.SX.sym("qd", node.nv)
            assert not ca.symvar(ca.SX(node.velocity_map(q)))
            assert node.bias(q, qd).nnz() == 0
