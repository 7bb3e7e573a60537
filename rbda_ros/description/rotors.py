"""Rotors: one line of the loop file, or a transmission, becomes a link, a joint and a gear.

Transmissions are those of ROS 1 and of <ros2_control>. The maps between actuators ``a`` and joints
``j`` are those of ros2_control's transmission_interface, with reductions ``n`` and offsets ``o``:

- SimpleTransmission: ``a = n (j - o)``;
- DifferentialTransmission: ``a1, a2 = na1, na2 * [nj1 (j1 - o1) +- nj2 (j2 - o2)]``;
- FourBarLinkageTransmission: ``a1 = nj1 na1 (j1 - o1)``,
  ``a2 = na2 [(j1 - o1) + nj2 (j2 - o2)]``.

A rotor inertia [kg m^2] is an element ``rotor_inertia``, ``rotorInertia`` or ``motorInertia`` of
the actuator (text or ``value``, any namespace, so Drake's too) or a <param> of that name. An
actuator without one adds nothing, and its numbers are not even read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement

from lxml import etree

from rbda_ros.description.link_tree import ONE_DOF, Tree
from rbda_ros.description.model import Coupling, Inertia, Joint, Link, Pose, Vector3
from rbda_ros.description.report import Report, brief
from rbda_ros.description.values import converted, to_number
from rbda_ros.description.xml_text import child, children, line, local_name, required, text_of


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
            report.unknown(where, "joint", name, joints)
            usable = False
        elif joints[name].type not in ONE_DOF:
            report.problem(
                where,
                f"{joints[name].type} joint {brief(name)} has no single position to gear to",
                "gear it to a revolute, continuous, prismatic or helical joint",
            )
            usable = False
    if rotor.on_link is not None and rotor.on_link not in links:
        report.unknown(where, "link", rotor.on_link, links)
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
    pairs = combinations_with_replacement(axis, 2)  # in the order of MOMENTS
    return Inertia(rotor.mass, Pose(), *(rotor.inertia * a * b for a, b in pairs))


INERTIA_NAMES = ("rotor_inertia", "rotorInertia", "motorInertia")
REDUCTION_NAMES = ("mechanical_reduction", "mechanicalReduction", "gear_ratio")
OFFSET_NAMES = ("offset",)


@dataclass(frozen=True)
class Transmissions:
    """Content of a URDF's transmissions.

    Attributes:
        rotors: those whose inertia is known.
        reductions: of simple transmissions without rotor inertia, by joint.
        motors: joints that motors move: those with a <command_interface>, or else those of
            transmissions, in the order of the file.
    """

    rotors: tuple[Rotor, ...]
    reductions: dict[str, float]
    motors: tuple[str, ...]


def read_transmissions(
    xml: etree._Element, joints: Mapping[str, Joint], report: Report
) -> Transmissions:
    """All transmissions of a URDF; ``joints`` are those that it defines."""
    ros1 = [(element, True) for element in children(xml, "transmission")]
    ros2 = [
        (element, False)
        for system in children(xml, "ros2_control")
        for element in children(system, "transmission")
    ]
    rotors: list[Rotor] = []
    reductions: dict[str, float] = {}
    for element, has_roles in ros1 + ros2:
        found = _Transmission(element, has_roles, report)
        if any(joint.get("name") not in joints for joint in found.joints):
            report.warn(found.where, "names a joint that does not exist; it is ignored")
        elif any(_find(actuator, INERTIA_NAMES) is not None for actuator in found.actuators):
            rotors.extend(found.rotors())
        elif len(found.joints) == 1 and len(found.actuators) <= 1:
            # An error in a reduction that no rotor uses is no problem.
            silent = _Transmission(element, has_roles, Report())
            reductions.setdefault(found.names[0], silent.reduction())
    driven = [joint for element, _ in ros1 + ros2 for joint in children(element, "joint")]
    motors = _commanded(xml) or [joint.get("name", "") for joint in driven]
    movable = [name for name in motors if name in joints and joints[name].type not in _NO_MOTOR]
    unknown = [name for name in motors if name not in joints]
    if unknown and movable:
        report.warn("ros2_control", f"joint {brief(unknown[0])} does not exist; it is ignored")
    return Transmissions(tuple(_rename_shared(rotors)), reductions, tuple(dict.fromkeys(movable)))


_NO_MOTOR = ("fixed", "floating", "planar")


def _commanded(xml: etree._Element) -> list[str]:
    """Joints of <ros2_control> systems that take commands."""
    return [
        joint.get("name", "")
        for system in children(xml, "ros2_control")
        for joint in children(system, "joint")
        if child(joint, "command_interface") is not None
    ]


class _Transmission:
    """One <transmission>: its joints and actuators in order, and what they say of rotors.

    The order is that of the file, which ros2_control uses, or by <role>, as in ROS 1.
    """

    def __init__(self, xml: etree._Element, has_roles: bool, report: Report) -> None:
        self.xml, self.report = xml, report
        self.where = f"transmission {brief(xml.get('name', ''))}"
        self.joints, self.actuators = (list(children(xml, tag)) for tag in ("joint", "actuator"))
        if has_roles:
            for elements in (self.joints, self.actuators):
                elements.sort(key=lambda element: text_of(child(element, "role")) or "")
        self.names = [joint.get("name", "") for joint in self.joints]

    def rotors(self) -> list[Rotor]:
        """The rotors whose inertia is stated; none of a transmission of unknown type."""
        kind, sizes = self._kind(), (len(self.joints), len(self.actuators))
        if sizes == (1, 1) and kind in ("SimpleTransmission", ""):
            maps = [[self.reduction()]]
        elif sizes == (2, 2) and kind in ("DifferentialTransmission", "FourBarLinkageTransmission"):
            nj = [self._value(joint, REDUCTION_NAMES, 1.0) for joint in self.joints]
            na = [self._value(actuator, REDUCTION_NAMES, 1.0) for actuator in self.actuators]
            if kind == "DifferentialTransmission":
                maps = [[na[0] * nj[0], na[0] * nj[1]], [na[1] * nj[0], -na[1] * nj[1]]]
            else:
                maps = [[na[0] * nj[0]], [na[1], na[1] * nj[1]]]
        else:
            over = f"over {sizes[0]} joint(s) and {sizes[1]} actuator(s)"
            reason = f"type {brief(kind)} {over} is unknown; its rotors are ignored"
            self.report.warn(self.where, reason)
            return []
        return [
            self._rotor(actuator, ratios)
            for actuator, ratios in zip(self.actuators, maps, strict=True)
            if _find(actuator, INERTIA_NAMES) is not None
        ]

    def _rotor(self, actuator: etree._Element, ratios: list[float]) -> Rotor:
        inertia = self._value(actuator, INERTIA_NAMES, 0.0)
        if inertia < 0.0:
            reason = f"rotor inertia {inertia} is negative"
            self.report.problem(self.where, reason, "give it in kg m^2")
        if 0.0 in ratios:
            self.report.problem(
                self.where, "a reduction is zero", "give rotor turns per joint turn"
            )
        offsets = [self._value(joint, OFFSET_NAMES, 0.0) for joint in self.joints]
        name = self.names[0]
        if len(self.names) > 1:
            name = required(actuator, "name", self.where, self.report)
        return Rotor(
            name=name,
            joint=self.names[0],
            ratios=dict(zip(self.names, ratios, strict=False)),
            inertia=inertia,
            offset=0.0 - sum(n * o for n, o in zip(ratios, offsets, strict=False)),
        )

    def reduction(self) -> float:
        """Of a simple transmission.

        ROS 1 gives it in the actuator, ros2_control in the joint, PR2 above both.
        """
        for element in (self.joints[0], *self.actuators, self.xml):
            if _find(element, REDUCTION_NAMES) is not None:
                return self._value(element, REDUCTION_NAMES, 1.0)
        return 1.0

    def _kind(self) -> str:
        """Return its class without the namespace; '' where it is not given."""
        xml = self.xml
        text = text_of(child(xml, "plugin")) or text_of(child(xml, "type")) or xml.get("type")
        return (text or "").rpartition("/")[2]

    def _value(self, xml: etree._Element, names: tuple[str, ...], default: float) -> float:
        element = _find(xml, names)
        if element is None:
            return default
        text = element.get("value") or text_of(element) or ""
        place = f"<{element.tag}> ({line(element)})"
        return converted(text, to_number, default, self.where, place, self.report)


def _find(xml: etree._Element, names: tuple[str, ...]) -> etree._Element | None:
    """Find the first child that is, or as <param> is called, one of the names."""
    for element in xml.iterchildren():
        tag = local_name(element)
        if tag in names or (tag == "param" and element.get("name") in names):
            return element
    return None


def _rename_shared(rotors: list[Rotor]) -> list[Rotor]:
    """Let several rotors on one joint be called <joint>_1, <joint>_2, ..."""
    shared = Counter(rotor.name for rotor in rotors)
    seen: Counter[str] = Counter()
    renamed = []
    for rotor in rotors:
        seen[rotor.name] += 1
        number = f"_{seen[rotor.name]}" if shared[rotor.name] > 1 else ""
        renamed.append(replace(rotor, name=f"{rotor.name}{number}"))
    return renamed
