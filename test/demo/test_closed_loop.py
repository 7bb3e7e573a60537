"""MuJoCo as the hardware: the exact model follows and finds forces, the open chain does not."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from rbda_ros.demo import closed_loop


def test_the_wanted_motion_is_its_own_derivative():
    h = 1e-5
    for t in (0.2, 0.7, 1.3, 2.0):
        (y0, v0, _), (_, v, a), (y1, v1, _) = (closed_loop.wanted(t + d) for d in (-h, 0.0, h))
        np.testing.assert_allclose((y1 - y0) / (2 * h), v, atol=1e-6)
        np.testing.assert_allclose((v1 - v0) / (2 * h), a, atol=1e-5)


def test_the_exact_model_has_at_most_a_third_of_the_error():
    exact = closed_loop.track("exact", closed_loop.exact, 2.2)
    chain = closed_loop.track("open chain", closed_loop.open_chain(reflected=False), 2.2)
    reflected = closed_loop.track("reflected", closed_loop.open_chain(reflected=True), 2.2)
    assert exact.rms < chain.rms / 3.0
    assert exact.rms < reflected.rms / 3.0


def tracked(graph, picture):
    """Errors [mrad] by model, as the command prints them."""
    program = graph.run("demo", "--mujoco", "--seconds", "2", "--picture", str(picture))
    assert program.process.wait(200.0) == 0, program.log
    return {
        line[:22].strip(): float(line[22:].split()[0])
        for line in program.log.splitlines()
        if line.endswith("mrad")
    }


def test_the_command_runs_the_node_beside_it(graph, tmp_path):
    """Real processes and topics: the node's error is that of the model in this process."""
    picture = tmp_path / "errors.svg"
    rows = tracked(graph, picture)
    assert rows["exact, by the node"] < rows["open chain"] / 10.0
    assert picture.read_text().lstrip().startswith("<?xml")


def test_a_known_force_is_found_to_two_percent():
    np.testing.assert_allclose(
        closed_loop.found_force(), closed_loop.FORCE, atol=0.02 * np.linalg.norm(closed_loop.FORCE)
    )


def test_the_open_chain_raises_a_false_alarm():
    with_loops, without = closed_loop.false_alarms()
    assert with_loops < 1.5  # [N m]
    assert without > 4.0 * with_loops
