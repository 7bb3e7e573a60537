"""Couplings and springs over joints that the loop file fixes: what they say about the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rbda_ros.description.model import Constraint, Coupling, Spring
from rbda_ros.description.report import Report
from rbda_ros.description.values import brief

_SATISFIED = 1e-4
"""How far from satisfied a coupling may be of which all joints are fixed [rad or m]."""


def without_held(
    constraints: Iterable[Constraint], held: Mapping[str, float], report: Report
) -> Iterator[Constraint]:
    """The constraints, with couplings of the joints that move; those without any are left out.

    Args:
        constraints: of both files.
        held: positions of the joints that the loop file fixes [rad or m].
        report: takes couplings that the fixed positions contradict.
    """
    for constraint in constraints:
        if not isinstance(constraint, Coupling) or held.keys().isdisjoint(constraint.terms):
            yield constraint
            continue
        terms, constant = _split(constraint.terms, held)
        offset = constraint.offset - constant
        if terms:
            yield replace(constraint, terms=terms, offset=offset)
        elif abs(offset) > _SATISFIED * max(map(abs, constraint.terms.values())):
            report.problem(
                f"constraint {brief(constraint.name)}",
                f"all of its joints are fixed, where it is {offset:.3g} from satisfied",
                "fix them at other positions",
            )


def springs_without_held(
    springs: Iterable[Spring], held: Mapping[str, float]
) -> tuple[Spring, ...]:
    """The springs that act on joints that move, with their rest shifted by the others."""
    found = []
    for spring in springs:
        terms, constant = _split(spring.terms, held)
        if spring.joint in held or (spring.terms and not terms):
            continue
        least, greatest = spring.rest
        found.append(replace(spring, terms=terms, rest=(least - constant, greatest - constant)))
    return tuple(found)


def _split(terms: Mapping[str, float], held: Mapping[str, float]) -> tuple[dict[str, float], float]:
    """The terms of joints that move, and the sum of the others."""
    moving = {name: factor for name, factor in terms.items() if name not in held}
    return moving, sum(factor * held[name] for name, factor in terms.items() if name in held)
