"""A node that is killed with -9, and how soon the next is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ros_graph import Client, Graph, Program
from sensor_msgs.msg import JointState

from tools.hardening.leg_node import NAMES, Y, answers, serve, start
from tools.hardening.verdicts import LoadedError, loaded

READY = 3.0  # [s] in which a node must be back
FOUND = 4.0  # [s] in which the middleware finds it then: all announce themselves every 3 s


def node_killed(graph: Graph) -> str:
    """The node dies with -9: the next is ready within three seconds, on an idle machine.

    When its answers are received again is up to the middleware, which takes seconds to find the
    successor of a process that did not say goodbye: that of a node which does nothing, too, which
    is told beside.
    """
    node, client, talk = start(graph)
    assert answers(talk)
    talk.received.clear()
    state = client.joint_states(NAMES, Y, [0.0] * 4)
    ready, took = _again(client, node, lambda: serve(graph), talk.publisher, talk.received, state)
    plain = _echo_killed(graph, client)
    found = f"active after {ready:.1f} s, efforts after {took:.1f} s; a plain node {plain:.1f} s"
    if ready < READY and took - ready < FOUND:
        return found
    if loaded():
        raise LoadedError(f"{found}, beside other work")
    raise AssertionError(found)


def _echo_killed(graph: Graph, client: Client) -> float:
    def run() -> Program:
        return graph.run(module="tools.hardening.echo")

    node, received = run(), []
    client.node.create_subscription(JointState, "echo", received.append, 10)
    publisher, state = client.publisher(JointState, "shout"), JointState()

    def answers() -> list[Any]:
        publisher.publish(state)
        return received

    client.until(answers)
    _, took = _again(client, node, run, publisher, received, state)
    return took


def _again(
    client: Client,
    node: Program,
    run: Callable[[], Program],
    publisher: Any,
    received: list[Any],
    state: JointState,
) -> tuple[float, float]:
    """Kill a node and run it again: until it is active, if it says so, and answers [s]."""
    node.process.kill()
    node.process.wait()
    client.spin(0.3)  # what it has said before
    received.clear()
    began = time.monotonic()
    node, ready = run(), []

    def answers() -> list[Any]:
        if not ready and "active: efforts" in node.log:
            ready.append(time.monotonic() - began)
        state.header.stamp = client.node.get_clock().now().to_msg()
        publisher.publish(state)
        return received

    client.until(answers)
    took = time.monotonic() - began
    return (ready or [took])[0], took
