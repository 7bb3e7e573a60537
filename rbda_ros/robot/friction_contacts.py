"""Contacts that push, stick and slide, and other inequalities, as rows of one problem.

Each constraint is a block of rows with velocities ``c = J yd+ + b + R p`` and impulses p along them
(Carpentier, Le Lidec and Montaut 2024, "From compliant to rigid contact simulation"):

    cone      a contact: ``|p_t| <= mu p_n``, and p is orthogonal to ``c + (0, 0, mu |c_t|)``
    positive  a joint's limit: ``0 <= p``, ``0 <= c``, ``p c = 0``
    box       dry friction of a joint: ``|p| <= friction dt``, against the motion
    equality  a held contact: ``c = 0``

b is the distance over the step, and R the compliance: one formulation for rigid (R = 0) and for
compliant contacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rbda_ros.engine import core
from rbda_ros.errors import InputError
from rbda_ros.robot.contacts import Stop
from rbda_ros.robot.inputs import numbers
from rbda_ros.spatial import Array

CONE, POSITIVE, BOX, EQUALITY = "c", "p", "b", "e"
Key = tuple[str, int, float]
"""Key of a block: a contact, a limit, friction or held; its number; the side of a limit."""
RECOVERY = 0.2
"""Share of a penetration that one step removes: to remove all of it would throw the robot."""


@dataclass(frozen=True)
class FrictionContact:
    """A point of a link that may touch a plane, push on it, stick and slide.

    Attributes:
        link: the link.
        xyz: the point in the link's frame [m].
        normal: of the plane, pointing to the link, in world axes.
        friction: Coulomb's coefficient; zero for none.
        distance: how far the point is above the plane; negative inside it [m].
        stiffness: of the plane [N/m]; infinite for a rigid one.
        damping: of a plane that is not rigid [N s/m].
        restitution: part of the approaching velocity that a rigid contact leaves with, 0 to 1.
        to: another link that the plane is on in place of the world; normal is then in its frame.
    """

    link: str
    xyz: Sequence[float] = (0.0, 0.0, 0.0)
    normal: Sequence[float] = (0.0, 0.0, 1.0)
    friction: float = 0.8
    distance: float = 0.0
    stiffness: float = np.inf
    damping: float = 0.0
    restitution: float = 0.0
    to: str | None = None

    def check(self, where: str) -> None:
        """Reject invalid numbers."""
        for name in ("xyz", "normal"):
            vector = numbers(f"{where}: {name}", getattr(self, name))
            if vector.shape != (3,) or not np.isfinite(vector).all():
                raise InputError(f"{where}: {name} {getattr(self, name)!r}; give three numbers")
        if not np.any(self.normal):
            raise InputError(f"{where}: normal is zero; give a vector")
        if not np.isfinite(self.distance):
            raise InputError(f"{where}: distance {self.distance!r}; give a number [m]")
        if not 0.0 <= self.friction < np.inf or not 0.0 <= self.damping < np.inf:
            values = self.friction, self.damping
            raise InputError(f"{where}: friction, damping are {values}; give numbers from zero on")
        if not self.stiffness > 0.0:
            raise InputError(f"{where}: stiffness is {self.stiffness!r}; give a positive number")
        if not 0.0 <= self.restitution <= 1.0:
            raise InputError(
                f"{where}: restitution {self.restitution!r}; give a number from 0 to 1"
            )


@dataclass(frozen=True, eq=False)
class Rows:
    """Blocks of constraints at some states; ``...`` is the batch axis, if any.

    Attributes:
        keys: what each block is of.
        kinds: one letter for each block.
        J: (..., m, ny) rows.
        b: (..., m) what is added to ``J yd`` [m/s, rad/s].
        compliance: (m,) R, velocity per impulse.
        parameters: (blocks,) coefficient of friction, or bound of the impulse.
    """

    keys: tuple[Key, ...]
    kinds: str
    J: Array
    b: Array
    compliance: Array
    parameters: Array

    @property
    def places(self) -> list[slice]:
        """The rows of each block."""
        ends = np.cumsum([3 if kind == CONE else 1 for kind in self.kinds]).tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


NO_ROWS = Rows((), "", np.zeros((0, 1)), np.zeros(0), np.zeros(0), np.zeros(0))


def stacked(blocks: Sequence[Rows], batch: tuple[int, ...], ny: int) -> Rows:
    """Some rows under each other, for every state of a batch."""
    return Rows(
        tuple(key for rows in blocks for key in rows.keys),
        "".join(rows.kinds for rows in blocks),
        np.concatenate([np.broadcast_to(r.J, (*batch, r.J.shape[-2], ny)) for r in blocks], -2),
        np.concatenate([np.broadcast_to(r.b, (*batch, r.b.shape[-1])) for r in blocks], -1),
        np.concatenate([rows.compliance for rows in blocks]),
        np.concatenate([rows.parameters for rows in blocks]),
    )


@dataclass(frozen=True, eq=False)
class FrictionalStep:
    """Result of a step with contacts with friction, limits and dry friction.

    Attributes:
        yd: (..., ny) independent velocity after it.
        ydd: (..., ny) its change over the step.
        forces: (..., c, 3) mean force of each contact on the robot, in world axes [N].
        joint_forces: (..., nv) what limits and dry friction exert on each joint [N m, N].
        impulses: (..., m) along the rows of the problem, and ``rows`` themselves.
        velocities: (..., m) along the rows after the step, with distance and compliance.
        residual: (...) largest error of the velocities in Coulomb's law and the other conditions
            [m/s].
        iterations: (...) of the solver.
        converged: (...) whether the residual came below the tolerance.
    """

    yd: Array
    ydd: Array
    forces: Array
    joint_forces: Array
    impulses: Array
    rows: Rows
    velocities: Array
    residual: Array
    iterations: Array
    converged: NDArray[np.bool_]

    @property
    def cone_violation(self) -> float:
        """Largest distance of an impulse, or of a velocity, from its set [N s, m/s]."""
        worst = 0.0
        for b, (kind, at) in enumerate(zip(self.rows.kinds, self.rows.places, strict=True)):
            p, c, size = self.impulses[..., at], self.velocities[..., at], self.rows.parameters
            outside = {
                CONE: lambda p, c, mu: [
                    np.hypot(p[..., 0], p[..., 1]) - mu * p[..., 2],
                    -c[..., 2],
                ],
                POSITIVE: lambda p, c, _: [-p, -c],
                BOX: lambda p, c, bound: [np.abs(p[..., 0]) - bound],
                EQUALITY: lambda p, c, _: [np.abs(c)],
            }[kind](p, c, size[..., b])
            worst = max(worst, *(float(np.max(each, initial=0.0)) for each in outside))
        return worst

    @property
    def complementarity(self) -> float:
        """Largest product of an impulse and a velocity that must be zero [J]."""
        worst = 0.0
        for b, (kind, at) in enumerate(zip(self.rows.kinds, self.rows.places, strict=True)):
            p, c, size = self.impulses[..., at], self.velocities[..., at], self.rows.parameters
            if kind == CONE:
                slip = size[..., b] * np.hypot(c[..., 0], c[..., 1])
                product = (p * c).sum(axis=-1) + p[..., 2] * slip
            elif kind == BOX:  # dry friction takes all the power that it can
                product = p[..., 0] * c[..., 0] + size[..., b] * np.abs(c[..., 0])
            else:
                product = (p * c).sum(axis=-1)
            worst = max(worst, float(np.abs(product).max(initial=0.0)))
        return worst


@dataclass(frozen=True, eq=False)
class FrictionalEfforts:
    """Forces that a motion in contact requires.

    Attributes:
        tau: (..., ny) generalized force; zero on coordinates without an actuator, such as a
            floating base.
        forces: (..., c, 3) of each contact on the robot, in world axes, inside its cone [N].
        residual: (...) force that remains on coordinates that no actuator drives [N, N m]; not
            zero where contacts cannot give the motion by pushing and friction.
    """

    tau: Array
    forces: Array
    residual: Array | float


@dataclass(frozen=True)
class SolverSettings(Stop):
    """Conditions at which the solver of the cones stops.

    Attributes:
        tolerance: largest error of velocities [m/s].
        iterations: largest number of them.
    """

    iterations: int = 500


def solve_cones(
    kinds: str,
    A: Array,
    g: Array,
    parameters: Array,
    start: Array,
    settings: SolverSettings,
    *,
    coulomb: bool = True,
) -> tuple[Array, Array, Array]:
    """Impulses p with ``c = A p + g`` that satisfy every block; see ``engine/cones.c``.

    Args:
        kinds: one letter for each block.
        A: (..., m, m) Delassus matrix and compliance.
        g: (..., m) velocities without impulses.
        parameters: (..., blocks) coefficients of friction and bounds.
        start: (..., m) impulses to start from.
        settings: when to stop.
        coulomb: whether sliding obeys Coulomb's law; else the convex problem is solved, in which
            sliding contacts also open.

    Returns:
        p (..., m), largest error of velocities (...), iterations (...).
    """
    m, batch = g.shape[-1], g.shape[:-1]
    if not m:
        return np.zeros_like(g), np.zeros(batch), np.zeros(batch, dtype=int)
    flat = int(np.prod(batch, dtype=int))
    p = np.array(start, dtype=float).reshape(flat, m)
    shapes = (A, (flat, m, m)), (g, (flat, m)), (parameters, (flat, len(kinds)))
    given = [np.ascontiguousarray(each, dtype=float).reshape(shape) for each, shape in shapes]
    limits = bool(coulomb), settings.tolerance, settings.iterations
    missed, iterations = core.solve_cones(kinds, *given, p, *limits)
    return p.reshape(*batch, m), missed.reshape(batch), iterations.reshape(batch)
