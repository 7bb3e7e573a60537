"""Every algorithm that can be traced, with its inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca

from rbda_ros.algorithms.aba import forward_dynamics
from rbda_ros.algorithms.caba_osim import caba_osim, caba_osim_product
from rbda_ros.algorithms.centroidal import (
    center_of_mass,
    center_of_mass_bias_acceleration,
    center_of_mass_jacobian,
    centroidal_momentum,
    centroidal_momentum_matrix,
    centroidal_momentum_rate,
    energy,
    momentum,
)
from rbda_ros.algorithms.closure import closure
from rbda_ros.algorithms.commanded_motors import commanded_motors, state_sizes
from rbda_ros.algorithms.constrained_dynamics import (
    constrained_forward_dynamics,
    constrained_forward_dynamics_by_loop_forces,
    contact_response,
)
from rbda_ros.algorithms.contact_changes import frame_changes, spanning_changes
from rbda_ros.algorithms.contact_rows import ContactFrame, Proximal
from rbda_ros.algorithms.coriolis import coriolis_matrix
from rbda_ros.algorithms.crba import (
    mass_matrix,
    mass_matrix_factor,
    mass_matrix_inverse,
    mass_matrix_rows,
)
from rbda_ros.algorithms.derivatives import inverse_dynamics_derivatives
from rbda_ros.algorithms.feedforward import feedforward
from rbda_ros.algorithms.friction import friction_force
from rbda_ros.algorithms.kinematics import (
    BodyFrame,
    NamedFrame,
    frame_acceleration,
    frame_bias_acceleration,
    frame_pose,
    frame_poses,
    frame_velocity,
    jacobian,
)
from rbda_ros.algorithms.loop_forces import forward_dynamics_by_loop_forces
from rbda_ros.algorithms.loop_motion import (
    actuator_efforts,
    completed_velocity,
    converted_efforts,
    generalized_force,
    independent_acceleration,
    independent_velocity,
    loop_state,
    spanning_motion,
    velocity_map,
)
from rbda_ros.algorithms.position_manifold import difference, integrate
from rbda_ros.algorithms.pv_osim import (
    damped_inverse_product,
    delassus_product,
    inverse_operational_space_inertia,
)
from rbda_ros.algorithms.regressor import regressor
from rbda_ros.algorithms.rnea import bias_force, gravity_force, inverse_dynamics
from rbda_ros.algorithms.simulation_stage import (
    StageChoice,
    contact_stage,
    simulation_move,
    simulation_stage,
)
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

    Options are not traced: they choose the program, and can be hashed.

    Attributes:
        inputs: names of the inputs.
        algorithm: of which a kernel is the trace.
        outputs: names of the outputs; o0, o1, ... where there are none. Where loops are left open,
            ``loop_residual`` comes after them.
        needs_frames: whether its options are frames.
        sees_inertia: whether payloads change the program.
        by_loop_forces: what takes the algorithm's place where loops are left open.
        public: whether `Robot.kernel` gives it by its name; else its options are ours.
        shapes: ``*options -> shapes`` of inputs that depend on the options.
        bodies: ``*options -> numbers`` of bodies that forces act on, or frames are on.
        every_body: whether the frame of every body must turn with it, as its inertia may be any.
    """

    inputs: tuple[str, ...]
    algorithm: Callable[..., Outputs]
    outputs: tuple[str, ...] = ()
    needs_frames: bool = False
    sees_inertia: bool = True
    by_loop_forces: Callable[..., tuple[Matrix, ...]] | None = None
    public: bool = True
    shapes: Callable[..., Mapping[str, Shape]] | None = None
    bodies: Callable[..., Collection[int]] | None = None
    every_body: bool = False


def input_shape(tree: ClusterTree, name: str) -> Shape:
    """Rows and columns of an input that does not depend on options; wrenches body by body."""
    sizes = {"gains": 2 * tree.nv, "measured": sum(state_sizes(tree))}
    if name not in QUANTITIES:
        return sizes.get(name, tree.ny), 1
    rows, columns = (*shape_of(QUANTITIES[name].shape, 0, robot_sizes(tree)), 1, 1)[:2]
    return rows, columns


def robot_sizes(tree: ClusterTree) -> dict[str, int]:
    """The sizes that shapes of quantities are made of."""
    sizes = {"nq": tree.nq, "nv": tree.nv, "ny": tree.ny, "na": len(tree.actuated)}
    return sizes | {"bodies": len(tree.spanning.bodies), "links": len(tree.spanning.links)}


# Algorithms whose arguments are other than kernels have them: vectors of a list, such as the
# wrenches on bodies, are rows of an input and columns for the algorithm.


def _inverse_dynamics_with_wrenches(
    tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix, wrenches: Matrix
) -> Matrix:
    return inverse_dynamics(tree, q, yd, ydd, wrenches.T)


def _forward_dynamics_with_wrenches(
    tree: ClusterTree, q: Matrix, yd: Matrix, tau: Matrix, wrenches: Matrix
) -> Matrix:
    return forward_dynamics(tree, q, yd, tau, wrenches.T)


def _by_loop_forces(
    loops: OpenLoops, q: Matrix, yd: Matrix, tau: Matrix, *wrenches: Matrix
) -> tuple[Matrix, ...]:
    columns = [each.T for each in wrenches]
    proximal = _proximal_of(loops)
    return forward_dynamics_by_loop_forces(loops, q, yd, tau, *columns, proximal=proximal)


def _proximal_of(loops: OpenLoops) -> Proximal:
    """Weight and iterations of loops that are closed by their forces."""
    mass = sum(body.mass for body in loops.closed.spanning.bodies)
    return Proximal(LOOP_WEIGHT * (mass or 1.0), LOOP_ITERATIONS)


def _feedforward(tree: ClusterTree, *inputs: Any) -> tuple[Matrix, ...]:
    *state, choice = inputs
    return feedforward(tree, *state[:5], *(each.T for each in state[5:]), choice=choice)


def _frame_pose(tree: ClusterTree, q: Matrix, frame: NamedFrame) -> Matrix:
    R, p = frame_pose(tree, q, frame.on_body(tree))
    return ca.vertcat(ca.horzcat(R, p), ca.DM([[0.0, 0.0, 0.0, 1.0]]))


def _jacobian(tree: ClusterTree, q: Matrix, frame: NamedFrame) -> Matrix:
    return jacobian(tree, q, frame.on_body(tree))


def _frame_bias_acceleration(tree: ClusterTree, q: Matrix, yd: Matrix, frame: NamedFrame) -> Matrix:
    return frame_bias_acceleration(tree, q, yd, frame.on_body(tree))


def _frame_velocity(tree: ClusterTree, q: Matrix, yd: Matrix, frame: NamedFrame) -> Matrix:
    return frame_velocity(tree, q, yd, frame.on_body(tree))


def _frame_acceleration(
    tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix, frame: NamedFrame
) -> Matrix:
    return frame_acceleration(tree, q, yd, ydd, frame.on_body(tree))


def _jacobian_at(tree: ClusterTree, q: Matrix, points: Matrix, frame: NamedFrame) -> Matrix:
    return jacobian(tree, q, _moved(frame.on_body(tree), points.T))


def _frame_changes(
    tree: ClusterTree,
    q: Matrix,
    yd: Matrix,
    ydd: Matrix,
    wrench: Matrix,
    points: Matrix,
    frame: NamedFrame,
) -> tuple[Matrix, ...]:
    return frame_changes(tree, q, yd, ydd, wrench, _moved(frame.on_body(tree), points.T))


def _operational_space(tree: ClusterTree, q: Matrix, *given: Any) -> tuple[Matrix, ...]:
    """The Jacobian of several frames, which may be at points, and ``J H^-1 J'``."""
    *points, frames, linear_only = given
    at = [frame.on_body(tree) for frame in frames]
    if points:
        at = [_moved(frame, points[0][e, :].T) for e, frame in enumerate(at)]
    rows = 3 if linear_only else 6
    J = ca.vertcat(*(jacobian(tree, q, frame)[:rows, :] for frame in at))
    return J, inverse_operational_space_inertia(tree, q, at, linear_only)


def _moved(at: BodyFrame, offset: Matrix) -> BodyFrame:
    """A frame moved by an offset (3) in its own axes, which is an input."""
    p: Any = constant(at.frame.p) + constant(at.frame.R) @ offset
    return BodyFrame(at.body, Frame(at.frame.R, p))


def _inverse_operational_space_inertia(
    tree: ClusterTree, q: Matrix, frames: Sequence[NamedFrame], linear_only: bool
) -> Matrix:
    at = [frame.on_body(tree) for frame in frames]
    return inverse_operational_space_inertia(tree, q, at, linear_only)


def _constrained_forward_dynamics(tree: ClusterTree, *given: Any) -> tuple[Matrix, ...]:
    *inputs, contacts, proximal, route, impact = given
    # An impact is the same problem without gravity: changes of velocity for accelerations.
    tree = tree.without_potential if impact else tree
    return constrained_forward_dynamics(tree, *_columns(*inputs), contacts, proximal, route)


def _constrained_forward_dynamics_by_loop_forces(
    loops: OpenLoops, *given: Any
) -> tuple[Matrix, ...]:
    *inputs, contacts, proximal, _, impact = given
    if impact:
        loops = replace(
            loops, closed=loops.closed.without_potential, tree=loops.tree.without_potential
        )
    moved = [replace(contact, body=loops.opened_body(contact.body)) for contact in contacts]
    return constrained_forward_dynamics_by_loop_forces(
        loops, *_columns(*inputs), moved, proximal, _proximal_of(loops)
    )


def _at_points(algorithm: Callable[..., tuple[Matrix, ...]]) -> Callable[..., tuple[Matrix, ...]]:
    """The same algorithm with the points of the contacts as its last input."""

    def at_points(tree: ClusterTree | OpenLoops, *given: Any) -> tuple[Matrix, ...]:
        *inputs, points, contacts, proximal, route, impact = given
        placed = [replace(contact, point=points[c, :].T) for c, contact in enumerate(contacts)]
        return algorithm(tree, *inputs, placed, proximal, route, impact)

    return at_points


def _contact_response(
    tree: ClusterTree,
    q: Matrix,
    yd: Matrix,
    tau: Matrix,
    axes: Matrix,
    points: Matrix,
    contacts: Sequence[ContactFrame],
) -> tuple[Matrix, ...]:
    placed = [replace(contact, point=points[c, :].T) for c, contact in enumerate(contacts)]
    return contact_response(tree, q, yd, tau, axes.T, placed)


def _columns(
    q: Matrix, yd: Matrix, tau: Matrix, axes: Matrix, desired: Matrix, start: Matrix
) -> tuple[Matrix, Matrix, Matrix, Matrix, Matrix, Matrix]:
    return q, yd, tau, axes.T, desired.T, start


def _axes_as_columns(algorithm: Callable[..., Matrix]) -> Callable[..., Matrix]:
    """The same algorithm with the axes of the contacts as the rows of its second input."""

    def axes_as_rows(tree: ClusterTree, q: Matrix, axes: Matrix, *given: Any) -> Matrix:
        return algorithm(tree, q, axes.T, *given)

    return axes_as_rows


def _damped_delassus_inverse_product(*given: Any) -> Matrix:
    *inputs, route = given
    product = damped_inverse_product if route == "pv_osim" else caba_osim_product
    return product(*inputs)


def _contact_shapes(contacts: Sequence[ContactFrame], *_: Any) -> dict[str, Shape]:
    count, rows = len(contacts), sum(contact.size for contact in contacts)
    shapes = {"axes": (3 * count, 3), "desired": (count, 6), "points": (count, 3)}
    return shapes | dict.fromkeys(("start", "x", "forces"), (rows, 1))


def _contact_bodies(contacts: Sequence[ContactFrame], *_: Any) -> list[int]:
    return [contact.body for contact in contacts]


def _stage_shapes(choice: StageChoice) -> dict[str, Shape]:
    return {"origin": (choice.nq, 1), "stepping": (3, 1)}


def _touching_bodies(choice: StageChoice) -> Collection[int]:
    return choice.touching


STAGE = ("origin", "q", "yd", "slip", "efforts", "shift", "delta", "stepping")
"""Inputs of a stage of the simulation."""
STAGE_IN_CONTACT = ("q", "yd", "slip", "efforts", "shift", "stepping")
"""Those of a stage with contacts."""

_ABOUT_CONTACTS: dict[str, Any] = {
    "public": False,
    "shapes": _contact_shapes,
    "bodies": _contact_bodies,
}

REGISTRY: dict[str, Traceable] = {
    "inverse_dynamics": Traceable(("q", "yd", "ydd"), inverse_dynamics, ("tau",)),
    "inverse_dynamics_with_wrenches": Traceable(
        ("q", "yd", "ydd", "wrenches"), _inverse_dynamics_with_wrenches, ("tau",)
    ),
    "forward_dynamics": Traceable(
        ("q", "yd", "tau"), forward_dynamics, ("ydd",), by_loop_forces=_by_loop_forces
    ),
    "forward_dynamics_with_wrenches": Traceable(
        ("q", "yd", "tau", "wrenches"),
        _forward_dynamics_with_wrenches,
        ("ydd",),
        by_loop_forces=_by_loop_forces,
    ),
    "mass_matrix": Traceable(("q",), mass_matrix, ("mass_matrix",)),
    "mass_matrix_rows": Traceable(("q",), mass_matrix_rows, ("mass_matrix_rows",)),
    "mass_matrix_factor": Traceable(("q",), mass_matrix_factor, ("factor",)),
    "mass_matrix_inverse": Traceable(("q",), mass_matrix_inverse, ("inverse",)),
    "bias_force": Traceable(("q", "yd"), bias_force, ("tau",)),
    "gravity_force": Traceable(("q",), gravity_force, ("tau",)),
    "friction_force": Traceable(("q", "yd"), friction_force, ("tau",), sees_inertia=False),
    "actuator_efforts": Traceable(("q", "tau"), actuator_efforts, ("efforts",), sees_inertia=False),
    "generalized_force": Traceable(
        ("q", "spanning_tau"), generalized_force, ("tau",), sees_inertia=False
    ),
    "spanning_motion": Traceable(
        ("q", "yd", "ydd"), spanning_motion, ("qd", "qdd"), sees_inertia=False
    ),
    "velocity_map": Traceable(("q",), velocity_map, ("velocity_map",), sees_inertia=False),
    "momentum": Traceable(("q", "yd"), momentum, ("momentum", "unforced_rate")),
    "regressor": Traceable(
        ("q", "yd", "ydd"), regressor, ("regressor",), sees_inertia=False, every_body=True
    ),
    "loop_state": Traceable(("q",), loop_state, ("phi", "conditioning"), sees_inertia=False),
    "inverse_dynamics_derivatives": Traceable(
        ("q", "yd", "ydd"), inverse_dynamics_derivatives, ("dtau_dy", "dtau_dyd")
    ),
    "frame_pose": Traceable(("q",), _frame_pose, ("pose",), needs_frames=True, sees_inertia=False),
    "jacobian": Traceable(("q",), _jacobian, ("jacobian",), needs_frames=True, sees_inertia=False),
    "frame_bias_acceleration": Traceable(
        ("q", "yd"),
        _frame_bias_acceleration,
        ("frame_acceleration",),
        needs_frames=True,
        sees_inertia=False,
    ),
    "frame_velocity": Traceable(
        ("q", "yd"), _frame_velocity, ("frame_velocity",), needs_frames=True, sees_inertia=False
    ),
    "frame_acceleration": Traceable(
        ("q", "yd", "ydd"),
        _frame_acceleration,
        ("frame_acceleration",),
        needs_frames=True,
        sees_inertia=False,
    ),
    "frame_poses": Traceable(("q",), frame_poses, ("poses",), sees_inertia=False, every_body=True),
    "center_of_mass": Traceable(("q",), center_of_mass, ("center_of_mass",)),
    "center_of_mass_jacobian": Traceable(
        ("q",), center_of_mass_jacobian, ("center_of_mass_jacobian",)
    ),
    "center_of_mass_bias_acceleration": Traceable(
        ("q", "yd"), center_of_mass_bias_acceleration, ("center_of_mass_acceleration",)
    ),
    # Rotors that are armatures of joints have no angular momentum: bodies keep them.
    "centroidal_momentum_matrix": Traceable(
        ("q",), centroidal_momentum_matrix, ("momentum_matrix",), every_body=True
    ),
    "centroidal_momentum": Traceable(
        ("q", "yd"), centroidal_momentum, ("centroidal_momentum",), every_body=True
    ),
    "centroidal_momentum_rate": Traceable(
        ("q", "yd", "ydd"), centroidal_momentum_rate, ("centroidal_momentum_rate",), every_body=True
    ),
    "energy": Traceable(("q", "yd"), energy, ("kinetic", "potential")),
    "coriolis_matrix": Traceable(("q", "yd"), coriolis_matrix, ("coriolis_matrix",)),
    "integrate": Traceable(("q", "yd", "dt"), integrate, ("reached",), sees_inertia=False),
    "difference": Traceable(("q", "q1"), difference, ("step",), sees_inertia=False),
    "inverse_operational_space_inertia": Traceable(
        ("q",), _inverse_operational_space_inertia, needs_frames=True
    ),
    # For any points of the same links, in their axes.
    "jacobian_at": Traceable(
        ("q", "points"),
        _jacobian_at,
        ("jacobian",),
        needs_frames=True,
        sees_inertia=False,
        public=False,
        shapes=lambda frame: {"points": (1, 3)},
    ),
    "frame_changes": Traceable(
        ("q", "yd", "ydd", "wrench", "points"),
        _frame_changes,
        needs_frames=True,
        sees_inertia=False,
        public=False,
        shapes=lambda frame: {"wrench": (6, 1), "points": (1, 3)},
    ),
    "spanning_changes": Traceable(
        ("q", "yd", "spanning_tau"), spanning_changes, sees_inertia=False, public=False
    ),
    "operational_space": Traceable(
        ("q",),
        _operational_space,
        ("frame_jacobians", "inverse_inertia"),
        needs_frames=True,
        public=False,
    ),
    "operational_space_at": Traceable(
        ("q", "points"),
        _operational_space,
        ("frame_jacobians", "inverse_inertia"),
        needs_frames=True,
        public=False,
        shapes=lambda frames, linear_only: {"points": (len(frames), 3)},
    ),
    # Options: which positions, or velocity coordinates, are known.
    "closure": Traceable(
        ("known", "guess"),
        closure,
        sees_inertia=False,
        public=False,
        shapes=lambda positions: {"known": (len(positions), 1)},
    ),
    "independent_velocity": Traceable(
        ("q", "known"), independent_velocity, sees_inertia=False, public=False
    ),
    "independent_acceleration": Traceable(
        ("q", "yd", "known"), independent_acceleration, sees_inertia=False, public=False
    ),
    "completed_velocity": Traceable(
        ("q", "known"), completed_velocity, sees_inertia=False, public=False
    ),
    # Option: which velocity coordinates efforts act on.
    "converted_efforts": Traceable(
        ("q", "tau"), converted_efforts, sees_inertia=False, public=False
    ),
    # Option: a Choice of joints and terms.
    "feedforward": Traceable(
        ("position", "velocity", "acceleration", "guess", "limit"),
        _feedforward,
        public=False,
        shapes=lambda choice: {"position": (len(choice.positions or ()), 1)},
    ),
    "feedforward_with_wrenches": Traceable(
        ("position", "velocity", "acceleration", "guess", "limit", "wrenches"),
        _feedforward,
        public=False,
        shapes=lambda choice: {"position": (len(choice.positions or ()), 1)},
    ),
    # Option: a CommandChoice of joints and efforts.
    "commanded_motors": Traceable(
        ("position", "velocity", "spanning_tau", "guess", "measured", "gains", "limit", "offsets"),
        commanded_motors,
        sees_inertia=False,
        public=False,
        shapes=lambda choice: {"position": (len(choice.positions or ()), 1)},
    ),
    # Options: contacts, and how to iterate on their forces.
    "constrained_forward_dynamics": Traceable(
        ("q", "yd", "tau", "axes", "desired", "start"),
        _constrained_forward_dynamics,
        by_loop_forces=_constrained_forward_dynamics_by_loop_forces,
        **_ABOUT_CONTACTS,
    ),
    # For any points of the same bodies.
    "constrained_forward_dynamics_at": Traceable(
        ("q", "yd", "tau", "axes", "desired", "start", "points"),
        _at_points(_constrained_forward_dynamics),
        by_loop_forces=_at_points(_constrained_forward_dynamics_by_loop_forces),
        **_ABOUT_CONTACTS,
    ),
    # Option: a StageChoice of forces.
    "simulation_stage": Traceable(
        STAGE,
        simulation_stage,
        ("ydd", "position", "health"),
        public=False,
        shapes=_stage_shapes,
    ),
    "simulation_stage_with_wrenches": Traceable(
        (*STAGE, "wrenches"),
        simulation_stage,
        ("ydd", "position", "health"),
        public=False,
        shapes=_stage_shapes,
    ),
    "simulation_move": Traceable(
        ("q", "shift"), simulation_move, ("position", "health"), public=False
    ),
    "contact_stage": Traceable(
        STAGE_IN_CONTACT,
        contact_stage,
        public=False,
        shapes=_stage_shapes,
        bodies=_touching_bodies,
    ),
    "contact_stage_with_wrenches": Traceable(
        (*STAGE_IN_CONTACT, "wrenches"),
        contact_stage,
        public=False,
        shapes=_stage_shapes,
    ),
    "contact_response": Traceable(
        ("q", "yd", "tau", "axes", "points"),
        _contact_response,
        **_ABOUT_CONTACTS,
    ),
    "damped_delassus_inverse": Traceable(
        ("q", "axes"),
        _axes_as_columns(caba_osim),
        **_ABOUT_CONTACTS,
    ),
    "damped_delassus_inverse_product": Traceable(
        ("q", "axes", "x"),
        _axes_as_columns(_damped_delassus_inverse_product),
        **_ABOUT_CONTACTS,
    ),
    "delassus_product": Traceable(
        ("q", "axes", "forces"),
        _axes_as_columns(delassus_product),
        **_ABOUT_CONTACTS,
    ),
}

KERNELS: dict[str, Traceable] = {
    name: traceable for name, traceable in REGISTRY.items() if traceable.public
}
"""Kernels that `Robot.kernel` returns."""
