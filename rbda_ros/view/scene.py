"""The robot in three dimensions: bodies in the colours of their clusters, loops, frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rbda_ros.robot import Robot
from rbda_ros.spatial import Array
from rbda_ros.view.ellipsoid import Ellipsoid
from rbda_ros.view.loop_lines import dashed, loop_lines
from rbda_ros.view.posing import Posed
from rbda_ros.view.shapes import Shape, robot_size

COLOURS = (
    (76, 120, 168), (245, 133, 24), (84, 162, 75), (178, 121, 162), (183, 153, 33),
    (114, 183, 178), (157, 117, 93), (255, 157, 167), (104, 109, 224), (130, 177, 36),
)  # fmt: skip
"""Of clusters, one after the other; none of them is red, which means trouble."""
BASE, BARE, LOOP, TROUBLE = (150, 150, 150), (70, 70, 75), (40, 40, 60), (220, 20, 30)
FLAT = 0.02
"""Least semi-axis of an ellipsoid, as a share of the longest: a disc must be seen."""
SEE_THROUGH: Mapping[str, float] = {"visual": 0.75, "inertia": 0.45}
"""Opacity: rotors and cut points are inside the links."""


class Scene:
    """What viser draws of one robot.

    Args:
        server: a viser.ViserServer.
        robot: the robot.
        shapes: what it looks like.
        poses: (R, p) of its bodies at the assembly, as `Poser.body_poses` gives them.
    """

    def __init__(
        self, server: Any, robot: Robot, shapes: Sequence[Shape], poses: tuple[Array, Array]
    ) -> None:
        self._scene = server.scene
        self._scene.configure_default_lights(cast_shadow=False)  # they cost more than all the rest
        self._size = robot_size(robot)
        self._lines = loop_lines(robot)
        self._drawn: dict[int, tuple[Array, Array]] = {}
        self._frames: dict[str, tuple[Any, Any]] = {}
        self._bodies = self._add_bodies(robot, shapes)
        self._loops: Any = None
        self._label: Any = None
        corners = [line.points(*poses) for line in self._lines]
        if self._lines:
            self._pieces = [len(each) - 1 for each in corners]
            dashes = dashed(corners)
            self._colours = np.zeros(0)
            self._loops = self._scene.add_line_segments(
                "/loops", dashes, LOOP, thickness=3.0, thickness_units="screen"
            )
            self._label = self._scene.add_label("/trouble", "", visible=False)
        self._set_up(server, poses, shapes)

    def _add_bodies(self, robot: Robot, shapes: Sequence[Shape]) -> list[Any]:
        """A frame for each body, and its triangles below it; the fixed base has none."""
        cluster_of = {
            number: k for k, node in enumerate(robot.tree.clusters) for number in node.numbers
        }
        names = ["base", *(body.name for body in robot.tree.spanning.bodies)]
        frames = [self._scene.add_frame("/robot/0 base", show_axes=False)]
        for number in range(1, len(names)):
            frames.append(self._scene.add_frame(f"/robot/{number}", show_axes=False))
        kinds = sorted({(shape.body, shape.kind) for shape in shapes})
        for body, kind in kinds:
            vertices, faces = _merged([s for s in shapes if (s.body, s.kind) == (body, kind)])
            colour = COLOURS[cluster_of[body] % len(COLOURS)] if body else BASE
            self._scene.add_mesh_simple(
                f"{frames[body].name}/{kind}",
                vertices.astype(np.float32),
                faces.astype(np.uint32),
                color=BARE if kind == "bone" and _has_rotor(shapes, body) else colour,
                opacity=SEE_THROUGH.get(kind),
                flat_shading=True,
                cast_shadow=False,
                receive_shadow=False,
            )
        return frames[1:]

    def _set_up(self, server: Any, poses: tuple[Array, Array], shapes: Sequence[Shape]) -> None:
        """Camera and floor around what is there."""
        R, p = poses
        corners = [np.zeros((1, 3)), p.reshape(-1, 3)]
        for shape in shapes:
            body = shape.body
            world = shape.vertices if not body else shape.vertices @ R[body - 1].T + p[body - 1]
            corners.append(world)
        points = np.concatenate(corners)
        low, high = points.min(axis=0), points.max(axis=0)
        centre, extent = (low + high) / 2.0, float(np.linalg.norm(high - low))
        server.initial_camera.position = tuple(centre + 0.8 * extent * np.array([0.75, -0.9, 0.35]))
        server.initial_camera.look_at = tuple(centre)
        cell = 10.0 ** np.floor(np.log10(max(extent, 1e-3)) - 0.3)
        self._scene.add_grid(
            "/floor",
            width=4.0 * extent,
            height=4.0 * extent,
            position=(float(centre[0]), float(centre[1]), float(low[2])),
            cell_size=cell,
            section_size=5.0 * cell,
        )

    def draw(self, posed: Posed, poses: tuple[Array, Array]) -> None:
        """Move everything to where the robot is; what has not moved is not sent again."""
        from scipy.spatial.transform import Rotation

        R, p = poses
        if len(R):
            quaternions = Rotation.from_matrix(R).as_quat()[:, [3, 0, 1, 2]]
            for i, frame in enumerate(self._bodies):
                last = self._drawn.get(i)
                if last is None or not np.allclose(last[0], R[i], atol=1e-7, rtol=0.0):
                    frame.wxyz = quaternions[i]
                if last is None or not np.allclose(last[1], p[i], atol=1e-7, rtol=0.0):
                    frame.position = p[i]
                self._drawn[i] = R[i], p[i]
        if self._loops is not None:
            self._draw_loops(posed, R, p)

    def _draw_loops(self, posed: Posed, R: Array, p: Array) -> None:
        corners = [line.points(R, p) for line in self._lines]
        self._loops.points = dashed(corners).astype(np.float32)
        red = {loop.cluster for loop in posed.troubles}
        colours = np.concatenate(
            [
                np.full((9 * pieces, 2, 3), TROUBLE if line.cluster in red else LOOP, np.uint8)
                for line, pieces in zip(self._lines, self._pieces, strict=True)
            ]
        )
        if not np.array_equal(colours, self._colours):
            self._loops.colors = self._colours = colours
        # Gears have nothing to say of their own: the linkage of the cluster does.
        at = [
            (len(c) == 4, c[line.label], line) for c, line in zip(corners, self._lines, strict=True)
        ]
        troubled = [each for each in at if each[2].cluster in red]
        self._label.visible = bool(troubled)
        if troubled:
            _, point, line = max(troubled, key=lambda each: each[0])
            self._label.position, self._label.text = point, line.name

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
                axes.wxyz, axes.position = _quaternion(found.pose[:3, :3]), found.pose[:3, 3]
                ball.wxyz, ball.position = _quaternion(found.axes), found.pose[:3, 3]
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


def _merged(shapes: Sequence[Shape]) -> tuple[Array, Any]:
    """The triangles of several shapes as those of one."""
    offsets = np.cumsum([0, *(len(shape.vertices) for shape in shapes)])
    vertices = np.concatenate([shape.vertices for shape in shapes])
    faces = [shape.faces + offset for shape, offset in zip(shapes, offsets[:-1], strict=True)]
    return vertices, np.concatenate(faces)


def _has_rotor(shapes: Sequence[Shape], body: int) -> bool:
    return any(shape.body == body and shape.kind == "rotor" for shape in shapes)


def _quaternion(R: Array) -> Array:
    """Quaternion w x y z of a rotation (3, 3)."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_quat()[[3, 0, 1, 2]]
