"""Topics of the stream, as the machine numbers them; ``machine.h`` has the same order."""

from __future__ import annotations

from enum import IntEnum


class Input(IntEnum):
    """Topics of the messages that the machine receives."""

    JOINT_STATES = 0
    REFERENCE = 1
    BASE_STATE = 2
    EXTERNAL_WRENCH = 3
    JOINT_COMMANDS = 4


class Output(IntEnum):
    """Topics of the messages that the machine writes."""

    FEEDFORWARD = 0
    EFFORT_COMMANDS = 1
    POSITION_COMMANDS = 2
    VELOCITY_COMMANDS = 3
    COMPLETED_STATES = 4
    MOTOR_COMMANDS = 5
    EXTERNAL_EFFORT = 6
    ESTIMATED_WRENCH = 7
