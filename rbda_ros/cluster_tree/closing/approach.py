"""From anywhere to near a closed position: Levenberg-Marquardt on rows without false zeros.

The rows that kernels keep are as few as can be, and vanish where axes are opposed too. Here all
rows are taken (`Loop.whole`), whose squares have few minima besides the closed positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbda_ros.cluster_tree.closing.tolerances import APPROACH_STEPS, LONGEST_STEP
from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.spatial import Array

_CLOSE_ENOUGH = 1e-20
_NO_GAIN = 1e-7
_LEAST_DAMPING, _MOST_DAMPING = 1e-12, 1e6


@dataclass(frozen=True, eq=False)
class Approach:
    """Where the steps ended.

    Attributes:
        q: (nq,) position.
        gap: length of the vector of all rows there.
    """

    q: Array
    gap: float


def approach(loop: Loop, start: Array) -> Approach:
    """The position nearest to closed that is downhill from ``start`` (nq,)."""
    q, damping = start, 1e-3
    rows, K = loop.whole_rows(q)
    cost = float(rows @ rows)
    for _ in range(APPROACH_STEPS):
        if not np.isfinite(cost) or not np.all(np.isfinite(K)):
            return Approach(start, np.inf)
        if cost <= _CLOSE_ENOUGH or damping > _MOST_DAMPING:
            break
        trial = loop.integrate(q, _shortened(loop, _damped_step(K, rows, damping)))
        trial_rows, trial_K = loop.whole_rows(trial)
        trial_cost = float(trial_rows @ trial_rows)
        if not trial_cost < cost:
            damping *= 4
            continue
        gain = cost - trial_cost
        q, rows, K, cost = trial, trial_rows, trial_K, trial_cost
        damping = max(damping / 8, _LEAST_DAMPING)
        if gain < _NO_GAIN * cost:
            break
    return Approach(q, float(np.sqrt(cost)))


def _damped_step(K: Array, rows: Array, damping: float) -> Array:
    """The step that minimises ``|K step + rows|^2 + damping |step|^2``; never squares K."""
    nv = K.shape[1]
    stacked = np.vstack([K, np.sqrt(damping) * np.eye(nv)])
    rhs = np.concatenate([-rows, np.zeros(nv)])
    return np.asarray(np.linalg.lstsq(stacked, rhs, rcond=None)[0], float)


def _shortened(loop: Loop, step: Array) -> Array:
    """The step, scaled down where joints that the loop is not linear in would turn too far."""
    bound = np.abs(step)
    if loop.curved.size == step.size:
        bound = bound[loop.curved]
    size = bound.max(initial=0.0) / (2 * LONGEST_STEP)
    return step if size <= 1.0 else step / size
