"""The panel beside the scene: sliders, numbers, branches, frames. `page` handles its requests."""

from __future__ import annotations

import math
import queue
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np

from rbda_ros.robot import Robot
from rbda_ros.spatial import Array
from rbda_ros.view import readouts
from rbda_ros.view.drawn_bodies import COLOURS
from rbda_ros.view.layers import LAYERS
from rbda_ros.view.plotted import PARTS, Ellipsoid, Sweep
from rbda_ros.view.posing import Drive, Posed, Slider

Request = Literal[
    "pose", "drive", "home", "branch", "plot", "frames", "colours", "layers", "search", "name"
]
"""Requests of a user; the same one twice before it is answered is answered once."""
STEPS = 1000
"""Steps of a slider, at least."""
FEW = 12
"""Sliders up to this number need no groups and no search."""
NOTHING = "-"
MATERIALS, CLUSTERS = "materials", "clusters"


class Panel:
    """Everything beside the scene. viser calls back in threads of its own.

    Args:
        server: a viser.ViserServer.
        drives: what it can be moved by.
        values: where the sliders of each stand.
        moves: whether sliders move it; else they show where it is.
        lines: notes for the foot of the panel.
        materials: whether the description has colours of its own.

    Attributes:
        updates: how often the robot was drawn.
    """

    def __init__(
        self,
        server: Any,
        robot: Robot,
        drives: Mapping[str, Drive],
        values: Mapping[str, Mapping[str, float]],
        moves: bool,
        lines: Sequence[str],
        materials: bool = False,
    ) -> None:
        self._gui, self._robot, self._drives = server.gui, robot, drives
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._quiet = False
        self.updates = 0
        self._texts: dict[int, str] = {}
        self._chosen: dict[str, None] = {}
        self._status = self._gui.add_html("")
        self._name = self._gui.add_html(readouts.pointed(""))
        self._node = self._gui.add_html("", visible=False)
        self._efforts = self._gui.add_html("")
        self._add_history(moves)
        self._add_sliders(values, moves)
        with self._gui.add_folder("every joint", expand_by_default=False):
            self._joints = self._gui.add_html("")
        self._add_loops(moves)
        self._add_layers(materials)
        self._add_frames()
        if lines:
            with self._gui.add_folder("notes", expand_by_default=False):
                self._gui.add_html(readouts.notes(lines))

    def _add_sliders(self, values: Mapping[str, Mapping[str, float]], moves: bool) -> None:
        self._sliders: dict[str, dict[str, Any]] = {}
        self._folders: dict[str, Any] = {}
        options = tuple(self._drives)
        self._switch = self._gui.add_dropdown(
            "move by", options, visible=moves and len(options) > 1
        )
        self._on(self._switch.on_update, "drive")
        most = max((len(drive.sliders) for drive in self._drives.values()), default=0)
        self._search = self._gui.add_text("search", "", visible=most > FEW)
        self._on(self._search.on_update, "search")
        self._groups: list[tuple[Any, list[str]]] = []
        for name, drive in self._drives.items():
            self._folders[name] = self._gui.add_folder(name, visible=name == "joints")
            with self._folders[name]:
                self._sliders[name] = {}
                for title, sliders in _grouped(self._robot, drive.sliders).items():
                    folder: Any = nullcontext()
                    if title:
                        folder = self._gui.add_folder(title, expand_by_default=most <= 2 * FEW)
                        self._groups.append((folder, [slider.name for slider in sliders]))
                    with folder:
                        for slider in sliders:
                            handle = self._add_slider(slider, values[name][slider.name], moves)
                            self._sliders[name][slider.name] = handle
                if drive.note:
                    self._gui.add_html(readouts.notes([drive.note]))
            for handle in self._sliders[name].values():
                self._on(handle.on_update, "pose")
        if moves:
            self._on(self._gui.add_button("Reset pose").on_click, "home")

    def _add_slider(self, slider: Slider, value: float, moves: bool) -> Any:
        step = _round_step((slider.upper - slider.lower) / STEPS)
        lower, upper = _short_range(slider)
        return self._gui.add_slider(
            f"{slider.name} [{slider.unit}]",
            lower,
            upper,
            step,
            _on_step(value, step, lower, upper),
            hint=f"{slider.lower:.3g} to {slider.upper:.3g} {slider.unit}",
            disabled=not moves,
        )

    def _add_history(self, moves: bool) -> None:
        """Efforts over time, of one motor of a node that is followed."""
        self._history: Any = None
        motors = self._robot.actuated_joint_names
        self._history_folder = self._gui.add_folder("efforts over time", visible=not moves)
        with self._history_folder:
            self._motor = self._gui.add_dropdown("motor", tuple(motors) or (NOTHING,))

    def _add_layers(self, materials: bool) -> None:
        """Controls of the picture: colours, layers over the robot, and the legend."""
        clusters = [
            (node.name, COLOURS[k % len(COLOURS)])
            for k, node in enumerate(self._robot.cluster_nodes)
            if node.loop is not None
        ]
        with self._gui.add_folder("show"):
            options = (MATERIALS, CLUSTERS) if materials else (CLUSTERS, MATERIALS)
            self._colours = self._gui.add_dropdown("colours", options, visible=materials)
            self._on(self._colours.on_update, "colours")
            self._layers = {name: self._gui.add_checkbox(name, False) for name in LAYERS}
            for box in self._layers.values():
                self._on(box.on_update, "layers")
        with self._gui.add_folder("legend", expand_by_default=False):
            self._gui.add_html(readouts.legend(clusters))

    def _add_loops(self, moves: bool) -> None:
        self._loops = None
        self._plot: Any = None
        varying = [n.name for n in self._robot.cluster_nodes if n.loop and not n.loop.constant]
        if not self._robot.has_loops:
            return
        with self._gui.add_folder("loops"):
            self._loops = self._gui.add_html("")
            self._branch = self._gui.add_dropdown(
                "linkage", tuple(varying) or (NOTHING,), visible=len(varying) > 1
            )
            if varying and moves:
                self._on(self._gui.add_button("other branch").on_click, "branch")
            self._yaml = self._gui.add_html("", visible=bool(varying))
            joints = (NOTHING, *self._sliders["joints"])
            self._along = self._gui.add_dropdown(
                "conditioning along", joints, visible=bool(varying) and moves
            )
            self._on(self._along.on_update, "plot")

    def _add_frames(self) -> None:
        with self._gui.add_folder("frames", expand_by_default=False):
            links = [body.name for body in self._robot.spanning_tree.bodies]
            self._link = self._gui.add_dropdown("link", tuple(links) or (NOTHING,))
            show = self._gui.add_button("show its inertia")
            clear = self._gui.add_button("hide all")
            self._masses = self._gui.add_html("", visible=False)

        def choose(_: Any) -> None:
            if self._link.value in links:
                self._chosen[self._link.value] = None
            self._requests.put("frames")

        def forget(_: Any) -> None:
            self._chosen.clear()
            self._requests.put("frames")

        show.on_click(choose)
        clear.on_click(forget)

    def _on(self, register: Callable[[Callable[[Any], None]], Any], request: Request) -> None:
        def ask(_: Any) -> None:
            if not self._quiet:
                self._requests.put(request)

        register(ask)

    def ask(self, request: Request) -> None:
        """Put a request of the scene among those of the panel; from any thread."""
        self._requests.put(request)

    # Requests.

    def requests(self, seconds: float) -> list[Request]:
        """Requests since the last call, each once; waits for them for a while."""
        asked: dict[Request, None] = {}
        try:
            asked[self._requests.get(timeout=seconds)] = None
            while True:
                asked[self._requests.get_nowait()] = None
        except queue.Empty:
            return list(asked)

    @property
    def drive(self) -> str:
        """Name of the controls that move the robot."""
        return self._switch.value

    @property
    def values(self) -> dict[str, float]:
        """Values of the sliders."""
        return {name: float(h.value) for name, h in self._sliders[self.drive].items()}

    @property
    def linkage(self) -> str:
        """The cluster whose branch is to change."""
        return self._branch.value

    @property
    def plotted(self) -> str | None:
        """The joint to plot the conditioning along."""
        return None if self._loops is None or self._along.value == NOTHING else self._along.value

    @property
    def watched(self) -> str | None:
        """The motor whose efforts are plotted over time."""
        return None if self._motor.value == NOTHING else self._motor.value

    @property
    def by_clusters(self) -> bool:
        """Whether bodies have the colours of their clusters; else those of their materials."""
        return bool(self._colours.value == CLUSTERS)

    @property
    def layers(self) -> list[str]:
        """Layers that are shown over the robot."""
        return [name for name, box in self._layers.items() if box.value]

    @property
    def frames(self) -> list[str]:
        """Links whose frames are chosen."""
        return list(self._chosen)

    # Display.

    def slide(self, name: str, value: float) -> None:
        """Move a slider, as a user would."""
        handle = self._sliders[self.drive][name]
        handle.value = min(max(value, handle.min), handle.max)

    def set_values(self, drive: str, values: Mapping[str, float]) -> None:
        """Set the sliders without a request to move the robot."""
        self._quiet = True
        try:
            for name, handle in self._sliders[drive].items():
                handle.value = _on_step(values[name], handle.step, handle.min, handle.max)
        finally:
            self._quiet = False

    def show_drive(self) -> None:
        """Show the sliders that are chosen, and no others."""
        for name, folder in self._folders.items():
            folder.visible = name == self.drive

    def show_found(self) -> None:
        """Show only the sliders whose names contain the text of the search."""
        wanted = self._search.value.strip().lower()
        for sliders in self._sliders.values():
            for name, handle in sliders.items():
                handle.visible = wanted in name.lower()
        for folder, names in self._groups:
            folder.visible = any(wanted in name.lower() for name in names)

    def show_numbers(self, posed: Posed) -> None:
        """Whether the loops of a robot that moved are closed, and its tables."""
        self._put(self._status, readouts.status(self._robot, posed, self.updates))
        bars = readouts.efforts(self._robot, posed.gravity, posed.efforts, self.updates)
        self._put(self._efforts, bars)
        self._put(self._joints, readouts.joints(self._robot, posed.q))
        if self._loops is not None:
            self._put(self._loops, readouts.loops(posed.loops))

    def show_name(self, name: str) -> None:
        """Name of the link under the pointer; empty for none."""
        self._put(self._name, readouts.pointed(name))

    def show_branch(self, text: str) -> None:
        """The assembly that picks the present branch, as YAML."""
        if self._loops is not None:
            self._put(self._yaml, readouts.copied(text))

    def show_masses(self, ellipsoids: Mapping[str, Ellipsoid | None]) -> None:
        """Masses felt at the chosen frames."""
        self._masses.visible = bool(ellipsoids)
        self._put(self._masses, readouts.felt_masses(ellipsoids))

    def show_node(self, content: str) -> None:
        """Diagnostics of a running node."""
        self._node.visible = True
        self._put(self._node, content)

    def show_history(self, data: tuple[Array, ...]) -> None:
        """Plot efforts [N m, N] over time [s]: in all, and what they are for."""
        if len(data[0]) < 2:
            return
        if self._history is not None:
            self._history.data = data
            return
        colours = ("#222222", readouts.BLUE, "#54a24b", "#f58518")
        lines = [
            {"label": part, "stroke": colour, "width": 2}
            for part, colour in zip(PARTS, colours, strict=True)
        ]
        with self._history_folder:
            self._history = self._add_plot("seconds", lines, {"auto": True}, data)

    def show_sweep(self, found: Sweep | None, at: float) -> None:
        """Plot the conditioning along a slider, with the present position marked."""
        if found is None or len(found.position) < 2:
            if self._plot is not None:
                self._plot.visible = False
            return
        mark = np.full(len(found.position), np.nan)
        mark[int(np.argmin(np.abs(found.position - at)))] = np.interp(
            at, found.position, found.conditioning
        )
        data = found.position, found.conditioning, mark
        if self._plot is None:
            point = {"show": True, "size": 8, "fill": readouts.RED}
            lines: list[dict[str, Any]] = [
                {"label": "conditioning", "stroke": readouts.BLUE, "width": 2},
                {"label": "now", "stroke": readouts.RED, "points": point},
            ]
            with self._gui.add_folder("conditioning"):
                self._plot = self._add_plot("position", lines, {"range": (0.0, 1.05)}, data)
        else:
            self._plot.data = data
            self._plot.visible = True

    def _add_plot(
        self,
        x: str,
        lines: Sequence[Mapping[str, Any]],
        y_scale: Mapping[str, Any],
        data: tuple[Array, ...],
    ) -> Any:
        """A plot of lines over x; the settings of each line and of the y axis are uPlot's."""
        series: Any = ({"label": x}, *lines)
        scales: Any = {"x": {"time": False, "auto": True}, "y": y_scale}
        return self._gui.add_uplot(data=data, series=series, scales=scales, aspect=2.0)

    def _put(self, handle: Any, content: str) -> None:
        """Send text only if it changed."""
        if self._texts.get(id(handle)) != content:
            self._texts[id(handle)] = handle.content = content


def _round_step(least: float) -> float:
    """The next larger of 1, 2, 5, 10 ... to a step: numbers in the box stay short."""
    decade = 10.0 ** math.floor(math.log10(max(least, 1e-6)))
    return next(k * decade for k in (1.0, 2.0, 5.0, 10.0) if k * decade >= least * (1.0 - 1e-9))


def _short_range(slider: Slider) -> tuple[float, float]:
    """Ends of a slider with few digits, inside its range where that is left."""
    lower, upper = (
        math.ceil(1000.0 * slider.lower) / 1000.0,
        math.floor(1000.0 * slider.upper) / 1000.0,
    )
    return (lower, upper) if lower < upper else (slider.lower, slider.upper)


def _on_step(value: float, step: float, lower: float, upper: float) -> float:
    """A value rounded to the digits of a step, inside the range."""
    digits = max(0, -math.floor(math.log10(step)))
    return min(max(round(value, digits), lower), upper)


def _grouped(robot: Robot, sliders: Sequence[Slider]) -> dict[str, list[Slider]]:
    """Sliders by the limb that their joint is on, where they are many; else in one group.

    A limb begins where the tree branches; it has the name of its first link.
    """
    if len(sliders) <= FEW:
        return {"": list(sliders)}
    bodies = robot.spanning_tree.bodies
    children: dict[int, int] = {}
    for body in bodies:
        if body.mass > 0.0:
            children[body.parent] = children.get(body.parent, 0) + 1
    limb: dict[int, str] = {0: "base"}
    for number, body in enumerate(bodies, start=1):
        begins = children.get(body.parent, 0) > 1 or body.parent == 0
        limb[number] = body.name if begins else limb[body.parent]
    number_of = {body.joint.name: number for number, body in enumerate(bodies, start=1)}
    groups: dict[str, list[Slider]] = {}
    for slider in sliders:
        groups.setdefault(limb[number_of[slider.joint]], []).append(slider)
    return groups
