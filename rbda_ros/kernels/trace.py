"""Trace an algorithm once per robot into a straight-line program."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, NamedTuple

import casadi as ca

from rbda_ros.algorithms.loop_motion import loops_hold
from rbda_ros.cluster_tree.cancelling import check_cancelled
from rbda_ros.cluster_tree.open_loops import OpenLoops
from rbda_ros.cluster_tree.regroup import regroup
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.kernels.columns import is_long, trace_columns
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.registry import REGISTRY, Traceable, input_shape
from rbda_ros.spatial import Array, Matrix, constant


def trace(
    tree: ClusterTree,
    name: str,
    *options: Any,
    loops: OpenLoops | None = None,
    check: Callable[[], ca.Function] | None = None,
) -> Kernel:
    """Run an algorithm on symbols and keep the program, common subexpressions shared.

    Inputs and outputs are flat, matrices row by row. Where loops are open, forward dynamics has
    one more: the largest acceleration that a row of theirs misses. Matrices of long robots are no
    straight line, but evaluated column by column.

    Args:
        tree: the cluster tree.
        name: one of REGISTRY.
        options: what the algorithm takes beside its inputs.
        loops: the same robot with open loops, if some are to be closed by their forces.
        check: as `Kernel` takes it.
    """
    if is_long(tree, name):
        return trace_columns(regroup(tree), name, REGISTRY[name].outputs)
    return Kernel(trace_function(tree, name, *options, loops=loops), check=check)


class Load(NamedTuple):
    """A link whose payload is an input of a program, beside its other inputs.

    Attributes:
        body: number of the body that the link is fixed to.
        into_body: (10, 10) the payload's parameters in the link's frame to those in the body's, as
            `parameter_map` gives it.
    """

    body: int
    into_body: Array


def trace_function(
    tree: ClusterTree,
    name: str,
    *options: Any,
    loops: OpenLoops | None = None,
    load: Load | None = None,
) -> ca.Function:
    """The program of `trace` as a CasADi function, where it is one straight line.

    With a load, the last input is ``payload``: (10) the parameters of what the link carries, as in
    `inertial_parameters`; zeros for nothing.
    """
    traceable = REGISTRY[name]
    shapes = dict(traceable.shapes(*options)) if traceable.shapes else {}
    shapes = {i: shapes.get(i) or input_shape(tree, i) for i in traceable.inputs}
    symbols = {i: ca.SX.sym(i, rows * columns) for i, (rows, columns) in shapes.items()}
    inputs = [_vectors(symbols[i], *shape) for i, shape in shapes.items()]
    turning = set(_turning(tree, traceable, options))
    payload = ca.SX.sym("payload", 10)
    if load is not None:
        turning.add(load.body)
        symbols["payload"] = payload
    outputs: Matrix | tuple[Matrix, ...]
    if loops is not None and traceable.by_loop_forces is not None:
        turning = {loops.opened_body(body) for body in turning}
        load = load and load._replace(body=loops.opened_body(load.body))
        opened = replace(loops, tree=_prepared(loops.tree, turning, load, payload))
        outputs = traceable.by_loop_forces(opened, *inputs, *options)
    else:
        outputs = traceable.algorithm(_prepared(tree, turning, load, payload), *inputs, *options)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    check_cancelled()
    flat = [ca.vec(ca.densify(ca.SX(output)).T) for output in outputs]
    named = (*traceable.outputs, "loop_residual")[: len(flat)] if traceable.outputs else ()
    names = list(symbols), list(named) or [f"o{i}" for i in range(len(flat))]
    return ca.Function(name, [*symbols.values()], ca.cse(flat), *names)


def _prepared(
    tree: ClusterTree, turning: Collection[int], load: Load | None, payload: ca.SX
) -> ClusterTree:
    """The tree regrouped, with the payload added to the inertia of one of its bodies."""
    tree = regroup(tree, turning)
    if load is None:
        return tree
    m, x, y, z, xx, xy, yy, xz, yz, zz = ca.vertsplit(load.into_body @ payload)
    rotational = ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))
    moment = ca.skew(ca.vertcat(x, y, z))
    linear = ca.diag(ca.vertcat(m, m, m))
    added = ca.blockcat([[rotational, moment], [moment.T, linear]])
    bodies = list(tree.spanning.bodies)
    body = bodies[load.body - 1]
    inertia: Any = constant(body.inertia) + added
    mass: Any = body.mass + m
    bodies[load.body - 1] = replace(body, inertia=inertia, mass=mass)
    return tree.with_bodies(bodies)


def trace_check(tree: ClusterTree) -> ca.Function:
    """Test whether kernels may be evaluated at a position: `loops_hold`."""
    q = ca.SX.sym("q", tree.nq)
    return ca.Function("loops_hold", [q], ca.cse([ca.SX(loops_hold(regroup(tree), q))]))


def _vectors(symbol: ca.SX, rows: int, columns: int) -> ca.SX:
    """An input as the algorithm takes it: of several vectors, given row by row, as columns."""
    return symbol if columns == 1 else ca.reshape(symbol, columns, rows)


def _turning(tree: ClusterTree, traceable: Traceable, options: tuple[Any, ...]) -> Collection[int]:
    """Bodies whose frames must turn with them: where wrenches act, and where frames are."""
    wrenches = "wrenches" in traceable.inputs
    if traceable.bodies is not None and not wrenches:
        return traceable.bodies(*options)
    everywhere = traceable.needs_frames or traceable.every_body or wrenches
    return range(1, len(tree.spanning.bodies) + 1) if everywhere else ()
