"""S_k, S-dot_k yd and cluster transforms of every mechanism, by the motion of its bodies."""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest
from mechanism_table import MECHANISMS, Mechanism, closed_states, cluster_positions, moved
from pinocchio_oracle import PinocchioOracle

from rbda_ros.cluster_tree.cluster_joint import cluster_joint

STANDARD = {"revolute", "continuous", "prismatic", "floating"}


def cross_motion(v, m):
    """``v x m`` (6): the rate of a motion vector m that moves with velocity v."""
    w, vo = v[:3], v[3:]
    return ca.vertcat(ca.cross(w, m[:3]), ca.cross(vo, m[:3]) + ca.cross(w, m[3:]))


@functools.cache
def body_motion(mechanism: Mechanism) -> ca.Function:
    """``q, yd, ydd -> v, a, poses`` of all bodies (6 x bodies, 6 x bodies, 12 x bodies).

    v by (38), a by (39) without gravity, both in body frames; poses R, p in the world.
    """
    tree = mechanism.tree()
    q, yd, ydd = (ca.SX.sym(s, n) for s, n in (("q", tree.nq), ("yd", tree.ny), ("ydd", tree.ny)))
    v, a, poses = {None: ca.SX(6, 1)}, {None: ca.SX(6, 1)}, [(ca.SX.eye(3), ca.SX(3, 1))]
    parts = zip(
        tree.clusters,
        tree.split_positions(q),
        tree.split_independent(yd),
        tree.split_independent(ydd),
        strict=True,
    )
    for k, (node, q_k, yd_k, ydd_k) in enumerate(parts):
        l = node.parent
        joint = cluster_joint(node, tree.rows(l), q_k, yd_k)
        J, E, S, G, g = joint.J, joint.E, joint.S, joint.G, joint.g
        v[k] = J @ (E @ v[l] + S @ (G @ yd_k))
        velocities, motions = ca.vertsplit(v[k], 6), ca.vertsplit(ca.SX(joint.S_qd), 6)
        crossed = (cross_motion(v_i, m_i) for v_i, m_i in zip(velocities, motions, strict=True))
        product = joint.ring_S_qd + ca.vertcat(*crossed)  # the second part of (19)
        a[k] = J @ (E @ a[l] + S @ (G @ ydd_k + g) + product)
        for body, X in zip(node.bodies, J.X_up, strict=True):
            (R, p), (R_i, p_i) = poses[body.parent], X.pose()
            poses.append((R @ R_i, p + R @ p_i))
    of_clusters = range(len(tree.clusters))
    outputs = (
        ca.reshape(ca.vertcat(*(v[k] for k in of_clusters)), 6, -1),
        ca.reshape(ca.vertcat(*(a[k] for k in of_clusters)), 6, -1),
        ca.horzcat(*(ca.vertcat(ca.vec(R), p) for R, p in poses[1:])),
    )
    return ca.Function("motion", [q, yd, ydd], [ca.densify(output) for output in outputs])


def motion(mechanism: Mechanism, q, yd, ydd) -> list[np.ndarray]:
    return [np.asarray(output) for output in body_motion(mechanism)(q, yd, ydd)]


def velocity_from_poses(poses: np.ndarray, ahead: np.ndarray, behind: np.ndarray, h: float):
    """Body velocities (6, bodies), angular first in body axes, by central differences."""
    columns = []
    for here, after, before in zip(poses.T, ahead.T, behind.T, strict=True):
        R = here[:9].reshape(3, 3, order="F")
        spin = R.T @ (after[:9] - before[:9]).reshape(3, 3, order="F") / (2 * h)
        linear = R.T @ (after[9:] - before[9:]) / (2 * h)
        columns.append([spin[2, 1], spin[0, 2], spin[1, 0], *linear])
    return np.array(columns).T


@pytest.mark.parametrize("name", MECHANISMS)
def test_velocity_is_that_of_the_poses(name):
    mechanism = MECHANISMS[name]
    robot, tree = mechanism.load(), mechanism.tree()
    rng = np.random.default_rng(5)
    h = 1e-5  # truncation h^2 = 1e-10 times third derivatives, rounding 1e-16 / h = 1e-11
    for q in closed_states(mechanism, 20)[:5]:
        yd, zero = rng.normal(size=tree.ny), np.zeros(tree.ny)
        qd = robot.spanning_velocity(q, yd)
        v, _, poses = motion(mechanism, q, yd, zero)
        ahead, behind = (
            motion(mechanism, moved(tree, q, s * h * qd), zero, zero)[2] for s in (1, -1)
        )
        scale = max(1.0, np.abs(qd).max() ** 3)
        np.testing.assert_allclose(v, velocity_from_poses(poses, ahead, behind, h), 0, 1e-8 * scale)


@pytest.mark.parametrize("name", MECHANISMS)
def test_acceleration_is_the_rate_of_velocity_along_the_closed_motion(name):
    """In body coordinates the spatial acceleration is the rate of the velocity's components."""
    mechanism = MECHANISMS[name]
    robot, tree = mechanism.load(), mechanism.tree()
    rng = np.random.default_rng(6)
    h = 1e-4
    for q in closed_states(mechanism, 20)[:5]:
        yd, ydd = rng.normal(size=tree.ny), rng.normal(size=tree.ny)
        speed = np.abs(robot.spanning_velocity(q, yd)).max()
        yd /= max(1.0, speed / 3)
        qd = robot.spanning_velocity(q, yd)
        qdd = robot.spanning_acceleration(q, yd, ydd)
        _, a, _ = motion(mechanism, q, yd, ydd)
        at = []
        for t in (h, -h):
            near = moved(tree, q, t * qd + t**2 / 2 * qdd)
            at.append(motion(mechanism, robot.close(near, guess=near), yd + t * ydd, ydd)[0])
        scale = max(1.0, np.abs(qd).max() ** 3, np.abs(qdd).max())
        np.testing.assert_allclose(a, (at[0] - at[1]) / (2 * h), 0, 3e-6 * scale)


def has_standard_joints(mechanism: Mechanism) -> bool:
    """Whether Pinocchio can read the same spanning tree from the URDF alone."""
    joints = {body.joint.type for body in mechanism.tree().spanning.bodies}
    return joints <= STANDARD and mechanism.name != "rotors"  # whose rotors are not in the URDF


@pytest.mark.parametrize("name", [n for n, m in MECHANISMS.items() if has_standard_joints(m)])
def test_motion_equals_pinocchio_of_the_spanning_tree(name):
    mechanism = MECHANISMS[name]
    robot, tree = mechanism.load(), mechanism.tree()
    oracle = PinocchioOracle(mechanism.urdf, robot)
    rng = np.random.default_rng(7)
    for q in closed_states(mechanism, 20)[:5]:
        yd, ydd = rng.normal(size=tree.ny), rng.normal(size=tree.ny)
        qd, qdd = robot.spanning_velocity(q, yd), robot.spanning_acceleration(q, yd, ydd)
        pin.forwardKinematics(
            oracle.model,
            oracle.data,
            oracle.position(q),
            oracle.velocity(qd),
            oracle.velocity(qdd),
        )
        v, a, _ = motion(mechanism, q, yd, ydd)
        scale = 1e-12 * max(1.0, np.abs(qd).max() ** 2, np.abs(qdd).max())
        for link, place in tree.spanning.links.items():
            if not place.body:
                continue
            X = place.frame.transform()
            frame = oracle.model.getFrameId(link, pin.FrameType.BODY)
            expected = (
                pin.getFrameVelocity(oracle.model, oracle.data, frame, pin.LOCAL),
                pin.getFrameAcceleration(oracle.model, oracle.data, frame, pin.LOCAL),
            )
            for ours, theirs in zip((v, a), expected, strict=True):
                ours = np.asarray(X @ ca.DM(ours[:, place.body - 1])).ravel()
                np.testing.assert_allclose(ours[:3], theirs.angular, 0, scale)
                np.testing.assert_allclose(ours[3:], theirs.linear, 0, scale)


@pytest.mark.parametrize("name", MECHANISMS)
def test_cluster_transform_has_the_blocks_of_35_and_its_transpose_those_of_36(name):
    mechanism = MECHANISMS[name]
    tree = mechanism.tree()
    positions = cluster_positions(tree, closed_states(mechanism, 20)[0])
    for node, q in zip(tree.clusters, positions, strict=True):
        rows, parent_rows = 6 * len(node.bodies), tree.rows(node.parent)
        joint = cluster_joint(node, parent_rows, ca.DM(q), ca.DM(node.ny, 1))
        X = np.asarray(ca.densify(joint.J @ (joint.E @ ca.DM.eye(parent_rows))))
        transposed = np.asarray(ca.densify(joint.E.T @ (joint.J.T @ ca.DM.eye(rows))))
        np.testing.assert_allclose(transposed, X.T, atol=1e-15)
        outside = (0,) if node.parent is None else tree.clusters[node.parent].numbers
        for i, number in enumerate(node.numbers):
            step, output = None, number
            while output in node.numbers:  # up to the output body this body hangs from
                X_up = joint.J.X_up[node.numbers.index(output)]
                step = X_up if step is None else step @ X_up
                output = tree.spanning.bodies[output - 1].parent
            for j, body in enumerate(outside):
                block = X[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]
                expected = np.asarray(ca.densify(step @ ca.DM.eye(6))) * (body == output)
                np.testing.assert_allclose(block, expected, atol=1e-14)


def test_a_cluster_may_hang_from_two_bodies_of_its_parent():
    tree = MECHANISMS["two_parents"].tree()
    node = next(n for n in tree.clusters if n.bodies[0].joint.name == "left_elbow")
    assert node.parent is not None
    above = [tree.clusters[node.parent].bodies[j].name for j in node.output if j is not None]
    assert above == ["left_arm", "right_arm"]


@pytest.mark.parametrize("name", MECHANISMS)
def test_names_and_numbers_are_those_of_the_paper(name):
    """Clusters are named for their lowest body; base bodies hang from the parent cluster."""
    tree = MECHANISMS[name].tree()
    for node in tree.clusters:
        assert node.name == tree.spanning.bodies[min(node.numbers) - 1].name
        assert list(node.numbers) == list(range(node.numbers[0], node.numbers[-1] + 1))
        for inside, output in zip(node.inside, node.output, strict=True):
            assert (inside is None) != (output is None)
