"""How fast constrainedABA converges on redundant contacts: Sathya 2024, Fig. 4."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmark.robots import example_pairs
from rbda_ros import Contact, Robot
from rbda_ros.algorithms.contact_rows import ContactFrame, Proximal
from rbda_ros.kernels.trace import trace

FEET = ("left_sole_link", "right_sole_link")
CORNERS = [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.06, 0.06)]
WEIGHTS = (1e1, 1e2, 1e3, 1e4)
STATES, ITERATIONS = 1000, 10


def rows() -> Iterator[dict[str, object]]:
    """Residual after each iteration over random states, talos on eight points of two feet."""
    robot = next(pair.robot for pair in example_pairs() if pair.name == "talos_reduced")
    q, yd, tau = _states(robot)
    frames = []
    for contact in (Contact(foot, xyz) for foot in FEET for xyz in CORNERS):
        _, at = robot.body_frame((contact.link, contact.xyz))
        frames.append(ContactFrame(at.body, tuple(at.frame.p), (0, 1, 2), ()))
    axes = np.tile(np.eye(3).ravel(), (STATES, len(frames)))
    desired = np.zeros((STATES, 6 * len(frames)))
    for weight in WEIGHTS:
        proximal = Proximal(weight * robot.mass, 1)
        options = frames, proximal, "constrained_aba", False
        kernel = trace(robot.tree, "constrained_forward_dynamics", *options)
        kernel.compile(batch=True)
        along = np.zeros((STATES, 3 * len(frames)))
        for iteration in range(1, ITERATIONS + 1):
            _, _, along, health = kernel.batch(q, yd, tau, axes, desired, along)
            yield {
                "weight": weight,
                "iteration": iteration,
                "median": float(np.median(health[:, 0])),
                "largest": float(health[:, 0].max()),
            }


def _states(robot: Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random positions, velocities that leave the feet at rest, and forces."""
    rng = np.random.default_rng(0)
    q = np.array(
        [
            robot.tree.integrate(robot.tree.home, rng.uniform(-2.0, 2.0, robot.nv))
            for _ in range(STATES)
        ]
    )
    J = np.concatenate([robot.jacobian(q, foot) for foot in FEET], axis=1)
    yd = rng.normal(size=(STATES, robot.ny))
    moved = np.einsum("nij,nj->ni", J, yd)
    yd -= np.einsum("nij,nj->ni", np.linalg.pinv(J), moved)
    return q, yd, rng.normal(size=(STATES, robot.ny))


def plot(rows: list[dict[str, object]], path: Path) -> None:
    """Median and worst residual by iteration, a colour for each weight."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    for colour, weight in enumerate(WEIGHTS):
        of = [row for row in rows if row["weight"] == weight]
        steps = [row["iteration"] for row in of]
        label = f"mu = {weight:g} robot masses"
        axes.plot(steps, [row["largest"] for row in of], color=f"C{colour}", label=label)
        axes.plot(steps, [row["median"] for row in of], "--", color=f"C{colour}")
    axes.set(yscale="log", xlabel="iterations", ylabel="residual [m/s^2]")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, title=f"worst of {STATES} states; dashed: median", title_fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
