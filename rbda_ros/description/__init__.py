"""Text in, plain frozen dataclasses out: URDF, URDF+, xacro, MJCF, SDF, USD, loop files.

Lives here: a reader for each format, checks, and the dataclasses in `model`.
Imports only `errors` and `spatial`.
Used from outside: `read_description` and the `RobotDescription` that it returns.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from lxml import etree

from rbda_ros.description import source, xml_text, yaml_text
from rbda_ros.description.combine import combine
from rbda_ros.description.elements import warn_of_unknown_elements
from rbda_ros.description.loop_conventions import (
    drake_frames,
    gepetto_to_loop_file,
    is_gepetto,
    read_drake_constraints,
    read_loop_elements,
)
from rbda_ros.description.loop_file import JointOverride, LoopFile, read_loop_file
from rbda_ros.description.mjcf import read_mjcf
from rbda_ros.description.mjcf_compiler import compile_mjcf
from rbda_ros.description.model import AXES, Joint, Link, RobotDescription
from rbda_ros.description.read_robot import ReadRobot, choose_tree
from rbda_ros.description.report import Report
from rbda_ros.description.sdf import read_gazebo_joints, read_sdf
from rbda_ros.description.sdf_frames import WORLD
from rbda_ros.description.urdf import (
    read_drake_joints,
    read_joints,
    read_links,
    read_loops,
    read_mimics,
    read_name,
    read_path_couplings,
)
from rbda_ros.description.usd import is_usd, read_usd

__all__ = ["read_description"]


def read_description(
    urdf: str | os.PathLike[str],
    loops: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    xacro_arguments: Mapping[str, str] | None = None,
) -> RobotDescription:
    """Read and check a robot's file and loop file.

    Args:
        urdf: a path or XML text; URDF, URDF+, MJCF or SDF, as its root element says. A file that
            uses xacro is expanded by it. Or the path of a USD file.
        loops: the loop-constraint file, ours or Gepetto's, as a path, YAML text or a mapping;
            None or "" for none.
        xacro_arguments: for the <xacro:arg> elements of the file.

    Raises:
        DescriptionError: with every problem found, each naming element, reason and remedy.
    """
    report = Report()
    is_stage = is_usd(urdf) and not source.is_text(urdf)
    text, root = ("", None) if is_stage else source.read_xml(urdf, report, xacro_arguments)
    if root is not None and root.tag not in ("robot", "mujoco", "sdf"):
        report.problem(
            f"<{root.tag}>",
            "is not a URDF, nor an MJCF or SDF",
            "start the description with <robot>, <mujoco> or <sdf>",
        )
        root = None
    loop_file = read_loop_file(_in_our_form(_read_loops(loops, report), root, report), report)
    if is_stage:
        robot = read_usd(urdf, report)
    else:
        robot = None if root is None else _read_robot(urdf, text, root, loop_file, report)
    if robot is None:
        report.raise_problems()
    assert robot is not None  # else there was a problem
    if loop_file.root not in (None, robot.name):
        robot = choose_tree(robot, loop_file.root or "", report)
    description = combine(robot, loop_file, report)
    report.raise_problems()
    return replace(description, digits=source.significant_digits(text))


def _read_robot(
    urdf: str | os.PathLike[str],
    text: str,
    root: etree._Element,
    loop_file: LoopFile,
    report: Report,
) -> ReadRobot:
    """Content of a file in XML, by the reader of its format."""
    warn_of_unknown_elements(root, report)
    if root.tag == "mujoco":
        model = compile_mjcf(urdf, text, report, drawn=False)
        report.raise_problems()
        return read_mjcf(model, report)
    if root.tag == "sdf":
        return read_sdf(root, report, loop_file.root)
    return read_urdf(root, report)


def read_urdf(root: etree._Element, report: Report) -> ReadRobot:
    """Read a <robot>: URDF, and what others added to it."""
    name, links = read_name(root, report), read_links(root, report)
    urdf_joints, drake_joints = read_joints(root, report), [*read_drake_joints(root, report)]
    joints = (*urdf_joints, *(joint for joint, _ in drake_joints))
    if any(joint.parent == WORLD for joint in joints) and WORLD not in {l.name for l in links}:
        report.warn("link 'world'", "is named by a joint but not defined; it is the fixed world")
        links = (Link(WORLD), *links)
    return ReadRobot(
        name=name,
        links=links,
        joints=joints,
        constraints=(
            *read_loops(root, report),
            *read_loop_elements(root, report),
            *read_gazebo_joints(root, joints, report),
            *read_drake_constraints(root, drake_frames(root, report), report),
        ),
        mimics=read_mimics(root, report),
        path_couplings=read_path_couplings(root, report),
        retyped=_drake_overrides(drake_joints, report),
        transmissions=root,
    )


def _drake_overrides(
    drake_joints: Iterable[tuple[Joint, tuple[str, float]]], report: Report
) -> dict[str, JointOverride]:
    """Types that URDF lacks, by joint."""
    overrides = {}
    for joint, (kind, pitch) in drake_joints:
        if kind == "planar":
            continue
        axes: dict[str, Any] = {}
        if kind == "universal":  # Drake's turn about x, then about y
            axes = {"axis": AXES[0], "second_axis": AXES[1]}
        overrides[joint.name] = JointOverride(type=cast(Any, kind), pitch=pitch, **axes)
        if kind == "helical" and not pitch:
            report.problem(
                f"joint {joint.name!r}", "has no <drake:screw_thread_pitch>", "give metres a turn"
            )
    return overrides


def _in_our_form(loops: object, root: etree._Element | None, report: Report) -> object:
    """A loop file of another form in the keys of ours."""
    if root is None or not is_gepetto(loops):
        return loops
    links = [link.get("name", "") for link in xml_text.children(root, "link")]
    child_of = {}
    for joint in xml_text.children(root, "joint"):
        moved = xml_text.child(joint, "child")
        if moved is not None:
            child_of[joint.get("name", "")] = moved.get("link", "")
    return gepetto_to_loop_file(loops, links, child_of, report)


def _read_loops(loops: str | os.PathLike[str] | Mapping[str, Any] | None, report: Report) -> object:
    if loops is None or isinstance(loops, Mapping):
        return loops
    if isinstance(loops, str) and not loops.strip():
        return None
    text = source.loop_text(loops, report)
    return None if text is None else yaml_text.parse_yaml(text, report)
