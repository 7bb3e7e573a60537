"""Walks over the range of motion: the branch is kept, whichever joints are given.

What is right is found by another way: from the last position in many small steps, each along the
rates of all joints and then the shortest way back onto the loops.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from mechanism_table import MECHANISMS

from rbda_ros import Robot, load_robot
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.description import read_description

SHARED = Path(__file__).parents[3] / "shared" / "robots"
LOOPED = [
    *(name for name, m in MECHANISMS.items() if read_description(m.urdf, m.loops).constraints),
    *(
        pytest.param(path.stem, marks=pytest.mark.nightly)
        for path in sorted(SHARED.glob("*.urdf"))
        if "approximate" not in path.stem
    ),
]
STEP, PARTS = 0.15, 30
"""How far the fastest of y goes in a step [rad, m], and in how many parts the right way goes."""
LEAST = 0.1
"""Least singular value of the dependent columns of K, with rows of like size: a dead point, where
branches meet, is farther than a step. Nearer to it a walk turns round."""


def load(name: str) -> Robot:
    known = MECHANISMS.get(name)
    return known.load() if known else load_robot(SHARED / f"{name}.urdf")


def conditioning(robot: Robot, q: np.ndarray, given: Sequence[int]) -> float:
    """How well given velocity coordinates determine the others: 0 at their dead points."""
    least = 1.0
    tree = robot.tree
    for node, at, place in zip(
        tree.clusters, tree.position_ranges, tree.velocity_ranges, strict=True
    ):
        others = [j - place.start for j in place if j not in given]
        if node.loop is None or not others:
            continue
        K = node.loop.jacobian(q[at.start : at.stop]) / row_sizes(node)
        if len(others) > len(K):
            return 0.0
        value = float(np.linalg.svd(K[:, others], compute_uv=False)[-1])
        least = min(least, float(value > 1e-6) if node.loop.constant else value)
    return least


@functools.cache
def row_sizes(node: ClusterNode) -> np.ndarray:
    """Length of each row of K (rows, 1) where it is largest: at a dead point one may vanish."""
    rng = np.random.default_rng(0)
    near = [node.loop.integrate(node.home, rng.normal(0.0, 0.5, node.nv)) for _ in range(8)]
    sizes = [np.linalg.norm(node.loop.jacobian(q), axis=1, keepdims=True) for q in near]
    return np.max(sizes, axis=0)


def projected(robot: Robot, q: np.ndarray) -> np.ndarray:
    """The shortest way back onto the loops, by Newton steps over all joints."""
    tree = robot.tree
    for _ in range(6):
        step = np.zeros(robot.nv)
        for node, at, place in zip(
            tree.clusters, tree.position_ranges, tree.velocity_ranges, strict=True
        ):
            if node.loop is not None:
                own = q[at.start : at.stop]
                K, phi = node.loop.jacobian(own), node.loop.residual(own)
                step[place.start : place.stop] = np.linalg.lstsq(K, -phi, rcond=1e-10)[0]
        q = tree.integrate(q, step)
        if np.abs(step).max() < 1e-12:  # the next would be rounding
            break
    return q


def walk(robot: Robot, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of positions with one step of y between them, inside limits; turns at every end."""
    limits = [
        (place[0], joint.limits)
        for joint in robot.description.joints
        if len(place := robot.tree.coordinates.positions.get(joint.name, ())) == 1
        and joint.limits.lower < joint.limits.upper
    ]
    q = robot.tree.home
    for _ in range(40):
        way = rng.normal(size=robot.ny)
        way *= STEP / np.abs(way).max()
        reached = q
        for _ in range(PARTS):
            reached = robot.tree.integrate(reached, robot.spanning_velocity(reached, way / PARTS))
            reached = projected(robot, reached)
            if conditioning(robot, reached, robot.tree.independent) < LEAST or not all(
                limit.lower <= reached[i] <= limit.upper for i, limit in limits
            ):
                break
        else:
            if conditioning(robot, q, robot.tree.independent) >= LEAST:  # branches meet at home
                yield q, reached
            q = reached


def other_joints(robot: Robot, rng: np.random.Generator) -> list[str]:
    """Joints of one coordinate, as many in every cluster as it has freedoms."""
    chosen: list[str] = []
    for node in robot.tree.clusters:
        joints = [body.joint.name for body in node.bodies if body.model.nv == 1]
        base = sum(body.model.nv for body in node.bodies if body.joint.type == "floating")
        chosen.extend(str(joint) for joint in rng.permutation(joints)[: node.ny - base])
    return chosen


@pytest.mark.parametrize("name", LOOPED)
def test_the_branch_is_kept_whichever_joints_are_given(name):
    robot, rng = load(name), np.random.default_rng(1)
    layout, sets = robot.tree.coordinates, 0
    whole = not any("." in joint for joint in robot.independent_joint_names)
    for _, (last, q) in zip(range(8), walk(robot, rng), strict=False):
        if whole:
            y = robot.independent_position(q)
            np.testing.assert_allclose(robot.close(y, last), q, atol=1e-6)
        some = other_joints(robot, rng)
        given = [*range(layout.base_nv), *(layout.velocities[joint][0] for joint in some)]
        if min(conditioning(robot, at, given) for at in (last, q)) >= LEAST:
            guess = np.concatenate([q[: layout.base_nq], last[layout.base_nq :]])
            values = {joint: q[layout.scalar_positions[joint]] for joint in some}
            np.testing.assert_allclose(robot.close(values, guess), q, atol=1e-6)
            sets += 1
    print(f"{name}: {sets} other sets of joints")
