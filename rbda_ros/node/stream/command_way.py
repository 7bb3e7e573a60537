"""How commands with the same names and fields are turned over, once all about them is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbda_ros.node.stream.codec import StatesWriter
from rbda_ros.node.stream.joint_states import Form, JointStates
from rbda_ros.node.stream.rates import Indices, Vector
from rbda_ros.robot import Robot
from rbda_ros.robot.motor_command import MotorCommandCall

FIELDS = ("position", "velocity", "effort")


@dataclass(frozen=True, eq=False)
class CommandState:
    """The state that was answered last.

    Attributes:
        time: that it was answered [ns].
        joints: that were measured.
        numbers: their velocity, after that of a floating base; the spanning position; and the
            feedforward. As `MotorCommandCall.state` takes it.
        velocities, positions: how many there are.
    """

    time: int
    joints: tuple[str, ...]
    numbers: Vector
    velocities: int
    positions: int

    @property
    def q(self) -> Vector:
        """The spanning position (nq,)."""
        return self.numbers[self.velocities : self.velocities + self.positions]


class CommandWay:
    """From such a command to its answer.

    Args:
        robot: the model.
        call: computes it.
        fields: that commands have.
        efforts: what efforts of motors are made of.
        found: where the joints of the model stand in commands.
        writer: of the answers.

    Attributes:
        call: as given.
        writer: as given.
        needs_state: whether it depends on where the robot is.
        order: places in a command of the joints that the call goes by.
        held: their entries of q, to be held where the robot is; None if positions are commanded.
        has_velocity: whether velocities are commanded.
        effort_source, effort_target: places of efforts in a command, and among velocities.
        values: the answer by field; views of what the call computes.
    """

    def __init__(
        self,
        robot: Robot,
        call: MotorCommandCall,
        fields: Sequence[str],
        efforts: Sequence[str],
        found: Mapping[str, int],
        writer: StatesWriter,
    ) -> None:
        self.call, self.writer = call, writer
        self.needs_state = "position" not in fields or bool(efforts)
        layout = robot.coordinates
        moves = call.moves
        joints = call.joints if moves else ()
        self.order = _indices(found[name] for name in joints)
        self.held: Indices | None = None
        if moves and "position" not in fields:
            self.held = _indices(layout.scalar_positions[name] for name in joints)
        self.has_velocity = moves and "velocity" in fields
        commanded = found if "effort" in fields else {}
        self.effort_source = _indices(commanded.values())
        self.effort_target = _indices(layout.velocities[name].start for name in commanded)
        computed = {
            "position": call.motor_position,
            "velocity": call.motor_velocity,
            "effort": call.motor_effort,
        }
        self.values: dict[str, Vector] = {field: computed[field] for field in writer.values}

    def give(self, message: JointStates, state: CommandState | None) -> None:
        """Write a command, and where the robot is, into the inputs of the call."""
        call = self.call
        if state is not None:
            call.state[:] = state.numbers
        if not call.moves or self.held is not None:
            assert state is not None
            call.start_from(state.q)
        if self.held is not None:
            call.position[:] = call.measured_q[self.held]
        elif call.moves:
            call.position[:] = message.position[self.order]
        if self.has_velocity:
            call.velocity[:] = message.velocity[self.order]
        call.effort[self.effort_target] = message.effort[self.effort_source]

    def answer(self, like: bytes) -> Any:
        """What the call has computed, serialized, with the stamp of the command."""
        for field, values in self.values.items():
            self.writer.values[field][:] = values
        return self.writer.serialized(like)


@dataclass(frozen=True, eq=False)
class ReadyCommands:
    """What commands like the last ones are answered by.

    Attributes:
        known: forms of commands, and their ways.
        used: the way of the last command.
        last: its stamp [ns].
        latest: time that was seen last [ns].
        timeout: age from which on a command or a state is too old [ns]; 0 for never.
    """

    known: list[tuple[Form, CommandWay]]
    used: CommandWay | None
    last: int
    latest: int
    timeout: int


def _indices(values: Any) -> Indices:
    return np.array(list(values), np.intp)
