"""MuJoCo's compiler: an optional dependency, and what it says made into our problems."""

from __future__ import annotations

import os
from typing import Any

from rbda_ros.description.report import Report


def compile_mjcf(source: str | os.PathLike[str], text: str, report: Report) -> Any | None:
    """The compiled model (mujoco.MjModel); None after noting why there is none.

    Meshes that are not there are left out, where the bodies state their inertias.

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
            "pip install 'rbda_ros[mjcf]'",
        )
        return None
    is_path = not (isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"))
    failures = (ValueError, RuntimeError, TypeError, UnicodeError, mujoco.FatalError)
    try:
        if is_path:
            return mujoco.MjModel.from_xml_path(os.fspath(source))
        return mujoco.MjModel.from_xml_string(text)
    except failures as error:
        first = _first_line(error)
    try:
        spec = (
            mujoco.MjSpec.from_file(os.fspath(source))
            if is_path
            else mujoco.MjSpec.from_string(text)
        )
        if not _without_meshes(spec, report):
            raise ValueError(first)
        return spec.compile()
    except failures:
        report.problem("MJCF", f"MuJoCo does not compile it: {first}", "correct it there")
        return None


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3]) or type(error).__name__


def _without_meshes(spec: Any, report: Report) -> bool:
    """Leave out all that is only drawn or touched; False where inertias come from it."""
    import mujoco

    kinds = mujoco.mjtGeom
    drawn = [int(kind) for kind in (kinds.mjGEOM_MESH, kinds.mjGEOM_HFIELD, kinds.mjGEOM_SDF)]
    left_out = 0
    for geom in list(spec.geoms):
        if int(geom.type) in drawn or geom.meshname:
            weightless = geom.mass == 0.0 or geom.density == 0.0
            stated = geom.parent.explicitinertial or geom.parent.name == "world"
            if not (weightless or stated):
                return False
            spec.delete(geom)
            left_out += 1
    for group in (spec.meshes, spec.hfields, spec.skins):
        for element in list(group):
            spec.delete(element)
    for texture in list(spec.textures):
        spec.delete(texture)
    for material in list(spec.materials):
        material.textures = [""] * len(material.textures)
    report.warn("MJCF", f"{left_out} meshes are not found, and are left out: inertias are stated")
    return True
