"""Pinocchio as the oracle: the same URDF read by another library, states matched by name."""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path

import numpy as np
import pinocchio as pin

from rbda_ros import Robot


def example_robots() -> dict[str, Path]:
    """Every URDF of example-robot-data that Pinocchio reads, by file name."""
    found = [file for file in files("example-robot-data") or () if file.suffix == ".urdf"]
    robots = {file.stem: Path(str(file.locate())) for file in sorted(found, key=str)}
    return {name: path for name, path in robots.items() if _readable(path)}


def _readable(urdf: Path) -> bool:
    try:
        pin.buildModelFromUrdf(str(urdf))
    except ValueError:
        return False
    return True


class PinocchioOracle:
    """Pinocchio's model of a URDF, in the order of our vectors."""

    def __init__(self, urdf: Path, robot: Robot) -> None:
        root = (pin.JointModelFreeFlyer(),) if robot.floating_base else ()
        self.model = pin.buildModelFromUrdf(str(urdf), *root)
        self.data = self.model.createData()
        base = 1 if robot.floating_base else 0
        self.joints = [self.model.joints[i + 1] for i in range(base)]
        self.joints += [self.model.joints[self.model.getJointId(n)] for n in robot.joint_names]
        self.velocity_index = np.concatenate(
            [np.arange(j.idx_v, j.idx_v + j.nv) for j in self.joints] or [np.zeros(0, int)]
        )

    def position(self, q: np.ndarray) -> np.ndarray:
        """Our q as Pinocchio's: continuous joints become cosine and sine."""
        theirs, start = pin.neutral(self.model), 0
        for joint in self.joints:
            size = 1 if joint.nv == 1 else joint.nq
            part = q[start : start + size]
            unbounded = joint.nv == 1 and joint.nq == 2
            theirs[joint.idx_q : joint.idx_q + joint.nq] = (
                [np.cos(part[0]), np.sin(part[0])] if unbounded else part
            )
            start += size
        return theirs

    def velocity(self, qd: np.ndarray) -> np.ndarray:
        """Our qd, or acceleration, as Pinocchio's."""
        theirs = np.zeros(self.model.nv)
        theirs[self.velocity_index] = qd
        return theirs

    def rnea(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Inverse dynamics of the spanning tree (nv,), in our order."""
        tau = pin.rnea(
            self.model, self.data, self.position(q), self.velocity(qd), self.velocity(qdd)
        )
        return tau[self.velocity_index]


def random_state(robot: Robot, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Closed q (nq), consistent qd (nv) and independent ydd (ny), with entries of order one."""
    y = rng.uniform(-2.0, 2.0, robot.nq - (robot.nv - robot.ny))
    if robot.floating_base:
        y[3:7] /= np.linalg.norm(y[3:7])
    q = robot.close(y)
    return q, robot.spanning_velocity(q, rng.normal(size=robot.ny)), rng.normal(size=robot.ny)


def explicit_jacobian(robot: Robot, q: np.ndarray) -> np.ndarray:
    """G (nv, ny) at q."""
    return np.array([robot.spanning_velocity(q, e) for e in np.eye(robot.ny)]).T
