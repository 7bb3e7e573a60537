"""Parallel robots with a ball joint at each end of every rod, as URDF and loop file."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation


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


def spherical_manipulator(digits: int) -> tuple[str, dict]:
    """Three legs of hinges whose axes meet in a point, rounded as an exporter does: 3 freedoms.

    Of the ten rows of its two cuts six are redundant, if the numbers are exact.
    """
    parts = ["<robot name='spherical_manipulator'><link name='base'/>"]
    cuts, platform = [], np.eye(4)
    for leg in range(3):
        angle = 2 * np.pi * leg / 3 + 0.123
        u = np.array([np.sin(0.9) * np.cos(angle), np.sin(0.9) * np.sin(angle), -np.cos(0.9)])
        v = np.array([np.sin(1) * np.cos(angle + 0.5), np.sin(1) * np.sin(angle + 0.5), np.cos(1)])
        w = np.cross(u, v) / np.linalg.norm(np.cross(u, v)) + 0.3 * u + 0.2 * v
        motor, middle, top = _about(u, 0.3), _about(w, 0.4), _about(v, 0.5)
        names = f"proximal_{leg}", f"distal_{leg}"
        parts += [_link(name, 0.2, (0.01, 0.02, 0.03), (1e-3, 1e-3, 1e-3)) for name in names]
        parts.append(_hinge(f"motor_{leg}", "base", names[0], motor, digits))
        parts.append(_hinge(f"middle_{leg}", *names, np.linalg.inv(motor) @ middle, digits))
        if leg == 0:
            platform = top
            parts.append(_link("platform", 0.3, (0.02, 0.01, 0.01), (1e-3, 1e-3, 1e-3)))
            parts.append(_hinge("top", names[1], "platform", np.linalg.inv(middle) @ top, digits))
        else:
            ends = {"predecessor": (names[1], middle), "successor": ("platform", platform)}
            cut = {"name": f"top_{leg}", "type": "revolute", "axis": [0, 0, 1]}
            for side, (link, frame) in ends.items():
                xyz, rpy = _rounded(np.linalg.inv(frame) @ top, digits)
                cut[side] = {"link": link, "xyz": xyz, "rpy": rpy}
            cuts.append(cut)
    motors = [f"motor_{leg}" for leg in range(3)]
    return "".join([*parts, "</robot>"]), {"constraints": cuts, "actuated_joints": motors}


def _about(axis: np.ndarray, turn: float) -> np.ndarray:
    """A frame with z on an axis through the origin, 0.1 m along it."""
    z = axis / np.linalg.norm(axis)
    x = np.cross([0.3, 0.5, 0.7], z)
    x /= np.linalg.norm(x)
    T = np.eye(4)
    about_z = Rotation.from_euler("z", turn).as_matrix()
    T[:3, :3], T[:3, 3] = np.column_stack([x, np.cross(z, x), z]) @ about_z, 0.1 * z
    return T


def _rounded(T: np.ndarray, digits: int) -> tuple[list[float], list[float]]:
    rpy = Rotation.from_matrix(T[:3, :3]).as_euler("xyz")
    xyz, rpy = ([float(f"{x:.{digits}g}") for x in vector] for vector in (T[:3, 3], rpy))
    return xyz, rpy


def _hinge(name: str, parent: str, child: str, T: np.ndarray, digits: int) -> str:
    xyz, rpy = (" ".join(map(repr, vector)) for vector in _rounded(T, digits))
    return (
        f"<joint name='{name}' type='continuous'><parent link='{parent}'/><child link='{child}'/>"
        f"<origin xyz='{xyz}' rpy='{rpy}'/><axis xyz='0 0 1'/></joint>"
    )
