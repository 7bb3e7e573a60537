"""Assemblies on disk: to the last bit those that are made, and never trusted blindly."""

import numpy as np
import pytest
from mechanism_table import MECHANISMS

from rbda_ros import DescriptionError, load_robot
from rbda_ros.cluster_tree.clustering import ClusterAssembly
from rbda_ros.kernels import assembly_store, disk_cache
from rbda_ros.kernels.fingerprint import fingerprint

STORED = sorted(name for name, each in MECHANISMS.items() if each.loops is not None)
MANY = """<robot name="many"><link name="base"/>{}</robot>"""
LINK = (
    '<link name="l{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"'
    ' iyz="0"/></inertial></link><joint name="j{0}" type="continuous"><parent link="base"/>'
    '<child link="l{0}"/><axis xyz="0 0 1"/></joint>'
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "stored"
    monkeypatch.setenv("RBDA_ROS_CACHE", str(folder))
    monkeypatch.setattr(assembly_store, "FEWEST", 1)
    return folder


def stored(folder):
    return sorted(folder.glob("*.kernel"))


def loaded(name):
    mechanism = MECHANISMS[name]
    return load_robot(mechanism.urdf, mechanism.loops, floating_base=mechanism.floating_base)


def forbid_assembling(monkeypatch):
    def forbidden(members):
        raise AssertionError("it is there already")

    monkeypatch.setattr(ClusterAssembly, "assemble", forbidden)


@pytest.mark.parametrize("name", STORED)
def test_the_second_time_nothing_is_assembled_and_all_is_the_same(folder, monkeypatch, name):
    monkeypatch.setenv("RBDA_ROS_CACHE", "0")
    made = loaded(name)
    monkeypatch.setenv("RBDA_ROS_CACHE", str(folder))
    assert fingerprint(loaded(name).tree) == fingerprint(made.tree)
    forbid_assembling(monkeypatch)
    again = loaded(name)
    assert fingerprint(again.tree) == fingerprint(made.tree)
    assert again.warnings == made.warnings


def test_an_assembly_that_does_not_hold_is_made_anew(folder):
    made = loaded("four_bar")
    (path,) = stored(folder)
    facts, blobs = disk_cache.load(path.stem)
    home = np.frombuffer(blobs[1]) + 0.1
    all_of_them = facts["clusters"][0] | {"independent": list(range(home.size))}
    free = facts | {"clusters": [all_of_them]}
    for changed in ((facts, [blobs[0], home.tobytes()]), (free, blobs)):
        disk_cache.store(path.stem, *changed)
        again = loaded("four_bar")
        assert fingerprint(again.tree) == fingerprint(made.tree)
        assert disk_cache.load(path.stem) == (facts, blobs)


def test_another_robot_is_another_assembly_and_gravity_is_not_looked_at(folder):
    four_bar = MECHANISMS["four_bar"]
    load_robot(four_bar.urdf, four_bar.loops)
    load_robot(four_bar.urdf, four_bar.loops, gravity=(0.0, 0.0, -1.62))
    assert len(stored(folder)) == 1
    load_robot(four_bar.urdf, four_bar.loops, floating_base=True)
    assert len(stored(folder)) == 2


def test_refused_loops_are_refused_again_and_few_loops_are_not_stored(folder, monkeypatch):
    urdf = MANY.format("".join(LINK.format(i) for i in range(8)))

    def gears(count, offset=0.0):
        terms = [{f"j{2 * i}": 1.0, f"j{2 * i + 1}": -2.0} for i in range(count)]
        rows = [{"name": f"g{i}", "type": "coupling", "terms": t} for i, t in enumerate(terms)]
        again = {"name": "again", "type": "coupling", "terms": terms[0], "offset": offset}
        return {"constraints": [*rows, again]}

    said = set()
    for _ in range(2):
        with pytest.raises(DescriptionError, match="contradict") as refused:
            load_robot(urdf, gears(4, offset=1.0))
        said.add(str(refused.value))
    assert len(said) == 1 and not stored(folder)
    monkeypatch.undo()
    monkeypatch.setenv("RBDA_ROS_CACHE", str(folder))
    load_robot(urdf, gears(assembly_store.FEWEST - 1))
    assert not stored(folder)
    load_robot(urdf, gears(assembly_store.FEWEST))
    assert len(stored(folder)) == 1
