"""Dynamics in contact with the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.constrained_dynamics import least_squares_motion
from rbda_ros.algorithms.contact_rows import ALL, ContactFrame, Proximal
from rbda_ros.description.model import CutJoint
from rbda_ros.engine import core
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.robot.contacts import (
    SETTINGS,
    STILL,
    ConstrainedMotion,
    Contact,
    ContactEfforts,
    ContactMotion,
    Impact,
    LinkMotion,
    ReadContacts,
    Route,
    Stop,
    Wheel,
    check_numbers,
    check_vector,
    check_wheel,
    contact_motion,
    held_rows,
    wheel_motion,
)
from rbda_ros.robot.inputs import NOWHERE, numbers
from rbda_ros.robot.operations import Position, dispatched
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array, align_z

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

CUT_COORDINATES = {
    "revolute": ("angle",),
    "prismatic": ("travel",),
    "cylindrical": ("travel", "angle"),
    "spherical": ("turn",),
}
"""Coordinates of the cut joints that an actuator may drive."""
MAX_PLACES = 256
"""Places of contacts that are cached; clients may name any point."""


@dispatched("c", 3)
def constrained_forward_dynamics(
    robot: Robot,
    q: Position,
    qd: ArrayLike,
    tau: ArrayLike,
    contacts: Sequence[Contact | Wheel],
    *,
    external_wrenches: Mapping[str, ArrayLike] | None = None,
    tolerance: float = 1e-10,
    max_iterations: int = 20,
    route: Route = "auto",
    mu: float | None = None,
    warm_start: ArrayLike | None = None,
) -> ConstrainedMotion:
    """The acceleration that forces and contacts give: constrainedABA (Sathya 2024).

    Minimises Gauss' ``|ydd - ydd_free|^2_H / 2`` subject to ``J ydd + J-dot yd = a*``.
    Contacts may be redundant or near a singularity. Those that contradict each other are
    satisfied in the least squares, by their weights, with the least forces.

    Args:
        q: (nq,) spanning position, or independent position; one state, not a batch.
        qd: (nv,) spanning velocity, or (ny,) independent velocity.
        tau: (ny,) force on y, or (nv,) forces on every joint of the spanning tree.
        contacts: where the world, or another link, holds the robot.
        external_wrenches: as for `inverse_dynamics`.
        tolerance: largest error of the contact accelerations [m/s^2, rad/s^2].
        max_iterations: largest number of proximal iterations, done in groups of four.
        route: ``auto`` is constrainedABA, and a singular value decomposition of the Jacobian
            where that does not converge: near singularities, for contacts that contradict each
            other, and between two links. ``constrained_aba``, ``prox_pv``, ``prox_ltl`` and
            ``prox_ltls`` are the iterations alone. With loops that are closed by their forces
            they are always those of ``constrained_aba``.
        mu: proximal weight of contacts [kg]; None for one that suits the robot's mass. Each
            weight takes a program of its own.
        warm_start: (c, 6) forces to start from, in world axes, such as those of the last call
            [N, N m]; None for zero.
    """
    state = robot._single_state(q, qd)
    force = robot._generalized(state, robot._inputs.single("tau", tau, robot.ny, robot.nv))
    if external_wrenches:  # the actuators need not give J' w
        rest = np.zeros(robot.ny)
        holding = robot.inverse_dynamics(state, rest, rest, external_wrenches)
        force = force + robot.gravity_force(state) - holding
    if mu is not None and not 0.0 < mu < np.inf:
        raise InputError(f"mu is {mu!r}; give a positive number [kg]")
    _check_route(route)
    stop = Stop(tolerance, max_iterations)
    read = read_contacts(robot, contacts, state)
    start = _along(robot, state, read, warm_start)
    if read.between_links:
        if route != "auto":
            raise InputError(f"route {route!r} takes no contacts between links; use auto")
        return _least_squares(robot, state, force, read)
    kernel, each = _kernel_of(robot, read, route, impact=False, mu=mu)
    inputs = state.q, state.yd, force
    motion = _iterate(robot, kernel, each, read, inputs, read.desired, stop, start)
    if motion.converged or route != "auto":
        return motion
    return _least_squares(robot, state, force, read, motion.iterations)


def contact_kernel(robot: Robot, contacts: Sequence[Contact], route: Route = "auto") -> Kernel:
    """The kernel of `constrained_forward_dynamics` for these contacts, e.g. for batches.

    ``q, yd, tau, axes (9c), desired (6c), start (m) -> ydd, forces (6c), along (m), health
    (2)``: axes column by column, ``start`` zero or the last ``along``; health is the largest error
    of the contact accelerations, and the change of ydd in the last iteration.
    """
    read = read_contacts(robot, contacts)
    return _kernel_of(robot, read, route, impact=False, constant=True)[0]


def contact_call(
    robot: Robot, contacts: Sequence[Contact], route: Route = "auto"
) -> tuple[Kernel, int, tuple[Array, ...]]:
    """The kernel of `constrained_forward_dynamics`, iterations of a call, what is constant.

    For contacts without gains: axes, wanted accelerations, zero forces to start from, and
    points where some are elsewhere than at the origin of their link.
    """
    read = read_contacts(robot, contacts)
    kernel, each = _kernel_of(robot, read, route, impact=False)
    constants = read.flat_axes, read.desired.ravel(), np.zeros(read.rows), *read.points
    return kernel, each, constants


def contact_forces(
    robot: Robot, q: Position, qd: ArrayLike, tau: ArrayLike, contacts: Sequence[Contact]
) -> Array:
    """Force then moment (c, 6) of each contact, as `constrained_forward_dynamics` has them."""
    return robot.constrained_forward_dynamics(q, qd, tau, contacts).forces


def impact(
    robot: Robot,
    q: Position,
    qd: ArrayLike,
    contacts: Sequence[Contact | Wheel],
    restitution: float = 0.0,
) -> Impact:
    """Velocity after contacts have hit: ``H (yd+ - yd) = J' p``, ``J yd+ = -e J yd``.

    Args:
        q: (nq,) spanning position, or independent position; one state, not a batch.
        qd: (nv,) spanning velocity, or (ny,) independent velocity, before.
        contacts: places that hit the world; their accelerations and gains are ignored.
        restitution: e, from 0 (plastic) to 1.
    """
    state = robot._single_state(q, qd)
    if not 0.0 <= restitution <= 1.0:
        raise InputError(f"restitution is {restitution!r}; give a number from 0 to 1")
    read = read_contacts(robot, contacts, state)
    motions = contact_motions(robot, state, read)
    change = [-(1.0 + restitution) * motion.velocity for motion in motions]
    nothing = np.zeros(robot.ny)
    if not read.between_links:
        kernel, each = _kernel_of(robot, read, "auto", impact=True)
        inputs, begin = (state.q, nothing, nothing), np.zeros(read.rows)
        solved = _iterate(robot, kernel, each, read, inputs, np.array(change), Stop(), begin)
        if solved.converged:
            return Impact(state.yd + solved.ydd, solved.forces)
    J = read.along_axes([motion.J for motion in motions])
    L = robot.mass_matrix_factor(state)
    solved_by_rank = least_squares_motion(L, nothing, J, read.along_axes(change), read.weights)
    return Impact(state.yd + solved_by_rank.ydd, read.in_world(solved_by_rank.f))


def contact_inverse_dynamics(
    robot: Robot,
    q: Position,
    qd: ArrayLike,
    ydd: ArrayLike,
    contacts: Sequence[Contact | Wheel],
    external_wrenches: Mapping[str, ArrayLike] | None = None,
) -> ContactEfforts:
    """Forces of actuators and contacts that give ydd: ``tau + J' f = H ydd + C``.

    Coordinates without an actuator, such as a floating base, must be moved by contact forces alone.
    Of the contact forces that do so, those of least norm are returned. Friction cones are ignored.

    Args:
        q: (nq,) spanning position, or independent position; one state, not a batch.
        qd: (nv,) spanning velocity, or (ny,) independent velocity.
        ydd: (ny,) independent acceleration.
        contacts: places where the world may push; their accelerations and gains are ignored.
        external_wrenches: as for `inverse_dynamics`.
    """
    state = robot._single_state(q, qd)
    ydd = robot._inputs.single("ydd", ydd, robot.ny)
    needed = robot.inverse_dynamics(state, state.yd, ydd, external_wrenches)
    read = read_contacts(robot, contacts, state)
    J = read.along_axes([motion.J for motion in contact_motions(robot, state, read)])
    across = undriven(robot, state)
    f = np.linalg.lstsq(across @ J.T, across @ needed, rcond=1e-10)[0].astype(float)
    tau = needed - J.T @ f
    residual = across @ tau
    largest = float(np.abs(residual).max(initial=0.0))
    return ContactEfforts(tau - residual, read.in_world(f), largest)


def undriven(robot: Robot, state: State) -> Array:
    """The projector (ny, ny) on the forces on y that no actuator gives."""
    W = robot.spanning_velocity(state, np.eye(robot.ny)).T[list(robot.actuated_coordinates)]
    return np.eye(robot.ny) - np.linalg.pinv(W, rcond=1e-10) @ W


def damped_delassus_inverse(
    robot: Robot, q: Position, contacts: Sequence[Contact], mu: float
) -> Array:
    """``(J H^-1 J' + I/mu)^-1`` (m, m) of contacts' rows, by cABA-OSIM (Sathya 2024, Alg. 5).

    Args:
        q: (nq,) spanning position, or independent position; one state, not a batch.
        contacts: rows are along and about their own axes, contact by contact, linear first.
        mu: inverse of the damping [kg].
    """
    state, read = robot._single_state(q), read_contacts(robot, contacts)
    kernel = robot._kernels.get("damped_delassus_inverse", read.frames, _weight(mu))
    return kernel.call(state.q, read.flat_axes)[0].reshape(read.rows, read.rows)


def damped_delassus_inverse_product(
    robot: Robot,
    q: Position,
    contacts: Sequence[Contact],
    mu: float,
    x: ArrayLike,
    *,
    route: Literal["caba_osim", "pv_osim"] = "caba_osim",
) -> Array:
    """``(J H^-1 J' + I/mu)^-1 x`` (m,) without the matrix (Sathya 2024, Sec. VI-B).

    Args:
        q: (nq,) spanning position, or independent position; one state, not a batch.
        contacts: rows are along and about their own axes, contact by contact, linear first.
        mu: inverse of the damping [kg].
        x: (m,) accelerations along the rows [m/s^2, rad/s^2]; the result is forces [N, N m].
        route: ``"caba_osim"``, cABA-OSIMf, in O(n + m); or ``"pv_osim"``, PV-OSIMf, which factors
            the rows of each limb, and keeps its digits where mu is large.
    """
    if route not in ("caba_osim", "pv_osim"):
        raise InputError(f"route {route!r} is unknown; use caba_osim or pv_osim")
    state, read = robot._single_state(q), read_contacts(robot, contacts)
    x = robot._inputs.single("x", x, read.rows)
    name = "damped_delassus_inverse_product"
    kernel = robot._kernels.get(name, read.frames, _weight(mu), route)
    return kernel.call(state.q, read.flat_axes, x)[0]


def delassus_product(
    robot: Robot, q: Position, contacts: Sequence[Contact], forces: ArrayLike
) -> Array:
    """``J H^-1 J' forces`` (m,) without the matrix, in O(n + m), by force propagation.

    Accelerations along the contacts' rows that forces along them add [m/s^2, rad/s^2]
    (Sathya 2024, Sec. VI).

    Args:
        q: (nq,) spanning position, or independent position; one state, not a batch.
        contacts: rows are along and about their own axes, contact by contact, linear first.
        forces: (m,) along the rows [N, N m].
    """
    state, read = robot._single_state(q), read_contacts(robot, contacts)
    forces = robot._inputs.single("forces", forces, read.rows)
    kernel = robot._kernels.get("delassus_product", read.frames)
    return kernel.call(state.q, read.flat_axes, forces)[0]


def cut_joint_jacobian(robot: Robot, q: Position, name: str) -> Array:
    """Rates (k, ny) of a cut joint's own coordinates per rate of y.

    They are the successor's motion relative to the predecessor: the angle of a revolute cut,
    the travel of a prismatic one, both of a cylindrical one (travel first), the angular
    velocity in the predecessor's cut frame of a spherical one [rad, m]. An actuator there with
    efforts u gives the generalized force ``J' u``.

    Args:
        q: (nq,) spanning position, or independent position; one state, not a batch.
        name: of the constraint.
    """
    state = robot._single_state(q)
    cuts = [c for c in robot.description.constraints if isinstance(c, CutJoint)]
    cut = next((each for each in cuts if each.name == name), None)
    if cut is None or cut.type not in CUT_COORDINATES:
        known = ", ".join(each.name for each in cuts if each.type in CUT_COORDINATES)
        raise InputError(f"{name!r} is no cut joint that an actuator can drive; use {known}")
    ends = [
        (side.link, side.origin.xyz, side.origin.rpy) for side in (cut.predecessor, cut.successor)
    ]
    R = robot.frame_pose(state, ends[0])[:3, :3]
    before, after = (robot.jacobian(state, end[:2]) for end in ends)
    relative = np.kron(np.eye(2), R.T) @ (after - before)
    axis = np.asarray(cut.axis, dtype=float) / np.linalg.norm(cut.axis)
    rows = {"travel": axis @ relative[:3], "angle": axis @ relative[3:], "turn": relative[3:]}
    return np.vstack([rows[each] for each in CUT_COORDINATES[cut.type]])


def cut_joint_force(robot: Robot, q: Position, efforts: Mapping[str, ArrayLike]) -> Array:
    """The force (ny,) on y that actuators at cut joints amount to: to be added to ``tau``.

    Args:
        q: (nq,) spanning position, or independent position; one state, not a batch.
        efforts: of constraints by name, one for each coordinate of the cut (see
            `cut_joint_jacobian`), on the successor against the predecessor [N m, N].
    """
    state, force = robot._single_state(q), np.zeros(robot.ny)
    for name, effort in efforts.items():
        J = robot.cut_joint_jacobian(state, name)
        force += J.T @ robot._inputs.single(f"efforts of {name}", np.ravel(effort), len(J))
    return force


def _iterate(
    robot: Robot,
    kernel: Kernel,
    each: int,
    read: ReadContacts,
    inputs: tuple[Array, Array, Array],
    desired: Array,
    stop: Stop,
    along: Array,
) -> ConstrainedMotion:
    """Call a kernel, each time from the forces of the last, until contacts are satisfied.

    Unlike line 6 of Algorithm 3, which stops at the smaller of both, contacts must be satisfied
    and the acceleration at rest: near a singularity either alone comes long before the motion.
    """
    given = (*inputs, read.flat_axes, desired.ravel(), along.copy(), *read.points)
    ydd, forces, _, health = outputs = tuple(map(np.empty, kernel.output_sizes.values()))
    arrays = *(np.require(array, float, ["C", "A"]) for array in given), *outputs
    limits = stop.tolerance, STILL, each, stop.iterations
    found = core.iterate_contacts(kernel.native, arrays, *limits)
    if isinstance(found, core.Rejection):
        raise SingularityError(singular_message(robot))
    iterations, converged = found
    return ConstrainedMotion(ydd, forces.reshape(-1, 6), float(health[0]), iterations, converged)


def _least_squares(
    robot: Robot, state: State, force: Array, read: ReadContacts, iterations: int = 0
) -> ConstrainedMotion:
    """The same motion by the ranks of the contacts' rows, which takes no iterations."""
    held = contact_motions(robot, state, read)
    J = read.along_axes([motion.J for motion in held])
    b = read.along_axes([motion.wanted - motion.bias for motion in held])
    free, L = robot.forward_dynamics(state, state.yd, force), robot.mass_matrix_factor(state)
    solved = least_squares_motion(L, free, J, b, read.weights)
    if not (np.isfinite(solved.ydd).all() and np.isfinite(solved.f).all()):
        raise SingularityError(singular_message(robot))
    residual = float(np.abs(solved.missing).max(initial=0.0))
    return ConstrainedMotion(
        solved.ydd, read.in_world(solved.f), residual, iterations, solved.resolved
    )


def singular_message(robot: Robot) -> str:
    """The text of the error where contacts meet a mass matrix that is singular."""
    return f"{robot.name}: the mass matrix is singular here; a link may have no inertia"


def _kernel_of(
    robot: Robot,
    read: ReadContacts,
    route: Route,
    *,
    impact: bool,
    mu: float | None = None,
    constant: bool = False,
) -> tuple[Kernel, int]:
    """The kernel for these contacts, or for others on the same bodies; how often it iterates.

    Points as inputs cost 2 to 10 % more instructions, and save a trace for each new point:
    clients may name any. The origins of links are few, and stay constants; with ``constant``
    all do.
    """
    by_forces = robot._kernels.open_loops is not None
    _check_route(route)
    algorithm = "constrained_aba" if by_forces or route == "auto" else route
    weight, iterations = SETTINGS[algorithm]
    proximal = Proximal(weight * (robot.mass or 1.0) if mu is None else float(mu), iterations)
    name, frames = "constrained_forward_dynamics", read.frames
    if read.offset and not constant:
        name, frames = f"{name}_at", tuple(replace(frame, point=NOWHERE) for frame in frames)
    return robot._kernels.get(name, frames, proximal, algorithm, impact), iterations


def _check_route(route: str) -> None:
    if route not in ("auto", *SETTINGS):
        raise InputError(f"route {route!r} is unknown; use auto, {', '.join(SETTINGS)}")


def read_contacts(
    robot: Robot, contacts: Sequence[Contact | Wheel], state: State | None = None
) -> ReadContacts:
    """Check contacts, and find the bodies they are on.

    Args:
        contacts: as they were given.
        state: where the robot is; None where all must be the same at every state.
    """
    if not isinstance(contacts, Sequence) or not contacts:
        raise InputError("contacts: give at least one")
    frames, axes, motions = [], [], []
    for number, contact in enumerate(contacts):
        frame, own_axes, motion = _placed(robot, number, contact, state)
        frames.append(frame)
        axes.append(own_axes)
        motions.append(motion)
    return ReadContacts(tuple(frames), np.array(axes), tuple(contacts), tuple(motions))


def _placed(
    robot: Robot, number: int, contact: Contact | Wheel, state: State | None
) -> tuple[ContactFrame, Array, ContactMotion | None]:
    """A contact on its body, its axes, and its motion if it says more than an acceleration."""
    if not isinstance(contact, Contact | Wheel):
        raise InputError(f"contacts[{number}] is {contact!r}; give a Contact or a Wheel")
    where = f"contacts[{number}] on {contact.link!r}"
    if isinstance(contact, Wheel):
        check_wheel(where, contact)
        if state is None:
            raise InputError(f"{where}: a kernel takes no wheels; use constrained_forward_dynamics")
        motion = _motion(robot, state, contact)
        return contact_frame(robot, where, contact.at(motion)), motion.axes, motion
    check_numbers(where, contact)
    rows = None if contact.rows is None else tuple(contact.rows)
    key = contact.link, tuple(contact.xyz), contact.kind, tuple(contact.normal), rows

    def place() -> tuple[ContactFrame, Array]:
        normal = np.asarray(contact.normal, dtype=float)
        return contact_frame(robot, where, contact), align_z(normal)

    frame, axes = robot._contact_places.get_or_make(key, place)
    if state is None:
        if contact.to is not None:
            raise InputError(f"{where}: it is held by a link; give contacts with the world here")
        return frame, axes, None
    if contact.to is None and not contact.stiffness and not contact.damping:
        return frame, axes, None
    motion = _motion(robot, state, contact)
    return frame, motion.axes, motion


def contact_frame(robot: Robot, where: str, contact: Contact) -> ContactFrame:
    """A contact on its body; checked. Messages of errors begin with where it is."""
    _, at = robot.body_frame((contact.link, contact.xyz))
    if not at.body:
        raise InputError(f"{where}: the link does not move; name one that does")
    check_vector(where, "normal", contact.normal)
    rows = held_rows(where, contact)
    linear = tuple(i for i, name in enumerate("xyz") if name in rows)
    angular = tuple(i for i, name in enumerate("xyz") if f"r{name}" in rows)
    x, y, z = at.frame.p.tolist()
    return ContactFrame(at.body, (x, y, z), linear, angular)


def _motion(robot: Robot, state: State, contact: Contact | Wheel) -> ContactMotion:
    """How what a contact holds moves."""
    link = _link_motion(robot, state, contact.link)
    if isinstance(contact, Wheel):
        return wheel_motion(contact, link)
    other = None if contact.to is None else _link_motion(robot, state, contact.to)
    return contact_motion(contact, link, other)


def _link_motion(robot: Robot, state: State, link: str) -> LinkMotion:
    pose, J = robot.frame_pose(state, link), robot.jacobian(state, link)
    bias = robot.frame_bias_acceleration(state, state.yd, link)
    return LinkMotion(pose[:3, :3], pose[:3, 3], J, bias, J @ state.yd)


def _along(robot: Robot, state: State, read: ReadContacts, forces: ArrayLike | None) -> Array:
    """Forces (c, 6) in world axes as kernels start from them (m,): along their rows."""
    if forces is None:
        return np.zeros(read.rows)
    given = numbers("warm_start", forces)
    if given.shape != (len(read.frames), 6) or not np.isfinite(given).all():
        raise InputError(
            f"warm_start: shape {given.shape}; give ({len(read.frames)}, 6) finite numbers"
        )
    along = []
    for contact, frame, axes, force in zip(
        read.contacts, read.frames, read.axes, given, strict=True
    ):
        # Rows that hold every direction are along the axes of the body (see `contact_rows`).
        place = robot.spanning_tree.links[contact.link].frame
        body = robot.frame_pose(state, contact.link)[:3, :3] @ place.R.T
        for held, part in ((frame.linear, force[:3]), (frame.angular, force[3:])):
            own = body if held == ALL else axes
            along.append((own.T @ part)[list(held)])
    return np.concatenate(along)


def contact_motions(robot: Robot, state: State, read: ReadContacts) -> list[ContactMotion]:
    """The motion of every contact."""
    pairs = zip(read.contacts, read.motions, strict=True)
    return [_motion(robot, state, c) if motion is None else motion for c, motion in pairs]


def _weight(mu: float) -> float:
    if not 0.0 < mu < np.inf:
        raise InputError(f"mu is {mu!r}; give a positive number")
    return mu
