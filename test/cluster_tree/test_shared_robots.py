"""The URDF+ robots of generalized_rbda: clusters, K, G and g against its own answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

from rbda_ros import load_robot
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.tree import build_cluster_tree
from rbda_ros.description import read_description

SHARED = Path(__file__).parents[3] / "shared"
ROBOTS = {path.stem: path for path in sorted((SHARED / "robots").glob("*.urdf"))}
REFERENCES = {
    path.stem: path for path in sorted((SHARED / "reference").glob("*.json")) if path.stem in ROBOTS
}

if not ROBOTS or not REFERENCES:
    pytest.skip("../shared/robots and ../shared/reference are not there", allow_module_level=True)


def reference(name: str) -> dict[str, Any]:
    return json.loads(REFERENCES[name].read_text())


@pytest.mark.parametrize("name", ROBOTS)
def test_loads(name):
    robot = load_robot(ROBOTS[name])
    assert robot.ny > 0
    tau = robot.inverse_dynamics(robot.tree.home, np.zeros(robot.ny), np.zeros(robot.ny))
    assert np.all(np.isfinite(tau))


@pytest.mark.parametrize("name", REFERENCES)
def test_clusters_and_freedom_are_those_of_the_reference(name):
    expected = reference(name)
    tree = build_cluster_tree(read_description(ROBOTS[name]))
    ours = {frozenset(body.joint.name for body in node.bodies) for node in tree.clusters}
    theirs = {frozenset(joints) for joints in expected["clusters_by_joint"]}
    assert ours == theirs
    assert tree.ny == expected["nv_independent"]
    assert tree.nv == expected["nv_spanning"]
    assert tree.spanning.floating_base == expected["floating_base"]


@pytest.mark.parametrize("name", REFERENCES)
def test_independent_joints_are_those_of_the_reference(name):
    tree = build_cluster_tree(read_description(ROBOTS[name]))
    by_joints = {frozenset(b.joint.name for b in node.bodies): node for node in tree.clusters}
    for cluster in reference(name)["clusters"]:
        node = by_joints[frozenset(cluster["joints"])]
        names = [body.joint.name for body in node.bodies for _ in range(body.model.nv)]
        assert {names[j] for j in node.independent} == set(cluster["independent_joints"])


def traced(node: ClusterNode) -> ca.Function:
    q, qd = ca.SX.sym("q", node.nq), ca.SX.sym("qd", node.nv)
    outputs = (node.velocity_map(q), node.bias(q, qd))
    return ca.Function("loop", [q, qd], [ca.densify(ca.SX(output)) for output in outputs])


def implicit_clusters() -> list[tuple[str, int]]:
    return [
        (name, cluster["index"])
        for name in REFERENCES
        for cluster in reference(name)["clusters"]
        if cluster["constraint"] == "implicit"
    ]


@pytest.mark.parametrize(("name", "index"), implicit_clusters())
def test_explicit_loops_equal_the_reference(name, index):
    """G and g are unique for given y; K and k are compared by what they allow."""
    expected = reference(name)
    cluster = expected["clusters"][index]
    tree = build_cluster_tree(read_description(ROBOTS[name]))
    node = next(
        n for n in tree.clusters if {b.joint.name for b in n.bodies} == set(cluster["joints"])
    )
    order = [cluster["joints"].index(body.joint.name) for body in node.bodies]
    loop = traced(node)
    for state in expected["states"]:
        q = np.array([state["q"][body.joint.name] for body in node.bodies])
        qd = np.array([state["qd"][body.joint.name] for body in node.bodies])
        theirs = next(c for c in state["implicit_clusters"] if c["cluster"] == index)
        y_order = [
            cluster["independent_joints"].index(node.bodies[j].joint.name) for j in node.independent
        ]
        G_ref = np.array(theirs["G"])[order][:, y_order]
        g_ref = np.array(theirs["g"])[order]
        K_ref = np.array(theirs["K"])[:, order]
        k_ref = np.array(theirs["k"])
        G, g = (np.asarray(output) for output in loop(q, qd))
        # States are closed to 1e-16 and K_dep has a condition number below 100.
        np.testing.assert_allclose(G, G_ref, atol=1e-11 * np.abs(G_ref).max())
        scale = max(1.0, np.abs(g_ref).max())
        np.testing.assert_allclose(g.ravel(), g_ref, atol=1e-10 * scale)
        assert np.abs(node.loop.residual(q)).max() < 1e-12
        K = node.loop.jacobian(q)
        assert np.linalg.matrix_rank(np.vstack([K, K_ref]), tol=1e-9) == len(K) == len(K_ref)
        np.testing.assert_allclose(K_ref @ g.ravel(), k_ref, atol=1e-10 * scale)


@pytest.mark.parametrize("name", REFERENCES)
def test_closed_positions_and_rates_of_explicit_clusters_are_those_of_the_reference(name):
    """Gears and belts: qd and qdd of every state follow from yd and the given ydd."""
    expected = reference(name)
    tree = build_cluster_tree(read_description(ROBOTS[name]))
    for node in tree.clusters:
        if node.loop is None or not node.loop.constant:
            continue
        G = np.asarray(ca.densify(node.velocity_map(ca.DM(node.home))))
        for state in expected["states"]:
            q, qd, qdd = (
                np.array([state[key][body.joint.name] for body in node.bodies])
                for key in ("q", "qd", "qdd_fd")
            )
            assert np.abs(node.loop.residual(q)).max() < 1e-11
            y = list(node.independent)
            np.testing.assert_allclose(G @ qd[y], qd, atol=1e-12 * np.abs(G).max())
            np.testing.assert_allclose(G @ qdd[y], qdd, atol=1e-11 * max(1.0, np.abs(qdd).max()))
