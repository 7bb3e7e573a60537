"""Forward dynamics by MuJoCo's own mass matrix, bias and equality Jacobian, solved densely."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from rbda_ros import Robot
from rbda_ros.description.mjcf_compiler import Names
from rbda_ros.description.model import CutJoint

FREE, BALL = 0, 1


def mass_matrix(model: Any, data: Any) -> np.ndarray:
    """(nv, nv) MuJoCo's, whose function for it takes other arguments since version 4."""
    M = np.zeros((model.nv, model.nv))
    if int(mujoco.__version__.split(".")[0]) < 4:
        mujoco.mj_fullM(model, M, data.qM)
    else:
        mujoco.mj_fullM(model, data, M)
    return M


def _leave_out_springs_around_geoms(model: Any) -> None:
    """Of tendons that run around cylinders or spheres: we leave them out, with a warning."""
    around = {int(mujoco.mjtWrap.mjWRAP_SPHERE), int(mujoco.mjtWrap.mjWRAP_CYLINDER)}
    for t in range(model.ntendon):
        first = model.tendon_adr[t]
        if around.intersection(model.wrap_type[first : first + model.tendon_num[t]].tolist()):
            model.tendon_stiffness[t] = 0.0


class MujocoOracle:
    """The compiled model beside our robot.

    Args:
        model: mujoco.MjModel; contacts are switched off; of its passive forces, those of gravity
            compensation count, and those of springs but for tendons around geoms.
        robot: the same, loaded by us.
    """

    def __init__(self, model: Any, robot: Robot) -> None:
        self.model, self.robot, self.data = model, robot, mujoco.MjData(model)
        self.names = Names(model)
        self._idle = robot.tree.idle_locks
        self._locked = self._find_locked()
        _leave_out_springs_around_geoms(model)
        model.opt.gravity[:] = robot.tree.gravity
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)

    def _find_locked(self) -> dict[int, float]:
        """Joints that equalities lock, fixed in our robot; by how much from their reference."""
        model, found = self.model, {-1: 0.0}
        joints = [
            (int(model.eq_obj1id[e]), int(model.eq_obj2id[e]), model.eq_data[e][:5])
            for e in range(model.neq)
            if model.eq_active0[e] and model.eq_type[e] == int(mujoco.mjtEq.mjEQ_JOINT)
        ]
        for _ in joints:
            for first, second, powers in joints:
                if second in found and first not in found:
                    found[first] = float(np.polyval(powers[::-1], found[second]))
        return found

    def rows_at(self, q, qd) -> np.ndarray:
        """MuJoCo's equality Jacobian at our spanning position and velocity."""
        return self._rows(self.positions(q), self.velocity_map(q) @ qd)

    def accelerations(self, q, qd, tau, rows=slice(None)) -> np.ndarray:
        """qacc (nv,) of MuJoCo, from our spanning position, velocity and forces (nv,).

        With ``rows``, only these of its equalities hold.
        """
        model, data = self.model, self.data
        P = self.velocity_map(q)
        qpos, qvel = self.positions(q), P @ qd
        J = self._rows(qpos, qvel)[rows]
        bias = data.qfrc_bias - data.qfrc_spring - data.qfrc_gravcomp
        M = mass_matrix(model, data)
        h = 1e-5
        near = {s: self._rows(self._moved(qpos, qvel, s * h), qvel) for s in (-2, -1, 1, 2)}
        J_rate = ((8 * (near[1] - near[-1]) - (near[2] - near[-2])) / (12 * h))[rows]
        K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        # tau = P' of MuJoCo's forces, and P P' = 1.
        rhs = np.concatenate([P @ tau - bias, -J_rate @ qvel])
        scale = np.concatenate([1 / np.sqrt(np.diag(M)), np.ones(len(J))])
        solution = np.linalg.lstsq(K * scale[:, None] * scale, rhs * scale, rcond=1e-12)[0]
        return (solution * scale)[: model.nv]

    def ours(self, q, qd, qdd) -> np.ndarray:
        """Our spanning acceleration (nv,) in MuJoCo's coordinates."""
        P = self.velocity_map(q)
        acceleration = P @ qdd
        for j in range(self.model.njnt):
            if self.model.jnt_type[j] == FREE:  # MuJoCo differentiates the velocity in the world
                v, ours = self.model.jnt_dofadr[j], self._velocities(j)
                linear, angular = qd[ours.start : ours.start + 3], qd[ours.start + 3 : ours.stop]
                R = P[v : v + 3, ours.start : ours.start + 3]
                acceleration[v : v + 3] += R @ np.cross(angular, linear)
        return acceleration

    def positions(self, q) -> np.ndarray:
        """MuJoCo's qpos of our spanning position (nq,)."""
        qpos = self.model.qpos0.copy()
        for j in range(self.model.njnt):
            a = self.model.jnt_qposadr[j]
            if j in self._locked:
                qpos[a] += self._locked[j]
                continue
            x = q[self._positions(j).start : self._positions(j).stop]
            if self.model.jnt_type[j] == FREE:
                qpos[a : a + 7] = [*x[:3], x[6], *x[3:6]]
            elif self.model.jnt_type[j] == BALL:
                qpos[a : a + 4] = [x[3], *x[:3]]
            else:
                qpos[a] = x[0]
        return qpos

    def velocity_map(self, q) -> np.ndarray:
        """P (MuJoCo's nv, nv): our spanning velocities to qvel, which has no tendons."""
        P = np.zeros((self.model.nv, self.robot.nv))
        for j in range(self.model.njnt):
            if j in self._locked:
                continue
            v, ours = self.model.jnt_dofadr[j], self._velocities(j)
            P[v : v + len(ours), ours.start : ours.stop] = np.eye(len(ours))
            if self.model.jnt_type[j] == FREE:
                a = self.model.jnt_qposadr[j]
                R = np.zeros(9)
                mujoco.mju_quat2Mat(R, self.positions(q)[a + 3 : a + 7])
                P[v : v + 3, ours.start : ours.start + 3] = R.reshape(3, 3)
        return P

    def _positions(self, j: int) -> range:
        return self.robot.coordinates.positions[self.names.joint(j)]

    def _velocities(self, j: int) -> range:
        return self.robot.coordinates.velocities[self.names.joint(j)]

    def _moved(self, qpos, qvel, time: float) -> np.ndarray:
        moved = qpos.copy()
        mujoco.mj_integratePos(self.model, moved, qvel, time)
        return moved

    def _rows(self, qpos, qvel) -> np.ndarray:
        """Jacobian (ne, nv) of the equalities; also fills the data."""
        model, data = self.model, self.data
        data.qpos[:], data.qvel[:] = qpos, qvel
        mujoco.mj_forward(model, data)
        J = np.zeros((data.nefc, model.nv))
        if mujoco.mj_isSparse(model):
            mujoco.mju_sparse2dense(
                J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind
            )
        elif data.nefc:
            J = data.efc_J.reshape(data.nefc, model.nv).copy()
        return np.vstack([J[: data.ne], *(self._lock(each) for each in self._idle)])

    def _lock(self, lock: CutJoint) -> np.ndarray:
        """The row (1, nv) of an idle freedom that we freeze and MuJoCo does not know of."""
        axes, turns = [], []
        sides = ((lock.predecessor.link, lock.axis), (lock.successor.link, lock.second_axis))
        for link, axis in sides:
            body = next(i for i in range(self.model.nbody) if self.names.body(i) == link)
            turn = np.zeros((3, self.model.nv))
            mujoco.mj_jacBody(self.model, self.data, None, turn, body)
            axes.append(self.data.xmat[body].reshape(3, 3) @ axis)
            turns.append(turn)
        return np.cross(*axes)[None] @ (turns[1] - turns[0])
