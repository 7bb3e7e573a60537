"""Files with identified parameters: loaded again, they have just these."""

import numpy as np
import pytest
from bag_maker import LEG, LOOPS
from identification_cases import case, drawn, measured

from rbda_ros import InputError, load_robot
from rbda_ros.recordings.identification import identify
from rbda_ros.recordings.identified_files import patched_loops, patched_urdf


@pytest.fixture(scope="module")
def found():
    robot, evidence, noise = case("demo_leg")
    rng = np.random.default_rng(11)
    return identify(
        robot, measured(evidence, drawn(robot, rng), 0.0, noise, rng), ("inertia", "friction")
    )


def test_the_patched_robot_has_the_identified_parameters(found):
    robot, _, _ = case("demo_leg")
    urdf = patched_urdf(LEG.read_text(), robot, found)
    loops = patched_loops(LOOPS.read_text(), found)
    patched = load_robot(urdf, loops).parameters()
    assert patched.names == found.parameters.names[: len(patched.names)]
    expected = np.maximum(found.fit.values[: len(patched.names)], -np.inf)
    for k, name in enumerate(patched.names):
        if name.endswith((".damping", ".friction")):
            expected[k] = max(0.0, expected[k])
    np.testing.assert_allclose(patched.values, expected, rtol=1e-9, atol=1e-12)
    assert "<visual" in urdf  # all else stays


def test_what_was_not_asked_for_stays(found):
    robot, evidence, noise = case("demo_leg")
    rng = np.random.default_rng(12)
    friction = identify(
        robot, measured(evidence, drawn(robot, rng), 0.0, noise, rng), ("friction",)
    )
    patched = load_robot(patched_urdf(LEG.read_text(), robot, friction), LOOPS).parameters()
    inertial = 10 * len(patched.bodies)
    np.testing.assert_array_equal(patched.values[:inertial], robot.parameters().values[:inertial])
    assert patched_loops(LOOPS.read_text(), friction) == LOOPS.read_text()


def test_refuses_what_is_no_urdf(found):
    robot, _, _ = case("demo_leg")
    with pytest.raises(InputError, match="rbda_ros convert"):
        patched_urdf("<mujoco/>", robot, found)
