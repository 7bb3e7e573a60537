"""Robot: names and numpy arrays around the kernels."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.cluster_tree.tree import build_cluster_tree
from rbda_ros.description import read_description
from rbda_ros.description.model import RobotDescription
from rbda_ros.errors import DescriptionError, Problem
from rbda_ros.kernels.assembly_store import stored_assemblies
from rbda_ros.robot import (
    actuation,
    completion,
    conversion,
    feedforward_call,
    frames,
    linear_dynamics,
    motor_command,
    random_states,
    task_kinematics,
)
from rbda_ros.robot.contact_derivatives import ContactDerivatives
from rbda_ros.robot.doors import casadi_functions, jax_functions, torch_functions
from rbda_ros.robot.independent_choice import with_independent_joints
from rbda_ros.robot.payloads import Payload, with_payloads
from rbda_ros.spatial import Array


def load_robot(
    urdf: str | os.PathLike[str],
    loops: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    floating_base: bool = False,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    xacro_arguments: Mapping[str, str] | None = None,
) -> Robot:
    """Build a robot from its file and its loop-constraint file.

    Args:
        urdf: a path or XML text: URDF, URDF+, MJCF or SDF, as the root element says; or the path
            of a xacro or USD file.
        loops: a path, YAML text or a mapping; None for no loops beyond the URDF's.
        floating_base: whether the root link moves freely. The one floating joint that a URDF
            has on its root link is the floating base in any case.
        gravity: (3,) acceleration of gravity in world axes [m/s^2].
        xacro_arguments: values of <xacro:arg> elements by name, for a xacro file.

    Raises:
        ModelError: the files cannot be used; it names every element and what to change.
    """
    try:
        g = np.asarray(gravity, dtype=float)
    except (TypeError, ValueError):
        g = np.zeros(0)
    if g.shape != (3,) or not np.all(np.isfinite(g)):
        remedy = "give three finite numbers, m/s^2 in world axes"
        raise DescriptionError([Problem("gravity", f"{gravity!r} is no vector", remedy)])
    description = read_description(urdf, loops, xacro_arguments=xacro_arguments)
    tree = build_cluster_tree(description, floating_base, (g[0], g[1], g[2]), stored_assemblies)
    return Robot(tree)


class Robot(ContactDerivatives):
    """The dynamics of one robot. Threads may share it.

    Positions and velocities may be spanning vectors (every joint) or independent ones (y); the
    length decides. Of a spanning velocity only the independent entries are read: measured ones
    never fit the loops exactly. With a floating base, ``q`` starts with ``x y z qx qy qz qw``,
    and ``qd``, accelerations and forces with the base twist or wrench, linear then angular, in
    the base frame. Every vector may carry a leading batch axis, and so does the answer then.

    Methods that take a position take a `State` too, which `state` made and checked, and do not
    check it again. Every method raises `InputError` for arguments of wrong shape, with values that
    are not finite, or off the loops, and `SingularityError` at a dead point of a loop.
    """

    _unloaded: Robot | None

    operational_space_inertia = frames.operational_space_inertia
    inverse_kinematics = task_kinematics.inverse_kinematics
    inverse_kinematics_step = task_kinematics.inverse_kinematics_step
    convert = conversion.convert
    actuation = actuation.actuation
    feedforward = feedforward_call.feedforward
    completion = completion.completion
    motor_command = motor_command.motor_command
    parameters = linear_dynamics.parameters
    base_parameters = linear_dynamics.base_parameters
    random_positions = linear_dynamics.random_positions
    random_state = random_states.random_state
    casadi = casadi_functions.casadi
    torch = torch_functions.torch
    jax = jax_functions.jax

    def __repr__(self) -> str:
        base = ", floating base" if self.floating_base else ""
        return (
            f"Robot({self.name!r}: {len(self.joint_names)} joints, {self.ny} degrees of freedom,"
            f" {len(self.clusters)} clusters{base})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the description, not what was made from it: kernels are on disk."""
        unloaded = self._unloaded or self
        tree = unloaded.tree
        return _unpickled, (
            tree.description,
            tree.spanning.floating_base,
            tree.gravity,
            tree.home,
            tuple(self.independent_joint_names),
            dict(self.payloads),
        )

    def neutral(self) -> Array:
        """The position (nq,) that the robot was assembled at; it satisfies every loop."""
        return self.tree.home.copy()

    def within_limits(self, q: ArrayLike) -> Any:
        """Whether a spanning position (nq,) is inside all limits; (N,) of a batch."""
        position = self._inputs.vector("q", q, self.nq)
        inside = (position >= self.limits.lower) & (position <= self.limits.upper)
        return inside.all(axis=-1) if position.ndim == 2 else bool(inside.all())

    def with_payloads(self, payloads: Mapping[str, Payload]) -> Robot:
        """The same robot carrying these payloads, by name, in place of those it carries now.

        Only inertias change: clusters, loops and the kernels that do not see inertia are shared.
        Without payloads it is the very robot that was loaded.

        Raises:
            InputError: a payload that no body can be, or on no link of this robot.
        """
        unloaded = self._unloaded or self
        if not payloads:
            return unloaded
        return Robot(with_payloads(unloaded.tree, payloads), unloaded, payloads)

    def with_independent_joints(
        self, joints: Collection[str] | None = None, *, at: ArrayLike | None = None
    ) -> Robot:
        """The same robot with other independent joints: a motion goes on where y has a dead point.

        Positions (nq,) and velocities (nv,) of all joints mean the same to both robots, and the
        actuators stay; y, and with it ``tau``, is that of the joints chosen.

        Args:
            joints: names; loops of which none is named keep theirs. None for those that determine
                the others best at the position given.
            at: (nq,) a position on the loops, from where the new robot closes them; None for the
                assembly.

        Raises:
            InputError: unknown names, joints that do not determine the others of their loop, or a
                position off the loops.
        """
        unloaded = self._unloaded or self
        q = self.tree.home
        if at is not None:  # which may be at a dead point of the present y
            q = self._inputs.normalized(self._inputs.single("q", at, self.nq))
            residual = np.abs(self._evaluate("loop_state", q)[0]).max(initial=0.0)
            if not residual <= self.tree.on_loops:
                self._reject_position(q)
        return Robot(with_independent_joints(unloaded.tree, q, joints)).with_payloads(self.payloads)

    def interpreted(self, why: Exception) -> Robot:
        """The same robot without machine code, which this one uses no more either."""
        unloaded = self._unloaded or self
        twin = Robot(unloaded.tree)
        twin._kernels.take_over(unloaded._kernels, why)
        if unloaded is self:
            return twin
        loaded = twin.with_payloads(self.payloads)
        loaded._kernels.take_over(self._kernels, why)
        return loaded


def _unpickled(
    description: RobotDescription,
    floating_base: bool,
    gravity: tuple[float, float, float],
    home: Array,
    independent: tuple[str, ...],
    payloads: Mapping[str, Payload],
) -> Robot:
    robot = Robot(build_cluster_tree(description, floating_base, gravity, stored_assemblies))
    if independent != robot.independent_joint_names or not np.array_equal(home, robot.tree.home):
        robot = robot.with_independent_joints(independent, at=home)
    return robot.with_payloads(payloads)
