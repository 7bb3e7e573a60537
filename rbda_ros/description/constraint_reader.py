"""The constraints of a loop file: couplings, cut joints, expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from rbda_ros.description.expression import parse
from rbda_ros.description.fields import Fields, to_mapping, to_name
from rbda_ros.description.model import (
    Attachment,
    Constraint,
    Coupling,
    CutJoint,
    CutType,
    Expression,
    Method,
    Pose,
)
from rbda_ros.description.report import Report
from rbda_ros.description.urdf import X_AXIS, ZERO
from rbda_ros.description.urdf_plus import CUT_TYPES
from rbda_ros.description.values import brief, to_number, to_unit_vector, to_vector

CONSTRAINT_TYPES = ("coupling", *CUT_TYPES, "expression")
METHODS = get_args(Method)
_CUT_KEYS = ("predecessor", "successor", "axis")


def read_constraint(value: object, number: int, report: Report) -> Constraint | None:
    """Read one entry of ``constraints``; None after noting why it cannot be made out.

    Args:
        value: the entry, a mapping.
        number: its place in the list from 1, which names it where it has no name.
        report: takes the problems.
    """
    if not isinstance(value, Mapping):
        report.problem(
            f"constraint {number}", f"{brief(value)} is not a mapping", "give name, type, ..."
        )
        return None
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in CONSTRAINT_TYPES:
        where = f"constraint {brief(value.get('name', f'constraint_{number}'))}"
        remedy = f"use one of {', '.join(CONSTRAINT_TYPES)}"
        if isinstance(kind, str):
            remedy = report.suggest(kind, CONSTRAINT_TYPES, remedy)
        report.problem(where, f"type {brief(kind)} is unknown", remedy)
        return None
    keys: tuple[str, ...] = {
        "coupling": ("terms", "offset"),
        "expression": ("equation",),
        "universal": (*_CUT_KEYS, "second_axis"),
        "perpendicular": (*_CUT_KEYS, "second_axis"),
        "distance": (*_CUT_KEYS, "length"),
    }.get(kind, _CUT_KEYS)
    default_name = f"{kind}_{number}"
    where = f"constraint {brief(value.get('name', default_name))}"
    fields = Fields(value, where, ("name", "type", "method", *keys), report)
    name = fields.get("name", to_name, default_name)
    method = fields.get("method", to_method, None)
    if kind == "coupling":
        return _coupling(fields, name, method)
    if kind == "expression":
        return _expression(fields, name, method)
    return _cut_joint(fields, name, cast(CutType, kind), method)


def _coupling(fields: Fields, name: str, method: Method | None) -> Coupling:
    return Coupling(
        name=name,
        terms=fields.require("terms", to_terms, {}),
        offset=fields.get("offset", to_number, 0.0),
        method=method,
    )


def _expression(fields: Fields, name: str, method: Method | None) -> Expression | None:
    equation = fields.require("equation", _to_text, "")
    tree = fields.get("equation", lambda text: parse(_to_text(text)), None)
    return None if tree is None else Expression(name, equation, tree, method)


def _cut_joint(fields: Fields, name: str, kind: CutType, method: Method | None) -> CutJoint:
    return CutJoint(
        name=name,
        type=kind,
        predecessor=to_attachment(fields, "predecessor"),
        successor=to_attachment(fields, "successor"),
        axis=fields.get("axis", to_unit_vector, X_AXIS),
        second_axis=fields.get("second_axis", to_unit_vector, None),
        length=fields.get("length", _to_length, None),
        method=method,
    )


def to_attachment(fields: Fields, key: str) -> Attachment:
    """Read a frame on a link."""
    value = fields.require(key, to_mapping, None)
    if value is None:
        return Attachment("")
    end = Fields(value, f"{fields.where} {key}", ("link", "xyz", "rpy"), fields.report)
    return Attachment(
        link=end.require("link", to_name, ""),
        origin=Pose(end.get("xyz", to_vector, ZERO), end.get("rpy", to_vector, ZERO)),
    )


def to_method(value: object) -> Method:
    """Read a method, or raise ValueError."""
    if value not in METHODS:
        raise ValueError(f"method {brief(value)} is unknown; use {', '.join(METHODS)}")
    return cast(Method, value)


def _to_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{brief(value)} is not text")
    return value


def to_terms(value: object) -> Mapping[str, float]:
    """Read coefficients of joints, or raise ValueError."""
    terms = {name: to_number(coefficient) for name, coefficient in to_mapping(value).items()}
    if not terms:
        raise ValueError("there are no terms")
    for name, coefficient in terms.items():
        if coefficient == 0.0:
            raise ValueError(f"the coefficient of {brief(name)} is zero")
    return terms


def _to_length(value: object) -> float | None:
    length = to_number(value)
    if length <= 0.0:
        raise ValueError(f"{length} is not positive (a spherical cut holds two points together)")
    return length
