"""MuJoCo's compiler, an optional dependency: its errors as our problems, and names of elements.

Elements without a name in the file are numbered.
"""

from __future__ import annotations

import os
from typing import Any

from rbda_ros.description.report import Report
from rbda_ros.description.source import is_text
from rbda_ros.description.values import unused

_TETRAHEDRON = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
"""Vertices of a mesh in the place of one that is not wanted."""
_LFS_POINTER = b"version https://git-lfs"


def compile_mjcf(
    source: str | os.PathLike[str], text: str, report: Report, *, drawn: bool = True
) -> Any | None:
    """The compiled model (mujoco.MjModel); None after noting why there is none.

    Meshes that cannot be read are left out, where no inertia comes from them; textures, too.

    Args:
        source: a path, whose folder is where meshes and included files are, or the text.
        text: the XML text.
        report: takes the problem.
        drawn: whether meshes are wanted from which no inertia comes. They take most of the time.
    """
    try:
        import mujoco
    except ImportError:
        report.problem(
            "MJCF",
            "is compiled by MuJoCo, which is not installed",
            "pip install 'mujoco>=3.3.1,<4.1'",
        )
        return None
    path = "" if is_text(source) else os.path.abspath(source)  # where MuJoCo looks for includes
    failures = (ValueError, RuntimeError, TypeError, UnicodeError, mujoco.FatalError)
    first = ""
    if drawn:
        try:
            return (
                mujoco.MjModel.from_xml_path(path) if path else mujoco.MjModel.from_xml_string(text)
            )
        except failures as error:
            first = _first_line(error)
    try:
        spec = mujoco.MjSpec.from_file(path) if path else mujoco.MjSpec.from_string(text)
        if not _leave_out_files(spec, os.path.dirname(path) if path else None, drawn, report):
            return None
        if not drawn:  # lengths of muscles come from a simulation, which takes seconds
            spec.compiler.LRopt.mode = int(mujoco.mjtLRMode.mjLRMODE_NONE)
        return spec.compile()
    except failures as error:
        reason = _first_line(error)
        if first not in ("", reason):
            reason = f"{first}; and without its meshes: {reason}"
        report.problem("MJCF", f"MuJoCo does not compile it: {reason}", "correct it there")
        return None


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3]) or type(error).__name__


def _leave_out_files(spec: Any, folder: str | None, drawn: bool, report: Report) -> bool:
    """Take out of a model all that needs files which cannot be read, or are not wanted.

    False after noting why it cannot be: some inertia comes from a file that cannot be read.

    Args:
        spec: mujoco.MjSpec; changed in place.
        folder: where the model is; None for text, whose files cannot be found.
        drawn: whether meshes are wanted from which no inertia comes.
        report: takes a warning, or the problem.
    """
    import mujoco

    for texture in list(spec.textures):
        spec.delete(texture)
    for material in list(spec.materials):
        material.textures = [""] * len(material.textures)
    for skin in list(spec.skins):
        spec.delete(skin)
    unreadable: dict[str, str] = {}
    for mesh in (*spec.meshes, *spec.hfields):
        if mesh.file and (reason := _unreadable(spec, mesh.file, folder)):
            unreadable[_mesh_name(mesh)] = reason
    needed, usable = set(), True
    for geom in list(spec.geoms):
        name = geom.meshname or geom.hfieldname
        if not name:
            continue
        gives_inertia = _gives_inertia(spec, geom)
        if gives_inertia and name in unreadable:
            report.problem(
                f"body {geom.parent.name!r}",
                f"its inertia comes from mesh {name!r}, whose file {unreadable[name]}",
                "provide the mesh, or state <inertial>",
            )
            usable = False
        elif gives_inertia or (drawn and name not in unreadable):
            needed.add(name)
            continue
        # A point in its place: pairs of contacts and sensors may name it.
        geom.type, geom.size = mujoco.mjtGeom.mjGEOM_SPHERE, [1e-6, 0.0, 0.0]
        geom.meshname = geom.hfieldname = ""
        geom.mass = 0.0
    for mesh in spec.meshes:
        if _mesh_name(mesh) not in needed:  # deleting one takes 10 ms
            mesh.name, mesh.file = _mesh_name(mesh), ""
            mesh.uservert, mesh.userface, mesh.scale = _TETRAHEDRON, (), (1.0, 1.0, 1.0)
    for field in list(spec.hfields):
        if _mesh_name(field) not in needed:
            spec.delete(field)
    if unreadable and drawn:
        reasons = ", ".join(sorted(set(unreadable.values())))
        report.warn("MJCF", f"{len(unreadable)} meshes are left out: a file {reasons}")
    return usable


def _mesh_name(mesh: Any) -> str:
    """Its own, or that of its file."""
    return str(mesh.name or os.path.splitext(os.path.basename(mesh.file))[0])


def _unreadable(spec: Any, file: str, folder: str | None) -> str | None:
    """Why a file of a model cannot be read; None where it can."""
    if folder is None and not os.path.isabs(file):
        return "is not found beside a text"
    path = os.path.join(folder or "", spec.meshdir or "", file)
    try:
        with open(path, "rb") as stream:
            start = stream.read(len(_LFS_POINTER))
    except (OSError, ValueError):
        return "is not found"
    return "is a pointer of Git LFS, not the mesh" if start == _LFS_POINTER else None


def _gives_inertia(spec: Any, geom: Any) -> bool:
    """Whether the inertia of a body that moves is computed from a shape."""
    compiler, body = spec.compiler, geom.parent
    lowest, highest = compiler.inertiagrouprange
    if geom.mass == 0.0 or geom.density == 0.0 or not lowest <= geom.group <= highest:
        return False
    if body.explicitinertial and int(compiler.inertiafromgeom) != 1:  # 1: always, 2: where needed
        return False
    while body is not None and body.name != "world":
        if list(body.joints):
            return True
        body = body.parent
    return False


class Names:
    """Unique names of bodies, joints and actuators of one model.

    Args:
        model: mujoco.MjModel.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._bodies = _unique([model.body(i).name for i in range(model.nbody)], "body")
        self._joints = _unique([model.joint(i).name for i in range(model.njnt)], "joint")
        self._link_names = set(self._bodies)
        self._joint_names = set(self._joints)

    def model(self) -> str:
        """The robot's name."""
        text = bytes(self._model.names[: self._model.name_bodyadr[0]]).split(b"\0")[0]
        return text.decode(errors="replace").strip() or "robot"

    def body(self, i: int) -> str:
        """Name of a body; 0 is the world."""
        return self._bodies[int(i)]

    def joint(self, i: int) -> str:
        """Name of a joint."""
        return self._joints[int(i)]

    def actuator(self, i: int) -> str:
        """Name of an actuator."""
        return self._model.actuator(i).name or f"actuator_{i}"

    def equality(self, i: int) -> str:
        """Name of an equality."""
        return self._model.equality(i).name or f"equality_{i}"

    def tendon(self, i: int) -> str:
        """Name of a tendon."""
        return self._model.tendon(i).name or f"tendon_{i}"

    def fixed_tendon(self, i: int) -> dict[str, float]:
        """Joints and coefficients of a tendon's length; empty for spatial ones."""
        import mujoco

        model = self._model
        first, count = int(model.tendon_adr[i]), int(model.tendon_num[i])
        wraps = range(first, first + count)
        if any(int(model.wrap_type[w]) != int(mujoco.mjtWrap.mjWRAP_JOINT) for w in wraps):
            return {}
        terms: dict[str, float] = {}
        for w in wraps:
            name = self.joint(model.wrap_objid[w])
            terms[name] = terms.get(name, 0.0) + float(model.wrap_prm[w])
        return {name: coefficient for name, coefficient in terms.items() if coefficient}

    def unique_link(self, name: str) -> str:
        """A name that no link has yet."""
        return _add(name, self._link_names)

    def unique_joint(self, name: str) -> str:
        """A name that no joint has yet."""
        return _add(name, self._joint_names)


def _unique(given: list[str], kind: str) -> list[str]:
    taken = {name for name in given if name}
    return [name or _add(f"{kind}_{i}", taken) for i, name in enumerate(given)]


def _add(name: str, taken: set[str]) -> str:
    name = unused(name, taken)
    taken.add(name)
    return name
