"""The choice between embedding a loop and closing it by its forces."""

import re

import pytest
import yaml

from benchmark.cassie import cassie
from benchmark.parallel_chains import parallel_chains
from rbda_ros import DescriptionError, load_robot


def instructions(urdf, loops, method):
    robot = load_robot(urdf, loops | {"method": method})
    return robot.kernel("forward_dynamics").instructions, robot.loop_methods


@pytest.mark.parametrize("kind", ["transmission", "rod"])
def test_auto_takes_the_shorter_program_and_crosses_once(kind):
    """Chignoli 2024, Fig. 10: embedding wins for local loops, forces for large ones."""
    chosen = []
    for loop in (1, 3, 5):
        urdf = parallel_chains(5, loop, kind)
        embedded, _ = instructions(urdf, {}, "embed")
        by_forces, _ = instructions(urdf, {}, "proximal")
        automatic, methods = instructions(urdf, {}, "auto")
        assert automatic == min(embedded, by_forces)
        assert methods.trials["loop"].embedded == embedded
        assert methods.trials["loop"].by_forces == by_forces
        chosen.append(bool(methods.by_forces))
    assert not chosen[0]
    assert chosen[-1]
    assert chosen == sorted(chosen)


def test_large_clusters_are_not_even_tried():
    _, methods = instructions(parallel_chains(13, 13, "transmission"), {}, "auto")
    assert methods.by_forces == {"loop"}
    assert methods.trials["loop"].embedded is None


def test_a_robot_may_have_both():
    """Cassie's plantar rods are local loops; its Achilles rods go round the whole shin."""
    urdf, loops = cassie()
    counts = {method: instructions(urdf, loops, method) for method in ("embed", "proximal", "auto")}
    automatic, methods = counts["auto"]
    assert methods.by_forces == {"left-pitch-rod-joint", "right-pitch-rod-joint"}
    assert automatic < 0.95 * min(counts["embed"][0], counts["proximal"][0])


def test_loops_are_embedded_unless_told_otherwise():
    urdf = parallel_chains(5, 5, "rod")
    assert not load_robot(urdf).loop_methods.by_forces
    assert not load_robot(urdf, {"method": "embed"}).loop_methods.trials


LINK = (
    '<link name="{}"><inertial><mass value="1"/><origin xyz="0.1 0 0"/><inertia ixx="0.01"'
    ' ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>'
)
HINGE = (
    '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/>'
    '<origin xyz="{3} 0 0"/><axis xyz="0 0 1"/></joint>'
)


CHAIN = (("a", "world", "A", 0.0), ("b", "A", "B", 0.2), ("c", "B", "C", 0.3), ("d", "C", "D", 0.3))


def strut_robot(method, five_bar, **more):
    """A chain whose first joint a strut holds, alone or inside a five-bar."""
    links = "".join(LINK.format(name) for name in "ABCD")
    hinges = "".join(HINGE.format(*joint) for joint in CHAIN)
    urdf = f'<robot name="strut"><link name="world"/>{links}{hinges}</robot>'
    pin = {"name": "pin", "type": "revolute", "axis": [0, 0, 1], "method": method}
    pin |= {"predecessor": {"link": "world", "xyz": [0.4, 0, 0]}}
    pin |= {"successor": {"link": "D", "xyz": [0.25, 0, 0]}}
    strut = {"name": "strut", "type": "distance", "method": method, "length": 0.1708}
    strut |= {"predecessor": {"link": "world", "xyz": [0.1, 0.2, 0]}}
    strut |= {"successor": {"link": "A", "xyz": [0.1, 0, 0]}}
    loops = {"constraints": [pin, strut] if five_bar else [strut]} | more
    return load_robot(urdf, loops | {"assembly": {"a": 0.3, "b": 1.0, "c": -1.5, "d": -1.0}})


@pytest.mark.parametrize("five_bar", [False, True])
@pytest.mark.parametrize("method", ["embed", "auto", "proximal"])
def test_a_strut_that_locks_a_joint_is_one_mistake_everywhere(method, five_bar):
    with pytest.raises(DescriptionError, match=r"'strut': they leave no freedom to a;") as refused:
        strut_robot(method, five_bar)
    remedy = re.search(r"'joints: (.*)'", str(refused.value))
    fixed = strut_robot(method, five_bar, joints=yaml.safe_load(remedy.group(1)))
    assert any("'strut': its links are fixed" in warning for warning in fixed.warnings)
    assert fixed.ny == (1 if five_bar else 3)
