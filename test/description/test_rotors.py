"""Rotors: the bodies, joints and gears that one line makes."""

from __future__ import annotations

import numpy as np
import pytest
from description_texts import (
    LEG,
    constraint_named,
    joint_named,
    leg,
    leg_problems,
    link,
    link_named,
    only_problem,
    robot,
)

from rbda_ros.description import read_description
from rbda_ros.description.model import Coupling, Inertia, Joint, Pose
from rbda_ros.spatial import rpy_matrix


def rotor(**line):
    return {"rotors": {"knee": {"ratio": 12.0, "inertia": 5.5e-4, **line}}}


def test_one_line_makes_a_link_a_joint_and_a_gear():
    description = leg(loops=rotor(mass=0.5, on_link="thigh", xyz=[0, 0, 0.1]))
    # The knee's frame is turned a quarter about z, so that its y axis is the thigh's -x.
    found = joint_named(description, "knee_rotor")
    assert found.axis == pytest.approx((-1, 0, 0), abs=1e-15)
    assert found == Joint(
        "knee_rotor",
        "continuous",
        "thigh",
        "knee_rotor_link",
        Pose((0, 0, 0.1)),
        found.axis,
        independent=False,
    )
    inertia = link_named(description, "knee_rotor_link").inertia
    assert inertia.mass == 0.5
    assert inertia.ixx == pytest.approx(5.5e-4)
    assert (inertia.iyy, inertia.izz) == pytest.approx((0, 0), abs=1e-18)
    assert description.constraints == (
        Coupling("knee_rotor_gear", {"knee_rotor": 1.0, "knee": -12.0}),
    )


def test_defaults():
    loops = {"rotors": {"hip": {"ratio": -3, "inertia": 2}}}
    description = leg(loops=loops)
    assert joint_named(description, "hip_rotor").parent == "base"
    assert joint_named(description, "hip_rotor").origin == Pose()
    assert link_named(description, "hip_rotor_link").inertia == Inertia(0.0, iyy=2.0)


def test_nothing_of_a_rotor_is_odd():
    assert leg(loops=rotor()).warnings == ()


@pytest.mark.parametrize("on_link", ["base", "thigh", "shank", "arm", "sensor"])
def test_axis_is_parallel_to_the_joints_on_any_link(on_link):
    """Against frames multiplied out by hand, with every joint turned by its own angles."""
    angles = {"hip": (0.1, 0.2, 0.3), "knee": (1, -2, 3), "crank": (-1, 0.5, 2), "mount": (3, 2, 1)}
    text = robot(*LEG)
    for name, rpy in angles.items():
        head, tail = text.split(f"<joint name='{name}'")
        rpy_text = " ".join(map(str, rpy))
        text = f"{head}<joint name='{name}'" + tail.replace(
            "</joint>", f"<origin rpy='{rpy_text}'/></joint>", 1
        ).replace("<origin rpy='0 0 1.5707963267948966'/>", "", 1 if name == "knee" else 0)
    R = {name: rpy_matrix(rpy) for name, rpy in angles.items()}
    to_base = {"base": np.eye(3), "thigh": R["hip"], "arm": R["crank"]}
    to_base["shank"] = R["hip"] @ R["knee"]
    to_base["sensor"] = to_base["shank"] @ R["mount"]
    axis = to_base[on_link].T @ to_base["shank"] @ [0, 1, 0]

    description = read_description(text, rotor(on_link=on_link))
    assert joint_named(description, "knee_rotor").axis == pytest.approx(tuple(axis), abs=1e-14)
    inertia = link_named(description, "knee_rotor_link").inertia
    x, y, z = 5.5e-4 * np.outer(axis, axis)
    assert (inertia.ixx, inertia.ixy, inertia.ixz) == pytest.approx(tuple(x))
    assert (inertia.iyy, inertia.iyz, inertia.izz) == pytest.approx((y[1], y[2], z[2]))


def test_ratio_of_the_transmission_serves_a_line_without_one():
    transmission = (
        "<transmission name='t'><joint name='knee'/><actuator name='m'>"
        "<mechanicalReduction>9</mechanicalReduction></actuator></transmission>"
    )
    description = leg(transmission, loops={"rotors": {"knee": {"inertia": 1e-4}}})
    assert constraint_named(description, "knee_rotor_gear").terms["knee"] == -9.0


@pytest.mark.parametrize(
    ("loops", "message"),
    [
        (rotor(ratio=None), "rotor 'knee': has no ratio, here or in a transmission"),
        (rotor(ratio=0), "ratio is zero"),
        (rotor(inertia=None), "rotor 'knee': has no inertia"),
        (rotor(inertia=-1), "is negative"),
        (rotor(mass="x"), "mass: 'x' is not a number"),
        (rotor(on_link="thig"), "unknown link 'thig'; did you mean 'thigh'?"),
        (rotor(radius=1), "unknown key 'radius'"),
        ({"rotors": {"nee": {"ratio": 1, "inertia": 1}}}, "did you mean 'knee'?"),
        ({"rotors": {"mount": {"ratio": 1, "inertia": 1}}}, "fixed joint 'mount' has no single"),
    ],
)
def test_wrong_lines(loops, message):
    found = leg_problems(loops=loops)
    assert any(message in str(problem) for problem in found), found


def test_names_that_collide():
    assert "link 'knee_rotor_link': is defined 2 times" in str(
        leg_problems(link("knee_rotor_link"), loops=rotor())[-1]
    )
    gear = {"name": "knee_rotor_gear", "type": "coupling", "terms": {"hip": 1, "crank": 1}}
    found = leg_problems(loops=rotor() | {"constraints": [gear]})
    assert "constraint 'knee_rotor_gear'" in only_problem(found)
