"""URDF+: loops, and couplings over the paths from the nearest common ancestor."""

from __future__ import annotations

import pytest
from description_texts import joint, leg, leg_problems, link, only_problem

from rbda_ros.description.model import Attachment, Coupling, CutJoint, Pose


def coupling(predecessor: str, successor: str, ratio: str = "6") -> str:
    return (
        f"<coupling name='c'><predecessor link='{predecessor}'/><successor link='{successor}'/>"
        f"<ratio value='{ratio}'/></coupling>"
    )


def test_loop():
    description = leg(
        "<loop name='l' type='revolute'><axis xyz='0 0 2'/>"
        "<predecessor link='shank'><origin xyz='1 2 3' rpy='0 1 0'/></predecessor>"
        "<successor link='arm'/></loop>"
    )
    assert description.constraints == (
        CutJoint(
            "l",
            "revolute",
            Attachment("shank", Pose((1, 2, 3), (0, 1, 0))),
            Attachment("arm"),
            axis=(0, 0, 1),
        ),
    )


def test_axis_of_a_loop_is_x_by_default():
    description = leg(
        "<loop name='l' type='spherical'><predecessor link='shank'/><successor link='arm'/></loop>"
    )
    assert description.constraints[0].axis == (1, 0, 0)


@pytest.mark.parametrize(
    ("predecessor", "successor", "terms"),
    [
        ("thigh", "arm", {"hip": 6.0, "crank": -1.0}),
        ("sensor", "arm", {"hip": 6.0, "knee": 6.0, "crank": -1.0}),
        ("arm", "shank", {"crank": 6.0, "hip": -1.0, "knee": -1.0}),
        ("rotor", "shank", {"rotor": 6.0, "knee": -1.0}),
        ("thigh", "rotor", {"rotor": -1.0}),
    ],
)
def test_coupling_spans_the_paths_from_the_nearest_common_ancestor(predecessor, successor, terms):
    description = leg(
        link("rotor"), joint("rotor", "thigh", "rotor"), coupling(predecessor, successor)
    )
    assert description.constraints == (Coupling("c", terms),)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (coupling("shank", "sensor"), "no joint lies between its links"),
        (coupling("thigh", "arm", "0"), "ratio is zero"),
        (coupling("thigh", "arm", "six"), "'six' is not a number"),
        (coupling("thigh", "am"), "unknown link 'am'; did you mean 'arm'?"),
        (coupling("thigh", "arm").replace("<ratio value='6'/>", ""), "has no ratio"),
        (coupling("thigh", "arm").replace(" name='c'", ""), "has no name"),
        ("<coupling name='c'><ratio value='1'/></coupling>", "has no <predecessor>"),
        ("<loop name='l' type='revolute'><predecessor link='arm'/></loop>", "has no <successor>"),
        (
            "<loop name='l' type='ball'><predecessor link='arm'/><successor link='thigh'/></loop>",
            "type 'ball' is unknown",
        ),
    ],
)
def test_wrong_loops_and_couplings(part, reason):
    assert any(reason in str(problem) for problem in leg_problems(part))


def test_coupling_over_a_joint_without_one_position():
    found = leg_problems(
        link("free"), joint("float", "base", "free", type="floating"), coupling("free", "thigh")
    )
    assert any("floating joint 'float' lies on its path" in str(problem) for problem in found)


def test_number_of_couplings_is_bounded():
    assert "2001 couplings" in only_problem(leg_problems(coupling("thigh", "arm") * 2001))
