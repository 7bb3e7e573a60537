"""USD: rigid bodies, joints, mass properties and drives of UsdPhysics, read by Pixar's library.

Positions are those of the joints: zero where the frames that a joint has on its two bodies are the
same. The poses that the stage draws are where loops are closed from. Joints that are excluded from
the articulation close loops, and so does every other one between two bodies of the tree. Units and
the up axis of the stage become metres, kilograms and z.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rbda_ros.description.model import (
    AXES,
    ZERO,
    Attachment,
    CutJoint,
    CutType,
    Guess,
    Inertia,
    Joint,
    JointType,
    Limits,
    Link,
    Pose,
    Vector3,
)
from rbda_ros.description.orientation import from_quaternion, to_pose
from rbda_ros.description.read_robot import ReadRobot
from rbda_ros.description.report import Report, brief
from rbda_ros.description.sdf import grow_tree
from rbda_ros.description.sdf_frames import WORLD, Placement, inverse, relative
from rbda_ros.description.urdf import Mimic
from rbda_ros.description.values import LARGEST, SHORTEST_AXIS, unused

SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")
_AXES = dict(zip("XYZ", AXES, strict=True))
_NO_OFFSET = 1e-15
"""Frames this near [m, or of a rotation matrix] are the same."""
_DIRECTIONS = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")


def is_usd(source: str | os.PathLike[str]) -> bool:
    """Whether a source is the path of a USD file, by its name."""
    return str(source).lower().endswith(SUFFIXES) and "\n" not in str(source)


def read_usd(path: str | os.PathLike[str], report: Report) -> ReadRobot | None:
    """Read all bodies and joints of a stage; None after noting why it cannot be read."""
    try:
        from pxr import Tf, Usd
    except ImportError:
        report.problem("USD", "is read by usd-core, which is not installed", "pip install usd-core")
        return None
    if not os.path.isfile(path):
        report.problem(f"USD {os.fspath(path)!r}", "does not exist", "check the path")
        return None
    try:
        return _Reader(Usd.Stage.Open(os.path.abspath(path)), report).read()
    except Tf.ErrorException as error:
        report.problem(f"USD {os.fspath(path)!r}", f"cannot be read: {_text(error)}", "correct it")
        return None


def _text(error: Exception) -> str:
    """Text of an error, where it can be decoded: it quotes bytes of the file."""
    try:
        lines = str(error).strip().splitlines()
    except UnicodeError:
        lines = []
    return lines[-1].strip() if lines else type(error).__name__


@dataclass(frozen=True, eq=False)
class _JointPrim:
    """A joint of the stage: its type as of a cut, its ends, and its frame on each of them."""

    prim: Any
    name: str
    kind: str
    axis: Vector3
    ends: tuple[str, str]
    frames: tuple[Placement, Placement]
    excluded: bool

    @property
    def where(self) -> str:
        """The joint in messages."""
        return f"joint {brief(self.name)}"

    @property
    def direction(self) -> str | None:
        """The free direction of a D6 joint, such as rotX; None for other joints."""
        if str(self.prim.GetTypeName()) != "PhysicsJoint":
            return None
        turns = self.kind in ("revolute", "spherical")
        return ("rot" if turns else "trans") + "XYZ"[self.axis.index(1.0)]


class _Reader:
    """Reads one stage."""

    def __init__(self, stage: Any, report: Report) -> None:
        from pxr import Usd, UsdGeom, UsdPhysics

        self.report = report
        self.stage = stage  # prims live as long as it does
        self.physics = UsdPhysics
        self.metres = float(UsdGeom.GetStageMetersPerUnit(stage))
        self.kilograms = float(UsdPhysics.GetStageKilogramsPerUnit(stage))
        self.up = str(UsdGeom.GetStageUpAxis(stage))
        self.prims = list(Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies()))
        self.name = stage.GetDefaultPrim().GetName() if stage.GetDefaultPrim() else "robot"
        self.cache = UsdGeom.XformCache()
        self.bodies = {
            prim.GetPath(): prim for prim in self.prims if prim.HasAPI(UsdPhysics.RigidBodyAPI)
        }
        self.names = _names(self.bodies)
        self.placed: dict[str, Placement] = {WORLD: np.eye(4)}
        for path, prim in self.bodies.items():
            self.placed[self.names[path]] = self._placement(prim)

    def read(self) -> ReadRobot:
        """The robot; a link for every body, in the order of the stage, articulation roots first."""
        root_first = sorted(
            self.bodies,
            key=lambda path: not self.bodies[path].HasAPI(self.physics.ArticulationRootAPI),
        )
        if not self.bodies:
            self.report.problem(
                "stage",
                "has no rigid body",
                "apply PhysicsRigidBodyAPI to the links, or give the file that does",
            )
            self.report.raise_problems()
        links = [self._link(self.bodies[path], self.names[path]) for path in root_first]
        found = list(self._joint_prims())
        included = [joint for joint in found if not joint.excluded]
        tree = grow_tree([joint.ends for joint in included], [link.name for link in links])
        joints: list[Joint] = []
        cuts: list[CutJoint] = []
        assembly: dict[str, Guess] = {}
        for i, joint in enumerate(included):
            if i in tree:
                self._add_to_tree(joint, tree[i], links, joints, assembly)
        in_tree = {id(included[i]) for i in tree}
        for joint in found:
            if id(joint) not in in_tree and (cut := self._cut(joint)) is not None:
                cuts.append(cut)
        on_world = any(WORLD in joint.ends for joint in found)
        if on_world:
            links.insert(0, Link(WORLD))
        moved = {joint.child for joint in joints}
        roots = [link.name for link in links if link.name not in moved]
        pose = Pose()
        if roots and not on_world:
            pose = relative(np.eye(4), self.placed[roots[0]])
        names = {joint.name for joint in joints}
        driven = (joint.name for joint in included if self._drive(joint) is not None)
        self._warn_of_the_rest()
        return ReadRobot(
            name=self.name,
            links=tuple(links),
            joints=tuple(joints),
            constraints=tuple(cuts),
            mimics=tuple(self._mimics(included)),
            actuated_joints=tuple(name for name in driven if name in names) or None,
            assembly=assembly,
            root_pose=pose,
        )

    def _placement(self, prim: Any) -> Placement:
        """(4, 4) a prim in a world of metres whose z is up; without its scale."""
        M = np.array(self.cache.GetLocalToWorldTransform(prim)).T
        sizes = np.linalg.norm(M[:3, :3], axis=0)
        if not np.all(np.abs(M) <= LARGEST) or sizes.min() < SHORTEST_AXIS:
            self.report.problem(
                f"prim {prim.GetPath()}", "its transform is no pose", "correct its xformOps"
            )
            return np.eye(4)
        R = M[:3, :3] / sizes
        if np.linalg.det(R) < 0.0:
            self.report.warn(f"prim {prim.GetPath()}", "is mirrored; its mirror image is read")
            R = R @ np.diag([1.0, 1.0, -1.0])
        placed = np.eye(4)
        placed[:3, :3], placed[:3, 3] = R, self.metres * M[:3, 3]
        return self._upright() @ placed

    def _upright(self) -> Placement:
        upright = np.eye(4)
        if self.up == "Y":
            upright[:3, :3] = [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
        return upright

    def _scale(self, prim: Any) -> NDArray[np.float64]:
        """(3,) metres of a unit of length in a prim's own frame."""
        M = np.array(self.cache.GetLocalToWorldTransform(prim)).T
        return np.asarray(self.metres * np.linalg.norm(M[:3, :3], axis=0))

    def _number(self, prim: Any, name: str, default: float, bound: bool = False) -> float:
        """A number; a bound may be infinite."""
        try:
            value = float(_value(prim, name, default))
        except (TypeError, ValueError):
            value = math.nan
        if math.isnan(value) or (not bound and abs(value) > LARGEST):
            self._note(prim, name)
            return default
        return value

    def _vector(self, prim: Any, name: str, default: Vector3 = ZERO) -> NDArray[np.float64]:
        """(3,) numbers; the default if the stage has none."""
        try:
            value = np.array(_value(prim, name, default), dtype=float).reshape(3)
        except (TypeError, ValueError):
            value = np.full(3, math.nan)
        if not np.all(np.abs(value) <= LARGEST) and tuple(value) != default:
            self._note(prim, name)
            return np.array(default)
        return value

    def _note(self, prim: Any, name: str) -> None:
        where = f"prim {prim.GetPath()}"
        self.report.problem(where, f"{name} is not a finite number, or not three", "correct it")

    def _link(self, prim: Any, name: str) -> Link:
        where = f"link {brief(name)}"
        if _value(prim, "physics:rigidBodyEnabled", True) is False:
            self.report.warn(where, "is not enabled as a rigid body; it is read as one")
        mass = self.kilograms * self._number(prim, "physics:mass", 0.0)
        moments = self._vector(prim, "physics:diagonalInertia")
        centre = self._vector(prim, "physics:centerOfMass", (-math.inf, -math.inf, -math.inf))
        if mass <= 0.0 or not moments.any() or not np.all(np.isfinite(centre)):
            missing = (
                "mass"
                if mass <= 0.0
                else "diagonalInertia"
                if not moments.any()
                else "centerOfMass"
            )
            self.report.problem(
                where,
                f"physics:{missing} is not stated, so that a simulator computes it from shapes",
                "author mass, centerOfMass, diagonalInertia and principalAxes",
            )
            return Link(name)
        axes = _value(prim, "physics:principalAxes", None)
        moments = moments * self.kilograms * self.metres**2
        return Link(
            name,
            Inertia(
                mass,
                to_pose(_rotation(axes), centre * self._scale(prim)),
                ixx=float(moments[0]),
                iyy=float(moments[1]),
                izz=float(moments[2]),
            ),
            weight=0.0 if _value(prim, "physxRigidBody:disableGravity", False) else 1.0,
        )

    def _joint_prims(self) -> Iterator[_JointPrim]:
        seen: dict[str, int] = {}
        for prim in self.prims:
            if not prim.IsA(self.physics.Joint):
                continue
            name = prim.GetName()
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:
                name = f"{name}_{seen[name]}"
            where = f"joint {brief(name)}"
            if _value(prim, "physics:jointEnabled", True) is False:
                self.report.warn(where, "is not enabled, and is left out")
                continue
            kind, axis = self._kind(prim, where)
            if kind is None:
                continue
            (first, on_first), (second, on_second) = (self._end(prim, n, where) for n in (0, 1))
            if first == second:
                self.report.problem(where, "joins a body to itself", "correct body0 or body1")
                continue
            excluded = bool(_value(prim, "physics:excludeFromArticulation", False))
            ends, frames = (first, second), (on_first, on_second)
            yield _JointPrim(prim, name, kind, axis, ends, frames, excluded)

    def _kind(self, prim: Any, where: str) -> tuple[str | None, Vector3]:
        """The type of a joint, and its axis in the joint's frame."""
        axis = _AXES.get(str(_value(prim, "physics:axis", "X")), _AXES["X"])
        known = {
            "PhysicsRevoluteJoint": "revolute",
            "PhysicsPrismaticJoint": "prismatic",
            "PhysicsSphericalJoint": "spherical",
            "PhysicsFixedJoint": "fixed",
            "PhysicsDistanceJoint": "distance",
        }
        kind = str(prim.GetTypeName())
        if kind in known:
            return known[kind], axis
        if kind != "PhysicsJoint":
            self.report.warn(where, f"of type {kind} is not understood, and is left out")
            return None, axis
        free = [d for d in _DIRECTIONS if not _is_locked(prim, d)]
        if not free:
            return "fixed", axis
        if len(free) == 1:
            return "revolute" if "rot" in free[0] else "prismatic", _AXES[free[0][-1]]
        if free == ["rotX", "rotY", "rotZ"]:
            return "spherical", axis
        self.report.problem(
            where,
            f"is free along {', '.join(free)}",
            "lock all of them but one, or all translations; other joints are not read",
        )
        return None, axis

    def _end(self, prim: Any, number: int, where: str) -> tuple[str, Placement]:
        """The body at one end, and the joint's frame in that of the body."""
        targets = prim.GetRelationship(f"physics:body{number}").GetTargets()
        body = self._body_of(prim, targets[0], where) if targets else None
        position = self._vector(prim, f"physics:localPos{number}")
        local = np.eye(4)
        local[:3, :3] = _rotation(_value(prim, f"physics:localRot{number}", None))
        if body is None:
            local[:3, 3] = self.metres * position
            if targets and (fixed := prim.GetStage().GetPrimAtPath(targets[0])):
                local[:3, 3] = self._scale(fixed) * position
                return WORLD, self._placement(fixed) @ local
            return WORLD, self._upright() @ local
        target = prim.GetStage().GetPrimAtPath(targets[0])
        local[:3, 3] = self._scale(target) * position
        link = self.names[body.GetPath()]
        return link, inverse(self.placed[link]) @ self._placement(target) @ local

    def _body_of(self, prim: Any, path: Any, where: str) -> Any | None:
        """The rigid body that a prim is, or is part of; None for the world."""
        if not prim.GetStage().GetPrimAtPath(path):
            self.report.problem(where, f"there is no prim {path}", "correct body0 or body1")
        while str(path) not in ("/", ""):
            if path in self.bodies:
                return self.bodies[path]
            path = path.GetParentPath()
        return None

    def _add_to_tree(
        self,
        joint: _JointPrim,
        backwards: bool,
        links: list[Link],
        joints: list[Joint],
        assembly: dict[str, Guess],
    ) -> None:
        """Backwards, the axis is reversed, so that positions mean what the file says."""
        if joint.kind not in ("revolute", "prismatic", "spherical", "fixed"):
            self.report.problem(
                joint.where,
                f"a {joint.kind} joint cannot carry a body",
                "exclude it from the articulation",
            )
            return
        parent, child = reversed(joint.ends) if backwards else joint.ends
        outer, inner = reversed(joint.frames) if backwards else joint.frames
        x, y, z = joint.axis
        axis = (-x, -y, -z) if backwards else joint.axis
        limits = self._limits(joint)
        kind = cast(JointType, joint.kind)
        if kind == "revolute" and not math.isfinite(limits.upper - limits.lower):
            kind = "continuous"
        bare = np.abs(inner - np.eye(4)).max() <= _NO_OFFSET
        last = child if bare else f"{child}_{joint.name}"
        joints.append(
            Joint(
                joint.name,
                kind,
                parent,
                last,
                origin=relative(np.eye(4), outer),
                axis=axis,
                limits=limits,
                armature=self._armature(joint),
            )
        )
        if not bare:
            links.append(Link(last))
            fixed = f"{joint.name}_fixed"
            joints.append(Joint(fixed, "fixed", last, child, relative(inner, np.eye(4))))
        drawn = inverse(self.placed[parent] @ outer) @ self.placed[child] @ inner
        assembly.update(_position(joint.name, kind, axis, drawn))

    def _limits(self, joint: _JointPrim) -> Limits:
        prim = joint.prim
        if joint.kind not in ("revolute", "prismatic"):
            return Limits()
        turns, unit = joint.kind == "revolute", self._unit(joint)
        least, greatest = "physics:lowerLimit", "physics:upperLimit"
        if joint.direction is not None:
            least, greatest = (f"limit:{joint.direction}:physics:{end}" for end in ("low", "high"))
        lower = unit * self._number(prim, least, -math.inf, bound=True)
        upper = unit * self._number(prim, greatest, math.inf, bound=True)
        velocity = self._number(prim, "physxJoint:maxJointVelocity", math.inf, bound=True)
        drive = self._drive(joint)
        effort = math.inf
        if drive is not None:
            effort = self._number(prim, f"{drive}:physics:maxForce", math.inf, bound=True)
        force = self.kilograms * self.metres * (self.metres if turns else 1.0)
        return Limits(lower, upper, unit * velocity, force * effort)

    def _unit(self, joint: _JointPrim) -> float:
        """Radians or metres of one unit of the joint's position."""
        return math.radians(1.0) if joint.kind == "revolute" else self.metres

    def _armature(self, joint: _JointPrim) -> float:
        if joint.kind == "fixed":
            return 0.0
        unit = self.kilograms * (1.0 if joint.kind == "prismatic" else self.metres**2)
        armature = unit * self._number(joint.prim, "physxJoint:armature", 0.0)
        if armature < 0.0:
            self.report.problem(joint.where, "its armature is negative", "give zero or more")
        return max(armature, 0.0)

    def _drive(self, joint: _JointPrim) -> str | None:
        """The drive of a joint: of its own direction, or of the only free one of a D6 joint."""
        turns = joint.kind in ("revolute", "spherical")
        name = joint.direction or ("angular" if turns else "linear")
        applied = f"PhysicsDriveAPI:{name}" in joint.prim.GetAppliedSchemas()
        return f"drive:{name}" if applied and joint.kind != "fixed" else None

    def _cut(self, joint: _JointPrim) -> CutJoint | None:
        where, length = joint.where, None
        if joint.kind == "distance":
            bounds = [
                self._number(joint.prim, f"physics:{m}Distance", -1.0) for m in ("min", "max")
            ]
            length = self.metres * bounds[0]
            if bounds[0] != bounds[1] or length <= 0.0:
                self.report.warn(where, "bounds a distance, and is left out")
                return None
        if self._drive(joint) is not None:
            self.report.warn(where, "closes a loop, and its drive is left out: a cut has none")
        first, second = (
            Attachment(link, relative(np.eye(4), frame))
            for link, frame in zip(joint.ends, joint.frames, strict=True)
        )
        kind = cast(CutType, joint.kind)
        return CutJoint(joint.name, kind, first, second, axis=joint.axis, length=length)

    def _mimics(self, joints: list[_JointPrim]) -> Iterator[Mimic]:
        """``q + gearing q_reference + offset = 0``, with angles in degrees."""
        by_path = {joint.prim.GetPath(): joint for joint in joints}
        for joint in joints:
            for schema in joint.prim.GetAppliedSchemas():
                api, _, direction = schema.partition(":")
                if api != "PhysxMimicJointAPI":
                    continue
                prefix = f"physxMimicJoint:{direction}"
                targets = joint.prim.GetRelationship(f"{prefix}:referenceJoint").GetTargets()
                master = by_path.get(targets[0]) if targets else None
                if master is None:
                    self.report.warn(joint.where, "mimics no joint of the articulation: it is free")
                    continue
                unit, other = self._unit(joint), self._unit(master)
                gearing = self._number(joint.prim, f"{prefix}:gearing", 1.0)
                offset = self._number(joint.prim, f"{prefix}:offset", 0.0)
                yield Mimic(joint.name, master.name, -gearing * unit / other, -offset * unit)

    def _warn_of_the_rest(self) -> None:
        """Name what else of the stage moves bodies, once for each kind."""
        counted: dict[str, int] = {}
        for prim in self.prims:
            kind = str(prim.GetTypeName())
            if kind.startswith("Physx") or kind in ("PhysicsScene",):
                counted[kind] = counted.get(kind, 0) + 1
            for schema in prim.GetAppliedSchemas():
                if schema.partition(":")[0] in _LEFT_OUT:
                    name = schema.partition(":")[0]
                    counted[name] = counted.get(name, 0) + 1
            for name in ("physxJoint:jointFriction", "physics:density"):
                if _value(prim, name, 0.0) not in (0.0, None):
                    counted[name] = counted.get(name, 0) + 1
        scenes = counted.pop("PhysicsScene", 0)
        for name, count in counted.items():
            self.report.warn("USD", f"{count} {name} are left out")
        for prim in self.prims if scenes else ():
            if str(prim.GetTypeName()) == "PhysicsScene":
                self._warn_of_gravity(prim)

    def _warn_of_gravity(self, scene: Any) -> None:
        size = self._number(scene, "physics:gravityMagnitude", -math.inf, bound=True)
        direction = self._vector(scene, "physics:gravityDirection")
        down = np.array([0.0, -1.0, 0.0] if self.up == "Y" else [0.0, 0.0, -1.0])
        is_default = size < 0.0 or abs(size * self.metres - 9.81) < 5e-3
        if not is_default or (direction.any() and not np.allclose(direction, down)):
            self.report.warn("PhysicsScene", "its gravity is left to the argument 'gravity'")


_LEFT_OUT = (
    "PhysxTendonAxisAPI",
    "PhysxTendonAxisRootAPI",
    "PhysxTendonAttachmentAPI",
    "PhysxTendonAttachmentRootAPI",
    "PhysxTendonAttachmentLeafAPI",
    "PhysxParticleAPI",
    "PhysxDeformableBodyAPI",
    "PhysxVehicleAPI",
)


def _names(bodies: Mapping[Any, Any]) -> dict[Any, str]:
    """Names of bodies: those of the prims, with more of the path where they are not unique."""
    names: dict[Any, str] = {}
    taken = {WORLD}
    for path in bodies:
        name = path.name
        parent = path.GetParentPath()
        while name in taken and str(parent) != "/":
            name, parent = f"{parent.name}_{name}", parent.GetParentPath()
        names[path] = unused(name, taken)
        taken.add(names[path])
    return names


def _value(prim: Any, name: str, default: Any) -> Any:
    """The value of an attribute; the default if the stage has none."""
    attribute = prim.GetAttribute(name)
    value = attribute.Get() if attribute else None
    return default if value is None else value


def _is_locked(prim: Any, direction: str) -> bool:
    """A limit whose low is above its high locks a direction."""
    low = _value(prim, f"limit:{direction}:physics:low", -math.inf)
    high = _value(prim, f"limit:{direction}:physics:high", math.inf)
    applied = f"PhysicsLimitAPI:{direction}" in prim.GetAppliedSchemas()
    return applied and isinstance(low, float) and isinstance(high, float) and low > high


def _rotation(quaternion: Any) -> NDArray[np.float64]:
    """(3, 3) of a quaternion of the library; the identity of none, and of one without length."""
    if not hasattr(quaternion, "GetImaginary"):  # None, or an attribute of another type
        return np.eye(3)
    wxyz = (quaternion.GetReal(), *quaternion.GetImaginary())
    length = math.hypot(*wxyz)
    return from_quaternion(wxyz) if 1e-9 <= length < math.inf else np.eye(3)


def _position(name: str, kind: JointType, axis: Vector3, drawn: Placement) -> dict[str, Guess]:
    """Where a stage draws a joint, from one of its frames in the other."""
    a, R = np.array(axis), drawn[:3, :3]
    if kind == "prismatic":
        return {name: float(a @ drawn[:3, 3])}
    if kind in ("revolute", "continuous"):
        across = np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))])
        return {
            name: math.atan2(float(np.cross(across, R @ across) @ a), float(across @ R @ across))
        }
    if kind == "spherical":
        w = 0.5 * math.sqrt(max(0.0, 1.0 + float(np.trace(R))))
        if w < 1e-6:  # half a turn: any position will do to start from
            return {}
        v = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4.0 * w)
        return {name: (float(v[0]), float(v[1]), float(v[2]), w)}
    return {}
