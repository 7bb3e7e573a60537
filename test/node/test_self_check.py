"""A node whose machine code went wrong says so, and goes on without it."""

import time

import numpy as np
import pytest
import rclpy
from damage import damage
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from ros_graph import PATIENCE, own_domain

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file
from rbda_ros.node.dynamics_node import DynamicsNode

LEG = share_file("config/robots/demo_leg.urdf").read_text()


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
