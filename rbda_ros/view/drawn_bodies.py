"""The bodies of a robot in the browser: as few things to draw, and messages to send, as possible.

Forms of one kind (all boxes, all balls, all cylinders) are instances of one mesh, which take one
draw call and two messages for a whole robot; a mesh file is a mesh below the frame of its body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rbda_ros.description.orientation import to_quaternion
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array
from rbda_ros.view.shapes import Colour, Shape, unit

COLOURS = (
    (76, 120, 168), (245, 133, 24), (84, 162, 75), (178, 121, 162), (183, 153, 33),
    (114, 183, 178), (157, 117, 93), (255, 157, 167), (104, 109, 224), (130, 177, 36),
)  # fmt: skip
"""Of clusters, one after the other; none of them is red, which means trouble."""
BASE, BARE, PLAIN = (150, 150, 150), (70, 70, 75), (190, 192, 198)
"""Of the fixed base, of a rotor's bar, and of what has no material of its own."""
SEE_THROUGH: Mapping[str, float] = {"visual": 0.75, "inertia": 0.45, "collision": 0.35}
"""Opacity: rotors and cut points are inside the links."""
STILL = 1e-7
"""Smallest motion that is sent again [1, m]."""
LOOK: Mapping[str, Any] = {"cast_shadow": False, "receive_shadow": False}


class DrawnBodies:
    """All shapes of one robot.

    Args:
        scene: of a viser.ViserServer.
        shapes: what it looks like.
        name: of the part of the scene that they make.
    """

    def __init__(
        self, scene: Any, robot: Robot, shapes: Sequence[Shape], name: str = "/robot"
    ) -> None:
        self._clusters = _cluster_colours(robot, shapes)
        self._materials = [shape.colour or PLAIN for shape in shapes]
        self._places: list[list[int]] = []
        colours = self._clusters
        self._parts: list[_Instances | _Mesh] = []
        groups: dict[Any, list[int]] = {}
        for i, shape in enumerate(shapes):
            one: Any = shape.kind in SEE_THROUGH
            if shape.form == "mesh":  # which has one colour
                one = shape.body, shape.kind, shape.colour
            groups.setdefault((shape.form, one), []).append(i)
        for number, ((form, _), places) in enumerate(groups.items()):
            part = _Mesh if form == "mesh" else _Instances
            members = [shapes[i] for i in places], np.array([colours[i] for i in places], np.uint8)
            self._parts.append(part(scene, f"{name}/{number} {form}", *members))
            self._places.append(places)

    def paint(self, by_clusters: bool) -> None:
        """Colour the shapes by their clusters, or as their materials are."""
        colours = self._clusters if by_clusters else self._materials
        for part, places in zip(self._parts, self._places, strict=True):
            part.paint(np.array([colours[i] for i in places], np.uint8))

    @property
    def handles(self) -> list[Any]:
        """The handles of all parts in viser."""
        return [part.handle for part in self._parts]

    def move(self, R: Array, p: Array) -> None:
        """Put bodies where they are, by rotations (n, 3, 3) and origins (n, 3) in the world [m]."""
        R = np.concatenate([np.eye(3)[None], R])  # the fixed base
        p = np.concatenate([np.zeros((1, 3)), p])
        for part in self._parts:
            part.move(R, p)


class _Instances:
    """Forms of one kind, on any bodies."""

    def __init__(self, scene: Any, name: str, shapes: Sequence[Shape], colours: Any) -> None:
        self._bodies = np.array([shape.body for shape in shapes])
        self._R = np.array([shape.frame.R for shape in shapes])
        self._p = np.array([shape.frame.p for shape in shapes])
        self._last = np.full((len(shapes), 7), np.nan)
        see_through = shapes[0].kind in SEE_THROUGH
        opacities = np.array([SEE_THROUGH.get(shape.kind, 1.0) for shape in shapes])
        # Bones and rotors are thin, and many: fewer triangles look the same.
        triangles = unit(shapes[0].form, fine=see_through)
        self.handle = scene.add_batched_meshes_simple(
            name,
            triangles.vertices,
            triangles.faces,
            np.tile([1.0, 0.0, 0.0, 0.0], (len(shapes), 1)),
            np.zeros((len(shapes), 3)),
            batched_scales=np.array([shape.scale for shape in shapes], np.float32),
            batched_colors=linear(colours),
            opacity=1.0 if see_through else None,
            batched_opacities=opacities if see_through else None,
            lod="off",
            flat_shading=shapes[0].form != "ball",
            **LOOK,
        )

    def move(self, R: Array, p: Array) -> None:
        on = R[self._bodies]
        poses = np.empty((len(on), 7))
        poses[:, :4] = to_quaternion(on @ self._R)
        poses[:, 4:] = np.einsum("nij,nj->ni", on, self._p) + p[self._bodies]
        if not (np.abs(poses - self._last) < STILL).all():
            self._last = poses
            self.handle.batched_wxyzs = poses[:, :4].astype(np.float32)
            self.handle.batched_positions = poses[:, 4:].astype(np.float32)

    def paint(self, colours: Any) -> None:
        self.handle.batched_colors = linear(colours)


class _Mesh:
    """Mesh files on one body, as one mesh."""

    def __init__(self, scene: Any, name: str, shapes: Sequence[Shape], colours: Any) -> None:
        self._body = shapes[0].body
        self._last = np.full(7, np.nan)
        self.handle = scene.add_mesh_simple(
            name,
            *_merged(shapes),
            color=tuple(int(part) for part in colours[0]),
            opacity=SEE_THROUGH.get(shapes[0].kind),
            flat_shading=True,
            **LOOK,
        )

    def move(self, R: Array, p: Array) -> None:
        pose = np.concatenate([to_quaternion(R[self._body]), p[self._body]])
        if not (np.abs(pose - self._last) < STILL).all():
            self._last = pose
            self.handle.wxyz, self.handle.position = pose[:4], pose[4:]

    def paint(self, colours: Any) -> None:
        self.handle.color = tuple(int(part) for part in colours[0])


def _cluster_colours(robot: Robot, shapes: Sequence[Shape]) -> list[Colour]:
    """Of each shape: that of its body's cluster; the bar of a rotor has one of its own."""
    clusters = enumerate(robot.cluster_nodes)
    cluster_of = {number: k for k, node in clusters for number in node.numbers}
    rotors = {shape.body for shape in shapes if shape.kind == "rotor"}
    found: list[Colour] = []
    for shape in shapes:
        colour = COLOURS[cluster_of[shape.body] % len(COLOURS)] if shape.body else BASE
        found.append(BARE if shape.kind == "bone" and shape.body in rotors else colour)
    return found


def linear(colours: Any) -> Any:
    """Colours (N, 3) as amounts of light, which is how viser takes those of instances."""
    share = np.asarray(colours) / 255.0
    light = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return np.round(255.0 * light).astype(np.uint8)


def _merged(shapes: Sequence[Shape]) -> tuple[Any, Any]:
    """The triangles of several shapes as those of one."""
    parts = [shape.vertices for shape in shapes]
    offsets = np.cumsum([0, *map(len, parts)])[:-1]
    faces = [shape.faces + offset for shape, offset in zip(shapes, offsets, strict=True)]
    return np.concatenate(parts).astype(np.float32), np.concatenate(faces).astype(np.uint32)
