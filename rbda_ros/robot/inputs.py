"""Checks the arguments of users and converts them for kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.kinematics import NamedFrame
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.errors import InputError
from rbda_ros.robot.joint_choices import JointChoices
from rbda_ros.spatial import Array

FrameName = str | tuple[str, Sequence[float]] | tuple[str, Sequence[float], Sequence[float]]
"""A link, or a link with an offset: (link, xyz) or (link, xyz, rpy) in the link's frame."""

NOWHERE = (0.0, 0.0, 0.0)
MAX_TRACED_FRAMES = 8
"""Most frames whose operational-space inertia is one program."""
LARGEST = 1e50
"""Largest accepted number: larger than any of a robot, and products of several stay finite."""
LARGEST_POSITION = 1e12
"""Largest position [rad, m]: larger angles are not resolved to a thousandth of a radian."""
QUATERNION_TOLERANCE = 1e-3
"""Quaternions this close to unit length are normalised; others are rejected."""
UNIT = 1e-15
"""Quaternions this close to unit length are not changed, so normalising twice changes nothing."""


@dataclass(frozen=True, eq=False)
class BodyWrenches:
    """Checked wrenches (6 * bodies,) or (N, 6 * bodies) in body frames, angular first."""

    values: Array


class Inputs:
    """Reads the arguments of one robot's methods; raises `InputError` for those it rejects."""

    def __init__(self, tree: ClusterTree) -> None:
        self._tree = tree
        self._name = tree.description.name
        self._independent = list(tree.independent)
        # Where quaternions start in q, and the joints they belong to.
        positions = tree.coordinates.positions
        self._quaternions = [
            (positions[body.joint.name].stop - 4, body.joint.name)
            for body in tree.spanning.bodies
            if body.model.nq != body.model.nv
        ]
        self.quaternions = [start for start, _ in self._quaternions]
        self.choices = JointChoices(tree)

    def vector(self, name: str, value: ArrayLike, *sizes: int) -> Array:
        """The argument as (size,) or (N, size) finite floats, for one of the sizes."""
        array = numbers(name, value)
        if array.ndim not in (1, 2) or array.shape[-1] not in sizes:
            wanted = " or ".join(f"({size},)" for size in dict.fromkeys(sizes))
            raise InputError(f"{name} has shape {array.shape}; {self._name} needs {wanted}")
        largest = LARGEST_POSITION if name in ("q", "y", "guess") else LARGEST
        fine = np.abs(array) <= largest  # False for NaN
        if not fine.all():
            index = int(np.argwhere(~fine)[0][-1])
            value = float(array[~fine][0])
            if np.isfinite(value):
                raise InputError(f"{name}[{index}] is {value:g}; give at most {largest:g}")
            raise InputError(f"{name}[{index}] is not finite")
        return array

    def single(self, name: str, value: ArrayLike, *sizes: int) -> Array:
        """The argument as (size,) finite floats; batches are rejected."""
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
        """Length of an independent position; nq if y has no position of its own."""
        positions = self.choices.independent_positions
        return self._tree.nq if positions is None else len(positions)

    @staticmethod
    def number(name: str, value: ArrayLike) -> float:
        """A finite number."""
        array = numbers(name, value)
        if array.ndim or not abs(float(array)) <= LARGEST:
            raise InputError(f"{name} is {value!r}; give one finite number")
        return float(array)

    def normalized(self, q: Array, name: str = "q") -> Array:
        """A position with unit quaternions; the name is for error messages."""
        if not self._quaternions:
            return q
        q = q.copy()
        for start, joint in self._quaternions:
            quaternion = q[..., start : start + 4]
            size = np.linalg.norm(quaternion, axis=-1, keepdims=True)
            if np.any(np.abs(size - 1.0) > QUATERNION_TOLERANCE):
                worst = size.flat[np.argmax(np.abs(size - 1.0))]
                raise InputError(
                    f"{name}: the quaternion (qx, qy, qz, qw) of {joint} has length"
                    f" {worst:.6g}; give a unit quaternion"
                )
            quaternion[:] = unit(quaternion, size)
        return q

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
        coordinates = self.choices.coordinates(what, rates, q if q.ndim == 1 else q[0])
        columns: list[Array] = []
        of_base = tree.coordinates.base_nv
        for name, place in tree.coordinates.velocities.items():
            size = len(place)
            if place.start < of_base:
                given = self.vector(f"{what} of the base", np.zeros(6) if base is None else base, 6)
            elif name in rates:
                given = numbers(name, rates[name])
                given = given[..., None] if size == 1 and given.shape != (1,) else given
                given = self.vector(f"{what} of {name}", given, size)
            else:
                given = np.full(size, np.nan)  # not chosen
            columns.extend(given[..., j] for j in range(size))
        return coordinates, np.stack(
            np.broadcast_arrays(*(columns[j] for j in coordinates)), axis=-1
        )

    def body_wrenches(
        self, wrenches: Mapping[str, ArrayLike], add: Callable[[str, Array, Array], None]
    ) -> Array:
        """(6 * bodies,) wrenches in body frames, angular first, from link wrenches by name.

        If any of them is a batch (N, 6), the result is (N, 6 * bodies).

        Args:
            wrenches: on links.
            add: `add_wrenches` of the engine's validator.
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
        total = np.zeros((*batch, 6 * len(self._tree.spanning.bodies)))
        for link, wrench in given.items():
            if link not in self._tree.spanning.links:
                raise InputError(f"external_wrenches: {self._name} has no link {link!r}")
            add(link, contiguous(np.broadcast_to(wrench, (*batch, 6))).ravel(), total.ravel())
        return total

    def frame(self, frame: FrameName) -> NamedFrame:
        """The frame, checked."""
        link, xyz, rpy = _three(frame)
        if link not in self._tree.spanning.links:
            raise InputError(f"frame {frame!r}: {self._name} has no link {link!r}")
        x, y, z = self.single(f"xyz of frame {link}", xyz, 3).tolist()
        roll, pitch, yaw = self.single(f"rpy of frame {link}", rpy, 3).tolist()
        return NamedFrame(link, (x, y, z), (roll, pitch, yaw))

    # Kernels about frames: name, options, and points on links. Points are an input of a kernel, not
    # options, because clients may name any number of them.

    def jacobian(self, frame: FrameName) -> tuple[str, tuple[NamedFrame], tuple[Array, ...]]:
        """The kernel of the Jacobian of a frame."""
        named = self.frame(frame)
        if any(named.xyz):
            return "jacobian_at", (named.at_link(),), (np.array(named.xyz),)
        return "jacobian", (named,), ()

    def operational_space(
        self, frames: Sequence[FrameName], linear_only: bool
    ) -> tuple[str, tuple[tuple[NamedFrame, ...], bool], tuple[Array, ...]]:
        """The kernel of the Jacobian of several frames, and of ``J H^-1 J'``."""
        named = tuple(self.frame(frame) for frame in frames)
        if any(any(frame.xyz) for frame in named):
            at = tuple(frame.at_link() for frame in named)
            points = np.array([frame.xyz for frame in named]).ravel()
            return "operational_space_at", (at, linear_only), (points,)
        return "operational_space", (named, linear_only), ()


def numbers(name: str, value: ArrayLike) -> Array:
    """The argument as floats; complex numbers and text that looks like numbers are rejected."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: {value!r} is not an array of numbers")
    return array.astype(float, copy=False)


def batch_length(arrays: Iterable[Array]) -> int | None:
    """The common length of those arrays that are batches; None if there is no batch."""
    lengths = {len(array) for array in arrays if array.ndim == 2}
    if len(lengths) > 1:
        raise InputError(f"the batches have different lengths: {sorted(lengths)}")
    return lengths.pop() if lengths else None


def contiguous(array: Array) -> Array:
    """The same numbers as the engine takes them: contiguous, aligned, a plain numpy array."""
    return np.require(array, np.float64, ["C", "A", "E"])


def unit(quaternion: Array, length: ArrayLike) -> Array:
    """The quaternion (..., 4) over its length (..., 1), unless that is 1 within `UNIT`."""
    return quaternion / np.where(np.abs(np.subtract(length, 1.0)) > UNIT, length, 1.0)


def _three(frame: FrameName) -> tuple[str, Sequence[float], Sequence[float]]:
    parts: Any = (frame,) if isinstance(frame, str) else frame
    if not isinstance(parts, Sequence) or not 1 <= len(parts) <= 3 or not isinstance(parts[0], str):
        raise InputError(f"frame {frame!r}: give a link, (link, xyz) or (link, xyz, rpy)")
    link, xyz, rpy = (*parts, NOWHERE, NOWHERE)[:3]
    return link, xyz, rpy


def pose_error(target: Array, pose: Array) -> Array:
    """Error from a pose to a target: (3,) for a position, (6,) for a pose (4, 4).

    Linear [m], then the rotation vector [rad], in world axes.
    """
    if target.shape == (3,):
        return target - pose[:3, 3]
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_matrix(target[:3, :3] @ pose[:3, :3].T).as_rotvec()
    return np.concatenate([target[:3, 3] - pose[:3, 3], turn])


def pose_matrix(position: Array) -> Array:
    """The pose (4, 4) of ``x y z qx qy qz qw``."""
    from scipy.spatial.transform import Rotation

    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_quat(position[3:]).as_matrix()
    pose[:3, 3] = position[:3]
    return pose
