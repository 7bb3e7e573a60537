"""The choice between embedding a loop and closing it by its forces."""

import numpy as np
import pytest

from benchmark.cassie import cassie
from benchmark.parallel_chains import parallel_chains
from rbda_ros import load_robot


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


def test_auto_goes_round_a_strut_that_locks_a_joint():
    """A five-bar whose first joint a strut holds: embedded alone, the strut leaves no freedom."""
    chain = [("a", "world", "A", 0.0), ("b", "A", "B", 0.2), ("c", "B", "C", 0.3)]
    chain.append(("d", "C", "D", 0.3))
    links = "".join(LINK.format(name) for name in "ABCD")
    hinges = "".join(HINGE.format(*joint) for joint in chain)
    urdf = f'<robot name="strut"><link name="world"/>{links}{hinges}</robot>'

    def load(method):
        pin = {"name": "pin", "type": "revolute", "axis": [0, 0, 1], "method": method}
        pin |= {"predecessor": {"link": "world", "xyz": [0.4, 0, 0]}}
        pin |= {"successor": {"link": "D", "xyz": [0.25, 0, 0]}}
        strut = {"name": "strut", "type": "distance", "method": method}
        strut |= {"predecessor": {"link": "world", "xyz": [0.1, 0.2, 0]}}
        strut |= {"successor": {"link": "A", "xyz": [0.1, 0, 0]}}
        assembly = {"a": 0.3, "b": 1.0, "c": -1.5, "d": -1.0}
        return load_robot(urdf, {"constraints": [pin, strut], "assembly": assembly})

    embedded, auto = load("embed"), load("auto")
    assert any("leave no freedom to a" in warning for warning in embedded.warnings)
    q, tau = embedded.tree.home, np.ones(1)
    expected = embedded.forward_dynamics(q, [0.5], tau)
    np.testing.assert_allclose(auto.forward_dynamics(q, [0.5], tau), expected, rtol=1e-9)
