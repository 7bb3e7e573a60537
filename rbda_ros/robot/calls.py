"""Calls of the engine for one robot, made from the records of `operations` on first use."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rbda_ros.algorithms.crba import READ_BEYOND
from rbda_ros.cluster_tree.closing import tolerances
from rbda_ros.cluster_tree.spanning_tree import SpanningTree
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.engine import core
from rbda_ros.errors import ModelError
from rbda_ros.kernels.cache import KernelCache
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.quantities import QUANTITIES, shape_of
from rbda_ros.kernels.registry import robot_sizes
from rbda_ros.robot.contact_dynamics import contact_call
from rbda_ros.robot.contacts import STILL, ConstrainedMotion, Contact, Stop
from rbda_ros.robot.inputs import (
    LARGEST,
    LARGEST_POSITION,
    MAX_TRACED_FRAMES,
    QUATERNION_TOLERANCE,
    UNIT,
    BodyWrenches,
    Inputs,
)
from rbda_ros.robot.operations import (
    KINDS,
    METHODS,
    OPERATIONS,
    SIGNS,
    Argument,
    Operation,
    step_of,
)
from rbda_ros.robot.results import RANK_TOLERANCE, OperationalSpace
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

MAX_OPTIONS = 256
"""Calls of one method for different options, such as frames; at more, all are discarded."""
MAX_LONG = 32
"""The same for several frames, and for contacts: calls keep their long programs alive."""
LONG = frozenset({"operational_space_inertia", "constrained_forward_dynamics"})
LETTERS = {kind: each.letter for kind, each in KINDS.items()} | {"Wrenches": "w", "Damping": "d"}
VARIANTS = range(4)
"""Options of operations that take wrenches: with wrenches (1), with friction (2), or both (3)."""


class RobotCalls:
    """The engine's calls of one robot. Threads may share it.

    Args:
        tree: the robot.
        inputs: reads frames and names.
        kernels: its kernels.
        identity: attribute ``of`` of the robot's states.

    Attributes:
        table: a call for each method; for methods with options a dict of calls by option; for
            those that take wrenches and friction a tuple of calls, one for each of `VARIANTS`.
    """

    def __init__(
        self, tree: ClusterTree, inputs: Inputs, kernels: KernelCache, identity: object
    ) -> None:
        self.table: dict[str, Any] = {}
        self._tree, self._inputs, self._kernels = tree, inputs, kernels
        self._identity = identity

    @cached_property
    def validator(self) -> Any:
        """Checks states; made when first needed, because it traces the loops."""
        tree, inputs = self._tree, self._inputs
        return core.StateValidator(
            nq=tree.nq,
            nv=tree.nv,
            ny=tree.ny,
            limits={
                "largest_position": LARGEST_POSITION,
                "largest": LARGEST,
                "quaternion_tolerance": QUATERNION_TOLERANCE,
                "unit": UNIT,
                "closed": tolerances.CLOSED,
                "nearby": tolerances.NEARBY,
                "on_loops": tree.on_loops,
                "singular": tolerances.SINGULAR,
                "batch_near": tolerances.BATCH_NEAR,
                "batch_block": tolerances.BATCH_BLOCK,
            },
            indices={
                "independent": _indices(tree.independent),
                "quaternions": _indices(inputs.quaternions),
                "curved": _indices(np.flatnonzero(tree.curved)),
                "known": _indices(inputs.choices.newton_positions or ()),
                "parts": _indices(tolerances.KERNEL_PARTS),
            },
            home=np.ascontiguousarray(tree.home),
            loop_state=_requested(self._kernels.get("loop_state")) if tree.has_loops else None,
            state_type=State,
            wrenches_type=BodyWrenches,
            identity=self._identity,
            link_names=tuple(tree.spanning.links),
            link_frames=link_numbers(tree.spanning).ravel(),
            bodies=len(tree.spanning.bodies),
        )

    def prepare(self, robot: Any, method: str, option: Any) -> bool:
        """Make the call of a method and put it into the robot's table; whether there is one.

        Args:
            robot: whose calls these are; no reference to it is kept.
            method: one of `METHODS`.
            option: of the method: a frame, names of joints, contacts, one of `VARIANTS`.
        """
        try:
            hash(option)
            made = self.call(robot, method, option) is not None
        except (TypeError, ModelError):
            return False  # Python reads the option, and says what is wrong
        robot._set_call(METHODS.index(method), self.table.get(method))
        return made

    def call(self, robot: Any, method: str, option: Any = None) -> Any:
        """The call of a method for a hashable option; None if there can be none."""
        record = OPERATIONS.get(method)
        if record is not None and record.wrenches:
            calls = self.table.get(method, (None,) * len(VARIANTS))
            if calls[option] is None:
                call = self._operation_call(*self._program(method, option))
                self.table[method] = calls = (*calls[:option], call, *calls[option + 1 :])
            return calls[option]
        if record is not None and not record.of_frame:
            if method not in self.table:
                self.table[method] = self._operation_call(*self._program(method, option))
            return self.table[method]
        calls, key = self.table.setdefault(method, {}), option
        if method == "constrained_forward_dynamics":
            key = (*map(id, option[0]), option[1])
        if key not in calls:
            call = self._make(robot, method, option)
            if call is None:
                return None
            if len(calls) >= (MAX_LONG if method in LONG else MAX_OPTIONS):
                calls.clear()
            calls[key] = call
        return calls[key]

    def use_closure(self) -> bool:
        """Have the engine close independent positions; whether it can, by Newton steps."""
        positions = self._inputs.choices.newton_positions
        if not self._tree.has_loops or positions is None:
            return False
        if not self.validator.closes:  # tracing takes a while
            self.validator.use_closure(_requested(self._kernels.get("closure", positions)))
        return True

    def _make(self, robot: Any, method: str, option: Any) -> Any:
        """A new call of a method for an option; None if there can be none."""
        if method == "close":
            return self.closure_call(option)
        if method == "constrained_forward_dynamics":
            return self._contact_call(robot, *option)
        if method == "operational_space_inertia":
            frames = [option[0]] if isinstance(option[0], str) else option[0]
            if not 0 < len(frames) <= MAX_TRACED_FRAMES:
                return None
            option = frames, option[1]
        return self._operation_call(*self._program(method, option))

    def kernels(self, method: str, option: Any) -> list[Kernel]:
        """The kernels that the call of a method for an option evaluates."""
        record, options, _ = self._program(method, option)
        names = [step.kernel for step in record.steps if step.kernel not in SIGNS]
        kernels = [self._kernels.get(name, *options) for name in names]
        return kernels + ([self._kernels.get("generalized_force")] if self._turns(record) else [])

    def _program(
        self, method: str, option: Any
    ) -> tuple[Operation, tuple[Hashable, ...], Sequence[Array]]:
        """The record of a method for an option, options of its kernels, and points of frames."""
        if method == "operational_space_inertia":
            name, options, points = self._inputs.operational_space(*option)
            return _operational_space(name), options, points
        record = OPERATIONS[method]
        if method == "jacobian":
            name, at, points = self._inputs.jacobian(option)
            return record.reading(jacobian=name), at, points
        if record.of_frame:
            return record, (self._inputs.frame(option),), ()
        if record.wrenches:
            return record.with_options(bool(option & 1), bool(option & 2)), (), ()
        return record.for_size(self._tree.ny), (), ()

    def _operation_call(
        self, record: Operation, options: tuple[Hashable, ...], points: Sequence[Array]
    ) -> Any:
        """The engine's call of an operation; arguments as `_program` gives them."""
        kernels: list[Any] = [
            SIGNS.get(step.kernel) or _requested(self._kernels.get(step.kernel, *options))
            for step in record.steps
        ]
        numbers = [
            [self._tree.ny] * 3 if isinstance(kernel, float) else kernel.sizes for kernel in kernels
        ]
        names = [step.names(len(n)) for step, n in zip(record.steps, numbers, strict=True)]
        size = record.slots(zip(names, numbers, strict=True), self._tree.ny)
        if record.inverts:
            size |= {"damping": 1, "inertia": size["inverse_inertia"]}
            n = isqrt(size["inertia"])
            size["M"] = n * (n + 1) // 2 + READ_BEYOND
        slot = {name: i for i, name in enumerate(size)}
        sizes = robot_sizes(self._tree)
        results = [
            (slot[name], *shape_of(QUANTITIES[name].shape, size[name], sizes))
            for name in record.results
        ]
        attributes = () if record.make is None else tuple(f.name for f in fields(record.make))
        coupled: Sequence[int] = self._tree.independent_parents
        if record.inverts:
            attributes = ("inertia", *attributes)
            coupled = range(-1, isqrt(size["inertia"]) - 1)
        matrix = "M" if record.inverts else record.solved
        return core.OperationCall(
            validator=self.validator,
            kinds="".join(LETTERS[argument.kind] for argument in record.arguments),
            sizes=tuple(size.values()),
            steps=tuple(
                (kernel, tuple(slot[name] for name in ports))
                for kernel, ports in zip(kernels, names, strict=True)
            ),
            results=tuple(results),
            constants=tuple((slot["points"], each) for each in points),
            finite=slot.get(record.finite or "", -1),
            missed=slot.get("loop_residual", -1),
            make=record.make,
            fields=attributes,
            mass_matrix=slot[matrix] if record.solves or record.inverts else -1,
            parents=_indices(coupled),
            least=RANK_TOLERANCE if record.inverts else 0.0,
            forces=self._forces() if self._turns(record) else None,
        )

    def _turns(self, record: Operation) -> bool:
        """Whether an operation takes forces on all joints, which are turned into those on y."""
        return self._tree.nv != self._tree.ny and any(a.kind == "Force" for a in record.arguments)

    def _forces(self) -> Any:
        """The kernel that turns forces on all joints into those on y; None if they are the same."""
        if self._tree.nv == self._tree.ny:
            return None
        return _requested(self._kernels.get("generalized_force"))

    def _contact_call(self, robot: Any, contacts: Any, route: Any) -> Any:
        """The call of dynamics with contacts; None if their targets depend on the state.

        The call is found by the identity of the contacts, which are immutable. It keeps them alive.
        """
        if any(
            type(each) is not Contact or each.stiffness or each.damping or each.to is not None
            for each in contacts
        ):
            return None
        kernel, each, constants = contact_call(robot, contacts, *(() if route is ... else (route,)))
        stop, names = Stop(), tuple(field.name for field in fields(ConstrainedMotion))
        return core.ContactCall(
            self.validator,
            _requested(kernel),
            self._forces(),
            constants,
            *(stop.tolerance, STILL, each, stop.iterations),
            *(ConstrainedMotion, names, contacts),
        )

    def closure_call(self, names: tuple[str, ...] | None) -> Any:
        """The call of `close` for a vector (None), or for joints by name; None if there is none.

        There is none if Newton steps do not close the loops from these joints, or if some of them
        have several coordinates.
        """
        tree, choices = self._tree, self._inputs.choices
        everything = _indices(range(tree.nq))
        if not tree.has_loops:
            if names is not None:
                return None
            return core.ClosureCall(self.validator, None, everything, None, _indices(()))
        joints: tuple[str, ...] = ()
        entries = choices.newton_positions
        if names is not None:
            chosen = choices.positions(names)
            if chosen is None or not tree.coordinates.scalar_positions.keys() >= set(names):
                return None  # a ball joint's position is no number
            joints, entries = chosen
            names = (*joints, *(name for name in names if name not in joints))
        if entries is None:
            return None
        closure = _requested(self._kernels.get("closure", entries))
        places = [tree.coordinates.scalar_positions[name] for name in names or ()]
        return core.ClosureCall(self.validator, closure, _indices(entries), names, _indices(places))


def _operational_space(kernel: str) -> Operation:
    """The record of `Robot.operational_space_inertia`, which has a kernel for its frames."""
    return Operation(
        "operational_space_inertia",
        lambda: None,
        (Argument("q", "Position", "q"), Argument("damping", "Damping", "damping")),
        (step_of(kernel),),
        ("inertia", "inverse_inertia", "frame_jacobians"),
        finite="inverse_inertia",
        make=OperationalSpace,
        inverts=True,
    )


def link_numbers(spanning: SpanningTree) -> Array:
    """(links, 13) the body of each link, and R by rows and p of its frame (engine/loop_rules.h)."""
    places = spanning.links.values()
    rows = [[place.body, *np.ravel(place.frame.R), *place.frame.p] for place in places]
    return np.array(rows, float).reshape(-1, 13)


def _requested(kernel: Kernel) -> Any:
    """The engine's object of a kernel, whose machine code is requested."""
    kernel.request()
    return kernel.native


def _indices(numbers: Any) -> NDArray[np.intp]:
    return np.array(list(numbers), dtype=np.intp)
