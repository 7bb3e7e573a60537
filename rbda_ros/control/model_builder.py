"""Builds models in the background, because tracing a large robot takes time."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from rbda_ros import load_robot
from rbda_ros.cluster_tree.cancelling import CancelToken
from rbda_ros.control.settings import Settings
from rbda_ros.control.worker import Worker
from rbda_ros.description import read_description
from rbda_ros.description.source import is_yaml_text, loops_without_prefix
from rbda_ros.errors import DescriptionError, InputError, ModelError, Problem
from rbda_ros.robot import Robot
from rbda_ros.robot.payloads import Payload

_log = logging.getLogger(__name__)
_INCLUDES = re.compile(r"<mujoco\b.*(<include\b|<model\b[^>]*\bfile\s*=)", re.DOTALL)
"""An MJCF that has MuJoCo read other files; what is wrong with these it would quote."""
T = TypeVar("T")
Then = Callable[["Robot"], None]

# Traced while the model is built, so that no message has to wait for it.
WARM = (
    "loop_state",
    "inverse_dynamics",
    "inverse_dynamics_with_wrenches",
    "actuator_efforts",
    "forward_dynamics",
    "forward_dynamics_with_wrenches",
    "generalized_force",
    "spanning_motion",
    "mass_matrix",
    "bias_force",
    "gravity_force",
)

# Prepared before the model comes into use: controllers call them in every cycle.
PREPARED = ("inverse_dynamics_efforts", "forward_dynamics")


@dataclass(frozen=True)
class ModelSource:
    """Everything a model is made from; equal sources give equal models."""

    robot_description: str
    loop_constraints: str
    floating_base: bool
    gravity: tuple[float, float, float]
    joint_prefix: str = ""

    @classmethod
    def of(cls, description: str, settings: Settings) -> ModelSource:
        """Put a description together with the settings that go with it."""
        return cls(
            description,
            settings.loop_constraints,
            settings.floating_base,
            settings.gravity,
            settings.joint_prefix if settings.loop_constraints.strip() else "",
        )


class ModelBuilder:
    """Builds the newest model, and other things, one after the other in a thread of its own."""

    def __init__(self) -> None:
        self._worker = Worker("model")
        self._newest = CancelToken()  # of the model that is being built

    def build(self, source: ModelSource, then: Then) -> Future[Robot]:
        """Begin to build, and do something with the robot; the future holds it or a ModelError.

        Whatever model is being built, or waits for it, is not wanted any more: its future holds a
        CancelledWorkError.
        """
        return self._model(lambda: _after(_build(source), then))

    def load(self, robot: Robot, payloads: Mapping[str, Payload], then: Then) -> Future[Robot]:
        """Begin to load a robot that was built; likewise, the future holds the loaded one."""
        return self._model(lambda: _after(warm(robot.with_payloads(payloads)), then))

    def background(self, make: Callable[[], T]) -> Future[T]:
        """Begin to make something else, e.g. another kernel."""
        return self._worker.submit(make)

    def cancel(self) -> None:
        """Cancel running and waiting work."""
        self._worker.cancel()

    def wait(self, deadline: float) -> bool:
        """Whether the thread has come to rest by a monotonic time."""
        return self._worker.wait(deadline)

    def _model(self, make: Callable[[], Robot]) -> Future[Robot]:
        self._newest.cancel()
        self._newest = CancelToken()
        return self._worker.submit(make, self._newest)


def _after(robot: Robot, then: Then) -> Robot:
    then(robot)
    return robot


def _build(source: ModelSource) -> Robot:
    # load_robot takes a path too, but a parameter or topic that holds one is a mistake here.
    if not source.robot_description.lstrip("\ufeff \t\r\n").startswith("<"):
        beginning = " ".join(source.robot_description.split())[:40]
        raise ModelError(
            str(
                Problem(
                    "robot_description",
                    f"'{beginning}' is not XML" if beginning else "is empty",
                    "give the text of a URDF, not its path",
                )
            )
        )
    if _INCLUDES.search(source.robot_description):
        remedy = "put everything into one text, e.g. by mujoco's mj_saveLastXML"
        raise ModelError(str(Problem("robot_description", "includes other files", remedy)))
    try:
        robot = load_robot(
            source.robot_description,
            loops=loops_without_prefix(
                source.loop_constraints, source.robot_description, source.joint_prefix
            )
            or None,
            floating_base=source.floating_base,
            gravity=source.gravity,
        )
    except DescriptionError as error:
        raise _without_contents(error, source) from None
    return warm(robot)


def _without_contents(error: DescriptionError, source: ModelSource) -> DescriptionError:
    """The same error without problems that quote a loop file; these are logged here alone.

    Whoever may set parameters may name a file that only this computer's user may read, and error
    messages go to everybody. What assembling says of the constraints of a valid file stays.
    """
    if not source.loop_constraints.strip() or is_yaml_text(source.loop_constraints):
        return error
    if not _problems(source.robot_description, source.loop_constraints):
        return error
    alone = _problems(source.robot_description, None)
    file = f"loop file {source.loop_constraints!r}"  # that it cannot be read, and why
    told = [each for each in error.problems if each in alone or each.element == file]
    untold = len(error.problems) - len(told)
    if not untold:
        return error
    _log.error("%s", error)
    return DescriptionError(
        [
            *told,
            Problem(
                file,
                f"has {untold} problems, or does not fit the description; they quote the file, and "
                "are written to the terminal of the node alone",
                "look there, or run `rbda_ros check` with the file",
            ),
        ]
    )


def _problems(description: str, loops: str | None) -> tuple[Problem, ...]:
    """Problems found on reading these."""
    try:
        read_description(description, loops)
    except DescriptionError as error:
        return error.problems
    return ()


def warm(robot: Robot) -> Robot:
    """Trace the kernels that messages need, so that no message has to wait."""
    for kernel in WARM:
        robot.kernel(kernel)
    with suppress(InputError):  # where y has no position of its own
        robot.close(robot.independent_position(robot.neutral()), guess=robot.neutral())
    # Requests may be about the motors, as their encoders tell, where these are not y.
    motors = robot.actuated_joint_names
    if not set(robot.independent_joint_names) <= set(motors):
        with suppress(InputError):  # they do not determine the other joints
            robot.trace_motion_of(motors)
    with suppress(InputError, ModelError):  # called once, it is compiled too
        robot.feedforward(robot.independent_joint_names)()
    robot.prepare(*PREPARED)
    return robot
