"""MJCF, compiled by MuJoCo itself: bodies, joints, inertias, actuators, and the pose to start from.

Joint positions are MuJoCo's own ``qpos``: hinges and slides have their ``ref`` at the pose that the
file draws. A body of several joints becomes a chain of massless links, the last of them the body.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rbda_ros.description.mjcf_equality import read_equalities
from rbda_ros.description.mjcf_names import Names
from rbda_ros.description.model import (
    Guess,
    Inertia,
    Joint,
    JointType,
    Limits,
    Link,
    Pose,
)
from rbda_ros.description.orientation import about, to_pose, to_rpy
from rbda_ros.description.read_robot import ReadRobot
from rbda_ros.description.report import Report

_FREE, _BALL, _SLIDE, _HINGE = range(4)
_ENTRIES = {_FREE: 7, _BALL: 4}


@dataclass(frozen=True, eq=False)
class _Frame:
    R: NDArray[np.float64]
    p: NDArray[np.float64]


def read_mjcf(model: Any, report: Report) -> ReadRobot:
    """Read a compiled model (mujoco.MjModel)."""
    names = Names(model)
    links: list[Link] = [Link(names.body(0))]
    joints: list[Joint] = []
    for body in range(1, model.nbody):
        _add_body(model, body, names, links, joints, report)
    _warn_of_what_is_left_out(model, names, report)
    return ReadRobot(
        name=names.model(),
        links=tuple(links),
        joints=tuple(joints),
        constraints=tuple(read_equalities(model, names, report)),
        actuated_joints=_actuated(model, names, report),
        assembly=_assembly(model, names),
    )


def _add_body(
    model: Any, body: int, names: Names, links: list[Link], joints: list[Joint], report: Report
) -> None:
    """Add a body: its joints one after the other, and the rest of the way as a fixed joint."""
    name = names.body(body)
    parent = names.body(model.body_parentid[body])
    frame = _Frame(_rotation(model.body_quat[body]), np.array(model.body_pos[body]))
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    for j in range(first, first + count):
        offset = np.array(model.jnt_pos[j]) if model.jnt_type[j] != _FREE else np.zeros(3)
        is_last = j == first + count - 1 and not np.any(offset)
        child = name if is_last else names.unique_link(f"{name}_{names.joint(j)}")
        joints.append(_joint(model, j, names, parent, child, frame))
        if child != name:
            links.append(Link(child))
        parent, frame = child, _Frame(np.eye(3), -offset)
    if parent != name:
        fixed = names.unique_joint(f"{name}_fixed")
        joints.append(Joint(fixed, "fixed", parent, name, to_pose(frame.R, frame.p)))
    links.append(Link(name, _inertia(model, body)))
    if model.body_mocapid[body] >= 0:
        report.warn(f"body {name!r}", "is moved by motion capture; it is fixed here")
    if model.body_gravcomp[body]:
        report.warn(f"body {name!r}", "gravcomp is a force of the simulator's, and is left out")


def _joint(model: Any, j: int, names: Names, parent: str, child: str, frame: _Frame) -> Joint:
    kind, dof = int(model.jnt_type[j]), int(model.jnt_dofadr[j])
    axis = np.array(model.jnt_axis[j])
    ref = float(model.qpos0[model.jnt_qposadr[j]]) if kind in (_SLIDE, _HINGE) else 0.0
    R, p = frame.R, frame.p + frame.R @ model.jnt_pos[j]
    if kind == _HINGE:
        R = R @ about(axis, -ref)
    elif kind == _SLIDE:
        p = p - ref * (R @ axis)
    x, y, z = (float(component) for component in axis)
    limits = _limits(model, j)
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
        axis=(x, y, z) if kind in (_SLIDE, _HINGE) else (1.0, 0.0, 0.0),
        limits=limits,
        damping=float(np.ravel(model.dof_damping[dof])[0]) if kind != _FREE else 0.0,
        friction=float(model.dof_frictionloss[dof]) if kind != _FREE else 0.0,
        armature=float(model.dof_armature[dof]) if kind != _FREE else 0.0,
    )


def _limits(model: Any, j: int) -> Limits:
    lower, upper, effort = -math.inf, math.inf, math.inf
    if model.jnt_limited[j] and model.jnt_type[j] in (_SLIDE, _HINGE):
        lower, upper = (float(bound) for bound in model.jnt_range[j])
    if model.jnt_actfrclimited[j]:
        effort = float(np.abs(model.jnt_actfrcrange[j]).max())
    return Limits(lower=lower, upper=upper, effort=effort)


def _inertia(model: Any, body: int) -> Inertia | None:
    mass, moments = float(model.body_mass[body]), model.body_inertia[body]
    if mass == 0.0 and not np.any(moments):
        return None
    x, y, z = (float(component) for component in model.body_ipos[body])
    origin = Pose((x, y, z), to_rpy(_rotation(model.body_iquat[body])))
    ixx, iyy, izz = (float(moment) for moment in moments)
    return Inertia(mass, origin, ixx=ixx, iyy=iyy, izz=izz)


def _actuated(model: Any, names: Names, report: Report) -> tuple[str, ...] | None:
    """Joints that actuators act on; gears only scale what a controller sends there."""
    import mujoco

    if not model.nu:
        return None
    joints: dict[str, None] = {}
    by_joint = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
    for a in range(model.nu):
        target, where = int(model.actuator_trnid[a][0]), f"actuator {names.actuator(a)!r}"
        if int(model.actuator_trntype[a]) in by_joint:
            if model.jnt_type[target] == _FREE:
                report.warn(where, "acts on a free joint, and is left out")
            else:
                joints[names.joint(target)] = None
        elif int(model.actuator_trntype[a]) == int(mujoco.mjtTrn.mjTRN_TENDON) and (
            terms := names.fixed_tendon(target)
        ):
            joints.update(dict.fromkeys(terms))
            report.warn(where, f"pulls a tendon; its joints {', '.join(terms)} are actuated here")
        else:
            report.warn(where, "acts neither on a joint nor on a fixed tendon, and is left out")
    return tuple(joints) or None


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


def _position(model: Any, j: int, qpos: NDArray[np.float64]) -> Guess:
    """Where a pose has a joint; MuJoCo's quaternions begin with w, ours end with it."""
    kind, first = int(model.jnt_type[j]), int(model.jnt_qposadr[j])
    if kind in (_SLIDE, _HINGE):
        return float(qpos[first])
    *before, w, x, y, z = (float(value) for value in qpos[first : first + _ENTRIES[kind]])
    return (*before, x, y, z, w)


def _warn_of_what_is_left_out(model: Any, names: Names, report: Report) -> None:
    for j in range(model.njnt):
        if np.any(model.jnt_stiffness[j]):
            report.warn(f"joint {names.joint(j)!r}", "its spring is left out: give it as effort")
    if model.nflex:
        report.warn("flex", f"{model.nflex} deformable bodies are left out")
    if np.any(model.tendon_stiffness) or np.any(model.tendon_damping):
        report.warn("tendon", "springs and dampers of tendons are left out")
    if not np.allclose(model.opt.gravity, (0.0, 0.0, -9.81), atol=5e-3):
        given = " ".join(f"{component:g}" for component in model.opt.gravity)
        report.warn("option", f"gravity {given} is left to the argument 'gravity'")


def _rotation(quaternion: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3, 3) of a quaternion w x y z."""
    w, x, y, z = (float(c) for c in quaternion / np.linalg.norm(quaternion))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
