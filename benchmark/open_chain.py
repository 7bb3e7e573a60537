"""Effect of the loops on torques: the demo leg exactly, and as an open chain.

    python -m benchmark.open_chain

After Chignoli 2024, Fig. 13. Three models of one leg, at the same motion:

* exact: with its rotors, belts and linkage;
* open chain: without rotors, pulley and rod;
* reflected: the open chain, with ratio^2 times a rotor's inertia added about the joint it drives.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rbda_ros import load_robot
from rbda_ros.demo.open_chain import DEMO_LOOPS, DEMO_ROBOT, OpenChain
from rbda_ros.demo.resources import share_file

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "open_chain.svg"

MIDDLE = np.array([0.0, 0.3, 0.9, 0.0])  # hip abduction, hip flexion, knee, ankle [rad]
AMPLITUDE = 0.4  # [rad]
PACE = 10.0  # [rad/s]
MODELS = ("exact", "open chain", "reflected")


@dataclass(frozen=True)
class Comparison:
    """Torques along one swing.

    Attributes:
        t: (N,) [s].
        joints: of each model, by joint: torque (N,) [N m].
        motors: exact efforts, and exact torques of the joints over the gear ratios, by motor.
    """

    t: np.ndarray
    joints: dict[str, dict[str, np.ndarray]]
    motors: dict[str, dict[str, np.ndarray]]

    def lines(self) -> list[str]:
        """How far from exact, one line a joint."""
        lines = []
        for joint, exact in self.joints["exact"].items():
            off = [f"{m} {_apart(self.joints[m][joint], exact)}" for m in MODELS[1:]]
            lines.append(f"{joint}: {', '.join(off)}")
        for motor in ("knee_rotor", "ankle_pulley_rotor"):
            off = _apart(self.motors["divided"][motor], self.motors["exact"][motor])
            lines.append(f"{motor}: exact torque of its joint over the gear ratio {off}")
        return lines


def _apart(values: np.ndarray, exact: np.ndarray) -> str:
    """Root mean square of the difference, and its share of the largest exact value."""
    rms = np.sqrt(np.mean((values - exact) ** 2))
    return f"{rms:.2g} N m ({rms / np.abs(exact).max():.0%})"


def compare(count: int = 400) -> Comparison:
    """Swing all joints once, like sines, and ask the three models for torques."""
    leg, chain = load_robot(share_file(DEMO_ROBOT), share_file(DEMO_LOOPS)), OpenChain()
    names = chain.robot.joint_names
    assert names == leg.independent_joint_names
    t = np.linspace(0.0, 2 * np.pi / PACE, count)
    swing = AMPLITUDE * np.sin(PACE * t)[:, None] * np.ones(len(names))
    speed = AMPLITUDE * PACE * np.cos(PACE * t)[:, None] * np.ones(len(names))
    q, ydd = leg.close(MIDDLE + swing), -(PACE**2) * swing
    exact = leg.inverse_dynamics(q, speed, ydd)
    alone = chain.torques(MIDDLE + swing, speed, ydd)
    torques = (exact, alone, alone + chain.reflected_inertia * ydd)
    efforts = dict(zip(leg.actuated_joint_names, leg.actuator_efforts(q, exact).T, strict=True))
    return Comparison(
        t,
        {m: dict(zip(names, tau.T, strict=True)) for m, tau in zip(MODELS, torques, strict=True)},
        {"exact": efforts, "divided": chain.on_motors(exact)},
    )


def plot(comparison: Comparison, path: Path) -> None:
    """Draw knee and ankle side by side."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "rbda_ros"  # the same picture, the same bytes
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axis, joint in zip(axes, ("knee", "ankle"), strict=True):
        for model, style in zip(MODELS, ("-", ":", "--"), strict=True):
            axis.plot(comparison.t, comparison.joints[model][joint], style, label=model)
        axis.set(title=joint, xlabel="time [s]", ylabel="torque [N m]")
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    comparison = compare()
    print("\n".join(comparison.lines()))
    plot(comparison, PICTURE)
    print(f"wrote {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
