"""Input that gives no torque: why it is refused, and how often."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from rbda_ros.errors import ClosureError, InputError, NotFiniteError, SingularityError, one_line


class Reason(StrEnum):
    """Why an input is refused; the value is what diagnostics show."""

    MISNAMED = "misnamed joints"
    PARTIAL = "joints missing"
    WRONG_SIZE = "wrong size"
    NOT_FINITE = "not finite"
    NOT_A_ROTATION = "not a rotation"
    STALE = "stale"
    OUT_OF_ORDER = "out of order"
    NO_VELOCITY = "no velocity"
    NO_ACCELERATION = "no acceleration"
    NO_REFERENCE = "no fresh reference"
    NO_BASE_STATE = "no fresh base state"
    NO_STATE = "no fresh joint states"
    NO_EFFORT = "no measured effort"
    NO_WRENCH = "no fresh external wrench"
    NOT_READY = "kernel not ready"
    NOT_CLOSING = "loops do not close"
    SINGULAR = "loop at a dead point"
    MODEL = "refused by the model"


class RefusalError(InputError):
    """Input that must not be answered with a number."""

    def __init__(self, reason: Reason, message: str) -> None:
        self.reason = reason
        super().__init__(message)


def refusal(error: Exception) -> RefusalError:
    """An error of the model as a refusal with its reason."""
    if isinstance(error, RefusalError):
        return error
    reason = Reason.MODEL
    if isinstance(error, NotFiniteError):
        reason = Reason.NOT_FINITE
    elif isinstance(error, ClosureError):
        reason = Reason.NOT_CLOSING
    elif isinstance(error, SingularityError):
        reason = Reason.SINGULAR
    return RefusalError(reason, str(error))


def stale_states(age: int) -> RefusalError:
    """Why joint states of some age [ns] are refused."""
    return RefusalError(
        Reason.STALE,
        f"joint_states are {age * 1e-9:.3g} s old by their stamp; check the clocks, or raise "
        "joint_state_timeout (0: any age)",
    )


class Refusals:
    """Counts refused inputs by reason, and keeps the last message."""

    def __init__(self) -> None:
        self.counts: Counter[Reason] = Counter()
        self.last_message = ""

    def add(self, refused: RefusalError, count: int = 1) -> None:
        """Count one, or some that are alike."""
        self.counts[refused.reason] += count
        self.last_message = one_line(refused)

    @property
    def total(self) -> int:
        """How many there were in all."""
        return sum(self.counts.values())
