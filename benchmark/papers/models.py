"""Robots that the papers describe, as URDF or URDF+ text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from lxml import etree

SHARED = Path(__file__).resolve().parents[3] / "shared"
"""Robots and counts of the library that Chignoli 2024 publishes; figures go without it."""

AXES = ("1 0 0", "0 1 0", "0 0 1")
ROTOR = "0.003 0.003 0.003"
"""Inertia of a rotor, symmetric about any axis [kg m^2]."""
LIMIT = '<limit lower="-6" upper="6" effort="99" velocity="99"/>'


def link(name: str, mass: float, com: str = "0 0 0", inertia: str = "0.003 0.003 0.004") -> str:
    """A link with a diagonal inertia about its centre of mass [kg, m, kg m^2]."""
    ixx, iyy, izz = inertia.split()
    return (
        f'<link name="{name}"><inertial><mass value="{mass}"/><origin xyz="{com}"/>'
        f'<inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def joint(
    name: str, parent: str, child: str, xyz: str, axis: str, *, rpy: str = "0 0 0",
    kind: str = "revolute", options: str = "", extra: str = "",
) -> str:  # fmt: skip
    """A joint with limits; ``options`` are attributes, ``extra`` elements."""
    return (
        f'<joint name="{name}" type="{kind}" {options}><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
        f"{LIMIT}{extra}</joint>"
    )


def coupling(name: str, link_name: str, rotor: str, ratio: float) -> str:
    """URDF+: the rotor turns ``ratio`` times as far as the joints on the way to the link."""
    return (
        f'<coupling name="{name}"><predecessor link="{link_name}"/><successor link="{rotor}"/>'
        f'<ratio value="{ratio}"/></coupling>'
    )


def robot(name: str, parts: list[str]) -> str:
    """The whole description."""
    return f'<robot name="{name}">{"".join(parts)}</robot>'


BASE = '<link name="ground"/>' + link("base", 5.0, inertia="0.1 0.1 0.1")
BASE += '<joint name="floating" type="floating"><parent link="ground"/><child link="base"/></joint>'


def geared_branches(branches: int, depth: int) -> str:
    """Chignoli 2024, Fig. 9: b_a branches of d_a links, each with a rotor beside it."""
    parts = [BASE]
    for b in range(branches):
        parent = "base"
        for i in range(depth):
            name, rotor = f"link_{b}_{i}", f"rotor_{b}_{i}"
            parts += [link(name, 1.0, "0.5 0 0", "1 1 1"), link(rotor, 0.0, inertia="1e-4 " * 3)]
            parts += [_branch_joint(parent, name, True), _branch_joint(parent, rotor, False)]
            parts.append(coupling(f"gear_{b}_{i}", name, rotor, 6.0))
            parent = name
    return robot("geared_branches", parts)


def belt_branches(branches: int, depth: int) -> str:
    """Chignoli 2024, Fig. 9: pairs of links; both rotors of a pair sit on the link before it."""
    parts = [BASE]
    for b in range(branches):
        parent = "base"
        for i in range(depth):
            before = parent
            for j in (1, 2):
                name, rotor = f"link_{b}_{i}_{j}", f"rotor_{b}_{i}_{j}"
                parts += [link(name, 1.0, "0.5 0 0", "1 1 1")]
                parts += [link(rotor, 0.0, inertia="1e-4 1e-4 1e-4")]
                parts += [_branch_joint(parent, name, True), _branch_joint(before, rotor, False)]
                parts.append(coupling(f"belt_{b}_{i}_{j}", name, rotor, 6.0))
                parent = name
    return robot("belt_branches", parts)


def four_bar_branches(branches: int, depth: int) -> str:
    """Chignoli 2024, Fig. 9: four-bars in series, the next one on the rocker of the last."""
    parts, inertia = [BASE], "0.011253 0.036203 0.042673"
    for b in range(branches):
        parent = "base"
        for i in range(depth):
            rocker, crank, rod = (f"{part}_{b}_{i}" for part in ("rocker", "crank", "rod"))
            parts += [link(name, 3.3, inertia=inertia) for name in (rocker, crank, rod)]
            parts += [_branch_joint(parent, rocker, False)]
            parts += [_branch_joint(parent, crank, True, "0 0 0")]
            parts += [_branch_joint(crank, rod, False, "0.5 0 0")]
            parts.append(pin(f"pin_{b}_{i}", (rocker, "0.5 0 0"), (rod, "1 0 0")))
            parent = rocker
    return robot("four_bar_branches", parts)


def pin(name: str, predecessor: tuple[str, str], successor: tuple[str, str]) -> str:
    """URDF+: a revolute cut about z between points of two links."""
    ends = zip(("predecessor", "successor"), (predecessor, successor), strict=True)
    parts = "".join(
        f'<{end} link="{name_}"><origin xyz="{xyz}"/></{end}>' for end, (name_, xyz) in ends
    )
    return f'<loop name="{name}" type="revolute">{parts}<axis xyz="0 0 1"/></loop>'


def _branch_joint(parent: str, child: str, independent: bool, xyz: str = "1 0 0") -> str:
    options = f'independent="{"true" if independent else "false"}"'
    return joint(f"to_{child}", parent, child, xyz, "0 0 1", options=options)


def without_rotors(urdf: str, *, reflected: bool) -> str:
    """The robot as open chains: rotors and couplings of a URDF+ text removed.

    Args:
        urdf: the text. A rotor is the successor of a coupling.
        reflected: whether ratio^2 times a rotor's inertia is added to the links it drives, about
            their joint axes: the diagonal of G' I_rotor G (Chignoli 2024, Sec. VI-C).
    """
    root = etree.fromstring(urdf.encode())
    child = {j.find("child").get("link"): j for j in root.findall("joint")}
    links = {element.get("name"): element for element in root.findall("link")}
    for gear in root.findall("coupling"):
        rotor = gear.find("successor").get("link")
        ratio = float(gear.find("ratio").get("value"))
        mount, name = child[rotor].find("parent").get("link"), gear.find("predecessor").get("link")
        while reflected and name != mount:  # every joint on the way turns the rotor
            added = ratio**2 * spin_inertia(links[rotor], child[rotor])
            _add_inertia(links[name], child[name], added)
            name = child[name].find("parent").get("link")
        for element in (gear, links[rotor], child[rotor]):
            root.remove(element)
    return etree.tostring(root).decode()


def _axis(element: etree._Element) -> np.ndarray:
    return np.array([float(x) for x in element.find("axis").get("xyz").split()])


def spin_inertia(rotor: etree._Element, at: etree._Element) -> float:
    """Inertia of a rotor about its axis."""
    inertia, axis = rotor.find("inertial/inertia"), _axis(at)
    return float(sum(float(inertia.get(k)) * x * x for k, x in zip(_DIAGONAL, axis, strict=True)))


_DIAGONAL = ("ixx", "iyy", "izz")


def _add_inertia(element: etree._Element, at: etree._Element, added: float) -> None:
    inertia = element.find("inertial/inertia")
    for key, x in zip(_DIAGONAL, _axis(at), strict=True):
        inertia.set(key, repr(float(float(inertia.get(key)) + added * x * x)))


def chain(links: int) -> str:
    """A serial chain about x, y, z in turn on a fixed base."""
    parts = ['<link name="l0"/>']
    for i in range(1, links + 1):
        parts.append(link(f"l{i}", 1.0, "0.02 0.01 0.1", "0.003 0.002 0.004"))
        parts.append(joint(f"j{i}", f"l{i - 1}", f"l{i}", "0 0 0.2", AXES[i % 3]))
    return robot("chain", parts)


def branched_tree(bodies: int, branching: int) -> str:
    """A tree in which every body carries ``branching`` others, filled level by level."""
    parts = ['<link name="l0"/>']
    for i in range(1, bodies + 1):
        parts.append(link(f"l{i}", 1.0, "0.02 0.01 0.1", "0.003 0.002 0.004"))
        parent = (i - 1) // branching
        parts.append(joint(f"j{i}", f"l{parent}", f"l{i}", "0 0.05 0.2", AXES[i % 3]))
    return robot("tree", parts)


def binary_tree(levels: int) -> tuple[str, list[str]]:
    """Sathya 2024, Fig. 3: branches of three links that split in two; text, and its leaf links."""
    parts, tips, count = ['<link name="l0"/>'], ["l0"], 0
    for level in range(levels):
        new = []
        for tip in tips:
            for side in range(2 if level else 1):
                parent = tip
                for _ in range(3):
                    count += 1
                    name = f"l{count}"
                    parts.append(link(name, 1.0, "0.02 0.01 0.1", "0.003 0.002 0.004"))
                    at = f"0 {0.1 * side} 0.2"
                    parts.append(joint(f"j{count}", parent, name, at, AXES[count % 3]))
                    parent = name
                new.append(parent)
        tips = new
    return robot("binary_tree", parts), tips


def many_legs(count: int) -> tuple[str, list[str]]:
    """A body on so many legs of three joints, to float; text, and its feet."""
    parts, feet = [link("base", 5.0, "0 0 0.1", "0.1 0.1 0.1")], []
    for leg in range(count):
        parent = "base"
        for i in range(3):
            name = f"leg{leg}_{i}"
            parts.append(link(name, 1.0, "0.02 0.01 -0.1", "0.003 0.002 0.004"))
            parts.append(joint(name, parent, name, f"0 {0.1 * (i == 0)} -0.2", AXES[i]))
            parent = name
        feet.append(parent)
    return robot("legs", parts), feet


def humanoid_with_hands() -> str:
    """84 degrees of freedom, as Atlas with a Shadow hand on each wrist (Sathya 2024, Sec. VIII).

    Floating base, two legs of six, a back of three, a neck, two arms of seven, and hands of two
    wrist joints, three fingers of four and two of five.
    """
    parts = [link("pelvis", 9.0, "0 0 0.05", "0.1 0.1 0.1")]

    def limb(root: str, name: str, count: int, at: str, step: str, mass: float) -> str:
        parent, xyz = root, at
        for i in range(1, count + 1):
            body = f"{name}_{i}"
            parts.append(link(body, mass, "0.01 0.005 -0.05"))
            parts.append(joint(body, parent, body, xyz, AXES[i % 3]))
            parent, xyz = body, step
        return parent

    chest = limb("pelvis", "back", 3, "0 0 0.1", "0 0 0.12", 4.0)
    limb(chest, "neck", 1, "0 0 0.3", "0 0 0", 2.0)
    for side, sign in (("left", 1), ("right", -1)):
        limb("pelvis", f"{side}_leg", 6, f"0 {sign * 0.1} 0", "0 0 -0.2", 2.0)
        wrist = limb(chest, f"{side}_arm", 7, f"0 {sign * 0.25} 0.25", "0 0 -0.1", 1.5)
        palm = limb(wrist, f"{side}_palm", 2, "0 0 -0.05", "0 0 -0.03", 0.3)
        for finger, count in enumerate((4, 4, 4, 5, 5)):
            at = f"0 {0.02 * (finger - 2)} -0.08"
            limb(palm, f"{side}_finger_{finger}", count, at, "0 0 -0.025", 0.03)
    return robot("humanoid_with_hands", parts)


def random_tree(bodies: int, seed: int) -> tuple[str, dict]:
    """Featherstone 2010: a random tree of revolute, prismatic and helical joints; text and loops.

    Parents, frames, axes, inertias and pitches are random; helical joints are in the loop file.
    """
    rng = np.random.default_rng(seed)
    parts, helical = ['<link name="l0"/>'], {}
    for i in range(1, bodies + 1):
        mass, inertia = rng.uniform(0.5, 2.0), rng.uniform(0.02, 0.03, 3)
        com = " ".join(f"{x:.3f}" for x in rng.uniform(-0.1, 0.1, 3))
        parts.append(link(f"l{i}", mass, com, " ".join(f"{x:.4f}" for x in inertia)))
        xyz, rpy = (" ".join(f"{x:.3f}" for x in rng.uniform(-s, s, 3)) for s in (0.3, 1.5))
        kind = ("revolute", "prismatic", "revolute")[i % 3]
        if i % 3 == 0:
            helical[f"j{i}"] = {"type": "helical", "pitch": float(rng.uniform(0.01, 0.1))}
        axis = " ".join(f"{x:.6f}" for x in rng.normal(size=3))
        parent = int(rng.integers(max(0, i - 4), i))
        parts.append(joint(f"j{i}", f"l{parent}", f"l{i}", xyz, axis, rpy=rpy, kind=kind))
    return robot("random_tree", parts), {"joints": helical}


def robot_a(links: int, seed: int = 0) -> str:
    """Chignoli 2023, Eq. 16: a serial chain, each link with a geared motor of random ratio."""
    rng = np.random.default_rng(seed)
    parts = ['<link name="l0"/>']
    for i in range(1, links + 1):
        parts += [link(f"l{i}", 1.0, "0.02 0.01 0.1"), link(f"m{i}", 0.2, inertia=ROTOR)]
        axis = AXES[i % 3]
        parts.append(joint(f"j{i}", f"l{i - 1}", f"l{i}", "0 0 0.2", axis))
        ratio = f'<mimic joint="j{i}" multiplier="{rng.uniform(2.0, 10.0):.3f}"/>'
        parts.append(joint(f"m{i}", f"l{i - 1}", f"m{i}", "0.05 0 0.1", axis, extra=ratio))
    return robot("robot_a", parts)


def robot_b(pairs: int, seed: int = 0) -> tuple[str, dict]:
    """Chignoli 2023, Eq. 17: every pair of links is driven by a pair of motors through belts.

    Bodies of a pair: link, rotor, rotor, distal link; the second rotor turns with both links.
    """
    rng = np.random.default_rng(seed)
    parts, gears, before = ['<link name="l0"/>'], [], "l0"
    for i in range(1, pairs + 1):
        axis = AXES[i % 3]
        parts += [link(f"{n}{i}", 1.0, "0.02 0.01 0.1") for n in ("a", "b")]
        parts += [link(f"{n}{i}", 0.2, inertia=ROTOR) for n in ("m", "n")]
        parts += [joint(f"a{i}", before, f"a{i}", "0 0 0.2", axis)]
        parts += [joint(f"b{i}", f"a{i}", f"b{i}", "0 0 0.2", axis)]
        parts += [joint(f"m{i}", before, f"m{i}", "0.05 0 0.1", axis)]
        parts += [joint(f"n{i}", before, f"n{i}", "-0.05 0 0.1", axis)]
        first, second, third = (float(f"{x:.3f}") for x in rng.uniform(2.0, 10.0, 3))
        gears.append({"name": f"gear{i}", "type": "coupling"})
        gears[-1]["terms"] = {f"m{i}": 1.0, f"a{i}": -first}  # beta_11
        gears.append({"name": f"belt{i}", "type": "coupling"})
        gears[-1]["terms"] = {f"n{i}": 1.0, f"a{i}": -second, f"b{i}": -third}  # beta_21, beta_22
        before = f"b{i}"
    independent = [f"{n}{i}" for i in range(1, pairs + 1) for n in ("a", "b")]
    return robot("robot_b", parts), {"constraints": gears, "independent_joints": independent}


def geared_motor() -> tuple[str, dict]:
    """Jain 2009, Eq. 17: a link on a moving carrier, and the motor that drives it."""
    parts = ['<link name="ground"/>', link("carrier", 2.0, "0 0 0.1"), link("arm", 1.0, "0.1 0 0")]
    parts += [link("motor", 0.3, inertia="1e-3 1e-3 2e-3"), link("hand", 0.5, "0.05 0.02 0")]
    parts.append(joint("carrier", "ground", "carrier", "0 0 0", "1 0 0"))
    parts.append(joint("arm", "carrier", "arm", "0 0 0.2", "0 0 1"))
    parts.append(joint("motor", "carrier", "motor", "0.05 0 0.1", "0 0 1"))
    parts.append(joint("hand", "arm", "hand", "0.2 0 0", "0 1 0"))
    gear = {"name": "gear", "type": "coupling", "terms": {"motor": 1.0, "arm": -9.0}}
    return robot("geared_motor", parts), {
        "constraints": [gear],
        "independent_joints": ["carrier", "arm", "hand"],
    }


def wishbone() -> tuple[str, dict]:
    """Jain 2009, Eqs. 18 to 20: links a and c on the carrier, b on a, cut between b and c.

    A body hangs on b, as link j - 1 of the paper does.
    """
    parts = ['<link name="ground"/>', link("carrier", 2.0, "0 0 0.1")]
    parts += [link(name, 0.5, "0.1 0.02 0") for name in ("a", "b", "c")]
    parts += [link("wheel", 1.0, "0.02 0.01 0.03", "0.004 0.005 0.006")]
    parts.append(joint("carrier", "ground", "carrier", "0 0 0", "1 0 0"))
    parts.append(joint("a", "carrier", "a", "0.1 0 0", "0 0 1"))
    parts.append(joint("b", "a", "b", "0 0.3 0", "0 0 1"))
    parts.append(joint("c", "carrier", "c", "0.4 0 0", "0 0 1"))
    parts.append(joint("wheel", "b", "wheel", "0.15 0 0", "1 0 0"))
    cut = {
        "name": "pin", "type": "revolute", "axis": [0, 0, 1],
        "predecessor": {"link": "b", "xyz": [0.3, 0.0, 0.0]},
        "successor": {"link": "c", "xyz": [0.0, 0.3, 0.0]},
    }  # fmt: skip
    return robot("wishbone", parts), {
        "constraints": [cut],
        "independent_joints": ["carrier", "a", "wheel"],
    }
