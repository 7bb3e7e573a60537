"""Rotors that are armatures: the exact dynamics of a geared joint without its rotor's body.

A symmetric rotor on body p that turns about an axis z of p has the energy

    I (w + n' yd)^2 / 2,    w = z' w_p,    n' yd its rate against p, through a constant gear.

Where the links that it drives turn about parallel axes, link j turns about z at the rate
``w + p_j' yd``, with p_j the sum of joint rates on the way from p. If ``I n = sum_j a_j p_j``, then

    I (w + n' yd)^2 = (I - sum_j a_j) w^2 + sum_j a_j (w + p_j' yd)^2 + yd' A yd,
    A = I n n' - sum_j a_j p_j p_j':

spin inertias a_j on the links, the rest on p, and a constant armature A of the joints. Both sides
are one function of position and velocity, so torques and accelerations are the same, gyroscopic
ones included. A link and its gear: a = n I on the link, (1 - n) I on p, A = n (n - 1) I.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.spanning_tree import Body
from rbda_ros.spatial import Array

SAME_AXIS = 1e-14
"""How far apart rounding may leave unit vectors along parallel axes."""
EXACT = 1e-12
"""Share of a rotor's gear ratios that links may leave unmatched: rounding."""


def absorb_rotors(node: ClusterNode, inertias: dict[int, Array], rotors: Sequence[int]) -> Array:
    """The armature A (ny, ny) of a cluster; what goes to links and parents is added to them.

    Args:
        node: the cluster.
        inertias: (6, 6) of every body by number, 0 for the fixed base; changed in place.
        rotors: positions in the cluster of bodies that have a spin inertia alone, and no children.
    """
    armature = np.zeros((node.ny, node.ny))
    if node.loop is None or not node.loop.constant:
        return armature
    G = np.asarray(ca.DM(ca.densify(node.velocity_map(ca.DM(node.nq, 1)))))
    for i in rotors:
        rotor, spin = node.bodies[i], inertias[node.numbers[i]][2, 2]
        z = _axis(rotor)
        links = _turning_along(node, rotor.parent, z, G, rotors)
        n = G[node.velocity_ranges[i].start]
        rates = np.array([rate for _, rate in links.values()]).reshape(-1, node.ny)
        shares = np.linalg.lstsq(rates.T, spin * n, rcond=None)[0]
        if np.abs(rates.T @ shares - spin * n).max() > EXACT * spin * np.abs(n).max():
            continue
        armature += spin * np.outer(n, n) - rates.T @ (shares[:, None] * rates)
        inertias[node.numbers[i]][2, 2] = 0.0
        inertias[rotor.parent][:3, :3] += (spin - shares.sum()) * np.outer(z, z)
        for (axis, _), j, share in zip(links.values(), links, shares, strict=True):
            inertias[node.numbers[j]][:3, :3] += share * np.outer(axis, axis)
    return armature


def _turning_along(
    node: ClusterNode, root: int, z: Array, G: Array, rotors: Sequence[int]
) -> dict[int, tuple[Array, Array]]:
    """Links that turn about z and hang from body ``root`` by such links, by position.

    Of each z in its own axes, and its rate (ny,) about z against the root, per unit of yd.
    """
    found: dict[int, tuple[Array, Array]] = {}
    for j, body in enumerate(node.bodies):
        before = node.inside[j]
        if body.parent == root:
            axis, rate = z, np.zeros(node.ny)
        elif before is not None and before in found:
            axis, rate = found[before]
        else:
            continue
        if j in rotors or body.joint.type not in ("revolute", "continuous"):
            continue
        sign = 1.0 if axis @ _axis(body) > 0.0 else -1.0
        if np.abs(axis - sign * _axis(body)).max() < SAME_AXIS:
            own = np.array([0.0, 0.0, sign])
            found[j] = own, rate + sign * G[node.velocity_ranges[j].start]
    return found


def _axis(body: Body) -> Array:
    """(3,) the joint axis, z of the body's frame, in the parent's axes."""
    return np.asarray(body.X_tree.pose()[0])[:, 2]
