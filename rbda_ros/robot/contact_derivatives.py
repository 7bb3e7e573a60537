"""Derivatives of motions in contact, by the implicit function theorem.

The equation of motion and what the constraints hold are zero at the solution; differentiated, they
are linear in the changes of motion and forces (Le Lidec et al. 2024, arXiv 2409.07107). Of a step
with friction each contact counts as what it is there: open, sticking or sliding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.kinematics import NamedFrame
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.robot.contact_dynamics import contact_motions, read_contacts
from rbda_ros.robot.contacts import Contact, ContactMotion
from rbda_ros.robot.friction_contacts import (
    BOX,
    CONE,
    POSITIVE,
    RECOVERY,
    FrictionalStep,
    FrictionContact,
)
from rbda_ros.robot.friction_dynamics import contact_place
from rbda_ros.robot.operations import Position
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

SLIPS = 1e-9
"""Velocity above which a contact slides [m/s]."""


@dataclass(frozen=True, eq=False)
class ConstrainedMotionDerivatives:
    """Derivatives of `constrained_forward_dynamics`.

    Attributes:
        ydd_by_y, ydd_by_yd, ydd_by_tau: (ny, ny) of the acceleration.
        forces_by_y, forces_by_yd, forces_by_tau: (c, 6, ny) of the contacts' forces, in world axes;
            of redundant contacts the smallest that do.
    """

    ydd_by_y: Array
    ydd_by_yd: Array
    ydd_by_tau: Array
    forces_by_y: Array
    forces_by_yd: Array
    forces_by_tau: Array


@dataclass(frozen=True, eq=False)
class FrictionalStepDerivatives:
    """Derivatives of `frictional_step`.

    Attributes:
        yd_by_y, yd_by_yd, yd_by_tau: (ny, ny) of the velocity after the step.
        step: the step itself.
    """

    yd_by_y: Array
    yd_by_yd: Array
    yd_by_tau: Array
    step: FrictionalStep


@dataclass(frozen=True, eq=False)
class _Changes:
    """Results of `frame_changes` for a contact's point."""

    a_by_y: Array
    a_by_yd: Array
    v_by_y: Array
    force_by_y: Array


def constrained_forward_dynamics_derivatives(
    robot: Robot, q: Position, qd: ArrayLike, tau: ArrayLike, contacts: Sequence[Contact]
) -> ConstrainedMotionDerivatives:
    """Derivatives of `constrained_forward_dynamics` with respect to y, yd and tau.

    Along the manifold of closed positions, as `forward_dynamics_derivatives` has them. From
    ``H ydd + C - J' f = tau`` and ``J ydd + J-dot yd = a*``, differentiated.

    Args:
        q: (nq,) spanning position, or independent position; one state, not a batch.
        qd: (nv,) spanning velocity, or (ny,) independent velocity.
        tau: (ny,) force on y, or (nv,) forces on every joint of the spanning tree.
        contacts: with the world; no wheels, and no orientation among targets.

    Raises:
        SingularityError: contacts contradict each other, or are near a singularity.
    """
    state = robot._single_state(q, qd)
    motion = robot.constrained_forward_dynamics(state, state.yd, tau, contacts)
    if not motion.converged or motion.residual > 1e-6:
        raise SingularityError(
            f"{robot.name}: contacts contradict each other here, or are near a singularity;"
            " leave some out"
        )
    read = read_contacts(robot, contacts, state)
    motions = contact_motions(robot, state, read)
    forces = _derivable(contacts, motion.forces)
    changes = [_changes(robot, state, c, motion.ydd, f) for c, f in forces]
    by_y, by_yd = _matrices(robot, "inverse_dynamics_derivatives", state, motion.ydd)
    by_y = by_y - sum(each.force_by_y for each in changes)
    pairs = list(zip(contacts, motions, changes, strict=True))
    rows_by_y = [each.a_by_y - _wanted_by_y(c, m, each.v_by_y) for c, m, each in pairs]
    rows_by_yd = [each.a_by_yd + c.damping * m.J for c, m, each in pairs]
    J = read.along_axes([each.J for each in motions])
    right = np.block(
        [
            [-by_y, -by_yd, np.eye(robot.ny)],
            [
                -read.along_axes(rows_by_y),
                -read.along_axes(rows_by_yd),
                np.zeros((len(J), robot.ny)),
            ],
        ]
    )
    H = robot.mass_matrix(state)
    solved = _solved(np.block([[H, -J.T], [J, np.zeros((len(J), len(J)))]]), right)
    ydd, along = np.split(solved, [robot.ny])
    in_world = np.stack([read.in_world(column) for column in along.T], axis=-1)
    return ConstrainedMotionDerivatives(*np.split(ydd, 3, axis=1), *np.split(in_world, 3, axis=-1))


def frictional_step_derivatives(
    robot: Robot,
    q: Position,
    qd: ArrayLike,
    tau: ArrayLike,
    contacts: Sequence[FrictionContact],
    dt: float,
    *,
    held: Sequence[Contact] = (),
    joint_limits: bool = True,
    joint_friction: bool = True,
) -> FrictionalStepDerivatives:
    """Derivatives of the velocity after `frictional_step`, with respect to y, yd and tau.

    Distances change with the position, as those of points above fixed planes do. If a contact is at
    the transition to sliding or opening, the result is the derivative of one side.

    Args:
        q: (nq,) spanning position, or independent position; one state, not a batch.
        qd: (nv,) spanning velocity, or (ny,) independent velocity.
        tau: (ny,) force on y, or (nv,) forces on every joint of the spanning tree.
        contacts: points that may touch planes of the world.
        dt: the step [s].
        held, joint_limits, joint_friction: as for `frictional_step`.

    Raises:
        SingularityError: the step has not converged.
    """
    state = robot._single_state(q, qd)
    step = robot.frictional_step(
        state,
        state.yd,
        tau,
        contacts,
        dt,
        held=held,
        joint_limits=joint_limits,
        joint_friction=joint_friction,
    )
    if not np.all(step.converged):
        raise SingularityError(f"{robot.name}: the step has not converged; take a shorter one")
    if any(contact.to is not None for contact in contacts):
        raise InputError("contacts: derivatives are for planes of the world; leave out `to`")
    ny, rows = robot.ny, step.rows
    after = state.with_velocity(step.yd)
    force_changes = _matrices(robot, "inverse_dynamics_derivatives", state, step.ydd)
    by_y, by_yd = (dt * each for each in force_changes)
    c_by_y, c_by_yd = np.zeros((2, len(rows.b), ny))
    # Contacts and held points: velocities along their rows, and forces of their impulses.
    impulses = step.forces * dt
    for c, (contact, place) in enumerate(zip(contacts, rows.places, strict=False)):
        axes, _ = contact_place(robot, state, contact)
        wrench = np.concatenate([impulses[c], np.zeros(3)])
        change = _changes(robot, after, contact, step.ydd, wrench)
        by_y = by_y - change.force_by_y
        c_by_y[place] = axes.T @ change.v_by_y[:3]
        before = _changes(robot, state, contact, step.ydd, wrench).v_by_y[:3]
        gain, bounce = _gains(contact, dt, rows.b[place.start + 2], rows.J[place] @ state.yd)
        c_by_y[place.start + 2] += gain * rows.J[place.start + 2]
        c_by_y[place.start + 2] += bounce * (axes.T @ before)[2]
        c_by_yd[place.start + 2] += bounce * rows.J[place.start + 2]
    if held:
        at = len(rows.b) - sum(key[0] == "held" for key in rows.keys)
        read = read_contacts(robot, held, state)
        wrenches = read.in_world(step.impulses[at:])
        changes = [_changes(robot, after, c, step.ydd, f) for c, f in _derivable(held, wrenches)]
        by_y = by_y - sum(each.force_by_y for each in changes)
        c_by_y[at:] = read.along_axes([each.v_by_y for each in changes])
    # Joints: limits, dry friction and damping.
    damping = robot._joint_resistance[0] * joint_friction
    resisting = damping * robot.spanning_velocity(state, state.yd)
    G = robot.spanning_velocity(state, np.eye(ny)).T
    exerted = dt * (step.joint_forces - resisting)
    qd_by_y, force_by_y = _matrices(robot, "spanning_changes", state, exerted)
    by_y = by_y - force_by_y + dt * (G.T @ (damping[:, None] * qd_by_y))
    by_yd = by_yd + dt * (G.T @ (damping[:, None] * G))
    after_by_y, _ = _matrices(robot, "spanning_changes", after, resisting)
    for (what, j, side), place in zip(rows.keys, rows.places, strict=True):
        if what == "limit":
            gain = _recovery(rows.b[place.start]) / dt
            c_by_y[place.start] = side * after_by_y[j] + gain * rows.J[place.start]
        elif what == "friction":
            c_by_y[place.start] = after_by_y[j]
    H, J = robot.mass_matrix(state), rows.J
    M, N = _modes(step)
    # H dv - J' dp = H dyd - by_yd dyd - by_y dy + dt dtau;  M dp + N dc = 0
    left = np.block([[H, -J.T], [N @ J, M + N * rows.compliance]])
    right = np.block(
        [
            [-by_y, H - by_yd, dt * np.eye(ny)],
            [-N @ c_by_y, -N @ c_by_yd, np.zeros((len(J), ny))],
        ]
    )
    yd_by_y, yd_by_yd, yd_by_tau = np.split(_solved(left, right)[:ny], 3, axis=1)
    return FrictionalStepDerivatives(yd_by_y, yd_by_yd, yd_by_tau, step)


def _derivable(contacts: Sequence[Contact], forces: Array) -> list[tuple[Contact, Array]]:
    for number, contact in enumerate(contacts):
        where = f"contacts[{number}] on {contact.link!r}"
        if not isinstance(contact, Contact) or contact.to is not None:
            raise InputError(f"{where}: no derivatives of wheels, nor between links; leave it out")
        if contact.stiffness and np.asarray(contact.target).shape != (3,):
            raise InputError(f"{where}: no derivatives of orientations; give a target (3,)")
    return list(zip(contacts, forces, strict=True))


def _changes(
    robot: Robot, state: State, contact: Contact | FrictionContact, ydd: Array, wrench: Array
) -> _Changes:
    point = np.asarray(contact.xyz, dtype=float)
    frame = robot._inputs.frame(contact.link)
    return _Changes(*_matrices(robot, "frame_changes", state, ydd, wrench, point, options=(frame,)))


def _matrices(
    robot: Robot, name: str, state: State, *inputs: Array, options: tuple[NamedFrame, ...] = ()
) -> list[Array]:
    """The results (..., ny) of a kernel."""
    found = robot._kernels.get(name, *options).call(state.q, state.yd, *inputs)
    return [each.reshape(-1, robot.ny) for each in found]


def _solved(left: Array, right: Array) -> Array:
    """``left^-1 right``; of all solutions the one of least norm."""
    # Rows and columns of like sizes: masses and lengths stand side by side.
    scale = 1.0 / np.sqrt(np.maximum(np.abs(left).max(axis=0), 1e-12))
    balanced = scale[:, None] * left * scale
    found = np.linalg.lstsq(balanced, scale[:, None] * right, rcond=1e-12)[0]
    return scale[:, None] * found


def _wanted_by_y(contact: Contact, motion: ContactMotion, v_by_y: Array) -> Array:
    """Change (6, ny) of a contact's wanted acceleration."""
    wanted = -contact.damping * v_by_y
    if contact.stiffness:
        wanted[:3] -= contact.stiffness * motion.J[:3]
    return wanted


def _recovery(b: float) -> float:
    """Rate of the bias of a rigid contact or limit by its gap, times dt."""
    return 1.0 if b > 0.0 else RECOVERY


def _gains(contact: FrictionContact, dt: float, b: float, velocity: Array) -> tuple[float, float]:
    """Rates of a contact's normal bias: by its gap, and by its velocity before the step."""
    if np.isfinite(contact.stiffness):
        return contact.stiffness / (dt * contact.stiffness + contact.damping), 0.0
    if contact.restitution and contact.distance <= 0.0 and velocity[2] < 0.0:
        return 0.0, contact.restitution
    return _recovery(b) / dt, 0.0


def _modes(step: FrictionalStep) -> tuple[Array, Array]:
    """M and N (m, m) with ``M dp + N dc = 0``: the condition of each block, linearized."""
    p, c, rows = step.impulses, step.velocities, step.rows
    M, N = np.zeros((2, len(p), len(p)))
    least = 1e-12 * np.abs(p).max(initial=1e-12)
    for b, (kind, at) in enumerate(zip(rows.kinds, rows.places, strict=True)):
        own, size = np.eye(at.stop - at.start), rows.parameters[b]
        slip = np.hypot(*c[at][:2]) if kind == CONE else 0.0
        pressed = p[at.stop - 1] > least
        if kind == BOX:
            pressed = abs(p[at.start]) < size * (1.0 - 1e-9)
        elif kind not in (CONE, POSITIVE):
            pressed = True
        if not pressed:
            M[at, at] = own
        elif slip <= SLIPS or not size:
            N[at, at] = own
            if kind == CONE and not size:  # without friction: nothing along the plane
                M[at, at], N[at, at] = np.diag([1.0, 1.0, 0.0]), np.diag([0.0, 0.0, 1.0])
        else:
            # p_t + mu p_n e = 0 with e = c_t / |c_t|, and c_n = 0.
            e = c[at][:2] / slip
            M[at, at][:2, :2], M[at, at][:2, 2] = np.eye(2), size * e
            N[at, at][:2, :2] = size * p[at.stop - 1] / slip * (np.eye(2) - np.outer(e, e))
            N[at, at][2, 2] = 1.0
    return M, N
