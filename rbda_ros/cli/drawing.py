"""The drawing of a robot: spanning tree, loops, and clusters boxed (Chignoli 2024, Fig. 14).

A robot is described as a graph in DOT, the language of Graphviz. Graphviz, inside the wheel of
pygraphviz, lays it out and writes SVG or PNG.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.constraints import bodies_tied
from rbda_ros.cluster_tree.spanning_tree import SpanningTree
from rbda_ros.description.model import Constraint, CutJoint, constraint_type
from rbda_ros.errors import counted
from rbda_ros.robot.robot import Robot

LONGEST = 40
"""Characters of a name that the drawing shows; the whole name is in the tooltip."""
INK, QUIET = "#1d2736", "#5b6b85"
BLUE, AMBER, RED = "#1257b0", "#b36b00", "#c01f2e"
HEADER = f"""graph [rankdir=LR, labelloc=t, labeljust=l, fontname="DejaVu Sans", fontsize=12,
  fontcolor="{INK}", nodesep=0.15, ranksep=0.45, splines=spline, bgcolor=white, pad=0.2]
node [shape=box, style="rounded,filled", fillcolor=white, color="{QUIET}", fontcolor="{INK}",
  fontname="DejaVu Sans", fontsize=11, height=0.3, margin="0.12,0.04"]
edge [color="{QUIET}", fontcolor="{QUIET}", fontname="DejaVu Sans", fontsize=10, arrowsize=0.5]"""


class DrawingError(Exception):
    """The drawing cannot be written; says why."""


def graph(robot: Robot) -> str:
    """The graph of a robot in DOT: bodies, joints, loop constraints, clusters.

    An arrow is a joint, from the parent body to the body that it moves: blue if independent,
    marked with "motor" if actuated. A dashed red box is a loop constraint, joined to its bodies.
    """
    lines = [f"digraph {_text(robot.name)} {{", HEADER, f"label=<{_title(robot)}>"]
    lines.append(_body(robot, 0, "world"))
    for k, node in enumerate(robot.cluster_nodes):
        inside = [_body(robot, number, "") for number in node.numbers]
        inside += _constraints(k, node)
        if len(node.bodies) > 1 or node.loop is not None:
            bodies = counted(len(node.bodies), "body", "bodies")
            freedoms = counted(node.ny, "freedom")
            label = _text(f"cluster {shorten(node.name)}: {bodies}, {freedoms}")
            look = f'style="rounded,filled", fillcolor="#eef2f8", color="#c5cfde", label={label}'
            inside = [f"subgraph cluster_{k} {{", f"graph [{look}, fontsize=10]", *inside, "}"]
        lines += inside
    # Outside the clusters: an edge in one would take both of its ends there.
    for k, node in enumerate(robot.cluster_nodes):
        lines += [*_joints(node), *_loop_edges(robot, k, node)]
    return "\n".join([*lines, "}", ""])


def draw(robot: Robot) -> str:
    """The drawing of a robot, as the text of an SVG file.

    Its last line has the digest of the graph, which tells whether a stored drawing is current: how
    wide texts are depends on the fonts of the machine.

    Raises:
        DrawingError: pygraphviz is not installed.
    """
    dot = graph(robot)
    return f"{_render(dot, 'svg').decode()}{_mark(dot)}\n"


def is_current(svg: str, robot: Robot) -> bool:
    """Whether a drawing that `draw` made is of this robot."""
    return svg.rstrip().endswith(_mark(graph(robot)))


def write_drawing(robot: Robot, path: Path) -> None:
    """Write the drawing as .svg or .png, or the graph as .dot.

    Raises:
        DrawingError: the file cannot be written, is of another type, or pygraphviz is missing.
    """
    kind = path.suffix.lower()
    try:
        if kind == ".svg":
            path.write_text(draw(robot), encoding="utf-8")
        elif kind == ".png":
            path.write_bytes(_render(graph(robot), "png"))
        elif kind == ".dot":
            path.write_text(graph(robot), encoding="utf-8")
        else:
            raise DrawingError(f"{path}: the drawing can be a .svg, .png or .dot file")
    except OSError as error:
        raise DrawingError(f"{path}: cannot be written: {error.strerror}") from None


def joined_bodies(spanning: SpanningTree, constraint: Constraint) -> list[int]:
    """Bodies at the ends of a loop: of a cut joint's links, or that the coupled joints move."""
    if isinstance(constraint, CutJoint):
        ends = (constraint.predecessor.link, constraint.successor.link)
        return sorted({spanning.links[link].body for link in ends})
    return sorted(bodies_tied(spanning, constraint))


def shorten(name: str) -> str:
    """A name of readable length."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _render(dot: str, kind: str) -> bytes:
    try:
        import pygraphviz
    except ImportError:
        raise DrawingError(
            "an .svg or .png is drawn by Graphviz, which is not installed; install the extra "
            "'draw' (pip install pygraphviz), or write a .dot file"
        ) from None
    drawn: Any = pygraphviz.AGraph(string=dot).draw(format=kind, prog="dot")
    return bytes(drawn)


def _mark(dot: str) -> str:
    return f"<!-- graph {hashlib.sha256(dot.encode()).hexdigest()} -->"


def _title(robot: Robot) -> str:
    facts = (
        counted(len(robot.spanning_tree.bodies), "body", "bodies"),
        counted(len(robot.clusters), "cluster"),
        f"{robot.nv} velocities, {robot.ny} independent",
        "floating base" if robot.floating_base else "fixed base",
    )
    legend = (
        f'<FONT COLOR="{BLUE}">independent joint</FONT>',
        "dependent joint",
        f'<FONT COLOR="{AMBER}">motor: actuated</FONT>',
        f'<FONT COLOR="{RED}">dashed: loop constraint</FONT>',
    )
    lines = f'<B>{_html(shorten(robot.name))}</B><BR ALIGN="LEFT"/>'
    for parts in (facts, legend):
        lines += f'<FONT POINT-SIZE="10">{" · ".join(parts)}</FONT><BR ALIGN="LEFT"/>'
    return lines


def _body(robot: Robot, number: int, otherwise: str) -> str:
    links = [link for link, place in robot.spanning_tree.links.items() if place.body == number]
    tooltip = f"body {number}: {', '.join(links) or otherwise}"
    name = links[0] if links else otherwise
    look = f'fillcolor="#dde3ec", tooltip={_text(tooltip)}'
    if number:
        body = robot.spanning_tree.bodies[number - 1]
        name, look = body.name, f"tooltip={_text(f'{tooltip}, mass {body.mass:.4g} kg')}"
    return f"b{number} [label={_text(f'{number}  {shorten(name)}')}, {look}]"


def _joints(node: ClusterNode) -> Iterator[str]:
    for k, (number, body) in enumerate(zip(node.numbers, node.bodies, strict=True)):
        coordinates = node.velocity_ranges[k]
        independent = any(j in node.independent for j in coordinates)
        actuated = any(j in node.actuated for j in coordinates)
        name = _html(shorten(body.joint.name))
        label = f'<FONT COLOR="{BLUE}"><B>{name}</B></FONT>' if independent else name
        if actuated:
            label += f'<BR/><FONT COLOR="{AMBER}">motor</FONT>'
        look = [f"label=<{label}>", f"tooltip={_text(f'{body.joint.name}: {body.joint.type}')}"]
        look += [f"labeltooltip={_text(f'{body.joint.name}: {body.joint.type}')}"]
        look += [f'color="{BLUE}"', "penwidth=1.6"] if independent else []
        yield f"b{body.parent} -> b{number} [{', '.join(look)}]"


def _constraints(k: int, node: ClusterNode) -> Iterator[str]:
    for place, constraint in enumerate(node.loop.constraints if node.loop else ()):
        names, kind = (shorten(constraint.name), constraint.name), constraint_type(constraint)
        label, tooltip = (_text(f"{name}: {kind}") for name in names)
        look = f'style="rounded,dashed,filled", fillcolor="#fff6f6", color="{RED}"'
        look += f', fontcolor="{RED}", fontsize=10'
        yield f"c{k}_{place} [label={label}, tooltip={tooltip}, {look}]"


def _loop_edges(robot: Robot, k: int, node: ClusterNode) -> Iterator[str]:
    for place, constraint in enumerate(node.loop.constraints if node.loop else ()):
        for number in joined_bodies(robot.spanning_tree, constraint):
            yield f'b{number} -> c{k}_{place} [dir=none, style=dashed, color="{RED}"]'


def _text(text: str) -> str:
    """A quoted string of DOT; Graphviz reads backslashes and HTML entities in it."""
    plain = _writable(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def _html(text: str) -> str:
    """Text of an HTML-like label."""
    return escape(_writable(text), quote=True)


def _writable(text: str) -> str:
    """The text without characters that XML cannot hold, on one line."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
