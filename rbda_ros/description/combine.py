"""Combines the robot file and the loop file, and checks the result.

Mimic joints and couplings along paths of URDF+ become plain couplings of joint positions. Joints
that the loop file fixes leave the couplings and springs that they are in.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rbda_ros.description.link_tree import ONE_DOF, Tree, circles, joints_by_name
from rbda_ros.description.loop_conventions import closing_frames
from rbda_ros.description.loop_file import JointOverride, LoopFile
from rbda_ros.description.model import (
    Constraint,
    Coupling,
    Guess,
    Joint,
    Limits,
    Link,
    Pose,
    RobotDescription,
    Spring,
    Vector3,
    vector3,
)
from rbda_ros.description.orientation import about, from_quaternion, to_pose
from rbda_ros.description.read_robot import ReadRobot
from rbda_ros.description.report import Report, brief, several
from rbda_ros.description.rotors import Rotor, Transmissions, build_rotors, read_transmissions
from rbda_ros.description.urdf import Mimic, PathCoupling
from rbda_ros.description.validate import (
    check_constraints,
    check_guess,
    check_inertias,
    check_joint_list,
    check_limits,
    check_springs,
    check_tree,
    check_unique,
    warn_of_massless_leaves,
)
from rbda_ros.description.values import SHORTEST_AXIS
from rbda_ros.spatial import rpy_matrix

_SATISFIED = 1e-4
"""Largest error of a coupling whose joints are all fixed [rad or m]."""
LOCKABLE = ("revolute", "continuous", "prismatic")
"""Joint types that may be fixed at one number."""
LONGEST_PATH = 1000
"""Joints of a path, so that a broken file cannot ask for any number of terms."""


def override_joints(
    joints: Iterable[Joint],
    overrides: Mapping[str, JointOverride],
    report: Report,
    assembly: Mapping[str, Guess],
) -> tuple[tuple[Joint, ...], tuple[Link, ...]]:
    """The joints as the loop file sets them, and the links between halves of universal joints.

    Args:
        joints: of the robot's file.
        overrides: properties that the loop file sets, by joint.
        report: takes the problems.
        assembly: positions; that of a floating or ball joint is where it is fixed.
    """
    joints = tuple(joints)
    known = {joint.name for joint in joints}
    for name in overrides:
        if name not in known:
            remedy = report.suggest(name, known, "name an existing joint")
            report.problem(f"joints: {brief(name)}", "unknown joint", remedy)
    changed: list[Joint] = []
    crosses: list[Link] = []
    for joint in joints:
        override = overrides.get(joint.name)
        if override is None:
            changed.append(joint)
        elif override.type == "universal":
            cross = Link(f"{joint.name}_cross")
            changed.extend(_halves(joint, override, cross.name))
            crosses.append(cross)
        else:
            drawn = assembly.get(joint.name)
            if override.type == "fixed" and isinstance(drawn, tuple):
                joint = replace(joint, origin=_drawn(joint, drawn))
            changed.append(_changed(joint, override, report))
    return tuple(changed), tuple(crosses)


def locked_joints(
    robot: ReadRobot, loop_file: LoopFile, report: Report
) -> dict[str, JointOverride]:
    """Joints that couplings of the robot's file leave one position, as overrides that fix them.

    Files of MuJoCo lock a joint by an equality of this joint alone. A coupling also locks its last
    joint if the others are fixed. Joints that a file calls independent, and those that the loop
    file has an entry for, are not fixed here.
    """
    skipped = {*loop_file.joints, *(loop_file.independent_joints or ())}
    skipped.update(joint.name for joint in robot.joints if joint.independent)
    fixed_at = {n: each.position for n, each in loop_file.joints.items() if each.type == "fixed"}
    types = {joint.name: joint.type for joint in robot.joints}
    couplings = [c for c in robot.constraints if isinstance(c, Coupling)]
    couplings += [mimic.coupling() for mimic in robot.mimics]
    of_joint: dict[str, list[Coupling]] = {}
    for coupling in couplings:
        for name in coupling.terms:
            of_joint.setdefault(name, []).append(coupling)
    found: dict[str, JointOverride] = {}
    while couplings:
        coupling = couplings.pop()
        terms, constant = _split(coupling.terms, fixed_at)
        if len(terms) != 1:
            continue
        ((name, factor),) = terms.items()
        if name in skipped or types.get(name) not in LOCKABLE or not factor:
            continue
        fixed_at[name] = (coupling.offset - constant) / factor + 0.0
        found[name] = JointOverride(type="fixed", position=fixed_at[name])
        couplings.extend(of_joint[name])
        report.warn(
            f"joint {brief(name)}",
            f"constraint {brief(coupling.name)} holds it at {fixed_at[name]:.6g}; it is fixed here",
        )
    return found


def _changed(joint: Joint, override: JointOverride, report: Report) -> Joint:
    if override.type == "fixed" and override.position:
        if joint.type in LOCKABLE:
            joint = replace(joint, origin=origin_at(joint, override.position))
        else:
            report.problem(
                f"joints: {brief(joint.name)}",
                f"a {joint.type} joint is not held at one number",
                "leave 'position' out",
            )
    if override.type is not None and override.type != "universal":
        limits = joint.limits
        if override.type in ("spherical", "fixed"):  # one number bounds no orientation
            limits = Limits(velocity=limits.velocity, effort=limits.effort)
        joint = replace(joint, type=override.type, pitch=override.pitch, limits=limits)
    if override.armature:
        if joint.type in ("fixed", "planar"):
            report.problem(
                f"joints: {brief(joint.name)}",
                f"a {joint.type} joint has no armature",
                "give it to a joint with an axis, a spherical or a floating one",
            )
        joint = replace(joint, armature=override.armature)
    return joint


def _drawn(joint: Joint, position: tuple[float, ...]) -> Pose:
    """Where a floating or ball joint has its child at a position; else the joint's own origin."""
    entries = {"floating": 7, "spherical": 4}.get(joint.type)
    if len(position) != entries or math.hypot(*position[-4:]) < SHORTEST_AXIS:
        return joint.origin
    *place, x, y, z, w = position
    R, p = rpy_matrix(joint.origin.rpy), np.array(joint.origin.xyz)
    return to_pose(R @ from_quaternion((w, x, y, z)), p + R @ (place or np.zeros(3)))


def origin_at(joint: Joint, position: float) -> Pose:
    """Where a joint of a `LOCKABLE` type has its child at a position [rad or m]."""
    R, p = rpy_matrix(joint.origin.rpy), np.array(joint.origin.xyz)
    if joint.type == "prismatic":
        return to_pose(R, p + position * (R @ joint.axis))
    return to_pose(R @ about(joint.axis, position), p)


def halves_of(joint: str, override: JointOverride) -> tuple[str, str]:
    """Names of the two joints that a universal one becomes."""
    first, second = (f"{joint}_{suffix}" for suffix in override.suffixes)
    return first, second


def _halves(joint: Joint, override: JointOverride, cross: str) -> tuple[Joint, Joint]:
    """A universal joint as two revolute ones with a massless link between them."""
    first = override.axis or joint.axis
    limits = Limits(velocity=joint.limits.velocity, effort=joint.limits.effort)
    names = halves_of(joint.name, override)
    half = replace(joint, type="revolute", limits=limits, armature=override.armature or 0.0)
    return (
        replace(half, name=names[0], child=cross, axis=first),
        replace(
            half,
            name=names[1],
            parent=cross,
            origin=Pose(),
            axis=override.second_axis or _perpendicular(first),
        ),
    )


def _perpendicular(axis: Vector3) -> Vector3:
    """A unit vector at right angles to the axis: the coordinate axis that is farthest from it."""
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    across = np.cross(axis, other)
    return vector3(across / np.linalg.norm(across))


def combine(robot: ReadRobot, loop_file: LoopFile, report: Report) -> RobotDescription:
    """Make the robot of its file and of a loop file, which may add to it and overrule it.

    It is valid if nothing was noted.
    """
    locks = locked_joints(robot, loop_file, report)
    overrides = {**robot.retyped, **locks, **loop_file.joints}
    joints, crosses = override_joints(
        robot.joints, overrides, report, {**robot.assembly, **loop_file.assembly}
    )
    links = (*_weighed(robot.links, loop_file.weights, report), *crosses)
    named, tree = joints_by_name(joints), Tree(joints)
    check_tree(links, joints, report)
    check_inertias(links, report)

    link_names = {link.name for link in links}
    xml = robot.transmissions
    transmissions = (
        Transmissions((), {}, ()) if xml is None else read_transmissions(xml, named, report)
    )
    rotors = build_rotors(
        _all_rotors(loop_file, transmissions, report), link_names, named, tree, report
    )
    mimic_couplings = expand_mimics(robot.mimics, named, report)
    followers = [next(iter(coupling.terms)) for coupling in mimic_couplings]
    dependent = {*followers, *(rotor.joint.name for rotor in rotors)}
    joints = mark_dependent(
        (*joints, *(rotor.joint for rotor in rotors)),
        dependent,
        loop_file.independent_joints or (),
    )
    constraints = (
        *mimic_couplings,
        *expand_path_couplings(robot.path_couplings, link_names, tree, report),
        *robot.constraints,
        *closing_frames(
            [link.name for link in links], (*robot.constraints, *loop_file.constraints), report
        ),
        *(rotor.gear for rotor in rotors),
        *loop_file.constraints,
    )
    guesses = _still_valid(robot.assembly, robot.joints, overrides)
    guesses.update(loop_file.assembly)
    _keep_within_limits(mimic_couplings, joints_by_name(joints), guesses)
    fixed_at = {
        name: override.position
        for name, override in (*locks.items(), *loop_file.joints.items())
        if override.type == "fixed"
    }
    description = RobotDescription(
        name=robot.name,
        links=(*links, *(rotor.link for rotor in rotors)),
        joints=joints,
        constraints=tuple(
            replace(c, method=c.method or loop_file.method)
            for c in without_fixed_joints(constraints, fixed_at, report)
        ),
        independent_joints=loop_file.independent_joints,
        actuated_joints=_actuated(
            robot.actuated_joints or transmissions.motors or None, overrides, loop_file
        ),
        root_pose=robot.root_pose,
        assembly={name: guess for name, guess in guesses.items() if name not in fixed_at},
        idle_freedoms=loop_file.idle_freedoms,
        springs=springs_without_fixed_joints((*robot.springs, *loop_file.springs), fixed_at),
    )
    _check(description, report)
    return replace(description, warnings=report.warnings)


def _weighed(
    links: Sequence[Link], weights: Mapping[str, float], report: Report
) -> tuple[Link, ...]:
    """The links with the share of their weight that acts; the loop file's word is the last."""
    known = {link.name for link in links}
    for name in weights:
        if name not in known:
            remedy = report.suggest(name, known, "name an existing link")
            report.problem(f"weights: {brief(name)}", "unknown link", remedy)
    odd = [
        link.name
        for link in links
        if link.weight != 1.0 and link.inertia is not None and link.name not in weights
    ]
    if odd:
        report.warn(
            f"link {several(odd)}",
            "the file takes weight from them, so that efforts hold less than they weigh;"
            f" 'weights: {{{odd[0]}: 1.0}}' in the loop file gives it back",
        )
    return tuple(replace(link, weight=weights.get(link.name, link.weight)) for link in links)


def _still_valid(
    assembly: Mapping[str, Guess], joints: Iterable[Joint], overrides: Mapping[str, JointOverride]
) -> dict[str, Guess]:
    """Positions that a robot's file gives, of joints to which the loop file gives no other type."""
    types = {joint.name: joint.type for joint in joints}
    retyped = {
        name
        for name, override in overrides.items()
        if override.type not in (None, "fixed", types.get(name))
    }
    return {name: guess for name, guess in assembly.items() if name not in retyped}


def _keep_within_limits(
    mimics: Iterable[Coupling], joints: Mapping[str, Joint], guesses: dict[str, Guess]
) -> None:
    """Start where mimic joints and the joint that they follow are within their limits.

    Adds guesses for joints that have none, where zero is outside for one of them.
    """
    followed: dict[str, tuple[str, float, float]] = {}  # joint: master, multiplier, offset
    for coupling in mimics:
        (follower, *masters) = coupling.terms
        if masters:
            followed[follower] = (masters[0], -coupling.terms[masters[0]], coupling.offset)
    groups: dict[str, dict[str, tuple[float, float]]] = {}
    for follower in followed:
        name, slope, offset = follower, 1.0, 0.0
        while name in followed:  # there are no circles
            name, multiplier, shift = followed[name]
            slope, offset = slope * multiplier, offset + slope * shift
        groups.setdefault(name, {name: (1.0, 0.0)})[follower] = (slope, offset)
    for members in groups.values():
        if any(name in guesses or name not in joints for name in members):
            continue
        lower, upper = -math.inf, math.inf
        for name, (slope, offset) in members.items():
            limits = joints[name].limits
            bounds = sorted((bound - offset) / slope for bound in (limits.lower, limits.upper))
            lower, upper = max(lower, bounds[0]), min(upper, bounds[1])
        start = min(max(0.0, lower), upper)
        if start and lower <= upper:
            guesses.update({name: slope * start + o for name, (slope, o) in members.items()})


def _actuated(
    declared: tuple[str, ...] | None, overrides: Mapping[str, JointOverride], loop_file: LoopFile
) -> tuple[str, ...] | None:
    """The joints that the loop file lists, or else the moving ones that the robot's file lists."""
    if loop_file.actuated_joints is not None or declared is None:
        return loop_file.actuated_joints
    names: list[str] = []
    for name in declared:
        override = overrides.get(name, JointOverride())
        if override.type == "universal":
            names.extend(halves_of(name, override))
        elif override.type != "fixed":
            names.append(name)
    return tuple(names)


def _all_rotors(loop_file: LoopFile, transmissions: Transmissions, report: Report) -> list[Rotor]:
    """Collect the rotors of both files; a line of the loop file wins over a transmission."""
    rotors = []
    for line in loop_file.rotors:
        ratio = transmissions.reductions.get(line.joint) if line.ratio is None else line.ratio
        if not ratio:
            report.problem(
                f"rotor {brief(line.joint)}",
                "has no ratio, here or in a transmission",
                "give rotor turns per joint turn",
            )
            continue
        rotors.append(
            Rotor(
                name=line.joint,
                joint=line.joint,
                ratios={line.joint: ratio},
                inertia=line.inertia,
                mass=line.mass,
                on_link=line.on_link,
                origin=line.origin,
            )
        )
    lines = {line.joint for line in loop_file.rotors}
    for rotor in transmissions.rotors:
        if lines.isdisjoint(rotor.ratios):
            rotors.append(rotor)
        else:
            report.warn(
                f"rotor {brief(rotor.joint)}", "the loop file's rotor replaces the transmission's"
            )
    return rotors


def _check(description: RobotDescription, report: Report) -> None:
    """Everything that can only be seen once both files and the shorthands are together."""
    links = [link.name for link in description.links]
    joints = joints_by_name(description.joints)
    tree = Tree(description.joints)
    check_unique("link", links, report)
    check_unique("joint", (joint.name for joint in description.joints), report)
    check_unique("constraint", (item.name for item in description.constraints), report)
    check_limits(description.joints, report)
    check_constraints(description.constraints, links, joints, report)
    check_joint_list("independent_joints", description.independent_joints, joints, report)
    check_joint_list("actuated_joints", description.actuated_joints, joints, report)
    check_springs(description.springs, links, joints, report)
    for link in description.idle_freedoms:
        if link not in links:
            report.unknown("idle_freedoms", "link", link, links)
    for name, guess in description.assembly.items():
        check_guess(name, guess, joints, report)
    report.raise_problems()  # the last check needs links and joints that resolve
    body_of = tree.body_of(links)
    constrained = _constrained_joints(description, body_of)
    warn_of_massless_leaves(description.links, description.joints, body_of, constrained, report)


def _constrained_joints(description: RobotDescription, body_of: Mapping[str, str]) -> set[str]:
    """Joints that a constraint names, or that move a body at the end of a cut."""
    names: set[str] = set()
    cut_bodies: set[str] = set()
    for constraint in description.constraints:
        names.update(constraint.joints)
        cut_bodies.update(body_of[link] for link in constraint.links)
    names.update(joint.name for joint in description.joints if body_of[joint.child] in cut_bodies)
    return names


def without_fixed_joints(
    constraints: Iterable[Constraint], fixed_at: Mapping[str, float], report: Report
) -> Iterator[Constraint]:
    """The constraints, with couplings of the joints that move; those without any are left out.

    Args:
        constraints: of both files.
        fixed_at: positions of the joints that are fixed [rad or m].
        report: takes couplings that the fixed positions contradict.
    """
    for constraint in constraints:
        if not isinstance(constraint, Coupling) or fixed_at.keys().isdisjoint(constraint.terms):
            yield constraint
            continue
        terms, constant = _split(constraint.terms, fixed_at)
        offset = constraint.offset - constant
        if terms:
            yield replace(constraint, terms=terms, offset=offset)
        elif abs(offset) > _SATISFIED * max(map(abs, constraint.terms.values())):
            report.problem(
                f"constraint {brief(constraint.name)}",
                f"all of its joints are fixed, where it is {offset:.3g} from satisfied",
                "fix them at other positions",
            )


def springs_without_fixed_joints(
    springs: Iterable[Spring], fixed_at: Mapping[str, float]
) -> tuple[Spring, ...]:
    """The springs that act on joints that move, with their rest shifted by the others."""
    found = []
    for spring in springs:
        terms, constant = _split(spring.terms, fixed_at)
        if spring.joint in fixed_at or (spring.terms and not terms):
            continue
        least, greatest = spring.rest
        found.append(replace(spring, terms=terms, rest=(least - constant, greatest - constant)))
    return tuple(found)


def _split(
    terms: Mapping[str, float], fixed_at: Mapping[str, float]
) -> tuple[dict[str, float], float]:
    """The terms of joints that move, and the sum of the others."""
    moving = {name: factor for name, factor in terms.items() if name not in fixed_at}
    constant = sum(factor * fixed_at[name] for name, factor in terms.items() if name in fixed_at)
    return moving, constant


def expand_mimics(
    mimics: Sequence[Mimic], joints: Mapping[str, Joint], report: Report
) -> list[Coupling]:
    """Make one coupling ``joint - multiplier * master = offset`` per mimic joint."""
    masters = {mimic.joint: mimic.master for mimic in mimics}
    circular = {joint for circle in circles(masters) for joint in circle}
    couplings = []
    for mimic in mimics:
        where = f"joint {brief(mimic.joint)}"
        if mimic.joint == mimic.master:
            report.problem(where, "mimics itself", "name another joint in <mimic>")
        elif mimic.master and mimic.master not in joints:
            # A warning only: robots in use have hands whose <mimic> lost its prefix.
            hint = report.suggest(mimic.master, joints, "name an existing joint")
            reason = f"mimics unknown joint {brief(mimic.master)}"
            report.warn(where, f"{reason} and is taken as free to move; {hint}")
        elif mimic.joint in circular:
            report.problem(where, "mimics itself through other joints", "break the circle")
        elif mimic.master:
            if mimic.multiplier == 0.0:
                report.warn(where, "mimics with multiplier 0, which holds it at the offset")
            couplings.append(mimic.coupling())
    return couplings


def expand_path_couplings(
    couplings: Iterable[PathCoupling], links: Collection[str], tree: Tree, report: Report
) -> list[Coupling]:
    """Make couplings over the joints on the two paths of each."""
    expanded = []
    for coupling in couplings:
        ends = (coupling.predecessor, coupling.successor)
        unknown = [link for link in ends if link not in links]
        for link in filter(None, unknown):
            report.unknown(_where(coupling), "link", link, links)
        if not unknown:
            terms = _path_terms(coupling, tree, report)
            if terms:
                expanded.append(Coupling(coupling.name, terms))
    return expanded


def _path_terms(coupling: PathCoupling, tree: Tree, report: Report) -> dict[str, float]:
    where = _where(coupling)
    paths = tree.paths_from_common_ancestor(coupling.predecessor, coupling.successor)
    if max(len(path) for path in paths) > LONGEST_PATH:
        report.problem(where, f"spans over {LONGEST_PATH} joints", "couple nearer links")
        return {}
    if coupling.ratio == 0.0:
        report.problem(where, "ratio is zero", "give the transmission ratio")
    towards_predecessor, towards_successor = (
        [joint for joint in path if joint.type != "fixed"] for path in paths
    )
    if not towards_predecessor and not towards_successor:
        report.problem(
            where, "no joint lies between its links", "name two links that move to each other"
        )
    for joint in towards_predecessor + towards_successor:
        if joint.type not in ONE_DOF:
            report.problem(
                where,
                f"{joint.type} joint {brief(joint.name)} lies on its path",
                "couple links with only revolute, continuous or prismatic joints between them",
            )
    terms = {joint.name: coupling.ratio for joint in towards_predecessor}
    return terms | {joint.name: -1.0 for joint in towards_successor}


def _where(coupling: PathCoupling) -> str:
    return f"coupling {brief(coupling.name)}"


def mark_dependent(
    joints: Iterable[Joint], dependent: Collection[str], independent: Collection[str]
) -> tuple[Joint, ...]:
    """Note which joints follow others, unless the files say what is independent."""
    return tuple(
        replace(joint, independent=joint.name in independent)
        if joint.name in dependent and joint.independent is None
        else joint
        for joint in joints
    )
