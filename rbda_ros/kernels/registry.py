"""Every algorithm that can be traced, with its inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import casadi as ca

from rbda_ros.algorithms import (
    aba,
    caba_osim,
    centroidal,
    closure,
    commanded_motors,
    constrained_dynamics,
    contact_changes,
    coriolis,
    crba,
    derivatives,
    feedforward,
    friction,
    kinematics,
    loop_forces,
    loop_motion,
    position_manifold,
    pv_osim,
    regressor,
    rnea,
    simulation_stage,
)
from rbda_ros.algorithms.commanded_motors import CommandChoice
from rbda_ros.algorithms.contact_rows import ContactFrame, Proximal
from rbda_ros.algorithms.feedforward import Choice
from rbda_ros.algorithms.kinematics import BodyFrame, NamedFrame
from rbda_ros.cluster_tree.open_loops import OpenLoops
from rbda_ros.cluster_tree.spanning_tree import Frame
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.kernels.quantities import QUANTITIES, shape_of
from rbda_ros.spatial import Matrix, constant

Shape = tuple[int, int]
Outputs = Matrix | tuple[Matrix, ...]

LOOP_WEIGHT, LOOP_ITERATIONS = 1e8, 2
"""Proximal weight of open loops, in robot masses, and iterations. Their redundant rows are gone,
so the damped matrix is close to the true one and a second iteration leaves nothing of it."""


@dataclass(frozen=True)
class Traceable:
    """An algorithm ``(tree, *inputs, *options) -> outputs``, with the data for tracing.

    Options select the program; they are hashable and not traced. An input that is a list of
    vectors, such as the wrenches on all bodies, is a matrix: callers of the kernel give a vector in
    each row, and the algorithm takes a vector in each column.

    Attributes:
        inputs: names of the inputs.
        algorithm: the function that is traced.
        outputs: names of the outputs; without names they are called o0, o1, ... For robots with
            open loops, the output ``loop_residual`` follows.
        wrenches: whether there is also a kernel ``<name>_with_wrenches``, whose last input are
            external wrenches.
        needs_frames: whether its options are frames.
        sees_inertia: whether the program depends on inertia, and so on payloads.
        by_loop_forces: the function that is traced for robots with open loops.
        shapes: ``*options -> shapes`` of inputs that depend on the options.
        bodies: ``*options -> numbers`` of bodies that forces act on, or frames are on.
        every_body: whether the frames of all bodies must turn with them, and rotors must stay
            bodies; see `cluster_tree.regroup`.
    """

    inputs: tuple[str, ...]
    algorithm: Callable[..., Outputs]
    outputs: tuple[str, ...] = ()
    wrenches: bool = False
    needs_frames: bool = False
    sees_inertia: bool = True
    by_loop_forces: Callable[..., tuple[Matrix, ...]] | None = None
    shapes: Callable[..., Mapping[str, Shape]] | None = None
    bodies: Callable[..., Collection[int]] | None = None
    every_body: bool = False


def input_shape(tree: ClusterTree, name: str) -> Shape:
    """Rows and columns of an input that does not depend on options; wrenches body by body."""
    sizes = {"gains": 2 * tree.nv, "measured": sum(commanded_motors.state_sizes(tree))}
    if name not in QUANTITIES:
        return sizes.get(name, tree.ny), 1
    rows, columns = (*shape_of(QUANTITIES[name].shape, 0, robot_sizes(tree)), 1, 1)[:2]
    return rows, columns


def robot_sizes(tree: ClusterTree) -> dict[str, int]:
    """The sizes that shapes of quantities are made of."""
    sizes = {"nq": tree.nq, "nv": tree.nv, "ny": tree.ny, "na": len(tree.actuated)}
    return sizes | {"bodies": len(tree.spanning.bodies), "links": len(tree.spanning.links)}


# Algorithms whose arguments or options are other than those of their kernels.


def _feedforward(tree: ClusterTree, *given: Any) -> tuple[Matrix, ...]:
    *inputs, choice = given
    return feedforward.feedforward(tree, *inputs, choice=choice)


def _by_loop_forces(loops: OpenLoops, *inputs: Matrix) -> tuple[Matrix, ...]:
    return loop_forces.forward_dynamics_by_loop_forces(loops, *inputs, proximal=_proximal_of(loops))


def _proximal_of(loops: OpenLoops) -> Proximal:
    """Weight and iterations of loops that are closed by their forces."""
    mass = sum(body.mass for body in loops.closed.spanning.bodies)
    return Proximal(LOOP_WEIGHT * (mass or 1.0), LOOP_ITERATIONS)


def _about_frame(
    inputs: tuple[str, ...], algorithm: Callable[..., Outputs], output: str
) -> Traceable:
    """A kinematic algorithm about a frame, which is given by name."""

    def of_frame(tree: ClusterTree, *given: Any) -> Outputs:
        *arguments, frame = given
        return algorithm(tree, *arguments, frame.on_body(tree))

    return Traceable(inputs, of_frame, (output,), needs_frames=True, sees_inertia=False)


def _about_point(
    inputs: tuple[str, ...], algorithm: Callable[..., Outputs], outputs: tuple[str, ...] = ()
) -> Traceable:
    """The same with one more input: any point of the link, in the frame's axes."""

    def of_point(tree: ClusterTree, *given: Any) -> Outputs:
        *arguments, point, frame = given
        return algorithm(tree, *arguments, _moved(frame.on_body(tree), point))

    return Traceable(
        (*inputs, "points"),
        of_point,
        outputs,
        needs_frames=True,
        sees_inertia=False,
        shapes=lambda frame: {"points": (1, 3)},
    )


def _moved(at: BodyFrame, offset: Matrix) -> BodyFrame:
    """A frame moved by an offset (3) in its own axes, which is an input."""
    p: Any = constant(at.frame.p) + constant(at.frame.R) @ offset
    return BodyFrame(at.body, Frame(at.frame.R, p))


def _operational_space(tree: ClusterTree, q: Matrix, *given: Any) -> tuple[Matrix, ...]:
    """The Jacobian of several frames, which may be at points, and ``J H^-1 J'``."""
    *points, frames, linear_only = given
    at = [frame.on_body(tree) for frame in frames]
    if points:
        at = [_moved(frame, points[0][:, e]) for e, frame in enumerate(at)]
    rows = 3 if linear_only else 6
    J = ca.vertcat(*(kinematics.jacobian(tree, q, frame)[:rows, :] for frame in at))
    return J, pv_osim.inverse_operational_space_inertia(tree, q, at, linear_only)


def _inverse_operational_space_inertia(
    tree: ClusterTree, q: Matrix, frames: Sequence[NamedFrame], linear_only: bool
) -> Matrix:
    at = [frame.on_body(tree) for frame in frames]
    return pv_osim.inverse_operational_space_inertia(tree, q, at, linear_only)


def _constrained_forward_dynamics(tree: ClusterTree, *given: Any) -> tuple[Matrix, ...]:
    *arguments, impact = given
    # An impact is the same problem without gravity: changes of velocity for accelerations.
    tree = tree.without_potential if impact else tree
    return constrained_dynamics.constrained_forward_dynamics(tree, *arguments)


def _constrained_forward_dynamics_by_loop_forces(
    loops: OpenLoops, *given: Any
) -> tuple[Matrix, ...]:
    *inputs, contacts, proximal, _, impact = given
    if impact:
        loops = replace(
            loops, closed=loops.closed.without_potential, tree=loops.tree.without_potential
        )
    moved = [replace(contact, body=loops.opened_body(contact.body)) for contact in contacts]
    arguments = [*inputs, moved, proximal, _proximal_of(loops)]
    return constrained_dynamics.constrained_forward_dynamics_by_loop_forces(loops, *arguments)


def _at_points(
    algorithm: Callable[..., tuple[Matrix, ...]], options: int
) -> Callable[..., tuple[Matrix, ...]]:
    """The same algorithm with the points of the contacts, its first option, as its last input."""

    def at_points(tree: ClusterTree | OpenLoops, *given: Any) -> tuple[Matrix, ...]:
        (*inputs, points), (contacts, *others) = given[:-options], given[-options:]
        placed = [replace(contact, point=points[:, c]) for c, contact in enumerate(contacts)]
        return algorithm(tree, *inputs, placed, *others)

    return at_points


def _damped_delassus_inverse_product(
    tree: ClusterTree,
    q: Matrix,
    axes: Matrix,
    x: Matrix,
    contacts: Sequence[ContactFrame],
    mu: float,
    route: str = "caba_osim",
) -> Matrix:
    product = pv_osim.damped_inverse_product if route == "pv_osim" else caba_osim.caba_osim_product
    return product(tree, q, axes, x, contacts, mu)


def _contact_shapes(contacts: Sequence[ContactFrame], *_: Any) -> dict[str, Shape]:
    count, rows = len(contacts), sum(contact.size for contact in contacts)
    shapes = {"axes": (3 * count, 3), "desired": (count, 6), "points": (count, 3)}
    return shapes | dict.fromkeys(("start", "x", "forces"), (rows, 1))


def _contact_bodies(contacts: Sequence[ContactFrame], *_: Any) -> list[int]:
    return [contact.body for contact in contacts]


def _shape_of_position(choice: Choice | CommandChoice) -> dict[str, Shape]:
    return {"position": (len(choice.positions or ()), 1)}


STATE = ("q", "yd")
MOTION = ("q", "yd", "ydd")
FORCES = ("q", "yd", "tau")

_kinematic = partial(Traceable, sees_inertia=False)
_about_contacts = partial(Traceable, shapes=_contact_shapes, bodies=_contact_bodies)


_PUBLIC: dict[str, Traceable] = {
    "inverse_dynamics": Traceable(MOTION, rnea.inverse_dynamics, ("tau",), wrenches=True),
    "forward_dynamics": Traceable(
        FORCES, aba.forward_dynamics, ("ydd",), wrenches=True, by_loop_forces=_by_loop_forces
    ),
    "mass_matrix": Traceable(("q",), crba.mass_matrix, ("mass_matrix",)),
    "mass_matrix_rows": Traceable(("q",), crba.mass_matrix_rows, ("mass_matrix_rows",)),
    "mass_matrix_factor": Traceable(("q",), crba.mass_matrix_factor, ("factor",)),
    "mass_matrix_inverse": Traceable(("q",), crba.mass_matrix_inverse, ("inverse",)),
    "bias_force": Traceable(STATE, rnea.bias_force, ("tau",)),
    "gravity_force": Traceable(("q",), rnea.gravity_force, ("tau",)),
    "friction_force": _kinematic(STATE, friction.friction_force, ("tau",)),
    "actuator_efforts": _kinematic(("q", "tau"), loop_motion.actuator_efforts, ("efforts",)),
    "generalized_force": _kinematic(("q", "spanning_tau"), loop_motion.generalized_force, ("tau",)),
    "spanning_motion": _kinematic(MOTION, loop_motion.spanning_motion, ("qd", "qdd")),
    "velocity_map": _kinematic(("q",), loop_motion.velocity_map, ("velocity_map",)),
    "momentum": Traceable(STATE, centroidal.momentum, ("momentum", "unforced_rate")),
    "regressor": _kinematic(MOTION, regressor.regressor, ("regressor",), every_body=True),
    "loop_state": _kinematic(("q",), loop_motion.loop_state, ("phi", "conditioning")),
    "inverse_dynamics_derivatives": Traceable(
        MOTION, derivatives.inverse_dynamics_derivatives, ("dtau_dy", "dtau_dyd")
    ),
    "frame_pose": _about_frame(("q",), kinematics.frame_pose, "pose"),
    "jacobian": _about_frame(("q",), kinematics.jacobian, "jacobian"),
    "frame_bias_acceleration": _about_frame(
        STATE, kinematics.frame_bias_acceleration, "frame_acceleration"
    ),
    "frame_velocity": _about_frame(STATE, kinematics.frame_velocity, "frame_velocity"),
    "frame_acceleration": _about_frame(MOTION, kinematics.frame_acceleration, "frame_acceleration"),
    "frame_poses": _kinematic(("q",), kinematics.frame_poses, ("poses",), every_body=True),
    "center_of_mass": Traceable(("q",), centroidal.center_of_mass, ("center_of_mass",)),
    "center_of_mass_jacobian": Traceable(
        ("q",), centroidal.center_of_mass_jacobian, ("center_of_mass_jacobian",)
    ),
    "center_of_mass_bias_acceleration": Traceable(
        STATE, centroidal.center_of_mass_bias_acceleration, ("center_of_mass_acceleration",)
    ),
    # Rotors that are armatures of joints have no angular momentum: bodies keep them.
    "centroidal_momentum_matrix": Traceable(
        ("q",), centroidal.centroidal_momentum_matrix, ("momentum_matrix",), every_body=True
    ),
    "centroidal_momentum": Traceable(
        STATE, centroidal.centroidal_momentum, ("centroidal_momentum",), every_body=True
    ),
    "centroidal_momentum_rate": Traceable(
        MOTION, centroidal.centroidal_momentum_rate, ("centroidal_momentum_rate",), every_body=True
    ),
    "energy": Traceable(STATE, centroidal.energy, ("kinetic", "potential")),
    "coriolis_matrix": Traceable(STATE, coriolis.coriolis_matrix, ("coriolis_matrix",)),
    "integrate": _kinematic(("q", "yd", "dt"), position_manifold.integrate, ("reached",)),
    "difference": _kinematic(("q", "q1"), position_manifold.difference, ("step",)),
    "inverse_operational_space_inertia": Traceable(
        ("q",), _inverse_operational_space_inertia, needs_frames=True
    ),
}
"""Kernels whose only options are frames."""

_OTHERS: dict[str, Traceable] = {
    "jacobian_at": _about_point(("q",), kinematics.jacobian, ("jacobian",)),
    "frame_changes": _about_point((*MOTION, "wrench"), contact_changes.frame_changes),
    "spanning_changes": _kinematic((*STATE, "spanning_tau"), contact_changes.spanning_changes),
    "operational_space": Traceable(
        ("q",), _operational_space, ("frame_jacobians", "inverse_inertia"), needs_frames=True
    ),
    "operational_space_at": Traceable(
        ("q", "points"),
        _operational_space,
        ("frame_jacobians", "inverse_inertia"),
        needs_frames=True,
        shapes=lambda frames, linear_only: {"points": (len(frames), 3)},
    ),
    # Options: which positions, or velocity coordinates, are known.
    "closure": _kinematic(
        ("known", "guess"), closure.closure, shapes=lambda positions: {"known": (len(positions), 1)}
    ),
    "independent_velocity": _kinematic(("q", "known"), loop_motion.independent_velocity),
    "independent_acceleration": _kinematic((*STATE, "known"), loop_motion.independent_acceleration),
    "completed_velocity": _kinematic(("q", "known"), loop_motion.completed_velocity),
    # Option: which velocity coordinates efforts act on.
    "converted_efforts": _kinematic(("q", "tau"), loop_motion.converted_efforts),
    # Option: a Choice of joints and terms.
    "feedforward": Traceable(
        ("position", "velocity", "acceleration", "guess", "limit"),
        _feedforward,
        wrenches=True,
        shapes=_shape_of_position,
    ),
    # Option: a CommandChoice of joints and efforts.
    "commanded_motors": _kinematic(
        ("position", "velocity", "spanning_tau", "guess", "measured", "gains", "limit", "offsets"),
        commanded_motors.commanded_motors,
        shapes=_shape_of_position,
    ),
    # Options: contacts, and how to iterate on their forces; with points, for any of the same
    # bodies.
    "constrained_forward_dynamics": _about_contacts(
        (*FORCES, "axes", "desired", "start"),
        _constrained_forward_dynamics,
        by_loop_forces=_constrained_forward_dynamics_by_loop_forces,
    ),
    "constrained_forward_dynamics_at": _about_contacts(
        (*FORCES, "axes", "desired", "start", "points"),
        _at_points(_constrained_forward_dynamics, options=4),
        by_loop_forces=_at_points(_constrained_forward_dynamics_by_loop_forces, options=4),
    ),
    "contact_response": _about_contacts(
        (*FORCES, "axes", "points"), _at_points(constrained_dynamics.contact_response, options=1)
    ),
    "damped_delassus_inverse": _about_contacts(("q", "axes"), caba_osim.caba_osim),
    "damped_delassus_inverse_product": _about_contacts(
        ("q", "axes", "x"), _damped_delassus_inverse_product
    ),
    "delassus_product": _about_contacts(("q", "axes", "forces"), pv_osim.delassus_product),
    # Option: a StageChoice of forces.
    "simulation_stage": Traceable(
        ("origin", "q", "yd", "slip", "efforts", "shift", "delta", "stepping"),
        simulation_stage.simulation_stage,
        ("ydd", "position", "health"),
        wrenches=True,
    ),
    "simulation_move": Traceable(
        ("q", "shift"), simulation_stage.simulation_move, ("position", "health")
    ),
    "contact_stage": Traceable(
        ("q", "yd", "slip", "efforts", "shift", "stepping"),
        simulation_stage.contact_stage,
        wrenches=True,
        bodies=lambda choice: choice.touching,
    ),
}
"""Kernels that are no operations of their own; operations ask for them."""


def _with_wrenches(kernels: Mapping[str, Traceable]) -> dict[str, Traceable]:
    """The same kernels; where one may take external wrenches, the one that does follows it."""
    found = {}
    for name, traceable in kernels.items():
        found[name] = traceable
        if traceable.wrenches:
            inputs = (*traceable.inputs, "wrenches")
            found[f"{name}_with_wrenches"] = replace(traceable, inputs=inputs)
    return found


KERNELS = _with_wrenches(_PUBLIC)
"""Kernels that `Robot.kernel` returns by name."""
REGISTRY = KERNELS | _with_wrenches(_OTHERS)
"""All kernels."""
