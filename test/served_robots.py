"""Robots whose methods native code answers, and what to compare with: the methods as written."""

from contextlib import contextmanager
from dataclasses import astuple, is_dataclass
from pathlib import Path

import numpy as np
from mechanism_table import MECHANISMS, closed_states

from rbda_ros import InputError, ModelError, load_robot
from rbda_ros.robot.native_calls import METHODS
from rbda_ros.robot.native_plans import OF_FRAMES, PLANS, WITH_WRENCHES

CONFIG = Path(__file__).parents[1] / "config" / "robots"


class Served:
    """A robot whose native calls are there, and states of it."""

    def __init__(self, robot, states):
        self.robot, self.states = robot, states
        self.frame = robot.description.links[-1].name
        rng = np.random.default_rng(3)
        self.motions = [
            (q, *rng.normal(size=(2, robot.ny)), rng.normal(size=robot.nv)) for q in states
        ]
        for kernel in {step.kernel for plan in PLANS.values() for step in plan.steps}:
            frames = (self.frame,) if PLANS.get(kernel) and kernel in OF_FRAMES else ()
            assert robot.kernel(kernel, *frames).compile()
        assert robot.kernel("loop_state").compile()
        if robot.tree.has_loops and robot._inputs.choices.newton_positions is not None:
            robot.close(robot.independent_position(robot.tree.home))
            positions = robot._inputs.choices.newton_positions
            assert robot._kernels.get("closure", positions).compile()
        for method in PLANS:
            getattr(robot, method)(*self.arguments(method, *self.motions[0]))
            self.native(method)

    def take_rows(self):
        """Have native calls for batches, too."""
        robot, many = self.robot, 2
        for kernel in robot.traced_kernels():
            kernel.compile(batch=True)
        q, yd, x, spanning = (np.tile(array, (many, 1)) for array in self.motions[0])
        robot.close(self.motions[0][0])
        for position in (q, self.independent(q)):
            if position is not None:
                robot.close(position)
                for method in PLANS:
                    getattr(robot, method)(*self.arguments(method, position, yd, x, spanning))

    def independent(self, q):
        """Positions of y; None where they are not all that is needed."""
        known = self.robot._inputs.choices.newton_positions
        return None if known is None else np.ascontiguousarray(q[..., list(known)])

    def arguments(self, method, q, yd, x, spanning):
        """Arguments of a method for some motion."""
        given = {"q": q, "yd": yd, "spanning": spanning}
        vectors = [given.get(name, x) for name in PLANS[method].arguments.split()]
        return [*vectors, self.frame] if method in OF_FRAMES else vectors

    def native(self, method):
        """The native call."""
        calls = self.robot._native.table[method]
        if method in WITH_WRENCHES:
            return calls[0]
        return calls[self.frame] if method in OF_FRAMES else calls

    @contextmanager
    def in_python(self):
        """Methods as they are written."""
        robot = self.robot
        reader, robot._native.reader = robot._native.reader, None
        for index in range(len(METHODS)):
            robot._answer_by(index, None)
        try:
            yield robot
        finally:
            robot._native.reader = reader
            for index, method in enumerate(METHODS):
                robot._answer_by(index, robot._native.table.get(method))


def load(name):
    if name == "demo_leg":
        robot = load_robot(CONFIG / "demo_leg.urdf", CONFIG / "demo_leg_loops.yaml")
    else:
        mechanism = MECHANISMS[name]
        robot = load_robot(mechanism.urdf, mechanism.loops, floating_base=mechanism.floating_base)
        return Served(robot, closed_states(mechanism, 6))
    rng = np.random.default_rng(1)
    steps = rng.uniform(-0.2, 0.2, (6, robot.ny))
    home = robot.tree.home
    moved = [robot.tree.integrate(home, robot.spanning_velocity(home, step)) for step in steps]
    return Served(robot, [robot.close(q) for q in moved])


_loaded = {}


def loaded(name):
    if name not in _loaded:
        _loaded[name] = load(name)
    return _loaded[name]


def parts(answer):
    """Arrays of an answer, as bits."""
    several = astuple(answer) if is_dataclass(answer) else answer
    several = several if isinstance(several, tuple) else (several,)
    return [(array.shape, array.tobytes()) for array in several]


def outcome(call, *given):
    """The error that a call raises, or else its answer."""
    try:
        return parts(call(*given))
    except (InputError, ModelError) as error:
        return type(error), str(error)
