"""Content of a robot's own file, whatever its format: the form that every reader returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lxml import etree

from rbda_ros.description.loop_file import JointOverride
from rbda_ros.description.model import Constraint, Guess, Joint, Link, Pose, Spring
from rbda_ros.description.urdf import Mimic
from rbda_ros.description.urdf_plus import PathCoupling


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
