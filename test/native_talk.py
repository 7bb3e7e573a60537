"""Talking with a node in this process, whose native thread answers."""

import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import rclpy
from conversation import Conversation
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from ros_graph import Client, own_domain

from rbda_ros.demo.resources import share_file
from rbda_ros.node.dynamics_node import DynamicsNode
from rbda_ros.node.spin import make_executor

LEG = share_file("config/robots/demo_leg.urdf")
LOOPS = share_file("config/robots/demo_leg_loops.yaml")
Y, YD = np.array([0.1, 0.3, 0.9, -0.2]), np.array([0.5, -1.0, 2.0, 1.0])
CLOSE = {"rtol": 1e-7, "atol": 1e-9}


class Talk(Conversation):
    """A node in this process, and joint states to it, many of them."""

    def __init__(self, node, client, topic):
        super().__init__(client, topic)
        self.node = node

    @property
    def robot(self):
        return self.node.robot

    @property
    def by_thread(self):
        """How many were answered natively since this was asked."""
        return self.node.stream.stream.read_meters()[0].answers

    def natively(self, *state):
        """An answer of the thread; others come first, until kernels are compiled."""
        for _ in range(200):
            answer = self.answer_to(*state)
            if self.by_thread:
                return answer
        raise AssertionError("never answered by the thread")

    @contextmanager
    def held(self, first=lambda: None):
        """While the node's executor does nothing but one thing, and then waits."""
        begun, go_on = threading.Event(), threading.Event()

        def hold():
            first()
            begun.set()
            go_on.wait()

        self.node.executor.create_task(hold)
        self.client.until(begun.is_set)
        try:
            yield
        finally:
            go_on.set()

    def set(self, **values):
        for name, value in values.items():
            assert self.client.set_parameter(name, value).successful


@contextmanager
def running(urdf, loops="", executor=make_executor, topic="joint_states", **values):
    """A node that spins in a thread of this process; it receives joint states on some topic."""
    with own_domain() as domain:
        rclpy.init(domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        client = Client(domain)
        parameters = {"robot_description": urdf.read_text(), "loop_constraints": str(loops)}
        overrides = [Parameter(name, value=value) for name, value in (parameters | values).items()]
        remap = ["--ros-args", "-r", f"joint_states:={topic}"]
        node = DynamicsNode(parameter_overrides=overrides, cli_args=remap)
        spinning = executor()
        spinning.add_node(node)
        done = rclpy.task.Future()
        thread = threading.Thread(target=_spin, args=(spinning, done))
        thread.start()
        spinning.create_task(node.start)
        try:
            client.until(lambda: node.active)
            yield Talk(node, client, topic)
        finally:
            spinning.create_task(done.set_result, None)
            thread.join()
            spinning.shutdown()
            node.destroy_node()
            client.close()
            rclpy.try_shutdown()
            assert not threads()


def threads():
    """Native threads of this process; others may end while they are listed."""
    names = []
    for path in Path("/proc/self/task").glob("*/comm"):
        with suppress(FileNotFoundError, ProcessLookupError):
            names.append(path.read_text().strip())
    return names.count("stream")


def _spin(executor, done):
    while not done.done():
        executor.spin_until_future_complete(done, 1.0)


def good(robot, y=Y, yd=YD):
    return robot.independent_joint_names, y, yd
