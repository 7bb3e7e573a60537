"""`rbda_ros inspect`: the clusters of a robot as a table, and as a drawing.

The drawing has the spanning tree, loops, and clusters boxed (Chignoli 2024, Fig. 14). A robot is
described as a graph in DOT, the language of Graphviz. Graphviz, inside the wheel of pygraphviz,
lays it out and writes SVG or PNG.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import casadi as ca
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rbda_ros.cli.robot_arguments import add_robot_arguments, load
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.constraints import CUT_ROWS, CutFrames, bodies_tied
from rbda_ros.cluster_tree.spanning_tree import SpanningTree
from rbda_ros.description.model import Constraint, Coupling, CutJoint
from rbda_ros.errors import ModelError, counted, printable
from rbda_ros.robot.robot import Robot

WIDTH = 80
"""Columns that the table is made for; wider names fold on a terminal, and nowhere else."""
MARK = "●"
HEADINGS = ("body", "link", "joint", "type", "y", "effort")


@dataclass(frozen=True)
class ConstraintFacts:
    """Facts of one constraint in the model.

    Attributes:
        name: of the constraint.
        type: coupling, expression, or the type of a cut joint.
        ties: what it holds together, as an equation or as two links.
        rows: rows of phi that it states.
        rows_kept: those that are left once redundant ones are dropped.
        constant: whether its rows of K are constant.
    """

    name: str
    type: str
    ties: str
    rows: int
    rows_kept: int
    constant: bool


def add_parser(subparsers: Any) -> None:
    """Add the command ``inspect`` to a parser of commands."""
    parser = subparsers.add_parser(
        "inspect",
        help="show the clusters of a robot, and draw them",
        description="Show the clusters that loops make of a robot, and draw its spanning tree.",
    )
    add_robot_arguments(parser)
    parser.add_argument(
        "--draw", type=Path, metavar="FILE", help="drawing to write: .svg, .png or .dot"
    )


def run(args: argparse.Namespace) -> int:
    """Run ``inspect``; returns the exit code."""
    try:
        robot = load(args)
        show(robot)
        if args.draw is not None:
            write_drawing(robot, args.draw)
            print(f"\ndrawing: {args.draw}")
    except (ModelError, DrawingError) as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # `rbda_ros inspect ... | head`
        sys.stdout = io.StringIO()
        return 0
    return 0


def show(robot: Robot, console: Console | None = None) -> None:
    """Print the table; where there is no terminal, as wide as the names need."""
    if console is None:
        # A name that the terminal cannot write must not end the command.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = _natural_width(robot)
    with console.capture() as capture:
        console.print(table(robot, console))
    # Cells are padded with blanks, which no file and no diff wants.
    console.out(*(line.rstrip() for line in capture.get().splitlines()), sep="\n")


def table(robot: Robot, console: Console) -> RenderableType:
    """Everything that ``inspect`` prints, for a console of a given width and encoding."""
    writer = _Writer(robot, console)
    return Group(*writer.header(), *writer.clusters(), *writer.footer())


def constraint_facts(node: ClusterNode) -> tuple[ConstraintFacts, ...]:
    """Facts of a cluster's constraints; empty for a cluster without loops."""
    if node.loop is None:
        return ()
    K = node.loop.K(node.loop.K.sx_in(0))
    facts = []
    for i, constraint in enumerate(node.loop.constraints):
        rows = [row for row, owner in enumerate(node.loop.row_constraint) if owner == i]
        kind, stated = _stated(constraint)
        constant = not ca.symvar(K[rows, :])
        facts.append(
            ConstraintFacts(constraint.name, kind, _ties(constraint), stated, len(rows), constant)
        )
    return tuple(facts)


def output_bodies(clusters: Sequence[ClusterNode], node: ClusterNode) -> tuple[int, ...]:
    """Numbers of the bodies of the parent cluster that a cluster hangs from; 0 is the base."""
    outside = (0,) if node.parent is None else clusters[node.parent].numbers
    return tuple(sorted({outside[j] for j in node.output if j is not None}))


def links_of_bodies(spanning: SpanningTree) -> dict[int, list[str]]:
    """Links on each body, the one that its joint moves first; 0 is the fixed base."""
    links: dict[int, list[str]] = {0: []}
    for link, place in spanning.links.items():
        links.setdefault(place.body, []).append(link)
    return links


def _stated(constraint: Constraint) -> tuple[str, int]:
    """Type of a constraint, and the rows of phi that it has as written."""
    if not isinstance(constraint, CutJoint):
        return constraint.type, 1
    if constraint.type == "distance":
        return constraint.type, 1
    I, o = ca.DM.eye(3), ca.DM(3, 1)
    return constraint.type, CUT_ROWS[constraint.type](CutFrames(I, o, I, o)).rows()


def _ties(constraint: Constraint) -> str:
    if isinstance(constraint, CutJoint):
        return " to ".join(constraint.links)
    if isinstance(constraint, Coupling):
        terms = [_term(factor, joint) for joint, factor in constraint.terms.items()]
        return f"{' '.join(terms).removeprefix('+ ')} = {constraint.offset:g}"
    return f"{constraint.equation} = 0"


def _term(factor: float, joint: str) -> str:
    sign = "-" if factor < 0.0 else "+"
    return f"{sign} {joint}" if abs(factor) == 1.0 else f"{sign} {abs(factor):g} {joint}"


def _stacked(links: Sequence[str]) -> list[str]:
    """Lines of a link's cell: the body's own link, and what is fixed to it below."""
    return [*links[:1], *(f"+ {link}" for link in links[1:])]


def _marks(node: ClusterNode, chosen: Sequence[int]) -> list[str]:
    """For each body, MARK where all coordinates of its joint are chosen; else which ones are."""
    marks = []
    for body, coordinates in zip(node.bodies, node.velocity_ranges, strict=True):
        names = [
            name for name, j in zip(body.model.coordinates, coordinates, strict=True) if j in chosen
        ]
        marks.append(MARK if len(names) == len(coordinates) else " ".join(names))
    return marks


def _natural_widths(robot: Robot) -> list[int]:
    """Columns that the six cells of the widest rows need."""
    spanning = robot.spanning_tree
    bodies = spanning.bodies
    columns: dict[str, list[str]] = {
        "body": [str(len(bodies))],
        "link": [line for links in links_of_bodies(spanning).values() for line in _stacked(links)],
        "joint": [body.joint.name for body in bodies],
        "type": [body.joint.type for body in bodies],
        "y": [mark for node in robot.cluster_nodes for mark in _marks(node, node.independent)],
        "effort": [mark for node in robot.cluster_nodes for mark in _marks(node, node.actuated)],
    }
    return [max(map(cell_len, [heading, *columns[heading]])) for heading in HEADINGS]


def _natural_width(robot: Robot) -> int:
    """Columns that nothing folds in."""
    widths = _natural_widths(robot)
    ties = [
        cell_len(facts.ties) for node in robot.cluster_nodes for facts in constraint_facts(node)
    ]
    return max(WIDTH, sum(widths) + 2 * len(widths), widths[0] + 4 + max(ties, default=0))


class _Writer:
    """Writes the parts of the table for one robot and console."""

    def __init__(self, robot: Robot, console: Console) -> None:
        self.robot = robot
        self.links = links_of_bodies(robot.spanning_tree)
        self.mark = "*" if console.options.ascii_only else MARK
        self.dot = "," if console.options.ascii_only else " ·"
        self.widths = self._fit(_natural_widths(robot), console.width)

    def _fit(self, natural: Sequence[int], width: int) -> list[int]:
        """Column widths; link and joint give way where the console is narrow."""
        widths = list(natural)
        excess = sum(widths) + 2 * len(widths) - width
        while excess > 0 and max(widths[1], widths[2]) > 12:
            widths[1 if widths[1] >= widths[2] else 2] -= 1
            excess -= 1
        return widths

    def header(self) -> Iterator[RenderableType]:
        """Name, mass and sizes; then what is odd about the robot."""
        robot = self.robot
        base = "floating base" if robot.floating_base else "fixed base"
        bodies = counted(len(robot.spanning_tree.bodies), "body", "bodies")
        facts = (
            f"moving mass {robot.mass:.4g} kg",
            base,
            f"{bodies} in {counted(len(self.robot.cluster_nodes), 'cluster')}",
        )
        sizes = (
            f"nq {robot.nq}",
            f"nv {robot.nv}",
            f"ny {robot.ny}",
            f"{len(robot.actuated_joint_names)} actuated",
        )
        yield Text(robot.name, "bold")
        yield Text(f"{self.dot} ".join(facts))
        yield Text(f"{self.dot} ".join(sizes))
        for warning in robot.warnings:
            yield Text(f"warning: {warning}", "yellow")
        yield Text()

    def clusters(self) -> Iterator[RenderableType]:
        """The fixed base, then a section for each cluster."""
        heading = self._grid()
        heading.add_row(*(Text(text, "dim") for text in HEADINGS))
        heading.add_row("0", self._links(self.links[0] or ["world"]), Text("fixed base", "dim"))
        yield heading
        for node in self.robot.cluster_nodes:
            yield self._title(node)
            rows = self._grid()
            marks = zip(_marks(node, node.independent), _marks(node, node.actuated), strict=True)
            for number, body, (y, effort) in zip(node.numbers, node.bodies, marks, strict=True):
                rows.add_row(
                    str(number),
                    self._links(self.links[number]),
                    Text(body.joint.name, "bold" if y else ""),
                    Text(body.joint.type, "dim"),
                    *(Text(mark.replace(MARK, self.mark), "bold green") for mark in (y, effort)),
                )
            yield rows
            for facts in constraint_facts(node):
                indent = self.widths[0] + 2
                yield Padding(self._constraint(facts), (0, 0, 0, indent))
                yield Padding(Text(facts.ties, "dim"), (0, 0, 0, indent + 2))
                if method := self._method(facts.name):
                    yield Padding(Text(method, "dim"), (0, 0, 0, indent + 2))

    def footer(self) -> Iterator[RenderableType]:
        """Legend of the marks."""
        legend = (
            f"{self.mark} under y: the joint is an independent coordinate; under effort: an"
            " actuator acts on it. A link after + is fixed to the one above."
        )
        if self.robot.has_loops:
            legend += (
                " Rows that others imply are dropped; a constant constraint is solved once,"
                " when the robot is loaded."
            )
        yield Text()
        yield Text(legend, "dim")

    def _method(self, constraint: str) -> str:
        """How forward dynamics closes a loop, and why; nothing where it is simply embedded."""
        chosen = self.robot.loop_methods
        how = "by its forces" if constraint in chosen.by_forces else "embedded"
        trial = chosen.trials.get(constraint)
        if trial is None:
            return f"forward dynamics: {how}" if constraint in chosen.by_forces else ""
        embedded = "too large to try" if trial.embedded is None else f"{trial.embedded:,}"
        return (
            f"forward dynamics: {how} (auto; instructions embedded {embedded},"
            f" by its forces {trial.by_forces:,})"
        )

    def _grid(self) -> Table:
        grid = Table.grid(padding=(0, 2, 0, 0))
        for k, width in enumerate(self.widths):
            grid.add_column(
                width=width,
                overflow="fold",
                justify=("right", "left", "left", "left", "center", "center")[k],
            )
        return grid

    def _title(self, node: ClusterNode) -> Text:
        title = Text("cluster ", "cyan")
        title.append(node.name, "bold cyan")
        outputs = output_bodies(self.robot.cluster_nodes, node)
        if node.parent is None:
            title.append(" on the fixed base", "cyan")
        else:
            bodies = "body" if len(outputs) == 1 else "bodies"
            numbers = " and ".join(str(number) for number in outputs)
            parent = self.robot.cluster_nodes[node.parent].name
            title.append(f" on {bodies} {numbers} of cluster {parent}", "cyan")
        return title

    def _links(self, links: Sequence[str]) -> Text:
        own, *fixed = _stacked(links)
        return Text("\n").join([Text(own), *(Text(link, "dim") for link in fixed)])

    def _constraint(self, facts: ConstraintFacts) -> Text:
        rows = counted(facts.rows, "row")
        if facts.rows_kept != facts.rows:
            rows = f"{facts.rows_kept} of {rows} kept"
        text = Text()
        text.append(facts.name, "magenta")
        text.append(f": {facts.type}, {rows}, {'constant' if facts.constant else 'varying'}")
        return text


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
    links = links_of_bodies(robot.spanning_tree)
    lines.append(_body(robot, 0, links[0] or ["world"]))
    for k, node in enumerate(robot.cluster_nodes):
        inside = [_body(robot, number, links[number]) for number in node.numbers]
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
    if constraint.links:
        return sorted({spanning.links[link].body for link in constraint.links})
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


def _body(robot: Robot, number: int, links: Sequence[str]) -> str:
    tooltip = f"body {number}: {', '.join(links)}"
    name, look = links[0], f'fillcolor="#dde3ec", tooltip={_text(tooltip)}'
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
        tooltip = _text(f"{body.joint.name}: {body.joint.type}")
        look = [f"label=<{label}>", f"tooltip={tooltip}", f"labeltooltip={tooltip}"]
        look += [f'color="{BLUE}"', "penwidth=1.6"] if independent else []
        yield f"b{body.parent} -> b{number} [{', '.join(look)}]"


def _constraints(k: int, node: ClusterNode) -> Iterator[str]:
    for place, constraint in enumerate(node.loop.constraints if node.loop else ()):
        names, kind = (shorten(constraint.name), constraint.name), constraint.type
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
    plain = printable(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def _html(text: str) -> str:
    """Text of an HTML-like label."""
    return escape(printable(text), quote=True)
