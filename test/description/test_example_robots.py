"""Real robots: everything that Pinocchio reads is read, with the same names, masses and frames."""

from __future__ import annotations

import re
from importlib.metadata import files
from pathlib import Path

import numpy as np
import pytest

from rbda_ros.description import read_description
from rbda_ros.description.link_tree import Tree
from rbda_ros.description.model import Coupling, CutJoint

pin = pytest.importorskip("pinocchio")

SHARED_ROBOTS = sorted((Path(__file__).parents[3] / "shared" / "robots").glob("*.urdf"))


def example_urdfs() -> list[Path]:
    """All URDFs of example-robot-data; empty where it is not installed."""
    try:
        found = files("example-robot-data") or ()
    except ModuleNotFoundError:
        return []
    return sorted(Path(str(file.locate())) for file in found if file.suffix == ".urdf")


@pytest.mark.parametrize("path", example_urdfs(), ids=lambda path: path.stem)
def test_reads_example_robots_as_pinocchio_does(path: Path):
    try:
        model = pin.buildModelFromUrdf(str(path))
    except ValueError:
        pytest.skip("Pinocchio does not read it either")
    description = read_description(path)
    moving = [joint for joint in description.joints if joint.type != "fixed"]
    assert sorted(joint.name for joint in moving) == sorted(model.names[1:])

    tree = Tree(description.joints)
    body_of = tree.body_of(link.name for link in description.links)
    mass = dict.fromkeys(body_of.values(), 0.0)
    for link in description.links:
        mass[body_of[link.name]] += 0.0 if link.inertia is None else link.inertia.mass
    for joint in moving:
        expected = model.inertias[model.getJointId(joint.name)].mass
        assert mass[body_of[joint.child]] == pytest.approx(expected, abs=1e-12)

    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    for link in description.links:
        expected = data.oMf[model.getFrameId(link.name, pin.FrameType.BODY)].rotation
        np.testing.assert_allclose(tree.rotation(link.name), expected, atol=1e-9)


@pytest.mark.skipif(not SHARED_ROBOTS, reason="../shared/robots is not there")
@pytest.mark.parametrize("path", SHARED_ROBOTS, ids=lambda path: path.stem)
def test_reads_urdf_plus_robots(path: Path):
    description = read_description(path)
    text = path.read_text()
    cuts = [item for item in description.constraints if isinstance(item, CutJoint)]
    couplings = [item for item in description.constraints if isinstance(item, Coupling)]
    uncommented = re.sub(r"(?s)<!--.*?-->", "", text)
    assert len(cuts) == uncommented.count("<loop ")
    assert len(couplings) == uncommented.count("<coupling ")
