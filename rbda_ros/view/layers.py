"""Shown over the robot: centre of mass, joint axes, frames, names, inertia, collision shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rbda_ros.description.orientation import to_quaternion
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array
from rbda_ros.view.drawn_bodies import DrawnBodies
from rbda_ros.view.shapes import Shape, inertia_boxes

LAYERS = ("centre of mass", "joint axes", "frames", "link names", "inertia", "collision shapes")
MASS, AXIS = (20, 20, 20), (200, 60, 160)

Layer = tuple[Callable[[Array, Array], None], Sequence[Any]]
"""How a layer moves along with poses (n, 3, 3), (n, 3) of the bodies, and its handles in viser."""

WIDE = 5.0
"""How wide the name of a link is, in heights."""


class Layers:
    """The layers of one robot; each is made when it is first shown.

    Args:
        scene: of a viser.ViserServer.
        collision: its collision shapes.
        size: of the robot [m].
    """

    def __init__(self, scene: Any, robot: Robot, collision: Sequence[Shape], size: float) -> None:
        self._scene, self._robot, self._size = scene, robot, size
        self._collision = collision
        self._made: dict[str, Layer] = {}
        self._shown: tuple[str, ...] = ()

    def show(self, chosen: Sequence[str], poses: tuple[Array, Array]) -> None:
        """Show these layers and no others, with bodies at poses (n, 3, 3), (n, 3)."""
        makers: Mapping[str, Callable[[], Layer]] = {
            "centre of mass": self._centre_of_mass,
            "joint axes": self._axes,
            "frames": self._frames,
            "link names": self._names,
            "inertia": lambda: self._shapes("inertia", inertia_boxes(self._robot, self._size)),
            "collision shapes": lambda: self._shapes("collision", self._collision),
        }
        for name in chosen:
            if name not in self._made:
                self._made[name] = makers[name]()
        self._shown = tuple(chosen)
        self.move(*poses)
        for name, (_, handles) in self._made.items():
            for handle in handles:
                handle.visible = name in chosen

    def move(self, R: Array, p: Array) -> None:
        """Move the layers that are shown along with the bodies."""
        for name in self._shown:
            self._made[name][0](R, p)

    def _centre_of_mass(self) -> Layer:
        bodies, masses, points = masses_of(self._robot)
        ball = self._scene.add_icosphere("/layers/mass", 0.03 * self._size, MASS)

        def move(R: Array, p: Array) -> None:
            ball.position = centre_of_mass(R, p, bodies, masses, points)

        return move, [ball]

    def _axes(self) -> Layer:
        ends = np.array([[0.0, 0.0, -0.15], [0.0, 0.0, 0.15]]) * self._size
        origins = self._origins()
        lines = self._scene.add_line_segments(
            "/layers/axes",
            origins[:, None] + ends,
            AXIS,
            thickness=4.0,
            thickness_units="screen",
        )

        def move(R: Array, p: Array) -> None:
            points = origins[:, None] + ends
            lines.points = np.einsum("nij,nkj->nki", R, points) + p[:, None]

        return move, [lines]

    def _frames(self) -> Layer:
        links = self._robot.spanning_tree.links
        turned = np.array([links[body.name].frame.R for body in self._robot.spanning_tree.bodies])
        origins, count = self._origins(), len(turned)
        axes = self._scene.add_batched_axes(
            "/layers/frames",
            np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
            np.zeros((count, 3)),
            axes_length=0.08 * self._size,
            axes_radius=0.004 * self._size,
        )

        def move(R: Array, p: Array) -> None:
            axes.batched_wxyzs = to_quaternion(R @ turned)
            axes.batched_positions = np.einsum("nij,nj->ni", R, origins) + p

        return move, [axes]

    def _names(self) -> Layer:
        bodies, origins = self._robot.spanning_tree.bodies, self._origins()
        labels = [
            self._scene.add_label(f"/layers/names/{k}", body.name) for k, body in enumerate(bodies)
        ]

        def move(R: Array, p: Array) -> None:
            places = stacked(np.einsum("nij,nj->ni", R, origins) + p, 0.045 * self._size)
            for label, place in zip(labels, places, strict=True):
                label.position = place

        return move, labels

    def _shapes(self, name: str, shapes: Sequence[Shape]) -> Layer:
        drawn = DrawnBodies(self._scene, self._robot, shapes, f"/layers/{name}")
        return drawn.move, drawn.handles

    def _origins(self) -> Array:
        """(n, 3) origin of each body's link, in the body's frame."""
        links = self._robot.spanning_tree.links
        return np.array(
            [links[body.name].frame.p for body in self._robot.spanning_tree.bodies]
        ).reshape(-1, 3)


def stacked(places: Array, height: float) -> Array:
    """Places (n, 3) of labels, moved down where they would cover others: ``height`` apart [m].

    Links that share an origin, such as rotors on one axis, would have illegible names.
    """
    found = places.copy()
    for k in range(1, len(found)):
        beside = np.linalg.norm(found[:k, :2] - found[k, :2], axis=1) < WIDE * height
        taken = found[:k, 2][beside]
        while np.any(np.abs(taken - found[k, 2]) < 0.999 * height):
            found[k, 2] -= height
    return found


def masses_of(robot: Robot) -> tuple[Array, Array, Array]:
    """Body, mass [kg] and centre (3,) in the body's frame [m] of every body that has mass.

    The inertia (6, 6) of a body has its first moment in the corner: ``m c x``.
    """
    found = [(k, body) for k, body in enumerate(robot.spanning_tree.bodies) if body.mass > 0.0]
    corners = [body.inertia[:3, 3:] for _, body in found]
    first = np.array([(m[2, 1], m[0, 2], m[1, 0]) for m in corners]).reshape(-1, 3)
    masses = np.array([body.mass for _, body in found])
    return np.array([k for k, _ in found], int), masses, first / masses[:, None]


def centre_of_mass(R: Array, p: Array, bodies: Array, masses: Array, points: Array) -> Array:
    """(3,) of all bodies that move, in the world [m]; zero for a robot without mass."""
    if not masses.sum() > 0.0:
        return np.zeros(3)
    places = np.einsum("nij,nj->ni", R[bodies], points) + p[bodies]
    return np.asarray(masses @ places / masses.sum())
