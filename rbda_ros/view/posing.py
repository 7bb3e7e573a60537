"""Positions of a robot from sliders, with closed loops or with the gaps of those that do not close.

`branches` finds other ways to close a loop with the same independent joints. A robot whose loops
close nowhere is shown as a tree, posed where the gaps are smallest.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
import yaml

from rbda_ros.cluster_tree.closing.first_position import approach, gaps_of
from rbda_ros.cluster_tree.closing.newton import solve
from rbda_ros.cluster_tree.closing.search import close_cluster
from rbda_ros.cluster_tree.closing.tolerances import CLOSED, SINGULAR
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.joints import integrate
from rbda_ros.cluster_tree.loops import build_loop
from rbda_ros.cluster_tree.spanning_tree import Body
from rbda_ros.cluster_tree.tree import build_cluster_tree
from rbda_ros.description import read_description
from rbda_ros.description.model import Constraint
from rbda_ros.errors import ClosureError, InputError, SingularityError
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array

FREE_TURN = math.pi
"""How far a joint that turns without bound goes to either side [rad]."""
FREE_SLIDE = 0.3
"""How far one that slides without bound goes [m]."""


@dataclass(frozen=True)
class Slider:
    """One coordinate that can be moved.

    Attributes:
        name: the joint, with a suffix where it has several coordinates.
        joint: the joint.
        lower, upper: of the position [rad, m].
        unit: rad or m.
    """

    name: str
    joint: str
    lower: float
    upper: float
    unit: str


@dataclass(frozen=True)
class Drive:
    """A set of sliders that determine the robot.

    Attributes:
        sliders: in model order.
        note: what to know about them; empty for nothing.
    """

    sliders: tuple[Slider, ...]
    note: str = ""


def drives(robot: Robot) -> dict[str, Drive]:
    """``joints``, the independent ones; and ``motors``, the actuated ones, where they differ."""
    joints = _independent(robot)
    found = {"joints": joints}
    motors, note = _motor_names(robot)
    if set(motors) != {slider.joint for slider in joints.sliders}:
        found["motors"] = Drive(_motors(robot, joints, motors), note)
    return found


def _independent(robot: Robot) -> Drive:
    """Sliders of the joints all of whose coordinates are independent."""
    chosen = set(robot.independent_joint_names)
    left_out: list[str] = []
    sliders: list[Slider] = []
    bodies = robot.spanning_tree.bodies[1 if robot.floating_base else 0 :]
    for body in bodies:
        inside = [name in chosen for name in body.velocity_names]
        if all(inside):
            sliders += _sliders(robot, body)
        elif any(inside):
            left_out.append(body.joint.name)
    note = ""
    if left_out:
        note = (
            f"{', '.join(left_out)}: only part of it is independent, so no slider can move it;"
            " list other independent_joints"
        )
    return Drive(tuple(sliders), note)


def _sliders(robot: Robot, body: Body) -> Iterable[Slider]:
    joint = body.joint
    if body.model.nq != 1:
        for name, coordinate in zip(body.velocity_names, body.model.coordinates, strict=True):
            turns = coordinate in ("wx", "wy", "wz", "yaw")
            way = FREE_TURN if turns else FREE_SLIDE
            yield Slider(name, joint.name, -way, way, "rad" if turns else "m")
        return
    home = float(robot.neutral()[robot.coordinates.scalar_positions[joint.name]])
    slides = joint.type == "prismatic"
    lower, upper = joint.limits.lower, joint.limits.upper
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        way = FREE_SLIDE if slides else FREE_TURN
        lower, upper = home - way, home + way
    yield Slider(
        joint.name, joint.name, min(lower, home), max(upper, home), "m" if slides else "rad"
    )


def _motor_names(robot: Robot) -> tuple[tuple[str, ...], str]:
    """The actuated joints where they determine their cluster, else its independent ones."""
    names: list[str] = []
    instead: list[str] = []
    joint_of = {n: b.joint.name for b in robot.spanning_tree.bodies for n in b.velocity_names}
    everything = [joint_of.get(n, n) for n in robot.independent_joint_names]
    actuated = _once(joint_of.get(n, n) for n in robot.actuated_joint_names)
    for cluster in robot.clusters:
        own = [joint_of.get(n, n) for n in cluster.independent_joints]
        motors = [n for n in actuated if n in cluster.joints]
        others = [n for n in everything if n not in own]
        try:
            chosen = robot.determining_joints([*motors, *others])
            names += [n for n in chosen if n in motors]
        except InputError:
            names += _once(own)
            instead += _once(own)
    note = ""
    if instead:
        note = f"{', '.join(instead)}: no motor determines them, so they keep their own sliders"
    return tuple(names), note


def _motors(robot: Robot, joints: Drive, motors: Sequence[str]) -> tuple[Slider, ...]:
    """Sliders of the motors; ranges follow from the independent joints, to first order."""
    own = {slider.name: slider for slider in joints.sliders}
    G = robot.kernel("velocity_map").call(robot.neutral())[0].reshape(robot.nv, robot.ny)
    home, place = robot.neutral(), robot.coordinates.scalar_positions
    names = [robot.coordinate_names[j] for j in robot.independent_coordinates]
    ranges = np.zeros((robot.ny, 2))  # of y, from where it is at the assembly
    for k, name in enumerate(names):
        if name in own and name in place:
            ranges[k] = np.array([own[name].lower, own[name].upper]) - home[place[name]]
    sliders = []
    for body in robot.spanning_tree.bodies:
        name = body.joint.name
        if name not in motors:
            continue
        if name not in place or name in own:
            sliders += [own[n] for n in body.velocity_names if n in own]
            continue
        (slider,) = _sliders(robot, body)
        if not math.isfinite(body.joint.limits.upper - body.joint.limits.lower):
            ends = G[robot.coordinates.velocities[name].start][:, None] * ranges
            lower, upper = float(ends.min(axis=1).sum()), float(ends.max(axis=1).sum())
            at = float(home[place[name]])
            if upper > lower:
                slider = replace(slider, lower=at + lower, upper=at + upper)
        sliders.append(slider)
    return tuple(sliders)


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


NEAR_DEAD_POINT = 0.05
"""Conditioning below which a loop counts as near a dead point: some 3 degrees of a crank."""
OPEN_STARTS = 8
"""Positions from which the smallest gap is searched for."""
BRANCH_STARTS = 60
"""Random starts of the search for branches: a four-bar shows both within the first few."""
SAME = 1e-3
"""How far positions may be apart and still be one branch [rad, m]."""
MAX_BRANCHES = 16
"""Branches that are listed; a Stewart platform has up to 40."""
FARTHEST = 0.5
"""How far a sliding joint is started from where it is [m]."""


@dataclass(frozen=True, eq=False)
class LoopHealth:
    """State of the loops of one cluster.

    Attributes:
        cluster: its name.
        constraints: their names.
        residual: largest |phi| [m, or sine of an angle].
        conditioning: how well the sliders determine the rest: 0 at a dead point, 1 where the rest
            moves no faster than at the assembly.
        trouble: why it is red; empty where it is not.
    """

    cluster: str
    constraints: tuple[str, ...]
    residual: float
    conditioning: float
    trouble: str


@dataclass(frozen=True, eq=False)
class Posed:
    """A robot at the position of its sliders.

    Attributes:
        q: (nq,) spanning position; of a cluster whose loops do not close the joints that were
            given are in it, and the others are where they were last.
        loops: health of each cluster that has loops.
        gravity: (ny,) force on y that holds it still [N m, N]; None where loops do not allow it.
        efforts: (actuated,) efforts that do; None likewise.
    """

    q: Array
    loops: tuple[LoopHealth, ...]
    gravity: Array | None
    efforts: Array | None

    @property
    def troubles(self) -> tuple[LoopHealth, ...]:
        """The loops that are red."""
        return tuple(loop for loop in self.loops if loop.trouble)


class Poser:
    """Moves a robot from its last position to that of the sliders. Not thread-safe.

    Attributes:
        start: (nq,) where the robot is shown first: its assembly.
        unclosed: constraints that the model lacks because they do not close.
    """

    unclosed: tuple[Constraint, ...] = ()

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.drives: Mapping[str, Drive] = drives(robot)
        self.start: Array = robot.neutral()
        self.q: Array = self.start.copy()  # the last position that closed
        self._poses = robot.body_pose_function()
        self._speeds: dict[tuple[str, str], tuple[ca.Function, float]] = {}

    @cached_property
    def home(self) -> Posed:
        """The robot as it is shown first."""
        return self.at(self.start)

    def values(self, drive: str, q: Array) -> dict[str, float]:
        """Where the sliders of a drive stand at a position (nq,)."""
        found = {}
        bodies = {body.joint.name: body for body in self.robot.spanning_tree.bodies}
        for slider in self.drives[drive].sliders:
            place, body = self.robot.coordinates.positions[slider.joint], bodies[slider.joint]
            if len(place) == 1:
                found[slider.name] = float(q[place.start])
            else:
                home, at = (each[place.start : place.stop] for each in (self.robot.neutral(), q))
                step = _difference(body.joint.type, home, at)
                found[slider.name] = float(step[body.velocity_names.index(slider.name)])
        return found

    def move(self, drive: str, values: Mapping[str, float]) -> Posed:
        """Close the loops for the sliders of a drive, from where the robot was last.

        Args:
            drive: a key of `drives`.
            values: for each of its sliders a position [rad, m].
        """
        return self._reach(self.given(drive, values), drive)

    def measured(
        self, positions: Mapping[str, float], complete: bool, base: Array | None = None
    ) -> Posed:
        """The robot where joints were measured, or where a node completed them.

        Args:
            positions: joint names to positions [rad, m]; other robots' joints are skipped.
            complete: whether all are there, with their loops closed.
            base: (7,) pose of a floating base; None to leave it.
        """
        place = self.robot.coordinates.scalar_positions
        known = {name: at for name, at in positions.items() if name in place}
        if base is not None and self.robot.floating_base:
            self.q[:7] = base
        if not complete:
            return self._reach(dict(known), "joints")
        self.q[[place[name] for name in known]] = list(known.values())
        return self.at(self.q.copy())

    def _reach(self, given: Mapping[str, Array | float], drive: str) -> Posed:
        troubles: dict[str, str] = {}
        try:
            q = self.robot.close(given, self.q)
        except (ClosureError, InputError):
            q = self._close_each(given, troubles)
        if not troubles:
            self.q = q
        return self.at(q, drive, troubles)

    def jump(self, q: Array) -> None:
        """Go on from another closed position (nq,), as on another branch."""
        self.q = np.asarray(q, float).copy()

    def at(
        self, q: Array, drive: str = "joints", troubles: Mapping[str, str] | None = None
    ) -> Posed:
        """The robot at a spanning position (nq,), whether or not it closes the loops."""
        loops = self.health(q, drive, troubles)
        gravity = efforts = None
        try:
            state = self.robot.state(q)
            gravity = self.robot.gravity_force(state)
            efforts = self.robot.actuator_efforts(state, gravity)
        except (InputError, SingularityError):
            pass  # the loop's own trouble says why
        return Posed(q, loops, gravity, efforts)

    def health(
        self, q: Array, drive: str = "joints", troubles: Mapping[str, str] | None = None
    ) -> tuple[LoopHealth, ...]:
        """State of the loops at a spanning position (nq,), with known troubles of clusters."""
        robot = self.robot
        return tuple(
            self._health(node, q[place.start : place.stop], drive, (troubles or {}).get(node.name))
            for node, place in zip(robot.cluster_nodes, robot.cluster_positions, strict=True)
            if node.loop is not None
        )

    def body_poses(self, q: Array) -> tuple[Array, Array]:
        """Rotations (n, 3, 3) and origins (n, 3) of the bodies in the world [m]; any q (nq,)."""
        R, p = self._poses(q)
        return np.asarray(R).reshape(-1, 3, 3), np.asarray(p).reshape(-1, 3)

    def given(self, drive: str, values: Mapping[str, float]) -> dict[str, Array | float]:
        """Positions by joint, as `Robot.close` takes them, from those of a drive's sliders.

        Joints of several coordinates are turned and moved out of where they are assembled.
        """
        given: dict[str, Array | float] = {}
        steps: dict[str, list[float]] = {}
        for slider in self.drives[drive].sliders:
            if slider.joint in self.robot.coordinates.scalar_positions:
                given[slider.joint] = values[slider.name]
            else:
                steps.setdefault(slider.joint, []).append(values[slider.name])
        for body in self.robot.spanning_tree.bodies:
            if (step := steps.get(body.joint.name)) is not None:
                place = self.robot.coordinates.positions[body.joint.name]
                home = self.robot.neutral()[place.start : place.stop]
                given[body.joint.name] = integrate(body.joint.type, home, np.array(step))
        return given

    def _close_each(self, given: Mapping[str, Array | float], troubles: dict[str, str]) -> Array:
        """Close each cluster alone, so that a loop out of reach leaves the others closed."""
        robot, q = self.robot, self.q.copy()
        for node, place in zip(robot.cluster_nodes, robot.cluster_positions, strict=True):
            known = {
                i: np.atleast_1d(np.asarray(given[body.joint.name], float))
                for i, body in enumerate(node.bodies)
                if body.joint.name in given
            }
            part = q[place.start : place.stop]
            try:
                part[:] = close_cluster(node, known, part.copy(), may_jump=False)
            except (ClosureError, InputError) as error:
                for i, position in known.items():
                    part[node.position_ranges[i]] = position
                troubles[node.name] = str(error)
        return q

    def _health(self, node: ClusterNode, q: Array, drive: str, trouble: str | None) -> LoopHealth:
        assert node.loop is not None
        conditioning = 1.0 if node.loop.constant else self._conditioning_of(node, drive, q)
        if trouble is None and conditioning < NEAR_DEAD_POINT:
            trouble = (
                f"near a dead point: conditioning {conditioning:.2g}; here the joints that move it"
                " hardly determine the rest. Move away, or drive it by other joints"
            )
        return LoopHealth(
            cluster=node.name,
            constraints=tuple(constraint.name for constraint in node.loop.constraints),
            residual=float(np.abs(node.loop.residual(q)).max(initial=0.0)),
            conditioning=conditioning,
            trouble=trouble or "",
        )

    def _conditioning_of(self, node: ClusterNode, drive: str, q: Array) -> float:
        """How fast a linkage moves at the assembly, over how fast it moves here; at most 1.

        By the size of G with a drive's joints in the place of y, which grows without bound at a
        dead point. (`Loop.conditioning` takes rows of unit length: where crank and rod are in
        line, a whole row of a slider-crank that the piston drives vanishes, and it does not see.)
        """
        if (drive, node.name) not in self._speeds:
            speed = self._speed_function(node, drive)
            self._speeds[drive, node.name] = speed, float(speed(node.home))
        speed, at_home = self._speeds[drive, node.name]
        here = float(speed(q))
        return min(at_home / here, 1.0) if np.isfinite(here) and here > 0.0 else 0.0

    def _speed_function(self, node: ClusterNode, drive: str) -> ca.Function:
        """``q -> |G|`` of the joints that are not geared to others, for joints of a drive."""
        assert node.loop is not None
        joints = {slider.joint for slider in self.drives[drive].sliders}
        names = [body.joint.name for body in node.bodies for _ in range(body.model.nv)]
        known = [j for j, name in enumerate(names) if name in joints]
        known = known if len(known) == node.ny else list(node.independent)
        curved = [
            j
            for place, coordinates in zip(node.position_ranges, node.velocity_ranges, strict=True)
            if node.loop.curved[place.start : place.stop].any()
            for j in coordinates
        ]
        q = node.loop.K.sx_in(0)
        G = node.velocity_map(q, known)
        return ca.Function("speed", [q], [ca.norm_fro(ca.densify(G[curved, :]))])


def _difference(joint_type: str, home: Array, q: Array) -> Array:
    """Velocity that `integrate` takes from one position of a joint to another in unit time."""
    if joint_type == "planar":
        return q - home
    from scipy.spatial.transform import Rotation

    turns = [Rotation.from_quat(each[-4:]) for each in (home, q)]
    turn = (turns[0].inv() * turns[1]).as_rotvec()
    if joint_type == "spherical":
        return turn
    return np.concatenate([turns[0].inv().apply(q[:3] - home[:3]), turn])


class OpenPoser(Poser):
    """Moves every joint of a robot freely, and measures the gaps of the constraints it lacks.

    Args:
        robot: the tree, without loops.
        constraints: those that the description states, and that cannot hold together.
        guess: joint positions to search from, by name.
    """

    def __init__(
        self, robot: Robot, constraints: Sequence[Constraint], guess: Mapping[str, Array]
    ) -> None:
        super().__init__(robot)
        self.unclosed = tuple(constraints)
        spanning = robot.spanning_tree
        numbers = range(1, len(spanning.bodies) + 1)
        guessed = {
            number: guess.get(
                body.joint.name, robot.neutral()[robot.coordinates.positions[body.joint.name]]
            )
            for number, body in zip(numbers, spanning.bodies, strict=True)
        }
        self._loop = build_loop(spanning, numbers, self.unclosed, guessed)
        guess_q = np.concatenate([np.atleast_1d(guessed[number]) for number in numbers])
        self.start = self._nearest(guess_q)
        self.q = self.start.copy()

    def _nearest(self, guess: Array) -> Array:
        """(nq,) the position with the smallest gaps that a few searches around a guess find."""
        rng = np.random.default_rng(0)
        starts = [guess] + [
            self._loop.integrate(guess, rng.normal(0.0, 0.3, self._loop.nv))
            for _ in range(OPEN_STARTS - 1)
        ]
        return min((approach(self._loop, start) for start in starts), key=lambda end: end.gap).q

    def health(
        self, q: Array, drive: str = "joints", troubles: Mapping[str, str] | None = None
    ) -> tuple[LoopHealth, ...]:
        """The gap of each constraint at a position (nq,)."""
        return tuple(
            LoopHealth(
                cluster=name,
                constraints=(name,),
                residual=gap,
                conditioning=1.0,
                trouble="it does not close; check frames, lengths and axes" if gap > CLOSED else "",
            )
            for name, gap in gaps_of(self._loop, q).items()
        )


def open_robot(
    source: str | os.PathLike[str],
    loops: str | os.PathLike[str] | None,
    floating_base: bool,
) -> OpenPoser:
    """Read a robot whose loops do not close, to look at it.

    Raises:
        ModelError: its tree cannot be used either.
    """
    description = read_description(source, loops)
    tree = replace(description, constraints=(), independent_joints=None, actuated_joints=None)
    robot = Robot(build_cluster_tree(tree, floating_base))
    guess = {
        name: np.atleast_1d(np.asarray(at, float)) for name, at in description.assembly.items()
    }
    return OpenPoser(robot, description.constraints, guess)


def branches(robot: Robot, cluster: str, q: Array) -> list[Array]:
    """Closed positions (nq,) that differ in one cluster and share its independent joints.

    The present one first; then those within the joint limits before the others.

    Args:
        cluster: name of a cluster that has loops.
        q: (nq,) closed position.
    """
    k = [node.name for node in robot.cluster_nodes].index(cluster)
    node, place = robot.cluster_nodes[k], robot.cluster_positions[k]
    found = _cluster_branches(node, q[place.start : place.stop])
    whole = []
    for part in found:
        position = q.copy()
        position[place.start : place.stop] = part
        whole.append(position)
    return whole


def _cluster_branches(node: ClusterNode, q: Array) -> list[Array]:
    loop = node.loop
    if loop is None or loop.constant:
        return [q]
    rng = np.random.default_rng(0)
    free = [j for j in range(node.nv) if j not in node.independent]
    slides = np.array([body.joint.type == "prismatic" for body in loop.bodies])
    sliding = np.repeat(slides, [body.model.nv for body in loop.bodies])
    found = [q]
    for _ in range(BRANCH_STARTS):
        step = np.zeros(node.nv)
        width = np.where(sliding, FARTHEST, np.pi)[free]
        step[free] = rng.uniform(-width, width)
        closed = solve(loop, loop.integrate(q, step), free)
        if not closed.ok:
            continue
        if float(loop.conditioning(closed.q, node.independent, node.home)) < SINGULAR:
            continue
        position = _wound(node, closed.q, q)
        if all(np.abs(position - other).max() > SAME for other in found):
            found.append(position)
        if len(found) == MAX_BRANCHES:
            break
    return [found[0], *sorted(found[1:], key=lambda each: _outside(node, each))]


def _wound(node: ClusterNode, position: Array, near: Array) -> Array:
    """The same position with turning joints less than half a turn from where they were.

    Joints that others are geared to stay: there, a whole turn is another position.
    """
    assert node.loop is not None
    wound = position.copy()
    for body, place in zip(node.bodies, node.position_ranges, strict=True):
        i = place.start
        if body.joint.type in ("revolute", "continuous") and node.loop.curved[i]:
            turns = 2.0 * np.pi * np.round((position[i] - near[i]) / (2.0 * np.pi))
            wound[i] = position[i] - turns
    closes = np.abs(node.loop.residual(wound)).max(initial=0.0) < SAME**2
    return wound if closes else position


def _outside(node: ClusterNode, q: Array) -> int:
    """How many joints are outside their limits."""
    return sum(
        body.model.nq == 1
        and not body.joint.limits.lower <= q[place.start] <= body.joint.limits.upper
        for body, place in zip(node.bodies, node.position_ranges, strict=True)
    )


def assembly_yaml(robot: Robot, q: Array) -> str:
    """The ``assembly`` of a loop file that picks the branch of a position (nq,)."""
    guess = {}
    for node, place in zip(robot.cluster_nodes, robot.cluster_positions, strict=True):
        if node.loop is None or node.loop.constant:
            continue
        for body, inside in zip(node.bodies, node.position_ranges, strict=True):
            if body.model.nq == 1 and node.loop.curved[inside.start]:
                guess[body.joint.name] = round(float(q[place.start + inside.start]), 4) + 0.0
    if not guess:
        return "# no loop of this robot has branches\n"
    return yaml.safe_dump({"assembly": guess}, sort_keys=False, default_flow_style=None, width=80)
