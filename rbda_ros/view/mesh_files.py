"""Where the mesh files are that a description names, and what is in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

LARGEST_MESH = 64 * 1024 * 1024
"""Bytes of a mesh file that is drawn; a page of larger ones would not move."""

LFS_POINTER = b"version https://git-lfs"
"""First bytes of a pointer file of Git LFS."""


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
