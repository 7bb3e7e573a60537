"""Frames, chains and many-legged bodies for operational-space inertias, and how these grow."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from rbda_ros import Robot, load_robot
from rbda_ros.algorithms.contact_rows import ContactFrame

ALL = (0, 1, 2)
OFFSET = ((0.1, -0.2, 0.3), (0.4, -0.5, 0.6))


def frames_of(robot, count):
    """Links from the last one back to the root, every other one with an offset."""
    links = [link.name for link in robot.description.links]
    some = [links[int(i)] for i in np.linspace(len(links) - 1, 0, count)]
    return [(link, *OFFSET) if i % 2 else link for i, link in enumerate(some)]


def dense(oracle, q, G, frames, rows):
    """J H^-1 J' of the projected spanning tree."""
    J = np.vstack([(oracle.jacobian(q, frame) @ G)[:rows] for frame in frames])
    return J @ np.linalg.solve(G.T @ oracle.mass_matrix(q) @ G, J.T)


def chain(links: int) -> Robot:
    """A chain of revolute joints about x, y and z in turn."""
    parts = ['<link name="l0"/>']
    for i in range(1, links + 1):
        parts += [_link(f"l{i}"), _joint(f"l{i - 1}", f"l{i}", i, "0.05 0 0.2")]
    return load_robot(f'<robot name="chain">{"".join(parts)}</robot>')


def many_legs(legs: int) -> tuple[Robot, list[ContactFrame]]:
    """A floating body on legs of three joints, and a contact at each foot."""
    parts = [_link("base")]
    for leg in range(legs):
        parent = "base"
        for i in range(3):
            name = f"leg{leg}_{i}"
            parts += [_link(name), _joint(parent, name, i, f"0 {0.1 * (i == 0)} -0.2")]
            parent = name
    robot = load_robot(f'<robot name="legs">{"".join(parts)}</robot>', floating_base=True)
    feet = [robot.tree.spanning.links[f"leg{leg}_2"].body for leg in range(legs)]
    return robot, [ContactFrame(foot, (0.0, 0.0, -0.2), ALL, ()) for foot in feet]


def _link(name: str) -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="0.01 0.02 0.1"/><mass value="1"/>'
        '<inertia ixx="0.01" iyy="0.02" izz="0.015" ixy="0.001" ixz="0" iyz="0"/></inertial></link>'
    )


def _joint(parent: str, child: str, i: int, xyz: str) -> str:
    axis = ("1 0 0", "0 1 0", "0 0 1")[i % 3]
    return (
        f'<joint name="j_{child}" type="continuous"><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{xyz}"/><axis xyz="{axis}"/></joint>'
    )


def growth_in_depth_and_rows(algorithm):
    """Assert the cost of m rows at the tip of d links: linear in d, not m d; quadratic in m."""

    def count(links, frames):
        robot = chain(links)
        q = ca.SX.sym("q", robot.nq)
        at = [robot.body_frame((f"l{links}", (0.1 * i, 0.2, 0.3)))[1] for i in range(frames)]
        inverse = ca.SX(algorithm(robot.tree, q, at))
        return ca.Function("f", [q], ca.cse([inverse])).n_instructions()

    few, many = ([count(links, m) for links in (15, 21, 27)] for m in (3, 9))
    a_link = (few[1] - few[0]) / 6
    assert (few[2] - few[1]) / 6 == pytest.approx(a_link, rel=0.02)
    assert (many[2] - many[1]) / 6 == pytest.approx(a_link, rel=0.02)
    second = np.diff([count(15, m) for m in (3, 5, 7, 9)], 2)
    assert second[0] > 0
    np.testing.assert_allclose(second, second[0], rtol=0.05)  # a cubic's would grow
