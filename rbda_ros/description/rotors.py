"""Rotors: one line of the loop file, or a transmission, becomes a link, a joint and a gear."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from rbda_ros.description.link_tree import ONE_DOF, Tree
from rbda_ros.description.model import Coupling, Inertia, Joint, Link, Pose, Vector3
from rbda_ros.description.report import Report
from rbda_ros.description.values import brief


@dataclass(frozen=True)
class Rotor:
    """The spinning part of a motor.

    Attributes:
        name: its joint is called ``<name>_rotor``.
        joint: the joint whose axis it spins parallel to, at zero configuration.
        ratios: rotor turns per joint position [1 or rad/m], for each joint it is geared to.
        offset: rotor position [rad] where all those joints are at zero.
        inertia: about its axis [kg m^2].
        mass: [kg], at its origin; zero where the link it sits on includes it.
        on_link: the link it sits on; None for the parent link of ``joint``.
        origin: its place on that link; ``rpy`` turns the axis away from parallel, as bevel
            gears do.
    """

    name: str
    joint: str
    ratios: Mapping[str, float]
    inertia: float
    mass: float = 0.0
    offset: float = 0.0
    on_link: str | None = None
    origin: Pose = field(default_factory=Pose)


@dataclass(frozen=True)
class RotorParts:
    """Parts that a rotor adds to the robot."""

    link: Link
    joint: Joint
    gear: Coupling


def build_rotors(
    rotors: Iterable[Rotor],
    links: Collection[str],
    joints: Mapping[str, Joint],
    tree: Tree,
    report: Report,
) -> list[RotorParts]:
    """Make the parts of each rotor whose names resolve, and note the others."""
    parts = []
    for rotor in rotors:
        if _resolves(rotor, links, joints, report):
            parts.append(_build(rotor, joints[rotor.joint], tree))
    return parts


def _resolves(
    rotor: Rotor, links: Collection[str], joints: Mapping[str, Joint], report: Report
) -> bool:
    where = f"rotor {brief(rotor.name)}"
    usable = True
    for name in rotor.ratios:
        if name not in joints:
            remedy = report.suggest(name, joints, "name an existing joint")
            report.problem(where, f"unknown joint {brief(name)}", remedy)
            usable = False
        elif joints[name].type not in ONE_DOF:
            report.problem(
                where,
                f"{joints[name].type} joint {brief(name)} has no single position to gear to",
                "gear it to a revolute, continuous, prismatic or helical joint",
            )
            usable = False
    if rotor.on_link is not None and rotor.on_link not in links:
        remedy = report.suggest(rotor.on_link, links, "name an existing link")
        report.problem(where, f"unknown link {brief(rotor.on_link)}", remedy)
        usable = False
    return usable


def _build(rotor: Rotor, driven: Joint, tree: Tree) -> RotorParts:
    on_link = driven.parent if rotor.on_link is None else rotor.on_link
    name = f"{rotor.name}_rotor"
    axis = tree.axis_in(driven, on_link)
    link = Link(f"{name}_link", _spin_inertia(rotor, axis))
    joint = Joint(
        name=name,
        type="continuous",
        parent=on_link,
        child=link.name,
        origin=rotor.origin,
        axis=axis,
    )
    terms = {name: 1.0} | {geared: -ratio for geared, ratio in rotor.ratios.items()}
    return RotorParts(link, joint, Coupling(f"{name}_gear", terms, rotor.offset))


def _spin_inertia(rotor: Rotor, axis: Vector3) -> Inertia:
    """``I a a'``: only the spin counts; what does not spin belongs to the link it sits on."""
    x, y, z = axis
    spin = rotor.inertia
    return Inertia(
        mass=rotor.mass,
        ixx=spin * x * x,
        ixy=spin * x * y,
        ixz=spin * x * z,
        iyy=spin * y * y,
        iyz=spin * y * z,
        izz=spin * z * z,
    )
