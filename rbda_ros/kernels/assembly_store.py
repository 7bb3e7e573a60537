"""Assemblies on disk, so that a robot is assembled only when it is first loaded.

What is stored is what assembling decided, and the constraints as it left them. It is looked at
before it is used: every loop must close where it is said to, and y must determine its joints.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.closing.assembly import Assembly
from rbda_ros.cluster_tree.closing.independent import singular_values, unit_rows
from rbda_ros.cluster_tree.closing.tolerances import CLOSED, RANK_TOLERANCE
from rbda_ros.cluster_tree.clustering import ClusterAssembly
from rbda_ros.cluster_tree.loops import FUNCTIONS, Loop
from rbda_ros.description.model import Attachment, CutJoint, Pose
from rbda_ros.kernels import disk_cache
from rbda_ros.kernels.fingerprint import fingerprint, versions

FEWEST = 4
"""Clusters with constraints from which storing pays: fewer are assembled in 50 ms."""


def stored_assemblies(members: ClusterAssembly) -> list[Assembly | None]:
    """The assembly of each cluster as the disk has it, or assembled and put there.

    Raises:
        DescriptionError: as `ClusterAssembly.assemble`.
    """
    if sum(map(bool, members.constraints)) < FEWEST or not disk_cache.in_use():
        return members.assemble()
    floating = members.tree.floating_base
    key = fingerprint("assembly", versions(), members.description, members.clusters, floating)
    stored = disk_cache.load(key)
    found = None if stored is None else _unpacked(members, *stored)
    if found is None:
        found = members.assemble()
        disk_cache.store(key, *_packed(found))
    return found


def _packed(assemblies: list[Assembly | None]) -> disk_cache.Stored:
    tied = [assembly for assembly in assemblies if assembly is not None]
    functions = ca.StringSerializer()
    functions.pack([getattr(assembly.loop, name) for assembly in tied for name in FUNCTIONS])
    facts = [
        {
            "rows": assembly.loop.row_constraint,
            "constant": assembly.loop.constant,
            "independent": assembly.independent,
            "warnings": assembly.warnings,
            "idle": [asdict(lock) for lock in assembly.idle],
        }
        for assembly in tied
    ]
    homes = [assembly.home.tobytes() for assembly in tied]
    return {"clusters": facts}, [functions.encode().encode(), *homes]


def _unpacked(
    members: ClusterAssembly, facts: dict[str, Any], blobs: list[bytes]
) -> list[Assembly | None] | None:
    """The unpacked assembly; None where it does not close."""
    functions = iter(ca.StringDeserializer(blobs[0].decode()).unpack())
    stored = zip(facts["clusters"], blobs[1:], strict=True)
    found: list[Assembly | None] = []
    for k, constraints in enumerate(members.constraints):
        if not constraints:
            found.append(None)
            continue
        fact, home = next(stored)
        idle = tuple(_lock(fields) for fields in fact["idle"])
        loop = Loop(
            constraints=(*constraints, *idle),
            bodies=members.bodies(k),
            row_constraint=tuple(fact["rows"]),
            constant=fact["constant"],
            **{name: next(functions) for name in FUNCTIONS},
        )
        assembly = Assembly(
            np.frombuffer(home).copy(),
            loop,
            tuple(fact["independent"]),
            tuple(fact["warnings"]),
            idle,
        )
        if not _holds(assembly):
            return None
        found.append(assembly)
    return found


def _lock(fields: dict[str, Any]) -> CutJoint:
    """A cut that freezes an idle freedom, from its fields."""
    lock = dict(fields)
    for side in ("predecessor", "successor"):
        origin = lock[side]["origin"]
        pose = Pose(tuple(origin["xyz"]), tuple(origin["rpy"]))
        lock[side] = Attachment(lock[side]["link"], pose)
    for axis in ("axis", "second_axis"):
        lock[axis] = tuple(lock[axis])
    return CutJoint(**lock)


def _holds(assembly: Assembly) -> bool:
    """Whether the loop closes at home, and y determines the other velocities there."""
    loop, home = assembly.loop, assembly.home
    closed = np.abs(loop.residual(home)).max(initial=0.0) <= CLOSED
    if not closed or not np.all(loop.cosines(home) >= 0.0):
        return False
    dependent = [j for j in range(loop.nv) if j not in assembly.independent]
    K = unit_rows(loop.jacobian(home))
    rank = np.sum(singular_values(K) > RANK_TOLERANCE)
    determined = np.all(singular_values(K[:, dependent]) > RANK_TOLERANCE)
    return bool(determined and rank == len(dependent))
