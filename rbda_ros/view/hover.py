"""Names on hover: which body is under the pointer, and how the page asks for it.

viser reports clicks on bodies, but not a pointer that rests on one. So a short script in the page
clicks where the pointer rests on the scene.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from typing import Any

import numpy as np

from rbda_ros.robot import Robot
from rbda_ros.spatial import Array
from rbda_ros.view.shapes import Shape

SHOWN = 2.5
"""How long a label stays after the pointer was last seen on its body [s]."""
SCRIPT = b"""<script>(() => {
  let timer;
  const click = event => {
    const at = {bubbles: true, cancelable: true, isPrimary: true, pointerType: "mouse",
                pointerId: event.pointerId, clientX: event.clientX, clientY: event.clientY};
    for (const [kind, buttons] of [["pointerdown", 1], ["pointerup", 0], ["click", 0]])
      event.target.dispatchEvent(new PointerEvent(kind, {...at, buttons}));
    timer = setTimeout(click, 1500, event);
  };
  for (const kind of ["pointermove", "pointerdown", "pointerout", "wheel"])
    addEventListener(kind, event => {
      if (!event.isTrusted) return;
      clearTimeout(timer);
      if (kind === "pointermove" && !event.buttons && event.target.tagName === "CANVAS")
        timer = setTimeout(click, 150, event);
    }, true);
})();</script></head>"""
PARALLEL = 1e-12
"""Determinant below which a ray runs along a triangle."""

Ray = tuple[Array, Array]
"""Origin and direction (3,) in the world."""


def add_script(response: Any) -> Any:
    """The page of viser with the script; any other response as it is."""
    headers = getattr(response, "headers", {})
    if "html" not in headers.get("Content-Type", ""):
        return response
    zipped = headers.get("Content-Encoding") == "gzip"
    body = gzip.decompress(response.body) if zipped else response.body
    body = body.replace(b"</head>", SCRIPT, 1)
    response.body = gzip.compress(body) if zipped else body
    if "Content-Length" in headers:
        del headers["Content-Length"]
        headers["Content-Length"] = str(len(response.body))
    return response


def hit(ray: Ray, shapes: Sequence[Shape], R: Array, p: Array) -> tuple[int, Array] | None:
    """The body that a ray meets first, and where (3,); None where it meets none.

    Args:
        ray: in the world.
        shapes: of all bodies.
        R: (n, 3, 3) rotations of the bodies.
        p: (n, 3) their origins [m].
    """
    origin, direction = ray
    nearest, found = np.inf, None
    for shape in shapes:
        corners = shape.placed(R, p)
        distance = _distance(origin, direction, corners[np.asarray(shape.faces, int)])
        if distance < nearest:
            nearest, found = distance, shape.body
    return None if found is None else (found, origin + nearest * direction)


def _distance(origin: Array, direction: Array, triangles: Array) -> float:
    """Distance along a ray to the nearest of triangles (F, 3, 3); inf for none (Moeller 1997)."""
    first = triangles[:, 0]
    one, two = triangles[:, 1] - first, triangles[:, 2] - first
    across = np.cross(direction, two)
    determinant = np.einsum("fi,fi->f", one, across)
    flat = np.abs(determinant) < PARALLEL
    scale = 1.0 / np.where(flat, 1.0, determinant)
    away = origin - first
    u = scale * np.einsum("fi,fi->f", away, across)
    beside = np.cross(away, one)
    v = scale * (beside @ direction)
    distance = scale * np.einsum("fi,fi->f", two, beside)
    inside = ~flat & (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (distance > 0.0)
    return float(np.min(distance, where=inside, initial=np.inf))


def label(robot: Robot, body: int) -> str:
    """Link, joint and mass of a body, by its regular number."""
    if not body:
        return "fixed base"
    found = robot.spanning_tree.bodies[body - 1]
    return f"{found.name} ({found.joint.name}, {found.mass:.3g} kg)"
