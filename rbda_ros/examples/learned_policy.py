"""A small policy, trained by gradients through the dynamics of a parallel ankle.

    python -m rbda_ros.examples.learned_policy

The idea: `Robot.jax` gives the acceleration of many states at once, and its exact derivatives. A
policy that commands the motors is trained through the simulation itself. Beside it, the same policy
is trained on the common simplification: a serial ankle, with the inertia of cranks and rods
reflected at one pose. Both are then judged on the true ankle. Needs JAX (extra ``jax``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbda_ros import load_robot
from rbda_ros.examples.optimal_motion import ANKLE, ANKLE_LOOPS

STEPS, STEP = 25, 0.008
HIDDEN = 24
EFFORT, FAST = 4.0, 20.0  # [N m], [rad/s]


def main(iterations: int = 150, batch: int = 64) -> tuple[float, float]:
    """Train both policies; returns their errors on the true ankle after 0.2 s [rad]."""
    jax.config.update("jax_enable_x64", True)
    ankle = load_robot(ANKLE, ANKLE_LOOPS)
    home = np.zeros(2)
    H = jnp.array(ankle.mass_matrix(home))
    G = jnp.array(_motor_rates(ankle, home))
    dynamics, force = ankle.jax("forward_dynamics"), ankle.jax("generalized_force")

    def on_joints(y: Any, efforts: Any) -> Any:
        spanning = jnp.zeros((*efforts.shape[:-1], ankle.nv))
        return force(y, spanning.at[..., list(ankle.actuated_coordinates)].set(efforts))

    def true(y: Any, yd: Any, efforts: Any) -> Any:
        return dynamics(y, yd, on_joints(y, efforts))

    def reflected(y: Any, yd: Any, efforts: Any) -> Any:
        return jnp.linalg.solve(H, (efforts @ G).T).T

    tested = _starts(np.random.default_rng(1), 256)
    errors = []
    for name, model in (("reflected inertia", reflected), ("parallel ankle", true)):
        policy = _trained(model, iterations, batch)
        error = float(jnp.sqrt(jnp.mean(_errors(policy, true, *tested) ** 2)))
        print(f"trained on the model with {name}: error {error:.4f} on the true ankle")
        errors.append(error)
    return errors[1], errors[0]


def _motor_rates(ankle: Any, y: Any) -> Any:
    """(motors, ny) how fast the motors turn for each joint, at one pose."""
    rates = [ankle.spanning_velocity(y, axis) for axis in np.eye(ankle.ny)]
    return np.array(rates).T[list(ankle.actuated_coordinates)]


def _starts(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Positions and goals (count, 2), over the whole range [rad]."""
    reach = np.array([0.5, 0.3])
    return tuple(jnp.array(reach * rng.uniform(-1.0, 1.0, (count, 2))) for _ in range(2))


def _efforts(policy: Any, y: Any, yd: Any, goal: Any) -> Any:
    """Efforts of the motors (..., 2), never above their limit."""
    W1, b1, W2, b2 = policy
    seen = jnp.concatenate([y, goal - y, yd / FAST], axis=-1)
    return EFFORT * jnp.tanh(jnp.tanh(seen @ W1 + b1) @ W2 + b2)


def _errors(policy: Any, model: Callable[..., Any], y: Any, goal: Any) -> Any:
    """How far from the goal, with the velocity that is left, (N, 4)."""

    def step(state: Any, _: Any) -> Any:
        y, yd = state
        yd = yd + STEP * model(y, yd, _efforts(policy, y, yd, goal))
        yd = jnp.clip(yd, -FAST, FAST)
        return (jnp.clip(y + STEP * yd, -0.6, 0.6), yd), None

    (y, yd), _ = jax.lax.scan(step, (y, jnp.zeros_like(y)), None, length=STEPS)
    return jnp.concatenate([y - goal, 0.02 * yd], axis=-1)


def _trained(model: Callable[..., Any], iterations: int, batch: int) -> Any:
    """A policy trained by Adam."""
    rng = np.random.default_rng(0)
    policy = [
        jnp.array(rng.normal(0.0, 0.4, (6, HIDDEN))),
        jnp.zeros(HIDDEN),
        jnp.array(rng.normal(0.0, 0.1, (HIDDEN, 2))),
        jnp.zeros(2),
    ]
    gradient = jax.jit(jax.grad(lambda p, y, goal: jnp.mean(_errors(p, model, y, goal) ** 2)))
    mean = [jnp.zeros_like(x) for x in policy]
    square = [jnp.zeros_like(x) for x in policy]
    for k in range(1, iterations + 1):
        found = gradient(policy, *_starts(rng, batch))
        mean = [0.9 * m + 0.1 * g for m, g in zip(mean, found, strict=True)]
        square = [0.99 * s + 0.01 * g**2 for s, g in zip(square, found, strict=True)]
        scale = 0.02 * (1.0 - 0.99**k) ** 0.5 / (1.0 - 0.9**k)
        policy = [
            x - scale * m / (jnp.sqrt(s) + 1e-10)
            for x, m, s in zip(policy, mean, square, strict=True)
        ]
    return policy


if __name__ == "__main__":
    main()
