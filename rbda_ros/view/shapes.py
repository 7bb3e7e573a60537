"""Shapes of a robot: its visuals, or bars between its joints and boxes for its inertias."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlparse

import numpy as np
from lxml import etree

from rbda_ros.cluster_tree.spanning_tree import Frame, frame_of
from rbda_ros.description.mjcf_compiler import Names, compile_mjcf
from rbda_ros.description.model import CutJoint, Inertia, Pose
from rbda_ros.description.orientation import from_quaternion
from rbda_ros.description.report import Report
from rbda_ros.description.source import is_text, read_xml
from rbda_ros.description.urdf import read_pose
from rbda_ros.description.visuals import drawn_elements
from rbda_ros.description.xml_text import child, children
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array, align_z

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

    def placed(self, R: Array, p: Array) -> Array:
        """(V, 3) in the world [m], of bodies with rotations (n, 3, 3) and origins (n, 3)."""
        if not self.body:
            return self.vertices
        return self.vertices @ R[self.body - 1].T + p[self.body - 1]

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


LARGEST_MESH = 64 * 1024 * 1024
"""Bytes of a mesh file that is drawn; a page of larger ones would not move."""

LFS_POINTER = b"version https://git-lfs"
"""First bytes of a pointer file of Git LFS."""
COLLISION_GROUP = 3
"""Geoms of this group and above are by convention not drawn."""


class MeshError(Exception):
    """A mesh cannot be drawn; says why."""


def load_mesh(filename: str, description: Path | None) -> Any:
    """The triangles (a trimesh.Trimesh) of a mesh as a description names it.

    Args:
        filename: a path, or ``package://``, ``model://`` or ``file://``; nothing is downloaded.
        description: the file that names it, whose folder relative paths begin in.

    Raises:
        MeshError: it is not there, too large, or of a form that cannot be read.
    """
    import trimesh

    path = find_mesh(filename, description)
    if path.stat().st_size > LARGEST_MESH:
        raise MeshError(f"{filename}: has more than {LARGEST_MESH} bytes; simplify it")
    with path.open("rb") as stream:
        if stream.read(len(LFS_POINTER)) == LFS_POINTER:
            raise MeshError(f"{filename}: is a pointer of Git LFS; fetch it with 'git lfs pull'")
    try:
        mesh: Any = trimesh.load(path, force="mesh")
    except Exception as error:  # readers of many forms raise whatever they like
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise MeshError(f"{filename}: cannot be read ({text}); save it as STL or OBJ") from error
    if not len(mesh.vertices) or not len(mesh.faces):
        raise MeshError(f"{filename}: has no triangles; export it again")
    return mesh


def find_mesh(filename: str, description: Path | None) -> Path:
    """Path of a mesh file; MeshError where there is none."""
    for candidate in _candidates(filename, description):
        if candidate.is_file():
            return candidate
    raise MeshError(f"{filename}: not found; check the path, or source the package's workspace")


def _candidates(filename: str, description: Path | None) -> Iterator[Path]:
    address = urlparse(filename)
    if address.scheme in ("package", "model"):
        inside = unquote(address.path).lstrip("/")
        for folder in description.resolve().parents if description else ():
            if folder.name == address.netloc:
                yield folder / inside
            yield folder / address.netloc / inside
        for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
            if prefix:
                yield Path(prefix) / "share" / address.netloc / inside
        for place in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep):
            if place:
                yield Path(place) / address.netloc / inside
        yield Path(sys.prefix) / "share" / address.netloc / inside
    elif address.scheme == "file":
        yield Path(unquote(address.path))
    elif not address.scheme or len(address.scheme) == 1:
        if description is not None:
            yield description.parent / filename
        yield Path(filename)


BONE, ROTOR = 0.012, 0.06
"""Radius of bones and of rotors, as a share of the robot's size."""
SMALLEST = 1e-3
"""Least edge of a box that stands for an inertia [m]."""


def robot_size(robot: Robot) -> float:
    """How far joints and cut points are from the root at the assembly [m]; 0.3 at least."""
    far = [0.3]
    for body in robot.spanning_tree.bodies:
        far.append(float(np.linalg.norm(robot.frame_pose(robot.neutral(), body.name)[:3, 3])))
    return max(far)


def shapes_of(
    robot: Robot, source: str | os.PathLike[str] | None
) -> tuple[list[Shape], list[Shape], tuple[str, ...]]:
    """Appearance of the robot, its collision shapes, and notes on what could not be drawn.

    Args:
        source: path or text of its description; None draws it from its inertias alone.
    """
    described, notes = _visuals(robot, source)
    visuals = [shape for shape in described if shape.kind == "visual"]
    collision = [shape for shape in described if shape.kind == "collision"]
    drawn = {shape.body for shape in visuals}
    size = robot_size(robot)
    others = [shape for shape in _skeleton(robot, size) if shape.body not in drawn]
    return [*visuals, *others], collision, notes


def _visuals(
    robot: Robot, source: str | os.PathLike[str] | None
) -> tuple[list[Shape], tuple[str, ...]]:
    report = Report()
    text, root = ("", None) if source is None else read_xml(source, report)
    if source is None or root is None:
        return [], ()
    if root.tag == "mujoco":
        return mjcf_shapes(robot, source, text)
    path = None if is_text(source) else Path(source)
    shapes, notes = list[Shape](), list[str]()
    materials = {each.get("name", ""): _colour(each) for each in children(root, "material")}
    for name, elements in drawn_elements(root).items():
        place = robot.spanning_tree.links.get(name)
        for element in elements if place else ():
            assert place is not None
            kind: Kind = "collision" if element.tag == "collision" else "visual"
            at = place.frame @ frame_of(read_pose(element, element.tag, report))
            material = child(element, "material")
            colour = None if material is None else _colour(material)
            if colour is None and material is not None:
                colour = materials.get(material.get("name", ""))
            try:
                found = _geometry(place.body, kind, child(element, "geometry"), at, path)
                shapes += [replace(shape, colour=colour) for shape in found]
            except (MeshError, ValueError) as error:
                notes.append(str(error))
    return shapes, tuple(dict.fromkeys(notes))


def _colour(material: etree._Element) -> Colour | None:
    """Colour of a <material>, if it states one that can be read."""
    stated = child(material, "color")
    try:
        rgba = [
            float(word) for word in (stated.get("rgba", "") if stated is not None else "").split()
        ]
    except ValueError:
        return None
    if len(rgba) < 3 or not np.isfinite(rgba).all():
        return None
    return _bytes(rgba)


def _bytes(rgba: Sequence[float]) -> Colour:
    """A colour whose parts are from 0 to 1."""
    red, green, blue = (round(255.0 * min(max(float(part), 0.0), 1.0)) for part in rgba[:3])
    return red, green, blue


def _geometry(
    body: int, kind: Kind, geometry: etree._Element | None, at: Frame, path: Path | None
) -> Iterator[Shape]:
    """Shapes of a <geometry> in a frame of a body."""
    for element in () if geometry is None else geometry:
        values: defaultdict[Any, Any] = defaultdict(str, element.attrib)
        if element.tag == "box":
            yield box(body, kind, _numbers(values["size"], 3), at)
        elif element.tag == "sphere":
            yield ball(body, kind, _numbers(values["radius"], 1), at)
        elif element.tag in ("cylinder", "capsule"):
            radius, length = (_numbers(values[key], 1)[0] for key in ("radius", "length"))
            form = cylinder if element.tag == "cylinder" else capsule
            yield form(body, kind, radius, length, at)
        elif element.tag == "mesh":
            found = load_mesh(str(values["filename"]), path)
            scale = _numbers(values.get("scale", "1 1 1"), 3)
            found.vertices = np.asarray(found.vertices) * scale
            if np.prod(scale) < 0.0:
                found.invert()
            yield mesh(body, kind, found, at)


def _numbers(text: Any, count: int) -> list[float]:
    try:
        values = [float(word) for word in str(text).split()]
    except ValueError:
        values = []
    if len(values) != count or not np.isfinite(values).all():
        raise ValueError(f"<geometry>: {text!r} are not {count} numbers; correct the visual")
    return values


def _skeleton(robot: Robot, size: float) -> Iterator[Shape]:
    """Bones from each joint to what hangs from its body; inertias as boxes; rotors as discs."""
    ends = _ends(robot)
    links = robot.spanning_tree.links
    for number, body in enumerate(robot.spanning_tree.bodies, start=1):
        origin = links[body.name].frame.p
        lengths = [float(np.linalg.norm(end - origin)) for end in ends.get(number, ())]
        if not any(length > 1e-6 for length in lengths) and body.mass < 1e-6:
            yield from _rotor(number, links[body.name].frame, size)
            continue
        yield ball(number, "bone", 1.6 * BONE * size, Frame(np.eye(3), origin))
        for end, length in zip(ends.get(number, ()), lengths, strict=True):
            if length > 1e-6:
                middle = Frame(align_z((end - origin) / length), (origin + end) / 2.0)
                yield cylinder(number, "bone", BONE * size, length, middle)
    yield from inertia_boxes(robot, size)


def inertia_boxes(robot: Robot, size: float) -> list[Shape]:
    """Boxes with the mass and moments of the links that move, where they are not absurdly large."""
    links = robot.spanning_tree.links
    found = []
    for link in robot.description.links:
        place = links[link.name]
        if link.inertia is not None and link.inertia.mass > 0.0 and place.body:
            edges, frame = inertia_box(link.inertia)
            if edges.max() < 4.0 * size:
                found.append(box(place.body, "inertia", edges, place.frame @ frame))
    return found


def _rotor(number: int, frame: Frame, size: float) -> Iterator[Shape]:
    """A disc on the joint's axis, with a bar across it that shows how it turns."""
    at = Frame(np.eye(3), frame.p)  # the body's z is on the joint's axis
    radius = ROTOR * size
    yield cylinder(number, "rotor", radius, 0.6 * radius, at)
    yield box(number, "bone", (2.2 * radius, 0.3 * radius, 0.7 * radius), at)


def _ends(robot: Robot) -> Mapping[int, list[Array]]:
    """Per body the points where joints and cuts are on it, in its frame."""
    rotors = {body.joint.name for body in robot.spanning_tree.bodies if body.mass < 1e-6}
    places = [
        (joint.parent, joint.origin)
        for joint in robot.description.joints
        if joint.type != "fixed" and joint.name not in rotors
    ]
    for constraint in robot.description.constraints:
        if isinstance(constraint, CutJoint):
            sides = constraint.predecessor, constraint.successor
            places += [(side.link, side.origin) for side in sides]
    ends: dict[int, list[Array]] = {}
    for link, origin in places:
        body, point = on_body(robot, link, origin)
        ends.setdefault(body, []).append(point)
    return ends


def on_body(robot: Robot, link: str, origin: Pose | None = None) -> tuple[int, Array]:
    """The body of a link, and where the link or a frame on it begins (3,), in the body [m]."""
    place = robot.spanning_tree.links[link]
    return place.body, (place.frame if origin is None else place.frame @ frame_of(origin)).p


def inertia_box(inertia: Inertia) -> tuple[Array, Frame]:
    """Edges (3,) of the box of the same mass and moments [m], and its frame in the link.

    With principal moments I, ``edge_i^2 = 6 (I_j + I_k - I_i) / m``.
    """
    values, axes = np.linalg.eigh(inertia.tensor)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    squares = 6.0 * (values.sum() - 2.0 * values) / inertia.mass
    edges = np.sqrt(np.maximum(squares, SMALLEST**2))
    return edges, frame_of(inertia.origin) @ Frame(axes, np.zeros(3))


def mjcf_shapes(
    robot: Robot, source: str | os.PathLike[str], text: str
) -> tuple[list[Shape], tuple[str, ...]]:
    """A shape for each geom, drawn or for collisions; notes on those that are left out."""
    report = Report()
    model = compile_mjcf(source, text, report)
    if model is None:
        return [], ()
    names, shapes = Names(model), list[Shape]()
    for g in range(model.ngeom):
        place = robot.spanning_tree.links.get(names.body(model.geom_bodyid[g]))
        if place is not None:
            at = place.frame @ Frame(
                from_quaternion(model.geom_quat[g]), np.array(model.geom_pos[g])
            )
            shape = _geom_shape(model, g, place.body, at)
            if shape is not None and model.geom_group[g] >= COLLISION_GROUP:
                shapes.append(replace(shape, kind="collision"))
            elif shape is not None:
                shapes.append(replace(shape, colour=_geom_colour(model, g)))
    return shapes, report.warnings


def _geom_colour(model: Any, g: int) -> Colour:
    """Colour of a geom: of its material, where it has one."""
    material = int(model.geom_matid[g])
    return _bytes(model.geom_rgba[g] if material < 0 else model.mat_rgba[material])


def _geom_shape(model: Any, g: int, body: int, at: Frame) -> Shape | None:
    """The shape of a geom in a frame of a body; None for planes, height fields and the like."""
    import mujoco

    a, b, c = (float(size) for size in model.geom_size[g])
    match mujoco.mjtGeom(model.geom_type[g]).name:
        case "mjGEOM_MESH":
            m = int(model.geom_dataid[g])
            v, f = int(model.mesh_vertadr[m]), int(model.mesh_faceadr[m])
            vertices = np.array(model.mesh_vert[v : v + int(model.mesh_vertnum[m])], float)
            faces = np.array(model.mesh_face[f : f + int(model.mesh_facenum[m])])
            return mesh(body, "visual", Triangles(vertices, faces), at)
        case "mjGEOM_BOX":
            return box(body, "visual", (2 * a, 2 * b, 2 * c), at)
        case "mjGEOM_SPHERE":
            return ball(body, "visual", a, at)
        case "mjGEOM_ELLIPSOID":
            return ball(body, "visual", (a, b, c), at)
        case "mjGEOM_CYLINDER":
            return cylinder(body, "visual", a, 2 * b, at)
        case "mjGEOM_CAPSULE":
            return capsule(body, "visual", a, 2 * b, at)
    return None
