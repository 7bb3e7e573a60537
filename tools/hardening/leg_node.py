"""A node on the demo leg, in a process of its own, and someone who talks to it."""

from __future__ import annotations

from conversation import Conversation
from ros_graph import Client, Graph, Program

from rbda_ros.demo.resources import share_file
from tools.hardening.driver import LOOPS, URDF

LEG = share_file(URDF).read_text()
NAMES = ("hip_abduction", "hip_flexion", "knee", "ankle")
Y = (0.1, 0.3, 0.9, -0.2)


def serve(graph: Graph, *arguments: str, **parameters: object) -> Program:
    given = {"robot_description": LEG, "loop_constraints": str(share_file(LOOPS))}
    return graph.serve(*arguments, **(given | parameters))


def start(graph: Graph, **parameters: object) -> tuple[Program, Client, Conversation]:
    node, client = serve(graph, **parameters), graph.client()
    client.until_active()
    return node, client, Conversation(client)


def answers(talk: Conversation) -> bool:
    """Whether a good state is answered with an effort."""
    return len(talk.answer_to(NAMES, Y, [0.0] * 4).effort) == 4
