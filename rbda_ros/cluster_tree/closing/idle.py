"""Idle freedoms: rods with a ball joint at each end may spin about their own axis.

An idle freedom is a motion in the null space of K that moves no actuator and no body but one rod,
or a few that spin together. Motors and sensors do not determine it, and with it they do not
determine the robot. The search compares the null spaces of K at several closed positions.

A *lock* freezes the spin: one more constraint holds an axis of the rod at right angles to an axis
of the body that the rod hangs from, so that the ball joint becomes a universal joint. Friction in
the joints does the same to a real rod, and the lock works for rods that have no inertia about
their axis. The motion of all other bodies differs from that with a free rod by the effect of that
inertia alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.closing.independent import null_space
from rbda_ros.cluster_tree.closing.tolerances import (
    BESIDE_IT,
    BODIES_OF_A_ROD,
    ON_THE_LINE,
    STAYS,
    UNLIKELY,
)
from rbda_ros.cluster_tree.cluster_joint import Propagator
from rbda_ros.cluster_tree.constraints import bodies_tied
from rbda_ros.cluster_tree.loops import Evaluated
from rbda_ros.cluster_tree.spanning_tree import Body, SpanningTree, frame_of, inertial_parameters
from rbda_ros.description.model import (
    Attachment,
    Constraint,
    CutJoint,
    IdleChoice,
    Vector3,
    vector3,
)
from rbda_ros.description.values import unused
from rbda_ros.spatial import Array, snap


@dataclass(frozen=True)
class Spin:
    """The spin of a rod at several closed positions.

    Attributes:
        rod: places in the cluster of the bodies that spin together, the lowest first.
        line: (3,) unit direction of the axis of the spin, in the frame of the first body.
        stays: number of the nearest body on the way to the base that does not move.
        directions: (positions, 3) the axis of the spin in the frame of the body ``stays``.
        home: (3, 3) axes of the first body in that frame, at the first position.
        along: velocity coordinates of the cluster that the spin needs.
        is_rod: whether the mass is on the axis, so that nothing but friction turns it.
    """

    rod: tuple[int, ...]
    line: Array
    stays: int
    directions: Array
    home: Array
    along: frozenset[int]
    is_rod: bool


@dataclass(frozen=True, eq=False)
class RodSearch:
    """Looks for spins in one cluster.

    Attributes:
        tree: the spanning tree.
        numbers: of the cluster's bodies, ascending.
        constraints: among them.
        choices: what the loop file says of links.
    """

    tree: SpanningTree
    numbers: Sequence[int]
    constraints: Sequence[Constraint]
    choices: Mapping[str, IdleChoice]

    def find(
        self,
        positions: Sequence[Array],
        jacobians: Sequence[Array],
        rank: int,
        actuated: Collection[int],
        required: Collection[int],
    ) -> tuple[list[CutJoint], list[str]]:
        """The locks of idle freedoms, and warnings of spins that may be meant to be free.

        The successor of a lock is the link that spins. If the files name actuators, all spins that
        move none of them are frozen. Otherwise a link whose mass is off the axis stays free, as
        it may be a pendulum.

        Args:
            positions: (nq,) closed ones, none of them singular.
            jacobians: K (rows, nv) at each.
            rank: of all of them.
            actuated: coordinates that actuators act on, as far as the files say.
            required: coordinates that must be independent, so that they are not frozen.
        """
        motions = [null_space(K, rank) for K in jacobians]
        if actuated and all(_determined(N[sorted(actuated)]) for N in motions):
            return [], []
        frozen, warnings = [], []
        names = {constraint.name for constraint in self.constraints}
        for spin in self._spins(positions, motions, actuated):
            link = self.bodies[spin.rod[0]].name
            links = [self.bodies[i].name for i in spin.rod]
            choice = next((self.choices[name] for name in links if name in self.choices), None)
            if choice == "free" or spin.along & set(required):
                continue
            # Motors that do not determine it could not be converted into joints and back.
            freezes = spin.is_rod or choice == "frozen" or bool(actuated)
            if freezes:
                frozen.append(self._lock(spin, names))
            if not spin.is_rod and choice is None:
                now, other = ("frozen", "free") if freezes else ("free", "frozen")
                warnings.append(
                    f"link {link!r}: it turns freely about the line between its joints, and its"
                    f" mass is off that line; it is {now} here, and {other} with"
                    f" 'idle_freedoms: {{{link}: {other}}}'"
                )
        return frozen, warnings

    @cached_property
    def bodies(self) -> tuple[Body, ...]:
        """Of the cluster."""
        return tuple(self.tree.bodies[i - 1] for i in self.numbers)

    @cached_property
    def _inside(self) -> tuple[int | None, ...]:
        """Place in the cluster of each body's parent."""
        place = {number: i for i, number in enumerate(self.numbers)}
        return tuple(place.get(body.parent) for body in self.bodies)

    @cached_property
    def _kinematics(self) -> Evaluated:
        """q -> velocity of every body (6n x nv), and its axes in its parent's frame (3 x 3n)."""
        q = ca.SX.sym("q", sum(body.model.nq for body in self.bodies))
        X_up, S, axes, at = [], [], [], 0
        for body in self.bodies:
            model = body.model
            X_J, S_i, _ = model.jcalc(q[at : at + model.nq], ca.DM(model.nv, 1), body.joint.pitch)
            at += model.nq
            X_up.append(X_J @ body.X_tree)
            S.append(S_i)
            axes.append(X_up[-1].pose()[0])
        J = Propagator(tuple(X_up), self._inside) @ ca.diagcat(*S)
        return Evaluated(ca.Function("kinematics", [q], [ca.SX(J), ca.SX(ca.horzcat(*axes))]))

    def _spins(
        self, positions: Sequence[Array], motions: Sequence[Array], actuated: Collection[int]
    ) -> Iterator[Spin]:
        """Spins of one body, then of several that spin together."""
        kinematics = [self._kinematics(q) for q in positions]
        moved = [J @ N for (J, _), N in zip(kinematics, motions, strict=True)]
        fixed = sorted(actuated)
        squares = _squares(moved[0], motions[0][fixed])
        found: list[tuple[int, ...]] = []
        for rod in self._candidates():
            if any(set(rod) & set(other) for other in found):
                continue
            with_joints = self._with_light_neighbours(rod)
            if not _may_stay(squares, with_joints):
                continue
            others = [
                row
                for i in range(len(self.bodies))
                if i not in with_joints
                for row in range(6 * i, 6 * i + 6)
            ]
            alone: list[Array] = []
            for V, N in zip(moved, motions, strict=True):
                motion = _only_motion(np.vstack([V[others], N[fixed]]), np.abs(V).max(initial=0.0))
                if motion is None:
                    break
                alone.append(motion)
            if len(alone) < len(positions):
                continue
            twists = [V @ n for V, n in zip(moved, alone, strict=True)]
            rates = [N @ n for N, n in zip(motions, alone, strict=True)]
            spin = self._spin(rod, twists, rates, [axes for _, axes in kinematics])
            if spin is not None:
                found.append(rod)
                yield spin

    @cached_property
    def _tied(self) -> list[int]:
        """Places of the bodies whose joints a constraint needs; not of a wheel on a rod."""
        tied = frozenset().union(*(bodies_tied(self.tree, c) for c in self.constraints))
        return [i for i, number in enumerate(self.numbers) if number in tied]

    def _candidates(self) -> Iterator[tuple[int, ...]]:
        """Bodies that may spin together: one, or a chain of a few, as cylinder and piston.

        A body that a fixed cut joins to one of them spins with it: many files close a loop in the
        middle of a rod. Bodies with more mass come first, so that a rod is tried before the
        massless links of which some files build its ball joint.
        """
        single = sorted(self._tied, key=lambda i: -self.bodies[i].mass)
        yield from (self._with_halves([i]) for i in single)
        for size in range(2, BODIES_OF_A_ROD + 1):
            for tip in single:
                chain = list(itertools.islice(self._chain(tip), size))
                if len(chain) == size and set(chain) <= set(self._tied):
                    yield self._with_halves(chain)

    def _with_halves(self, chain: Collection[int]) -> tuple[int, ...]:
        """A chain and the bodies that fixed cuts join to it, the lowest first."""
        return tuple(sorted(set().union(*(self._halves.get(i, {i}) for i in chain))))

    @cached_property
    def _halves(self) -> dict[int, set[int]]:
        """For each body that a fixed cut joins to others: the places of all of them."""
        groups: dict[int, set[int]] = {}
        place = {number: i for i, number in enumerate(self.numbers)}
        for cut in self.constraints:
            if isinstance(cut, CutJoint) and cut.type == "fixed":
                ends = [
                    place.get(self.tree.links[side.link].body)
                    for side in (cut.predecessor, cut.successor)
                ]
                one, other = ends
                if one is not None and other is not None:
                    joined = groups.get(one, {one}) | groups.get(other, {other})
                    groups.update(dict.fromkeys(joined, joined))
        return groups

    def _chain(self, tip: int) -> Iterator[int]:
        at: int | None = tip
        while at is not None:
            yield at
            at = self._inside[at]

    def _with_light_neighbours(self, rod: Collection[int]) -> set[int]:
        """The rod, and bodies beside it that have next to no mass: parts of its joints."""
        light = BESIDE_IT * max(self.bodies[i].mass for i in rod)
        group, pending = set(rod), list(rod)
        while pending:
            i = pending.pop()
            beside = [k for k, parent in enumerate(self._inside) if parent == i]
            if (above := self._inside[i]) is not None:
                beside.append(above)
            new = [k for k in beside if k not in group and self.bodies[k].mass <= light]
            group.update(new)
            pending.extend(new)
        return group

    def _spin(
        self,
        rod: tuple[int, ...],
        twists: Sequence[Array],
        rates: Sequence[Array],
        axes: Sequence[Array],
    ) -> Spin | None:
        """The spin of a rod, from the velocities (6n,) of all bodies; None where it is none."""
        first = rod[0]
        lines: list[Array] = []
        centres = []
        for twist in twists:
            turning = np.linalg.norm(twist[6 * first : 6 * first + 3])
            if turning <= STAYS * np.abs(twist).max():
                return None  # it slides
            unit = twist / turning
            line = unit[6 * first : 6 * first + 3]
            sign = 1.0 if not lines or line @ lines[0] > 0.0 else -1.0
            lines.append(sign * line)
            centres.append(max(self._speed_of_centre(i, unit) for i in rod))
        if max(np.abs(line - lines[0]).max() for line in lines) > STAYS:
            return None  # about no line of its own
        above = self._inside[first]
        while above is not None and any(
            np.abs(twist[6 * above : 6 * above + 6]).max() > STAYS * np.abs(twist).max()
            for twist in twists
        ):
            above = self._inside[above]
        chain = list(itertools.takewhile(lambda i: i != above, self._chain(first)))
        turned = [
            reduce(np.matmul, (E[:, 3 * i : 3 * i + 3] for i in reversed(chain)), np.eye(3))
            for E in axes
        ]
        turns = twists[0].reshape(-1, 6)[list(rod), :3] / np.linalg.norm(twists[0][6 * first :][:3])
        length = sum(np.ptp(self._points(i) @ turn) for i, turn in zip(rod, turns, strict=True))
        massless = all(self.bodies[i].mass <= 0.0 for i in rod)
        return Spin(
            rod=rod,
            line=lines[0],
            stays=self.bodies[chain[-1]].parent,
            directions=np.array([R @ line for R, line in zip(turned, lines, strict=True)]),
            home=turned[0],
            along=frozenset(np.flatnonzero(np.abs(rates[0]) > STAYS).tolist()),
            is_rod=massless or (length > 0.0 and max(centres) <= ON_THE_LINE * length),
        )

    def _speed_of_centre(self, i: int, twist: Array) -> float:
        """Of a body's mass, at a turn of 1 rad/s: its distance from the line [m]."""
        body = self.bodies[i]
        if body.mass <= 0.0:
            return 0.0
        centre = inertial_parameters(body.inertia)[1:4] / body.mass
        turn, velocity = twist[6 * i : 6 * i + 3], twist[6 * i + 3 : 6 * i + 6]
        return float(np.linalg.norm(velocity + np.cross(turn, centre)))

    def _points(self, i: int) -> Array:
        """(points, 3) where joints and cuts are on a body, in its frame [m]."""
        number = self.numbers[i]
        points = [np.zeros(3)]
        for body in self.tree.bodies:
            if body.parent == number:
                points.append(np.asarray(ca.DM(body.X_tree.pose()[1])).ravel())
        for cut in self.constraints:
            for side in (cut.predecessor, cut.successor) if isinstance(cut, CutJoint) else ():
                place = self.tree.links[side.link]
                if place.body == number:
                    points.append((place.frame @ frame_of(side.origin)).p)
        return np.array(points)

    def _lock(self, spin: Spin, names: set[str]) -> CutJoint:
        """A right angle between an axis of the body that stays and an axis of the rod.

        The lock is well-conditioned while the rod is far from parallel to the first axis. So this
        is the axis from which the rod is farthest at all positions; in a planar linkage, the
        normal of the plane.
        """
        first = self.bodies[spin.rod[0]]
        base = next(link for link, place in self.tree.links.items() if place.body == spin.stays)
        if spin.stays:
            base = self.tree.bodies[spin.stays - 1].name
        axis = np.linalg.svd(spin.directions)[2][-1]
        axis = snap(axis / axis[np.argmax(np.abs(axis))])
        direction = spin.home @ spin.line
        axis = axis - direction * (axis @ direction)
        axis = snap(axis / np.linalg.norm(axis))
        second = spin.home.T @ np.cross(direction, axis)
        name = unused(f"{first.name}_spin", names)
        names.add(name)
        return CutJoint(
            name=name,
            type="perpendicular",
            predecessor=Attachment(base),
            successor=Attachment(first.name),
            axis=_unit(self.tree.links[base].frame.R.T @ axis),
            second_axis=_unit(self.tree.links[first.name].frame.R.T @ second),
        )


def _determined(moved: Array) -> bool:
    """Whether actuators (actuators, freedoms) move in every motion."""
    values = np.linalg.svd(moved, compute_uv=False)
    return bool(np.sum(values > STAYS) == moved.shape[1])


def _squares(V: Array, of_actuators: Array) -> Array:
    """(n + 1, freedoms, freedoms) V'V of each body's velocity (6n, freedoms), and actuators'."""
    of_bodies = V.reshape(-1, 6, V.shape[1])
    squares = np.swapaxes(of_bodies, 1, 2) @ of_bodies
    return np.concatenate([squares, (of_actuators.T @ of_actuators)[None]])


def _may_stay(squares: Array, rod: Collection[int]) -> bool:
    """Whether all but a rod may stand still in some motion: a quick test before `_only_motion`.

    Squares have half of the digits, so some motions that are not idle pass the test.
    """
    if not squares.shape[1]:
        return False
    whole = squares.sum(axis=0)
    others = whole - squares[list(rod)].sum(axis=0)
    return bool(np.linalg.eigvalsh(others)[0] <= UNLIKELY * max(1.0, float(np.trace(whole))))


def _only_motion(rows: Array, scale: float) -> Array | None:
    """The one unit vector that all rows (m, n) leave at zero; None where there is none, or more."""
    if rows.shape[1] == 0:
        return None
    if not rows.size:
        return np.ones(1) if rows.shape[1] == 1 else None
    if rows.shape[0] > rows.shape[1]:
        rows = _triangle(rows)  # faster, with the same values and V
    _, values, V = np.linalg.svd(rows)
    small = rows.shape[1] - int(np.sum(values > STAYS * max(scale, 1.0)))
    return V[-1] if small == 1 else None


def _triangle(rows: Array) -> Array:
    """R (n, n) of the QR of rows (m, n), by blocks that are too small for the threads of a BLAS."""
    n = rows.shape[1]
    while len(rows) > 2 * n:
        blocks = np.pad(rows, ((0, -len(rows) % (2 * n)), (0, 0))).reshape(-1, 2 * n, n)
        rows = np.asarray(np.linalg.qr(blocks, mode="r")).reshape(-1, n)
    return np.asarray(np.linalg.qr(rows, mode="r"))


def _unit(array: Array) -> Vector3:
    return vector3(array / np.linalg.norm(array))
