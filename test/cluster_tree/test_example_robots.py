"""Every URDF that Pinocchio reads has the same freedom and mass here; run with -s for a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree
from pinocchio_oracle import example_robots

from rbda_ros import load_robot

ROBOTS = example_robots()
ROWS: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def table():
    """Print what was compared, once all robots are done."""
    yield
    head = f"{'robot':32} {'bodies':>6} {'nv':>4} {'ny':>4} {'Pinocchio':>9} {'mass [kg]':>10}"
    print("", head, *sorted(ROWS), sep="\n")


def pinocchio_freedom(urdf: Path, model: pin.Model) -> int:
    """nv with mimic joints; where Pinocchio cannot read them, nv without less their number."""
    try:
        return pin.buildModelFromUrdf(str(urdf), mimic=True).nv
    except ValueError:
        masters = [mimic.get("joint") for mimic in etree.parse(urdf).iter("mimic")]
        return model.nv - sum(model.existJointName(master) for master in masters)


@pytest.mark.parametrize("name", ROBOTS)
def test_freedom_and_mass_equal_pinocchio(name):
    robot = load_robot(ROBOTS[name])
    model = pin.buildModelFromUrdf(str(ROBOTS[name]))
    freedom = pinocchio_freedom(ROBOTS[name], model)
    # Pinocchio keeps the mass of what is fixed to the world in inertia 0; it moves in neither.
    mass = sum(inertia.mass for inertia in list(model.inertias)[1:])
    moving = len(robot.joint_names)
    ROWS.append(f"{name:32} {moving:6} {robot.nv:4} {robot.ny:4} {freedom:9} {robot.mass:10.3f}")
    assert robot.ny == freedom
    assert moving == model.njoints - 1
    np.testing.assert_allclose(robot.mass, mass, rtol=1e-12)
