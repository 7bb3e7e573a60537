"""The demo leg as an open chain, as a controller without loops would model it."""

from __future__ import annotations

import numpy as np
import yaml
from lxml import etree
from numpy.typing import ArrayLike

from rbda_ros import Robot, load_robot
from rbda_ros.demo.resources import share_file
from rbda_ros.spatial import Array

DEMO_ROBOT = "config/robots/demo_leg.urdf"
DEMO_LOOPS = "config/robots/demo_leg_loops.yaml"
DROPPED = ("ankle_pulley", "ankle_rod")
DRIVEN = {"ankle_pulley": "ankle"}  # what a rotor drives in the end, where that is another joint


class OpenChain:
    """The leg without rotors, pulley and rod, and with a gear where each motor was.

    Attributes:
        robot: the open chain.
        reflected_inertia: (joints,) ratio^2 times the inertia of each joint's rotor [kg m^2].
    """

    def __init__(self) -> None:
        urdf = etree.parse(share_file(DEMO_ROBOT)).getroot()
        for name in DROPPED:
            for path in (f"joint[@name='{name}']", f"link[@name='{name}_link']"):
                for element in urdf.findall(path):
                    urdf.remove(element)
        self.robot: Robot = load_robot(etree.tostring(urdf, encoding="unicode"))
        rotors = yaml.safe_load(share_file(DEMO_LOOPS).read_text())["rotors"]
        self._ratio: dict[str, tuple[int, float]] = {}
        self.reflected_inertia: Array = np.zeros(self.robot.ny)
        for name, rotor in rotors.items():
            k = self.robot.joint_names.index(DRIVEN.get(name, name))
            self._ratio[f"{name}_rotor"] = k, rotor["ratio"]
            self.reflected_inertia[k] = rotor["ratio"] ** 2 * rotor["inertia"]

    def torques(self, y: ArrayLike, yd: ArrayLike, ydd: ArrayLike) -> Array:
        """Torques on the joints (..., joints), by the plain RNEA [N m]."""
        return self.robot.inverse_dynamics(y, yd, ydd)

    def on_motors(self, torques: Array) -> dict[str, Array]:
        """Joint torques (..., joints) divided by the gear ratios: efforts by motor [N m]."""
        return {motor: torques[..., k] / ratio for motor, (k, ratio) in self._ratio.items()}
