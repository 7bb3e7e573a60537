"""The serial tree of a robot with loops: inertia, limits, and the table of W."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rbda_ros import DescriptionError, cli, load_robot
from rbda_ros.exports import serial_tree

COOKBOOK = Path(__file__).parents[2] / "docs" / "cookbook"


def cookbook(name):
    return load_robot(COOKBOOK / f"{name}.urdf", COOKBOOK / f"{name}.yaml")


@pytest.fixture(scope="module")
def ankle():
    robot = cookbook("parallel_ankle")
    return robot, serial_tree(robot)


def test_a_gear_is_armature():
    """Its reflected inertia is the same everywhere: the tree has the same dynamics."""
    robot = cookbook("gear")
    tree = serial_tree(robot).robot
    rng = np.random.default_rng(0)
    for _ in range(5):
        y, yd, tau = rng.uniform(-1.4, 1.4, 1), rng.normal(size=1), rng.normal(size=1)
        ydd = robot.forward_dynamics(robot.close(y), yd, tau)
        np.testing.assert_allclose(tree.forward_dynamics(y, yd, tau), ydd, rtol=1e-12)


def test_the_table_has_the_motors_rates_and_limits(ankle):
    robot, serial = ankle
    table, names = serial.table, robot.actuated_joint_names
    assert table["joints_0"].tolist() == ["ankle_pitch", "ankle_roll"]
    assert table["motors_0"].tolist() == list(names)
    places = [robot.coordinates.scalar_positions[name] for name in names]
    limits = robot.limits.effort[list(robot.actuated_coordinates)]
    closed = np.flatnonzero(~np.isnan(table["torque_0"][:, 0]))
    assert len(closed) > 100
    for i in closed[:: len(closed) // 7]:
        y, W, h = table["positions_0"][i], table["W_0"][i], 1e-5
        for j, unit in enumerate(np.eye(2)):
            ends = [robot.close(y + s * h * unit)[places] for s in (1.0, -1.0)]
            np.testing.assert_allclose(W[:, j], (ends[0] - ends[1]) / (2 * h), atol=1e-6)
            efforts = np.linalg.solve(W.T, table["torque_0"][i, j] * unit)
            assert np.abs(efforts / limits).max() == pytest.approx(1.0, abs=1e-9)


def test_the_tree_keeps_the_mass_and_the_least_limits(ankle):
    robot, serial = ankle
    tree, table = serial.robot, serial.table
    assert tree.description.constraints == ()
    mass = [sum(x.inertia.mass for x in r.description.links if x.inertia) for r in (robot, tree)]
    assert mass[0] == mass[1]
    for joint in tree.description.joints:
        if joint.type != "fixed":
            column = table["joints_0"].tolist().index(joint.name)
            own = next(each.limits for each in robot.description.joints if each.name == joint.name)
            least = (
                np.nanmin(table["torque_0"][:, column]),
                np.nanmin(table["velocity_0"][:, column]),
            )
            assert joint.limits.effort == min(own.effort, least[0])
            assert joint.limits.velocity == min(own.velocity, least[1])
            assert joint.armature == pytest.approx(np.nanmean(table["inertia_0"][:, column]))
    y = np.zeros(2)
    added = np.diag(robot.mass_matrix(robot.close(y)) - tree.mass_matrix(y))
    assert np.abs(added).max() < 0.1 * np.diag(robot.mass_matrix(robot.close(y))).max()


def test_too_much_inertia_is_said():
    assert "armature cannot be negative" in serial_tree(cookbook("four_bar")).notes[0]


def test_joints_behind_dependent_ones_are_rejected():
    robot = cookbook("four_bar").with_independent_joints(["coupler"])
    with pytest.raises(DescriptionError, match="which follows from the loops"):
        serial_tree(robot)


@pytest.mark.parametrize("ending", ["urdf", "xml"])
def test_command_writes_the_tree_and_the_table(tmp_path, capsys, ending):
    output = tmp_path / f"gear.{ending}"
    files = [str(COOKBOOK / "gear.urdf"), "--loops", str(COOKBOOK / "gear.yaml")]
    assert cli.main(["convert", *files, "--serial", "--balance-inertia", "-o", str(output)]) == 0
    assert "elbow, 0.05" in capsys.readouterr().out
    with np.load(tmp_path / "gear_actuation.npz", allow_pickle=False) as table:
        assert table["motors_0"].tolist() == ["elbow_rotor"]
    loops = None if ending == "xml" else tmp_path / "gear_loops.yaml"
    tree, robot = load_robot(output, loops), cookbook("gear")
    np.testing.assert_allclose(
        tree.mass_matrix(np.zeros(1)), robot.mass_matrix(robot.neutral()), rtol=1e-6
    )
