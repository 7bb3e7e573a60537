"""Motions that move no mass are named at load."""

from __future__ import annotations

import pytest
from mechanism_table import MECHANISMS

from rbda_ros import load_robot

INERTIAL = (
    "<inertial><origin xyz='.1 0 0'/><mass value='1'/>"
    "<inertia ixx='.1' iyy='.1' izz='.1' ixy='0' ixz='0' iyz='0'/></inertial>"
)


def hinges(axis: str, between: str = "", loops=None):
    return load_robot(
        "<robot name='coaxial'><link name='base'/><link name='middle'>" + between + "</link>"
        f"<link name='tip'>{INERTIAL}</link>"
        "<joint name='first' type='continuous'><parent link='base'/><child link='middle'/>"
        "<axis xyz='0 0 1'/></joint><joint name='second' type='continuous'>"
        f"<parent link='middle'/><child link='tip'/><axis xyz='{axis}'/></joint></robot>",
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


def test_sound_mechanisms_have_no_such_warning():
    for mechanism in MECHANISMS.values():
        assert not any("no mass, so" in warning for warning in mechanism.tree().warnings)
