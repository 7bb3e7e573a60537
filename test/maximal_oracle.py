"""SDF and USD read a second time, and their dynamics in maximal coordinates.

Every link has six coordinates of its own, and every joint takes some of them away by rows
``J v = 0``. Nothing of ours is used but the poses of links along a motion: readers, inertias, rows
and the dense solve are of this file. For USD the reader is usd-core's own physics parser, and mass
properties are those that usd-core computes.

``PYTHONPATH=.:test python test/maximal_oracle.py robot.sdf robot.usda ...`` prints, for each file,
how far apart the two ends of its joints are, and the largest difference of a link's acceleration as
a share of the largest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree
from scipy.spatial.transform import Rotation

from rbda_ros import ModelError, Robot, load_robot

FIRST = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
SECOND = {0: -49 / 18, 1: 3 / 2, 2: -3 / 20, 3: 1 / 90}
"""First and second derivatives by central differences of sixth order."""
ONE_COORDINATE = ("revolute", "prismatic", "screw")
STEP = 4e-3
"""How far the fastest joint moves in a step [rad, m]."""


@dataclass(frozen=True, eq=False)
class Body:
    """A link: pose (4, 4) as drawn, mass, its centre (3,) and the inertia (3, 3) about that."""

    pose: np.ndarray
    mass: float = 0.0
    centre: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Tie:
    """A joint between two links, "" being the world, with a frame (4, 4) on each of them.

    ``axis`` is in both frames. ``second`` is the second axis of a universal joint, or that of a
    gearbox's child. ``value`` is a screw's travel in a turn, a gear's ratio or a distance.
    """

    kind: str
    parent: str
    child: str
    on_parent: np.ndarray
    on_child: np.ndarray
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    second: np.ndarray = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    value: float = 0.0
    reference: str = ""
    armature: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0


@dataclass(frozen=True, eq=False)
class Machine:
    """Links and joints by name, and which joint follows which: (joint, master, multiplier)."""

    bodies: dict[str, Body]
    ties: dict[str, Tie]
    mimics: tuple[tuple[str, str, float], ...] = ()


class MaximalOracle:
    """Compares a robot with a machine that was read from the same file."""

    def __init__(self, machine: Machine, robot: Robot) -> None:
        self.robot, ties = robot, dict(machine.ties)
        if not any("" in (tie.parent, tie.child) for tie in ties.values()):
            root = robot.description.root
            pose = machine.bodies[root].pose
            ties["fixed to the world"] = Tie("fixed", "", root, pose, np.eye(4))
        for lock in robot.tree.idle_locks:  # a right angle holds a rod that spins
            assert lock.second_axis is not None
            sides = (lock.predecessor.link, lock.successor.link)
            ends = [_fixed_to(robot, link, machine.bodies) for link in sides]
            axes = (np.array(lock.axis), np.array(lock.second_axis))
            (parent, on_parent), (child, on_child) = ends
            ties[lock.name] = Tie("right angle", parent, child, on_parent, on_child, *axes)
        self.machine = Machine(machine.bodies, ties, machine.mimics)
        self.places = {name: 6 * i for i, name in enumerate(machine.bodies)}
        self.size = 6 * len(self.places)
        self.links = {name: robot.links.index(name) for name in machine.bodies}

    def gap(self, q: np.ndarray) -> float:
        """How far apart the ends of joints are [m, sine of an angle]."""
        poses = self._poses(q)
        gaps = [0.0]
        for tie in self.machine.ties.values():
            P, C = poses(tie.parent) @ tie.on_parent, poses(tie.child) @ tie.on_child
            if tie.kind in ("revolute", "ball", "fixed", "universal"):
                gaps.append(np.abs(P[:3, 3] - C[:3, 3]).max())
            if tie.kind in ("revolute", "prismatic", "screw"):
                gaps.append(np.abs((P[:3, :3] - C[:3, :3]) @ tie.axis).max())
            if tie.kind in ("prismatic", "fixed"):
                gaps.append(np.abs(P[:3, :3] - C[:3, :3]).max())
            if tie.kind == "distance":
                gaps.append(abs(np.linalg.norm(P[:3, 3] - C[:3, 3]) - tie.value))
        return float(max(gaps))

    def error(self, q: np.ndarray, yd: np.ndarray, tau: np.ndarray) -> float:
        """Difference of all links' accelerations, under forces tau (nv,), as a share.

        Forces in joints of several coordinates do not count.
        """
        robot = self.robot
        forced = {name for name, tie in self.machine.ties.items() if tie.kind in ONE_COORDINATE}
        tau = tau.copy()
        for name, place in robot.coordinates.velocities.items():
            if name not in forced:
                tau[place.start : place.stop] = 0.0
        qd = robot.spanning_velocity(q, yd)
        qdd = robot.spanning_acceleration(q, yd, robot.forward_dynamics(q, yd, tau))
        h = STEP / np.abs(np.concatenate([qd, np.sqrt(np.abs(qdd))])).max(initial=1.0)

        def at(k: int) -> Callable[[str], np.ndarray]:
            moved = robot.tree.integrate(q, k * h * qd + (k * h) ** 2 / 2 * qdd)
            return self._poses(np.asarray(moved))

        poses = {k: at(k) for k in range(-3, 4)}
        v, ours = np.zeros(self.size), np.zeros(self.size)
        for name, i in self.places.items():
            T = {k: of(name) for k, of in poses.items()}
            Td = sum(c * (T[k] - T[-k]) for k, c in FIRST.items()) / h
            Tdd = SECOND[0] * T[0] + sum(SECOND[k] * (T[k] + T[-k]) for k in (1, 2, 3))
            Tdd = Tdd / h**2
            W = Td[:3, :3] @ T[0][:3, :3].T
            w = _vector(W)
            v[i : i + 6] = np.concatenate([Td[:3, 3], w])
            alpha = _vector(Tdd[:3, :3] @ T[0][:3, :3].T - _cross(w) @ _cross(w))
            ours[i : i + 6] = np.concatenate([Tdd[:3, 3], alpha])
        rows = {k: self._rows(of) for k, of in poses.items()}
        J = rows[0][0]
        k_J = -sum(c * (rows[k][0] - rows[-k][0]) for k, c in FIRST.items()) @ v / h
        M, f = self._bodies(poses[0], v)
        for name, rate in rows[0][1].items():
            if name not in robot.coordinates.velocities:
                continue
            tie = self.machine.ties[name]
            place = robot.coordinates.velocities[name].start
            change = sum(c * (rows[k][1][name] - rows[-k][1][name]) for k, c in FIRST.items())
            stretch = q[robot.coordinates.positions[name].start] - tie.rest
            f += (tau[place] - tie.stiffness * stretch) * rate
            f -= tie.armature * rate * (change @ v / h)
            M += tie.armature * np.outer(rate, rate)
        null = _null_space(J)
        particular = np.linalg.pinv(J, rcond=1e-9) @ k_J
        inside = np.linalg.lstsq(null.T @ M @ null, null.T @ (f - M @ particular), rcond=None)[0]
        found = particular + null @ inside
        return float(np.abs(found - ours).max() / max(1.0, np.abs(found).max()))

    def _poses(self, q: np.ndarray) -> Callable[[str], np.ndarray]:
        all_poses = np.asarray(self.robot.frame_poses(q))
        return lambda name: all_poses[self.links[name]] if name else np.eye(4)

    def _bodies(
        self, poses: Callable[[str], np.ndarray], v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mass matrix of all links, at their origins in world axes, and the forces on them."""
        M, f = np.zeros((self.size, self.size)), np.zeros(self.size)
        gravity = np.array(self.robot.tree.gravity)
        for name, body in self.machine.bodies.items():
            i, R = self.places[name], poses(name)[:3, :3]
            m, c = body.mass, R @ body.centre
            about = R @ body.inertia @ R.T + m * (c @ c * np.eye(3) - np.outer(c, c))
            M[i : i + 3, i : i + 3] = m * np.eye(3)
            M[i : i + 3, i + 3 : i + 6] = -m * _cross(c)
            M[i + 3 : i + 6, i : i + 3] = m * _cross(c)
            M[i + 3 : i + 6, i + 3 : i + 6] = about
            w, pull = v[i + 3 : i + 6], m * body.weight * gravity
            f[i : i + 3] = pull - m * np.cross(w, np.cross(w, c))
            f[i + 3 : i + 6] = np.cross(c, pull) - np.cross(w, about @ w)
        return M, f

    def _rows(self, poses: Callable[[str], np.ndarray]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """J (rows, 6 n), and the row (6 n,) that is the rate of each joint of one coordinate."""
        rows: list[np.ndarray] = []
        rates: dict[str, np.ndarray] = {}
        for name, tie in self.machine.ties.items():
            P, C = poses(tie.parent) @ tie.on_parent, poses(tie.child) @ tie.on_child
            along = P[:3, :3] @ tie.axis
            x = P[:3, :3] @ _null_space(tie.axis[None])[:, 0]
            y = np.cross(along, x)
            everywhere = tuple(np.eye(3))

            def travel(d: np.ndarray, of: Tie = tie, p: np.ndarray = C[:3, 3]) -> np.ndarray:
                return self._row(poses, {of.child: d, of.parent: -d}, p)

            def turn(d: np.ndarray, of: Tie = tie) -> np.ndarray:
                return self._row(poses, {of.child: d, of.parent: -d}, None)

            if tie.kind == "revolute":
                rows += [*map(travel, everywhere), turn(x), turn(y)]
                rates[name] = turn(along)
            elif tie.kind == "prismatic":
                rows += [*map(turn, everywhere), travel(x), travel(y)]
                rates[name] = travel(along)
            elif tie.kind == "screw":
                rows += [turn(x), turn(y), travel(x), travel(y)]
                rows.append(travel(along) - tie.value / (2 * np.pi) * turn(along))
                rates[name] = turn(along)
            elif tie.kind == "ball":
                rows += map(travel, everywhere)
            elif tie.kind == "fixed":
                rows += [*map(travel, everywhere), *map(turn, everywhere)]
            elif tie.kind in ("universal", "right angle"):
                across = np.cross(along, C[:3, :3] @ tie.second)
                rows += [*map(travel, everywhere)] if tie.kind == "universal" else []
                rows.append(turn(across))
            elif tie.kind == "gearbox":  # theta of the child = -ratio * theta of the parent
                other = C[:3, :3] @ tie.second
                of_child = self._row(poses, {tie.child: other, tie.reference: -other}, None)
                of_parent = self._row(poses, {tie.parent: along, tie.reference: -along}, None)
                rows.append(of_child + tie.value * of_parent)
            elif tie.kind == "distance":
                d = C[:3, 3] - P[:3, 3]
                ends = {tie.child: C[:3, 3], tie.parent: P[:3, 3]}
                rows.append(
                    sum(
                        self._row(poses, {link: sign * d}, p)
                        for (link, p), sign in zip(ends.items(), (1.0, -1.0), strict=True)
                    )
                )
            else:
                raise ValueError(f"{name}: {tie.kind}")
        rows += [
            rates[joint] - times * rates[master] for joint, master, times in self.machine.mimics
        ]
        return np.array(rows).reshape(-1, self.size), rates

    def _row(
        self,
        poses: Callable[[str], np.ndarray],
        directions: Mapping[str, np.ndarray],
        point: np.ndarray | None,
    ) -> np.ndarray:
        """Velocity of links along directions, at a point; angular velocity without a point."""
        row = np.zeros(self.size)
        for link, d in directions.items():
            if not link:
                continue
            i = self.places[link]
            if point is None:
                row[i + 3 : i + 6] += d
            else:
                row[i : i + 3] += d
                row[i + 3 : i + 6] += np.cross(point - poses(link)[:3, 3], d)
        return row


def _fixed_to(robot: Robot, link: str, bodies: Mapping[str, Body]) -> tuple[str, np.ndarray]:
    """The link of the file that a link of ours is fixed to, and where it is in there (4, 4)."""
    places = robot.spanning_tree.links
    theirs = next((b for b in bodies if places[b].body == places[link].body), "")
    at = np.asarray(robot.frame_pose(robot.neutral(), theirs)) if theirs else np.eye(4)
    return theirs, np.linalg.inv(at) @ np.asarray(robot.frame_pose(robot.neutral(), link))


def compare(machine: Machine, robot: Robot, states: int = 3, seed: int = 0) -> tuple[float, float]:
    """Largest gap and error at home and at random states around it."""
    oracle, rng = MaximalOracle(machine, robot), np.random.default_rng(seed)
    gaps, errors = [], []
    for i in range(states):
        q = robot.neutral()
        if i and robot.ny:
            q = np.asarray(
                robot.tree.integrate(q, 0.1 * robot.spanning_velocity(q, _unit(robot, rng)))
            )
            q = robot.close(q, q) if robot.tree.has_loops else q
        gaps.append(oracle.gap(q))
        errors.append(oracle.error(q, rng.normal(size=robot.ny), rng.normal(size=robot.nv)))
    return max(gaps), max(errors)


def _unit(robot: Robot, rng: np.random.Generator) -> np.ndarray:
    direction = rng.normal(size=robot.ny)
    return direction / np.abs(robot.spanning_velocity(robot.neutral(), direction)).max()


# SDF.


def read_sdf(text: str) -> Machine:
    """The first model of an SDF file that is not static, with the models inside it."""
    # Some files of Drake do not declare its prefix.
    root = etree.fromstring(text.encode(), etree.XMLParser(recover=True))
    version = tuple(int(part) for part in root.get("version", "1.12").split("."))
    models = [*root.iterfind("model"), *root.iterfind("world/model")]
    model = next(m for m in models if m.findtext("static", "false").strip() not in ("true", "1"))
    scene = _Scene(version)
    scene.add(model, "")
    return scene.machine()


class _Scene:
    """Frames of a model, by scoped name: where each is, and on which link."""

    def __init__(self, version: tuple[int, ...]) -> None:
        self.version = version
        self.frames: dict[str, tuple[str, np.ndarray]] = {"world": ("", np.eye(4))}
        self.attached: dict[str, str] = {"world": ""}
        self.links: dict[str, Any] = {}
        self.joints: dict[str, tuple[Any, str]] = {}

    def add(self, model: Any, scope: str) -> None:
        """Note links, joints and frames of a model, whose names get the scope before them."""
        own = f"{scope}__model__"
        outer = scope.rsplit("::", 2)[0] + "::" if scope.count("::") > 1 else ""
        self._place(own, model, "world" if not scope else f"{outer}__model__", outer)
        names = [link.get("name") for link in model.iterfind("link")]
        for inner in model.iterfind("model"):
            self.add(inner, f"{scope}{inner.get('name')}::")
            self.frames[f"{scope}{inner.get('name')}"] = (
                f"{scope}{inner.get('name')}::__model__", np.eye(4),
            )  # fmt: skip
            self.attached[f"{scope}{inner.get('name')}"] = f"{scope}{inner.get('name')}::__model__"
        first = names[0] if names else f"{model.find('model').get('name')}"
        self.attached[own] = scope + model.get("canonical_link", first)
        for link in model.iterfind("link"):
            name = scope + link.get("name")
            self._place(name, link, own, scope)
            self.links[name] = link
        for frame in model.iterfind("frame"):
            name = scope + frame.get("name")
            on = scope + frame.get("attached_to") if frame.get("attached_to") else own
            self._place(name, frame, on, scope)
            self.attached[name] = on
        for joint in model.iterfind("joint"):
            name = scope + joint.get("name")
            self._place(name, joint, self._scoped(joint.findtext("child"), scope), scope)
            self.attached[name] = self._scoped(joint.findtext("child"), scope)
            self.joints[name] = (joint, scope)

    def _scoped(self, name: str, scope: str) -> str:
        name = name.strip()
        return name if name == "world" else scope + name

    def _place(self, name: str, element: Any, default: str, scope: str) -> None:
        pose = element.find("pose")
        relative = default
        if pose is not None and pose.get("relative_to"):
            relative = self._scoped(pose.get("relative_to"), scope)
        self.frames[name] = (relative, _sdf_pose(pose))

    def at(self, name: str) -> np.ndarray:
        """(4, 4) of a frame in the world."""
        relative, pose = self.frames[name]
        return pose if not relative else self.at(relative) @ pose

    def link_of(self, name: str) -> str:
        """The link that a frame is on, "" for the world."""
        while name and name not in self.links:
            name = self.attached[name]
        return name

    def machine(self) -> Machine:
        """Everything that was noted."""
        bodies = {name: self._body(name, link) for name, link in self.links.items()}
        ties: dict[str, Tie] = {}
        mimics = []
        for name, (joint, scope) in self.joints.items():
            ties[name] = self._tie(name, joint, scope)
            for mimic in joint.iterfind("axis/mimic"):
                multiplier = float(mimic.findtext("multiplier", "1"))
                mimics.append((name, scope + mimic.get("joint"), multiplier))
            for mimic in (child for child in joint if child.tag in _drake_tags("mimic")):
                multiplier = float(mimic.get("multiplier", "1"))
                mimics.append((name, scope + mimic.get("joint"), multiplier))
        return Machine(bodies, ties, tuple(mimics))

    def _body(self, name: str, link: Any) -> Body:
        pose = self.at(name)
        weight = 0.0 if link.findtext("gravity", "true").strip() in ("false", "0") else 1.0
        inertial = link.find("inertial")
        if inertial is None:  # the defaults of the specification
            return Body(pose, 1.0, np.zeros(3), np.eye(3), weight)
        T = _sdf_pose(inertial.find("pose"))
        i = {key: float(inertial.findtext(f"inertia/{key}", "0")) for key in ("ixy", "ixz", "iyz")}
        d = [float(inertial.findtext(f"inertia/{key}", "1")) for key in ("ixx", "iyy", "izz")]
        local = np.array(
            [[d[0], i["ixy"], i["ixz"]], [i["ixy"], d[1], i["iyz"]], [i["ixz"], i["iyz"], d[2]]]
        )
        inertia = T[:3, :3] @ local @ T[:3, :3].T
        return Body(pose, float(inertial.findtext("mass", "1")), T[:3, 3], inertia, weight)

    def _tie(self, name: str, joint: Any, scope: str) -> Tie:
        parent, child = (
            self.link_of(self._scoped(joint.findtext(side), scope)) for side in ("parent", "child")
        )
        at, kind = self.at(name), joint.get("type")
        axes = [self._axis(joint.find(tag), name, scope) for tag in ("axis", "axis2")]
        on = [np.linalg.inv(self.at(link) if link else np.eye(4)) @ at for link in (parent, child)]
        reference = joint.findtext("gearbox_reference_body")
        value = float(joint.findtext("gearbox_ratio", "1"))
        if kind == "screw":
            value = float(joint.findtext("screw_thread_pitch", "0"))
            value = value or -2 * np.pi / float(joint.findtext("thread_pitch", "1"))
        gear = float(_drake(joint, "gear_ratio", "1"))
        return Tie(
            {"continuous": "revolute", "revolute2": "universal"}.get(kind, kind),
            parent,
            child,
            *on,
            *axes,
            value=value,
            reference="" if reference is None else self.link_of(self._scoped(reference, scope)),
            armature=float(_drake(joint, "rotor_inertia", "0")) * gear**2,
            stiffness=float(joint.findtext("axis/dynamics/spring_stiffness", "0")),
            rest=float(joint.findtext("axis/dynamics/spring_reference", "0")),
        )

    def _axis(self, axis: Any, joint: str, scope: str) -> np.ndarray:
        """Unit axis in the joint's frame."""
        given = None if axis is None else axis.find("xyz")
        d = np.array([0.0, 0.0, 1.0] if given is None else [float(x) for x in given.text.split()])
        frame = joint
        if given is not None and given.get("expressed_in"):
            frame = self._scoped(given.get("expressed_in"), scope)
        elif self.version < (1, 5) or (
            axis is not None
            and axis.findtext("use_parent_model_frame", "false").strip() in ("true", "1")
        ):
            frame = f"{scope}__model__"
        return self.at(joint)[:3, :3].T @ self.at(frame)[:3, :3] @ d / np.linalg.norm(d)


def _drake(joint: Any, tag: str, default: str) -> str:
    return next((child.text for child in joint if child.tag in _drake_tags(tag)), default)


def _drake_tags(tag: str) -> tuple[str, str]:
    """With the prefix declared, or not."""
    return f"{{http://drake.mit.edu}}{tag}", f"drake:{tag}"


def _sdf_pose(pose: Any) -> np.ndarray:
    T = np.eye(4)
    if pose is None or not (pose.text or "").strip():
        return T
    x = np.array([float(number) for number in pose.text.split()])
    if pose.get("rotation_format") == "quat_xyzw":
        R = Rotation.from_quat(x[3:])
    else:
        R = Rotation.from_euler("xyz", x[3:], degrees=pose.get("degrees") in ("true", "1"))
    T[:3, :3], T[:3, 3] = R.as_matrix(), x[:3]
    return T


# USD.


def read_usd(path: Path) -> Machine:
    """The stage as usd-core's physics parser has it, in metres and kilograms with z upwards."""
    from pxr import Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.Open(str(path))
    metre, kilogram = (
        UsdGeom.GetStageMetersPerUnit(stage),
        UsdPhysics.GetStageKilogramsPerUnit(stage),
    )
    up = np.eye(4)
    if UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.y:
        up[:3, :3] = Rotation.from_euler("x", 90, degrees=True).as_matrix()
    cache = UsdGeom.XformCache()
    found = UsdPhysics.LoadUsdPhysicsFromRange(stage, ["/"])
    names: dict[str, str] = {}
    bodies: dict[str, Body] = {}
    for prims, _ in [found.get(UsdPhysics.ObjectType.RigidBody, ([], []))]:
        for prim_path in prims:
            prim = stage.GetPrimAtPath(prim_path)
            names[str(prim_path)] = prim.GetName()
            matrix = cache.GetLocalToWorldTransform(prim)
            T = _rigid(matrix, metre)
            api = UsdPhysics.RigidBodyAPI(prim)
            mass, moments, centre, axes = api.ComputeMassProperties(_no_shape)
            R = _rotation(axes)
            scale = np.linalg.norm(np.array(matrix)[:3, :3], axis=1)
            inertia = R @ np.diag([float(m) for m in moments]) @ R.T * kilogram * metre**2
            bodies[prim.GetName()] = Body(
                up @ T, float(mass) * kilogram, np.array(centre) * scale * metre, inertia
            )
    kinds = {
        UsdPhysics.ObjectType.RevoluteJoint: "revolute",
        UsdPhysics.ObjectType.PrismaticJoint: "prismatic",
        UsdPhysics.ObjectType.SphericalJoint: "ball",
        UsdPhysics.ObjectType.FixedJoint: "fixed",
    }
    unit = {UsdPhysics.Axis.X: 0, UsdPhysics.Axis.Y: 1, UsdPhysics.Axis.Z: 2}
    ties = {}
    for object_type, kind in kinds.items():
        prims, descriptions = found.get(object_type, ([], []))
        for prim_path, each in zip(prims, descriptions, strict=True):
            frames = []
            for body, p, r in (
                (each.body0, each.localPose0Position, each.localPose0Orientation),
                (each.body1, each.localPose1Position, each.localPose1Orientation),
            ):
                T = np.eye(4)
                T[:3, :3], T[:3, 3] = _rotation(r), np.array(p) * metre
                frames.append(T if str(body) in names else up @ T)
            ends = [names.get(str(body), "") for body in (each.body0, each.body1)]
            axis = np.eye(3)[unit[each.axis] if kind in ("revolute", "prismatic") else 2]
            name = stage.GetPrimAtPath(prim_path).GetName()
            armature = stage.GetPrimAtPath(prim_path).GetAttribute("physxJoint:armature").Get()
            ties[name] = Tie(kind, *ends, *frames, axis, armature=float(armature or 0.0))
    return Machine(bodies, ties)


def _no_shape(*_: object) -> Any:
    raise AssertionError("mass properties must be stated")


def _rigid(matrix: Any, metre: float) -> np.ndarray:
    """Pose without scale; USD multiplies rows from the left."""
    m = np.array(matrix)
    T = np.eye(4)
    T[:3, :3] = (m[:3, :3] / np.linalg.norm(m[:3, :3], axis=1, keepdims=True)).T
    T[:3, 3] = m[3, :3] * metre
    return T


def _rotation(quaternion: Any) -> np.ndarray:
    return Rotation.from_quat([*quaternion.GetImaginary(), quaternion.GetReal()]).as_matrix()


# Linear algebra.


def _cross(x: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def _vector(W: np.ndarray) -> np.ndarray:
    return np.array([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]]) / 2


def _null_space(J: np.ndarray) -> np.ndarray:
    _, sizes, V = np.linalg.svd(J)
    rank = int(np.sum(sizes > 1e-9 * max(1.0, sizes.max(initial=0.0))))
    return V[rank:].T


def main(files: Sequence[str]) -> None:
    """Print a line for each file."""
    print("| file | links | nv / ny | gap | error |")
    for name in files:
        path = Path(name)
        short = "/".join(path.parts[-2:])
        try:
            robot = load_robot(path)
        except ModelError as refusal:
            print(f"| {short} | refused: {' '.join(str(refusal).split())[:200]} |", flush=True)
            continue
        try:
            machine = read_sdf(path.read_text()) if path.suffix == ".sdf" else read_usd(path)
            gap, error = compare(machine, robot)
        except Exception as problem:
            print(f"| {short} | {type(problem).__name__}: {problem} |", flush=True)
            continue
        sizes = f"{len(machine.bodies)} | {robot.nv} / {robot.ny}"
        print(f"| {short} | {sizes} | {gap:.0e} | {error:.0e} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
