"""Mimic joints and URDF+ couplings become plain couplings of joint positions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from rbda_ros.description.link_tree import ONE_DOF, Tree
from rbda_ros.description.model import Coupling, Joint
from rbda_ros.description.report import Report
from rbda_ros.description.urdf import Mimic
from rbda_ros.description.urdf_plus import PathCoupling
from rbda_ros.description.values import brief

# Keeps the number of terms that a broken file can ask for within bounds.
LONGEST_PATH = 1000


def expand_mimics(
    mimics: Sequence[Mimic], joints: Mapping[str, Joint], report: Report
) -> list[Coupling]:
    """Make one coupling ``joint - multiplier * master = offset`` per mimic joint."""
    circular = _circles({mimic.joint: mimic.master for mimic in mimics})
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
            couplings.append(_mimic_coupling(mimic, report))
    return couplings


def _mimic_coupling(mimic: Mimic, report: Report) -> Coupling:
    terms = {mimic.joint: 1.0}
    if mimic.multiplier == 0.0:
        report.warn(
            f"joint {brief(mimic.joint)}", "mimics with multiplier 0, which holds it at the offset"
        )
    else:
        terms[mimic.master] = -mimic.multiplier
    return Coupling(f"{mimic.joint}_mimic", terms, mimic.offset)


def _circles(masters: Mapping[str, str]) -> set[str]:
    """Find the joints that follow themselves through others, each joint visited once."""
    circular: set[str] = set()
    done: set[str] = set()
    for joint in masters:
        path: dict[str, int] = {}
        while joint in masters and joint not in done and joint not in path:
            path[joint] = len(path)
            joint = masters[joint]
        if joint in path:
            circular.update(list(path)[path[joint] :])
        done.update(path)
    return circular


def expand_path_couplings(
    couplings: Iterable[PathCoupling], links: Collection[str], tree: Tree, report: Report
) -> list[Coupling]:
    """Make couplings over the joints on the two paths of each."""
    expanded = []
    for coupling in couplings:
        ends = (coupling.predecessor, coupling.successor)
        unknown = [link for link in ends if link not in links]
        for link in filter(None, unknown):
            remedy = report.suggest(link, links, "name an existing link")
            report.problem(_where(coupling), f"unknown link {brief(link)}", remedy)
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
