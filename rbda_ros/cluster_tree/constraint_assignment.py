"""Where constraints act, once fixed joints are lumped: on the base, on nothing, on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import casadi as ca

from rbda_ros.cluster_tree.closing.tolerances import NEARLY_CLOSED
from rbda_ros.cluster_tree.constraints import bodies_tied, whole_residual
from rbda_ros.cluster_tree.spanning_tree import SpanningTree
from rbda_ros.description.model import Constraint, RobotDescription
from rbda_ros.errors import DescriptionError, Problem


def ties_base(tree: SpanningTree, constraints: Iterable[Constraint]) -> bool:
    """Whether a constraint ties the first body, which is the base where that floats."""
    return any(1 in bodies_tied(tree, constraint) for constraint in constraints)


def without_fixed(tree: SpanningTree, description: RobotDescription) -> RobotDescription:
    """The description without cuts that fixed joints hold, with a warning for each.

    Raises:
        DescriptionError: fixed joints hold a cut open, or the floating base is tied.
    """
    problems, warnings, kept = [], [], []
    for constraint in description.constraints:
        tied = bodies_tied(tree, constraint)
        element = f"constraint {constraint.name!r}"
        if not tied:
            gap = float(ca.norm_inf(ca.DM(whole_residual(tree, constraint, {}, {}))))
            if gap <= NEARLY_CLOSED:
                warnings.append(f"{element}: its links are fixed to each other, and it is left out")
            else:
                reason = f"its links are fixed to each other, {gap:.3g} apart"
                problems.append(Problem(element, reason, "remove it, or correct a fixed joint"))
            continue
        kept.append(constraint)
        if tree.floating_base and 1 in tied:
            reason = "it ties the floating base to the world"
            problems.append(Problem(element, reason, "remove it, or load without floating base"))
    if problems:
        raise DescriptionError(problems)
    return replace(
        description, constraints=tuple(kept), warnings=(*description.warnings, *warnings)
    )


def by_cluster(
    tree: SpanningTree, clusters: Sequence[tuple[int, ...]], constraints: Iterable[Constraint]
) -> list[list[Constraint]]:
    """The constraints among the bodies of each cluster, in the order of the file."""
    cluster_of = {number: k for k, numbers in enumerate(clusters) for number in numbers}
    inside: list[list[Constraint]] = [[] for _ in clusters]
    for constraint in constraints:
        inside[cluster_of[min(bodies_tied(tree, constraint))]].append(constraint)
    return inside
