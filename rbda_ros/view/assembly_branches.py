"""The branches of a loop: other ways to close it with the same independent joints."""

from __future__ import annotations

import numpy as np
import yaml

from rbda_ros.cluster_tree.closing.newton import solve
from rbda_ros.cluster_tree.closing.tolerances import SINGULAR
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array

STARTS = 60
"""Random starts of the search for branches: a four-bar shows both within the first few."""
SAME = 1e-3
"""How far positions may be apart and still be one branch [rad, m]."""
MAX_BRANCHES = 16
"""Branches that are listed; a Stewart platform has up to 40."""
FARTHEST = 0.5
"""How far a sliding joint is started from where it is [m]."""


def branches(robot: Robot, cluster: str, q: Array) -> list[Array]:
    """Closed positions (nq,) that differ in one cluster and share its independent joints.

    The present one first; then those within the joint limits before the others.

    Args:
        robot: the robot.
        cluster: name of a cluster that has loops.
        q: (nq,) closed position.
    """
    k = [node.name for node in robot.cluster_nodes].index(cluster)
    node, place = robot.cluster_nodes[k], robot.cluster_positions[k]
    found = _cluster_branches(node, q[place.start : place.stop])
    whole = []
    for part in found:
        position = q.copy()
        position[place.start : place.stop] = part
        whole.append(position)
    return whole


def _cluster_branches(node: ClusterNode, q: Array) -> list[Array]:
    loop = node.loop
    if loop is None or loop.constant:
        return [q]
    rng = np.random.default_rng(0)
    free = [j for j in range(node.nv) if j not in node.independent]
    slides = np.array([body.joint.type == "prismatic" for body in loop.bodies])
    sliding = np.repeat(slides, [body.model.nv for body in loop.bodies])
    found = [q]
    for _ in range(STARTS):
        step = np.zeros(node.nv)
        width = np.where(sliding, FARTHEST, np.pi)[free]
        step[free] = rng.uniform(-width, width)
        closed = solve(loop, loop.integrate(q, step), free)
        if not closed.ok:
            continue
        if float(loop.conditioning(closed.q, node.independent, node.home)) < SINGULAR:
            continue
        position = _wound(node, closed.q, q)
        if all(np.abs(position - other).max() > SAME for other in found):
            found.append(position)
        if len(found) == MAX_BRANCHES:
            break
    return [found[0], *sorted(found[1:], key=lambda each: _outside(node, each))]


def _wound(node: ClusterNode, position: Array, near: Array) -> Array:
    """The same position with turning joints less than half a turn from where they were.

    Joints that others are geared to stay: there, a whole turn is another position.
    """
    assert node.loop is not None
    wound = position.copy()
    for body, place in zip(node.bodies, node.position_ranges, strict=True):
        i = place.start
        if body.joint.type in ("revolute", "continuous") and node.loop.curved[i]:
            turns = 2.0 * np.pi * np.round((position[i] - near[i]) / (2.0 * np.pi))
            wound[i] = position[i] - turns
    closes = np.abs(node.loop.residual(wound)).max(initial=0.0) < SAME**2
    return wound if closes else position


def _outside(node: ClusterNode, q: Array) -> int:
    """How many joints are outside their limits."""
    return sum(
        body.model.nq == 1
        and not body.joint.limits.lower <= q[place.start] <= body.joint.limits.upper
        for body, place in zip(node.bodies, node.position_ranges, strict=True)
    )


def assembly_yaml(robot: Robot, q: Array) -> str:
    """The ``assembly`` of a loop file that picks the branch of a position (nq,)."""
    guess = {}
    for node, place in zip(robot.cluster_nodes, robot.cluster_positions, strict=True):
        if node.loop is None or node.loop.constant:
            continue
        for body, inside in zip(node.bodies, node.position_ranges, strict=True):
            if body.model.nq == 1 and node.loop.curved[inside.start]:
                guess[body.joint.name] = round(float(q[place.start + inside.start]), 4) + 0.0
    if not guess:
        return "# no loop of this robot has branches\n"
    return yaml.safe_dump({"assembly": guess}, sort_keys=False, default_flow_style=None, width=80)
