"""Pinocchio as the oracle: the same robot in another library, states matched by name."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from rbda_ros import Robot, load_robot
from rbda_ros.description.model import Inertia, Joint, Pose, RobotDescription
from rbda_ros.robot.inputs import FrameName


@functools.cache
def example_robots() -> dict[str, Path]:
    """Every URDF of example-robot-data that Pinocchio reads, by file name."""
    found = [file for file in files("example-robot-data") or () if file.suffix == ".urdf"]
    robots = {file.stem: Path(str(file.locate())) for file in sorted(found, key=str)}
    return {name: path for name, path in robots.items() if _readable(path)}


VARIANTS = {
    "alex_psyonic_hands", "alex_sake_hands", "double_pendulum_continuous", "g1_29dof_rev_1_0",
    "icub_reduced", "iris_simple", "panda_collision", "romeo_small", "simple_humanoid_classical",
    "talos_full_v2_box", "talos_reduced", "talos_reduced_box", "talos_reduced_corrected", "tiago",
    "tiago_no_hand", "ur10_joint_limited_robot", "ur3_joint_limited_robot",
    "ur5_joint_limited_robot",
}  # fmt: skip
"""Robots that differ from others in hands, limits or shapes alone."""


def distinct_robots() -> dict[str, Path]:
    """The example robots without variants: for what costs more than a trace."""
    return {name: path for name, path in example_robots().items() if name not in VARIANTS}


def floating_robots() -> list[Any]:
    """Every robot with a floating base, for ``pytest.mark.parametrize``; variants at night."""
    return [
        pytest.param(name, True, marks=[pytest.mark.nightly] * (name in VARIANTS))
        for name in example_robots()
    ]


BY_DAY = {
    "g1_29dof_rev_1_0", "go2", "icub", "panda", "solo12", "talos_full_v2", "tiago_dual",
    "tiago_pro", "ur5_robot",
}  # fmt: skip
"""Robots that differ most: RNEA and ABA run over all that float, and what follows over these."""


def some_by_day(names: Iterable[str], floating_base: bool) -> list[Any]:
    """Robots for ``pytest.mark.parametrize``; most of them at night."""
    return [
        pytest.param(name, floating_base, marks=[pytest.mark.nightly] * (name not in BY_DAY))
        for name in names
    ]


def _readable(urdf: Path) -> bool:
    try:
        pin.buildModelFromUrdf(str(urdf))
    except ValueError:
        return False
    return True


def spanning_model(description: RobotDescription, floating_base: bool) -> pin.Model:
    """Pinocchio's model of a described spanning tree, with rotors and screws, without loops.

    Pinocchio's URDF reader knows neither of them, so the joints are added one by one.
    """
    model = pin.Model()
    children: dict[str, list[Joint]] = {}
    for joint in description.joints:
        children.setdefault(joint.parent, []).append(joint)
    inertia = {link.name: link.inertia for link in description.links}

    def add(link: str, joint_id: int, placement: pin.SE3) -> None:
        if inertia[link] is not None:
            model.appendBodyToJoint(joint_id, _inertia(inertia[link]), placement)
        model.addBodyFrame(link, joint_id, placement, 0)
        for joint in children.get(link, []):
            at = placement * se3(joint.origin)
            if joint.type == "fixed":
                add(joint.child, joint_id, at)
            else:
                moved = model.addJoint(joint_id, _joint_model(joint), at, joint.name)
                add(joint.child, moved, pin.SE3.Identity())

    root = 0
    if floating_base:
        root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
    add(description.root, root, pin.SE3.Identity())
    return model


def se3(pose: Pose) -> pin.SE3:
    return pin.SE3(pin.rpy.rpyToMatrix(*pose.rpy), np.array(pose.xyz))


def _inertia(i: Inertia) -> pin.Inertia:
    about_com = np.array([[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]])
    place = se3(i.origin)
    return pin.Inertia(i.mass, place.translation, place.rotation @ about_com @ place.rotation.T)


def _joint_model(joint: Joint) -> pin.JointModel:
    axis = np.array(joint.axis)
    match joint.type:
        case "revolute" | "continuous":
            return pin.JointModelRevoluteUnaligned(axis)
        case "prismatic":
            return pin.JointModelPrismaticUnaligned(axis)
        case "helical":
            return pin.JointModelHelicalUnaligned(axis, joint.pitch)
        case "spherical":
            return pin.JointModelSpherical()
        case "floating":
            return pin.JointModelFreeFlyer()
        case "planar":  # Pinocchio's own has its velocity in the body's axes
            assert np.array_equal(axis, [0, 0, 1])
            composite = pin.JointModelComposite(pin.JointModelPX())
            composite.addJoint(pin.JointModelPY())
            composite.addJoint(pin.JointModelRZ())
            return composite
    raise NotImplementedError(joint.type)


class PinocchioOracle:
    """Pinocchio's model of a spanning tree; vectors in our order, matrices (nv, nv) too.

    Args:
        source: a URDF that Pinocchio reads, or a model.
        robot: whose order is ours.
    """

    def __init__(self, source: Path | pin.Model, robot: Robot) -> None:
        root = (pin.JointModelFreeFlyer(),) if robot.floating_base else ()
        self.model = source
        if not isinstance(source, pin.Model):
            self.model = pin.buildModelFromUrdf(str(source), *root)
        self.model.gravity.linear = np.array(robot.tree.gravity)
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
        """Our qd, acceleration or force as Pinocchio's."""
        theirs = np.zeros(self.model.nv)
        theirs[self.velocity_index] = qd
        return theirs

    def rnea(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Inverse dynamics of the spanning tree (nv,)."""
        tau = pin.rnea(
            self.model, self.data, self.position(q), self.velocity(qd), self.velocity(qdd)
        )
        return tau[self.velocity_index]

    def bias(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """C of the spanning tree (nv,)."""
        return self.rnea(q, qd, np.zeros(len(self.velocity_index)))

    def aba(self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Forward dynamics of the spanning tree (nv,)."""
        qdd = pin.aba(
            self.model, self.data, self.position(q), self.velocity(qd), self.velocity(tau)
        )
        return qdd[self.velocity_index]

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """H of the spanning tree (nv, nv)."""
        H = np.triu(pin.crba(self.model, self.data, self.position(q)))
        H = H + np.triu(H, 1).T
        return H[np.ix_(self.velocity_index, self.velocity_index)]

    def frame(self, frame: FrameName) -> tuple[int, pin.SE3]:
        """Pinocchio's number of a link's frame, and the offset on it."""
        link, *offset = (frame,) if isinstance(frame, str) else frame
        xyz, rpy = (*offset, (0, 0, 0), (0, 0, 0))[:2]
        return self.model.getFrameId(link, pin.BODY), se3(Pose(tuple(xyz), tuple(rpy)))

    def frame_pose(self, q: np.ndarray, frame: FrameName) -> np.ndarray:
        """(4, 4) in the world."""
        number, offset = self.frame(frame)
        pin.framesForwardKinematics(self.model, self.data, self.position(q))
        return (self.data.oMf[number] * offset).homogeneous

    def jacobian(self, q: np.ndarray, frame: FrameName) -> np.ndarray:
        """(6, nv), world-aligned at the frame's origin, linear first."""
        number, offset = self.frame(frame)
        pin.computeJointJacobians(self.model, self.data, self.position(q))
        pin.updateFramePlacements(self.model, self.data)
        J = pin.getFrameJacobian(
            self.model, self.data, number, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )
        lever = self.data.oMf[number].rotation @ offset.translation
        shift = np.eye(6)
        shift[:3, 3:] = -pin.skew(lever)
        return (shift @ J)[:, self.velocity_index]

    def frame_acceleration(
        self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, frame: FrameName
    ) -> np.ndarray:
        """(6,) of the frame's origin, then angular, in world axes."""
        number, offset = self.frame(frame)
        motion = self.position(q), self.velocity(qd), self.velocity(qdd)
        pin.forwardKinematics(self.model, self.data, *motion)
        pin.updateFramePlacements(self.model, self.data)
        aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        at_link = pin.getFrameClassicalAcceleration(self.model, self.data, number, aligned)
        w = pin.getFrameVelocity(self.model, self.data, number, aligned).angular
        lever = self.data.oMf[number].rotation @ offset.translation
        linear = at_link.linear + np.cross(at_link.angular, lever) + np.cross(w, np.cross(w, lever))
        return np.concatenate([linear, at_link.angular])

    # Quantities of the whole robot, of the spanning tree.

    def center_of_mass(self, q: np.ndarray) -> np.ndarray:
        """(3,) in the world."""
        return pin.centerOfMass(self.model, self.data, self.position(q)).copy()

    def center_of_mass_jacobian(self, q: np.ndarray) -> np.ndarray:
        """(3, nv)."""
        J = pin.jacobianCenterOfMass(self.model, self.data, self.position(q))
        return J[:, self.velocity_index]

    def center_of_mass_acceleration(
        self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray
    ) -> np.ndarray:
        """(3,) in the world, without gravity."""
        motion = self.position(q), self.velocity(qd), self.velocity(qdd)
        pin.centerOfMass(self.model, self.data, *motion)
        return self.data.acom[0].copy()

    def centroidal_momentum_matrix(self, q: np.ndarray) -> np.ndarray:
        """(6, nv), linear first, about the centre of mass."""
        return pin.computeCentroidalMap(self.model, self.data, self.position(q))[
            :, self.velocity_index
        ]

    def centroidal_momentum(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """(6,), linear first, about the centre of mass."""
        motion = self.position(q), self.velocity(qd)
        return pin.computeCentroidalMomentum(self.model, self.data, *motion).vector

    def centroidal_momentum_rate(
        self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray
    ) -> np.ndarray:
        """(6,), linear first, about the centre of mass."""
        motion = self.position(q), self.velocity(qd), self.velocity(qdd)
        return pin.computeCentroidalMomentumTimeVariation(self.model, self.data, *motion).vector

    def energy(self, q: np.ndarray, qd: np.ndarray) -> tuple[float, float]:
        """Kinetic, and potential of gravity."""
        motion = self.position(q), self.velocity(qd)
        kinetic = pin.computeKineticEnergy(self.model, self.data, *motion)
        return kinetic, pin.computePotentialEnergy(self.model, self.data, motion[0])

    def coriolis_matrix(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """C (nv, nv)."""
        motion = self.position(q), self.velocity(qd)
        C = pin.computeCoriolisMatrix(self.model, self.data, *motion)
        return C[np.ix_(self.velocity_index, self.velocity_index)]

    def integrate(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Pinocchio's position, reached from ours."""
        return pin.integrate(self.model, self.position(q), self.velocity(step))

    def difference(self, q: np.ndarray, q1: np.ndarray) -> np.ndarray:
        """(nv,) from our q to our q1."""
        step = pin.difference(self.model, self.position(q), self.position(q1))
        return step[self.velocity_index]


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


def assert_close(actual: np.ndarray, expected: np.ndarray, relative: float, size: float = 1.0):
    """Every entry right to a share of the largest one.

    Entries that should be zero are judged against the others; where all of them are small,
    against ``size`` in SI units.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    tolerance = relative * np.abs(expected).max(initial=size)
    np.testing.assert_allclose(actual, expected, 0, tolerance)


@functools.cache
def example_robot(name: str, floating_base: bool) -> tuple[Robot, PinocchioOracle]:
    """A robot of example-robot-data and its oracle; loaded once for all tests, which keep it."""
    urdf = example_robots()[name]
    robot = load_robot(urdf, floating_base=floating_base)
    return robot, PinocchioOracle(urdf, robot)
