"""Inertia that a joint cannot see, moved to the body before it: the same dynamics for less work.

About its axis z, a revolute joint cannot feel an inertia R with ``R S = 0`` that looks the same
when turned about z: a mass and first moment on the axis, and diag(I_yy, I_yy, 0). Such a part
might as well be fixed to the parent body. For a prismatic joint it is the whole rotational
inertia. Kinetic and potential energy stay what they are, so torques and accelerations are exact;
only the wrenches inside single bodies are not. Total mass, and the first moment at every position,
are those of all bodies and of `ClusterTree.base_inertia`: what moved as far as the fixed base.

What is left of a symmetric rotor is its spin inertia, which looks the same at every angle: its
frame need not turn, and its angle's sine and cosine are never computed. Where the links that it
drives turn about parallel axes, it is an armature of their joints, and nothing is left of it as a
body (see `armature`). Where only its neighbour does, it might as well sit on that link, and turn
against it with the difference of their velocities: the cluster then hangs by the link alone.

Such an armature gives the exact dynamics of a geared joint without its rotor's body.

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

from collections.abc import Collection, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.spanning_tree import Body, inertial_parameters, spatial_inertia_of
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Array, Transform

NEGLIGIBLE = 1e-14
"""Share of a body's inertia below which an entry is rounding left over from moving it."""
_regrouped: WeakKeyDictionary[ClusterTree, ClusterTree] = WeakKeyDictionary()
"""Regrouped trees where no body must turn: most kernels of a robot begin with it."""


def regroup(tree: ClusterTree, turning: Collection[int] = ()) -> ClusterTree:
    """The same robot with inertia moved towards the base, leaf to base.

    Args:
        tree: the cluster tree.
        turning: numbers of bodies whose frames must turn with them all the same, because forces
            on them or frames on them are asked for.
    """
    if turning:
        return _regroup(tree, turning)
    found = _regrouped.get(tree)
    if found is None:
        found = _regrouped[tree] = _regroup(tree, turning)
    return found


def _regroup(tree: ClusterTree, turning: Collection[int]) -> ClusterTree:
    bodies = tree.spanning.bodies
    inertias = {0: np.zeros((6, 6))} | {i: b.inertia.copy() for i, b in enumerate(bodies, start=1)}
    has_children = {body.parent for body in bodies}
    armatures = []
    for node in tree.clusters:
        free = [j for j, i in enumerate(node.numbers) if i not in has_children and i not in turning]
        rotors = [j for j in free if _is_rotor(node.bodies[j])]
        armatures.append(absorb_rotors(node, inertias, rotors))
    for i in reversed(range(1, len(bodies) + 1)):
        body = bodies[i - 1]
        unseen = _unseen(body, inertias[i])
        scale = np.abs(inertias[i]).max()
        inertias[i] = _tidy(inertias[i] - unseen, scale)
        inertias[body.parent] += _at_parent(body.X_tree, unseen)
    regrouped = [
        replace(
            body,
            inertia=inertias[i],
            turns=i in has_children or i in turning or not _looks_the_same(body, inertias[i]),
        )
        for i, body in enumerate(bodies, start=1)
    ]
    tree = tree.with_bodies(regrouped)
    with_armatures = zip(tree.clusters, armatures, strict=True)
    clusters = tuple(
        _rotors_on_links(replace(node, rotor_armature=A if A.any() else None))
        for node, A in with_armatures
    )
    spanning = replace(tree.spanning, bodies=tuple(b for node in clusters for b in node.bodies))
    return replace(tree, spanning=spanning, clusters=clusters, base_inertia=inertias[0])


def _rotors_on_links(node: ClusterNode) -> ClusterNode:
    """The cluster with rotors moved onto links that turn about parallel axes."""
    bodies, inside, output = list(node.bodies), list(node.inside), list(node.output)
    relative = np.eye(node.nv)
    for i, rotor in enumerate(node.bodies):
        for j, link in enumerate(node.bodies[:i]):
            same = _same_axis(link, rotor) if link.turns and not rotor.turns else 0
            if same:
                bodies[i] = replace(rotor, parent=node.numbers[j], X_tree=Transform(()))
                inside[i], output[i] = j, None
                of_rotor, of_link = node.velocity_ranges[i].start, node.velocity_ranges[j].start
                relative[of_rotor, [of_rotor, of_link]] = same, -1.0
                break
    if inside == list(node.inside):
        return node
    return replace(
        node,
        bodies=tuple(bodies),
        inside=tuple(inside),
        output=tuple(output),
        relative=relative,
    )


def _same_axis(link: Body, rotor: Body) -> int:
    """1 where two bodies on one turn about parallel axes, -1 where these are opposite, else 0."""
    if link.parent != rotor.parent or link.joint.type not in ("revolute", "continuous"):
        return 0
    one, other = _axis(link), _axis(rotor)
    sign = 1 if one @ other > 0.0 else -1
    return sign if np.abs(one - sign * other).max() < SAME_AXIS else 0


def _unseen(body: Body, inertia: Array) -> Array:
    """The part (6, 6) of an inertia that the body's joint cannot feel."""
    unseen = np.zeros((6, 6))
    if body.joint.type in ("revolute", "continuous"):
        mass, mz, iyy = inertia[5, 5], inertia[1, 3], inertia[1, 1]
        unseen[0, 0] = unseen[1, 1] = iyy
        unseen[0, 4] = unseen[4, 0] = -mz
        unseen[1, 3] = unseen[3, 1] = mz
        unseen[3, 3] = unseen[4, 4] = unseen[5, 5] = mass
    elif body.joint.type == "prismatic":
        unseen[:3, :3] = inertia[:3, :3]
    return unseen


def _at_parent(X_tree: Transform, inertia: Array) -> Array:
    """``X' I X`` in numbers, of ten parameters: rounding leaves no entry beside its equal."""
    X = np.asarray(X_tree @ np.eye(6))
    moved = inertial_parameters(X.T @ inertia @ X)
    moved[0] = inertia[5, 5]
    return spatial_inertia_of(moved)


def _is_rotor(body: Body) -> bool:
    """Whether a spin inertia is all that its joint feels of a body."""
    felt = _tidy(body.inertia - _unseen(body, body.inertia), np.abs(body.inertia).max())
    return _looks_the_same(body, felt) and felt[2, 2] > 0.0


def _looks_the_same(body: Body, inertia: Array) -> bool:
    """Whether an inertia is a spin inertia about the joint axis alone."""
    spin = np.zeros((6, 6))
    spin[2, 2] = inertia[2, 2]
    return body.joint.type in ("revolute", "continuous") and np.array_equal(inertia, spin)


def _tidy(inertia: Array, scale: float) -> Array:
    return np.where(np.abs(inertia) < NEGLIGIBLE * scale, 0.0, inertia)


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
        parts = np.linalg.lstsq(rates.T, spin * n, rcond=None)[0]
        if np.abs(rates.T @ parts - spin * n).max() > EXACT * spin * np.abs(n).max():
            continue
        armature += spin * np.outer(n, n) - rates.T @ (parts[:, None] * rates)
        inertias[node.numbers[i]][2, 2] = 0.0
        inertias[rotor.parent][:3, :3] += (spin - parts.sum()) * np.outer(z, z)
        for (axis, _), j, share in zip(links.values(), links, parts, strict=True):
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
