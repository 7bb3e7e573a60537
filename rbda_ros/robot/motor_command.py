"""Commands in joint space turned into motor space, over and over: bound to arrays, checked."""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from rbda_ros.algorithms.commanded_motors import EFFORTS, CommandChoice, state_sizes
from rbda_ros.algorithms.feedforward import Health
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.engine import core
from rbda_ros.errors import ClosureError, InputError, NotFiniteError, SingularityError
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.robot.closer import CANNOT_GIVE, ClosingCall
from rbda_ros.robot.joint_choices import Measured
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot


def singular_command(conditioning: float) -> str:
    """Why a command is rejected whose conditioning is too small."""
    return (
        "the command is at a dead point of a loop, or too near to one: condition number"
        f" {1.0 / max(conditioning, 1e-300):.3g}; command a pose away from it"
    )


class MotorCommandCall(ClosingCall):
    """Motor commands from commands for certain joints. Fill the inputs, call, read the results.

    Each call closes the loops from where the last one ended, or else from where the robot is. It
    never searches: a command that Newton steps do not reach is rejected.

    Attributes:
        moves: whether positions are commanded; else ``start_from`` where the robot is.
        effort: (nv,) commanded, on every joint [N m, N].
        stiffness, damping: (nv,) of every joint, zero at first.
        state: measured velocity and spanning position, and feedforward, in one vector.
        measured_velocity, measured_q, feedforward: parts of ``state``.
        limit: (actuated,) the largest efforts, infinite at first [N m, N].
        offsets: (actuated,) where the motors' own zeros are, zero at first [rad, m].
        motors: (3 actuated,) the result: position, velocity and effort of the motors.
        motor_position, motor_velocity, motor_effort: parts of ``motors``.
    """

    def __init__(self, kernel: Kernel, tree: ClusterTree, known: Measured) -> None:
        super().__init__(kernel, tree, known)
        self._tree = tree
        self.moves = self.closes_itself
        self.effort: Array = self._named["spanning_tau"]
        self.stiffness, self.damping = np.split(self._named["gains"], 2)
        self.state: Array = self._named["measured"]
        at = np.cumsum(state_sizes(tree))[:2]
        self.measured_velocity, self.measured_q, self.feedforward = np.split(self.state, at)
        self.measured_q[:] = tree.home
        self.limit: Array = self._named["limit"]
        self.limit[:] = inf
        self.offsets: Array = self._named["offsets"]
        self._missed, self.motors = self.bound.outputs[:2]
        self.motor_position, self.motor_velocity, self.motor_effort = np.split(self.motors, 3)

    def __call__(self) -> Health:
        """Compute the motors' commands for the inputs; how it went.

        Raises:
            NotFiniteError: a number is not finite.
            ClosureError: the loops do not close there, or not near the last position.
            SingularityError: a loop is at a dead point, or too near to one.
            InputError: the motors cannot give the efforts.
        """
        start = self.guess.copy()
        if self.moves:
            found = self._close_from_guess(self.measured_q)
        else:
            self.bound()
            found = self._judge()
        if found != core.CLOSED:
            self.guess[:] = start  # a rejected command does not change the next one
            self._reject(found, Health(*self._health.tolist()))
        self.guess[:] = self.q
        return Health(*self._health.tolist())

    def _reject(self, found: int, health: Health) -> NoReturn:
        if found == core.INPUT_NOT_FINITE:
            raise NotFiniteError("the commanded position, velocity or effort is not finite")
        if found == core.TOO_FAR:
            raise ClosureError(
                f"the loops do not close at the commanded {', '.join(self.joints)}, or far from the"
                " last position; command a pose within reach"
            )
        if found == core.AT_DEAD_POINT:
            raise SingularityError(singular_command(health.conditioning))
        if found == core.EFFORT_NOT_FINITE:
            raise NotFiniteError("the commanded effort, or the motor effort for it, is not finite")
        left = np.flatnonzero(np.abs(self._missed) > CANNOT_GIVE * health.force)
        names = [self._tree.velocity_names[j] for j in self._tree.independent]
        raise InputError(
            f"the motors cannot give the commanded force on {', '.join(names[j] for j in left)};"
            " command efforts on joints that they drive"
        )


def motor_command(
    robot: Robot,
    joints: Collection[str] | None,
    *,
    efforts: Collection[str] = (),
    measured: Collection[str] | None = None,
) -> MotorCommandCall:
    """Motor commands that follow from commands for joints, repeatedly, by one kernel.

    Args:
        joints: that will be commanded; of these, as many are used as determine the others. None
            where efforts alone are commanded.
        efforts: parts of the motor efforts: some of commanded, springs, dampers and feedforward.
        measured: joints whose velocity will be given for dampers; None for y.

    Raises:
        InputError: unknown names, or joints that do not determine the others; a motor that has
            several coordinates, or loops that no Newton steps close.
    """
    unknown = sorted(set(efforts) - set(EFFORTS))
    if unknown:
        raise InputError(f"efforts: {', '.join(unknown)}; there are {', '.join(EFFORTS)}")
    several = set(robot.actuated_joint_names) - set(robot.coordinates.scalar_positions)
    if several:
        raise InputError(
            f"motor {min(several)} has several coordinates: no single position; use ~/convert_state"
        )
    choices = robot._inputs.choices
    independent = Measured(robot.independent_joint_names, robot.independent_coordinates, None)
    known = independent if joints is None else choices.measured("position", joints)
    if joints is not None and known.positions is None:
        listed = ", ".join(known.joints)
        raise InputError(f"no Newton steps close the loops from {listed}; use ~/convert_state")
    damped = robot.independent_coordinates if "dampers" in efforts else ()
    if damped and measured is not None:
        damped = choices.measured("velocity", measured).coordinates
    choice = CommandChoice(known.positions, known.coordinates, damped, frozenset(efforts))
    return MotorCommandCall(robot._kernels.get("commanded_motors", choice), robot.tree, known)
