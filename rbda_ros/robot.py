"""Robot: names and numpy arrays around the kernels."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.cluster_tree.tree import ClusterTree, build_cluster_tree
from rbda_ros.description import read_description
from rbda_ros.description.model import RobotDescription
from rbda_ros.errors import DescriptionError, InputError, Problem
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.trace import KERNELS, trace

Array = NDArray[np.float64]

QUATERNION_TOLERANCE = 1e-3
"""Quaternions are normalised when they are this close to unit length, and refused otherwise."""


@dataclass(frozen=True)
class Cluster:
    """Bodies that loop constraints tie together, by name.

    ``parent`` is the name of the parent cluster, None for one that hangs from the fixed base.
    """

    name: str
    links: tuple[str, ...]
    joints: tuple[str, ...]
    independent_joints: tuple[str, ...]
    constraints: tuple[str, ...]
    parent: str | None


def load_robot(
    urdf: str | os.PathLike[str],
    loops: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    floating_base: bool = False,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Robot:
    """Build a robot from its URDF and its loop-constraint file.

    Args:
        urdf: a path or XML text (URDF or URDF+).
        loops: a path, YAML text or a mapping; None for no loops beyond the URDF's.
        floating_base: whether the root link moves freely. A URDF floating joint that is the
            only joint on the root link is the floating base in any case.
        gravity: (3,) acceleration of gravity in world axes [m/s^2].

    Raises:
        ModelError: the files cannot be used; it names every element and what to change.
    """
    g = np.asarray(gravity, dtype=float)
    if g.shape != (3,) or not np.all(np.isfinite(g)):
        remedy = "give three finite numbers, m/s^2 in world axes"
        raise DescriptionError([Problem("gravity", f"{gravity!r} is no vector", remedy)])
    description = read_description(urdf, loops)
    return Robot(build_cluster_tree(description, floating_base, (g[0], g[1], g[2])))


class Robot:
    """The dynamics of one robot. Threads may share it.

    With a floating base, ``q`` starts with ``x y z qx qy qz qw``, and ``qd``, accelerations and
    forces with the base twist or wrench, linear then angular, in the base frame. Every vector
    may carry a leading batch axis.
    """

    def __init__(self, tree: ClusterTree) -> None:
        self._tree = tree
        self._kernels: dict[str, Kernel] = {}
        self._tracing = threading.Lock()
        self.description: RobotDescription = tree.description
        self.name: str = tree.description.name
        self.floating_base: bool = tree.spanning.floating_base
        self.nq, self.nv, self.ny = tree.nq, tree.nv, tree.ny
        self.mass: float = float(sum(body.mass for body in tree.spanning.bodies))
        bodies = tree.spanning.bodies[1:] if self.floating_base else tree.spanning.bodies
        self.joint_names: tuple[str, ...] = tuple(body.joint.name for body in bodies)
        self.independent_joint_names: tuple[str, ...] = self.joint_names
        self.actuated_joint_names: tuple[str, ...] = self.independent_joint_names
        self.clusters: tuple[Cluster, ...] = _clusters(tree)

    def kernel(self, name: str) -> Kernel:
        """The traced kernel of an algorithm, e.g. ``"inverse_dynamics"``; traced once."""
        if name not in KERNELS:
            raise InputError(f"there is no kernel {name!r}; there are {', '.join(KERNELS)}")
        with self._tracing:
            if name not in self._kernels:
                self._kernels[name] = trace(self._tree, name)
            return self._kernels[name]

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        ydd: ArrayLike,
        external_wrenches: Mapping[str, ArrayLike] | None = None,
    ) -> Array:
        """The generalized force on y that gives ydd: constraint-embedding RNEA.

        ``tau = H(y) ydd + C(y, yd) - J' w`` (Chignoli 2024, Sec. V): with gravity, Coriolis and
        centrifugal forces, rotors and linkages; without friction.

        Args:
            q: (nq,) spanning position [rad, m].
            qd: (nv,) spanning velocity [rad/s, m/s].
            ydd: (ny,) independent acceleration [rad/s^2, m/s^2].
            external_wrenches: link name to (6,) force then moment that acts on the link, in the
                link's frame, at its origin [N, N m].

        Returns:
            (ny,) force on the independent coordinates [N m, N].
        """
        state = [self._position(q), self._vector("qd", qd, self.nv)]
        state.append(self._vector("ydd", ydd, self.ny))
        if not external_wrenches:
            return self._evaluate("inverse_dynamics", *state)
        wrenches = self._body_wrenches(external_wrenches)
        return self._evaluate("inverse_dynamics_with_wrenches", *state, wrenches)

    def actuator_efforts(self, q: ArrayLike, tau: ArrayLike) -> Array:
        """Efforts (actuated,) on the actuated joints that give the generalized force tau (ny,).

        The wrench on a floating base is no actuator's: it is left out.
        """
        self._position(q)
        return self._vector("tau", tau, self.ny)[..., 6 if self.floating_base else 0 :]

    def close(
        self, y_or_partial: ArrayLike | Mapping[str, float], guess: ArrayLike | None = None
    ) -> Array:
        """The spanning position (nq,) that satisfies every loop.

        Args:
            y_or_partial: independent position, or joint names to positions of any joints that
                determine it [rad, m].
            guess: (nq,) where to start, e.g. the last position.
        """
        if isinstance(y_or_partial, Mapping):
            unknown = sorted(set(y_or_partial) - set(self.joint_names))
            missing = [name for name in self.joint_names if name not in y_or_partial]
            if unknown or missing:
                raise InputError(_names_message(unknown, missing, self.joint_names))
            base = self._neutral_base() if guess is None else np.asarray(guess, dtype=float)[:7]
            joints = [float(y_or_partial[name]) for name in self.joint_names]
            y_or_partial = np.concatenate([base[: self.nq - len(joints)], joints])
        return self._position(y_or_partial)

    def _neutral_base(self) -> Array:
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0] if self.floating_base else [])

    def _evaluate(self, name: str, *inputs: Array) -> Array:
        """Call a kernel at one state, or at each of a batch; inputs broadcast along the batch."""
        kernel = self.kernel(name)
        if all(array.ndim == 1 for array in inputs):
            return kernel.call(*inputs)[0]
        count = max(len(array) for array in inputs if array.ndim == 2)
        if any(array.ndim == 2 and len(array) != count for array in inputs):
            sizes = [len(array) if array.ndim == 2 else 1 for array in inputs]
            raise InputError(f"the batches have different lengths: {sizes}")
        return kernel.batch(*(np.broadcast_to(a, (count, a.shape[-1])) for a in inputs))[0]

    def _position(self, q: ArrayLike) -> Array:
        q = self._vector("q", q, self.nq)
        if not self.floating_base:
            return q
        size = np.linalg.norm(q[..., 3:7], axis=-1, keepdims=True)
        if np.any(np.abs(size - 1.0) > QUATERNION_TOLERANCE):
            raise InputError(
                f"q: the base quaternion (qx, qy, qz, qw) has length {np.ravel(size)[0]:.6g};"
                " give a unit quaternion"
            )
        q = q.copy()
        q[..., 3:7] /= size
        return q

    def _vector(self, name: str, value: ArrayLike, size: int) -> Array:
        """The argument as (size,) or (N, size) finite floats."""
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise InputError(f"{name}: {value!r} is not an array of numbers") from None
        if array.ndim not in (1, 2) or array.shape[-1] != size:
            raise InputError(f"{name} has shape {array.shape}; {self.name} needs ({size},)")
        if not np.all(np.isfinite(array)):
            raise InputError(f"{name}[{int(np.argwhere(~np.isfinite(array))[0][-1])}] is not finite")
        return array

    def _body_wrenches(self, wrenches: Mapping[str, ArrayLike]) -> Array:
        """(6 * bodies,) wrenches in body frames, angular first, from link wrenches by name."""
        total = np.zeros((len(self._tree.spanning.bodies), 6))
        for link, wrench in wrenches.items():
            place = self._tree.spanning.links.get(link)
            if place is None:
                raise InputError(f"external_wrenches: {self.name} has no link {link!r}")
            force, moment = np.split(self._vector(f"external_wrenches[{link!r}]", wrench, 6), 2)
            if place.body:
                R, p = place.frame.R, place.frame.p
                total[place.body - 1, :3] += R @ moment + np.cross(p, R @ force)
                total[place.body - 1, 3:] += R @ force
        return total.ravel()


def _names_message(unknown: list[str], missing: list[str], known: tuple[str, ...]) -> str:
    parts = []
    if unknown:
        parts.append(f"unknown joints {', '.join(unknown)}")
    if missing:
        parts.append(f"no position for {', '.join(missing)}")
    return f"{'; '.join(parts)}; the moving joints are {', '.join(known)}"


def _clusters(tree: ClusterTree) -> tuple[Cluster, ...]:
    links: dict[int, list[str]] = {}
    for link, place in tree.spanning.links.items():
        links.setdefault(place.body, []).append(link)
    return tuple(
        Cluster(
            name=node.name,
            links=tuple(link for i in node.numbers for link in links[i]),
            joints=tuple(body.joint.name for body in node.bodies),
            independent_joints=tuple(body.joint.name for body in node.bodies),
            constraints=(),
            parent=None if node.parent is None else tree.clusters[node.parent].name,
        )
        for node in tree.clusters
    )
