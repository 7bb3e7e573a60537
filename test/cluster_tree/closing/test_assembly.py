"""Assembly: which joints are independent, and what is refused, with messages that name it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import yaml
from mechanism_table import FOLDER, MECHANISMS

from rbda_ros import DescriptionError, Robot, load_robot


def loops_of(name: str, **changes: Any) -> dict[str, Any]:
    """A mechanism's loop file with some entries changed; None removes one."""
    path = MECHANISMS[name].loops
    entries = {} if path is None else yaml.safe_load(path.read_text())
    entries |= changes
    return {key: value for key, value in entries.items() if value is not None}


def load(name: str, *, floating_base: bool = False, **changes: Any) -> Robot:
    return load_robot(MECHANISMS[name].urdf, loops_of(name, **changes), floating_base=floating_base)


def refusal(name: str, **changes: Any) -> str:
    """Why a changed mechanism is refused; every part of the problem says something."""
    with pytest.raises(DescriptionError) as caught:
        load(name, **changes)
    assert all(p.element and p.reason and p.remedy for p in caught.value.problems)
    return str(caught.value)


def coupling(name: str, offset: float = 0.0, **terms: float) -> dict[str, Any]:
    return {"name": name, "type": "coupling", "terms": terms, "offset": offset}


# Which joints are independent.


@pytest.mark.parametrize("joint", ["crank", "coupler", "rocker"])
def test_listed_joints_are_independent(joint):
    robot = load("four_bar", independent_joints=[joint, "flag"])
    assert robot.independent_joint_names == (joint, "flag")


def test_joints_listed_for_one_cluster_leave_the_others_to_us():
    robot = load("chained_loops", independent_joints=["rocker"])
    assert robot.independent_joint_names[0] == "rocker"
    assert len(robot.independent_joint_names) == 2


def test_urdf_plus_marks_are_kept():
    robot = MECHANISMS["belt_pair"].load()  # its rotors say independent="false"
    assert robot.independent_joint_names == ("hip", "knee", "ankle")


def test_the_loop_file_overrides_urdf_plus():
    robot = load("belt_pair", independent_joints=["knee_rotor", "ankle_rotor"])
    assert set(robot.independent_joint_names) == {"hip", "knee_rotor", "ankle_rotor"}


def test_followers_of_mimic_and_rotors_of_the_shorthand_are_dependent():
    assert MECHANISMS["mimic_chain"].load().independent_joint_names == ("proximal",)
    robot = MECHANISMS["rotors"].load()
    assert set(robot.independent_joint_names) == {"shoulder", "elbow", "wrist"}


@pytest.mark.parametrize("joint", ["crank", "coupler", "rocker"])
def test_actuated_joints_are_preferred(joint):
    robot = load("four_bar", actuated_joints=[joint])
    assert joint in robot.independent_joint_names


def test_an_actuated_joint_at_a_dead_point_is_not_chosen():
    """The follower's rate says nothing of the cam's at the top, where the cam is assembled."""
    robot = load("cam", actuated_joints=["follower-slide"])
    assert "follower-slide" not in robot.independent_joint_names
    assert robot.actuated_joint_names == ("follower-slide",)


def test_the_choice_is_well_conditioned_for_every_mechanism():
    for mechanism in MECHANISMS.values():
        for node in mechanism.tree().clusters:
            if node.loop is None:
                continue
            K = node.loop.jacobian(node.home)
            K = K / np.linalg.norm(K, axis=1, keepdims=True)
            dependent = [j for j in range(node.nv) if j not in node.independent]
            assert np.linalg.svd(K[:, dependent], compute_uv=False)[-1] > 1e-3, mechanism.name


@pytest.mark.parametrize("name", ["fixed_cut", "ball_joint_loop", "overlapping_loops"])
def test_the_choice_is_the_same_in_every_run(name):
    first, second = load(name, independent_joints=None), load(name, independent_joints=None)
    assert first.independent_joint_names == second.independent_joint_names
    np.testing.assert_array_equal(first.tree.home, second.tree.home)
    assert first.joint_names == second.joint_names


def test_large_clusters_are_chosen_for_without_trying_everything():
    """Seven couplings of fourteen joints: 3,432 choices, more than are compared."""
    count = 14
    links = "".join(
        f"<link name='l{i}'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0'"
        f" ixz='0' iyz='0'/></inertial></link><joint name='j{i}' type='continuous'><parent"
        f" link='base'/><child link='l{i}'/><axis xyz='0 0 1'/></joint>"
        for i in range(count)
    )
    urdf = f"<robot name='many'><link name='base'/>{links}</robot>"
    rng = np.random.default_rng(0)
    rows = [
        coupling(f"c{r}", **{f"j{i}": float(rng.normal()) for i in range(count)}) for r in range(7)
    ]
    actuated = [f"j{i}" for i in range(7)]
    robot = load_robot(urdf, {"constraints": rows, "actuated_joints": actuated})
    assert robot.ny == 7
    assert len(set(robot.independent_joint_names) & set(actuated)) >= 6


def test_a_floating_base_is_independent_whatever_is_listed():
    """The elbow's rotor is on the base, so that base and shoulder share a cluster."""
    robot = load("rotors", floating_base=True, independent_joints=["shoulder_rotor", "elbow"])
    assert set(robot.independent_joint_names) == {"shoulder_rotor", "elbow", "wrist"}
    assert robot.ny == 9
    q = robot.close({"shoulder_rotor": 0.9, "elbow": 0.2, "wrist": 0.1})
    position = dict(zip(robot.joint_names, q[7:], strict=True))
    assert position["shoulder"] == pytest.approx(0.1, abs=1e-14)
    assert position["elbow_rotor"] == pytest.approx(-6.0, abs=1e-14)


# What is refused.


def test_too_many_independent_joints_are_named():
    message = refusal("four_bar", independent_joints=["crank", "rocker"])
    assert "crank, rocker" in message
    assert "too many" in message
    assert "1 degree" in message


def test_too_few_independent_joints_are_named():
    message = refusal("differential", independent_joints=["tilt"])
    assert "tilt" in message
    assert "too few" in message
    assert "exactly 2" in message


def test_independent_joints_that_do_not_determine_the_others_are_named():
    """Left and tilt turn together, so that they say nothing of the roll."""
    message = refusal(
        "differential",
        constraints=[
            coupling("first", left=1.0, tilt=-3.0),
            coupling("second", right=1.0, roll=2.0, tilt=1.0, left=-1.0 / 3.0),
        ],
        independent_joints=["left", "tilt"],
    )
    assert "left, tilt" in message
    assert "do not determine" in message


@pytest.mark.parametrize(
    ("rows", "culprits"),
    [
        ([coupling("a", swing=1.0, rotor=-2.0), coupling("b", 0.5, swing=1.0, rotor=-2.0)], "ab"),
        (
            [
                coupling("a", 0.1, swing=1.0, rotor=-2.0),
                coupling("b", 0.1, rotor=1.0, elbow=1.0),
                coupling("c", 5.0, swing=1.0, elbow=2.0),
            ],
            "abc",
        ),
    ],
    ids=["parallel", "three"],
)
def test_contradicting_equations_are_named(rows, culprits):
    message = refusal("gear", constraints=rows)
    assert "contradict" in message
    assert {name for name in culprits if f"'{name}'" in message} == set(culprits)


def test_equations_that_say_the_same_twice_are_one():
    rows = [coupling("a", 0.2, swing=1.0, rotor=-2.0), coupling("b", -0.4, swing=-2.0, rotor=4.0)]
    robot = load("gear", constraints=rows)
    assert robot.ny == 2
    q = robot.close({"swing": 0.6, "elbow": 0.0})
    assert q[robot.joint_names.index("rotor")] == pytest.approx(0.2, abs=1e-15)


def test_a_pin_given_twice_is_one():
    pin = loops_of("four_bar")["constraints"][0]
    robot = load("four_bar", constraints=[pin, pin | {"name": "again"}])
    assert robot.ny == 2


def test_a_loop_that_cannot_close_is_named_with_its_gap():
    (pin,) = loops_of("four_bar")["constraints"]
    pin["successor"]["xyz"] = [0.9, 0.0, 0.03]
    message = refusal("four_bar", constraints=[pin])
    assert "'pin'" in message
    assert "does not close" in message
    gap = re.search(r"([\d.e-]+) is left", message)
    assert gap
    assert 0.1 < float(gap.group(1)) < 1.0


def test_a_four_bar_out_of_its_plane_is_named_with_its_gap():
    """A revolute cut 1 mm beside the plane of a planar linkage."""
    (pin,) = loops_of("four_bar")["constraints"]
    pin["successor"]["xyz"] = [0.22, 0.0, 0.031]
    message = refusal("four_bar", constraints=[pin])
    assert "'pin'" in message
    assert "0.001 is left" in message


def test_opposed_axes_are_told_from_gaps():
    (pin,) = loops_of("four_bar")["constraints"]
    pin["successor"]["rpy"] = [np.pi, 0.0, 0.0]
    assert "opposed" in refusal("four_bar", constraints=[pin])


def test_no_freedom_left_names_constraints_and_joints():
    rows = [
        coupling("a", swing=1.0, rotor=-2.0),
        coupling("b", swing=1.0, rotor=1.0),
    ]
    message = refusal("gear", constraints=rows)
    assert "'a', 'b'" in message
    assert "swing, rotor" in message
    assert "no freedom" in message


def test_an_equation_without_solution_is_named():
    rows = [{"name": "impossible", "type": "expression", "equation": "swing^2 + rotor^2 + 1"}]
    assert "'impossible'" in refusal("gear", constraints=rows)


def test_an_equation_that_is_no_number_anywhere_is_named():
    rows = [{"name": "log", "type": "expression", "equation": "log(-1 - swing^2) + rotor"}]
    assert "'log'" in refusal("gear", constraints=rows)


def test_a_square_root_at_its_end_is_assembled_beside_it():
    """The rate is infinite at the first guess; it ended in a LinAlgError."""
    root = {"name": "root", "type": "expression", "equation": "rotor - sqrt(swing)"}
    urdf = FOLDER / "gear.urdf"
    robot = load_robot(urdf, {"constraints": [root]})
    q = dict(zip(robot.joint_names, robot.neutral(), strict=True))
    assert q["swing"] > 0.0
    assert q["rotor"] == pytest.approx(np.sqrt(q["swing"]))
    nowhere = root | {"equation": "sqrt(swing)"}
    with pytest.raises(DescriptionError, match=r"'root'.*not finite where.*assembly"):
        load_robot(urdf, {"constraints": [nowhere]})


def test_all_clusters_are_reported_at_once():
    far = loops_of("chained_loops")["constraints"]
    for cut in far:
        cut["successor"]["xyz"] = [0.9, 0.0, 0.03]
    message = refusal("chained_loops", constraints=far)
    assert "'pin'" in message
    assert "'far_pin'" in message


def test_a_loop_from_the_base_to_the_world_needs_a_described_floating_joint():
    floating = (
        "<joint name='free' type='floating'><parent link='world'/><child link='trunk'/></joint>"
    )
    urdf = (
        f"<robot name='r'><link name='world'/>{_link('trunk')}{_link('arm')}{floating}"
        f"{_hinge('shoulder', 'trunk', 'arm', 0.1)}</robot>"
    )
    ends = {"predecessor": {"link": "world"}, "successor": {"link": "arm"}}
    loops = {"constraints": [{"name": "anchor", "type": "spherical"} | ends]}
    assert load_robot(urdf, loops).ny == 4
    with pytest.raises(DescriptionError, match=r"'anchor'.*world"):
        load_robot(urdf, loops, floating_base=True)


def test_a_singular_guess_is_warned_of():
    """A parallelogram flat on the ground can go either way."""
    robot = load_robot(*PARALLELOGRAM)
    assert robot.ny == 1
    assert any("singular" in warning for warning in robot.warnings)
    guided = load_robot(
        PARALLELOGRAM[0], PARALLELOGRAM[1] | {"assembly": {"a": 0.5, "b": -0.5, "c": 0.5}}
    )
    assert not guided.warnings


@pytest.mark.parametrize(("away", "is_near"), [(1e-5, True), (0.5, False)])
def test_an_assembly_near_a_singular_position_is_warned_of(away, is_near):
    """The row of cos(a) = cos(c) vanishes at zero, where a = c and a = -c meet."""
    loops = {
        "constraints": [{"name": "fork", "type": "expression", "equation": "cos(a) - cos(c)"}],
        "assembly": {"a": away, "c": away},
    }
    warned = [w for w in load_robot(PARALLELOGRAM[0], loops).warnings if "nearly singular" in w]
    assert bool(warned) == is_near
    assert all("'fork'" in warning for warning in warned)


def _link(name: str) -> str:
    return (
        f"<link name='{name}'><inertial><mass value='1'/><inertia ixx='.1' iyy='.1' izz='.1'"
        " ixy='0' ixz='0' iyz='0'/></inertial></link>"
    )


def _hinge(name: str, parent: str, child: str, x: float) -> str:
    return (
        f"<joint name='{name}' type='continuous'><parent link='{parent}'/><child link='{child}'/>"
        f"<origin xyz='{x} 0 0'/><axis xyz='0 0 1'/></joint>"
    )


PARALLELOGRAM = (
    "<robot name='parallelogram'><link name='base'/>"
    + "".join(map(_link, ("left", "top", "right")))
    + _hinge("a", "base", "left", 0.0)
    + _hinge("b", "left", "top", 0.2)
    + _hinge("c", "base", "right", 0.3)
    + "</robot>",
    {
        "constraints": [
            {
                "name": "pin",
                "type": "revolute",
                "predecessor": {"link": "top", "xyz": [0.3, 0.0, 0.0]},
                "successor": {"link": "right", "xyz": [0.2, 0.0, 0.0]},
                "axis": [0, 0, 1],
            }
        ]
    },
)


def _rounded_four_bar(angle):
    """A planar four-bar whose plane is turned by an angle, once as written and once by pi/2."""
    inertial = (
        '<inertial><mass value="1"/><origin xyz="0.1 0 0"/>'
        '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    joint = (
        '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{0}_link"/>'
        '<origin xyz="{2}" rpy="{3} 0 0"/><axis xyz="0 0 1"/></joint>'
        f'<link name="{{0}}_link">{inertial}</link>'
    )
    return (
        '<robot name="rounded"><link name="base"/>'
        + joint.format("crank", "base", "0 0 0", angle)
        + joint.format("coupler", "crank_link", "0.2 0 0", 0)
        + joint.format("rocker", "base", "0.5 0 0", np.pi / 2)
        + '<loop name="pin" type="revolute">'
        '<predecessor link="coupler_link"><origin xyz="0.4 0 0"/></predecessor>'
        '<successor link="rocker_link"><origin xyz="0.3 0 0"/></successor>'
        '<axis xyz="0 0 1"/></loop></robot>'
    )


@pytest.mark.parametrize("angle", [1.5708, 1.570796, 1.57079632679])
def test_rounded_planar_loops_assemble(angle):
    assembly = {"crank": 1.0, "coupler": -0.5, "rocker": 1.5}
    exact = load_robot(_rounded_four_bar(np.pi / 2), {"assembly": assembly})
    robot = load_robot(_rounded_four_bar(angle), {"assembly": assembly})
    assert robot.ny == 1
    assert any("rounding" in warning for warning in robot.warnings) == (angle != 1.57079632679)
    q = exact.close({"crank": 1.2})
    np.testing.assert_allclose(robot.close({"crank": 1.2}), q, atol=1e-4)  # by rounding, 4e-6
    tau = [r.inverse_dynamics(r.close({"crank": 1.2}), [0.5], [1.0]) for r in (exact, robot)]
    np.testing.assert_allclose(tau[1], tau[0], rtol=1e-3)


@pytest.mark.parametrize(
    "equation",
    [
        "j0 - 1e308*1e308*j1", "j0 - j1*1e308*10", "log(0)*j0 - j1", "j0 - sqrt(-1)*j1",
        "exp(1e9)*j0 - j1", "1e308*j0 - 1e308*j1", "(1e308*j0)^2 - j1", "1e-200*j0 - 1e-200*j1",
    ],
)  # fmt: skip
def test_constants_beyond_numbers_are_named(equation):
    """They ended in a LinAlgError, or the constraint silently counted for nothing."""
    joint = '<joint name="j{0}" type="continuous"><parent link="base"/><child link="l{0}"/></joint>'
    link = '<link name="l{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/>'
    parts = [joint.format(k) + link.format(k) + "</inertial></link>" for k in range(2)]
    urdf = f'<robot name="r"><link name="base"/>{"".join(parts)}</robot>'
    wild = {"name": "wild", "type": "expression", "equation": equation}
    with pytest.raises(DescriptionError, match=r"'wild'.*derivatives.*correct the constants"):
        load_robot(urdf, {"constraints": [wild]})
    tame = wild | {"equation": "1e6*j0 - 1e-6*j1 + log(2 + j1)"}
    assert load_robot(urdf, {"constraints": [tame]}).ny == 1
