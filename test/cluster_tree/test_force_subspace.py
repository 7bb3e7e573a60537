"""T^a and T^c of every mechanism: Eq. 22, completeness, and the power balance of Appendix A."""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np
import pytest
from force_subspaces import force_subspaces
from mechanism_table import MECHANISMS, closed_states, cluster_positions

from rbda_ros.cluster_tree.cluster_joint import ClusterNode, cluster_joint

CLUSTERS = [(name, k) for name, m in MECHANISMS.items() for k in range(len(m.tree().clusters))]
IDS = [f"{name}-{MECHANISMS[name].tree().clusters[k].name}" for name, k in CLUSTERS]


@functools.cache
def traced(node: ClusterNode, parent_rows: int) -> ca.Function:
    """``q, yd -> S_k, T^a, T^c, qd, tree-joint velocities, J`` of a cluster."""
    q, yd = ca.SX.sym("q", node.nq), ca.SX.sym("yd", node.ny)
    joint = cluster_joint(node, parent_rows, q, yd)
    rows = 6 * len(node.bodies)
    S_k = joint.J @ ca.SX(joint.S @ joint.G)
    J = joint.J @ ca.SX.eye(rows)
    outputs = (S_k, *force_subspaces(node, joint), joint.qd, joint.S @ joint.qd, J)
    return ca.Function("joint", [q, yd], [ca.densify(ca.SX(output)) for output in outputs])


def states(name: str, k: int):
    tree = MECHANISMS[name].tree()
    node = tree.clusters[k]
    rng = np.random.default_rng(k)
    joint = traced(node, tree.rows(node.parent))
    for q in closed_states(MECHANISMS[name], 20)[:5]:
        yd = rng.normal(size=node.ny)
        outputs = joint(cluster_positions(tree, q)[k], yd)
        yield node, yd, [np.asarray(output) for output in outputs], rng


@pytest.mark.parametrize(("name", "k"), CLUSTERS, ids=IDS)
def test_force_subspaces_are_dual_to_the_motion_subspace(name, k):
    for node, _, (S, T_a, T_c, _, _, _), _ in states(name, k):
        rows = 6 * len(node.bodies)
        scale = max(1.0, np.abs(S).max() * max(np.abs(T_a).max(), np.abs(T_c).max(initial=0)))
        np.testing.assert_allclose(S.T @ T_a, np.eye(node.ny), atol=1e-13 * scale)
        np.testing.assert_allclose(S.T @ T_c, 0.0, atol=1e-13 * scale)
        assert T_a.shape == (rows, node.ny)
        assert T_c.shape == (rows, rows - node.ny)
        assert np.linalg.matrix_rank(np.hstack([T_a, T_c])) == rows


@pytest.mark.parametrize(("name", "k"), CLUSTERS, ids=IDS)
def test_power_of_the_cluster_joint_is_that_of_its_tree_joints(name, k):
    """Appendix A: <v^J_k, f^J_k> = sum <v^J_i, f^J_i> = tau' yd; constraint forces do no work."""
    for node, yd, (S, T_a, T_c, _, v_tree, J), rng in states(name, k):
        tau, forces = rng.normal(size=node.ny), rng.normal(size=T_c.shape[1])
        f_cluster = T_a @ tau + T_c @ forces
        f_tree = J.T @ f_cluster  # (26), (29)
        scale = np.linalg.norm(S @ yd) * np.linalg.norm(f_cluster)
        power = (S @ yd) @ f_cluster
        assert v_tree.ravel() @ f_tree == pytest.approx(power, abs=1e-13 * scale)
        assert tau @ yd == pytest.approx(power, abs=1e-13 * scale)


@pytest.mark.parametrize("name", ["four_bar", "tello_leg", "rotors", "fixed_cut"])
def test_tree_joint_constraint_forces_alone_would_not_be_complete(name):
    """Forces that the paper's (33) lacks: those of the loops, one column per row of K."""
    for k, node in enumerate(MECHANISMS[name].tree().clusters):
        for _, _, (_, T_a, T_c, _, _, _), _ in states(name, k):
            of_loops = node.nv - node.ny
            of_tree_joints = T_c[:, : T_c.shape[1] - of_loops]
            rank = np.linalg.matrix_rank(np.hstack([T_a, of_tree_joints]))
            assert rank == 6 * len(node.bodies) - of_loops
