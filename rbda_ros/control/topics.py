"""Topics of the stream, with the numbers that the machine gives them in ``configuration.h``."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any

from rbda_ros.control import native


class Input(IntEnum):
    """Topics of the messages that the machine receives."""

    @staticmethod
    def _generate_next_value_(name: str, *_: Any) -> int:
        return native.INPUTS.index(name)

    JOINT_STATES = auto()
    REFERENCE = auto()
    BASE_STATE = auto()
    EXTERNAL_WRENCH = auto()
    JOINT_COMMANDS = auto()


class Output(IntEnum):
    """Topics of the messages that the machine writes."""

    @staticmethod
    def _generate_next_value_(name: str, *_: Any) -> int:
        return native.OUTPUTS.index(name)

    FEEDFORWARD = auto()
    EFFORT_COMMANDS = auto()
    POSITION_COMMANDS = auto()
    VELOCITY_COMMANDS = auto()
    COMPLETED_STATES = auto()
    MOTOR_COMMANDS = auto()
    EXTERNAL_EFFORT = auto()
    ESTIMATED_WRENCH = auto()
