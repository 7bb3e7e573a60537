"""Random mechanisms that close by construction, and ones that cannot.

Trees of random joints are put into a random pose with a forward kinematics of our own, and cut
frames are placed where they coincide there, but for what the cut leaves free. Nobody tells the
assembly that pose: it starts from zero.
"""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbda_ros.cluster_tree.tree import build_cluster_tree
from rbda_ros.description import read_description
from rbda_ros.description.orientation import to_rpy
from rbda_ros.errors import ModelError

ROWS = {
    "revolute": 5, "prismatic": 5, "cylindrical": 4, "planar": 3, "universal": 4, "spherical": 3,
    "fixed": 6, "distance": 1,
}  # fmt: skip


@dataclass
class Body:
    """A link on its joint: parent number (-1: the base), type, pose at zero, axis."""

    parent: int
    kind: str
    xyz: np.ndarray
    R: np.ndarray
    axis: np.ndarray


@dataclass
class RandomMechanism:
    """A URDF and a loop file, and how many joints and cuts it has."""

    urdf: str
    loops: dict[str, Any]
    joints: int
    cuts: int


def rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """(3, 3) by Rodrigues' formula."""
    x, y, z = axis / np.linalg.norm(axis)
    W = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * W + (1.0 - np.cos(angle)) * W @ W


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    return rotation(rng.normal(size=3), rng.uniform(-3.0, 3.0))


def random_tree(rng: np.random.Generator, planar: bool, revolute_only: bool) -> list[Body]:
    """Three to nine bodies; in a planar tree every axis is z."""
    bodies: list[Body] = []
    for i in range(int(rng.integers(3, 10))):
        parent = -1 if i == 0 else int(rng.integers(max(-1, i - 3), i))
        slides = rng.random() < 0.15 and not revolute_only
        xyz = rng.uniform(-0.4, 0.4, 3)
        R, axis = random_rotation(rng), rng.normal(size=3)
        if planar:
            xyz[2], R = 0.0, rotation(np.array([0.0, 0.0, 1.0]), rng.uniform(-3, 3))
            axis = np.array([rng.normal(), rng.normal(), 0.0]) if slides else np.eye(3)[2]
        kind = "prismatic" if slides else "continuous"
        bodies.append(Body(parent, kind, xyz, R, axis / np.linalg.norm(axis)))
    return bodies


def poses(bodies: list[Body], q: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Axes and origin of every link in the base."""
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for body, position in zip(bodies, q, strict=True):
        R, p = (np.eye(3), np.zeros(3)) if body.parent < 0 else found[body.parent]
        p, R = p + R @ body.xyz, R @ body.R
        if body.kind == "prismatic":
            p = p + R @ (position * body.axis)
        else:
            R = R @ rotation(body.axis, position)
        found.append((R, p))
    return found


def path(bodies: list[Body], i: int) -> set[int]:
    joints = set()
    while i >= 0:
        joints.add(i)
        i = bodies[i].parent
    return joints


def velocity(bodies: list[Body], q: np.ndarray, i: int, point: np.ndarray) -> np.ndarray:
    """(6, joints) linear velocity of a point of link i, and angular velocity, per joint."""
    J = np.zeros((6, len(bodies)))
    at = poses(bodies, q)
    for j in path(bodies, i):
        R, p = at[j]
        axis = R @ bodies[j].axis
        slides = bodies[j].kind == "prismatic"
        J[:, j] = [*axis, 0, 0, 0] if slides else [*np.cross(axis, point - p), *axis]
    return J


def blocked(kind: str, R: np.ndarray, axis: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """(rows, 6) directions of relative velocity, linear and angular, that a cut does not allow.

    R is the predecessor's cut frame in the base, and turn the successor's in that.
    """
    along = (R @ axis)[None]
    across = R @ np.linalg.svd(axis[None])[2][1:].T
    whole, none = np.eye(3), np.zeros((0, 3))
    second = R @ turn @ np.array([1.0, 0.0, 0.0])
    linear, angular = {
        "revolute": (whole, across.T), "prismatic": (across.T, whole),
        "cylindrical": (across.T, across.T), "planar": (along, across.T),
        "universal": (whole, np.cross(along, second)), "spherical": (whole, none),
        "fixed": (whole, whole), "distance": (along, none),
    }[kind]  # fmt: skip
    return np.block([[linear, np.zeros_like(linear)], [np.zeros_like(angular), angular]])


@dataclass
class Cut:
    """A cut that closes: as the loop file has it, the joints of its loop, its rows, and K there."""

    entry: dict[str, Any]
    tied: set[int]
    rows: int
    K: np.ndarray


def random_cut(
    rng: np.random.Generator, bodies: list[Body], q: np.ndarray, planar: bool, name: str
) -> Cut | None:
    """A cut that closes at q; None for an unlucky draw."""
    a, b = (int(i) for i in rng.integers(-1, len(bodies), 2))
    tied = path(bodies, a) ^ path(bodies, b)
    kind = str(rng.choice(["revolute", "prismatic"] if planar else [*ROWS]))
    rows = 2 if planar else ROWS[kind]
    if a == b or len(tied) <= rows:
        return None
    at = [(np.eye(3), np.zeros(3)), *poses(bodies, q)]
    (R_a, p_a), (R_b, p_b) = at[a + 1], at[b + 1]
    z = np.array([0.0, 0.0, 1.0])
    turn, shift = np.eye(3), np.zeros(3)  # of the successor's frame in the predecessor's
    frame = R_a.T @ random_rotation(rng) if not planar else np.eye(3)
    axis = z
    if planar and kind == "prismatic":
        axis = np.array([1.0, 0.0, 0.0])
    free = rng.uniform(-0.3, 0.3, 3)
    if kind in ("revolute", "cylindrical", "planar"):
        turn = rotation(z, rng.uniform(-3, 3))
    if kind in ("prismatic", "cylindrical"):
        shift = free[0] * axis
    elif kind == "planar":
        shift = free * (1.0 - z)
    elif kind in ("spherical", "distance"):
        turn = random_rotation(rng)
    elif kind == "universal":  # turned about one axis, then about the other
        turn = rotation(z, rng.uniform(-3, 3)) @ rotation(np.array([1.0, 0, 0]), rng.uniform(-3, 3))
    if planar and kind == "revolute":
        turn = rotation(z, rng.uniform(-3, 3))
    origin = rng.uniform(-0.3, 0.3, 3) * ([1, 1, 0] if planar else [1, 1, 1])
    R_cut, p_cut = R_a @ frame, p_a + R_a @ origin
    R_other = R_cut @ turn
    p_other = p_cut + R_cut @ shift
    cut: dict[str, Any] = {"name": name, "type": kind, "axis": [float(c) for c in axis]}
    if kind == "distance":
        p_other = p_cut + 0.5 * rng.normal(size=3)
        cut["length"] = float(np.linalg.norm(p_other - p_cut))
    if kind == "universal":
        cut["second_axis"] = [1.0, 0.0, 0.0]
    cut["predecessor"] = attachment(a, frame, origin)
    cut["successor"] = attachment(b, R_b.T @ R_other, R_b.T @ (p_other - p_b))
    apart = R_cut.T @ (p_other - p_cut) if kind == "distance" else axis
    relative = velocity(bodies, q, b, p_other) - velocity(bodies, q, a, p_other)
    return Cut(cut, tied, rows, blocked(kind, R_cut, apart, turn) @ relative)


def attachment(link: int, R: np.ndarray, p: np.ndarray) -> dict[str, Any]:
    return {
        "link": f"l{link}" if link >= 0 else "base",
        "xyz": [float(c) for c in p],
        "rpy": list(to_rpy(R)),
    }


def has_freedom(cuts: list[Cut]) -> bool:
    """Whether every cut has a joint that moves: by count in any of them together, and by rank.

    Two slides side by side weld links, for one, and what is closed through them may be rigid.
    """
    for size in range(1, len(cuts) + 1):
        for some in itertools.combinations(cuts, size):
            joints = set().union(*(cut.tied for cut in some))
            if len(joints) <= sum(cut.rows for cut in some):
                return False
    _, values, basis = np.linalg.svd(np.vstack([cut.K for cut in cuts]))
    moves = np.abs(basis[np.sum(values > 1e-9) :]).max(axis=0, initial=0.0)
    return all(moves[list(cut.tied)].max() > 1e-6 for cut in cuts)


def closable(seed: int, revolute_only: bool = False) -> RandomMechanism:
    """A mechanism that closes at a pose that is not told."""
    rng = np.random.default_rng(seed)
    while True:
        planar = bool(rng.random() < 0.4)
        bodies = random_tree(rng, planar, revolute_only)
        q = rng.uniform(-1.5, 1.5, len(bodies))
        q[[b.kind == "prismatic" for b in bodies]] *= 0.2
        cuts: list[Cut] = []
        for _ in range(12):
            drawn = random_cut(rng, bodies, q, planar, f"cut{len(cuts)}")
            if drawn and has_freedom([*cuts, drawn]):
                cuts.append(drawn)
        if cuts:
            entries = [cut.entry for cut in cuts]
            return RandomMechanism(urdf(bodies), {"constraints": entries}, len(bodies), len(cuts))


def not_closable(seed: int) -> tuple[RandomMechanism, str]:
    """A mechanism that must be refused, and words of the reason."""
    rng = np.random.default_rng(seed)
    kind = rng.random()
    if kind < 0.2:
        return immobile(seed), "they leave no freedom to"
    mechanism = closable(seed, revolute_only=True)
    cuts = mechanism.loops["constraints"]
    if kind < 0.4:
        rows = [{"j0": 1.0, "j1": 2.0}, {"j0": 1.0, "j1": 2.0}]
        cuts += [
            {"name": f"e{i}", "type": "coupling", "terms": terms, "offset": float(i)}
            for i, terms in enumerate(rows)
        ]
        return mechanism, "contradict"
    point = [cut for cut in cuts if cut["type"] in ("revolute", "spherical", "fixed", "universal")]
    if not point:
        return not_closable(seed + 1_000_000)
    victim = point[int(rng.integers(len(point)))]
    far = rng.normal(size=3) * ([1, 1, 0] if all(c["type"] == "revolute" for c in cuts) else 1.0)
    xyz = np.array(victim["successor"]["xyz"]) + 30.0 * far / np.linalg.norm(far)
    victim["successor"]["xyz"] = [float(c) for c in xyz]
    return mechanism, "does not close"


def immobile(seed: int) -> RandomMechanism:
    """A mechanism that closes, and whose loop takes every freedom of its joints.

    In space a chain of six or fewer joints whose tip is welded to the base; in the plane, of three
    or fewer. Half of them have a link that still swings beside the loop.
    """
    rng = np.random.default_rng(seed)
    planar = bool(rng.random() < 0.5)
    bodies = random_tree(rng, planar, revolute_only=True)
    count = int(rng.integers(1, min(len(bodies), 3 if planar else 6) + 1))
    for i, body in enumerate(bodies):
        body.parent = i - 1 if i < count else -1
    bodies = bodies[: count + int(rng.integers(2))]
    q = rng.uniform(-1.5, 1.5, len(bodies))
    R, p = poses(bodies, q)[count - 1]
    weld = {"name": "weld", "type": "fixed", "successor": attachment(count - 1, np.eye(3), 0 * p)}
    weld["predecessor"] = attachment(-1, R, p)
    return RandomMechanism(urdf(bodies), {"constraints": [weld]}, len(bodies), 1)


def urdf(bodies: list[Body]) -> str:
    numbers = lambda v: " ".join(repr(float(c)) for c in v)  # noqa: E731
    inertial = (
        "<inertial><origin xyz='.05 .02 .01'/><mass value='1'/>"
        "<inertia ixx='.01' iyy='.02' izz='.02' ixy='0' ixz='0' iyz='0'/></inertial>"
    )
    parts = ["<robot name='random'><link name='base'/>"]
    for i, body in enumerate(bodies):
        parent = f"l{body.parent}" if body.parent >= 0 else "base"
        limit = "<limit lower='-9' upper='9'/>" if body.kind == "prismatic" else ""
        parts.append(
            f"<link name='l{i}'>{inertial}</link><joint name='j{i}' type='{body.kind}'>"
            f"<parent link='{parent}'/><child link='l{i}'/><axis xyz='{numbers(body.axis)}'/>"
            f"<origin xyz='{numbers(body.xyz)}' rpy='{numbers(to_rpy(body.R))}'/>{limit}</joint>"
        )
    return "".join([*parts, "</robot>"])


def outcome(mechanism: RandomMechanism) -> tuple[str | None, float]:
    """Why a mechanism is refused, None if it is not, and the processor's seconds that took."""
    start = time.process_time()
    try:
        build_cluster_tree(read_description(mechanism.urdf, mechanism.loops))
        return None, time.process_time() - start
    except ModelError as error:
        return str(error), time.process_time() - start


def main(closable_count: int, other_count: int, first: int = 0) -> int:
    """The long run: prints every mechanism that went wrong, and the figures.

    Mechanisms are counted from ``first``, so that a run can be made in pieces.
    """
    wrong, seconds = 0, []
    for seed in range(first, first + closable_count):
        refusal, took = outcome(closable(seed))
        seconds.append(took)
        if refusal is not None:
            wrong += 1
            print(f"seed {seed} is refused: {refusal[:200]}", flush=True)
    for seed in range(first, first + other_count):
        mechanism, reason = not_closable(seed)
        refusal, took = outcome(mechanism)
        seconds.append(took)
        if refusal is None or reason not in refusal:
            wrong += 1
            print(f"seed {seed} should be refused ({reason}): {refusal}"[:300], flush=True)
    print(
        f"{closable_count} closable, {other_count} not: {wrong} wrong; {max(seconds):.2f} s at most"
    )
    return wrong


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4])) > 0)
