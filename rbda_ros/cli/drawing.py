"""The drawing of a robot: spanning tree, loops, and clusters boxed (Chignoli 2024, Fig. 14)."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

from rbda_ros.cli.drawing_layout import lay_out
from rbda_ros.cli.drawing_shapes import (
    BADGE,
    CARD,
    GROUND,
    GROUND_HEIGHT,
    JOINT,
    NAME,
    PAD,
    SMALL,
    Box,
    Card,
    Line,
    Pill,
    Scene,
    flow,
    shorten,
    text_width,
)
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.description.model import constraint_type
from rbda_ros.robot.robot import Robot

MARGIN = 20.0
TITLE = 17.0  # font size
TITLE_HEIGHT = 56.0
LEGEND_ROW = 28.0
NARROWEST = 620.0  # so that the legend of a small robot is not a tower

INK, QUIET, LINE = "#1d2736", "#5b6b85", "#64748f"
BLUE, AMBER, RED = "#1257b0", "#e08a00", "#c01f2e"
FONT = "DejaVu Sans, Verdana, Segoe UI, Helvetica, Arial, sans-serif"

LEGEND = (
    ("body", "body: number, link"),
    ("independent", "independent joint"),
    ("dependent", "dependent joint"),
    ("actuated", "actuated"),
    ("loop", "loop constraint"),
    ("cluster", "cluster"),
    ("ground", "fixed base"),
)
_SYMBOL = 34.0  # width of a symbol in the legend

Element = ElementTree.Element


class DrawingError(Exception):
    """The drawing cannot be written; says why."""


def draw(robot: Robot) -> str:
    """The drawing of a robot, as the text of an SVG file."""
    scene = lay_out(robot.tree)
    width = max(scene.width, NARROWEST, text_width(shorten(robot.name), TITLE, bold=True))
    legend = [(kind, text) for kind, text in LEGEND if _is_used(kind, scene)]
    entries = [_SYMBOL + text_width(text, SMALL) for _, text in legend]
    places = flow(entries, width, gap=22.0)
    legend_top = TITLE_HEIGHT + scene.height + 2 * MARGIN
    height = legend_top + LEGEND_ROW * places[-1][1] + CARD / 2

    canvas = _Canvas(width + 2 * MARGIN, height + 2 * MARGIN, title=robot.name)
    page = canvas.group(MARGIN, MARGIN)
    _draw_title(canvas, page, robot)
    _draw_scene(canvas, canvas.group(0.0, TITLE_HEIGHT, page), scene, robot.tree)
    for (kind, text), (x, row) in zip(legend, places, strict=True):
        entry = canvas.group(x, legend_top + LEGEND_ROW * row, page)
        _SYMBOLS[kind](canvas, entry)
        canvas.text(entry, _SYMBOL, 0.0, text, SMALL, QUIET)
    return canvas.svg()


def write_drawing(svg: str, path: Path) -> None:
    """Write a drawing as SVG, or as PNG where something that converts is installed."""
    try:
        if path.suffix.lower() == ".svg":
            path.write_text(svg, encoding="utf-8")
        elif path.suffix.lower() == ".png":
            path.write_bytes(_png(svg))
        else:
            raise DrawingError(f"{path}: the drawing can be a .svg or a .png file")
    except OSError as error:
        raise DrawingError(f"{path}: cannot be written: {error.strerror}") from None


def _png(svg: str) -> bytes:
    try:
        import cairosvg
    except (ImportError, OSError):  # OSError: it is there, but the library it needs is not
        converter = shutil.which("rsvg-convert")
        if converter is None:
            raise DrawingError(
                "a PNG needs rsvg-convert (package librsvg2-bin) or the Python module cairosvg;"
                " install one, or write a .svg"
            ) from None
        command = [converter, "--zoom=2", "--format=png"]
        return subprocess.run(command, input=svg.encode(), stdout=-1, check=True).stdout
    return bytes(cairosvg.svg2png(svg.encode(), scale=2.0))


def _is_used(kind: str, scene: Scene) -> bool:
    """Whether the legend has to explain a symbol."""
    return {
        "independent": any(card.independent for card in scene.cards),
        "dependent": any(card.body and not card.independent for card in scene.cards),
        "actuated": any(card.actuated for card in scene.cards),
        "loop": bool(scene.pills),
        "cluster": any(box.label for box in scene.boxes),
    }.get(kind, True)


class _Canvas:
    """Writes shapes into an SVG document."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.root = Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {_number(width)} {_number(height)}",
                "width": _number(width),
                "height": _number(height),
                "font-family": FONT,
                "role": "img",
            },
        )
        self.tooltip(self.root, f"Spanning tree, loops and clusters of {title}")
        self.rectangle(self.root, Box(0.0, 0.0, width, height), fill="#ffffff", rx="8")

    def add(self, parent: Element, tag: str, **attributes: str) -> Element:
        named = {key.replace("_", "-"): value for key, value in attributes.items()}
        return ElementTree.SubElement(parent, tag, named)

    def group(self, x: float, y: float, parent: Element | None = None) -> Element:
        where = f"translate({_number(x)} {_number(y)})"
        return self.add(self.root if parent is None else parent, "g", transform=where)

    def rectangle(self, parent: Element, box: Box, **style: str) -> Element:
        place = {"x": box.x, "y": box.y, "width": box.width, "height": box.height}
        return self.add(parent, "rect", **{k: _number(v) for k, v in place.items()}, **style)

    def circle(self, parent: Element, x: float, y: float, r: float, **style: str) -> None:
        self.add(parent, "circle", cx=_number(x), cy=_number(y), r=_number(r), **style)

    def text(
        self, parent: Element, x: float, y: float, text: str, size: float, fill: str, **style: str
    ) -> None:
        """A line of text whose middle is at height y."""
        place = {"x": _number(x), "y": _number(y + 0.36 * size)}
        element = self.add(parent, "text", **place, font_size=_number(size), fill=fill, **style)
        element.text = _writable(text)

    def tooltip(self, parent: Element, text: str) -> None:
        self.add(parent, "title").text = _writable(text)

    def svg(self) -> str:
        ElementTree.indent(self.root, " ")
        return ElementTree.tostring(self.root, encoding="unicode") + "\n"


def _number(value: float) -> str:
    # Rounded in two steps: Python 3.12 adds numbers up more exactly, and halves would tip over.
    return f"{round(value, 6):.1f}".removesuffix(".0")


def _writable(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _draw_title(canvas: _Canvas, page: Element, robot: Robot) -> None:
    name = shorten(robot.name)
    bodies = len(robot.tree.spanning.bodies)
    facts = (
        f"{bodies} {'body' if bodies == 1 else 'bodies'}",
        f"{len(robot.clusters)} cluster{'' if len(robot.clusters) == 1 else 's'}",
        f"{robot.nv} velocities, {robot.ny} independent",
        "floating base" if robot.floating_base else "fixed base",
    )
    canvas.text(page, 0.0, TITLE / 2, name, TITLE, INK, font_weight="bold")
    canvas.text(page, 0.0, TITLE + SMALL, " · ".join(facts), SMALL, QUIET)


def _draw_scene(canvas: _Canvas, group: Element, scene: Scene, tree: ClusterTree) -> None:
    for box in scene.boxes:
        if box.label:
            _draw_cluster(canvas, group, box)
            canvas.text(group, box.x + PAD, box.y + PAD + 3.0, box.label, SMALL, QUIET)
    for line in sorted(scene.lines, key=lambda line: line.loop):
        _draw_line(canvas, group, line)
    for pill in scene.pills:
        _draw_pill(canvas, group, pill)
    for card in scene.cards:
        _draw_card(canvas, group, card, tree)


def _draw_cluster(canvas: _Canvas, group: Element, box: Box) -> None:
    radius = _number(min(10.0, box.height / 3))
    canvas.rectangle(group, box, rx=radius, fill="#eef2f8", stroke="#c5cfde")


def _draw_line(canvas: _Canvas, group: Element, line: Line) -> None:
    if line.loop:
        style = {"stroke": RED, "stroke_width": "1.4", "stroke_dasharray": "5 3"}
    else:
        style = {"stroke": LINE, "stroke_width": "1.8", "stroke_linecap": "square"}
    canvas.add(group, "path", d=_rounded(line), fill="none", **style)
    for x, y in line.dots:
        canvas.circle(group, x, y, 2.2, fill=RED)


def _rounded(line: Line) -> str:
    """Path data of a line with its corners rounded."""
    points = line.points
    path = [f"M{_number(points[0][0])} {_number(points[0][1])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        lengths = [abs(p[0] - corner[0]) + abs(p[1] - corner[1]) for p in (before, after)]
        radius = min(6.0, *(length / 2 for length in lengths))
        if radius < 0.05:
            continue
        (x1, y1), (x2, y2) = (
            (
                corner[0] + (p[0] - corner[0]) * radius / n,
                corner[1] + (p[1] - corner[1]) * radius / n,
            )
            for p, n in zip((before, after), lengths, strict=True)
        )
        path.append(f"L{_number(x1)} {_number(y1)}")
        path.append(f"Q{_number(corner[0])} {_number(corner[1])} {_number(x2)} {_number(y2)}")
    path.append(f"L{_number(points[-1][0])} {_number(points[-1][1])}")
    return " ".join(path)


def _draw_pill(canvas: _Canvas, group: Element, pill: Pill) -> None:
    entry = canvas.add(group, "g")
    canvas.tooltip(entry, f"{pill.constraint.name}: {constraint_type(pill.constraint)}")
    style = {"stroke": RED, "stroke_dasharray": "5 3", "rx": _number(pill.box.height / 2)}
    canvas.rectangle(entry, pill.box, fill="#fff6f6", **style)
    canvas.text(entry, pill.box.x + 8.0, pill.box.middle, pill.text, SMALL, RED)


def _draw_card(canvas: _Canvas, group: Element, card: Card, tree: ClusterTree) -> None:
    entry = canvas.add(group, "g")
    on_it = [link for link, place in tree.spanning.links.items() if place.body == card.number]
    lines = [f"body {card.number}: {', '.join(on_it) or 'world'}"]
    if card.body is not None:
        lines.append(f"joint {card.body.joint.name}: {card.body.joint.type}")
        lines.append(f"mass {card.body.mass:.4g} kg")
        label = card.joint_label
        weight = {"font_weight": "bold"} if card.independent else {}
        fill = BLUE if card.independent else QUIET
        canvas.text(entry, label.x, label.middle, card.joint, SMALL, fill, **weight)
        _draw_joint(
            canvas, entry, card.box.x - JOINT, card.box.middle, card.independent, card.actuated
        )
    else:
        middle = card.box.middle
        _draw_ground(canvas, entry, card.box.x, middle - GROUND_HEIGHT / 2, GROUND_HEIGHT)
    canvas.tooltip(entry, "\n".join(lines))
    _draw_body(canvas, entry, card.box, str(card.number))
    canvas.text(entry, card.box.x + BADGE, card.box.middle, card.name, NAME, INK)


def _draw_body(canvas: _Canvas, group: Element, box: Box, number: str) -> None:
    canvas.rectangle(group, box, rx="6", fill="#ffffff", stroke=LINE, stroke_width="1.3")
    canvas.circle(group, box.x + BADGE / 2, box.middle, 9.5, fill="#33415c")
    size = 10.0 if len(number) < 3 else 8.0
    style = {"text_anchor": "middle", "font_weight": "bold"}
    canvas.text(group, box.x + BADGE / 2, box.middle, number, size, "#ffffff", **style)


def _draw_joint(
    canvas: _Canvas, group: Element, x: float, y: float, independent: bool, actuated: bool
) -> None:
    if actuated:
        canvas.circle(group, x, y, 7.5, fill="#ffffff", stroke=AMBER, stroke_width="2")
    fill, stroke = (BLUE, BLUE) if independent else ("#ffffff", LINE)
    canvas.circle(group, x, y, 4.0, fill=fill, stroke=stroke, stroke_width="1.5")


def _draw_ground(canvas: _Canvas, group: Element, x: float, y: float, height: float) -> None:
    """Hatching on the left of a wall at x."""
    step, run = 8.0, GROUND - 6.0
    wall = f"M{_number(x)} {_number(y)} V{_number(y + height)}"
    strokes = "".join(
        f" M{_number(x)} {_number(y + step * k)} l{_number(-run)} {_number(step)}"
        for k in range(int(height // step))
    )
    canvas.add(group, "path", d=wall + strokes, fill="none", stroke=QUIET, stroke_width="1.5")


def _draw_line_symbol(canvas: _Canvas, group: Element) -> None:
    _draw_line(canvas, group, Line(((0.0, 0.0), (26.0, 0.0)), loop=True))


def _draw_joint_symbol(independent: bool, actuated: bool) -> Callable[[_Canvas, Element], None]:
    def symbol(canvas: _Canvas, group: Element) -> None:
        _draw_line(canvas, group, Line(((0.0, 0.0), (26.0, 0.0))))
        _draw_joint(canvas, group, 13.0, 0.0, independent, actuated)

    return symbol


_SYMBOLS: dict[str, Callable[[_Canvas, Element], None]] = {
    "body": lambda canvas, group: _draw_body(canvas, group, Box(0, -CARD / 2 + 2, BADGE, 22), "1"),
    "independent": _draw_joint_symbol(True, False),
    "dependent": _draw_joint_symbol(False, False),
    "actuated": _draw_joint_symbol(False, True),
    "loop": _draw_line_symbol,
    "cluster": lambda canvas, group: _draw_cluster(canvas, group, Box(0.0, -8.0, 26.0, 16.0)),
    "ground": lambda canvas, group: _draw_ground(canvas, group, 18.0, -12.0, 24.0),
}
