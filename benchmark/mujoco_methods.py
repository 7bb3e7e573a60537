"""MuJoCo's dynamics of a robot with a fixed base, from the same URDF."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import lxml.etree
import mujoco
import numpy as np


def mujoco_calls(urdf: str, states: int) -> dict[str, list[Callable[[], object]]]:
    """Inverse and forward dynamics at random states, by the name of the method beside them.

    Args:
        urdf: the text.
        states: how many.
    """
    robot = lxml.etree.fromstring(urdf.encode())
    # No contacts, and no meshes to look for.
    lxml.etree.strip_elements(robot, "visual", "collision", with_tail=False)
    model = mujoco.MjModel.from_xml_string(lxml.etree.tostring(robot, encoding="unicode"))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)

    def inverse(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> object:
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        return mujoco.mj_inverse(model, data)

    def forward(q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> object:
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, qd, tau
        return mujoco.mj_forward(model, data)

    given = [tuple(rng.normal(0.0, 0.3, size=(3, model.nv))) for _ in range(states)]
    return {
        "inverse_dynamics": [partial(inverse, *state) for state in given],
        "forward_dynamics": [partial(forward, *state) for state in given],
    }
