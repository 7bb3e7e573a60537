"""What native code does for each method of a robot: its arguments, kernels and results by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any, NamedTuple

from rbda_ros.robot.results import Derivatives, OperationalSpace


class Step(NamedTuple):
    """A kernel, and the names of what it reads and writes; or ``+`` or ``-`` of two."""

    kernel: str
    inputs: str
    outputs: str


class Plan(NamedTuple):
    """A method: its arguments, kernels and results by name.

    Arguments are ``q``, a position as `Robot.state` takes it, ``yd``, a velocity, ``force`` on y or
    on all joints, ``wrenches`` on links by name, and vectors. What nothing writes is zero.

    Attributes:
        finite: the result that a singular mass matrix would show in.
        make: the dataclass of several results; None for a tuple.
        solves: whether results are turned into ``-H^-1`` times them, and the last is ``H^-1``.
        inverts: whether the first result is the inverse of the second and ``damping``; without
            damping it may be left out.
    """

    arguments: str
    steps: tuple[Step, ...]
    results: str
    finite: str | None = None
    make: type[Any] | None = None
    solves: bool = False
    inverts: bool = False

    def at(self, kernel: str, points: Sequence[Any]) -> Plan:
        """The same by a kernel that may take points as well, which are constant."""
        inputs = "q points" if points else "q"
        return self._replace(steps=(Step(kernel, inputs, self.steps[0].outputs),))


_TAU = Step("inverse_dynamics", "q yd ydd", "tau")
_POSE, _JACOBIAN = Step("frame_pose", "q", "pose"), Step("jacobian", "q", "J")
_BIAS = Step("frame_bias_acceleration", "q yd", "acceleration")

PLANS = {
    "inverse_dynamics": Plan("q yd ydd", (_TAU,), "tau", "tau"),
    "inverse_dynamics_efforts": Plan(
        "q yd ydd", (_TAU, Step("actuator_efforts", "q tau", "efforts")), "efforts tau", "tau"
    ),
    "forward_dynamics": Plan(
        "q yd force", (Step("forward_dynamics", "q yd force", "ydd missed"),), "ydd", "ydd"
    ),
    "mass_matrix": Plan("q", (Step("mass_matrix", "q", "H"),), "H"),
    "bias_force": Plan("q yd", (Step("bias_force", "q yd", "C"),), "C"),
    "gravity_force": Plan("q", (Step("gravity_force", "q", "C"),), "C"),
    "friction_force": Plan("q yd", (Step("friction_force", "q yd", "tau"),), "tau"),
    "actuator_efforts": Plan("q tau", (Step("actuator_efforts", "q tau", "efforts"),), "efforts"),
    "generalized_force": Plan(
        "q spanning", (Step("generalized_force", "q spanning", "tau"),), "tau"
    ),
    "spanning_velocity": Plan("q yd", (Step("spanning_motion", "q yd zero", "qd qdd"),), "qd"),
    "spanning_acceleration": Plan(
        "q yd ydd", (Step("spanning_motion", "q yd ydd", "qd qdd"),), "qdd"
    ),
    "inverse_dynamics_derivatives": Plan(
        "q yd ydd",
        (
            Step("inverse_dynamics_derivatives", "q yd ydd", "by_y by_yd"),
            Step("mass_matrix", "q", "H"),
        ),
        "by_y by_yd H",
        make=Derivatives,
    ),
    "forward_dynamics_derivatives": Plan(
        "q yd force",
        (
            Step("forward_dynamics", "q yd force", "ydd missed"),
            Step("inverse_dynamics_derivatives", "q yd ydd", "by_y by_yd"),
            Step("mass_matrix", "q", "H"),
        ),
        "by_y by_yd inverse",
        "ydd",
        make=Derivatives,
        solves=True,
    ),
    "regressor": Plan("q yd ydd", (Step("regressor", "q yd ydd", "Y"),), "Y"),
    "frame_pose": Plan("q", (_POSE,), "pose"),
    "jacobian": Plan("q", (_JACOBIAN,), "J"),
    "frame_bias_acceleration": Plan("q yd", (_BIAS,), "acceleration"),
}
OPERATIONAL_SPACE = Plan(
    "q damping",
    (Step("operational_space", "q", "J A"),),
    "inertia A J",
    "A",
    make=OperationalSpace,
    inverts=True,
)

WITH_WRENCHES = frozenset({"inverse_dynamics", "inverse_dynamics_efforts", "forward_dynamics"})
"""Methods that take wrenches, and whether there is friction, beside what `PLANS` has."""
OF_FRAMES = frozenset({"frame_pose", "jacobian", "frame_bias_acceleration"})
KINDS = {"q": "q", "yd": "v", "force": "f", "wrenches": "w", "damping": "d"}
"""Arguments that are more than vectors, as native code knows them."""
SIGNS = {"+": 1.0, "-": -1.0}
COLUMNS: dict[str, Callable[[int, int], int]] = {
    "pose": lambda size, ny: 4,
    "Y": lambda size, ny: size // ny,
    "A": lambda size, ny: isqrt(size),
    "inertia": lambda size, ny: isqrt(size),
    **dict.fromkeys(("H", "by_y", "by_yd", "inverse", "J"), lambda size, ny: ny),
}
"""Results that are matrices: how many columns they have, from how many numbers, and ny."""


def plan_of(method: str, wrenches: bool = False, friction: bool = False) -> Plan:
    """The plan of a method, with these on top where it takes them."""
    plan = PLANS[method]
    steps = [*plan.steps]
    at = next((k for k, step in enumerate(steps) if step.kernel in WITH_WRENCHES), 0)
    if wrenches:
        name, inputs, outputs = steps[at]
        steps[at] = Step(f"{name}_with_wrenches", f"{inputs} wrenches", outputs)
        plan = plan._replace(arguments=f"{plan.arguments} wrenches")
    if friction:
        of_joints = Step("friction_force", "q yd", "friction")
        if method == "forward_dynamics":
            steps[at] = steps[at]._replace(inputs=steps[at].inputs.replace("force", "driving"))
            steps[at:at] = [of_joints, Step("-", "force friction", "driving")]
        else:
            steps[at] = steps[at]._replace(outputs="frictionless")
            steps[at + 1 : at + 1] = [of_joints, Step("+", "frictionless friction", "tau")]
    return plan._replace(steps=tuple(steps))
