"""Feedforward efforts of one robot, over and over: bound to arrays, checked, warm-started."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from rbda_ros.algorithms.feedforward import TERMS, Choice, Health
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.engine import core
from rbda_ros.errors import (
    ClosureError,
    FarError,
    InputError,
    NotFiniteError,
    SingularityError,
)
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.robot.closer import ClosingCall
from rbda_ros.robot.joint_choices import Measured
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot


def singular_state(conditioning: float) -> str:
    """Why there are no efforts: the conditioning is too small, or NaN: efforts are not finite."""
    if not isfinite(conditioning):
        return "the efforts are not finite at this position"
    return (
        f"a loop is at a dead point, or too near to one: condition number"
        f" {1.0 / max(conditioning, 1e-300):.3g}; move away from it, or measure other joints"
    )


class FeedforwardCall(ClosingCall):
    """Efforts for measurements of certain joints. Fill the inputs, call, read ``efforts``.

    Each call closes the loops from where the last one ended. If that is too far, it moves in
    smaller parts from there or from the assembly; if this fails too, it searches.

    Attributes:
        acceleration_joints: those that ``acceleration`` is for; y unless chosen otherwise.
        acceleration: (joints,) of these [rad/s^2, m/s^2].
        base_position, base_twist, base_acceleration: (7,), (6,), (6,) of a floating base, as q
            and qd start; empty without one.
        wrenches: (6 * bodies,) external wrenches as `Robot.body_wrenches` gives them; empty
            where none act.
        limit: (actuated,) the largest efforts, infinite at first [N m, N].
        efforts: (actuated,) the result.
        close_on_any_branch: gives the closed position (nq,) at known joints, on the branch of a
            guess (nq,) or, where that one does not reach so far, on another; `InputError` or
            `ClosureError` if there is none.
        searches: whether a call may search, which takes up to half a second where the loops do not
            close.
    """

    def __init__(
        self,
        kernel: Kernel,
        tree: ClusterTree,
        measured: Measured,
        acceleration_joints: tuple[str, ...],
        close: Callable[[Mapping[str, float], Array], Array],
    ) -> None:
        super().__init__(kernel, tree, measured)
        self.acceleration_joints = acceleration_joints
        self.searches = True
        self.close_on_any_branch = close
        base = tree.coordinates.base_nv
        self.efforts: Array = self.bound.outputs[0]
        self.base_position: Array = self.guess[: self._base_nq]
        self.base_twist: Array = self._named["velocity"][:base]
        self.base_acceleration, self.acceleration = np.split(self._named["acceleration"], [base])
        self.wrenches: Array = self._named.get("wrenches", np.zeros(0))
        self.limit = self._named["limit"]
        self.limit[:] = inf

    @property
    def health(self) -> Health:
        """How the last call went."""
        return Health(*self._health.tolist())

    def __call__(self) -> list[float]:
        """Compute the efforts for the inputs; how it went, in the order of `Health`.

        Raises:
            NotFiniteError: a number is not finite.
            ClosureError: the loops do not close at the measured positions; with ``searches``
                false it is a `FarError` if they might, when searched for.
            SingularityError: a loop is at a dead point, or too near to one.
        """
        found = self._close_from_guess(self._home) if self.closes_itself else core.TOO_FAR
        if found == core.TOO_FAR:
            self._search()
            found = self._judge()
        if found != core.CLOSED:
            self._reject(found)
        self.guess[:] = self.q
        return self._health.tolist()

    def _reject(self, found: int) -> NoReturn:
        if found == core.INPUT_NOT_FINITE:
            raise NotFiniteError("the measured motion, or the acceleration, is not finite")
        if found == core.TOO_FAR:
            raise ClosureError(f"the loops do not close: {self.health.residual:.3g} is left")
        raise SingularityError(
            singular_state(self.health.conditioning if found == core.AT_DEAD_POINT else nan)
        )

    def find(self) -> Callable[[], Array]:
        """A function that searches the closed position at the present inputs, in any thread.

        The position is on the branch of the last one, or on another if that does not reach so far.
        The search takes up to half a second if there is none; pass its result to `start_from`.
        """
        known = dict(zip(self.joints, self.position.tolist(), strict=True))
        return partial(self.close_on_any_branch, known, self.guess.copy())

    def _search(self) -> None:
        if self.closes_itself and not self.searches:
            raise FarError("the loops do not close near the last position, or the assembly")
        self.guess[:] = self.find()()
        self.bound()


def feedforward(
    robot: Robot,
    joints: Collection[str],
    acceleration_joints: Collection[str] | None = None,
    *,
    terms: Collection[str] = ("gravity", "coriolis", "inertial"),
    wrenches: bool = False,
) -> FeedforwardCall:
    """Efforts for one joint state after the other, by one kernel.

    One program closes the loops, computes velocities and accelerations of y, RNEA and actuator
    efforts: the same numbers as from the methods, without the checks and copies between them.

    Args:
        joints: measured joints; as many of them are used as are needed to determine the others.
        acceleration_joints: that accelerations will be given for; None for y.
        terms: parts of the efforts: some of gravity, coriolis, inertial and friction.
        wrenches: whether external wrenches will be given.

    Raises:
        InputError: unknown names or terms, or joints that do not determine the others.
    """
    measured, wanted, choice = feedforward_choice(robot, joints, acceleration_joints, terms)
    name = "feedforward_with_wrenches" if wrenches else "feedforward"
    kernel = robot._kernels.get(name, choice)
    return FeedforwardCall(kernel, robot.tree, measured, wanted, robot._closer.close_on_any_branch)


def feedforward_choice(
    robot: Robot,
    joints: Collection[str],
    acceleration_joints: Collection[str] | None,
    terms: Collection[str],
) -> tuple[Measured, tuple[str, ...], Choice]:
    """Joints that are measured, those that accelerations are for, and the kernel's option.

    Raises:
        InputError: unknown names or terms, or joints that do not determine the others.
    """
    unknown = sorted(set(terms) - set(TERMS))
    if unknown:
        raise InputError(f"terms: {', '.join(unknown)}; there are {', '.join(TERMS)}")
    choices = robot._inputs.choices
    measured = choices.measured("position", joints)
    wanted, coordinates = robot.independent_joint_names, robot.independent_coordinates
    if acceleration_joints is not None:
        wanted, coordinates, _ = choices.measured("acceleration", acceleration_joints)
    choice = Choice(measured.positions, measured.coordinates, coordinates, frozenset(terms))
    return measured, wanted, choice
