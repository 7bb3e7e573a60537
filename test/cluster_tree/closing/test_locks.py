"""Joints that loops lock: a warning in a loop that moves, a mistake in one that does not."""

from __future__ import annotations

import numpy as np
import pytest

from rbda_ros import DescriptionError, load_robot

OF = (
    "<inertial><origin xyz='.1 0 0'/><mass value='1'/><inertia ixx='.01' iyy='.01' izz='.01'"
    " ixy='0' ixz='0' iyz='0'/></inertial>"
)
CHAIN = (  # joint, parent, x of its origin, axis; a planar four-bar, with a hinge across its plane
    ("a", "base", 0.0, "0 0 1"),
    ("b", "A", 0.1, "0 0 1"),
    ("across", "B", 0.1, "1 0 0"),
    ("c", "base", 0.3, "0 0 1"),
    ("swing", "base", 0.5, "0 1 0"),
)


def linkage(*without: str, **loops) -> tuple[str, dict]:
    names = [joint[0] for joint in CHAIN if joint[0] not in without]
    parts = ["<robot name='r'><link name='base'/>"]
    for name, parent, x, axis in CHAIN:
        if name in names:
            parts.append(
                f"<link name='{name.upper()}'>{OF}</link><joint name='{name}' type='continuous'>"
                f"<parent link='{parent}'/><child link='{name.upper()}'/>"
                f"<origin xyz='{x} 0 0'/><axis xyz='{axis}'/></joint>"
            )
    pin = {"name": "pin", "type": "revolute", "axis": [0, 0, 1]}
    pin |= {"predecessor": {"link": "ACROSS", "xyz": [0.18, 0, 0]}}
    pin |= {"successor": {"link": "C", "xyz": [0.22, 0, 0]}}
    assembly = {"a": 1.0, "b": -0.4, "c": 1.2}
    return "".join([*parts, "</robot>"]), {"constraints": [pin], "assembly": assembly} | loops


def test_a_locked_hinge_in_a_loop_that_moves_is_warned_of():
    robot = load_robot(*linkage())
    assert robot.ny == 2
    assert any("no freedom to across; the loop is cheaper" in w for w in robot.warnings)
    fixed = load_robot(*linkage(joints={"across": {"type": "fixed"}}))
    y, yd = [robot.independent_position(robot.tree.home), np.array([0.7, -0.2])]
    np.testing.assert_allclose(
        robot.forward_dynamics(y, yd, [0.3, 0.1]), fixed.forward_dynamics(y, yd, [0.3, 0.1])
    )


@pytest.mark.parametrize("without", [(), ("swing",)])
def test_a_loop_that_cannot_move_is_a_mistake_beside_others_too(without):
    """The pin's axis is not that of the other hinges."""
    urdf, loops = linkage(*without)
    loops["constraints"][0]["axis"] = [1, 0, 0]
    loops["assembly"] = {"a": np.pi / 2 - 0.3, "b": 0.3, "c": np.pi / 2}
    with pytest.raises(DescriptionError, match="'pin'"):
        load_robot(urdf, loops)


def test_cuts_that_fixed_joints_hold_are_left_out_or_refused():
    urdf, loops = linkage()
    robot = load_robot(urdf, loops)
    at = dict(zip(robot.joint_names, robot.tree.home, strict=True))
    held = {name: {"type": "fixed", "position": float(at[name])} for name in ("a", "b", "c")}
    held["across"] = {"type": "fixed"}
    fixed = load_robot(urdf, loops | {"joints": held})
    assert fixed.joint_names == ("swing",)
    assert any("'pin': its links are fixed" in warning for warning in fixed.warnings)
    held["c"] = {"type": "fixed", "position": 0.5}
    with pytest.raises(DescriptionError, match=r"'pin': its links are fixed to each other, 0\.\d+"):
        load_robot(urdf, loops | {"joints": held})


def test_only_hinges_and_slides_are_held_at_a_number():
    urdf = linkage()[0].replace("name='swing' type='continuous'", "name='swing' type='planar'")
    with pytest.raises(DescriptionError, match="not held at one number"):
        load_robot(urdf, {"joints": {"swing": {"type": "fixed", "position": 0.3}}})
