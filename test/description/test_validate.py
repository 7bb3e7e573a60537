"""Checks over the whole robot: names, tree, inertias, and that all problems come at once."""

from __future__ import annotations

import pytest
from description_texts import (
    INERTIAL,
    joint,
    leg,
    leg_problems,
    link,
    only_problem,
    problems,
    robot,
)

from rbda_ros.errors import DescriptionError, ModelError


def test_all_problems_of_both_files_come_at_once():
    found = leg_problems(
        link("x", INERTIAL.replace("mass value='1'", "mass value='-1'")),
        joint("y", "base", "x", "<axis xyz='0 0 0'/>"),
        "<loop name='l' type='revolute'><predecessor link='x'/><successor link='x'/></loop>",
        loops="independent_joints: [hop]\nassembly: {hip: x}\n",
    )
    assert [problem.element for problem in found] == [
        "assembly",
        "joint 'y'",
        "link 'x'",
        "constraint 'l'",
        "independent_joints",
    ]


def test_the_message_has_one_line_per_problem():
    with pytest.raises(ModelError) as caught:
        leg(link("base"), link("loose"))
    assert isinstance(caught.value, DescriptionError)
    assert str(caught.value).splitlines() == [
        "URDF: has 2 roots: 'base', 'loose'; join them with fixed or floating joints, or write"
        " 'root: base' into the loop file, to read one of these trees",
        "link 'base': is defined 2 times; rename one",
    ]


def test_a_broken_loop_file_is_told_beside_a_broken_urdf():
    found = problems("<robot", "assembly: [")
    assert [problem.element for problem in found] == ["URDF", "loop file"]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([link("a"), link("b")], "URDF: has 2 roots: 'a', 'b'"),
        (
            [link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")],
            "URDF: links 'a', 'b' hang from each other in a circle",
        ),
        (
            [link("r"), link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")],
            "links 'a', 'b' hang from each other in a circle",
        ),
        (
            [
                *(link("a"), link("b"), link("c"), joint("i", "a", "b")),
                *(joint("j", "a", "c"), joint("k", "b", "c")),
            ],
            "link 'c': is the child of joints 'j', 'k'; keep one of them, and close the loop",
        ),
        ([link("a"), joint("j", "a", "a")], "joint 'j': joins a link to itself"),
        ([link("a"), joint("j", "a", "bb")], "joint 'j': unknown link 'bb'"),
        ([link("thigh"), joint("j", "thig", "thigh")], "did you mean 'thigh'?"),
    ],
)
def test_what_is_no_tree(parts, message):
    assert message in only_problem(problems(robot(*parts)))


def test_duplicate_names():
    found = leg_problems(
        link("x"),
        joint("hip", "base", "x"),
        "<loop name='l' type='fixed'><predecessor link='x'/><successor link='arm'/></loop>",
        loops={"constraints": [{"name": "l", "type": "coupling", "terms": {"hip": 1, "knee": 1}}]},
    )
    assert {problem.element for problem in found} == {"joint 'hip'", "constraint 'l'"}


def test_joint_lists():
    found = leg_problems(loops="independent_joints: [hip, hip, mount]\nactuated_joints: [nee]\n")
    assert [str(problem) for problem in found] == [
        "independent_joints: lists 'hip' 2 times; list it once",
        "independent_joints: joint 'mount' is fixed; list joints that move",
        "actuated_joints: unknown joint 'nee'; did you mean 'knee'?",
    ]


def test_constraints_over_joints_without_one_position():
    terms = {"base_joint": 1, "hip": 1}
    found = leg_problems(
        link("world"),
        joint("base_joint", "world", "base", type="floating"),
        loops={
            "constraints": [
                {"type": "coupling", "terms": terms},
                {"type": "expression", "equation": "mount + left-hip"},
            ]
        },
    )
    assert [str(problem).partition(";")[0] for problem in found] == [
        "constraint 'coupling_1': floating joint 'base_joint' has no single position",
        "constraint 'expression_2': fixed joint 'mount' has no single position",
        "constraint 'expression_2': unknown joint 'left'",
    ]


def inertia(**moments: float) -> str:
    text = INERTIAL
    for name, value in moments.items():
        old = "1" if name in ("ixx", "iyy", "izz") else "0"
        text = text.replace(f"{name}='{old}'", f"{name}='{value}'")
    return text


def warnings_of(inertial: str) -> list[str]:
    description = leg(link("x", inertial), joint("y", "base", "x"))
    return [warning for warning in description.warnings if "'x'" in warning]


def test_moments_that_no_body_has_are_told_of():
    assert warnings_of(inertia()) == []
    assert warnings_of(inertia(ixx=2.0)) == []
    assert "triangle" in warnings_of(inertia(ixx=2.1))[0]
    assert "triangle" in warnings_of(inertia(ixy=0.8))[0]
    assert "negative principal moment (-0.5" in warnings_of(inertia(ixy=1.5))[0]
    assert "negative principal moment" in warnings_of(inertia(izz=-1))[0]


def test_negative_mass():
    negative = INERTIAL.replace("mass value='1'", "mass value='-1e-3'")
    assert "mass -0.001 is negative" in only_problem(problems(robot(link("a", negative))))


MASSLESS = [link("x", ""), joint("y", "base", "x")]


def test_massless_leaf_is_told_of():
    assert any("singular along it" in warning for warning in leg(*MASSLESS).warnings)


@pytest.mark.parametrize(
    ("more", "loops"),
    [
        # A body fixed to it, or further out, has mass.
        ([link("z"), joint("f", "x", "z", type="fixed")], None),
        ([link("z"), joint("f", "x", "z")], None),
        # A constraint ties it to a body that has.
        ([], {"constraints": [{"type": "coupling", "terms": {"y": 1, "hip": 1}}]}),
        ([], {"constraints": [{"type": "expression", "equation": "y - sin(hip)"}]}),
        (
            ["<loop name='l' type='fixed'><predecessor link='x'/><successor link='arm'/></loop>"],
            None,
        ),
    ],
)
def test_massless_bodies_that_something_resists(more, loops):
    assert leg(*MASSLESS, *more, loops=loops).warnings == ()


def test_limits_that_leave_no_position_are_told_of():
    description = leg(
        link("x"), joint("y", "base", "x", "<limit lower='1' upper='-1'/>", "prismatic")
    )
    assert description.warnings == ("joint 'y': lower limit 1.0 is above upper limit -1.0",)


def test_long_chains_and_many_problems_stay_quick():
    count = 5000
    links = "".join(link(f"l{number}", "") for number in range(count + 1))
    chain = "".join(
        joint(f"j{number}", f"l{number}", f"l{number + 1}", type="fixed") for number in range(count)
    )
    cuts = "".join(
        f"<coupling name='c{number}'><predecessor link='l{count}'/><successor link='no{number}'/>"
        "<ratio value='1'/></coupling>"
        for number in range(1000)
    )
    assert len(problems(robot(links, chain, cuts))) == 1000
