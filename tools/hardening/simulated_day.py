"""A day in the life of the simulated demo leg, at full speed: its memory must not grow.

    python -m tools.hardening.simulated_day [hours]

Random efforts push it, against its stops and through its dead points. Two minutes on one core.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rbda_ros import Simulator, load_robot

ROBOTS = Path(__file__).resolve().parents[2] / "config" / "robots"
HELD = 100
"""Steps of 1 ms with the same efforts."""


@dataclass(frozen=True)
class Day:
    """Result of a simulated day.

    Attributes:
        growth: of the memory in use, from a tenth of the time on [MB].
        gap: largest of the loops [m].
        finite: whether the state is.
    """

    growth: float
    gap: float
    finite: bool


def memory() -> float:
    """In use by this process [MB]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def simulated(hours: float, tell: Callable[[str], object] = lambda _: None) -> Day:
    """Simulate so many hours."""
    robot = load_robot(ROBOTS / "demo_leg.urdf", ROBOTS / "demo_leg_loops.yaml")
    sim, loops = Simulator(robot, 1e-3, threads=1), robot.kernel("loop_state")
    rng, motors = np.random.default_rng(0), len(robot.actuated_joint_names)
    count = round(hours * 3600.0 / (HELD * sim.dt))
    gap, settled, start = 0.0, 0.0, time.process_time()
    for k in range(count):
        sim.step(rng.normal(0.0, 1.0, motors), steps=HELD)
        gap = max(gap, float(np.abs(loops.call(sim.q)[0]).max()))
        if k == count // 10:
            settled = memory()
        if (k + 1) % max(count // 8, 1) == 0:
            tell(
                f"{sim.time / 3600.0:.2f} h, {memory():.1f} MB,"
                f" {time.process_time() - start:.0f} s of processor time, gap {gap:.0e} m"
            )
    return Day(memory() - settled, gap, bool(np.isfinite(sim.q).all()))


def main() -> int:
    """Simulate, and tell how it went; the exit code."""
    day = simulated(float(sys.argv[1]) if len(sys.argv) > 1 else 24.0, print)
    print(f"memory grew by {day.growth:.1f} MB, gap {day.gap:.0e} m")
    return 0 if day.growth < 1.0 and day.gap < 1e-9 and day.finite else 1


if __name__ == "__main__":
    sys.exit(main())
