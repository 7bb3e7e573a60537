"""Trace an algorithm once per robot into a straight-line program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import casadi as ca

from rbda_ros.algorithms.aba import forward_dynamics
from rbda_ros.algorithms.actuation import actuator_efforts
from rbda_ros.algorithms.caba_osim import caba_osim
from rbda_ros.algorithms.closure import closure
from rbda_ros.algorithms.constrained_dynamics import (
    constrained_forward_dynamics,
    constrained_forward_dynamics_by_loop_forces,
)
from rbda_ros.algorithms.contacts import ContactFrame, Proximal
from rbda_ros.algorithms.crba import mass_matrix, mass_matrix_factor
from rbda_ros.algorithms.derivatives import inverse_dynamics_derivatives
from rbda_ros.algorithms.efpa import inverse_operational_space_inertia
from rbda_ros.algorithms.feedforward import Choice, answer_health, feedforward
from rbda_ros.algorithms.friction import friction_force
from rbda_ros.algorithms.kinematics import frame_bias_acceleration, frame_pose, jacobian
from rbda_ros.algorithms.loop_forces import forward_dynamics_by_loop_forces
from rbda_ros.algorithms.loops import (
    generalized_force,
    independent_acceleration,
    independent_velocity,
    loop_state,
    spanning_motion,
)
from rbda_ros.algorithms.rnea import bias_force, gravity_force, inverse_dynamics
from rbda_ros.cluster_tree.open_loops import OpenLoops
from rbda_ros.cluster_tree.regroup import regroup
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.kernels.columns import is_long, trace_columns
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.spatial import Matrix

LOOP_WEIGHT, LOOP_ITERATIONS = 1e8, 2
"""Proximal weight of open loops, in robot masses, and iterations. Their redundant rows are gone,
so the damped matrix is close to the true one and a second iteration leaves nothing of it."""


@dataclass(frozen=True)
class Traceable:
    """An algorithm ``(tree, *inputs, *options) -> outputs`` and the names of its inputs.

    Options are not traced: they choose the program. ``needs_frames`` tells that there are some.
    ``sees_inertia`` tells that payloads change the program. ``by_loop_forces`` is what takes the
    algorithm's place where loops are left open.
    """

    inputs: tuple[str, ...]
    algorithm: Callable[..., Matrix | tuple[Matrix, ...]]
    needs_frames: bool = False
    sees_inertia: bool = True
    by_loop_forces: Callable[..., tuple[Matrix, ...]] | None = None


KERNELS: dict[str, Traceable] = {
    "inverse_dynamics": Traceable(("q", "yd", "ydd"), inverse_dynamics),
    "inverse_dynamics_with_wrenches": Traceable(("q", "yd", "ydd", "wrenches"), inverse_dynamics),
    "forward_dynamics": Traceable(
        ("q", "yd", "tau"), forward_dynamics, by_loop_forces=forward_dynamics_by_loop_forces
    ),
    "forward_dynamics_with_wrenches": Traceable(
        ("q", "yd", "tau", "wrenches"),
        forward_dynamics,
        by_loop_forces=forward_dynamics_by_loop_forces,
    ),
    "mass_matrix": Traceable(("q",), mass_matrix),
    "mass_matrix_factor": Traceable(("q",), mass_matrix_factor),
    "bias_force": Traceable(("q", "yd"), bias_force),
    "gravity_force": Traceable(("q",), gravity_force),
    "friction_force": Traceable(("q", "yd"), friction_force, sees_inertia=False),
    "actuator_efforts": Traceable(("q", "tau"), actuator_efforts, sees_inertia=False),
    "generalized_force": Traceable(("q", "spanning_tau"), generalized_force, sees_inertia=False),
    "spanning_motion": Traceable(("q", "yd", "ydd"), spanning_motion, sees_inertia=False),
    "loop_state": Traceable(("q",), loop_state, sees_inertia=False),
    "answer_health": Traceable(
        ("q", "guess", "yd", "ydd", "tau", "efforts"), answer_health, sees_inertia=False
    ),
    "inverse_dynamics_derivatives": Traceable(("q", "yd", "ydd"), inverse_dynamics_derivatives),
    "frame_pose": Traceable(("q",), frame_pose, needs_frames=True, sees_inertia=False),
    "jacobian": Traceable(("q",), jacobian, needs_frames=True, sees_inertia=False),
    "frame_bias_acceleration": Traceable(
        ("q", "yd"), frame_bias_acceleration, needs_frames=True, sees_inertia=False
    ),
    "inverse_operational_space_inertia": Traceable(
        ("q",), inverse_operational_space_inertia, needs_frames=True
    ),
}


def input_shape(tree: ClusterTree, name: str) -> tuple[int, int]:
    """Rows and columns of a kernel's input."""
    if name == "wrenches":
        return 6, len(tree.spanning.bodies)
    sizes = {"q": tree.nq, "guess": tree.nq, "spanning_tau": tree.nv, "efforts": len(tree.actuated)}
    return sizes.get(name, tree.ny), 1


def trace(tree: ClusterTree, name: str, *options: Any, loops: OpenLoops | None = None) -> Kernel:
    """Run an algorithm on symbols and keep the program, common subexpressions shared.

    Outputs come flat, matrices row by row. Where loops are open, there is one more: the largest
    acceleration that a row of theirs misses. Matrices of long robots are no straight line, but
    evaluated column by column.
    """
    traceable = KERNELS[name]
    if is_long(tree, name):
        return trace_columns(regroup(tree), name)
    symbols = [ca.SX.sym(symbol, *input_shape(tree, symbol)) for symbol in traceable.inputs]
    # Where wrenches or frames on bodies are asked for, their frames must turn with them.
    turning = range(len(tree.spanning.bodies) + 1)
    plain = "wrenches" not in traceable.inputs and not traceable.needs_frames
    turning = range(0) if plain else turning
    outputs: Matrix | tuple[Matrix, ...]
    if loops is not None and traceable.by_loop_forces is not None:
        opened = replace(loops, tree=regroup(loops.tree, turning))
        outputs = traceable.by_loop_forces(opened, *symbols, proximal=_for_loops(tree))
    else:
        outputs = traceable.algorithm(regroup(tree, turning), *symbols, *options)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    flat = [ca.vec(ca.densify(ca.SX(output)).T) for output in outputs]
    names = list(traceable.inputs), [f"o{i}" for i in range(len(flat))]
    return Kernel(ca.Function(name, symbols, ca.cse(flat), *names))


def _for_loops(tree: ClusterTree) -> Proximal:
    mass = sum(body.mass for body in tree.spanning.bodies)
    return Proximal(LOOP_WEIGHT * (mass or 1.0), LOOP_ITERATIONS)


def trace_closure(tree: ClusterTree, positions: tuple[int, ...]) -> Kernel:
    """The closure kernel ``known, guess -> q, phi`` for one choice of known positions."""
    sizes = {"known": len(positions), "guess": tree.nq}
    return _traced("closure", sizes, partial(closure, tree, positions=positions))


def trace_independent_velocity(tree: ClusterTree, coordinates: tuple[int, ...]) -> Kernel:
    """The kernel ``q, known -> yd, conditioning`` for one choice of known velocities."""
    sizes = {"q": tree.nq, "known": tree.ny}
    algorithm = partial(independent_velocity, tree, coordinates=coordinates)
    return _traced("independent_velocity", sizes, algorithm)


def trace_independent_acceleration(tree: ClusterTree, coordinates: tuple[int, ...]) -> Kernel:
    """The kernel ``q, yd, known -> ydd, conditioning`` for one choice of known accelerations."""
    sizes = {"q": tree.nq, "yd": tree.ny, "known": tree.ny}
    algorithm = partial(independent_acceleration, tree, coordinates=coordinates)
    return _traced("independent_acceleration", sizes, algorithm)


def trace_feedforward(tree: ClusterTree, choice: Choice) -> Kernel:
    """The kernel of `feedforward`, ``position, velocity, ... -> efforts, q, health``."""
    positions = len(choice.positions) if choice.positions is not None else 0
    bodies = len(tree.spanning.bodies)
    sizes = {"position": positions, "velocity": tree.ny, "acceleration": tree.ny}
    sizes |= {"guess": tree.nq, "limit": len(tree.actuated)}
    sizes |= {"wrenches": 6 * bodies} if choice.wrenches else {}
    regrouped = regroup(tree, range(bodies + 1) if choice.wrenches else ())

    def algorithm(*inputs: ca.SX) -> tuple[Matrix, ...]:
        state, wrenches = inputs[:5], [ca.reshape(w, 6, bodies) for w in inputs[5:]]
        return feedforward(regrouped, *state, *wrenches, choice=choice)

    return _traced("feedforward", sizes, algorithm)


def trace_contacts(
    tree: ClusterTree,
    contacts: Sequence[ContactFrame],
    proximal: Proximal,
    route: str,
    loops: OpenLoops | None = None,
) -> Kernel:
    """The kernel ``q, yd, tau, axes, desired, start -> ydd, forces, along, health``.

    See `constrained_forward_dynamics`; matrices come and go column by column.
    """
    count = len(contacts)
    sizes = {"q": tree.nq, "yd": tree.ny, "tau": tree.ny, "axes": 9 * count, "desired": 6 * count}
    sizes["start"] = sum(contact.size for contact in contacts)
    held = [contact.body for contact in contacts]

    def algorithm(
        q: ca.SX, yd: ca.SX, tau: ca.SX, axes: ca.SX, desired: ca.SX, start: ca.SX
    ) -> tuple[Matrix, ...]:
        shaped = ca.reshape(axes, 3, 3 * count), ca.reshape(desired, 6, count), start
        if loops is None:
            regrouped = regroup(tree, held)
            return constrained_forward_dynamics(
                regrouped, q, yd, tau, *shaped, contacts, proximal, route
            )
        numbers = {number: i for i, number in enumerate(loops.bodies, start=1)}
        moved = [replace(contact, body=numbers[contact.body]) for contact in contacts]
        opened = replace(loops, tree=regroup(loops.tree, [contact.body for contact in moved]))
        return constrained_forward_dynamics_by_loop_forces(
            opened, q, yd, tau, *shaped, moved, proximal
        )

    return _traced("constrained_forward_dynamics", sizes, algorithm)


def trace_damped_delassus_inverse(
    tree: ClusterTree, contacts: Sequence[ContactFrame], mu: float
) -> Kernel:
    """The kernel ``q, axes -> inverse`` of `caba_osim`."""
    sizes = {"q": tree.nq, "axes": 9 * len(contacts)}
    regrouped = regroup(tree, [contact.body for contact in contacts])

    def algorithm(q: ca.SX, axes: ca.SX) -> tuple[Matrix, ...]:
        shaped = ca.reshape(axes, 3, 3 * len(contacts))
        return (ca.vec(ca.densify(caba_osim(regrouped, q, shaped, contacts, mu))),)

    return _traced("damped_delassus_inverse", sizes, algorithm)


def _traced(
    name: str, sizes: Mapping[str, int], algorithm: Callable[..., tuple[Matrix, ...]]
) -> Kernel:
    """The program of an algorithm whose inputs and outputs are vectors."""
    symbols = [ca.SX.sym(symbol, size) for symbol, size in sizes.items()]
    outputs = [ca.densify(ca.SX(output)) for output in algorithm(*symbols)]
    names = list(sizes), [f"o{i}" for i in range(len(outputs))]
    return Kernel(ca.Function(name, symbols, ca.cse(outputs), *names))
