"""The methods of a robot in native code: arguments checked, loops closed, answered.

A method is written once, in Python: it takes whatever a user may give, and raises what must be
raised. Decorated with `checked`, it first asks `rbda_ros._native.calls`, which runs the same checks
and the same kernels on float64 vectors, or rows of them for many states, and gives the same numbers
to the last bit. Whatever is else, or would be refused, goes to the method as it is written. So does
everything while kernels are not compiled yet, and where the native module is absent.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields
from math import isqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rbda_ros import _native
from rbda_ros.algorithms.branches import parents
from rbda_ros.cluster_tree.closing.tolerances import (
    BATCH_BLOCK,
    BATCH_NEAR,
    CLOSED,
    KERNEL_PARTS,
    NEARBY,
    SINGULAR,
)
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.kernels.cache import KernelCache
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.robot.contacts import STILL, ConstrainedMotion, Contact, Stop
from rbda_ros.robot.damped_inverse import RANK_TOLERANCE
from rbda_ros.robot.inputs import (
    LARGEST,
    LARGEST_POSITION,
    MOST_TRACED_FRAMES,
    QUATERNION_TOLERANCE,
    UNIT,
    Inputs,
)
from rbda_ros.robot.native_plans import (
    COLUMNS,
    KINDS,
    OF_FRAMES,
    OPERATIONAL_SPACE,
    PLANS,
    SIGNS,
    WITH_WRENCHES,
    Plan,
    plan_of,
)
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

Method = TypeVar("Method", bound=Callable[..., Any])

MOST_OPTIONS = 256
"""Calls of one method for different options, such as frames; beyond it they are made anew."""
MOST_LONG = 32
"""The same for several frames, and for contacts, whose programs are long: calls keep them alive."""


_ANSWERED_ELSE = {
    "close": ("k", 1),
    "operational_space_inertia": ("f", 1),
    "constrained_forward_dynamics": ("c", 3),
}
"""Methods not in `PLANS`: their kind (`_native/method.c`), and how many vectors they take."""
LONG = frozenset({"operational_space_inertia", "constrained_forward_dynamics"})
METHODS = [*PLANS, *_ANSWERED_ELSE]
Answering: Any = object if _native.calls is None else _native.calls.Answering
"""The base of a class with `checked` methods."""


def checked(method: Method) -> Method:
    """A method of `METHODS`, answered by native code where it can be."""
    name = method.__name__
    if _native.calls is None:
        return method
    if name in _ANSWERED_ELSE:
        kind, required = _ANSWERED_ELSE[name]
    else:
        kind = "o" if name in OF_FRAMES else "w" if name in WITH_WRENCHES else "n"
        required = len(PLANS[name].arguments.split())
    parameters = tuple(inspect.signature(method).parameters)[1:]
    return _native.calls.Method(
        method, _prepare, name, METHODS.index(name), parameters, required, kind
    )


def _prepare(robot: Any, method: str, option: Hashable) -> None:
    if robot._native.prepare(robot, method, option):
        robot._answer_by(METHODS.index(method), robot._native.table[method])


class NativeCalls:
    """The native calls of one robot: made once their kernels are compiled. Threads may share it.

    Args:
        tree: the robot.
        inputs: reads frames and names.
        kernels: its kernels.
        identity: what its states are known by.

    Attributes:
        table: calls by method; of methods with options, by method and option; of those that take
            wrenches and friction, by whether there are wrenches (1) and friction (2).
        reader: checks states; None without the native module.
    """

    def __init__(
        self, tree: ClusterTree, inputs: Inputs, kernels: KernelCache, identity: object
    ) -> None:
        self.table: dict[str, Any] = {}
        self.reader: Any = None
        self._tree, self._inputs, self._kernels = tree, inputs, kernels
        if _native.calls is not None and tree.ny:
            self.reader = _reader(tree, inputs, identity)

    def prepare(self, robot: Any, method: str, option: Hashable) -> bool:
        """Make the native call of a method, if its kernels are compiled; whether it is new.

        Args:
            robot: whose native calls these are; it is not kept.
            method: one of `METHODS`.
            option: what the call is for: a frame, names of joints, contacts.
        """
        try:
            hash(option)
        except TypeError:
            return False  # such as a frame with an offset that may change
        self.prepare_reader()
        if self.reader is None or not self.reader.ready:
            return False
        if method in WITH_WRENCHES:
            return self._prepare_variant(method, option)
        calls: dict[Any, Any] = self.table
        key: Hashable = method
        if method in _ANSWERED_ELSE or method in OF_FRAMES:
            calls, key = self.table.setdefault(method, {}), option
        if method == "constrained_forward_dynamics":
            key = (*map(id, option[0]), option[1])  # type: ignore[index]
        if key in calls:
            return False
        call = self._make(robot, method, option)
        if call is not None:
            if len(calls) >= (MOST_LONG if method in LONG else MOST_OPTIONS):
                calls.clear()
            calls[key] = call
        return call is not None

    def _make(self, robot: Any, method: str, option: Any) -> Any:
        """The call of a method for an option; None where there is none, or not yet."""
        if method == "close":
            return self._closing(option)
        if method == "constrained_forward_dynamics":
            return self._contacts(robot, *option)
        if method == "operational_space_inertia":
            frames = [option[0]] if isinstance(option[0], str) else option[0]
            if len(frames) > MOST_TRACED_FRAMES:
                return None
            name, options, points = self._inputs.operational_space(frames, option[1])
            return self._checked(OPERATIONAL_SPACE.at(name, points), *options, points=points)
        if method == "jacobian":
            name, at, points = self._inputs.jacobian(option)
            return self._checked(PLANS[method].at(name, points), *at, points=points)
        of_frame = (self._inputs.frame(option),) if method in OF_FRAMES else ()
        return self._checked(PLANS[method], *of_frame)

    def _prepare_variant(self, method: str, variant: Any) -> bool:
        """Make the call of a method with or without wrenches (1) and friction (2)."""
        calls = self.table.get(method, (None,) * 4)
        if calls[variant] is not None:
            return False
        call = self._checked(plan_of(method, bool(variant & 1), bool(variant & 2)))
        self.table[method] = (*calls[:variant], call, *calls[variant + 1 :])
        return call is not None

    def prepare_reader(self) -> None:
        """Give the reader what it needs of loops, as far as that is compiled."""
        reader = self.reader
        if reader is None or not self._tree.has_loops or (reader.ready and reader.closes):
            return
        if not reader.ready and (loop_state := _compiled(self._kernels.get("loop_state"))):
            reader.use_loops(loop_state)
        positions = self._inputs.choices.newton_positions
        if reader.ready and positions is not None:
            # Only where someone has closed from y: to trace it takes a while.
            kernel = self._kernels.traced("closure", positions)
            if kernel is not None and (closure := _compiled(kernel)):
                reader.use_closure(closure)

    def _checked(self, plan: Plan, *options: Hashable, points: Sequence[Array] = ()) -> Any:
        """The call of a method; None where a kernel is not compiled.

        Args:
            plan: what to do.
            options: of its kernels.
            points: where frames are on their links, if kernels take that.
        """
        kernels = [
            SIGNS.get(step.kernel) or _compiled(self._kernels.get(step.kernel, *options))
            for step in plan.steps
        ]
        arguments = plan.arguments.split()
        if not all(kernels) or ("force" in arguments and self._forces() is None):
            return None
        size = dict.fromkeys(arguments, 0)
        steps = []
        for step, kernel in zip(plan.steps, kernels, strict=True):
            names = f"{step.inputs} {step.outputs}".split()
            if isinstance(kernel, float):
                size |= dict.fromkeys(names, self._tree.ny)
            else:
                names = names[: len(kernel.sizes)]
                size |= dict(zip(names, kernel.sizes, strict=True))
            steps.append((kernel, names))
        if plan.solves:
            size["inverse"] = size["H"]
        if plan.inverts:
            size |= {"damping": 1, "inertia": size["A"], "H": size["A"]}
        slot = {name: i for i, name in enumerate(size)}
        results = []
        for name in plan.results.split():
            columns = COLUMNS[name](size[name], self._tree.ny) if name in COLUMNS else 0
            shape = (size[name] // columns, columns) if columns else (size[name],)
            results.append((slot[name], *shape))
        coupled = range(-1, isqrt(size["A"]) - 1) if plan.inverts else parents(self._tree)
        attributes = () if plan.make is None else tuple(field.name for field in fields(plan.make))
        attributes = ("inertia", *attributes) if plan.inverts else attributes
        return _native.calls.CheckedCall(
            self.reader,
            "".join(KINDS.get(name, "x") for name in arguments),
            tuple(size.values()),
            tuple((kernel, tuple(slot[name] for name in names)) for kernel, names in steps),
            tuple(results),
            tuple((slot["points"], each) for each in points),
            slot.get(plan.finite or "", -1),
            slot.get("missed", -1),
            (plan.make, attributes),
            (
                slot["H"] if plan.solves or plan.inverts else -1,
                _indices(coupled),
                RANK_TOLERANCE if plan.inverts else 0.0,
            ),
            self._forces() if "force" in arguments else False,
        )

    def _forces(self) -> Any:
        """What turns forces on all joints into those on y; None if it is not compiled yet."""
        if self._tree.nv == self._tree.ny:
            return False  # nothing to turn
        return _compiled(self._kernels.get("generalized_force"))

    def _contacts(self, robot: Any, contacts: Any, route: Any) -> Any:
        """The call of dynamics with contacts; None where what they want depends on the state.

        The call has the contacts, which cannot change: it is found by their identity.
        """
        if any(
            type(each) is not Contact or each.stiffness or each.damping or each.to is not None
            for each in contacts
        ):
            return None
        kernel, each, constants = robot._contact_call(contacts, *(() if route is ... else (route,)))
        native, forces = _compiled(kernel), self._forces()
        if native is None or forces is None:
            return None
        stop, names = Stop(), tuple(field.name for field in fields(ConstrainedMotion))
        return _native.calls.ContactCall(
            self.reader,
            native,
            forces,
            constants,
            *(stop.tolerance, STILL, each, stop.iterations),
            *(ConstrainedMotion, names, contacts),
        )

    def _closing(self, names: Any) -> Any:
        """The call of `close` for a vector (None), or for joints by name; None if there is none."""
        tree, choices = self._tree, self._inputs.choices
        if not tree.has_loops:
            return None if names else self._closing_nothing()
        joints: tuple[str, ...] = ()
        entries = choices.newton_positions
        if names is not None:
            chosen = choices.positions(names)
            if chosen is None:
                return None
            joints, entries = chosen
        kernel = None if entries is None else self._kernels.traced("closure", entries)
        closure = None if kernel is None else _compiled(kernel)
        if closure is None or entries is None:
            return None
        if names is not None:
            names = (*joints, *(name for name in names if name not in joints))
        places = [tree.coordinates.scalar_positions[name] for name in names or ()]
        return _native.calls.Closing(
            self.reader, closure, _indices(entries), names, _indices(places)
        )

    def _closing_nothing(self) -> Any:
        everything = _indices(range(self._tree.nq))
        return _native.calls.Closing(self.reader, None, everything, None, _indices(()))


def _compiled(kernel: Kernel) -> Any:
    """The native kernel; None, and it is asked for, where it is not compiled yet."""
    native = kernel.native
    if native is None:
        kernel.request()
    return native


def _indices(numbers: Any) -> NDArray[np.intp]:
    return np.array(list(numbers), dtype=np.intp)


def _reader(tree: ClusterTree, inputs: Inputs, identity: object) -> Any:
    reader = _native.calls.Reader(
        (tree.nq, tree.nv, tree.ny),
        (
            *(LARGEST_POSITION, LARGEST, QUATERNION_TOLERANCE, UNIT),
            *(CLOSED, NEARBY, tree.on_loops, SINGULAR, BATCH_NEAR, BATCH_BLOCK),
        ),
        (
            _indices(tree.independent),
            _indices(inputs.quaternions),
            _indices(np.flatnonzero(tree.curved)),
            _indices(inputs.choices.newton_positions or ()),
            _indices(KERNEL_PARTS),
        ),
        np.ascontiguousarray(tree.home),
        State,
        identity,
        tree.has_loops,
    )
    places = [
        np.concatenate([[place.body], np.ravel(place.frame.R), place.frame.p])
        for place in tree.spanning.links.values()
    ]
    numbers = np.concatenate([np.zeros(0), *places])
    reader.use_links(tuple(tree.spanning.links), numbers, len(tree.spanning.bodies))
    return reader
