"""Report of an identification: tables and plots in one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from io import StringIO
from typing import Any

import numpy as np

from rbda_ros.recordings.bags import require
from rbda_ros.recordings.identification import Identified
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array

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
