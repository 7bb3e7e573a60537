"""Parallel robots with a ball joint at each end of every rod, as URDF and loop file."""

from __future__ import annotations

import numpy as np


def _link(name: str, mass: float, centre, rotational) -> str:
    xyz = " ".join(repr(float(x)) for x in centre)
    xx, yy, zz = rotational
    return (
        f"<link name='{name}'><inertial><mass value='{mass}'/><origin xyz='{xyz}'/>"
        f"<inertia ixx='{xx}' iyy='{yy}' izz='{zz}' ixy='0' ixz='0' iyz='0'/></inertial></link>"
    )


def _joint(name: str, kind: str, parent: str, child: str, at, axis=(0, 0, 1)) -> str:
    xyz, along = (" ".join(repr(float(x)) for x in v) for v in (at, axis))
    limit = "<limit lower='-1' upper='1' effort='100' velocity='5'/>"
    return (
        f"<joint name='{name}' type='{kind}'><parent link='{parent}'/><child link='{child}'/>"
        f"<origin xyz='{xyz}'/><axis xyz='{along}'/>{limit}</joint>"
    )


def _ring(radius: float, angles) -> np.ndarray:
    return np.array([[radius * np.cos(a), radius * np.sin(a), 0.0] for a in np.radians(angles)])


def _ball(name: str, link: str, at, other: str, there) -> dict:
    return {
        "name": name,
        "type": "spherical",
        "predecessor": {"link": link, "xyz": [float(x) for x in at]},
        "successor": {"link": other, "xyz": [float(x) for x in there]},
    }


def stewart() -> tuple[str, dict]:
    """A platform on six legs of cylinder and piston: 6 freedoms, and six legs that spin."""
    feet = _ring(0.3, [10, 110, 130, 230, 250, 350])
    tops = _ring(0.18, [50, 70, 170, 190, 290, 310])
    parts = ["<robot name='stewart'><link name='base'/>"]
    parts.append(_link("platform", 2.0, (0.01, 0.02, 0.03), (0.02, 0.03, 0.04)))
    parts.append(_joint("pose", "floating", "base", "platform", (0, 0, 0.4)))
    cuts, joints, motors = [], {}, []
    for i, (foot, top) in enumerate(zip(feet, tops, strict=True)):
        leg = top + np.array([0, 0, 0.4]) - foot
        along = leg / np.linalg.norm(leg)
        parts.append(_link(f"cylinder_{i}", 0.5, 0.1 * along, (0.002, 0.002, 0.002)))
        parts.append(_joint(f"foot_{i}", "continuous", "base", f"cylinder_{i}", foot))
        parts.append(_link(f"piston_{i}", 0.2, 0.3 * along, (0.001, 0.001, 0.001)))
        piston = f"piston_{i}"
        parts.append(_joint(f"leg_{i}", "prismatic", f"cylinder_{i}", piston, (0, 0, 0), along))
        cuts.append(_ball(f"top_{i}", piston, leg, "platform", top))
        joints[f"foot_{i}"] = {"type": "spherical"}
        motors.append(f"leg_{i}")
    loops = {"constraints": cuts, "joints": joints, "actuated_joints": motors}
    return "".join([*parts, "</robot>"]), loops


def delta() -> tuple[str, dict]:
    """Three arms with two parallel rods each: 3 freedoms, and six rods that spin."""
    parts = ["<robot name='delta'><link name='base'/>"]
    parts.append(_link("platform", 0.3, (0, 0, -0.01), (2e-4, 2e-4, 3e-4)))
    parts.append(_joint("pose", "floating", "base", "platform", (0, 0, -0.4)))
    cuts, joints, motors = [], {}, []
    for arm, angle in enumerate((0, 120, 240)):
        out, side = _ring(1.0, [angle, angle + 90])
        elbow = 0.15 * out + (0, 0, -0.05)
        parts.append(_link(f"arm_{arm}", 0.4, 0.5 * elbow, (0.001, 0.001, 0.001)))
        parts.append(_joint(f"motor_{arm}", "continuous", "base", f"arm_{arm}", 0.1 * out, side))
        motors.append(f"motor_{arm}")
        for name, offset in (("a", 0.03), ("b", -0.03)):
            at = elbow + offset * side
            there = 0.05 * out + offset * side
            rod = there + np.array([0, 0, -0.4]) - (0.1 * out + at)
            link = f"rod_{arm}{name}"
            parts.append(_link(link, 0.05, 0.5 * rod, (1e-4, 1e-4, 1e-4)))
            parts.append(_joint(f"ball_{arm}{name}", "continuous", f"arm_{arm}", link, at))
            joints[f"ball_{arm}{name}"] = {"type": "spherical"}
            cuts.append(_ball(f"tip_{arm}{name}", link, rod, "platform", there))
    loops = {"constraints": cuts, "joints": joints, "actuated_joints": motors}
    return "".join([*parts, "</robot>"]), loops
