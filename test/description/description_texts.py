"""Small robots as text, and a short way to read them."""

from __future__ import annotations

from typing import Any

import pytest

from rbda_ros.description import read_description
from rbda_ros.description.model import Constraint, Joint, Link, RobotDescription
from rbda_ros.errors import DescriptionError, Problem

INERTIAL = (
    "<inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/>"
    "</inertial>"
)


def link(name: str, inside: str = INERTIAL) -> str:
    return f"<link name='{name}'>{inside}</link>"


def joint(name: str, parent: str, child: str, inside: str = "", type: str = "continuous") -> str:
    ends = f"<parent link='{parent}'/><child link='{child}'/>"
    return f"<joint name='{name}' type='{type}'>{ends}{inside}</joint>"


def robot(*parts: str) -> str:
    return f"<robot name='test'>{''.join(parts)}</robot>"


# base -hip-> thigh -knee-> shank, base -crank-> arm, and a sensor fixed to the shank.
LEG = (
    link("base"),
    link("thigh"),
    link("shank"),
    link("arm"),
    link("sensor"),
    joint("hip", "base", "thigh", "<axis xyz='0 1 0'/>"),
    joint("knee", "thigh", "shank", "<axis xyz='0 1 0'/><origin rpy='0 0 1.5707963267948966'/>"),
    joint("crank", "base", "arm", "<axis xyz='0 1 0'/>"),
    joint("mount", "shank", "sensor", type="fixed"),
)


def leg(*more: str, loops: Any = None) -> RobotDescription:
    return read_description(robot(*LEG, *more), loops)


def joint_named(description: RobotDescription, name: str) -> Joint:
    return next(item for item in description.joints if item.name == name)


def link_named(description: RobotDescription, name: str) -> Link:
    return next(item for item in description.links if item.name == name)


def constraint_named(description: RobotDescription, name: str) -> Constraint:
    return next(item for item in description.constraints if item.name == name)


def problems(urdf: Any, loops: Any = None) -> tuple[Problem, ...]:
    """The problem of a description that must be rejected."""
    with pytest.raises(DescriptionError) as caught:
        read_description(urdf, loops)
    assert all(p.element and p.reason and p.remedy for p in caught.value.problems)
    return caught.value.problems


def leg_problems(*more: str, loops: Any = None) -> tuple[Problem, ...]:
    return problems(robot(*LEG, *more), loops)


def only_problem(found: tuple[Problem, ...]) -> str:
    """The one problem, as the user reads it."""
    assert len(found) == 1, [str(problem) for problem in found]
    return str(found[0])
