"""Arguments as users give them, checked and turned into what kernels take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.algorithms.kinematics import BodyFrame
from rbda_ros.cluster_tree.closing.determining import Determining
from rbda_ros.cluster_tree.closing.search import close_cluster
from rbda_ros.cluster_tree.spanning_tree import frame_of
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.description.model import Pose
from rbda_ros.errors import InputError

Array = NDArray[np.float64]
FrameName = str | tuple[str, Sequence[float]] | tuple[str, Sequence[float], Sequence[float]]
"""A link, or a link with an offset: (link, xyz) or (link, xyz, rpy) in the link's frame."""

NOWHERE = (0.0, 0.0, 0.0)
QUATERNION_TOLERANCE = 1e-3
"""Quaternions are normalised when they are this close to unit length, and refused otherwise."""
UNIT = 1e-15
"""Quaternions this close to unit length are left as they are: once normalised, always the same."""


class Inputs:
    """Reads the arguments of one robot's methods. Every refusal is an `InputError`."""

    def __init__(self, tree: ClusterTree) -> None:
        self._tree = tree
        self._name = tree.description.name
        self._independent = list(tree.independent)
        self._quaternions = _quaternions(tree)
        self.independent_positions = _independent_positions(tree)
        self.determining_joints = Determining(tree, self.independent_positions)

    def vector(self, name: str, value: ArrayLike, *sizes: int) -> Array:
        """The argument as (size,) or (N, size) finite floats, for one of the sizes."""
        array = numbers(name, value)
        if array.ndim not in (1, 2) or array.shape[-1] not in sizes:
            wanted = " or ".join(f"({size},)" for size in dict.fromkeys(sizes))
            raise InputError(f"{name} has shape {array.shape}; {self._name} needs {wanted}")
        if not np.isfinite(array).all():
            index = int(np.argwhere(~np.isfinite(array))[0][-1])
            raise InputError(f"{name}[{index}] is not finite")
        return array

    def single(self, name: str, value: ArrayLike, *sizes: int) -> Array:
        """The argument as (size,) finite floats; batches are refused."""
        array = self.vector(name, value, *sizes)
        if array.ndim != 1:
            raise InputError(f"{name} has shape {array.shape}; give one vector, not a batch")
        return array

    def velocity(self, qd: ArrayLike) -> Array:
        """The independent velocity (ny,), from a spanning or independent one."""
        qd = self.vector("qd", qd, self._tree.nv, self._tree.ny)
        return qd if qd.shape[-1] == self._tree.ny else qd[..., self._independent]

    @property
    def independent_size(self) -> int:
        """Length of an independent position; that of q where only spanning ones will do."""
        positions = self.independent_positions
        return self._tree.nq if positions is None else len(positions)

    def normalized(self, q: Array) -> Array:
        """q with unit quaternions."""
        if not self._quaternions:
            return q
        q = q.copy()
        for start, joint in self._quaternions:
            quaternion = q[..., start : start + 4]
            size = np.linalg.norm(quaternion, axis=-1, keepdims=True)
            if np.any(np.abs(size - 1.0) > QUATERNION_TOLERANCE):
                worst = size.flat[np.argmax(np.abs(size - 1.0))]
                raise InputError(
                    f"q: the quaternion (qx, qy, qz, qw) of {joint} has length"
                    f" {worst:.6g}; give a unit quaternion"
                )
            quaternion[:] = unit(quaternion, size)
        return q

    def close(
        self, y_or_partial: ArrayLike | Mapping[str, ArrayLike], guess: ArrayLike | None
    ) -> Array:
        """See `Robot.close`."""
        tree = self._tree
        start = tree.home if guess is None else self.single("guess", guess, tree.nq)
        if isinstance(y_or_partial, Mapping):
            return self._close(self._known_by_name(y_or_partial, start), start)
        row = self.single("y", y_or_partial, tree.nq, self.independent_size)
        return self._close(self._known_in(row), start)

    def determining(
        self, y_or_partial: ArrayLike | Mapping[str, ArrayLike]
    ) -> tuple[tuple[int, ...], Array, Array | None] | None:
        """Which entries of q are known, and their values, if these just determine the others.

        The third is None, or where more is given the assembly (nq,) with all of it put in.

        None where it takes a closer look: a batch, joints too few or too many, joints of
        several coordinates in loops, or mistakes.
        """
        joints, values = self.determining_joints, y_or_partial
        positions, more = joints.independent, None
        try:
            if isinstance(values, Mapping):
                chosen = joints.positions(tuple(values))
                if chosen is None:
                    return None
                positions = chosen[1]
                if len(values) > len(chosen[0]):
                    more = self._tree.home.copy()
                    more[joints.entries(values)] = np.array([*values.values()], dtype=float)
                known = np.asarray([values[name] for name in chosen[0]], dtype=float)
            else:
                known = np.asarray(values, dtype=float)
                if positions is not None and known.shape == (self._tree.nq,):
                    known, more = known[list(positions)], known
        except (TypeError, ValueError):
            return None
        if positions is None or known.shape != (len(positions),):
            return None
        return positions, known, more

    def known_rates(
        self, what: str, rates: Mapping[str, ArrayLike], base: ArrayLike | None, q: Array
    ) -> tuple[tuple[int, ...], Array]:
        """Which spanning velocities (or accelerations) are known, and their values (..., ny).

        Args:
            what: "velocity" or "acceleration", for messages.
            rates: by joint name; one number, or one per coordinate, or a batch of these.
            base: (6,) of the floating base; None for zero.
            q: (..., nq) spanning position, closed.
        """
        tree = self._tree
        if not isinstance(rates, Mapping):
            raise InputError(f"{what}: {rates!r} does not map joints to numbers")
        if base is not None and not tree.spanning.floating_base:
            raise InputError(f"{what} of the base: {self._name} has no floating base; leave it out")
        held = self.determining_joints.coordinates(what, rates, q if q.ndim == 1 else q[0])
        columns: list[Array] = []
        for number, body in enumerate(tree.spanning.bodies, start=1):
            name, size = body.joint.name, body.model.nv
            if number == 1 and tree.spanning.floating_base:
                given = self.vector(f"{what} of the base", np.zeros(6) if base is None else base, 6)
            elif name in rates:
                given = numbers(name, rates[name])
                given = given[..., None] if size == 1 and given.shape != (1,) else given
                given = self.vector(f"{what} of {name}", given, size)
            else:
                given = np.full(size, np.nan)  # not held
            columns.extend(given[..., j] for j in range(size))
        return held, np.stack(np.broadcast_arrays(*(columns[j] for j in held)), axis=-1)

    def _close(self, known: Mapping[int, Array], guess: Array) -> Array:
        """Close every cluster; ``known`` has positions by body number."""
        parts, start = [np.zeros(0)], 0
        for node in self._tree.clusters:
            inside = {i: known[n] for i, n in enumerate(node.numbers) if n in known}
            parts.append(close_cluster(node, inside, guess[start : start + node.nq]))
            start += node.nq
        return self.normalized(np.concatenate(parts))

    def _known_by_name(self, positions: Mapping[str, ArrayLike], base: Array) -> dict[int, Array]:
        """Positions by body number; a floating base is where the guess has it."""
        bodies = self._tree.spanning.bodies
        number_of = self._tree.spanning.body_of_joint()
        self.determining_joints.check_names(positions)
        known = {1: base[:7]} if self._tree.spanning.floating_base else {}
        for name, position in positions.items():
            size = bodies[number_of[name] - 1].model.nq
            known[number_of[name]] = self.single(name, np.atleast_1d(position), size)
        for node in self._tree.clusters:
            if node.loop is None and any(number not in known for number in node.numbers):
                missing = [b.joint.name for b in node.bodies if b.joint.name not in positions]
                raise InputError(f"no position for {', '.join(missing)}; no loop determines it")
        return known

    def _known_in(self, row: Array) -> dict[int, Array]:
        """Positions by body number, from a spanning or an independent vector."""
        whole = row.size == self._tree.nq
        indices = range(row.size) if whole else self.independent_positions or ()
        value = dict(zip(indices, row, strict=True))
        known, start = {}, 0
        for number, body in enumerate(self._tree.spanning.bodies, start=1):
            if start in value:
                known[number] = np.array([value[start + i] for i in range(body.model.nq)])
            start += body.model.nq
        return known

    def body_wrenches(self, wrenches: Mapping[str, ArrayLike]) -> Array:
        """(6 * bodies,) wrenches in body frames, angular first, from link wrenches by name.

        Where any of them is a batch (N, 6), so is the answer.
        """
        if not isinstance(wrenches, Mapping):
            raise InputError(f"external_wrenches: {wrenches!r} does not map links to wrenches")
        given = {
            link: self.vector(f"external_wrenches[{link!r}]", wrench, 6)
            for link, wrench in wrenches.items()
        }
        sizes = {array.shape[:-1] for array in given.values() if array.ndim == 2}
        if len(sizes) > 1:
            lengths = sorted(size for (size,) in sizes)
            raise InputError(f"external_wrenches: batches of different lengths, {lengths}")
        batch = sizes.pop() if sizes else ()
        total = np.zeros((*batch, len(self._tree.spanning.bodies), 6))
        for link, wrench in given.items():
            place = self._tree.spanning.links.get(link)
            if place is None:
                raise InputError(f"external_wrenches: {self._name} has no link {link!r}")
            if place.body:
                R, p = place.frame.R, place.frame.p
                force, moment = wrench[..., :3] @ R.T, wrench[..., 3:] @ R.T
                total[..., place.body - 1, :3] += moment + np.cross(p, force)
                total[..., place.body - 1, 3:] += force
        return total.reshape(*batch, -1)

    def frame(self, frame: FrameName) -> tuple[str, BodyFrame]:
        """A key for the frame, and the frame on its body."""
        link, xyz, rpy = _three(frame)
        place = self._tree.spanning.links.get(link)
        if place is None:
            raise InputError(f"frame {frame!r}: {self._name} has no link {link!r}")
        x, y, z = self.single(f"xyz of frame {link}", xyz, 3).tolist()
        roll, pitch, yaw = self.single(f"rpy of frame {link}", rpy, 3).tolist()
        at = place.frame @ frame_of(Pose((x, y, z), (roll, pitch, yaw)))
        return f"{link} {x} {y} {z} {roll} {pitch} {yaw}", BodyFrame(place.body, at)


def numbers(name: str, value: ArrayLike) -> Array:
    """The argument as floats; complex numbers and text that looks like numbers are refused."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: {value!r} is not an array of numbers")
    return array.astype(float, copy=False)


def unit(quaternion: Array, length: ArrayLike) -> Array:
    """The quaternion (..., 4) over its length (..., 1), if that is not one already (`UNIT`)."""
    return quaternion / np.where(np.abs(np.subtract(length, 1.0)) > UNIT, length, 1.0)


def _three(frame: FrameName) -> tuple[str, Sequence[float], Sequence[float]]:
    parts: Any = (frame,) if isinstance(frame, str) else frame
    if not isinstance(parts, Sequence) or not 1 <= len(parts) <= 3 or not isinstance(parts[0], str):
        raise InputError(f"frame {frame!r}: give a link, (link, xyz) or (link, xyz, rpy)")
    link, xyz, rpy = (*parts, NOWHERE, NOWHERE)[:3]
    return link, xyz, rpy


def _independent_positions(tree: ClusterTree) -> list[int] | None:
    """Which entries of q are the position of y; None where y has only part of some joint."""
    independent = set(tree.independent)
    positions: list[int] = []
    iq, iv = 0, 0
    for body in tree.spanning.bodies:
        coordinates = [iv + j in independent for j in range(body.model.nv)]
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
