"""MJCF, compiled by MuJoCo itself: bodies, joints, inertias, actuators, and the pose to start from.

Joint positions are MuJoCo's own ``qpos``: hinges and slides have their ``ref`` at the pose that the
file draws. A body of several joints becomes a chain of massless links, the last of them the body.

A fixed tendon over several joints that an actuator pulls, or that has armature, becomes a massless
link on a joint of the tendon's name, whose position is the tendon's length: a coupling ties it to
the joints, an actuator's force acts along it, and armature is the joint's own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rbda_ros.description.expression import parse
from rbda_ros.description.mjcf_compiler import Names
from rbda_ros.description.model import (
    X_AXIS,
    Attachment,
    Constraint,
    Coupling,
    CutJoint,
    Expression,
    Guess,
    Inertia,
    Joint,
    JointType,
    Limits,
    Link,
    Pose,
    Segment,
    Spring,
    vector3,
)
from rbda_ros.description.orientation import about, from_quaternion, to_pose, to_rpy, turn_onto
from rbda_ros.description.read_robot import ReadRobot
from rbda_ros.description.report import Report, several
from rbda_ros.spatial import Array

_FREE, _BALL, _SLIDE, _HINGE = range(4)
_ENTRIES = {_FREE: 7, _BALL: 4}


def read_mjcf(model: Any, report: Report) -> ReadRobot:
    """Read a compiled model (mujoco.MjModel)."""
    names = Names(model)
    links: list[Link] = [Link(names.body(0))]
    joints: list[Joint] = []
    drives = _drives(model)
    for body in range(1, model.nbody):
        _add_body(model, body, names, links, joints, drives, report)
    constraints = list(read_equalities(model, names, report))
    motors = _motors(model, names, links, joints, constraints, drives, report)
    _warn_of_what_is_left_out(model, names, report)
    _warn_of_tendon_limits(model, names, drives, report)
    return ReadRobot(
        name=names.model(),
        links=tuple(links),
        joints=tuple(joints),
        constraints=tuple(constraints),
        actuated_joints=motors,
        assembly=_assembly(model, names),
        springs=_springs(model, names, report),
    )


@dataclass
class _Drive:
    """Additions of actuators to a joint or tendon: reflected inertia, damping, a force limit."""

    actuators: list[int] = field(default_factory=list)
    armature: float = 0.0
    damping: float = 0.0
    forces: float = 0.0

    @property
    def effort(self) -> float:
        """Largest effort of all actuators together; infinite without any."""
        return self.forces if self.actuators else math.inf


_Drives = dict[tuple[str, int], _Drive]
"""By "joint" or "tendon", and its number."""


def _drives(model: Any) -> _Drives:
    """Joints and tendons that actuators act on; inertia and damping go with the gear squared."""
    import mujoco

    kinds = mujoco.mjtTrn
    targets = {
        int(kinds.mjTRN_JOINT): "joint",
        int(kinds.mjTRN_JOINTINPARENT): "joint",
        int(kinds.mjTRN_TENDON): "tendon",
    }
    if hasattr(kinds, "mjTRN_SO3"):  # orients a ball joint, since version 4
        targets[int(kinds.mjTRN_SO3)] = "joint"
    count = len(model.actuator_trntype)
    nothing = np.zeros(count)  # versions of MuJoCo before 3.5 have neither
    armature = getattr(model, "actuator_armature", nothing)
    damping = getattr(model, "actuator_damping", nothing)
    drives: _Drives = {}
    for a in range(count):
        target = targets.get(int(model.actuator_trntype[a]))
        if target is None:
            continue
        gear = float(model.actuator_gear[_first_of(model, "actuator_outadr", a)][0])
        drive = drives.setdefault((target, int(model.actuator_trnid[a][0])), _Drive())
        drive.actuators.append(a)
        drive.armature += gear**2 * float(armature[a])
        drive.damping += gear**2 * _first(damping[a])
        drive.forces += abs(gear) * _largest_force(model, a)
    return drives


def _first_of(model: Any, addresses: str, a: int) -> int:
    """Number of an actuator's first output or control: since version 4 it may have several."""
    return int(getattr(model, addresses)[a]) if hasattr(model, addresses) else a


def _largest_force(model: Any, a: int) -> float:
    """Of an actuator: of its forces, or of a motor's controls."""
    import mujoco

    force = math.inf
    if model.actuator_forcelimited[a]:
        force = float(np.abs(model.actuator_forcerange[a]).max())
    is_motor = (
        int(model.actuator_gaintype[a]) == int(mujoco.mjtGain.mjGAIN_FIXED)
        and int(model.actuator_biastype[a]) == int(mujoco.mjtBias.mjBIAS_NONE)
        and int(model.actuator_dyntype[a]) == int(mujoco.mjtDyn.mjDYN_NONE)
    )
    first = _first_of(model, "actuator_ctrladr", a)
    if is_motor and model.actuator_ctrllimited[first]:
        control = float(np.abs(model.actuator_ctrlrange[first]).max())
        force = min(force, control * abs(float(model.actuator_gainprm[a][0])))
    return force


def _add_body(
    model: Any,
    body: int,
    names: Names,
    links: list[Link],
    joints: list[Joint],
    drives: _Drives,
    report: Report,
) -> None:
    """Add a body: its joints one after the other, and the rest of the way as a fixed joint."""
    name = names.body(body)
    parent = names.body(model.body_parentid[body])
    R, p = from_quaternion(model.body_quat[body]), np.array(model.body_pos[body])
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    for j in range(first, first + count):
        offset = np.array(model.jnt_pos[j]) if model.jnt_type[j] != _FREE else np.zeros(3)
        is_last = j == first + count - 1 and not np.any(offset)
        child = name if is_last else names.unique_link(f"{name}_{names.joint(j)}")
        drive = drives.get(("joint", j), _Drive())
        joints.append(_joint(model, j, names, parent, child, R, p, drive))
        if child != name:
            links.append(Link(child))
        parent, R, p = child, np.eye(3), -offset
    if parent != name:
        fixed = names.unique_joint(f"{name}_fixed")
        joints.append(Joint(fixed, "fixed", parent, name, to_pose(R, p)))
    links.append(Link(name, _inertia(model, body), 1.0 - float(model.body_gravcomp[body])))
    if model.body_mocapid[body] >= 0:
        report.warn(f"body {name!r}", "is moved by motion capture; it is fixed here")


def _joint(
    model: Any, j: int, names: Names, parent: str, child: str, R: Array, p: Array, drive: _Drive
) -> Joint:
    """A joint whose link is at R, p in the parent at the pose that the file draws."""
    kind, dof = int(model.jnt_type[j]), int(model.jnt_dofadr[j])
    axis = np.array(model.jnt_axis[j])
    ref = float(model.qpos0[model.jnt_qposadr[j]]) if kind in (_SLIDE, _HINGE) else 0.0
    p = p + R @ model.jnt_pos[j]
    if kind == _HINGE:
        R = R @ about(axis, -ref)
    elif kind == _SLIDE:
        p = p - ref * (R @ axis)
    limits = _limits(model, j, drive)
    types: dict[int, JointType] = {
        _FREE: "floating",
        _BALL: "spherical",
        _SLIDE: "prismatic",
        _HINGE: "revolute" if math.isfinite(limits.upper - limits.lower) else "continuous",
    }
    return Joint(
        name=names.joint(j),
        type=types[kind],
        parent=parent,
        child=child,
        origin=Pose() if kind == _FREE else to_pose(R, p),
        axis=vector3(axis) if kind in (_SLIDE, _HINGE) else X_AXIS,
        limits=limits,
        damping=_first(model.dof_damping[dof]) + drive.damping if kind != _FREE else 0.0,
        friction=float(model.dof_frictionloss[dof]) if kind != _FREE else 0.0,
        armature=float(model.dof_armature[dof]) + drive.armature,
    )


def _limits(model: Any, j: int, drive: _Drive) -> Limits:
    lower, upper, effort = -math.inf, math.inf, math.inf
    if model.jnt_limited[j] and model.jnt_type[j] in (_SLIDE, _HINGE):
        lower, upper = (float(bound) for bound in model.jnt_range[j])
    if model.jnt_actfrclimited[j]:
        effort = float(np.abs(model.jnt_actfrcrange[j]).max())
    if model.jnt_type[j] in (_SLIDE, _HINGE):
        effort = min(effort, drive.effort)
    return Limits(lower=lower, upper=upper, effort=effort)


def _inertia(model: Any, body: int) -> Inertia | None:
    mass, moments = float(model.body_mass[body]), model.body_inertia[body]
    if mass == 0.0 and not np.any(moments):
        return None
    origin = to_pose(from_quaternion(model.body_iquat[body]), model.body_ipos[body])
    ixx, iyy, izz = vector3(moments)
    return Inertia(mass, origin, ixx=ixx, iyy=iyy, izz=izz)


def _motors(
    model: Any,
    names: Names,
    links: list[Link],
    joints: list[Joint],
    constraints: list[Constraint],
    drives: _Drives,
    report: Report,
) -> tuple[str, ...] | None:
    """The joints that actuators act on, in the order of the actuators; None if there are none.

    Adds the joints whose positions are lengths of tendons.
    """
    by_name = {joint.name: i for i, joint in enumerate(joints)}
    motors: dict[int, str] = {}
    for (target, number), drive in drives.items():
        if target == "joint" and model.jnt_type[number] != _FREE:
            motors |= dict.fromkeys(drive.actuators, names.joint(number))
    for t in range(model.ntendon):
        drive = drives.get(("tendon", t), _Drive())
        armature = float(model.tendon_armature[t]) + drive.armature
        terms = names.fixed_tendon(t)
        if not terms:
            if armature:
                report.warn(
                    f"tendon {names.tendon(t)!r}", "its armature is left out: it is spatial"
                )
            continue
        if len(terms) == 1:  # the joint's own, through its coefficient
            ((name, coefficient),) = terms.items()
            joint = joints[by_name[name]]
            effort = min(joint.limits.effort, abs(coefficient) * drive.effort)
            joints[by_name[name]] = replace(
                joint,
                armature=joint.armature + coefficient**2 * armature,
                damping=joint.damping
                + coefficient**2 * (_first(model.tendon_damping[t]) + drive.damping),
                limits=replace(joint.limits, effort=effort),
            )
            motors |= dict.fromkeys(drive.actuators, name)
        elif drive.actuators or armature:
            joint = _tendon_joint(model, t, names, joints[by_name[next(iter(terms))]], drive)
            links.append(Link(joint.child))
            joints.append(replace(joint, armature=armature))
            of_joints = {name: -coefficient for name, coefficient in terms.items()}
            constraints.append(Coupling(f"{joint.name}_length", {joint.name: 1.0} | of_joints))
            motors |= dict.fromkeys(drive.actuators, joint.name)
    _warn_of_actuators(model, names, drives, motors, report)
    ordered = dict.fromkeys(motors[a] for a in sorted(motors))
    return tuple(ordered) or None


def _tendon_joint(model: Any, t: int, names: Names, first: Joint, drive: _Drive) -> Joint:
    """Where the tendon's length is a position: on the link that its first joint is on."""
    name = names.unique_joint(names.tendon(t))
    lower, upper = -math.inf, math.inf
    if model.tendon_limited[t]:
        lower, upper = (float(bound) for bound in model.tendon_range[t])
    effort = drive.effort
    if model.tendon_actfrclimited[t]:
        effort = min(effort, float(np.abs(model.tendon_actfrcrange[t]).max()))
    return Joint(
        name=name,
        type="prismatic",
        parent=first.parent,
        child=names.unique_link(name),
        limits=Limits(lower=lower, upper=upper, effort=effort),
        damping=drive.damping,
    )


_LEFT_OUT = {
    "joint": "act on a free joint, and are left out",
    "tendon": "pull spatial tendons, and are left out: give their efforts on the joints",
    None: "act on sites or bodies, and are left out",
}


def _warn_of_actuators(
    model: Any, names: Names, drives: _Drives, motors: Collection[int], report: Report
) -> None:
    """Warn of actuators that are no motors of joints, once for each reason."""
    targets = {a: target for (target, _), drive in drives.items() for a in drive.actuators}
    reasons: dict[str, list[str]] = {}
    for a in range(len(model.actuator_trntype)):
        if a not in motors:
            reasons.setdefault(_LEFT_OUT[targets.get(a)], []).append(names.actuator(a))
    for reason, left_out in reasons.items():
        report.warn(f"{len(left_out)} actuator(s)", f"{several(left_out)} {reason}")


def _assembly(model: Any, names: Names) -> dict[str, Guess]:
    """The pose of the file, or a keyframe that violates the equalities much less."""
    import mujoco

    poses = [model.qpos0, *model.key_qpos]
    best, least = model.qpos0, math.inf
    if model.neq:
        data = mujoco.MjData(model)
        for qpos in poses:
            mujoco.mj_resetData(model, data)
            data.qpos[:] = qpos
            mujoco.mj_forward(model, data)
            violation = float(np.abs(data.efc_pos[: data.ne]).max(initial=0.0))
            if violation < 0.1 * least - 1e-9:
                best, least = qpos, violation
    return {names.joint(j): _position(model, j, best) for j in range(model.njnt)}


def _position(model: Any, j: int, qpos: Array) -> Guess:
    """Where a pose has a joint; MuJoCo's quaternions begin with w, ours end with it."""
    kind, first = int(model.jnt_type[j]), int(model.jnt_qposadr[j])
    if kind in (_SLIDE, _HINGE):
        return float(qpos[first])
    *before, w, x, y, z = (float(value) for value in qpos[first : first + _ENTRIES[kind]])
    return (*before, x, y, z, w)


def _first(value: Any) -> float:
    """The linear coefficient: some versions of MuJoCo have a polynomial's after it."""
    return float(np.ravel(value)[0])


def _springs(model: Any, names: Names, report: Report) -> tuple[Spring, ...]:
    """Springs of joints, and of tendons whose length is a sum over joints or a distance."""
    springs = []
    for j in range(model.njnt):
        stiffness = _first(model.jnt_stiffness[j])
        if not stiffness:
            continue
        name, rest = names.joint(j), _position(model, j, model.qpos_spring)
        spring = Spring(f"{name}_spring", stiffness)
        if isinstance(rest, tuple):
            springs.append(replace(spring, joint=name, reference=rest))
        else:
            springs.append(replace(spring, rest=(rest, rest), terms={name: 1.0}))
    for t in range(model.ntendon):
        stiffness, terms = _first(model.tendon_stiffness[t]), names.fixed_tendon(t)
        if not stiffness:
            continue
        lower, upper = (float(length) for length in model.tendon_lengthspring[t])
        spring = Spring(f"{names.tendon(t)}_spring", stiffness, (lower, upper), terms=terms)
        if not terms:
            way = straight_lines(model, t, names)
            if way is None:
                report.warn(
                    f"tendon {names.tendon(t)!r}",
                    "its spring is left out: it runs around a geom; 'springs' in the loop file has"
                    " sums over joints and over straight lines",
                )
                continue
            segments, constant = way
            if not segments:
                continue  # all of it is on one body
            spring = replace(spring, rest=(lower - constant, upper - constant), segments=segments)
        springs.append(spring)
    for of in ("jnt", "tendon"):
        poly = getattr(model, f"{of}_stiffnesspoly", 0.0)
        if np.any(poly) or np.any(getattr(model, f"{of}_springyield", 0.0)):
            report.warn("springs", "those that are not linear are read as linear ones")
    return tuple(springs)


def _warn_of_what_is_left_out(model: Any, names: Names, report: Report) -> None:
    if model.nflex:
        report.warn("flex", f"{model.nflex} deformable bodies are left out")
    for j in range(model.njnt):
        dof = int(model.jnt_dofadr[j])
        if model.jnt_type[j] == _FREE and (
            _first(model.dof_damping[dof]) or model.dof_frictionloss[dof]
        ):
            report.warn(
                f"joint {names.joint(j)!r}", "damping and friction of a free joint are left out"
            )
    for t in range(model.ntendon):
        where, alone = f"tendon {names.tendon(t)!r}", len(names.fixed_tendon(t)) == 1
        if (_first(model.tendon_damping[t]) and not alone) or model.tendon_frictionloss[t]:
            report.warn(where, "its damping and friction are left out")
    for kind in ("dof", "actuator", "tendon"):
        if np.any(getattr(model, f"{kind}_dampingpoly", 0.0)):
            report.warn("damping", f"of {_KINDS[kind]}s is not linear: only its first term is read")
    _warn_of_options(model, report)


def _warn_of_tendon_limits(model: Any, names: Names, drives: _Drives, report: Report) -> None:
    """Name tendons that keep a length within limits: gears with play, or ropes."""
    ropes = []
    for t in range(model.ntendon):
        terms = names.fixed_tendon(t)
        has_joint = len(terms) > 1 and (("tendon", t) in drives or model.tendon_armature[t])
        if not model.tendon_limited[t] or has_joint:
            continue  # the joint that was made of the tendon has its limits
        if not terms:
            ropes.append(names.tendon(t))
            continue
        lower, upper = (float(bound) for bound in model.tendon_range[t])
        sums = ", ".join(f"{name}: {coefficient:g}" for name, coefficient in terms.items())
        gear = f"{{type: coupling, terms: {{{sums}}}, offset: {(lower + upper) / 2:g}}}"
        report.warn(
            f"tendon {names.tendon(t)!r}",
            f"it keeps a sum of joints between {lower:g} and {upper:g}, which is left out; where"
            f" that is a gear with play, write 'constraints: [{gear}]' into the loop file",
        )
    if ropes:
        report.warn(f"{len(ropes)} tendon(s)", f"{several(ropes)}: limits of lengths are left out")


_DISABLED = {
    "EQUALITY": "equality constraints",
    "CONSTRAINT": "constraints, equalities among them,",
    "PASSIVE": "springs and damping",
    "SPRING": "springs",
    "DAMPER": "damping",
    "FRICTIONLOSS": "friction losses",
}
_KINDS = {"dof": "joint", "actuator": "actuator", "tendon": "tendon"}


def _warn_of_options(model: Any, report: Report) -> None:
    import mujoco

    if model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_GRAVITY):
        report.warn("flag", "gravity is disabled in the file, but not here: give gravity (0, 0, 0)")
    elif not np.allclose(model.opt.gravity, (0.0, 0.0, -9.81), atol=5e-3):
        given = " ".join(f"{component:g}" for component in model.opt.gravity)
        report.warn("option", f"gravity {given} is left to the argument 'gravity'")
    for flag, parts in _DISABLED.items():
        bit = getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}", None)
        if bit is not None and model.opt.disableflags & int(bit):
            report.warn("flag", f"{parts} are disabled in the file, but not here")
    if model.opt.density or model.opt.viscosity or np.any(model.opt.wind):
        report.warn("option", "forces of a fluid (density, viscosity, wind) are left out")


SAME_LENGTH = 1e-6
"""How far the distances of two pairs of points may differ for them to be one hinge [m]."""
SHORTEST_HINGE = 1e-5
"""Points of two connects nearer than this [m] do not make a hinge."""


def read_equalities(model: Any, names: Names, report: Report) -> Iterator[Constraint]:
    """The active equalities; two connects between the same bodies are one hinge."""
    import mujoco

    kinds = mujoco.mjtEq
    connects: dict[tuple[str, str], list[CutJoint]] = {}
    for e in range(model.neq):
        name, kind = names.equality(e), int(model.eq_type[e])
        where = f"equality {name!r}"
        if not model.eq_active0[e]:
            report.warn(where, "is not active, and is left out")
        elif kind == int(kinds.mjEQ_CONNECT):
            cut = _cut(model, e, names, "spherical")
            connects.setdefault((cut.predecessor.link, cut.successor.link), []).append(cut)
        elif kind == int(kinds.mjEQ_WELD):
            # Without a torque scale a weld holds its point alone.
            turns_freely = model.eq_data[e][10] == 0.0
            yield _cut(model, e, names, "spherical" if turns_freely else "fixed")
        elif kind == int(kinds.mjEQ_JOINT):
            yield _polynomial(model, e, name, *_joint_sides(model, e, names))
        elif kind == int(kinds.mjEQ_TENDON):
            if (sides := _tendon_sides(model, e, names)) is not None:
                yield _polynomial(model, e, name, *sides)
            elif (rod := _rod(model, e, names)) is not None:
                yield rod
            else:
                report.warn(
                    where,
                    "ties spatial tendons of several segments, and is left out; where that is a"
                    " pulley, a coupling of its joints in the loop file is exact",
                )
        else:
            report.warn(where, f"of type {kinds(kind).name} is not understood, and is left out")
    for cuts in connects.values():
        hinge = _hinge(cuts) if len(cuts) == 2 else None
        yield from cuts if hinge is None else [hinge]


def _cut(model: Any, e: int, names: Names, kind: Any) -> CutJoint:
    """A connect or a weld, between bodies or sites."""
    import mujoco

    data, ids = model.eq_data[e], (int(model.eq_obj1id[e]), int(model.eq_obj2id[e]))
    if int(model.eq_objtype[e]) == int(mujoco.mjtObj.mjOBJ_SITE):
        ends = [
            Attachment(
                names.body(model.site_bodyid[i]),
                to_pose(from_quaternion(model.site_quat[i]), model.site_pos[i]),
            )
            for i in ids
        ]
    elif int(model.eq_type[e]) == int(mujoco.mjtEq.mjEQ_CONNECT):
        ends = [
            Attachment(names.body(i), to_pose(np.eye(3), point))
            for i, point in zip(ids, (data[0:3], data[3:6]), strict=True)
        ]
    else:  # the point of a weld is given on the second body, the pose of that in the first
        ends = [
            Attachment(names.body(ids[0]), to_pose(from_quaternion(data[6:10]), data[3:6])),
            Attachment(names.body(ids[1]), to_pose(np.eye(3), data[0:3])),
        ]
    return CutJoint(names.equality(e), kind, ends[0], ends[1])


def _hinge(cuts: list[CutJoint]) -> CutJoint | None:
    """The revolute cut that holds two pairs of points together; None where it is not one."""
    first, second = cuts
    lines = []
    for end in ("predecessor", "successor"):
        one, other = (np.array(getattr(cut, end).origin.xyz) for cut in (first, second))
        lines.append(other - one)
    lengths = [float(np.linalg.norm(line)) for line in lines]
    if min(lengths) < SHORTEST_HINGE or abs(lengths[0] - lengths[1]) > SAME_LENGTH:
        return None
    axis, other_axis = (vector3(line / size) for line, size in zip(lines, lengths, strict=True))
    origin = Pose(first.successor.origin.xyz, to_rpy(turn_onto(axis, other_axis)))
    return CutJoint(
        f"{first.name}_{second.name}",
        "revolute",
        Attachment(first.predecessor.link, Pose(first.predecessor.origin.xyz)),
        Attachment(first.successor.link, origin),
        axis=axis,
    )


Side = tuple[dict[str, float], float]
"""Joints with coefficients, and their sum at the reference pose."""


def _joint_sides(model: Any, e: int, names: Names) -> tuple[Side, Side | None]:
    def side(j: int) -> Side:
        return {names.joint(j): 1.0}, float(model.qpos0[model.jnt_qposadr[j]])

    second = int(model.eq_obj2id[e])
    return side(int(model.eq_obj1id[e])), side(second) if second >= 0 else None


def _tendon_sides(model: Any, e: int, names: Names) -> tuple[Side, Side | None] | None:
    sides: list[Side] = []
    for tendon in (int(model.eq_obj1id[e]), int(model.eq_obj2id[e])):
        if tendon >= 0:
            terms = names.fixed_tendon(tendon)
            if not terms:
                return None
            sides.append((terms, float(model.tendon_length0[tendon])))
    return sides[0], sides[1] if len(sides) > 1 else None


def _rod(model: Any, e: int, names: Names) -> CutJoint | None:
    """The distance that a spatial tendon of constant length holds; None where it is not one."""
    tendon = int(model.eq_obj1id[e])
    way = straight_lines(model, tendon, names)
    if way is None or len(way[0]) != 1 or int(model.eq_obj2id[e]) >= 0:
        return None
    (segment,), rest = way
    length = float(model.tendon_length0[tendon] + model.eq_data[e][0]) - rest
    length /= segment.coefficient
    if length <= 0.0:
        return None
    ends = segment.predecessor, segment.successor
    return CutJoint(names.equality(e), "distance", *ends, length=length)


def straight_lines(
    model: Any, tendon: int, names: Names
) -> tuple[tuple[Segment, ...], float] | None:
    """Segments of a spatial tendon whose length may change, and the length of the others [m].

    A pulley divides the length of what follows it. None where the path runs around a geom.
    """
    import mujoco

    first = int(model.tendon_adr[tendon])
    segments, rest, divisor = [], 0.0, 1.0
    before: int | None = None  # the site that the path comes from
    for w in range(first, first + int(model.tendon_num[tendon])):
        kind = int(model.wrap_type[w])
        if kind == int(mujoco.mjtWrap.mjWRAP_PULLEY):
            divisor, before = float(model.wrap_prm[w]), None
            continue
        if kind != int(mujoco.mjtWrap.mjWRAP_SITE):
            return None
        site = int(model.wrap_objid[w])
        if before is not None:
            ends = [
                Attachment(names.body(model.site_bodyid[i]), Pose(vector3(model.site_pos[i])))
                for i in (before, site)
            ]
            if ends[0].link == ends[1].link:
                apart = model.site_pos[before] - model.site_pos[site]
                rest += float(np.linalg.norm(apart)) / divisor
            else:
                segments.append(Segment(ends[0], ends[1], 1.0 / divisor))
        before = site
    return tuple(segments), rest


def _polynomial(
    model: Any, e: int, name: str, first: Side, second: Side | None
) -> Coupling | Expression:
    """``first - its reference = polynomial of (second - its reference)``."""
    c = [float(value) for value in model.eq_data[e][:5]]
    if second is None:
        return Coupling(name, first[0], offset=first[1] + c[0])
    if not any(c[2:]):
        terms = dict(first[0])
        for joint, coefficient in second[0].items():
            terms[joint] = terms.get(joint, 0.0) - c[1] * coefficient
        terms = {joint: coefficient for joint, coefficient in terms.items() if coefficient}
        return Coupling(name, terms, offset=first[1] + c[0] - c[1] * second[1])
    x = f"({_sum(second[0])} - ({second[1]!r}))"
    powers = " + ".join(f"({c[i]!r})*{x}**{i}" if i else f"({c[0]!r})" for i in range(5) if c[i])
    equation = f"{_sum(first[0])} - ({first[1]!r}) - ({powers})"
    return Expression(name, equation, parse(equation))


def _sum(terms: dict[str, float]) -> str:
    return "(" + " + ".join(f"({value!r})*`{name}`" for name, value in terms.items()) + ")"
