"""Loads that a robot carries for a while: bodies fixed to its links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rbda_ros.cluster_tree.spanning_tree import link_inertia
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.description.model import Inertia, Pose, Vector3
from rbda_ros.description.validate import moments_fault
from rbda_ros.errors import InputError

LARGEST_PAYLOAD = 1e9
"""Largest mass, offset or moment of inertia of a load [kg, m, kg m^2]: no robot carries more."""


@dataclass(frozen=True)
class Payload:
    """A body fixed to a link.

    Attributes:
        link: that carries it.
        mass: [kg].
        com: centre of mass in the link's frame [m].
        inertia: ixx, ixy, ixz, iyy, iyz, izz about the centre of mass, in the link's axes
            [kg m^2]; zero for a point mass.
    """

    link: str
    mass: float
    com: Vector3 = (0.0, 0.0, 0.0)
    inertia: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def with_payloads(tree: ClusterTree, payloads: Mapping[str, Payload]) -> ClusterTree:
    """The tree with payloads added to the inertias of its bodies: ``I_i + X' I_payload X``.

    Raises:
        InputError: a payload that no body can be, or on no link of this robot.
    """
    bodies = list(tree.spanning.bodies)
    for name, payload in payloads.items():
        check_payload(tree, name, payload)
        place = tree.spanning.links[payload.link]
        if place.body:  # what is fixed to the world does not enter the dynamics
            body = bodies[place.body - 1]
            inertia = Inertia(payload.mass, Pose(payload.com), *payload.inertia)
            added = link_inertia(inertia, place.frame)
            bodies[place.body - 1] = replace(
                body, inertia=body.inertia + added, mass=body.mass + payload.mass
            )
    return tree.with_bodies(bodies)


def check_payload(tree: ClusterTree, name: str, payload: Payload) -> None:
    """Refuse what `with_payloads` would refuse."""
    where = f"payload {name!r}"
    if payload.link not in tree.spanning.links:
        links = ", ".join(tree.spanning.links)
        raise InputError(
            f"{where}: {tree.description.name} has no link {payload.link!r}; its links are {links}"
        )
    if len(payload.com) != 3 or len(payload.inertia) != 6:
        raise InputError(f"{where}: give three numbers for com and six for inertia")
    if not np.isfinite([payload.mass, *payload.com, *payload.inertia]).all():
        raise InputError(f"{where}: mass, com or inertia is not finite; give finite numbers")
    if not np.abs([payload.mass, *payload.com, *payload.inertia]).max() <= LARGEST_PAYLOAD:
        raise InputError(
            f"{where}: mass, com or inertia is above {LARGEST_PAYLOAD:g}; check the units"
        )
    if payload.mass <= 0.0:
        raise InputError(f"{where}: mass {payload.mass:g} kg; give one above zero, or remove it")
    ixx, ixy, ixz, iyy, iyz, izz = payload.inertia
    moments = np.linalg.eigvalsh([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
    if fault := moments_fault(moments):
        raise InputError(f"{where}: its inertia {fault}; give it about the centre of mass")
