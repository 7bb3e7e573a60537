"""The choice between embedding a loop and closing it by its forces."""

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
