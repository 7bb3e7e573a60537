"""Forward dynamics of a robot that we wrote as MJCF, from MuJoCo's own matrices, solved densely."""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco_oracle import MujocoOracle, mass_matrix

from rbda_ros import Robot
from rbda_ros.exports import MjcfExport

DIFFERENCES = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
STEP = 2e-3


class MjcfOracle(MujocoOracle):
    """The written model in MuJoCo.

    Args:
        robot: that was written.
        export: what was written.
    """

    def __init__(self, robot: Robot, export: MjcfExport) -> None:
        super().__init__(mujoco.MjModel.from_xml_string(export.text), robot)
        self.export = export
        self.model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE

    def positions(self, q) -> np.ndarray:
        """MuJoCo's qpos of our spanning position (nq,)."""
        return self.export.qpos(q)

    def residual(self, q) -> float:
        """How far MuJoCo's equalities are from holding at our position."""
        self._rows(self.positions(q), np.zeros(self.model.nv))
        return float(np.abs(self.data.efc_pos[: self.data.ne]).max(initial=0.0))

    def known(self, q) -> tuple[np.ndarray, np.ndarray]:
        """P (MuJoCo's nv, nv) of the joints that both have, and which of MuJoCo's these are."""
        model, layout = self.model, self.robot.coordinates
        P, known = np.zeros((model.nv, self.robot.nv)), np.zeros(model.nv, bool)
        for j, entry in enumerate(self.export._entries):
            if entry.place is not None or entry.factor != 1.0:
                continue
            owner = next(n for n, place in layout.positions.items() if entry.start in place)
            offset = entry.start - layout.positions[owner].start
            ours, v = layout.velocities[owner], int(model.jnt_dofadr[j])
            if len(ours) < 6:
                size = 3 if entry.size == 4 else 1
                block, at = np.eye(size), ours.start + offset
            else:  # the linear velocity in the parent's axes, the angular one in the child's
                x = q[layout.positions[owner].start :][3:7]
                R = np.zeros(9)
                mujoco.mju_quat2Mat(R, np.array([x[3], *x[:3]]))
                whole = np.eye(6)
                whole[:3, :3] = R.reshape(3, 3)
                first, size = {7: (0, 6), 4: (3, 3), 1: (offset, 1)}[entry.size]
                block, at = whole[first : first + size], ours.start
            P[v : v + len(block), at : at + block.shape[1]] = block
            known[v : v + len(block)] = True
        return P, known

    def accelerations(self, q, qd, tau, rows=slice(None)) -> np.ndarray:
        """qacc (nv,) of MuJoCo, from our spanning position, velocity and forces (nv,)."""
        model, data = self.model, self.data
        P, known = self.known(q)
        qpos, qvel = self.positions(q), P @ qd
        J = self._rows(qpos, qvel)
        others = np.linalg.lstsq(J[:, ~known], -J @ qvel, rcond=None)[0]
        qvel[~known] = others
        self.unheld = float(np.abs(J @ qvel).max(initial=0.0))
        J = self._rows(qpos, qvel)
        bias = data.qfrc_bias - data.qfrc_spring - data.qfrc_gravcomp
        M = mass_matrix(model, data)
        rate = np.zeros_like(J)
        for steps, weight in DIFFERENCES.items():
            for sign in (1, -1):
                moved = self._moved(qpos, qvel, sign * steps * STEP)
                rate += sign * weight / STEP * self._rows(moved, qvel)
        _, s, Vt = np.linalg.svd(J)
        rank = int(np.sum(s > 1e-9 * max(1.0, s.max(initial=0.0))))
        N = Vt[rank:].T
        particular = np.linalg.pinv(J, rcond=1e-9) @ (-rate @ qvel)
        force = P @ tau - bias - M @ particular
        return particular + N @ np.linalg.solve(N.T @ M @ N, N.T @ force)

    def ours(self, q, qd, qdd) -> np.ndarray:
        """Our spanning acceleration (nv,) in those coordinates of MuJoCo's that both have."""
        P, _ = self.known(q)
        acceleration = P @ qdd
        for place in self.robot.coordinates.velocities.values():
            if len(place) == 6:
                linear, angular = qd[place.start :][:3], qd[place.start :][3:6]
                turned = np.zeros(self.robot.nv)
                turned[place.start : place.start + 3] = np.cross(angular, linear)
                acceleration += P @ turned
        return acceleration

    def error(self, q, yd, tau) -> float:
        """Share by which our accelerations differ from MuJoCo's."""
        qd = self.robot.spanning_velocity(q, yd)
        ydd = self.robot.forward_dynamics(q, yd, tau)
        qdd = self.robot.spanning_acceleration(q, yd, ydd)
        _, known = self.known(q)
        expected = self.accelerations(q, qd, tau)[known]
        found = self.ours(q, qd, qdd)[known]
        return float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max()))
