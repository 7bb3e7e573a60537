"""Small mechanisms of our own, one per constraint type and topology, for tests to run over.

``test/mechanisms/<name>.urdf`` and, where there are loops beyond the URDF's, ``<name>.yaml``.
The numbers in the table are what a mechanical engineer counts by hand, not what the code gives.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np

from rbda_ros import Robot
from rbda_ros.algorithms.aba import forward_dynamics
from rbda_ros.algorithms.crba import mass_matrix
from rbda_ros.algorithms.rnea import inverse_dynamics
from rbda_ros.cluster_tree.closing.newton import solve
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.joints import integrate
from rbda_ros.cluster_tree.spanning_tree import Body
from rbda_ros.cluster_tree.tree import ClusterTree, build_cluster_tree
from rbda_ros.description import read_description

FOLDER = Path(__file__).parent / "mechanisms"


@dataclass(frozen=True)
class Mechanism:
    """A mechanism and what is known of it without computing.

    Attributes:
        name: of its files.
        clusters: joints of every cluster; a floating base that is alone is left out.
        freedom: degrees of freedom, apart from the floating base.
        rows: independent rows of each cluster with loops.
        constant: whether K of all its loops is constant.
        floating_base: whether it is loaded with a floating base.
    """

    name: str
    clusters: tuple[str, ...]
    freedom: int
    rows: tuple[int, ...]
    constant: bool = False
    floating_base: bool = False

    @property
    def urdf(self) -> Path:
        return FOLDER / f"{self.name}.urdf"

    @property
    def loops(self) -> Path | None:
        path = FOLDER / f"{self.name}.yaml"
        return path if path.exists() else None

    def tree(self) -> ClusterTree:
        """Its cluster tree; built once for all tests, which must not change it."""
        return _tree(self)

    def load(self) -> Robot:
        """A robot, with kernels traced once for all tests."""
        return _robot(self)


@functools.cache
def _tree(mechanism: Mechanism) -> ClusterTree:
    description = read_description(mechanism.urdf, mechanism.loops)
    return build_cluster_tree(description, mechanism.floating_base)


@functools.cache
def _robot(mechanism: Mechanism) -> Robot:
    return Robot(_tree(mechanism))


_FOUR_BAR = "crank coupler rocker"
_LIST = (
    # Couplings: K is constant.
    Mechanism("gear", ("swing rotor", "elbow"), 2, (1,), constant=True),
    Mechanism(
        "belt_pair",
        ("hip", "knee ankle knee_rotor ankle_rotor"),
        3,
        (2,),
        constant=True,
        floating_base=True,
    ),
    Mechanism(
        "differential", ("left right tilt roll",), 2, (2,), constant=True, floating_base=True
    ),
    Mechanism("mimic_chain", ("proximal middle distal thumb",), 1, (3,), constant=True),
    Mechanism("arm_finger", ("shoulder", "proximal distal"), 2, (1,), constant=True),
    Mechanism(
        "rotors",
        # The elbow's rotor is on the base: arm and base share a cluster, so that both are above.
        ("floating_base shoulder shoulder_rotor", "elbow elbow_rotor", "wrist"),
        3,
        (1, 1),
        constant=True,
        floating_base=True,
    ),
    Mechanism("screw", ("motor screw", "flap"), 2, (1,), constant=True),
    # One per cut type. Planar ones have redundant rows, spatial ones have none.
    Mechanism("four_bar", (_FOUR_BAR, "flag"), 2, (2,), floating_base=True),
    Mechanism("slider_crank", ("crank rod wrist_pin",), 1, (2,)),
    Mechanism("cylindrical_cut", ("crank swivel rod post gimbal",), 1, (4,)),
    Mechanism("planar_cut", ("crank hinge ankle tilt",), 1, (3,)),
    Mechanism("universal_cut", ("crank yaw pitch twist rocker",), 1, (4,)),
    Mechanism("spherical_cut", ("crank yaw pitch rocker",), 1, (3,), floating_base=True),
    Mechanism("fixed_cut", ("j1 j2 j3 j4 j5 j6 j7",), 1, (6,)),
    Mechanism("distance_cut", ("bell_crank steering",), 1, (1,), floating_base=True),
    Mechanism("tie_rod", ("bell_crank steering",), 1, (1,)),
    # Equations in joint names.
    Mechanism("cam", ("cam follower-slide tip",), 1, (2,)),
    Mechanism(
        "tello_leg",
        ("hip_rotor_1 hip_rotor_2 gimbal thigh", "knee_rotor_1 knee_rotor_2 shin foot"),
        4,
        (2, 2),
        floating_base=True,
    ),
    # Tree joints that are not revolute, inside loops.
    Mechanism("ball_screw_knee", ("knee swivel screw",), 1, (2,), floating_base=True),
    Mechanism("ball_joint_loop", ("crank ball rocker",), 2, (3,)),
    # Rods that spin about themselves: one row more for each, which freezes it.
    Mechanism("ball_rod", ("crank ball rocker",), 1, (4,), floating_base=True),
    Mechanism(
        "parallel_ankle", ("pitch roll left_motor left_ball right_motor right_ball",), 2, (8,)
    ),
    Mechanism("planar_joint_loop", ("plate leg_1 knee_1 leg_2 knee_2 leg_3 knee_3",), 3, (6,)),
    # Topologies.
    Mechanism("geared_four_bar", (f"{_FOUR_BAR} rotor",), 1, (3,), floating_base=True),
    Mechanism(
        "two_parents",
        ("left_shoulder right_shoulder", "left_elbow right_elbow", "left_wrist", "right_wrist"),
        4,
        (1, 1),
        constant=True,
    ),
    Mechanism(
        "free_parents",
        ("left_shoulder right_shoulder", "left_elbow right_elbow"),
        3,
        (1,),
        constant=True,
        floating_base=True,
    ),
    Mechanism("chained_loops", (_FOUR_BAR, "far_crank far_coupler far_rocker"), 2, (2, 2)),
    Mechanism("overlapping_loops", (f"{_FOUR_BAR} link_a link_b",), 1, (4,), floating_base=True),
    Mechanism("nested_loops", ("hip knee ankle", "toe"), 2, (2,)),
    Mechanism("over_actuated", (_FOUR_BAR, "tail"), 2, (2,), floating_base=True),
)
MECHANISMS: dict[str, Mechanism] = {mechanism.name: mechanism for mechanism in _LIST}


# Lengths of these mechanisms are of the order of 0.1 m, angles of 1 rad.
_SCALE = {"prismatic": np.array([0.1]), "planar": np.array([0.1, 0.1, 1.0])}


def moved(tree: ClusterTree, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The spanning position (nq,) reached from q with velocity ``step`` (nv,) in unit time."""
    return _moved(tree.spanning.bodies, q, step)


def _moved(bodies: Sequence[Body], q: np.ndarray, step: np.ndarray) -> np.ndarray:
    parts, iq, iv = [np.zeros(0)], 0, 0
    for body in bodies:
        nq, nv = body.model.nq, body.model.nv
        parts.append(integrate(body.joint.type, q[iq : iq + nq], step[iv : iv + nv]))
        iq, iv = iq + nq, iv + nv
    return np.concatenate(parts)


@functools.cache
def closed_states(
    mechanism: Mechanism, count: int, seed: int = 0, spread: float = 0.3
) -> tuple[np.ndarray, ...]:
    """Closed spanning positions (nq,) around the assembly, none of them near a singularity."""
    rng = np.random.default_rng(seed)
    return tuple(
        np.concatenate([_closed(node, spread, rng) for node in mechanism.tree().clusters])
        for _ in range(count)
    )


def _closed(node: ClusterNode, spread: float, rng: np.random.Generator) -> np.ndarray:
    """A closed position of one cluster: a random one, moved the shortest way to the manifold."""
    scale = np.concatenate([_SCALE.get(b.joint.type, np.ones(b.model.nv)) for b in node.bodies])
    for _ in range(100):
        near = _moved(node.bodies, node.home, rng.normal(0.0, spread, node.nv) * scale)
        if node.loop is None:
            return near
        closed = solve(node.loop, near, range(node.nv))
        if closed.ok and _is_regular(node, closed.q):
            return closed.q
    raise AssertionError(f"{node.name}: no closed position found")


def cluster_positions(tree: ClusterTree, q: np.ndarray) -> list[np.ndarray]:
    """A spanning position as one vector per cluster."""
    return np.split(q, np.cumsum([node.nq for node in tree.clusters])[:-1])


def _is_regular(node: ClusterNode, q: np.ndarray) -> bool:
    """Whether the dependent joints are well determined by the independent ones."""
    assert node.loop is not None
    dependent = [j for j in range(node.nv) if j not in node.independent]
    return node.loop.constant or np.linalg.cond(node.loop.jacobian(q)[:, dependent]) < 100.0


def assert_same_dynamics(tree: ClusterTree, other: ClusterTree, angles: dict[str, float]) -> None:
    """Two trees of one floating robot have the same dynamics at these closed joint angles [rad]."""
    rng = np.random.default_rng(2)
    base = rng.normal(size=7)
    base[3:] /= np.linalg.norm(base[3:])
    q = ca.DM([*base, *(angles[body.joint.name] for body in tree.spanning.bodies[1:])])
    yd, ydd = (ca.DM(rng.normal(size=tree.ny)) for _ in range(2))
    for algorithm, given in (
        (inverse_dynamics, (q, yd, ydd)),
        (forward_dynamics, (q, yd, ydd)),
        (mass_matrix, (q,)),
    ):
        expected = np.asarray(ca.DM(algorithm(tree, *given)))
        scale = np.abs(expected).max()
        np.testing.assert_allclose(algorithm(other, *given), expected, 0, 1e-13 * scale)
