"""Where a straight way of y leads, by brute force: thousands of steps along the rates.

Nothing here decides how long a step may be but its length: no joint moves farther than `FINE` in
one, a thousandth of the way between branches of the mechanisms it is for.
"""

from __future__ import annotations

import numpy as np

from rbda_ros import Robot
from rbda_ros.cluster_tree.cluster_joint import ClusterNode

FINE = 2e-3
"""How far the fastest joint goes in a step [rad, m]."""
DEAD = 1e-5
"""Least singular value of the dependent columns of K with unit rows: nearer, the way ends."""


def destination(robot: Robot, q: np.ndarray, way: np.ndarray) -> np.ndarray | None:
    """The spanning position (nq,) after y went straight by ``way`` (ny,) from q (nq,).

    None where it does not get there: out of reach, or through a dead point.
    """
    parts, first = [], 0
    for node, place in zip(robot.tree.clusters, robot.tree.position_ranges, strict=True):
        own = q[place.start : place.stop]
        led = _led(node, own, way[first : first + node.ny])
        if led is None:
            return None
        parts.append(led)
        first += node.ny
    return np.concatenate(parts)


def _led(node: ClusterNode, q: np.ndarray, way: np.ndarray) -> np.ndarray | None:
    known = list(node.independent)
    free = [j for j in range(node.nv) if j not in known]
    done, q = 0.0, q.copy()
    if node.loop is None:
        q[known] += way
        return q
    while done < 1.0:
        K = node.loop.jacobian(q)
        rates = np.linalg.lstsq(K[:, free], -K[:, known] @ way, rcond=1e-12)[0]
        size = max(np.abs(rates).max(initial=0.0), np.abs(way).max())
        part = min(FINE / size, 1.0 - done)
        done = 1.0 if part == 1.0 - done else done + part
        q[known] += part * way
        q[free] += part * rates
        predicted = q.copy()
        for _ in range(4):
            K, phi = node.loop.jacobian(q), node.loop.residual(q)
            q[free] += np.linalg.lstsq(K[:, free], -phi, rcond=1e-12)[0]
        K = node.loop.jacobian(q)
        K /= np.maximum(np.linalg.norm(K, axis=1, keepdims=True), 1e-12)
        open_by = np.abs(node.loop.residual(q)).max()
        least = np.linalg.svd(K[:, free], compute_uv=False)[-1]
        if open_by > 1e-10 or np.abs(q - predicted).max() > 0.2 * FINE or least < DEAD:
            return None
    return q
