"""Numbers of the page as HTML. Names come from files, so all of them are escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from rbda_ros.errors import listed
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array
from rbda_ros.view.plotted import Ellipsoid
from rbda_ros.view.posing import LoopHealth, Posed
from rbda_ros.view.shapes import Colour

RED, BLUE, GREY = "#dc141e", "#4c78a8", "#8884"
TOUCHING = 1e-6
"""How far beyond a limit a joint is still at it [rad, m]."""
STYLE = "font-size:0.8em;line-height:1.35;padding:0 0.6em 0.4em;overflow-wrap:anywhere"


def _part(name: str, content: str, style: str = "", **data: object) -> str:
    """A part of the page, with an id and data for tests and scripts."""
    attributes = "".join(f' data-{key}="{value}"' for key, value in data.items())
    return f'<div id="rbda-{name}"{attributes} style="{STYLE}{style}">{content}</div>'


def status(robot: Robot, posed: Posed, updates: int) -> str:
    """Whether the loops close and limits are kept; else what is wrong."""
    if not posed.loops:
        text = "no loops"
    else:
        worst = min(loop.conditioning for loop in posed.loops)
        residual = max(loop.residual for loop in posed.loops)
        text = f"loops closed ({gap(residual)}), conditioning {worst:.2f}"
    colour, state = "inherit", "closed"
    if posed.troubles:
        colour, state = RED, "trouble"
        text = "<br>".join(
            f"<b>{escape(', '.join(loop.constraints))}</b>, gap {gap(loop.residual)}: "
            f"{escape(loop.trouble)}"
            for loop in posed.troubles
        )
    text += "".join(
        f'<div style="color:{RED}">{what} beyond the limit: {escape(listed(names))}</div>'
        for what, names in (
            ("position", joints_beyond(robot, posed.q)),
            ("effort", motors_beyond(robot, posed.efforts)),
        )
        if names
    )
    return _part("status", text, f";color:{colour}", state=state, updates=updates)


def joints_beyond(robot: Robot, q: Array) -> list[str]:
    """Joints of one coordinate whose position is outside their limits."""
    limits = {joint.name: joint.limits for joint in robot.description.joints}
    return [
        name
        for name, place in robot.coordinates.scalar_positions.items()
        if limits[name].lower < limits[name].upper
        and not limits[name].lower - TOUCHING <= q[place] <= limits[name].upper + TOUCHING
    ]


def motors_beyond(robot: Robot, efforts: Array | None) -> list[str]:
    """Motors whose effort is above their limit."""
    if efforts is None:
        return []
    limits = {joint.name: joint.limits.effort for joint in robot.description.joints}
    return [
        name
        for name, effort in zip(robot.actuated_joint_names, efforts, strict=True)
        if _bounded(limits.get(name, math.inf)) and abs(effort) > limits[name]
    ]


def _bounded(effort: float) -> bool:
    """Whether a limit of a file is a real one: some files write 0, or a huge number, for none."""
    return 0.0 < effort < 1e6


def pointed(name: str) -> str:
    """The link under the pointer."""
    text = escape(name) or "point at a link to see its name"
    return _part("name", text, f";color:{'inherit' if name else '#777'}")


def efforts(robot: Robot, gravity: Array | None, motors: Array | None, updates: int) -> str:
    """Gravity on the independent joints and what the motors hold against it, as bars.

    ``updates`` is that of the `status` which they belong to.
    """
    limits = {joint.name: joint.limits.effort for joint in robot.description.joints}
    base = robot.coordinates.base_nv
    parts = []
    tables = [
        ("gravity on joints", robot.independent_joint_names, gravity),
        ("efforts of motors", robot.actuated_joint_names, motors),
    ]
    if robot.independent_joint_names == robot.actuated_joint_names:
        tables = tables[1:]  # the first would say the same
    for title, names, values in tables:
        if values is None:
            parts.append(f"<div><b>{title}</b>: none while a loop does not close</div>")
            continue
        numbers = values[base:] if len(values) > len(names) else values
        parts.append(
            f"<div><b>{title}</b> [{_unit(robot, names)}]</div>{bars(names, numbers, limits)}"
        )
    # Over the scene, so that it stays in sight while the panel is scrolled.
    style = ";position:fixed;top:1em;left:1em;max-width:40vw;max-height:60vh;overflow:auto"
    style += ";background:#ffffffd0;border-radius:0.3em"
    return _part("efforts", "".join(parts), style, updates=updates)


def _unit(robot: Robot, names: Sequence[str]) -> str:
    """The unit of the efforts of joints, or both units if some joints slide and others turn."""
    slides = {joint.name for joint in robot.description.joints if joint.type == "prismatic"}
    units = {"N" if name in slides else "N m" for name in names}
    return ", ".join(sorted(units, reverse=True))


def bars(names: Sequence[str], values: Sequence[float] | Array, limits: Mapping[str, float]) -> str:
    """One bar per number: its share of the joint's limit, else of the largest number."""
    largest = max((abs(float(value)) for value in values), default=0.0)
    rows = []
    for name, number in zip(names, values, strict=True):
        value = float(number) + 0.0  # no -0
        limit = limits.get(name, math.inf)
        bounded = _bounded(limit)
        share = min(abs(value) / (limit if bounded else largest or 1.0), 1.0)
        left = 50.0 if value >= 0.0 else 50.0 * (1.0 - share)
        colour = RED if bounded and abs(value) > limit else BLUE
        of = f" of {limit:g}" if bounded else ""
        rows.append(
            f'<tr data-joint="{escape(name)}" data-value="{value!r}">'
            f'<td style="white-space:nowrap">{escape(name)}</td>'
            f'<td><div style="position:relative;width:7em;height:0.7em;background:{GREY}">'
            f'<div style="position:absolute;height:100%;left:{left:.1f}%;width:{50 * share:.1f}%;'
            f'background:{colour}"></div></div></td>'
            f'<td style="text-align:right;white-space:nowrap">{human(value)}{of}</td></tr>'
        )
    return f'<table style="width:100%;border-spacing:0.3em 0">{"".join(rows)}</table>'


def loops(health: Sequence[LoopHealth]) -> str:
    """Gap and conditioning of every cluster that has loops."""
    rows = [
        f'<tr data-cluster="{escape(loop.cluster)}"'
        f' style="color:{RED if loop.trouble else "inherit"}">'
        f'<td style="overflow-wrap:anywhere">{_wrapped(loop.constraints)}</td>'
        f'<td style="white-space:nowrap;padding:0 0.8em">{gap(loop.residual)}</td>'
        f"<td>{loop.conditioning:.2f}</td></tr>"
        for loop in health
    ]
    head = "<tr><th>loops of a cluster</th>"
    head += '<th style="padding:0 0.8em">gap</th><th>conditioning</th></tr>'
    style = "width:100%;text-align:left;overflow-wrap:normal"
    return _part("loops", f'<table style="{style}">{head}{"".join(rows)}</table>')


def _wrapped(names: Sequence[str]) -> str:
    """Names that may be broken after each underscore."""
    return escape(", ".join(names)).replace("_", "_<wbr>")


def gap(residual: float) -> str:
    """A gap [m, or sine of an angle] as a text for people."""
    if residual < 5e-7:
        return "0.000 mm"
    return f"{1000.0 * residual:.3f} mm" if residual < 1e-3 else f"{1000.0 * residual:.1f} mm"


def human(value: float) -> str:
    """A number with three digits that count, without exponent; what is negligible is 0."""
    if abs(value) < 5e-4:
        return "0"
    return (
        f"{value:.3f}"
        if abs(value) < 1.0
        else f"{value:.3g}"
        if abs(value) < 1e3
        else f"{value:.0f}"
    )


def legend(clusters: Sequence[tuple[str, Colour]]) -> str:
    """Legend of colours and lines; the clusters that loops make have their names."""
    rows = [_swatch(colour, f"cluster {escape(name)}") for name, colour in clusters]
    line = f'<span style="color:{RED}">&#9476;&#9476;</span>'
    rows += [
        _swatch((150, 150, 150), "fixed to the world"),
        "<div>&#9476;&#9476; loop constraint</div>",
        f"<div>{line} loop that does not close, or is near a dead point</div>",
        "<div>disc with a bar: rotor of a motor</div>",
    ]
    return _part("legend", "".join(rows))


def _swatch(colour: Colour, text: str) -> str:
    red, green, blue = colour
    box = f"display:inline-block;width:0.8em;height:0.8em;background:rgb({red},{green},{blue})"
    return f'<div><span style="{box}"></span> {text}</div>'


def joints(robot: Robot, q: Array) -> str:
    """Position of every joint of one coordinate, those that follow from others included."""
    independent = set(robot.independent_joint_names)
    joints = {joint.name: joint for joint in robot.description.joints}
    outside = joints_beyond(robot, q)
    rows = []
    for name, place in robot.coordinates.scalar_positions.items():
        joint, at = joints[name], float(q[place]) + 0.0
        beyond = name in outside
        unit = "m" if joint.type == "prismatic" else "rad"
        rows.append(
            f'<tr data-position="{escape(name)}" data-beyond="{str(beyond).lower()}"'
            f' style="color:{RED if beyond else "inherit"}"><td>{escape(name)}</td><td>'
            f"{'y' if name in independent else ''}</td>"
            f'<td style="text-align:right">{at:.3f} {unit}{" beyond its limit" if beyond else ""}'
            "</td></tr>"
        )
    return _part("joints", f"<table>{''.join(rows)}</table>")


def felt_masses(ellipsoids: Mapping[str, Ellipsoid | None]) -> str:
    """Mass that a push feels along the axes of each ellipsoid."""
    rows = []
    for link, found in ellipsoids.items():
        text = "none while a loop does not close"
        if found is not None:
            text = " / ".join("∞" if math.isinf(m) else f"{m:.3g}" for m in found.masses)
        rows.append(f'<div data-frame="{escape(link)}">{escape(link)}: {text} kg</div>')
    return _part("frames", "".join(rows))


def copied(text: str) -> str:
    """Text with a button that copies it: to be pasted into the loop file."""
    return (
        f'<div style="{STYLE}"><pre id="rbda-yaml" style="white-space:pre-wrap;margin:0 0 0.3em">'
        f"{escape(text)}</pre>"
        '<button onclick="navigator.clipboard.writeText('
        "document.getElementById('rbda-yaml').textContent)\">copy</button></div>"
    )


def node(level: int, message: str, values: Mapping[str, str]) -> str:
    """Diagnostics of a node: rate, latency, rejections."""
    rows = "".join(
        f'<tr data-key="{escape(key)}"><td>{escape(key)}</td><td>{escape(value)}</td></tr>'
        for key, value in values.items()
    )
    head = f'<b style="color:{RED if level else "inherit"}">{escape(message)}</b>'
    return _part("node", f"{head}<table>{rows}</table>", level=level)


def notes(lines: Sequence[str]) -> str:
    """Notes on the page."""
    return f'<div style="{STYLE}">{"<br>".join(map(escape, lines))}</div>'
