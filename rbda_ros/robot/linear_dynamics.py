"""Inverse dynamics as a linear map of the robot's parameters, for identification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rbda_ros.cluster_tree.spanning_tree import (
    PARAMETERS,
    inertial_parameters,
    parameter_map,
)
from rbda_ros.errors import ClosureError, SingularityError
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

RANK_TOLERANCE = 1e-8
"""Share of the largest below which a direction of parameters counts as not felt: rounding of sums
over random states leaves 1e-12, and what a robot feels is above 1e-5."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """Parameters of linear inverse dynamics, in the order of the columns of `Robot.regressor`.

    Attributes:
        names: ``link.m``, ``link.mx`` ... ``link.Izz`` of every body, in the frame of its link and
            about its origin; ``joint.damping``, ``joint.friction``, ``joint.armature``;
            ``spring.stiffness``, ``spring.pretension``; and
            ``payload.m`` ... where a payload was asked for.
        values: those of the model [kg, kg m, kg m^2; N m s/rad, N m; N s/m, N].
        bodies: the link of each body: its ten columns stand together, in this order.
    """

    names: tuple[str, ...]
    values: Array
    bodies: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The combinations of parameters that forces depend on, and no fewer will do.

    ``Y p = Y[:, columns] (combine p)`` for all motions.

    Attributes:
        columns: columns of the regressor that are independent.
        combine: (rank, parameters), with ones at the columns.
        unfelt: names of parameters that no motion feels.
    """

    columns: tuple[int, ...]
    combine: Array
    unfelt: tuple[str, ...]

    @property
    def rank(self) -> int:
        """How many there are."""
        return len(self.columns)


def parameters(robot: Robot, *, payload: str | None = None) -> Parameters:
    """Parameters of the model: `regressor` times these is `inverse_dynamics`.

    Payloads of the robot are part of the bodies that carry them. The parameters of ``payload``
    are additional, and zero.
    """
    tree = robot.tree
    bodies = [body.name for body in tree.spanning.bodies]
    names = [f"{link}.{name}" for link in bodies for name in PARAMETERS]
    values = [np.zeros(0)]
    for body in tree.spanning.bodies:
        in_link = parameter_map(tree.spanning.links[body.name].frame.inverse())
        values.append(in_link @ inertial_parameters(body.inertia))
    base, coordinates = tree.coordinates.base_nv, tree.velocity_names
    joints = [body.joint for body in tree.spanning.bodies for _ in range(body.model.nv)]
    numbers = [(joint.damping, joint.friction, joint.armature) for joint in joints]
    damping, friction, armature = np.array(numbers).reshape(-1, 3).T
    for kind, given in (("damping", damping), ("friction", friction)):
        names += [f"{name}.{kind}" for name in coordinates[base:]]
        values.append(given[base:])
    names += [f"{coordinates[j]}.armature" for j in np.flatnonzero(armature)]
    values.append(armature[armature != 0.0])
    if tree.springs is not None:
        names += tree.springs.names
        values.append(tree.springs.values)
    if payload is not None:
        robot._payload_columns(payload)
        names += [f"payload.{name}" for name in PARAMETERS]
        values.append(np.zeros(10))
    return Parameters(tuple(names), np.concatenate(values), tuple(bodies))


def base_parameters(
    robot: Robot, *, payload: str | None = None, preferred: Sequence[str] = (), seed: int = 0
) -> BaseParameters:
    """Combinations of parameters that forces determine, by the rank of Y over random motions.

    Args:
        payload: a link that carries an unknown load.
        preferred: names of parameters to keep as columns where there is a choice.
        seed: of the random motions.

    Raises:
        ClosureError: the loops do not close anywhere near the assembly.
    """
    names = parameters(robot, payload=payload).names
    rng = np.random.default_rng(seed)
    rows = max(40, 3 * len(names) // max(robot.ny, 1))
    q = random_positions(robot, rng, rows)
    yd, ydd = rng.normal(size=(2, rows, robot.ny))
    W = robot.regressor(q, yd, 5.0 * ydd, payload=payload).reshape(-1, len(names))
    return base_parameters_of(W, names, preferred)


def random_positions(
    robot: Robot, rng: np.random.Generator, count: int, spread: float = 0.6
) -> Array:
    """Closed spanning positions (count, nq) around the assembly.

    Raises:
        ClosureError: the loops close at hardly any of them.
    """
    found: list[Array] = []
    home = robot.neutral()
    for _ in range(20 * count):
        step = robot.spanning_velocity(home, rng.normal(0.0, spread, robot.ny))
        try:
            q = robot.close(robot.tree.integrate(home, step), home)
            robot.state(q)
        except (ClosureError, SingularityError):
            continue
        found.append(q)
        if len(found) == count:
            return np.array(found)
    raise ClosureError(f"{robot.name}: the loops close at hardly any position near the assembly")


def base_parameters_of(
    W: Array, names: Sequence[str], preferred: Sequence[str] = ()
) -> BaseParameters:
    """Base parameters of stacked regressors W (rows, parameters): QR with pivoting (Gautier 1991).

    Args:
        W: regressors of several motions, one under the other.
        names: of the columns.
        preferred: names of columns to keep where there is a choice.
    """
    from scipy.linalg import qr, solve_triangular  # not above: it takes 0.4 s to import

    scale = np.linalg.norm(W, axis=0)
    felt = np.flatnonzero(scale > RANK_TOLERANCE * scale.max(initial=0.0))
    # What is pivoted first is kept, and the largest is: weights decide nothing but that order.
    weight = np.where([name in set(preferred) for name in names], 1e3, 1.0)
    D = (weight / np.where(scale, scale, 1.0))[felt]
    R, pivots = qr(W[:, felt] * D, mode="r", pivoting=True)
    left = np.abs(np.diag(R)) / weight[felt][pivots][: min(R.shape)]
    rank = int(np.sum(left > RANK_TOLERANCE))
    kept = felt[pivots[:rank]]
    combine = np.zeros((rank, len(names)))
    D = D[pivots]
    combine[:, felt[pivots]] = D[:rank, None] * solve_triangular(R[:rank, :rank], R[:rank]) / D
    combine[np.abs(combine) < RANK_TOLERANCE] = 0.0
    order = np.argsort(kept)
    unfelt = tuple(name for k, name in enumerate(names) if k not in set(felt))
    return BaseParameters(tuple(kept[order].tolist()), combine[order], unfelt)
