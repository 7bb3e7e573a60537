"""Instructions of the derivatives of inverse dynamics, beside algorithmic differentiation."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import casadi as ca

from benchmark.robots import SHARED, example_urdf
from rbda_ros import load_robot
from rbda_ros.algorithms.derivatives import inverse_dynamics_derivatives
from rbda_ros.algorithms.loop_motion import spanning_velocity
from rbda_ros.algorithms.rnea import inverse_dynamics
from rbda_ros.cluster_tree.regroup import regroup
from rbda_ros.cluster_tree.tree import ClusterTree

Row = dict[str, object]
Algorithm = Callable[..., tuple[ca.SX, ca.SX]]


def rows() -> Iterator[Row]:
    """Counts of the shared robots and of talos, whose bases float where real ones do."""
    urdfs = {path.stem: path for path in sorted((SHARED / "robots").glob("*.urdf"))}
    for name, urdf in (urdfs | {"talos_reduced": example_urdf("talos_reduced")}).items():
        floating = ("humanoid" in name and "leg" not in name) or "talos" in name
        tree = load_robot(urdf, floating_base=floating).tree
        ours, theirs = (
            traced(algorithm, tree).n_instructions()
            for algorithm in (inverse_dynamics_derivatives, differentiated)
        )
        yield {"robot": name, "recursions": ours, "AD": theirs, "ratio": ours / theirs}


def differentiated(tree: ClusterTree, q: ca.SX, yd: ca.SX, ydd: ca.SX) -> tuple[ca.SX, ca.SX]:
    """By algorithmic differentiation of inverse dynamics, loops and all."""
    tau = inverse_dynamics(tree, q, yd, ydd)
    along = ca.SX.sym("along", tree.ny)
    qd = spanning_velocity(tree, q, along)
    directions = ca.jacobian(tree.position_rate(q, qd), along)
    return ca.jacobian(tau, q) @ directions, ca.jacobian(tau, yd)


def traced(algorithm: Algorithm, tree: ClusterTree) -> ca.Function:
    """A function of q, yd and ydd, as kernels are traced."""
    sizes = (tree.nq, tree.ny, tree.ny)
    symbols = [ca.SX.sym(name, size) for name, size in zip("qvx", sizes, strict=True)]
    outputs = [ca.densify(ca.SX(A)) for A in algorithm(regroup(tree), *symbols)]
    return ca.Function("derivatives", symbols, ca.cse(outputs))
