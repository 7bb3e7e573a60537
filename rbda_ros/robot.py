"""Robot: names and numpy arrays around the kernels."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.cluster_tree.closure import close_cluster
from rbda_ros.cluster_tree.tree import ClusterTree, build_cluster_tree
from rbda_ros.description import read_description
from rbda_ros.description.model import RobotDescription
from rbda_ros.errors import DescriptionError, InputError, Problem
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.trace import KERNELS, trace

Array = NDArray[np.float64]

QUATERNION_TOLERANCE = 1e-3
"""Quaternions are normalised when they are this close to unit length, and refused otherwise."""
LOOP_TOLERANCE = 1e-6
"""Largest loop residual of a spanning position that is taken as it is [m, sine of an angle]."""


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
        floating_base: whether the root link moves freely. The one floating joint that a URDF
            has on its root link is the floating base in any case.
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

    Positions and velocities may be spanning vectors (every joint) or independent ones (y); the
    length decides. With a floating base, ``q`` starts with ``x y z qx qy qz qw``, and ``qd``,
    accelerations and forces with the base twist or wrench, linear then angular, in the base
    frame. Every vector may carry a leading batch axis.
    """

    def __init__(self, tree: ClusterTree) -> None:
        self._tree = tree
        self._kernels: dict[str, Kernel] = {}
        self._tracing = threading.Lock()
        self._independent = list(tree.independent)
        self._independent_positions = _independent_positions(tree)
        self._quaternions = _quaternions(tree)
        self._has_loops = any(node.loop for node in tree.clusters)

        self.description: RobotDescription = tree.description
        self.name: str = tree.description.name
        self.warnings: tuple[str, ...] = tree.warnings
        self.floating_base: bool = tree.spanning.floating_base
        self.nq, self.nv, self.ny = tree.nq, tree.nv, tree.ny
        self.mass: float = float(sum(body.mass for body in tree.spanning.bodies))
        base = 1 if self.floating_base else 0
        names = tree.velocity_names
        self.joint_names: tuple[str, ...] = tuple(
            body.joint.name for body in tree.spanning.bodies[base:]
        )
        self.independent_joint_names: tuple[str, ...] = tuple(
            names[j] for j in tree.independent[6 * base :]
        )
        self.actuated_joint_names: tuple[str, ...] = tuple(names[j] for j in tree.actuated)
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
            q: (nq,) spanning position, or independent position [rad, m].
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s].
            ydd: (ny,) independent acceleration [rad/s^2, m/s^2].
            external_wrenches: link name to (6,) force then moment that acts on the link, in the
                link's frame, at its origin [N, N m].

        Returns:
            (ny,) force on the independent coordinates [N m, N].
        """
        state = self._position(q), self._velocity(qd), self._vector("ydd", ydd, self.ny)
        if not external_wrenches:
            return self._evaluate("inverse_dynamics", *state)[0]
        wrenches = self._body_wrenches(external_wrenches)
        return self._evaluate("inverse_dynamics_with_wrenches", *state, wrenches)[0]

    def actuator_efforts(self, q: ArrayLike, tau: ArrayLike) -> Array:
        """Efforts on the actuated joints that give the generalized force tau on y.

        They solve ``W' efforts = tau`` (Chignoli 2024, footnotes 3 and 5), and are the smallest
        that do where actuators are redundant. What no actuator can give, such as the wrench on
        a floating base, is left out.

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            tau: (ny,) generalized force [N m, N].

        Returns:
            (actuated,) efforts in the order of ``actuated_joint_names`` [N m, N].
        """
        state = self._position(q), self._vector("tau", tau, self.ny)
        return self._evaluate("actuator_efforts", *state)[0]

    def spanning_acceleration(self, q: ArrayLike, qd: ArrayLike, ydd: ArrayLike) -> Array:
        """The acceleration of every joint, ``qdd = G ydd + g`` (Chignoli 2024, Eq. 3).

        Args:
            q: (nq,) spanning position, or independent position [rad, m].
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s].
            ydd: (ny,) independent acceleration [rad/s^2, m/s^2].

        Returns:
            (nv,) spanning acceleration.
        """
        state = self._position(q), self._velocity(qd), self._vector("ydd", ydd, self.ny)
        return self._evaluate("spanning_motion", *state)[1]

    def spanning_velocity(self, q: ArrayLike, yd: ArrayLike) -> Array:
        """The velocity of every joint, ``qd = G yd`` (nv,) (Chignoli 2024, Eq. 3)."""
        yd = self._velocity(yd)
        return self._evaluate("spanning_motion", self._position(q), yd, np.zeros(self.ny))[0]

    def close(
        self,
        y_or_partial: ArrayLike | Mapping[str, float],
        guess: ArrayLike | None = None,
    ) -> Array:
        """The spanning position (nq,) that satisfies every loop.

        Args:
            y_or_partial: independent position, or spanning position to be closed, or joint names
                to positions of any joints that determine the others [rad, m].
            guess: (nq,) where to start, e.g. the last position; it also picks the branch of the
                assembly, and gives the pose of a floating base where only joints are named.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
            ClosureError: the loops cannot be closed there; it names the loop and the gap.
        """
        start = self._tree.home if guess is None else self._vector("guess", guess, self.nq)
        if start.ndim != 1:
            raise InputError("guess: give one position, not a batch")
        if isinstance(y_or_partial, Mapping):
            return self._close(self._known_by_name(y_or_partial, start), start)
        rows = self._vector("y", y_or_partial, self.nq, self._independent_size())
        closed = []
        for row in np.atleast_2d(rows):
            start = self._close(self._known_in(row), start)
            closed.append(start)
        return np.array(closed).reshape(*rows.shape[:-1], self.nq)

    def _close(self, known: Mapping[int, Array], guess: Array) -> Array:
        """Close every cluster; ``known`` has positions by body number."""
        parts = []
        start = 0
        for node in self._tree.clusters:
            inside = {i: known[n] for i, n in enumerate(node.numbers) if n in known}
            parts.append(close_cluster(node, inside, guess[start : start + node.nq]))
            start += node.nq
        return self._normalized(np.concatenate([np.zeros(0), *parts]))

    def _known_by_name(self, positions: Mapping[str, float], base: Array) -> dict[int, Array]:
        number_of = self._tree.spanning.body_of_joint()
        unknown = sorted(set(positions) - set(self.joint_names))
        if unknown:
            raise InputError(
                f"{self.name} has no moving joint {', '.join(unknown)};"
                f" its joints are {', '.join(self.joint_names)}"
            )
        known = {1: base[:7]} if self.floating_base else {}
        for name, position in positions.items():
            size = self._tree.spanning.bodies[number_of[name] - 1].model.nq
            known[number_of[name]] = self._vector(name, np.atleast_1d(position), size)
        for node in self._tree.clusters:
            if node.loop is None and node.numbers[0] not in known:
                name = node.bodies[0].joint.name
                raise InputError(f"joint {name} is not given, and no loop determines it")
        return known

    def _known_in(self, row: Array) -> dict[int, Array]:
        """Positions by body number, from a spanning or an independent vector."""
        indices = range(self.nq) if row.size == self.nq else self._independent_positions or ()
        value = dict(zip(indices, row, strict=True))
        known, start = {}, 0
        for number, body in enumerate(self._tree.spanning.bodies, start=1):
            if start in value:
                known[number] = np.array([value[start + i] for i in range(body.model.nq)])
            start += body.model.nq
        return known

    def _independent_size(self) -> int:
        """Length of an independent position; that of q where only spanning ones will do."""
        positions = self._independent_positions
        return self.nq if positions is None else len(positions)

    def _evaluate(self, name: str, *inputs: Array) -> tuple[Array, ...]:
        """Call a kernel at one state, or at each of a batch; inputs broadcast along the batch."""
        kernel = self.kernel(name)
        if all(array.ndim == 1 for array in inputs):
            return kernel.call(*inputs)
        sizes = {len(array) for array in inputs if array.ndim == 2}
        if len(sizes) > 1:
            raise InputError(f"the batches have different lengths: {sorted(sizes)}")
        count = sizes.pop()
        return kernel.batch(*(np.broadcast_to(a, (count, a.shape[-1])) for a in inputs))

    def _position(self, q: ArrayLike) -> Array:
        """A spanning position on the constraint manifold, from a spanning or independent one."""
        q = self._vector("q", q, self.nq, self._independent_size())
        if q.shape[-1] != self.nq:
            return self.close(q)
        q = self._normalized(q)
        if self._has_loops:
            residual = np.abs(self._evaluate("loop_residual", q)[0]).max(initial=0.0)
            if residual > LOOP_TOLERANCE:
                raise InputError(
                    f"q does not satisfy the loops: residual {residual:.3g}; close it with"
                    " close(), or give the independent positions"
                )
        return q

    def _normalized(self, q: Array) -> Array:
        """q with unit quaternions."""
        if not self._quaternions:
            return q
        q = q.copy()
        for start, joint in self._quaternions:
            quaternion = q[..., start : start + 4]
            size = np.linalg.norm(quaternion, axis=-1, keepdims=True)
            if np.any(np.abs(size - 1.0) > QUATERNION_TOLERANCE):
                raise InputError(
                    f"q: the quaternion (qx, qy, qz, qw) of {joint} has length"
                    f" {np.ravel(size)[0]:.6g}; give a unit quaternion"
                )
            quaternion /= size
        return q

    def _velocity(self, qd: ArrayLike) -> Array:
        """The independent velocity, from a spanning or independent one."""
        qd = self._vector("qd", qd, self.nv, self.ny)
        return qd if qd.shape[-1] == self.ny else qd[..., self._independent]

    def _vector(self, name: str, value: ArrayLike, *sizes: int) -> Array:
        """The argument as (size,) or (N, size) finite floats, for one of the sizes."""
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise InputError(f"{name}: {value!r} is not an array of numbers") from None
        if array.ndim not in (1, 2) or array.shape[-1] not in sizes:
            wanted = " or ".join(f"({size},)" for size in dict.fromkeys(sizes))
            raise InputError(f"{name} has shape {array.shape}; {self.name} needs {wanted}")
        if not np.all(np.isfinite(array)):
            index = int(np.argwhere(~np.isfinite(array))[0][-1])
            raise InputError(f"{name}[{index}] is not finite")
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


def _independent_positions(tree: ClusterTree) -> list[int] | None:
    """Which entries of q are the position of y; None where y has only part of some joint."""
    positions: list[int] = []
    iq, iv = 0, 0
    for body in tree.spanning.bodies:
        coordinates = [iv + j in tree.independent for j in range(body.model.nv)]
        if any(coordinates):
            if not all(coordinates):
                return None
            positions.extend(range(iq, iq + body.model.nq))
        iq, iv = iq + body.model.nq, iv + body.model.nv
    return positions


def _quaternions(tree: ClusterTree) -> list[tuple[int, str]]:
    """Where quaternions start in q, and the joints they belong to."""
    found, iq = [], 0
    for body in tree.spanning.bodies:
        iq += body.model.nq
        if body.joint.type in ("floating", "spherical"):
            found.append((iq - 4, body.joint.name))
    return found


def _clusters(tree: ClusterTree) -> tuple[Cluster, ...]:
    links: dict[int, list[str]] = {}
    for link, place in tree.spanning.links.items():
        links.setdefault(place.body, []).append(link)
    clusters = []
    for node in tree.clusters:
        names = [name for body in node.bodies for name in body.velocity_names]
        clusters.append(
            Cluster(
                name=node.name,
                links=tuple(link for i in node.numbers for link in links[i]),
                joints=tuple(body.joint.name for body in node.bodies),
                independent_joints=tuple(names[j] for j in node.independent),
                constraints=tuple(c.name for c in node.loop.constraints) if node.loop else (),
                parent=None if node.parent is None else tree.clusters[node.parent].name,
            )
        )
    return tuple(clusters)
