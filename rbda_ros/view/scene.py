"""The robot in three dimensions: bodies in the colours of their clusters, loops as dashed lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbda_ros.description.model import Constraint, CutJoint
from rbda_ros.description.orientation import to_quaternion
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array
from rbda_ros.view import hover, readouts
from rbda_ros.view.drawn_bodies import DrawnBodies
from rbda_ros.view.hover import Ray
from rbda_ros.view.layers import Layers
from rbda_ros.view.plotted import Ellipsoid
from rbda_ros.view.posing import Posed
from rbda_ros.view.shapes import Shape, on_body, robot_size

LOOP, TROUBLE, FLOOR = (40, 40, 60), (220, 20, 30), (205, 205, 212)
SKY, GROUND, BRIGHTNESS = (255, 255, 255), (95, 95, 115), 4.0
"""Colours and strength of the light that comes from all sides."""
ABOVE = (-0.25, -0.5, 0.83)
"""Where the light's sky is: top, left and right of a box differ as the camera sees it."""
FROM = np.array([0.75, -0.9, 0.35])
BESIDE = np.array([0.77, 0.64, 0.0])
"""Where the camera is, and to its right: the robot stands to the left of the panel."""
QUARTERS = ((1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (-1.0, 0.0))
"""Cosine and sine of turns of the camera; the first is taken where all are the same."""
FLAT = 0.02
"""Least semi-axis of an ellipsoid, as a share of the longest: a disc must be seen."""


class Scene:
    """Scene of one robot in viser.

    Args:
        server: a viser.ViserServer.
        shapes: what it looks like.
        collision: its collision shapes.
        poses: (R, p) of its bodies at first, as `Poser.body_poses` gives them.
        unclosed: constraints that the model lacks because they do not close.
    """

    def __init__(
        self,
        server: Any,
        robot: Robot,
        shapes: Sequence[Shape],
        collision: Sequence[Shape],
        poses: tuple[Array, Array],
        unclosed: Sequence[Constraint] = (),
    ) -> None:
        self._scene = server.scene
        # Shadows and a map of the surroundings would cost more than all the rest; the highlights
        # of lamps hide the colours of clusters.
        self._scene.configure_default_lights(enabled=False, cast_shadow=False)
        self._scene.configure_environment_map(None)
        self._scene.add_light_hemisphere(
            "/sky", sky_color=SKY, ground_color=GROUND, intensity=BRIGHTNESS, position=ABOVE
        )
        self._size = robot_size(robot)
        self._lines = LoopLines(robot, unclosed)
        self._layers = Layers(self._scene, robot, collision, self._size)
        self._frames: dict[str, tuple[Any, Any]] = {}
        self._bodies = DrawnBodies(self._scene, robot, shapes)
        self._shapes, self._robot = shapes, robot
        self._name = self._scene.add_label("/name", "", visible=False)
        self._loops: Any = None
        self._label: Any = None
        if self._lines.lines:
            self._colours: Any = None
            dashes = self._lines.dashes(self._lines.corners(*poses))
            self._loops = self._scene.add_line_segments(
                "/loops", dashes, LOOP, thickness=3.0, thickness_units="screen"
            )
            self._label = self._scene.add_label(
                "/trouble", "", visible=False, anchor="bottom-center"
            )
        self._set_up(server, poses, shapes)

    def _set_up(self, server: Any, poses: tuple[Array, Array], shapes: Sequence[Shape]) -> None:
        """Camera and floor around what is there."""
        still, moving = [np.zeros((1, 3))], [poses[1].reshape(-1, 3)]
        for shape in shapes:
            (moving if shape.body else still).append(shape.placed(*poses))
        points = np.concatenate([*still, *moving])
        low, high = points.min(axis=0), points.max(axis=0)
        centre, extent = (low + high) / 2.0, float(np.linalg.norm(high - low))
        turned = _in_front(np.concatenate(still), np.concatenate(moving))
        aim = centre + 0.3 * extent * turned @ BESIDE
        server.initial_camera.position = tuple(aim + 0.85 * extent * turned @ FROM)
        server.initial_camera.look_at = tuple(aim)
        self._add_floor(np.array([centre[0], centre[1], low[2]]), extent)

    def _add_floor(self, centre: Array, extent: float) -> None:
        """Lines at round distances: a plane with a pattern would cost as much as the robot."""
        size = max(extent, 1e-3) / 4.0
        decade = 10.0 ** np.floor(np.log10(size))
        cell, n = decade * max(step for step in (1.0, 2.0, 5.0) if step * decade <= size), 7
        lines = np.zeros((2, 2 * n + 1, 2, 3))  # along y, then along x
        lines[0, :, :, 0] = lines[1, :, :, 1] = cell * np.arange(-n, n + 1)[:, None]
        lines[0, :, :, 1] = lines[1, :, :, 0] = cell * n * np.array([-1.0, 1.0])
        self._scene.add_line_segments(
            "/floor",
            lines.reshape(-1, 2, 3) + centre,
            FLOOR,
            thickness=1.0,
            thickness_units="screen",
        )

    def draw(self, posed: Posed, poses: tuple[Array, Array]) -> None:
        """Move everything to where the robot is; what has not moved is not sent again."""
        self._bodies.move(*poses)
        self._layers.move(*poses)
        if self._loops is not None:
            self._draw_loops(posed, *poses)

    def _draw_loops(self, posed: Posed, R: Array, p: Array) -> None:
        corners = self._lines.corners(R, p)
        self._loops.points = self._lines.dashes(corners).astype(np.float32)
        red = {loop.cluster for loop in posed.troubles}
        is_red = np.array([line.cluster in red for line in self._lines.lines])
        of_lines = np.where(is_red[:, None], TROUBLE, LOOP).astype(np.uint8)
        colours = np.repeat(of_lines[self._lines.line_of_dash, None], 2, axis=1)
        if not np.array_equal(colours, self._colours):
            self._loops.colors = self._colours = colours
        self._label.visible = bool(red)
        if red:
            # Gears have nothing to say of their own: the linkage of the cluster does.
            troubled = np.flatnonzero(is_red).tolist()
            line = max(troubled, key=lambda i: len(self._lines.lines[i].corners) == 4)
            above = np.array([0.0, 0.0, 0.04 * self._size])  # so that the gap can be seen
            self._label.position = self._lines.label(line, corners) + above
            name = self._lines.lines[line].name
            gaps = [health.residual for health in posed.troubles if name in health.constraints]
            self._label.text = f"{name}: {readouts.gap(max(gaps))}" if gaps else name

    def on_pointer(self, act: Callable[[Ray], None]) -> None:
        """Call ``act`` with the ray of a pointer that rests on a body, or clicks it."""
        for handle in self._bodies.handles:
            handle.on_click(
                lambda event: act((np.array(event.ray_origin), np.array(event.ray_direction)))
            )

    def show_name(self, ray: Ray | None, poses: tuple[Array, Array]) -> str:
        """Show the name of the body that a ray meets, and return it; None hides it."""
        found = None if ray is None else hover.hit(ray, self._shapes, *poses)
        self._name.visible = found is not None
        if found is not None:
            self._name.text = hover.label(self._robot, found[0])
            self._name.position = found[1]
        return "" if found is None else self._name.text

    def paint(self, by_clusters: bool) -> None:
        """Colour the bodies by their clusters, or as their materials are."""
        self._bodies.paint(by_clusters)

    def show_layers(self, chosen: Sequence[str], poses: tuple[Array, Array]) -> None:
        """Show these of `layers.LAYERS`, and no others."""
        self._layers.show(chosen, poses)

    def show_frames(self, ellipsoids: Mapping[str, Ellipsoid | None]) -> None:
        """Axes and inertia ellipsoids of the chosen links, by name; all others go."""
        for link in [link for link in self._frames if link not in ellipsoids]:
            for handle in self._frames.pop(link):
                handle.remove()
        for link, found in ellipsoids.items():
            if link not in self._frames:
                self._frames[link] = self._add_frame(link)
            axes, ball = self._frames[link]
            axes.visible = ball.visible = found is not None
            if found is not None:
                axes.wxyz, axes.position = to_quaternion(found.pose[:3, :3]), found.pose[:3, 3]
                ball.wxyz, ball.position = to_quaternion(found.axes), found.pose[:3, 3]
                lengths = 0.15 * self._size * np.maximum(found.lengths, FLAT)
                ball.scale = tuple(float(length) for length in lengths)

    def _add_frame(self, link: str) -> tuple[Any, Any]:
        number = len(self._frames)
        length = 0.12 * self._size
        axes = self._scene.add_frame(
            f"/frames/{number} axes", axes_length=length, axes_radius=length / 15.0
        )
        ball = self._scene.add_icosphere(
            f"/frames/{number} inertia", radius=1.0, color=(120, 90, 200), opacity=0.4
        )
        return axes, ball


def _in_front(still: Array, moving: Array) -> Array:
    """Turn (3, 3) about z by quarters that brings what moves (N, 3) before what does not."""
    way = (moving.mean(axis=0) if len(moving) else np.zeros(3)) - still.mean(axis=0)
    quarters = [np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]]) for c, s in QUARTERS]
    return max(quarters, key=lambda turn: round(float((turn @ FROM)[:2] @ way[:2]), 3))


DASHES = 9
"""Dashes of one straight piece, whatever its length: the number of points never changes."""
ENDS = (np.arange(DASHES)[:, None] + (0.0, 0.6)) / (DASHES - 0.4)
"""Where each dash begins and ends, as a share of the piece; the last ends with it."""


@dataclass(frozen=True, eq=False)
class LoopLine:
    """The corners of one constraint's line.

    Attributes:
        name: of the constraint.
        cluster: that it is in.
        corners: body (0: the fixed base) and point (3,) in its frame of each corner.
        label: which corner its name stands at.
        dashed: whether it is drawn; a gear on the axis of its joint has no length.
    """

    name: str
    cluster: str
    corners: tuple[tuple[int, Array], ...]
    label: int
    dashed: bool


class LoopLines:
    """The lines of all constraints, placed at once.

    Args:
        unclosed: constraints that the model lacks because they do not close.
    """

    def __init__(self, robot: Robot, unclosed: Sequence[Constraint] = ()) -> None:
        self.lines = loop_lines(robot, unclosed)
        counts = [len(line.corners) for line in self.lines]
        ends = np.cumsum(counts, dtype=int)
        self._firsts = ends - counts
        corners = [corner for line in self.lines for corner in line.corners]
        self._bodies = np.array([body for body, _ in corners], int)
        self._points = np.array([point for _, point in corners]).reshape(-1, 3)
        dashed = np.array([line.dashed for line in self.lines], bool)
        drawn = np.repeat(dashed | ~dashed.any(), counts)  # viser draws no empty set of lines
        drawn[ends - 1] = False  # a line's last corner starts no piece
        starts = np.flatnonzero(drawn)
        self._starts = starts
        self.line_of_dash = np.repeat(np.repeat(np.arange(len(counts)), counts)[starts], DASHES)

    def corners(self, R: Array, p: Array) -> Array:
        """Corners (N, 3) of all lines, from rotations (n, 3, 3) and origins (n, 3) of bodies."""
        on, placed = self._bodies > 0, self._points.copy()
        at = self._bodies[on] - 1
        placed[on] = np.einsum("nij,nj->ni", R[at], self._points[on]) + p[at]
        return placed

    def label(self, line: int, corners: Array) -> Array:
        """Where the name of a line stands (3,)."""
        return corners[self._firsts[line] + self.lines[line].label]

    def dashes(self, corners: Array) -> Array:
        """Dashes (N, 2, 3) of all lines: so many a piece, whatever its length."""
        a, b = corners[self._starts], corners[self._starts + 1]
        return (a[:, None, None] + ENDS[None, ..., None] * (b - a)[:, None, None]).reshape(-1, 2, 3)


def loop_lines(robot: Robot, unclosed: Sequence[Constraint] = ()) -> tuple[LoopLine, ...]:
    """A line for every constraint of the robot; unclosed ones are a cluster each."""
    nodes = [node for node in robot.cluster_nodes if node.loop is not None]
    found = [(node.name, c) for node in nodes if node.loop for c in node.loop.constraints]
    found += [(constraint.name, constraint) for constraint in unclosed]
    return tuple(
        LoopLine(
            constraint.name,
            cluster,
            *_corners(robot, constraint),
            isinstance(constraint, CutJoint) or len(_axes(robot, constraint)) > 1,
        )
        for cluster, constraint in found
    )


def _corners(robot: Robot, constraint: Constraint) -> tuple[tuple[tuple[int, Array], ...], int]:
    if isinstance(constraint, CutJoint):
        first, second = constraint.predecessor, constraint.successor
        cuts = (on_body(robot, end.link, end.origin) for end in (first, second))
        return (on_body(robot, first.link), *cuts, on_body(robot, second.link)), 1
    tree = robot.spanning_tree
    bodies = [tree.bodies[tree.body_of_joint[name] - 1] for name in constraint.joints]
    corners = [on_body(robot, body.name) for body in bodies]
    return tuple(corners if len(corners) > 1 else corners * 2), 0


def _axes(robot: Robot, constraint: Constraint) -> set[tuple[object, ...]]:
    """Where tied joints turn: parent body and point in its frame; the name of one that slides."""
    joints = {joint.name: joint for joint in robot.description.joints}
    found: set[tuple[object, ...]] = set()
    for name in constraint.joints:
        joint = joints[name]
        body, point = on_body(robot, joint.parent, joint.origin)
        turns = joint.type in ("revolute", "continuous")
        found.add((body, *point.round(9).tolist()) if turns else (name,))
    return found
