"""What efforts must not do, whatever the model says: jump, or go on where there is no state."""

from __future__ import annotations

import math

import numpy as np

from rbda_ros.node.joint_gains import joint_gains
from rbda_ros.node.refusals import Reason
from rbda_ros.node.settings import Settings
from rbda_ros.node.stream.rates import NEVER
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array

LONGEST_STEP = 100_000_000
"""After a longer pause efforts may still change only as much as in this time [ns]."""


def largest_efforts(robot: Robot, settings: Settings) -> Array:
    """The largest effort of each actuated joint (actuated,), infinite where there is none."""
    described = {joint.name: joint.limits.effort for joint in robot.description.joints}
    given = joint_gains("effort_limits", settings.effort_limits)
    of_urdf = described if settings.saturate else {}
    return np.array(
        [
            min(of_urdf.get(name, math.inf), given.get(name, math.inf))
            for name in robot.actuated_joint_names
        ]
    )


class EffortSafety:
    """Ramp, rate limit, and the message of zeros, for the efforts of one stream.

    Attributes:
        active: whether it has anything to do; without, efforts may pass it by.
    """

    def __init__(self, settings: Settings) -> None:
        self._last: Array | None = None  # that was sent; None: zero, and the ramp begins
        self._begin = self._time = NEVER  # of the ramp, and of the last effort [ns]
        self._sent = False  # whether the last message was other than the one of zeros
        self.apply(settings)

    def apply(self, settings: Settings) -> None:
        """Go on with other settings."""
        self._rate = settings.effort_rate_limit
        self._ramp = int(settings.ramp_in * 1e9)
        self._zero = settings.on_refusal == "zero"
        self.active = bool(self._rate or self._ramp or self._zero)

    def forget(self) -> None:
        """Begin from zero again, as after activation."""
        self._last, self._sent = None, False

    def limit(self, efforts: Array, now: int) -> None:
        """Make efforts (actuated,) what may be sent now [ns], in place."""
        last = self._last
        if last is None or len(last) != len(efforts):
            self._begin = self._time = now
            last = np.zeros(len(efforts))
        if self._ramp and now - self._begin < self._ramp:
            efforts *= max(now - self._begin, 0) / self._ramp
        if self._rate:
            step = self._rate * 1e-9 * min(max(now - self._time, 0), LONGEST_STEP)
            np.clip(efforts, last - step, last + step, out=efforts)
        self._last, self._time, self._sent = efforts.copy(), now, True

    def zero_follows(self, reason: Reason) -> bool:
        """Whether a message of zeros is to follow a refusal; it then counts as sent.

        Others may share the topic: names that are not ours stop nothing.
        """
        if not (self._zero and self._sent) or reason is Reason.MISNAMED:
            return False
        self._sent = False
        if self._last is not None:
            self._last = np.zeros(len(self._last))
        return True
