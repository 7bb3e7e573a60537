"""Elements of shapes: boxes, balls and cylinders of any size, or the triangles of a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from rbda_ros.cluster_tree.spanning_tree import Frame
from rbda_ros.spatial import Array

Kind = Literal["visual", "bone", "inertia", "rotor", "collision"]
Colour = tuple[int, int, int]
Form = Literal["box", "ball", "cylinder", "mesh"]


@dataclass(frozen=True, eq=False)
class Triangles:
    """Vertices (V, 3) [m], and faces (F, 3): places in them."""

    vertices: Array
    faces: Any


@dataclass(frozen=True, eq=False)
class Shape:
    """A form on a body.

    Attributes:
        body: regular number; 0 is the fixed base.
        kind: what it stands for.
        form: a box with edges of 1 m, a ball of radius 1 m, a cylinder on z of radius and height
            1 m, each about its centre; or a mesh.
        frame: where it is, in the body's frame.
        scale: (3,) along the frame's axes.
        mesh: its triangles, where it is a mesh.
        colour: that of its material, red, green and blue from 0 to 255; None where it has none.
    """

    body: int
    kind: Kind
    form: Form
    frame: Frame
    scale: Array
    mesh: Triangles | None = None
    colour: Colour | None = None

    @property
    def faces(self) -> Any:
        """(F, 3) places in the vertices."""
        return self._triangles.faces

    @property
    def vertices(self) -> Array:
        """(V, 3) in the body's frame [m]."""
        return (self._triangles.vertices * self.scale) @ self.frame.R.T + self.frame.p

    @property
    def _triangles(self) -> Triangles:
        return unit(self.form) if self.mesh is None else self.mesh


@cache
def unit(form: Form, fine: bool = True) -> Triangles:
    """The triangles of a form of unit size; fewer of them where it is not to be fine."""
    from trimesh import creation

    if form == "box":
        made = creation.box((1.0, 1.0, 1.0))
    elif form == "ball":
        made = creation.icosphere(subdivisions=2 if fine else 1, radius=1.0)
    else:
        made = creation.cylinder(radius=1.0, height=1.0, sections=24 if fine else 10)
    return Triangles(np.asarray(made.vertices, float), np.asarray(made.faces))


def box(body: int, kind: Kind, edges: Any, frame: Frame) -> Shape:
    """A box with edges (3,) [m] about the origin of a frame."""
    return Shape(body, kind, "box", frame, np.array(edges, float))


def ball(body: int, kind: Kind, radii: Any, frame: Frame) -> Shape:
    """A ball of one radius [m], or an ellipsoid of three."""
    return Shape(body, kind, "ball", frame, np.full(3, radii, float))


def cylinder(body: int, kind: Kind, radius: float, height: float, frame: Frame) -> Shape:
    """A cylinder on the z axis of a frame [m]."""
    return Shape(body, kind, "cylinder", frame, np.array([radius, radius, height]))


def capsule(body: int, kind: Kind, radius: float, height: float, frame: Frame) -> Shape:
    """A cylinder on the z axis of a frame with half a ball at each end [m]."""
    from trimesh import creation

    made = creation.capsule(radius=radius, height=height, count=[12, 12])
    return mesh(body, kind, made, frame)


def mesh(body: int, kind: Kind, made: Any, frame: Frame) -> Shape:
    """A mesh (anything with vertices and faces) in a frame."""
    triangles = Triangles(np.asarray(made.vertices, float), np.asarray(made.faces))
    return Shape(body, kind, "mesh", frame, np.ones(3), triangles)
