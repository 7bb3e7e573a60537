"""USD: the same dynamics as our own files of the same mechanism, in any units, whatever is up."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from mechanism_table import MECHANISMS, Mechanism
from scipy.spatial.transform import Rotation
from sdf_writer import placed

from rbda_ros import DescriptionError, Robot, load_robot
from rbda_ros.description import read_description
from rbda_ros.description.model import CutJoint

pxr = pytest.importorskip("pxr")
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics  # noqa: E402

CUTS = {
    "revolute": "Revolute",
    "prismatic": "Prismatic",
    "spherical": "Spherical",
    "fixed": "Fixed",
}
JOINTS = CUTS | {"continuous": "Revolute"}


def quaternion(R: np.ndarray, kind=Gf.Quatf):
    x, y, z, w = Rotation.from_matrix(R).as_quat()
    return kind(float(w), float(x), float(y), float(z))


class UsdWriter:
    """Writes one robot at its assembly; each joint's frames are somewhere else on its bodies."""

    def __init__(self, robot: Robot, path, up: str = "Z", metres: float = 1.0, grams=False) -> None:
        self.robot, self.metres = robot, metres
        self.kilograms = 1e-3 if grams else 1.0
        self.stage = Usd.Stage.CreateNew(str(path))
        UsdGeom.SetStageUpAxis(self.stage, up)
        UsdGeom.SetStageMetersPerUnit(self.stage, metres)
        UsdPhysics.SetStageKilogramsPerUnit(self.stage, self.kilograms)
        self.stage.SetDefaultPrim(UsdGeom.Xform.Define(self.stage, "/robot").GetPrim())
        self.lie = np.eye(4)  # from a world with z up to the stage's
        if up == "Y":
            self.lie[:3, :3] = [[1, 0, 0], [0, 0, 1], [0, -1, 0]]
        home, description = robot.tree.home, robot.description
        self.at = {link.name: robot.frame_pose(home, link.name) for link in description.links}
        for link in description.links:
            self.link(link)
        turn = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], dtype=float)
        for i, joint in enumerate(description.joints):
            # The frame that the joint moves is the child's; the axis is one of the frame's own.
            frame = placed([0, 0, 0], [0, 0, 0])
            if joint.type != "spherical":  # whose position is in its frame's axes
                frame[:3, :3] = self.onto_z(joint.axis) @ np.linalg.matrix_power(turn, i % 3)
            axis = "ZYX"[i % 3]
            origin = placed(joint.origin.xyz, joint.origin.rpy)
            self.joint(joint.name, JOINTS[joint.type], axis, joint.parent, origin @ frame,
                       joint.child, frame, False)  # fmt: skip
        for cut in description.constraints:
            if cut.type not in CUTS:  # what loading adds for rods that spin
                continue
            frames = []
            for end in (cut.predecessor, cut.successor):
                frame = np.eye(4)
                frame[:3, :3] = self.onto_z(cut.axis)
                frames.append(placed(end.origin.xyz, end.origin.rpy) @ frame)
            self.joint(cut.name, CUTS[cut.type], "Z", cut.predecessor.link, frames[0],
                       cut.successor.link, frames[1], True)  # fmt: skip
        self.joint("to_world", "Fixed", "X", None, self.at[description.root],
                   description.root, np.eye(4), False)  # fmt: skip
        self.stage.GetRootLayer().Save()

    def onto_z(self, axis) -> np.ndarray:
        """Axes whose z is the one given."""
        z = np.array(axis)
        x = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
        x /= np.linalg.norm(x)
        return np.column_stack([x, np.cross(z, x), z])

    def link(self, link) -> None:
        xform = UsdGeom.Xform.Define(self.stage, f"/robot/{link.name}")
        T = self.lie @ self.at[link.name]
        T[:3, 3] /= self.metres
        xform.AddTransformOp().Set(Gf.Matrix4d(T.T))
        UsdPhysics.RigidBodyAPI.Apply(xform.GetPrim())
        mass = UsdPhysics.MassAPI.Apply(xform.GetPrim())
        i = link.inertia
        unit = self.kilograms * self.metres**2
        mass.CreateMassAttr((i.mass if i else 1e-12) / self.kilograms)
        tensor = np.eye(3) * 1e-15
        com = placed([0, 0, 0], [0, 0, 0])
        if i:
            com = placed(i.origin.xyz, i.origin.rpy)
            tensor = np.array([[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]])
        moments, axes = np.linalg.eigh(tensor)
        axes[:, 0] *= np.sign(np.linalg.det(axes))
        mass.CreateCenterOfMassAttr(Gf.Vec3f(*map(float, com[:3, 3] / self.metres)))
        mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*map(float, moments / unit)))
        mass.CreatePrincipalAxesAttr(quaternion(com[:3, :3] @ axes))

    def joint(self, name, kind, axis, parent, outer, child, inner, excluded) -> None:
        joint = getattr(UsdPhysics, f"{kind}Joint").Define(self.stage, f"/robot/{name}")
        if kind in ("Revolute", "Prismatic"):
            joint.CreateAxisAttr(axis)
        if parent is not None:
            joint.CreateBody0Rel().SetTargets([Sdf.Path(f"/robot/{parent}")])
        else:
            outer = self.lie @ outer
        joint.CreateBody1Rel().SetTargets([Sdf.Path(f"/robot/{child}")])
        for number, frame in ((0, outer), (1, inner)):
            position = Gf.Vec3f(*map(float, frame[:3, 3] / self.metres))
            getattr(joint, f"CreateLocalPos{number}Attr")(position)
            getattr(joint, f"CreateLocalRot{number}Attr")(quaternion(frame[:3, :3]))
        joint.CreateExcludeFromArticulationAttr(excluded)


def in_usd(mechanism: Mechanism) -> bool:
    described = read_description(mechanism.urdf, mechanism.loops)
    return all(isinstance(c, CutJoint) and c.type in CUTS for c in described.constraints) and all(
        joint.type in JOINTS for joint in described.joints
    )


SPINS = "ball_joint_loop"
"""Its rod turns freely; what holds that turn is chosen by the frames of the file."""


@pytest.mark.parametrize(
    "name", [name for name, m in MECHANISMS.items() if in_usd(m) and name != SPINS]
)
def test_dynamics_are_those_of_our_files(name, tmp_path):
    """Mass properties and frames are single precision in USD: 1e-7 of everything."""
    mechanism = MECHANISMS[name]
    ours = load_robot(mechanism.urdf, mechanism.loops)
    path = tmp_path / "robot.usda"
    UsdWriter(ours, path, *(("Y", 0.01, True) if len(name) % 2 else ()))
    theirs = load_robot(path)
    assert sorted(theirs.joint_names) == sorted(ours.joint_names)
    layout, own = theirs.tree.coordinates, ours.tree.coordinates
    rng = np.random.default_rng(0)
    q = ours.tree.home
    yd, tau = rng.normal(size=ours.ny), rng.normal(size=ours.nv)
    order = np.concatenate([[*own.velocities[joint]] for joint in layout.velocities])
    there = np.concatenate([q[list(own.positions[joint])] for joint in layout.positions])
    there = theirs.close(there, there)
    np.testing.assert_allclose(theirs.tree.home, there, atol=1e-5)  # as the stage draws it
    their_yd = ours.spanning_velocity(q, yd)[order][list(theirs.tree.independent)]
    expected = ours.spanning_acceleration(q, yd, ours.forward_dynamics(q, yd, tau))[order]
    ydd = theirs.forward_dynamics(there, their_yd, tau[order])
    found = theirs.spanning_acceleration(there, their_yd, ydd)
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())


def pendulum(path, up="Z", change=lambda stage: None):
    """A base and an arm 0.5 m from its hinge, which is horizontal."""
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, up)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    for name in ("base", "arm"):
        prim = UsdGeom.Xform.Define(stage, f"/{name}")
        UsdPhysics.RigidBodyAPI.Apply(prim.GetPrim())
        mass = UsdPhysics.MassAPI.Apply(prim.GetPrim())
        mass.CreateMassAttr(2.0)
        mass.CreateCenterOfMassAttr(Gf.Vec3f(0.5, 0, 0) if name == "arm" else Gf.Vec3f(0, 0, 0))
        mass.CreateDiagonalInertiaAttr(Gf.Vec3f(0.1, 0.1, 0.1))
    hinge = UsdPhysics.RevoluteJoint.Define(stage, "/hinge")
    hinge.CreateBody0Rel().SetTargets([Sdf.Path("/base")])
    hinge.CreateBody1Rel().SetTargets([Sdf.Path("/arm")])
    hinge.CreateAxisAttr("Z" if up == "Y" else "Y")
    hinge.CreateLowerLimitAttr(-90.0)
    hinge.CreateUpperLimitAttr(45.0)
    fixed = UsdPhysics.FixedJoint.Define(stage, "/fixed")
    fixed.CreateBody1Rel().SetTargets([Sdf.Path("/base")])
    change(stage)
    stage.GetRootLayer().Save()
    return load_robot(path)


@pytest.mark.parametrize(("up", "sign"), [("Z", -1.0), ("Y", 1.0)])
def test_gravity_is_along_the_up_axis(tmp_path, up, sign):
    robot = pendulum(tmp_path / "p.usda", up)
    assert robot.gravity_force([0.3])[0] == pytest.approx(sign * 2.0 * 9.81 * 0.5 * np.cos(0.3))
    (hinge,) = [joint for joint in robot.description.joints if joint.name == "hinge"]
    assert (hinge.limits.lower, hinge.limits.upper) == pytest.approx((-np.pi / 2, np.pi / 4))


def test_a_body_without_gravity_has_no_weight(tmp_path):
    def change(stage):
        arm = stage.GetPrimAtPath("/arm")
        arm.CreateAttribute("physxRigidBody:disableGravity", Sdf.ValueTypeNames.Bool).Set(True)

    robot = pendulum(tmp_path / "p.usda", change=change)
    assert robot.gravity_force([0.3])[0] == pytest.approx(0.0, abs=1e-12)
    assert any("takes weight" in warning for warning in robot.warnings)


def test_drives_are_motors_and_armature_counts(tmp_path):
    def change(stage):
        hinge = stage.GetPrimAtPath("/hinge")
        drive = UsdPhysics.DriveAPI.Apply(hinge, "angular")
        drive.CreateMaxForceAttr(12.0)
        hinge.CreateAttribute("physxJoint:armature", Sdf.ValueTypeNames.Float).Set(0.25)
        hinge.CreateAttribute("physxJoint:maxJointVelocity", Sdf.ValueTypeNames.Float).Set(180.0)

    robot = pendulum(tmp_path / "p.usda", change=change)
    assert robot.actuated_joint_names == ("hinge",)
    assert robot.mass_matrix([0.0])[0, 0] == pytest.approx(0.1 + 2.0 * 0.25 + 0.25)
    (hinge,) = [joint for joint in robot.description.joints if joint.name == "hinge"]
    assert (hinge.limits.effort, hinge.limits.velocity) == pytest.approx((12.0, np.pi))


def test_d6_joints_and_joints_followed_backwards(tmp_path):
    def change(stage):
        stage.RemovePrim("/hinge")
        joint = UsdPhysics.Joint.Define(stage, "/hinge")
        joint.CreateBody0Rel().SetTargets([Sdf.Path("/arm")])
        joint.CreateBody1Rel().SetTargets([Sdf.Path("/base")])
        for direction in ("transX", "transY", "transZ", "rotX", "rotZ"):
            limit = UsdPhysics.LimitAPI.Apply(joint.GetPrim(), direction)
            limit.CreateLowAttr(1.0)
            limit.CreateHighAttr(-1.0)

    robot = pendulum(tmp_path / "p.usda", change=change)
    force = robot.gravity_force([0.3])[0]
    assert force == pytest.approx(2.0 * 9.81 * 0.5 * np.cos(0.3))  # the base turns against the arm


def test_a_joint_to_a_prim_that_does_not_exist_is_an_error(tmp_path):
    def change(stage):
        hinge = UsdPhysics.Joint(stage.GetPrimAtPath("/hinge"))
        hinge.GetBody0Rel().SetTargets([Sdf.Path("/bsae")])

    with pytest.raises(DescriptionError, match=r"hinge.*there is no prim /bsae"):
        pendulum(tmp_path / "p.usda", change=change)


def without(name):
    def change(stage):
        stage.GetPrimAtPath("/arm").GetAttribute(f"physics:{name}").Clear()

    return change


@pytest.mark.parametrize("name", ["mass", "centerOfMass", "diagonalInertia"])
def test_mass_properties_must_be_stated(tmp_path, name):
    with pytest.raises(DescriptionError, match=f"'arm': physics:{name} is not stated"):
        pendulum(tmp_path / "p.usda", change=without(name))


def test_what_cannot_be_read_is_explained(tmp_path, monkeypatch):
    with pytest.raises(DescriptionError, match="does not exist"):
        load_robot(tmp_path / "nothing.usd")
    (tmp_path / "bad.usda").write_text("#usda 1.0\ndef Xform {")
    with pytest.raises(DescriptionError, match="cannot be read"):
        load_robot(tmp_path / "bad.usda")
    (tmp_path / "empty.usda").write_text("#usda 1.0\n")
    with pytest.raises(DescriptionError, match="has no rigid body; apply PhysicsRigidBodyAPI"):
        load_robot(tmp_path / "empty.usda")
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(DescriptionError, match="pip install usd-core"):
        load_robot(tmp_path / "bad.usda")
