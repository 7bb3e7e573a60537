"""Robots whose operations are compiled, and what to compare them with: the model in Python."""

from dataclasses import astuple, is_dataclass
from pathlib import Path

import numpy as np
from mechanism_table import MECHANISMS, closed_states
from operation_model import Model

from rbda_ros import InputError, ModelError, load_robot
from rbda_ros.engine import core
from rbda_ros.robot.operations import OPERATIONS

CONFIG = Path(__file__).parents[1] / "config" / "robots"


class Served:
    """A robot whose operations are compiled, the model of it, and states."""

    def __init__(self, robot, states):
        self.robot, self.states = robot, states
        self.frame = robot.description.links[-1].name
        rng = np.random.default_rng(3)
        self.motions = [
            (q, *rng.normal(size=(2, robot.ny)), rng.normal(size=robot.nv)) for q in states
        ]
        self.model = Model(robot)
        frames = [(name, self.frame) for name, each in OPERATIONS.items() if each.of_frame]
        robot.prepare()
        robot.prepare(*frames)
        for method in OPERATIONS:
            getattr(robot, method)(*self.arguments(method, *self.motions[0]))
        robot.close(robot.neutral())

    def take_rows(self):
        """Have machine code for batches, too."""
        self.robot.prepare(batch=True)

    def independent(self, q):
        """Positions of y; None where they are not all that is needed."""
        known = self.robot._inputs.choices.newton_positions
        return None if known is None else np.ascontiguousarray(q[..., list(known)])

    def arguments(self, method, q, yd, x, spanning):
        """Arguments of a method for some motion."""
        given = {"Position": q, "Velocity": yd, "Spanning": spanning, "Number": 0.25}
        given["Coordinates"] = np.tile(self.states[1], (*x.shape[:-1], 1)).reshape(
            *x.shape[:-1], -1
        )
        record = OPERATIONS[method]
        vectors = [given.get(argument.kind, x) for argument in record.arguments]
        return [*vectors, self.frame] if record.of_frame else vectors

    def native(self, method):
        """The engine's call."""
        calls = self.robot._calls.table[method]
        if OPERATIONS[method].wrenches:
            return calls[0]
        return calls[self.frame] if OPERATIONS[method].of_frame else calls


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
    arrays = [np.asarray(each, float) for each in several]
    return [(array.shape, array.tobytes()) for array in arrays]


def outcome(call, *given):
    """The error that a call raises, or else its answer."""
    try:
        return parts(call(*given))
    except (InputError, ModelError) as error:
        return type(error), str(error)


def is_rejected(answer):
    """Whether the engine rejects something."""
    return isinstance(answer, core.Rejection)
