"""``rbda_ros check``: one page of verdicts on a robot, with an exit code for CI."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import casadi as ca
import numpy as np

from rbda_ros.cli.inspection import constraint_facts
from rbda_ros.cli.robot_arguments import add_robot_arguments, load
from rbda_ros.cluster_tree.closing.newton import solve
from rbda_ros.cluster_tree.closing.tolerances import NEARBY, SINGULAR
from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.cluster_tree.straight_line import conditioning
from rbda_ros.description.loop_conventions import frames_by_pairs
from rbda_ros.description.model import Attachment, Coupling, CutJoint, CutType
from rbda_ros.description.writers import write_constraints
from rbda_ros.errors import ModelError, counted
from rbda_ros.robot.robot import Robot
from rbda_ros.spatial import Array

Grade = Literal["ok", "info", "warn", "fail"]
POOR = 1e-3
"""Conditioning of y below which its loops are near a dead point."""
LIGHT, NEAR = 1e-6, 1e-3
"""Mass [kg] below which a link is a frame, and how near two frames are that meet [m]."""
STEPS, STEP = 40, 0.05
"""Steps from the assembly in one direction, and how far each moves y [rad, m]."""


@dataclass(frozen=True)
class Verdict:
    """One line of the page."""

    grade: Grade
    what: str
    text: str


def add_parser(subparsers: Any) -> None:
    """Add the command ``check`` to a parser of commands."""
    parser = subparsers.add_parser(
        "check",
        help="tell whether a robot's model is sound",
        description="Check a robot's model and print one line per check, graded ok, info, warn or "
        "fail. The exit code is 1 if a check fails, else 0.",
    )
    add_robot_arguments(parser)
    parser.add_argument("--strict", action="store_true", help="exit code 1 for warnings, too")


def run(args: argparse.Namespace) -> int:
    """Print the page; returns the exit code."""
    try:
        robot = load(args)
    except ModelError as error:
        for line in str(error).splitlines():
            print(f"fail  model         {line}")
        return 1
    grades = set()
    for verdict in verdicts(robot):
        first, *more = verdict.text.splitlines() or [""]
        print(f"{verdict.grade:<5} {verdict.what:<13} {first}")
        for line in more:
            print(f"      {line}")
        grades.add(verdict.grade)
    sys.stdout.flush()
    return int("fail" in grades or (args.strict and "warn" in grades))


def verdicts(robot: Robot) -> Iterator[Verdict]:
    """Verdicts about a robot that loads."""
    joints = counted(len(robot.joint_names), "moving joint")
    freedom = counted(robot.ny, "degree of freedom", "degrees of freedom")
    yield Verdict("ok", "mobility", f"{freedom}, {joints}")
    yield from _loops(robot)
    yield from _motion(robot)
    yield from _joints(robot)
    yield from _proposed_loops(robot)
    for warning in robot.warnings:
        yield Verdict("warn", "model", warning)


def _loops(robot: Robot) -> Iterator[Verdict]:
    if not robot.has_loops:
        yield Verdict("ok", "loops", "none")
        return
    loops = [(node.loop, node.home) for node in robot.cluster_nodes if node.loop is not None]
    residual = max(np.abs(loop.residual(home)).max(initial=0.0) for loop, home in loops)
    yield Verdict("ok", "closes", f"to {residual:.1e} at the assembly")
    facts = [fact for node in robot.cluster_nodes for fact in constraint_facts(node)]
    redundant = {fact.name: fact.rows - fact.rows_kept for fact in facts}
    named = ", ".join(f"{name} {count}" for name, count in redundant.items() if count)
    yield Verdict("ok", "redundant", f"rows dropped: {named or 'none'}")
    if idle := robot.idle_links:
        yield Verdict(
            "ok",
            "idle",
            f"frozen, as they spin about themselves and nothing determines that: {', '.join(idle)}"
            " (idle_freedoms in the loop file sets a link free)",
        )


def _proposed_loops(robot: Robot) -> Iterator[Verdict]:
    """Loops that pairs of frames stand for: those in use, and others that the frames suggest."""
    used = [
        constraint
        for constraint in robot.description.constraints
        if isinstance(constraint, CutJoint) and constraint.predecessor.link.startswith("closing_")
    ]
    suggested = _meeting_frames(robot)
    for grade, found, text in (
        ("info", used, "taken from frames of onshape-to-robot; as a loop file:"),
        ("warn", suggested, "frames that meet suggest loops; to close them, add to the loop file:"),
    ):
        if found:
            lines = write_constraints(found).splitlines()
            yield Verdict(cast(Grade, grade), "loop file", "\n".join([text, *lines]))


def _meeting_frames(robot: Robot) -> list[CutJoint]:
    """Cuts between massless links in pairs, on different bodies and at one place at the assembly.

    Hinges where their z axes agree, otherwise balls.
    """
    description = robot.description
    used = {
        end.link
        for cut in description.constraints
        if isinstance(cut, CutJoint)
        for end in (cut.predecessor, cut.successor)
    }
    parents = {joint.parent for joint in description.joints}
    fixed = {joint.child for joint in description.joints if joint.type == "fixed"}
    frames = [
        link.name
        for link in description.links
        if link.name in fixed - parents - used
        and (link.inertia is None or link.inertia.mass < LIGHT)
    ]
    found = []
    for name, one, other in frames_by_pairs(frames):
        bodies = [robot.spanning_tree.links[each].body for each in (one, other)]
        T, U = (robot.frame_pose(robot.neutral(), each) for each in (one, other))
        if bodies[0] != bodies[1] and np.linalg.norm(T[:3, 3] - U[:3, 3]) < NEAR:
            along = float(T[:3, 2] @ U[:3, 2]) > 1.0 - 1e-6
            kind: CutType = "revolute" if along else "spherical"
            ends = (Attachment(one), Attachment(other))
            found.append(CutJoint(name, kind, *ends, axis=(0.0, 0.0, 1.0)))
    return found


def _motion(robot: Robot) -> Iterator[Verdict]:
    """How well y determines the other joints, along random directions from the assembly."""
    if not robot.has_loops:
        return
    worst, stops = 1.0, 0
    for seed in range(4):
        way = np.random.default_rng(seed).normal(size=robot.ny)
        way *= STEP / np.abs(way).max(initial=1e-9)
        ended, at = False, 0
        for node in robot.cluster_nodes:
            part = way[at : at + len(node.independent)]
            at += len(node.independent)
            if node.loop is not None:
                least, ends = _follow(node.loop, node.home, node.independent, part)
                worst, ended = min(worst, least), ended or ends
        stops += ended
    grade: Grade = "ok" if worst >= POOR else "warn"
    text = f"{worst:.1e} at worst over {4 * STEPS} steps of {STEP:g} (1 is best, 0 a dead point)"
    yield Verdict(grade, "conditioning", text)
    if stops:
        text = f"{stops} of 4 directions end where the loops can go no farther"
        yield Verdict("info", "range", text)


def _follow(loop: Loop, home: Array, independent: Sequence[int], way: Array) -> tuple[float, bool]:
    """Least conditioning of one cluster along a direction of y, and whether its loops end there.

    Numbers alone, without the kernels of `Robot.close`: tracing these takes seconds.
    """
    chosen = list(independent)
    dependent = [j for j in range(loop.nv) if j not in chosen]
    q, worst = home, 1.0
    for _ in range(1 if loop.constant else STEPS):
        K = loop.jacobian(q)
        if dependent:
            worst = min(worst, float(conditioning(ca.DM(K[:, dependent]), ca.DM(K[:, chosen]))))
        if worst < SINGULAR:
            return worst, True
        qd = np.zeros(loop.nv)
        qd[chosen] = way
        qd[dependent] = np.linalg.lstsq(K[:, dependent], -K[:, chosen] @ way, rcond=None)[0]
        ahead = loop.integrate(q, qd)
        closed = solve(loop, ahead, dependent)
        if not closed.ok or np.abs(closed.q - ahead).max(initial=0.0) > NEARBY:
            return worst, True
        q = closed.q
    return worst, False


def _joints(robot: Robot) -> Iterator[Verdict]:
    independent = set(robot.independent_joint_names)
    bare = [
        joint.name
        for joint in robot.description.joints
        if joint.name in independent
        and joint.type in ("revolute", "prismatic")
        and not np.isfinite(joint.limits.upper - joint.limits.lower)
    ]
    if bare:
        yield Verdict("warn", "limits", f"no position limits: {', '.join(bare)}")
    listed = robot.description.actuated_joints or ()
    for constraint in robot.description.constraints:
        if isinstance(constraint, Coupling) and len(constraint.terms) == 2:
            motors = [name for name in constraint.terms if "rotor" in name or "motor" in name]
            motors = motors or [name for name in constraint.terms if name in listed]
            if len(motors) == 1:
                (other,) = set(constraint.terms) - set(motors)
                ratio = abs(constraint.terms[other] / constraint.terms[motors[0]])
                if ratio < 1.0:
                    yield Verdict(
                        "warn",
                        "gear",
                        f"{constraint.name}: {motors[0]} turns {ratio:.3g} times for each turn of"
                        f" {other}; is the ratio inverted?",
                    )
