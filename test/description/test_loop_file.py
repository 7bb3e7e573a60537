"""The loop file: every key of the contract, and every way to get it wrong."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest
from description_texts import (
    LEG,
    constraint_named,
    joint_named,
    leg,
    leg_problems,
    only_problem,
    robot,
)

from rbda_ros.description import read_description
from rbda_ros.description.expression import parse
from rbda_ros.description.model import Attachment, Coupling, CutJoint, Expression, Pose
from rbda_ros.errors import DescriptionError

EVERYTHING = """
independent_joints: [hip, knee]
actuated_joints: [hip, crank]
constraints:
  - {name: belt, type: coupling, terms: {crank: 1.0, hip: -12}, offset: 1e-1}
  - name: rod
    type: revolute
    predecessor: {link: shank, xyz: [0.3, 0, 0], rpy: [0, 0, 1]}
    successor: {link: arm}
    axis: [0, 2, 0]
    method: embed
  - {type: expression, equation: "crank - 0.1*cos(hip)"}
assembly: {hip: 0.4, knee: -1}
"""


def test_reads_every_key():
    description = leg(loops=EVERYTHING)
    assert description.independent_joints == ("hip", "knee")
    assert description.actuated_joints == ("hip", "crank")
    assert description.assembly == {"hip": 0.4, "knee": -1.0}
    assert description.constraints == (
        Coupling("belt", {"crank": 1.0, "hip": -12.0}, 0.1),
        CutJoint(
            "rod",
            "revolute",
            Attachment("shank", Pose((0.3, 0, 0), (0, 0, 1))),
            Attachment("arm"),
            axis=(0, 1, 0),
            method="embed",
        ),
        Expression("expression_3", "crank - 0.1*cos(hip)", parse("crank - 0.1*cos(hip)")),
    )


def test_a_method_for_all_leaves_those_that_say_their_own():
    methods = [c.method for c in leg(loops=EVERYTHING + "method: auto\n").constraints]
    assert methods == ["auto", "embed", "auto"]


def test_text_path_and_mapping_read_alike(tmp_path: Path):
    path = tmp_path / "loops.yaml"
    path.write_text(EVERYTHING)
    mapping = {
        "independent_joints": ("hip", "knee"),
        "actuated_joints": ["hip", "crank"],
        "constraints": [
            {"name": "belt", "type": "coupling", "terms": {"crank": 1, "hip": -12}, "offset": 0.1},
            {
                "name": "rod",
                "type": "revolute",
                "predecessor": {"link": "shank", "xyz": np.array([0.3, 0, 0]), "rpy": (0, 0, 1)},
                "successor": {"link": "arm"},
                "axis": np.array([0, 2, 0]),
                "method": "embed",
            },
            {"type": "expression", "equation": "crank - 0.1*cos(hip)"},
        ],
        "assembly": {"hip": np.float64(0.4), "knee": -1},
    }
    expected = leg(loops=EVERYTHING)
    assert leg(loops=path) == leg(loops=str(path)) == leg(loops=mapping) == expected


@pytest.mark.parametrize("nothing", [None, "", "  \n", "# a comment\n", {}, "constraints:\n"])
def test_no_loops(nothing):
    assert leg(loops=nothing) == leg()


def test_a_guess_has_the_entries_of_its_joint():
    guess = {"joints": {"knee": {"type": "spherical"}}, "assembly": {"knee": [0, 0, 2, 0]}}
    assert leg(loops=guess).assembly == {"knee": (0.0, 0.0, 2.0, 0.0)}
    for wrong in (0.5, [0, 0, 1], [0, 0, 0, 0], [0] * 9):
        with pytest.raises(DescriptionError, match="assembly of 'knee'"):
            leg(loops={**guess, "assembly": {"knee": wrong}})
    with pytest.raises(DescriptionError, match=r"assembly of .hip.*give position"):
        leg(loops={"assembly": {"hip": [1.0, 2.0]}})


def test_one_line_of_text():
    assert leg(loops="assembly: {hip: 1}").assembly == {"hip": 1.0}
    assert leg(loops="{assembly: {hip: 1}}").assembly == {"hip": 1.0}


@pytest.mark.parametrize(
    "type", ["revolute", "prismatic", "cylindrical", "planar", "spherical", "fixed"]
)
def test_cut_types(type):
    ends = "predecessor: {link: shank}, successor: {link: arm}"
    description = leg(loops=f"constraints: [{{type: {type}, {ends}}}]")
    assert description.constraints == (
        CutJoint(f"{type}_1", type, Attachment("shank"), Attachment("arm")),
    )


def test_universal_and_distance_cuts_have_a_key_of_their_own():
    ends = {"predecessor": {"link": "shank"}, "successor": {"link": "arm"}}
    description = leg(
        loops={
            "constraints": [
                {"type": "universal", "axis": [0, 0, 3], "second_axis": [0, 5, 0], **ends},
                {"type": "distance", "length": "0.25", **ends},
                {"type": "distance", **ends},
            ]
        }
    )
    universal, rod, assembled = description.constraints
    assert (universal.axis, universal.second_axis) == ((0, 0, 1), (0, 1, 0))
    assert (rod.length, assembled.length) == (0.25, None)
    wrong = {"type": "revolute", "length": 1, **ends}
    message = only_problem(leg_problems(loops={"constraints": [wrong]}))
    assert "unknown key 'length'" in message


def test_names_and_numbers_that_yaml_would_change():
    """``on``, ``1`` and ``null`` are names here, 1e-4 is a number and ~ is nothing."""
    description = read_description(
        robot(*LEG).replace("'hip'", "'on'").replace("'knee'", "'1'"),
        "constraints: [{type: coupling, terms: {on: 1e-4, 1: 2}, offset: ~}]\nassembly: {on: 1}",
    )
    assert description.constraints == (Coupling("coupling_1", {"on": 1e-4, "1": 2.0}, 0.0),)


def test_helical_and_spherical_joints():
    limits = "<limit lower='-1' upper='1' effort='3' velocity='2'/>"
    text = robot(*LEG).replace(
        "<axis xyz='0 1 0'/></joint>", f"<axis xyz='0 1 0'/>{limits}</joint>"
    )
    description = read_description(
        text.replace("continuous", "revolute"),
        "joints: {hip: {type: helical, pitch: 0.002}, crank: {type: spherical}}",
    )
    hip, crank = (joint_named(description, name) for name in ("hip", "crank"))
    assert (hip.type, hip.pitch, hip.limits.upper) == ("helical", 0.002, 1.0)
    assert (crank.type, crank.limits.upper, crank.limits.effort) == ("spherical", np.inf, 3.0)


def test_helical_joints_have_one_position():
    loops = {
        "joints": {"hip": {"type": "helical", "pitch": 0.1}},
        "constraints": [{"name": "c", "type": "coupling", "terms": {"hip": 1, "crank": 2}}],
    }
    assert constraint_named(leg(loops=loops), "c")
    loops["joints"]["hip"] = {"type": "spherical"}
    assert "spherical joint 'hip' has no single position" in only_problem(leg_problems(loops=loops))


@pytest.mark.parametrize(
    ("loops", "message"),
    [
        ("/no/such/loops.yaml", "loop file '/no/such/loops.yaml': does not exist"),
        ("- a\n- b", "loop file: ['a', 'b'] is not a mapping"),
        ("assembly: {hip: 1", "line 1, column"),
        ("a: b: c\n", "line 1, column 5: mapping values are not allowed"),
        ("assembly: {hip: 1}\nassembly: {}", "line 2, column 1: 'assembly' appears twice"),
        ("a: &x 1\nb: *x\n", "line 2, column 4: aliases (*) are refused"),
        ("assembly: {hip: !!float 1}\n", "float is refused"),
        ("a: !!python/object/apply:os.system [ls]\n", "is refused"),
        ("x: " + "[" * 100, "is nested too deeply"),
        ("{[a, b]: 1}\n", "a key is not a name"),
        ("--- {}\n--- {}\n", "but found another document"),
        ('a: "\\UFFFFFFFF"\n', "loop file"),
        ("a: \x00\n", "loop file"),
        ("asembly: {hip: 1}", "unknown key 'asembly'; did you mean 'assembly'?"),
        ("independent_joints: hip\n", "'hip' is not a list of names"),
        ("independent_joints: [hip, [a]]\n", "['a'] is not a name"),
        ("independent_joints: [hip, ' ']\n", "a name is empty"),
        ("constraints: {a: 1}", "constraints: {'a': '1'} is not a list"),
        ("constraints: [a]\n", "constraint 1: 'a' is not a mapping"),
        ("constraints: [{type: gear}]\n", "constraint 'constraint_1': type 'gear' is unknown"),
        ("constraints: [{type: revolut}]\n", "did you mean 'revolute'?"),
        ("constraints: [{name: c}]\n", "constraint 'c': type None is unknown"),
        ("constraints: [{name: c, type: coupling}]\n", "constraint 'c': has no terms"),
        ("constraints: [{type: coupling, terms: {}}]\n", "there are no terms"),
        (
            "constraints: [{type: coupling, terms: {hip: 0, crank: 1}}]\n",
            "the coefficient of 'hip' is zero",
        ),
        ("constraints: [{type: coupling, terms: {hip: x}}]\n", "'x' is not a number"),
        ("constraints: [{type: coupling, terms: {hip: .inf}}]\n", "'.inf' is not a number"),
        ("constraints: [{type: coupling, terms: {hip: inf}}]\n", "'inf' is not finite"),
        ("constraints: [{type: coupling, terms: [hip]}]\n", "['hip'] is not a mapping"),
        ("constraints: [{type: expression}]\n", "has no equation"),
        ("constraints: [{type: expression, equation: hip -}]\n", "column 6: ends too early"),
        ("constraints: [{type: expression, equation: [hip]}]\n", "['hip'] is not text"),
        ("constraints: [{type: expression, equation: 1 + pi}]\n", "names no joint"),
        ("assembly: {hip: far}\n", "assembly: hip: 'far' is not a number"),
        ("assembly: {nee: 1}\n", "assembly: unknown joint 'nee'; did you mean 'knee'?"),
        ("assembly: {mount: 1}\n", "fixed joint 'mount' has no single position"),
        ("joints: {hip: {type: helical}}\n", "joints: 'hip': has no pitch"),
        ("joints: {hip: {type: helical, pitch: 0}}\n", "pitch is zero"),
        ("joints: {hip: {type: spherical, pitch: 1}}\n", "pitch is not read for a spherical joint"),
        (
            "joints: {hip: {armature: 1, position: 1}}\n",
            "position is not read for the URDF's joint",
        ),
        ("joints: {hip: {type: revolute}}\n", "type 'revolute' is not set here"),
        ("joints: {hip: {pitch: 1}}\n", "has no type"),
        ("joints: {hop: {type: spherical}}\n", "joints: 'hop': unknown joint"),
        ("joints: {hip: helical}\n", "'helical' is not a mapping"),
    ],
)
def test_wrong_files(loops, message):
    assert message in only_problem(leg_problems(loops=loops))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predecessor": None}, "has no predecessor"),
        ({"predecessor": {}}, "constraint 'revolute_1' predecessor: has no link"),
        ({"predecessor": "shank"}, "predecessor: 'shank' is not a mapping"),
        ({"predecessor": {"lnk": "shank"}}, "unknown key 'lnk'; did you mean 'link'?"),
        ({"predecessor": {"link": "shank", "xyz": [0, 0]}}, "[0, 0] is not three numbers"),
        ({"predecessor": {"link": "shang"}}, "unknown link 'shang'; did you mean 'shank'?"),
        ({"predecessor": {"link": "arm"}}, "joins a link to itself"),
        ({"axis": [0, 0, 0]}, "axis: has zero length"),
        ({"axis": [0, True, 0]}, "True is not a number"),
        ({"method": "newton"}, "method 'newton' is unknown"),
        ({"name": 3}, "3 is not a name"),
        ({"name": ["rod"]}, "['rod'] is not a name"),
        ({"type": "distance", "length": 0}, "0.0 is not positive"),
        ({"type": "universal", "second_axis": "z"}, "'z' is not three numbers"),
    ],
)
def test_wrong_cuts(change, message):
    rod = {"type": "revolute", "predecessor": {"link": "shank"}, "successor": {"link": "arm"}}
    found = leg_problems(loops={"constraints": [rod | change]})
    assert any(message in str(problem) for problem in found), found


def test_couplings_and_springs_of_fixed_joints_are_about_the_others():
    """What `load_robot` proposes where a coupling locks joints: to fix them where they are."""
    gear = {"name": "g", "type": "coupling", "terms": {"hip": 2.0, "knee": 1.0, "crank": -1.0}}
    lock = {"name": "l", "type": "coupling", "terms": {"hip": 4.0}, "offset": 1.2}
    spring = {"name": "s", "terms": {"hip": 2.0, "knee": 1.0}, "stiffness": 3.0, "rest": 0.5}
    loops = {
        "constraints": [gear, lock],
        "springs": [spring, {"name": "t", "terms": {"hip": 1.0}, "stiffness": 3.0}],
        "joints": {"hip": {"type": "fixed", "position": 0.3}},
    }
    found = leg(loops=loops)
    (coupling,) = found.constraints
    assert isinstance(coupling, Coupling)
    assert dict(coupling.terms) == {"knee": 1.0, "crank": -1.0}
    assert coupling.offset == pytest.approx(-0.6)
    (held,) = found.springs
    assert dict(held.terms) == {"knee": 1.0}
    assert held.rest == pytest.approx((-0.1, -0.1))
    loops["joints"] = {"hip": {"type": "fixed", "position": 0.31}}
    message = only_problem(leg_problems(loops=loops))
    assert "'l': all of its joints are fixed, where it is -0.04 from satisfied" in message


def test_a_cut_is_between_two_links():
    ends = {"predecessor": {"link": "shank"}, "successor": {"link": "sensor"}}
    assert leg(loops={"constraints": [{"type": "fixed", **ends}]}).constraints  # the tree drops it
    same = {"predecessor": {"link": "shank"}, "successor": {"link": "shank"}}
    message = only_problem(leg_problems(loops={"constraints": [{"type": "fixed", **same}]}))
    assert "joins a link to itself" in message


def test_mappings_of_anything():
    class Odd:
        pass

    for loops in (
        {1: 2},
        {"constraints": [{"type": np.zeros(3)}]},
        {"constraints": np.zeros(3)},
        {"constraints": [{"type": "coupling", "terms": {2: 1.0}}]},
        {"assembly": {"hip": Odd()}},
        {"assembly": {"hip": 10**400}},
        {"assembly": {"hip": 1j}},
        {"rotors": {"hip": Odd()}},
        {"independent_joints": {"hip"}},
    ):
        assert leg_problems(loops=loops)


def test_large_files_are_refused():
    assert "more than" in only_problem(leg_problems(loops="# " + "x" * 1_100_000 + "\n"))


def test_the_contract_in_the_design():
    """The example of the contract is read, given a robot that has its joints."""
    text = textwrap.dedent(
        """
        independent_joints: [hip, knee_rotor]
        actuated_joints: [knee_rotor]
        constraints:
          - name: shank_linkage
            type: revolute
            predecessor: {link: shank, xyz: [0.3, 0, 0], rpy: [0, 0, 0]}
            successor:   {link: arm,  xyz: [0.1, 0, 0], rpy: [0, 0, 0]}
            axis: [0, 1, 0]
        assembly: {crank: 0.4, knee: -1.2}
        rotors:
          knee: {ratio: 12.0, inertia: 5.5e-4, mass: 0.0, on_link: thigh, xyz: [0, 0, 0]}
        """
    )
    description = leg(loops=text)
    assert joint_named(description, "knee_rotor").independent is True
    assert [item.name for item in description.constraints] == ["knee_rotor_gear", "shank_linkage"]
