"""A node whose machine code went wrong says so, and goes on without it."""

import hashlib
import time

import numpy as np
import pytest
import rclpy
from conversation import Conversation
from damage import damage
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from ros_graph import PATIENCE, own_domain

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file
from rbda_ros.node.dynamics_node import DynamicsNode

LEG = share_file("config/robots/demo_leg.urdf").read_text()
LOOPS = str(share_file("config/robots/demo_leg_loops.yaml"))


@pytest.fixture
def node():
    """A node in this process, active, that checks itself often; and what spins it."""
    with own_domain() as domain:
        rclpy.init(domain_id=domain)
        values = {"robot_description": LEG, "self_check_period": 0.05}
        overrides = [Parameter(name, value=value) for name, value in values.items()]
        node = DynamicsNode(parameter_overrides=overrides)
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        executor.create_task(node.start)

        def until(condition):
            end = time.monotonic() + PATIENCE
            while not condition():
                assert time.monotonic() < end
                executor.spin_once(0.05)

        until(lambda: node.active)
        yield node, until
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown()


def test_the_virtual_machine_takes_over(node):
    node, until = node
    robot = node.robot
    kernel = robot.kernel("inverse_dynamics")
    assert kernel.compile()
    checks = node.self_check.checks
    until(lambda: node.self_check.checks > checks + 2)
    assert not node.self_check.failed

    damage(kernel)
    until(lambda: node.self_check.failed)
    assert "inverse_dynamics" in node.self_check.failed
    assert node.robot is not robot
    assert not any(kernel.compiled for kernel in node.robot.traced_kernels())
    q, yd, ydd = robot.tree.home, np.full(robot.ny, 0.3), np.full(robot.ny, 2.0)
    expected = load_robot(LEG).inverse_dynamics(q, yd, ydd)
    np.testing.assert_allclose(node.robot.inverse_dynamics(q, yd, ydd), expected, 1e-9, 1e-9)
    until(lambda: node.diagnostics.level == DiagnosticStatus.ERROR)
    assert node.diagnostics.message.startswith("self-check")


def test_a_node_executes_no_machine_code_that_was_planted(graph):
    """Files that an attacker signed as the files of before were, each in the place of another."""
    folder = graph.folder / "cache"
    environment = {"RBDA_ROS_CACHE": str(folder)}
    names, y, still = (
        ("hip_abduction", "hip_flexion", "knee", "ankle"),
        [0.1, 0.3, 0.9, -0.2],
        [0.0] * 4,
    )

    def efforts():
        node = graph.serve(
            robot_description=LEG,
            loop_constraints=LOOPS,
            self_check_period=0.2,
            environment=environment,
        )
        client = graph.client()
        client.until_active()
        found = Conversation(client).answer_to(names, y, still)
        client.spin(0.5)
        assert node.stop() == 0
        return list(found.effort), node.log

    expected, _ = efforts()
    paths = sorted(folder.glob("*.kernel"))
    bodies = [path.read_bytes()[32:] for path in paths]
    assert len(paths) > 5
    for path, body in zip(paths, bodies[1:] + bodies[:1], strict=True):
        path.write_bytes(hashlib.sha256(body).digest() + body)
    found, log = efforts()
    np.testing.assert_allclose(found, expected, 1e-9, 1e-9)
    assert "is damaged, or not ours: it is made anew" in log
    assert "self-check" not in log
