"""Files that an identification writes: URDF, loop file and parameters as identified, and a report.

The report is one HTML file with tables and plots.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from io import StringIO
from typing import Any

import numpy as np
import yaml
from lxml import etree

from rbda_ros.cluster_tree.spanning_tree import IDENTITY, inertial_parameters, link_inertia
from rbda_ros.control.settings import Settings, joint_gains
from rbda_ros.description.model import MOMENTS
from rbda_ros.description.report import Report
from rbda_ros.description.xml_text import parse_xml
from rbda_ros.errors import InputError
from rbda_ros.recordings.bags import require
from rbda_ros.recordings.identification import Identified
from rbda_ros.robot import Robot
from rbda_ros.robot.inertia_chart import is_body
from rbda_ros.robot.parameter_fit import about_com, payload_of_parameters
from rbda_ros.robot.payloads import Payload
from rbda_ros.spatial import Array


def patched_urdf(text: str, robot: Robot, found: Identified) -> str:
    """The URDF with identified inertias and friction.

    What a body of several links has gained is put on the link that its joint moves. Where that
    link alone would be no body then, it takes all of it, and the others keep none.

    Args:
        text: the URDF.
        robot: the model of it.
        found: what was identified.
    """
    root = parse_xml(text, Report())
    if root is None or root.tag != "robot":
        raise InputError("the description is no URDF; convert it with `rbda_ros convert` first")
    links = {link.get("name", ""): link for link in root.findall("link")}
    if "inertia" in found.what:
        for k, name in enumerate(found.parameters.bodies):
            if name in links:
                _patch_body(links, robot, k, found)
    if "friction" in found.what:
        for joint in root.findall("joint"):
            if joint.get("name") in robot.independent_joint_names:
                _patch_friction(joint, found)
    return etree.tostring(root, pretty_print=True, encoding="unicode")


def patched_loops(text: str, found: Identified) -> str:
    """The loop file with identified inertias of its rotors; as it is where it has none."""
    loops = yaml.safe_load(text) if text else None
    rotors = loops.get("rotors") if isinstance(loops, dict) else None
    if "inertia" not in found.what or not rotors:
        return text
    for name, rotor in rotors.items():
        link = f"{name}_rotor_link"
        if link in found.parameters.bodies and isinstance(rotor, dict):
            k = 10 * found.parameters.bodies.index(link)
            before, after = (
                np.abs(values[k + 4 : k + 10]).sum()
                for values in (found.parameters.values, found.fit.values)
            )
            for key in ("inertia", "mass"):
                if key in rotor and before:
                    rotor[key] = float(rotor[key]) * float(after / before)
    return yaml.safe_dump(loops, sort_keys=False, default_flow_style=None)


def payload_of(found: Identified) -> Payload:
    """The identified payload."""
    assert found.payload is not None
    start = found.parameters.names.index("payload.m")
    return payload_of_parameters(found.payload, found.fit.values[start : start + 10])


def payload_call(payload: Payload, node: str) -> str:
    """The command that has a running node carry a payload."""
    request = {
        "name": "identified",
        "link": payload.link,
        "inertia": {
            "m": payload.mass,
            "com": dict(zip("xyz", payload.com, strict=True)),
            **dict(zip(MOMENTS, payload.inertia, strict=True)),
        },
    }
    text = yaml.safe_dump(request, default_flow_style=True, width=10**6).strip()
    return f'ros2 service call {node}/set_payload rbda_ros/srv/SetPayload "{text}"'


def offset_parameters(settings: Settings, found: Identified) -> str:
    """A parameter file with the offsets of positions: those there were, and those found on top."""
    offsets = joint_gains("joint_offsets", settings.joint_offsets, signed=True)
    for name, offset in found.offsets.items():
        offsets = {**offsets, name: round(offsets.get(name, 0.0) + offset, 6)}
    text = yaml.safe_dump(offsets, default_flow_style=True, width=10**6).strip()
    return yaml.safe_dump({"/**": {"ros__parameters": {"joint_offsets": text}}}, width=10**6)


def _patch_body(links: dict[str, Any], robot: Robot, k: int, found: Identified) -> None:
    place = slice(10 * k, 10 * k + 10)
    before, after = found.parameters.values[place], found.fit.values[place]
    if np.array_equal(before, after):
        return
    main = found.parameters.bodies[k]
    own = _link_parameters(robot, main) + after - before
    if not is_body(own) and is_body(after):
        own = after
        for name, link in links.items():
            if name != main and robot.spanning_tree.links[name].body == k + 1:
                for inertial in link.findall("inertial"):
                    link.remove(inertial)
    _write_inertial(links[main], own)


def _link_parameters(robot: Robot, name: str) -> Array:
    """(10,) of one link, in its own frame."""
    (link,) = (link for link in robot.description.links if link.name == name)
    if link.inertia is None:
        return np.zeros(10)
    return inertial_parameters(link_inertia(link.inertia, IDENTITY))


def _write_inertial(link: Any, parameters: Array) -> None:
    mass, com, inertia = about_com(parameters)
    for old in link.findall("inertial"):
        link.remove(old)
    inertial = etree.Element("inertial")
    xyz = " ".join(repr(x) for x in com)
    etree.SubElement(inertial, "origin", xyz=xyz, rpy="0 0 0")
    etree.SubElement(inertial, "mass", value=repr(mass))
    values = {name: repr(value) for name, value in zip(MOMENTS, inertia, strict=True)}
    etree.SubElement(inertial, "inertia", values)
    link.insert(0, inertial)


def _patch_friction(joint: Any, found: Identified) -> None:
    name = joint.get("name")
    dynamics = joint.find("dynamics")
    if dynamics is None:
        dynamics = etree.SubElement(joint, "dynamics")
    for kind in ("damping", "friction"):
        # Friction that drives the joint is noise: no joint has it.
        dynamics.set(kind, repr(max(0.0, found.value(f"{name}.{kind}"))))


STYLE = (
    "body{font:15px sans-serif;max-width:60em;margin:2em auto}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}.dim{color:#888}"
)


def html_report(robot: Robot, found: Identified, commands: Mapping[str, str]) -> str:
    """The report as one HTML text, with its plots in it.

    Args:
        robot: the nominal model.
        found: what was identified.
        commands: what to tell a node, by title, e.g. how to have it carry the payload.
    """
    parts = [
        f"<h1>{escape(robot.name)}: identified {escape(', '.join(found.what))}</h1>",
        f"<p>Fitted to {len(found.fitted.times)} averages of the recordings, and validated by the "
        f"{len(found.judged.times)} after them, which were not fitted. Measured minus model, root "
        "mean square:</p>",
        _efforts_table(found),
        _svg(draw_fit(found)),
        "<h2>Parameters</h2><p>Intervals contain the true value with a probability of 95 %. The "
        "motion does not determine parameters in grey: they keep the value of the description.</p>",
        _parameters_table(found),
        _unknown(found),
        *(f"<h2>{escape(t)}</h2><pre>{escape(c)}</pre>" for t, c in commands.items()),
    ]
    title = f"<title>{escape(robot.name)}</title><style>{STYLE}</style>"
    return f'<!doctype html><meta charset="utf-8">{title}{"".join(parts)}\n'


def _efforts_table(found: Identified) -> str:
    rows = zip(
        found.rows,
        found.nominal_rms,
        found.identified_rms,
        found.fit.noise,
        found.fit.correlation,
        (found.fit.weights < 0.5).mean(axis=0),
        strict=True,
    )
    body = "".join(
        f"<tr><td>{escape(name)}</td><td>{nominal:.4g}</td><td>{identified:.4g}</td>"
        f"<td>{noise:.4g}</td><td>{correlation:.2f}</td><td>{100 * outliers:.1f} %</td></tr>"
        for name, nominal, identified, noise, correlation, outliers in rows
    )
    titles = ("joint", "nominal", "identified", "noise", "its correlation", "outliers")
    head = "".join(f"<th>{title}</th>" for title in titles)
    return (
        f"<table><tr>{head}</tr>{body}</table><p>Correlation of what is left with what was left "
        "one average before: far above zero, the model lacks something, and intervals are wider "
        "for it.</p>"
    )


def _parameters_table(found: Identified) -> str:
    fit, rows = found.fit, []
    for k, name in enumerate(found.parameters.names):
        if fit.before[k] <= 0.0:
            continue
        low, high = fit.intervals[k]
        dim = "" if fit.excited[k] else ' class="dim"'
        rows.append(
            f"<tr{dim}><td>{escape(name)}</td><td>{found.parameters.values[k]:.4g}</td>"
            f"<td>{fit.values[k]:.4g}</td><td>{low:.4g} to {high:.4g}</td></tr>"
        )
    head = "<tr><th>parameter</th><th>nominal</th><th>identified</th><th>interval</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _unknown(found: Identified) -> str:
    if not found.unknown:
        return "<p>The motion determines every parameter.</p>"
    return (
        f"<p>The motion does not determine {len(found.unknown)} parameters: "
        f"{escape(', '.join(found.unknown))}. Where efforts depend on them at all, "
        "<code>rbda_ros excite</code> finds motions that determine them.</p>"
    )


def _svg(figure: Any) -> str:
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def draw_fit(found: Identified) -> Any:
    """A figure: efforts measured and computed, in the time that judges; spectra of residuals."""
    require("matplotlib", "recordings")
    from matplotlib.figure import Figure

    judged = found.judged
    models = {"nominal": found.parameters.values, "identified": found.fit.values}
    efforts = {name: judged.A @ values for name, values in models.items()}
    count = len(found.rows)
    figure = Figure(figsize=(11, 2.4 * count), layout="constrained")
    axes: Any = figure.subplots(count, 2, squeeze=False, width_ratios=(3, 2))
    times = judged.times - judged.times[0]
    for j, name in enumerate(found.rows):
        left, right = axes[j]
        left.plot(times, judged.efforts[:, j], color="0.7", label="measured")
        for label, values in efforts.items():
            left.plot(times, values[:, j], label=label, linewidth=1)
            frequency, size = _spectrum(times, judged.efforts[:, j] - values[:, j])
            right.semilogy(frequency, size, label=label, linewidth=1)
        left.set_ylabel(name)
    axes[0][0].legend(loc="upper right")
    axes[0][0].set_title("efforts in the time that judges")
    axes[0][1].set_title("spectrum of the residual")
    axes[-1][0].set_xlabel("time [s]")
    axes[-1][1].set_xlabel("frequency [Hz]")
    return figure


def _spectrum(times: Array, values: Array) -> tuple[Array, Array]:
    """Frequencies [Hz], and the amplitude at each."""
    if len(times) < 4:
        return np.zeros(1), np.ones(1)
    step = float(np.median(np.diff(times))) or 1.0
    window = np.hanning(len(values))
    amplitude = np.abs(np.fft.rfft((values - values.mean()) * window)) * 2.0 / window.sum()
    frequency = np.asarray(np.fft.rfftfreq(len(values), step)[1:], float)
    return frequency, np.maximum(amplitude[1:], 1e-12)
