"""Content of a robot's own file, whatever its format: the form that every reader returns.

Of a file with several moving trees, such as a robot and a box, the loop file names one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lxml import etree

from rbda_ros.description.link_tree import Tree
from rbda_ros.description.loop_file import JointOverride
from rbda_ros.description.model import (
    Constraint,
    Guess,
    Joint,
    Link,
    Pose,
    Spring,
)
from rbda_ros.description.report import Report, brief
from rbda_ros.description.urdf import Mimic, PathCoupling


@dataclass(frozen=True, eq=False)
class ReadRobot:
    """Links, joints and loops as read; names are not yet resolved, nothing is checked.

    Attributes:
        name: of the robot.
        links: in the order of the file.
        joints: likewise; a tree, if the file is right.
        constraints: loops, gears.
        mimics: joints that follow another.
        path_couplings: gears between links.
        retyped: joints whose type or axes URDF has no words for, as the loop file would set them.
        actuated_joints: None where the file does not say.
        assembly: where the file has the joints.
        root_pose: the root link's frame in the world, where it is fixed.
        springs: in joints and between them.
        transmissions: the element whose <transmission> elements are to be read, if any.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    constraints: tuple[Constraint, ...] = ()
    mimics: tuple[Mimic, ...] = ()
    path_couplings: tuple[PathCoupling, ...] = ()
    retyped: Mapping[str, JointOverride] = field(default_factory=dict)
    actuated_joints: tuple[str, ...] | None = None
    assembly: Mapping[str, Guess] = field(default_factory=dict)
    root_pose: Pose = field(default_factory=Pose)
    springs: tuple[Spring, ...] = ()
    transmissions: etree._Element | None = None


def choose_tree(robot: ReadRobot, root: str, report: Report) -> ReadRobot:
    """The robot with one of its trees alone.

    Trees are what hangs from different roots, or from the world by different joints that move, as
    far as no constraint ties them together. What is fixed to the world stays with every tree.

    Args:
        robot: as read from its file.
        root: a link or joint of the tree to keep.
        report: takes the problem if there is none.
    """
    links = {link.name: link.name for link in robot.links}
    moved = {joint.name: joint.child for joint in robot.joints}
    link = links.get(root, moved.get(root))
    if not link or link not in links:
        report.unknown("root", "link", root, links, "name a link or joint of the tree to keep")
        return robot
    branches = _tied_branches(robot, {**moved, **links})
    chosen = branches[link]
    if chosen == "world":
        remedy = "name a link or joint that moves"
        report.problem("root", f"{brief(root)} is fixed to the world", remedy)
        return robot
    on_world = Tree(robot.joints).path(chosen)[:1]
    kept = {name for name, branch in branches.items() if branch == chosen}
    if on_world:
        kept |= {name for name, branch in branches.items() if branch == "world"}
    left_out = sorted({branch for name, branch in branches.items() if name not in kept})
    if left_out:
        report.warn("root", f"the trees of {', '.join(map(brief, left_out[:5]))} are left out")
    kept |= {joint.name for joint in robot.joints if joint.child in kept}
    actuated = robot.actuated_joints
    return replace(
        robot,
        links=tuple(each for each in robot.links if each.name in kept),
        joints=tuple(joint for joint in robot.joints if joint.child in kept),
        constraints=tuple(c for c in robot.constraints if kept.issuperset((*c.joints, *c.links))),
        springs=tuple(s for s in robot.springs if kept.issuperset((*s.joints, *s.links))),
        mimics=tuple(mimic for mimic in robot.mimics if mimic.joint in kept),
        path_couplings=tuple(c for c in robot.path_couplings if c.predecessor in kept),
        retyped={name: each for name, each in robot.retyped.items() if name in kept},
        actuated_joints=None if actuated is None else tuple(j for j in actuated if j in kept),
        assembly={name: guess for name, guess in robot.assembly.items() if name in kept},
    )


def _tied_branches(robot: ReadRobot, link_of: dict[str, str]) -> dict[str, str]:
    """For each link the first link of its tree: the root, or the first that moves on the world."""
    tree = Tree(robot.joints)
    branch: dict[str, str] = {}
    for link in robot.links:
        path = tree.path(link.name)
        start = path[0].parent if path else link.name
        moving = next((joint.child for joint in path if joint.type != "fixed"), "world")
        branch[link.name] = moving if start == "world" else start
    stands_for = {name: name for name in branch.values()}

    def representative(name: str) -> str:
        while stands_for[name] != name:
            name = stands_for[name]
        return name

    groups = [(*constraint.joints, *constraint.links) for constraint in robot.constraints]
    groups += [(mimic.joint, mimic.master) for mimic in robot.mimics]
    groups += [(coupling.predecessor, coupling.successor) for coupling in robot.path_couplings]
    for names in groups:
        found = [branch.get(link_of.get(name, "")) for name in names]
        tied = [representative(each) for each in found if each is not None]
        for other in tied[1:]:
            if "world" not in (tied[0], other):
                stands_for[representative(other)] = representative(tied[0])
    return {link: representative(name) for link, name in branch.items()}
