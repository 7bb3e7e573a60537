"""A robot of many limbs: each has two geared joints, and a geared four-bar at its end."""

from __future__ import annotations

from benchmark.robots import _joint, _link

PER_LIMB = 3  # joints that are measured, each with a motor


def limbs(joints: int) -> tuple[str, dict]:
    """URDF text and loops of a robot with so many measured joints, and motors."""
    parts, cuts, rotors = ['<robot name="limbs"><link name="body"/>'], [], {}
    measured: list[str] = []
    for i in range(joints // PER_LIMB):
        bodies = [f"{part}_{i}" for part in ("hip", "thigh", "crank", "coupler", "rocker")]
        hip, thigh, crank, coupler, rocker = bodies
        parts += [_link(f"{body}_link", 0.5, (0.1, 0.02, 0.0)) for body in bodies]
        parts += [
            _joint(hip, "body", f"{hip}_link", f"{0.3 * i} 0 0", "1 0 0"),
            _joint(thigh, f"{hip}_link", f"{thigh}_link", "0 0.1 0", "0 1 0"),
            _joint(crank, f"{thigh}_link", f"{crank}_link", "0.1 0 0", "0 0 1"),
            _joint(coupler, f"{crank}_link", f"{coupler}_link", "0 0.3 0", "0 0 1"),
            _joint(rocker, f"{thigh}_link", f"{rocker}_link", "0.4 0 0", "0 0 1"),
        ]
        cuts.append(
            {
                "name": f"pin_{i}",
                "type": "revolute",
                "axis": [0, 0, 1],
                "predecessor": {"link": f"{coupler}_link", "xyz": [0.3, 0.0, 0.0]},
                "successor": {"link": f"{rocker}_link", "xyz": [0.0, 0.3, 0.0]},
            }
        )
        measured += [hip, thigh, crank]
    rotors = {joint: {"ratio": 9.0, "inertia": 6.0e-5} for joint in measured}
    loops = {
        "independent_joints": measured,
        "actuated_joints": [f"{joint}_rotor" for joint in measured],
        "constraints": cuts,
        "rotors": rotors,
    }
    return "".join(parts) + "</robot>", loops
