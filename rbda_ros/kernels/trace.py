"""Trace an algorithm once per robot into a straight-line program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from rbda_ros.algorithms.actuation import actuator_efforts
from rbda_ros.algorithms.loops import loop_residual, spanning_motion
from rbda_ros.algorithms.rnea import inverse_dynamics
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.spatial import Matrix


@dataclass(frozen=True)
class Traceable:
    """An algorithm ``(tree, *inputs) -> outputs`` and the shapes of its inputs."""

    inputs: Callable[[ClusterTree], dict[str, tuple[int, int]]]
    algorithm: Callable[..., Matrix]


def _motion(tree: ClusterTree) -> dict[str, tuple[int, int]]:
    return {"q": (tree.nq, 1), "yd": (tree.ny, 1), "ydd": (tree.ny, 1)}


def _motion_and_wrenches(tree: ClusterTree) -> dict[str, tuple[int, int]]:
    return _motion(tree) | {"wrenches": (6, len(tree.spanning.bodies))}


def _position_and_force(tree: ClusterTree) -> dict[str, tuple[int, int]]:
    return {"q": (tree.nq, 1), "tau": (tree.ny, 1)}


def _position(tree: ClusterTree) -> dict[str, tuple[int, int]]:
    return {"q": (tree.nq, 1)}


KERNELS: dict[str, Traceable] = {
    "actuator_efforts": Traceable(_position_and_force, actuator_efforts),
    "loop_residual": Traceable(_position, loop_residual),
    "spanning_motion": Traceable(_motion, spanning_motion),
    "inverse_dynamics": Traceable(_motion, inverse_dynamics),
    "inverse_dynamics_with_wrenches": Traceable(_motion_and_wrenches, inverse_dynamics),
}


def trace(tree: ClusterTree, name: str) -> Kernel:
    """Run an algorithm on symbols and keep the program, common subexpressions shared."""
    traceable = KERNELS[name]
    inputs = traceable.inputs(tree)
    symbols = [ca.SX.sym(symbol, *shape) for symbol, shape in inputs.items()]
    outputs = traceable.algorithm(tree, *symbols)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    dense = [ca.densify(ca.SX(output)) for output in ca.cse(list(outputs))]
    return Kernel(ca.Function(name, symbols, dense))
