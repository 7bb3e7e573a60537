"""Draw the pictures of docs/recordings.md and docs/fleet.md into docs/pictures.

python tools/draw_recordings.py
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rbda_ros import Payload, load_robot
from rbda_ros.demo.resources import share_file
from rbda_ros.examples import fleet_wear
from rbda_ros.recordings.excitation import Trajectory, excite
from rbda_ros.recordings.identification import identify_motions
from rbda_ros.recordings.identified_files import draw_fit
from rbda_ros.robot.effort_evidence import Motion

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
NOISE = 0.03  # of measured efforts [N m]


def draw_excitation(found: Trajectory) -> Any:
    """Positions and velocities of the joints."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3), layout="constrained")
    axes: Any = figure.subplots(1, 2)
    for axis, values, title in (
        (axes[0], found.position, "position [rad]"),
        (axes[1], found.velocity, "velocity [rad/s]"),
    ):
        axis.plot(found.times, values, label=found.joints)
        axis.set_title(title)
        axis.set_xlabel("time [s]")
    axes[0].legend(fontsize=8)
    return figure


def main() -> None:
    """Excite, identify, and look at a fleet; a minute or two."""
    urdf, loops = (share_file(f"config/robots/demo_leg{end}") for end in (".urdf", "_loops.yaml"))
    leg = load_robot(urdf, loops)
    motion = excite(leg, seconds=20.0, rate=100.0, tries=60)
    worn = urdf.read_text().replace(
        '<joint name="knee" type="revolute">',
        '<joint name="knee" type="revolute"><dynamics damping="0.4" friction="0.6"/>',
    )
    true = load_robot(worn, loops).with_payloads({"mud": Payload("foot", 0.3, (0.0, 0.0, -0.03))})
    q = leg.close(motion.position)
    efforts, _ = true.inverse_dynamics_efforts(
        q, motion.velocity, motion.acceleration, friction=True
    )
    efforts = efforts + NOISE * np.random.default_rng(0).normal(size=efforts.shape)
    measured = Motion.measured(motion.times, q, motion.velocity, efforts)
    found = identify_motions(leg, [measured], ("inertia", "friction"))
    for name, figure in (("excitation", draw_excitation(motion)), ("identified", draw_fit(found))):
        figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None})
    with tempfile.TemporaryDirectory() as scratch:
        fleet_wear.main(Path(scratch))
        shutil.copy(Path(scratch) / "fleet_wear.svg", PICTURES)


if __name__ == "__main__":
    main()
