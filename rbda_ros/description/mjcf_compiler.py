"""MuJoCo's compiler: an optional dependency, and what it says made into our problems."""

from __future__ import annotations

import os
from typing import Any

from rbda_ros.description.report import Report
from rbda_ros.description.source import is_text

_LFS_POINTER = b"version https://git-lfs"


def compile_mjcf(source: str | os.PathLike[str], text: str, report: Report) -> Any | None:
    """The compiled model (mujoco.MjModel); None after noting why there is none.

    Meshes that cannot be read are left out, where no inertia comes from them; textures, too.

    Args:
        source: a path, whose folder is where meshes and included files are, or the text.
        text: the XML text.
        report: takes the problem.
    """
    try:
        import mujoco
    except ImportError:
        report.problem(
            "MJCF",
            "is compiled by MuJoCo, which is not installed",
            "pip install 'mujoco>=3.3,<4.1'",
        )
        return None
    is_path = not is_text(source)
    path = os.path.abspath(source) if is_path else ""  # MuJoCo looks for includes beside it
    failures = (ValueError, RuntimeError, TypeError, UnicodeError, mujoco.FatalError)
    try:
        if is_path:
            return mujoco.MjModel.from_xml_path(path)
        return mujoco.MjModel.from_xml_string(text)
    except failures as error:
        first = _first_line(error)
    try:
        spec = mujoco.MjSpec.from_file(path) if is_path else mujoco.MjSpec.from_string(text)
        folder = os.path.dirname(path) if is_path else None
        if not _leave_out_files(spec, folder, report):
            return None
        return spec.compile()
    except failures as error:
        reason = _first_line(error)
        if reason != first:
            reason = f"{first}; and without its meshes: {reason}"
        report.problem("MJCF", f"MuJoCo does not compile it: {reason}", "correct it there")
        return None


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3]) or type(error).__name__


def _leave_out_files(spec: Any, folder: str | None, report: Report) -> bool:
    """Take out of a model all that needs files which cannot be read.

    False after noting why it cannot be: some inertia comes from such a file.

    Args:
        spec: mujoco.MjSpec; changed in place.
        folder: where the model is; None for text, whose files nobody knows.
        report: takes a warning, or the problem.
    """
    import mujoco

    for texture in list(spec.textures):
        spec.delete(texture)
    for material in list(spec.materials):
        material.textures = [""] * len(material.textures)
    for skin in list(spec.skins):
        spec.delete(skin)
    unreadable = {}
    for mesh in (*spec.meshes, *spec.hfields):
        if mesh.file and (reason := _unreadable(spec, mesh.file, folder)):
            unreadable[mesh.name or os.path.splitext(os.path.basename(mesh.file))[0]] = reason
    left_out, usable = 0, True
    for geom in list(spec.geoms):
        reason = unreadable.get(geom.meshname) or unreadable.get(geom.hfieldname)
        if reason is None:
            continue
        if _gives_inertia(spec, geom):
            report.problem(
                f"body {geom.parent.name!r}",
                f"its inertia comes from mesh {geom.meshname!r}, whose file {reason}",
                "provide the mesh, or state <inertial>",
            )
            usable = False
        # A point in its place: pairs of contacts and sensors may name it.
        geom.type, geom.size = mujoco.mjtGeom.mjGEOM_SPHERE, [1e-6, 0.0, 0.0]
        geom.meshname = geom.hfieldname = ""
        geom.mass = 0.0
        left_out += 1
    for element in (*spec.meshes, *spec.hfields):
        name = element.name or os.path.splitext(os.path.basename(element.file))[0]
        if name in unreadable:
            spec.delete(element)
    if unreadable:
        reasons = ", ".join(sorted(set(unreadable.values())))
        report.warn(
            "MJCF",
            f"{len(unreadable)} meshes cannot be read ({reasons}), and {left_out} shapes with them"
            " are left out; no inertia comes from them",
        )
    return usable


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
