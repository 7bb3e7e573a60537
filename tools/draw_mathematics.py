"""Draws the pictures of docs/mathematics.md and docs/overview.md: `make screenshots`."""

import itertools
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("svg")
matplotlib.rcParams |= {"svg.hashsalt": "rbda_ros", "font.size": 11, "svg.fonttype": "path"}

from matplotlib import pyplot  # noqa: E402

from rbda_ros import load_robot  # noqa: E402
from rbda_ros.view.posing import branches  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
BLUE, ORANGE, GREEN, GREY, RED = "#4c78a8", "#f58518", "#54a24b", "#9a9aa2", "#dc141e"


def arrow(axes, start, end, colour, text="", shift=(0.0, 0.0), **style):
    """An arrow with its name at the end."""
    look = {"arrowstyle": "-|>", "color": colour, "lw": 2, "shrinkA": 0, "shrinkB": 0} | style
    axes.annotate("", end, start, arrowprops=look)
    axes.text(end[0] + shift[0], end[1] + shift[1], text, color=colour, ha="center", va="center")


def blank(width, height, x, y):
    """A sheet without axes."""
    figure, axes = pyplot.subplots(figsize=(width, height))
    axes.set(xlim=x, ylim=y, aspect="equal")
    axes.axis("off")
    return figure, axes


def spatial_vectors():
    """One motion, and one force, from frames A and B."""
    figure, axes = blank(7.0, 3.2, (-0.6, 6.4), (-0.9, 2.3))
    t = np.linspace(0.0, 2.0 * np.pi, 200)
    edge = 2.6 + 0.12 * np.sin(3 * t), 0.55 + 0.1 * np.cos(2 * t)
    body = edge[0] + 2.9 * np.cos(t) * (1 + 0.05 * np.sin(3 * t)), edge[1] + 1.05 * np.sin(t)
    axes.fill(*body, color=GREY, alpha=0.2, lw=0)
    for name, at in (("A", (0.4, 0.3)), ("B", (4.2, 0.3))):
        for way in ((0.6, 0.0), (0.0, 0.6)):
            arrow(axes, at, (at[0] + way[0], at[1] + way[1]), "black", lw=1.2)
        axes.text(at[0] - 0.2, at[1] - 0.2, name, ha="center", va="center")
    arrow(axes, (0.4, 0.3), (4.2, 0.3), GREY, lw=1, linestyle="--")
    axes.text(2.5, 0.08, "$r$", color=GREY, ha="center", va="center")
    arrow(axes, (4.2, 0.3), (4.2, 2.0), BLUE, r"$v_B = v_A + \omega \times r$", (1.1, 0.1))
    arrow(axes, (4.2, 0.3), (4.2, -0.6), ORANGE, "$f$", (0.2, 0.0))
    turn = {"connectionstyle": "arc3,rad=0.7"}
    arrow(axes, (0.75, -0.05), (0.75, 0.65), BLUE, r"$\omega$", (0.4, -0.05), **turn)
    arrow(axes, (0.05, 0.65), (0.05, -0.05), ORANGE, r"$n_A = r \times f$", (0.1, -0.35), **turn)
    return figure


def two_sweeps():
    """Motion outward, force inward, on a chain of three bodies."""
    figure, axes = blank(7.0, 2.5, (-0.7, 6.3), (-0.8, 1.7))
    points = np.array([(0.0, 0.0), (1.9, 0.75), (3.9, 0.35), (5.8, 1.0)])
    axes.plot([-0.3, 0.3], [-0.12, -0.12], color="black", lw=4)
    for k, (a, b) in enumerate(itertools.pairwise(points), start=1):
        axes.plot([a[0], b[0]], [a[1], b[1]], color=GREY, lw=9, alpha=0.35, solid_capstyle="round")
        axes.text(*((a + b) / 2), f"{k}", ha="center", va="center")
        across = np.array([-(b - a)[1], (b - a)[0]]) / np.linalg.norm(b - a)
        begin, end = a + 0.15 * (b - a), a + 0.85 * (b - a)
        arrow(axes, begin + 0.3 * across, end + 0.3 * across, BLUE)
        arrow(axes, end - 0.3 * across, begin - 0.3 * across, ORANGE)
        axes.text(
            a[0],
            a[1] - (0.45 if k == 1 else 0.78),
            rf"$\tau_{k} = S_{k}^T f_{k}$",
            ha="center",
            color=ORANGE,
        )
    axes.plot(*points[:-1].T, "o", color="white", markeredgecolor="black", ms=9)
    axes.text(1.2, 1.35, r"outward: $v_i,\ a_i$", color=BLUE)
    axes.text(5.0, 0.1, r"inward: $f_i$", color=ORANGE)
    return figure


def four_bar_levers():
    """Both branches of the cookbook's four-bar, and the lever of its rocker."""
    bar = load_robot(*(ROOT / "docs" / "cookbook" / f"four_bar.{end}" for end in ("urdf", "yaml")))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.0, 3.1), layout="constrained")
    here = bar.close({"crank": 1.2})
    both = branches(bar, bar.tree.clusters[0].name, here)
    for q, colour, style in zip(reversed(both), (GREY, BLUE), ("--", "-"), strict=True):
        ends = ("crank_link", "coupler_link", ("coupler_link", (0.4, 0.03, 0.0)), "rocker_link")
        points = np.array([bar.frame_pose(q, end)[:3, 3] for end in ends])
        left.plot(points[:, 0], points[:, 2], style, color=colour, lw=4, marker="o", mfc="white")
    middles = (points[1:] + points[:-1]) / 2.0
    shifts = {"crank": (-0.08, 0.04), "coupler": (-0.14, 0.05), "rocker": (0.03, 0.0)}
    for (name, (right_by, up_by)), (x, _, z) in zip(shifts.items(), middles, strict=True):
        left.text(x + right_by, z + up_by, name, color=BLUE)
    left.set(aspect="equal", title="two ways to close, crank at 1.2 rad")
    left.axis("off")
    crank = np.linspace(0.0, 2.0 * np.pi, 200)
    poses = [bar.close({"crank": a}) for a in crank]
    lever = [bar.spanning_acceleration(q, [0.0], [1.0])[2] for q in poses]
    right.axhline(0.0, color=GREY, lw=1)
    right.plot(crank, lever, color=GREEN, lw=2)
    zero = np.flatnonzero(np.diff(np.sign(lever)))
    right.plot(crank[zero], np.zeros(len(zero)), "o", color=RED)
    right.set(xlabel="crank [rad]", title="G: speed of the rocker per speed of the crank")
    return figure


def overview():
    """One four-bar with its motor: the words of docs/overview.md."""
    bar = load_robot(*(ROOT / "docs" / "cookbook" / f"four_bar.{end}" for end in ("urdf", "yaml")))
    ends = ("crank_link", "coupler_link", ("coupler_link", (0.4, 0.03, 0.0)), "rocker_link")

    def points(q):
        return np.array([bar.frame_pose(q, end)[:3, 3] for end in ends])[:, ::2]

    def draw(axes, at, colour=BLUE, style="-"):
        axes.plot(*at.T, style, color=colour, lw=4, marker="o", mfc="white", ms=9)

    figure, sheets = pyplot.subplots(1, 3, figsize=(10.5, 3.4), layout="constrained")
    titles = ("joints, y, motor, cluster", "two branches", "a dead point of the rocker")
    for axes, title in zip(sheets, titles, strict=True):
        axes.set(aspect="equal", title=title, xlim=(-0.22, 0.62), ylim=(-0.32, 0.42))
        axes.axis("off")
        axes.plot([-0.06, 0.46], [-0.012, -0.012], color=GREY, lw=5, alpha=0.5)
    here = bar.close({"crank": -0.2})
    both = branches(bar, bar.tree.clusters[0].name, here)

    axes, at = sheets[0], points(here)
    around = np.array([(-0.2, -0.08), (-0.2, 0.38), (0.6, 0.38), (0.6, -0.08)])
    axes.fill(*around.T, color=GREEN, alpha=0.12, lw=0)
    axes.text(-0.17, 0.33, "cluster", color=GREEN)
    draw(axes, at)
    axes.plot(*at[2], "o", color="white", mec=RED, mew=2, ms=12)
    axes.text(at[2][0] + 0.02, at[2][1] + 0.05, "cut joint", color=RED, ha="center")
    axes.add_patch(pyplot.Circle(at[0], 0.05, fill=False, color=ORANGE, lw=3))
    axes.text(
        at[0][0], at[0][1] - 0.2, "motor, gear, rotor\nactuated joint", color=ORANGE, ha="center"
    )
    axes.text(at[0][0] - 0.06, at[0][1] + 0.03, "crank: y", color=BLUE, ha="right")
    axes.text(*((at[1] + at[2]) / 2 + (-0.02, 0.05)), "coupler", color=BLUE, ha="right")
    axes.text(at[3][0] + 0.04, at[3][1] + 0.08, "rocker", color=BLUE)

    for q, colour, style in zip(reversed(both), (GREY, BLUE), ("--", "-"), strict=True):
        draw(sheets[1], points(q), colour, style)
    sheets[1].text(0.2, 0.33, "the same crank angle,\nanother assembly", ha="center", color=GREY)

    crank = np.linspace(0.0, 2.0 * np.pi, 2000)
    poses = [bar.close({"crank": a}) for a in crank]
    rocker = [q[2] for q in poses]
    draw(sheets[2], points(poses[int(np.argmax(rocker))]))
    text = "crank and coupler in line: the rocker\nno longer determines the crank"
    sheets[2].text(0.2, -0.2, text, ha="center", color=RED)
    return figure


def main():
    for make in (spatial_vectors, two_sweeps, four_bar_levers, overview):
        path = ROOT / "docs" / "pictures" / f"{make.__name__}.svg"
        figure = make()
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight", transparent=False)
        print(path.relative_to(ROOT), path.stat().st_size)


if __name__ == "__main__":
    main()
