"""Equality constraints of a compiled MJCF model, as cuts, couplings and expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rbda_ros.description.expression import parse
from rbda_ros.description.mjcf_names import Names
from rbda_ros.description.model import (
    Attachment,
    Constraint,
    Coupling,
    CutJoint,
    Expression,
    Pose,
    Segment,
)
from rbda_ros.description.orientation import to_rpy, turn_onto
from rbda_ros.description.report import Report

SAME_LENGTH = 1e-6
"""How far the distances of two pairs of points may differ for them to be one hinge [m]."""
SHORTEST_HINGE = 1e-5
"""Points of two connects nearer than this [m] do not make a hinge."""


def read_equalities(model: Any, names: Names, report: Report) -> Iterator[Constraint]:
    """The active equalities; two connects between the same bodies are one hinge."""
    import mujoco

    kinds = mujoco.mjtEq
    connects: dict[tuple[str, str], list[CutJoint]] = {}
    for e in range(model.neq):
        name, kind = names.equality(e), int(model.eq_type[e])
        where = f"equality {name!r}"
        if not model.eq_active0[e]:
            report.warn(where, "is not active, and is left out")
        elif kind == int(kinds.mjEQ_CONNECT):
            cut = _cut(model, e, names, "spherical")
            connects.setdefault((cut.predecessor.link, cut.successor.link), []).append(cut)
        elif kind == int(kinds.mjEQ_WELD):
            # Without a torque scale a weld holds its point alone.
            turns_freely = model.eq_data[e][10] == 0.0
            yield _cut(model, e, names, "spherical" if turns_freely else "fixed")
        elif kind == int(kinds.mjEQ_JOINT):
            yield _polynomial(model, e, name, *_joint_sides(model, e, names))
        elif kind == int(kinds.mjEQ_TENDON):
            if (sides := _tendon_sides(model, e, names)) is not None:
                yield _polynomial(model, e, name, *sides)
            elif (rod := _rod(model, e, names)) is not None:
                yield rod
            else:
                report.warn(
                    where,
                    "ties spatial tendons of several segments, and is left out; where that is a"
                    " pulley, a coupling of its joints in the loop file is exact",
                )
        else:
            report.warn(where, f"of type {kinds(kind).name} is not understood, and is left out")
    for cuts in connects.values():
        hinge = _hinge(cuts) if len(cuts) == 2 else None
        yield from cuts if hinge is None else [hinge]


def _cut(model: Any, e: int, names: Names, kind: Any) -> CutJoint:
    """A connect or a weld, between bodies or sites."""
    import mujoco

    data, ids = model.eq_data[e], (int(model.eq_obj1id[e]), int(model.eq_obj2id[e]))
    if int(model.eq_objtype[e]) == int(mujoco.mjtObj.mjOBJ_SITE):
        ends = [
            Attachment(
                names.body(model.site_bodyid[i]),
                _pose(model.site_pos[i], _rotation(model.site_quat[i])),
            )
            for i in ids
        ]
    elif int(model.eq_type[e]) == int(mujoco.mjtEq.mjEQ_CONNECT):
        ends = [
            Attachment(names.body(i), _pose(point, np.eye(3)))
            for i, point in zip(ids, (data[0:3], data[3:6]), strict=True)
        ]
    else:  # the point of a weld is given on the second body, the pose of that in the first
        ends = [
            Attachment(names.body(ids[0]), _pose(data[3:6], _rotation(data[6:10]))),
            Attachment(names.body(ids[1]), _pose(data[0:3], np.eye(3))),
        ]
    return CutJoint(names.equality(e), kind, ends[0], ends[1])


def _hinge(cuts: list[CutJoint]) -> CutJoint | None:
    """The revolute cut that holds two pairs of points together; None where it is not one."""
    first, second = cuts
    lines = []
    for end in ("predecessor", "successor"):
        one, other = (np.array(getattr(cut, end).origin.xyz) for cut in (first, second))
        lines.append(other - one)
    lengths = [float(np.linalg.norm(line)) for line in lines]
    if min(lengths) < SHORTEST_HINGE or abs(lengths[0] - lengths[1]) > SAME_LENGTH:
        return None
    axis, other_axis = (_vector(line / size) for line, size in zip(lines, lengths, strict=True))
    origin = Pose(first.successor.origin.xyz, to_rpy(turn_onto(axis, other_axis)))
    return CutJoint(
        f"{first.name}_{second.name}",
        "revolute",
        Attachment(first.predecessor.link, Pose(first.predecessor.origin.xyz)),
        Attachment(first.successor.link, origin),
        axis=axis,
    )


Side = tuple[dict[str, float], float]
"""Joints with coefficients, and their sum at the reference pose."""


def _joint_sides(model: Any, e: int, names: Names) -> tuple[Side, Side | None]:
    def side(j: int) -> Side:
        return {names.joint(j): 1.0}, float(model.qpos0[model.jnt_qposadr[j]])

    second = int(model.eq_obj2id[e])
    return side(int(model.eq_obj1id[e])), side(second) if second >= 0 else None


def _tendon_sides(model: Any, e: int, names: Names) -> tuple[Side, Side | None] | None:
    sides: list[Side] = []
    for tendon in (int(model.eq_obj1id[e]), int(model.eq_obj2id[e])):
        if tendon >= 0:
            terms = names.fixed_tendon(tendon)
            if not terms:
                return None
            sides.append((terms, float(model.tendon_length0[tendon])))
    return sides[0], sides[1] if len(sides) > 1 else None


def _rod(model: Any, e: int, names: Names) -> CutJoint | None:
    """The distance that a spatial tendon of constant length holds; None where it is not one."""
    tendon = int(model.eq_obj1id[e])
    way = straight_lines(model, tendon, names)
    if way is None or len(way[0]) != 1 or int(model.eq_obj2id[e]) >= 0:
        return None
    (segment,), rest = way
    length = float(model.tendon_length0[tendon] + model.eq_data[e][0]) - rest
    length /= segment.coefficient
    if length <= 0.0:
        return None
    ends = segment.predecessor, segment.successor
    return CutJoint(names.equality(e), "distance", *ends, length=length)


def straight_lines(
    model: Any, tendon: int, names: Names
) -> tuple[tuple[Segment, ...], float] | None:
    """Segments of a spatial tendon whose length may change, and the length of the others [m].

    A pulley divides the length of what follows it. None where the path runs around a geom.
    """
    import mujoco

    first = int(model.tendon_adr[tendon])
    segments, rest, divisor = [], 0.0, 1.0
    before: int | None = None  # the site that the path comes from
    for w in range(first, first + int(model.tendon_num[tendon])):
        kind = int(model.wrap_type[w])
        if kind == int(mujoco.mjtWrap.mjWRAP_PULLEY):
            divisor, before = float(model.wrap_prm[w]), None
            continue
        if kind != int(mujoco.mjtWrap.mjWRAP_SITE):
            return None
        site = int(model.wrap_objid[w])
        if before is not None:
            ends = [
                Attachment(names.body(model.site_bodyid[i]), Pose(_vector(model.site_pos[i])))
                for i in (before, site)
            ]
            if ends[0].link == ends[1].link:
                apart = model.site_pos[before] - model.site_pos[site]
                rest += float(np.linalg.norm(apart)) / divisor
            else:
                segments.append(Segment(ends[0], ends[1], 1.0 / divisor))
        before = site
    return tuple(segments), rest


def _polynomial(
    model: Any, e: int, name: str, first: Side, second: Side | None
) -> Coupling | Expression:
    """``first - its reference = polynomial of (second - its reference)``."""
    c = [float(value) for value in model.eq_data[e][:5]]
    if second is None:
        return Coupling(name, first[0], offset=first[1] + c[0])
    if not any(c[2:]):
        terms = dict(first[0])
        for joint, coefficient in second[0].items():
            terms[joint] = terms.get(joint, 0.0) - c[1] * coefficient
        terms = {joint: coefficient for joint, coefficient in terms.items() if coefficient}
        return Coupling(name, terms, offset=first[1] + c[0] - c[1] * second[1])
    x = f"({_sum(second[0])} - ({second[1]!r}))"
    powers = " + ".join(f"({c[i]!r})*{x}**{i}" if i else f"({c[0]!r})" for i in range(5) if c[i])
    equation = f"{_sum(first[0])} - ({first[1]!r}) - ({powers})"
    return Expression(name, equation, parse(equation))


def _sum(terms: dict[str, float]) -> str:
    return "(" + " + ".join(f"({value!r})*`{name}`" for name, value in terms.items()) + ")"


def _rotation(quaternion: NDArray[np.float64]) -> NDArray[np.float64]:
    import mujoco

    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, np.array(quaternion, dtype=float))
    return R.reshape(3, 3)


def _pose(p: NDArray[np.float64], R: NDArray[np.float64]) -> Pose:
    return Pose(_vector(p), to_rpy(R))


def _vector(values: NDArray[np.float64]) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return (x, y, z)
