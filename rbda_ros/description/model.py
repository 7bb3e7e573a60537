"""Content of a URDF and a loop file as plain frozen data. Angles in rad, lengths in m, SI units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rbda_ros.description import expression

JointType = Literal[
    "revolute",
    "continuous",
    "prismatic",
    "fixed",
    "floating",
    "planar",
    "helical",
    "spherical",
]
CutType = Literal[
    "revolute",
    "prismatic",
    "cylindrical",
    "planar",
    "universal",
    "spherical",
    "fixed",
    "distance",
    "perpendicular",
]
CUT_TYPES = get_args(CutType)
Vector3 = tuple[float, float, float]
ZERO: Vector3 = (0.0, 0.0, 0.0)
AXES: tuple[Vector3, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
X_AXIS = AXES[0]
MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
"""Fields of `Inertia`, and attributes or elements of files: the upper triangle, row by row."""
Guess = float | tuple[float, ...]
"""A position: one number; planar x y yaw; spherical qx qy qz qw; floating x y z and these four."""


def vector3(values: Iterable[float]) -> Vector3:
    """Three numbers of any kind as floats of Python."""
    x, y, z = (float(value) for value in values)
    return (x, y, z)


@dataclass(frozen=True)
class Pose:
    """A frame in its parent frame: origin [m] and fixed-axis roll, pitch, yaw [rad]."""

    xyz: Vector3 = ZERO
    rpy: Vector3 = ZERO


@dataclass(frozen=True)
class Inertia:
    """Mass [kg], and the rotational inertia [kg m^2] about the centre of mass.

    ``origin`` is the inertial frame in the link frame; its origin is the centre of mass, and
    ``ixx`` ... ``izz`` are in its axes.
    """

    mass: float
    origin: Pose = Pose()
    ixx: float = 0.0
    ixy: float = 0.0
    ixz: float = 0.0
    iyy: float = 0.0
    iyz: float = 0.0
    izz: float = 0.0

    @property
    def tensor(self) -> NDArray[np.float64]:
        """(3, 3) rotational inertia in the axes of ``origin``."""
        xy, xz, yz = self.ixy, self.ixz, self.iyz
        return np.array([[self.ixx, xy, xz], [xy, self.iyy, yz], [xz, yz, self.izz]])


@dataclass(frozen=True)
class Link:
    """A rigid link; ``inertia`` is None where the URDF gives none.

    ``weight`` is the share of its weight that acts on it: 0 where a file switches its gravity off.
    """

    name: str
    inertia: Inertia | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class Limits:
    """Bounds of a joint; infinite where the URDF gives none."""

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf


@dataclass(frozen=True)
class Joint:
    """A tree joint.

    Attributes:
        name: unique name.
        type: what it allows.
        parent: name of the link it starts from.
        child: name of the link it moves.
        origin: the joint frame, which is the child's frame at zero, in the parent's frame.
        axis: unit axis in the joint frame; for planar joints, the normal of the plane.
        limits: position, velocity and effort bounds.
        damping: viscous friction [N m s/rad or N s/m].
        friction: Coulomb friction [N m or N].
        pitch: travel along the axis per radian [m/rad], for helical joints.
        armature: inertia that only the joint's own velocity feels [kg m^2 or kg], as of a rotor
            behind a gear whose other couplings are left out.
        independent: URDF+ ``independent="..."``; None where the URDF does not say.
    """

    name: str
    type: JointType
    parent: str
    child: str
    origin: Pose = Pose()
    axis: Vector3 = X_AXIS
    limits: Limits = Limits()
    damping: float = 0.0
    friction: float = 0.0
    pitch: float = 0.0
    armature: float = 0.0
    independent: bool | None = None


Method = Literal["embed", "proximal", "auto"]
"""How forward dynamics closes a loop: embedded in a cluster, by the forces that hold it (a
proximal algorithm), or whichever takes fewer instructions. Everything else embeds all loops."""


@dataclass(frozen=True)
class Coupling:
    """A gear, belt or differential: sum of coefficient * joint position = offset."""

    type: ClassVar = "coupling"
    links: ClassVar[tuple[str, ...]] = ()

    name: str
    terms: Mapping[str, float]
    offset: float = 0.0
    method: Method | None = None

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints that it couples."""
        return tuple(self.terms)


@dataclass(frozen=True)
class Attachment:
    """A frame fixed to a link."""

    link: str
    origin: Pose = Pose()


@dataclass(frozen=True)
class CutJoint:
    """A joint that closes a loop between two links.

    ``axis`` is in the predecessor's cut frame: the axis of a revolute, prismatic, cylindrical
    or universal cut (a universal cut turns about it and about one perpendicular axis), the
    normal of a planar one. ``second_axis`` is the other axis of a universal cut, and of a
    perpendicular one, which holds nothing but the right angle; it is in the successor's cut frame.
    ``length`` [m] is the distance that a ``distance`` cut holds; None
    takes it from the assembly position.
    """

    joints: ClassVar[tuple[str, ...]] = ()

    name: str
    type: CutType
    predecessor: Attachment
    successor: Attachment
    axis: Vector3 = X_AXIS
    second_axis: Vector3 | None = None
    length: float | None = None
    method: Method | None = None

    @property
    def links(self) -> tuple[str, str]:
        """Names of the links that it joins."""
        return self.predecessor.link, self.successor.link


@dataclass(frozen=True)
class Expression:
    """Any other holonomic constraint: an expression in joint names that stays zero."""

    type: ClassVar = "expression"
    links: ClassVar[tuple[str, ...]] = ()

    name: str
    equation: str
    tree: expression.Node
    method: Method | None = None

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints in the equation, each once."""
        return expression.names(self.tree)


Constraint = Coupling | CutJoint | Expression
"""Each has a name, its type as in the loop file, and the joints or the links that it ties."""


@dataclass(frozen=True)
class Segment:
    """A straight line between the origins of two frames, as a part of a longer way.

    ``coefficient`` is how often it counts in the length: 1/2 behind a pulley that halves.
    """

    predecessor: Attachment
    successor: Attachment
    coefficient: float = 1.0


@dataclass(frozen=True)
class Spring:
    """A spring over joints, along straight lines, or in a joint of several coordinates.

    Its tension is ``pretension + stiffness s``, with s how far its length is beyond its rest.

    Attributes:
        name: of its own.
        stiffness: [N m/rad or N/m].
        rest: least and greatest length at which it is slack, equal for most [rad or m].
        pretension: tension at rest, positive where it makes the length shorter [N m or N].
        terms: its length is the sum of coefficient * joint position.
        segments: its length is the sum of theirs [m].
        joint: a spherical or floating joint, that it turns (and pulls) towards ``reference``.
        reference: position of that joint: qx qy qz qw, or x y z and these four.
    """

    name: str
    stiffness: float
    rest: tuple[float, float] = (0.0, 0.0)
    pretension: float = 0.0
    terms: Mapping[str, float] = field(default_factory=dict)
    segments: tuple[Segment, ...] = ()
    joint: str | None = None
    reference: tuple[float, ...] = ()

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints that it is in."""
        return tuple(self.terms) if self.joint is None else (*self.terms, self.joint)

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the links at the ends of its segments, each once."""
        ends = (
            end for segment in self.segments for end in (segment.predecessor, segment.successor)
        )
        return tuple(dict.fromkeys(end.link for end in ends))


IdleChoice = Literal["frozen", "free"]
"""Whether the spin of a link about itself is frozen (see `cluster_tree.closing.idle`), or free."""


@dataclass(frozen=True)
class RobotDescription:
    """Everything the files say, checked: names are unique and resolve, the joints are a tree.

    Attributes:
        name: of the robot.
        links: in the order of the file.
        joints: in the order of the file.
        constraints: loops, couplings, mimic joints, gears of rotors; those without a method of
            their own are embedded.
        independent_joints: as listed by the loop file; None leaves the choice to us.
        actuated_joints: as listed by the loop file; None means the independent joints.
        root_pose: the root link's frame in the world, unless its base floats.
        assembly: guess of joint positions that picks the branch of each loop.
        idle_freedoms: what the loop file says about links that may spin about themselves; see
            `cluster_tree.closing.idle`.
        springs: of either file.
        digits: significant digits that the robot's file states frames with; None if not known.
        warnings: what is odd but usable.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    constraints: tuple[Constraint, ...] = ()
    independent_joints: tuple[str, ...] | None = None
    actuated_joints: tuple[str, ...] | None = None
    root_pose: Pose = Pose()
    assembly: Mapping[str, Guess] = field(default_factory=dict)
    idle_freedoms: Mapping[str, IdleChoice] = field(default_factory=dict)
    springs: tuple[Spring, ...] = ()
    digits: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """Name of the one link that is no joint's child."""
        children = {joint.child for joint in self.joints}
        return next(link.name for link in self.links if link.name not in children)
