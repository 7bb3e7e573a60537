"""Motions that move no mass are named at load."""

from __future__ import annotations

import pytest
from mechanism_table import MECHANISMS

from rbda_ros import load_robot

INERTIAL = (
    "<inertial><origin xyz='.1 0 0'/><mass value='1'/>"
    "<inertia ixx='.1' iyy='.1' izz='.1' ixy='0' ixz='0' iyz='0'/></inertial>"
)


def hinges(axis: str, between: str = "", loops=None, more: str = ""):
    return load_robot(
        "<robot name='coaxial'><link name='base'/><link name='middle'>" + between + "</link>"
        f"<link name='tip'>{INERTIAL}</link>"
        "<joint name='first' type='continuous'><parent link='base'/><child link='middle'/>"
        "<axis xyz='0 0 1'/></joint><joint name='second' type='continuous'>"
        f"<parent link='middle'/><child link='tip'/><axis xyz='{axis}'/></joint>{more}</robot>",
        loops,
    )


@pytest.mark.parametrize("axis", ["0 0 1", "0 0 -1"])
def test_coaxial_hinges_with_a_massless_link_between_them_are_named(axis):
    (warning,) = hinges(axis).warnings
    assert "first, second" in warning
    assert "no mass" in warning


def test_inertia_or_armature_or_another_axis_is_the_remedy():
    assert hinges("0 0 1", INERTIAL).warnings == ()
    assert hinges("0 0 1", loops={"joints": {"first": {"armature": 0.01}}}).warnings == ()
    assert hinges("0 1 0").warnings == ()


def test_they_are_named_beside_an_inertia_that_cannot_be():
    negative = INERTIAL.replace("izz='.1'", "izz='-.5'")
    wheel = f"<link name='wheel'>{negative}</link><joint name='third' type='continuous'>"
    wheel += "<parent link='base'/><child link='wheel'/><axis xyz='0 0 1'/></joint>"
    warnings = hinges("0 0 1", more=wheel).warnings
    assert any("first, second: moving them together" in warning for warning in warnings)
    assert not any("joints :" in warning for warning in warnings)


def test_they_are_named_inside_a_loop_too():
    """A four-bar whose pin is two hinges on one axis: the massless link between them spins."""

    def bar(name: str, parent: str, x: float, inertial: str = INERTIAL) -> str:
        return (
            f"<link name='{name}'>{inertial}</link><joint name='{name}' type='continuous'>"
            f"<parent link='{parent}'/><child link='{name}'/><origin xyz='{x} 0 0'/>"
            "<axis xyz='0 0 1'/></joint>"
        )

    def four_bar(between: str) -> tuple[str, ...]:
        pin = {"name": "pin", "type": "revolute", "axis": [0, 0, 1]}
        pin |= {"predecessor": {"link": "coupler", "xyz": [0.3, 0, 0]}}
        pin |= {"successor": {"link": "rocker", "xyz": [0.2, 0, 0]}}
        bars = bar("crank", "base", 0.0) + bar("middle", "crank", 0.1, between)
        bars += bar("coupler", "middle", 0.0) + bar("rocker", "base", 0.3)
        assembly = {"crank": 1.0, "middle": -0.5, "rocker": 1.2}
        return load_robot(
            f"<robot name='r'><link name='base'/>{bars}</robot>",
            {"constraints": [pin], "assembly": assembly, "idle_freedoms": {"middle": "free"}},
        ).warnings

    (warning,) = four_bar("")
    assert "middle, coupler: moving them together moves no mass" in warning
    assert four_bar(INERTIAL) == ()


def test_sound_mechanisms_have_no_such_warning():
    for mechanism in MECHANISMS.values():
        assert not any("no mass, so" in warning for warning in mechanism.tree().warnings)
