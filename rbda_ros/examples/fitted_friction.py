"""Friction of an ankle's joints from a recording of its efforts, by gradient descent.

    python -m rbda_ros.examples.fitted_friction

The idea: ``Robot.jax("inverse_dynamics", parameters=True)`` has derivatives with respect to every
parameter, friction and damping included, through the regressor. So parameters are fitted as any
others that a learner has. Here the recording is made up, with noise. Needs JAX (extra ``jax``).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbda_ros import load_robot
from rbda_ros.examples.optimal_motion import ANKLE, ANKLE_LOOPS

MOTORS = ("left_motor", "right_motor")
DAMPING, FRICTION = (0.05, 0.08), (0.3, 0.2)
NOISE = 0.02  # [N m]


def main(samples: int = 500, iterations: int = 300) -> dict[str, tuple[float, float]]:
    """Print the fit; returns fitted and true value by name [N m s/rad, N m]."""
    jax.config.update("jax_enable_x64", True)
    ankle = load_robot(ANKLE, ANKLE_LOOPS)
    known = ankle.parameters()
    names = [f"{motor}.{kind}" for kind in ("damping", "friction") for motor in MOTORS]
    places = jnp.array([known.names.index(name) for name in names])
    truth = jnp.array([*DAMPING, *FRICTION])
    inverse_dynamics = ankle.jax("inverse_dynamics", parameters=True)
    time = np.linspace(0.0, 10.0, samples)[:, None]
    pace, phase = np.array([2.0, 3.1]), np.array([0.0, 0.7])
    y = 0.3 * np.sin(pace * time + phase)
    yd, ydd = 0.3 * pace * np.cos(pace * time + phase), -(pace**2) * y
    motion = jnp.array(y), jnp.array(yd), jnp.array(ydd)

    def force(values: Any) -> Any:
        return inverse_dynamics(*motion, jnp.array(known.values).at[places].set(values))

    rng = np.random.default_rng(0)
    recorded = force(truth) + NOISE * rng.normal(size=y.shape)
    gradient = jax.jit(jax.grad(lambda values: jnp.mean((force(values) - recorded) ** 2)))
    curvature = jnp.diag(jax.jacobian(gradient)(jnp.zeros(len(names))))
    values = jnp.zeros(len(names))
    for _ in range(iterations):
        values = values - 0.5 * gradient(values) / curvature
    for name, value, true in zip(names, values, truth, strict=True):
        print(f"{name:>22} {value:.4f}, true {true:.4f}")
    fitted = zip(names, zip(map(float, values), map(float, truth), strict=True), strict=True)
    return dict(fitted)


if __name__ == "__main__":
    main()
