"""The node in a process of somebody else's, and under a lifecycle manager."""

from pathlib import Path

import pytest
from lifecycle_msgs.msg import Transition
from rbda_ros.msg import State
from rbda_ros.srv import MassMatrix, OperationalSpaceInertia
from rcl_interfaces.srv import GetParameters
from sensor_msgs.msg import JointState
from std_msgs.msg import UInt32

from rbda_ros.demo.resources import share_file

URDF = str(share_file("config/robots/demo_leg.urdf"))
LOOPS = str(share_file("config/robots/demo_leg_loops.yaml"))
NAMES, Y = ["hip_abduction", "hip_flexion", "knee", "ankle"], [0.1, 0.2, 0.9, 0.1]
COMPOSED = """
import pathlib, sys
import rclpy, rclpy.executors
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import UInt32
from rbda_ros.node.dynamics_node import DynamicsNode

kind, urdf, loops = sys.argv[1:]
rclpy.init()
executor = getattr(rclpy.executors, kind)()
neighbour, ticks = Node("neighbour"), 0
publisher = neighbour.create_publisher(UInt32, "ticks", 10)

def tick():
    global ticks
    ticks += 1
    publisher.publish(UInt32(data=ticks))

neighbour.create_timer(0.02, tick)
node = DynamicsNode(parameter_overrides=[
    Parameter("robot_description", value=pathlib.Path(urdf).read_text()),
    Parameter("loop_constraints", value=loops),
])
executor.add_node(node)
executor.add_node(neighbour)
node.start()
try:
    executor.spin()
except (KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
    pass
finally:
    node.destroy_node()
    neighbour.destroy_node()
    rclpy.try_shutdown()
"""


@pytest.mark.parametrize(
    "executor",
    ["SingleThreadedExecutor", pytest.param("MultiThreadedExecutor", marks=pytest.mark.nightly)],
)
def test_shares_a_process_and_an_executor_with_another_node(graph, executor):
    """Efforts, quick and slow services, and the neighbour's timer all go on."""
    program = graph._start("-c", COMPOSED, executor, URDF, LOOPS)
    client = graph.client()
    client.until_active()
    ticks, efforts = client.listen(UInt32, "ticks"), client.listen(JointState, "~/feedforward")
    states = client.publisher(JointState, "joint_states")

    def answered():
        states.publish(client.joint_states(NAMES, Y, [0.0] * 4))
        client.spin(0.02)
        return len(efforts) > 20

    client.until(answered)
    request = OperationalSpaceInertia.Request(frames=["foot"], state=State(position=Y))
    answer = client.call(OperationalSpaceInertia, "~/operational_space_inertia", request)
    assert answer.success, answer.message
    quick = MassMatrix.Request(state=State(position=Y))
    assert client.call(MassMatrix, "~/mass_matrix", quick).success
    before = len(ticks)
    client.until(lambda: len(ticks) > before + 10)
    assert program.stop() == 0
    assert "Traceback" not in program.log


def test_a_lifecycle_manager_without_bonds(graph):
    """The calls of nav2's lifecycle_manager with bond_timeout 0, in its order.

    The manager itself needs rclcpp, which no wheel has; its calls are those of these services.
    """
    graph.serve(robot_description=Path(URDF).read_text(), loop_constraints=LOOPS, autostart=False)
    client = graph.client()

    def change(transition, then):
        assert client.change_state(transition)
        assert client.state == then

    def startup():
        assert client.state == "unconfigured"
        change(Transition.TRANSITION_CONFIGURE, "inactive")
        change(Transition.TRANSITION_ACTIVATE, "active")

    startup()
    answer = client.call(MassMatrix, "~/mass_matrix", MassMatrix.Request(state=State(position=Y)))
    assert answer.success, answer.message
    change(Transition.TRANSITION_DEACTIVATE, "inactive")  # pause
    assert not client.call(
        MassMatrix, "~/mass_matrix", MassMatrix.Request(state=State(position=Y))
    ).success
    change(Transition.TRANSITION_ACTIVATE, "active")  # resume
    change(Transition.TRANSITION_DEACTIVATE, "inactive")  # reset
    change(Transition.TRANSITION_CLEANUP, "unconfigured")
    startup()
    change(Transition.TRANSITION_DEACTIVATE, "inactive")  # shutdown
    change(Transition.TRANSITION_CLEANUP, "unconfigured")
    change(Transition.TRANSITION_UNCONFIGURED_SHUTDOWN, "finalized")
    assert client.call(GetParameters, "~/get_parameters")  # and it still answers
