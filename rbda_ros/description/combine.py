"""Puts both files together, expands shorthands, and checks the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lxml import etree

from rbda_ros.description import expression
from rbda_ros.description.expand import expand_mimics, expand_path_couplings, mark_dependent
from rbda_ros.description.inertias import check_inertias, warn_of_massless_leaves
from rbda_ros.description.link_tree import Tree, joints_by_name
from rbda_ros.description.loop_elements import read_loop_elements
from rbda_ros.description.loop_file import LoopFile
from rbda_ros.description.mjcf import MjcfRobot
from rbda_ros.description.model import (
    Coupling,
    CutJoint,
    RobotDescription,
)
from rbda_ros.description.overrides import override_joints
from rbda_ros.description.report import Report
from rbda_ros.description.rotors import Rotor, build_rotors
from rbda_ros.description.transmissions import Transmissions, read_transmissions
from rbda_ros.description.urdf import read_joints, read_links, read_mimics, read_name
from rbda_ros.description.urdf_plus import read_loops, read_path_couplings
from rbda_ros.description.validate import (
    check_constraints,
    check_guess,
    check_joint_list,
    check_limits,
    check_tree,
    check_unique,
)
from rbda_ros.description.values import brief


def combine(root: etree._Element, loop_file: LoopFile, report: Report) -> RobotDescription:
    """Make the robot of a URDF's root element and a loop file; valid if nothing was noted."""
    name = read_name(root, report)
    described = read_links(root, report)
    joints, crosses = override_joints(read_joints(root, report), loop_file.joints, report)
    links = (*described, *crosses)
    named = joints_by_name(joints)
    tree = Tree(joints)
    check_tree(links, joints, report)
    check_inertias(links, report)

    link_names = {link.name for link in links}
    transmissions = read_transmissions(root, named, report)
    rotors = build_rotors(
        _all_rotors(loop_file, transmissions, report), link_names, named, tree, report
    )
    mimic_couplings = expand_mimics(read_mimics(root, report), named, report)
    followers = [next(iter(coupling.terms)) for coupling in mimic_couplings]
    dependent = {*followers, *(rotor.joint.name for rotor in rotors)}
    joints = mark_dependent(
        (*joints, *(rotor.joint for rotor in rotors)),
        dependent,
        loop_file.independent_joints or (),
    )
    constraints = (
        *mimic_couplings,
        *expand_path_couplings(read_path_couplings(root, report), link_names, tree, report),
        *read_loops(root, report),
        *read_loop_elements(root, report),
        *(rotor.gear for rotor in rotors),
        *loop_file.constraints,
    )
    return _checked(
        RobotDescription(
            name=name,
            links=(*links, *(rotor.link for rotor in rotors)),
            joints=joints,
            constraints=constraints,
            independent_joints=loop_file.independent_joints,
            actuated_joints=loop_file.actuated_joints,
            assembly=loop_file.assembly,
        ),
        loop_file,
        report,
    )


def combine_mjcf(robot: MjcfRobot, loop_file: LoopFile, report: Report) -> RobotDescription:
    """Make the robot of an MJCF file and a loop file, which may add to it and overrule it."""
    joints, crosses = override_joints(robot.joints, loop_file.joints, report)
    links = (*robot.links, *crosses)
    named, tree = joints_by_name(joints), Tree(joints)
    check_tree(links, joints, report)
    check_inertias(links, report)
    rotors = build_rotors(
        _all_rotors(loop_file, Transmissions((), {}), report),
        {link.name for link in links},
        named,
        tree,
        report,
    )
    joints = mark_dependent(
        (*joints, *(rotor.joint for rotor in rotors)),
        {rotor.joint.name for rotor in rotors},
        loop_file.independent_joints or (),
    )
    listed = loop_file.actuated_joints
    return _checked(
        RobotDescription(
            name=robot.name,
            links=(*links, *(rotor.link for rotor in rotors)),
            joints=joints,
            constraints=(
                *robot.constraints,
                *(rotor.gear for rotor in rotors),
                *loop_file.constraints,
            ),
            independent_joints=loop_file.independent_joints,
            actuated_joints=robot.actuated_joints if listed is None else listed,
            assembly={**robot.assembly, **loop_file.assembly},
        ),
        loop_file,
        report,
    )


def _checked(
    description: RobotDescription, loop_file: LoopFile, report: Report
) -> RobotDescription:
    method = loop_file.method
    constraints = tuple(replace(c, method=c.method or method) for c in description.constraints)
    description = replace(description, constraints=constraints)
    _check(description, report)
    return replace(description, warnings=report.warnings)


def _all_rotors(loop_file: LoopFile, transmissions: Transmissions, report: Report) -> list[Rotor]:
    """Collect the rotors of both files; a line of the loop file wins over a transmission."""
    rotors = []
    for line in loop_file.rotors:
        ratio = transmissions.reductions.get(line.joint) if line.ratio is None else line.ratio
        if not ratio:
            report.problem(
                f"rotor {brief(line.joint)}",
                "has no ratio, here or in a transmission",
                "give rotor turns per joint turn",
            )
            continue
        rotors.append(
            Rotor(
                name=line.joint,
                joint=line.joint,
                ratios={line.joint: ratio},
                inertia=line.inertia,
                mass=line.mass,
                on_link=line.on_link,
                origin=line.origin,
            )
        )
    lines = {line.joint for line in loop_file.rotors}
    for rotor in transmissions.rotors:
        if lines.isdisjoint(rotor.ratios):
            rotors.append(rotor)
        else:
            report.warn(
                f"rotor {brief(rotor.joint)}", "the loop file's rotor replaces the transmission's"
            )
    return rotors


def _check(description: RobotDescription, report: Report) -> None:
    """Everything that can only be seen once both files and the shorthands are together."""
    links = [link.name for link in description.links]
    joints = joints_by_name(description.joints)
    tree = Tree(description.joints)
    check_unique("link", links, report)
    check_unique("joint", (joint.name for joint in description.joints), report)
    check_unique("constraint", (item.name for item in description.constraints), report)
    check_limits(description.joints, report)
    check_constraints(description.constraints, links, joints, tree, report)
    check_joint_list("independent_joints", description.independent_joints, joints, report)
    check_joint_list("actuated_joints", description.actuated_joints, joints, report)
    for name, guess in description.assembly.items():
        check_guess(name, guess, joints, report)
    report.raise_problems()  # the last check needs links and joints that resolve
    body_of = tree.body_of(links)
    constrained = _constrained_joints(description, body_of)
    warn_of_massless_leaves(description.links, description.joints, body_of, constrained, report)


def _constrained_joints(description: RobotDescription, body_of: Mapping[str, str]) -> set[str]:
    """Joints that a constraint names, or that move a body at the end of a cut."""
    names: set[str] = set()
    cut_bodies: set[str] = set()
    for constraint in description.constraints:
        if isinstance(constraint, Coupling):
            names.update(constraint.terms)
        elif isinstance(constraint, CutJoint):
            cut_bodies.add(body_of[constraint.predecessor.link])
            cut_bodies.add(body_of[constraint.successor.link])
        else:
            names.update(expression.names(constraint.tree))
    names.update(joint.name for joint in description.joints if body_of[joint.child] in cut_bodies)
    return names
