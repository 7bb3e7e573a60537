"""Joint states kept for some time, by a subscription of their own: the hot path pays nothing."""

from __future__ import annotations

from typing import Any

from sensor_msgs.msg import JointState

from rbda_ros.node.stream.recent_states import RecentStates


class Remembering:
    """Listens to joint states of a node while their past is wanted.

    Args:
        node: whose topic this is.
        recent: where they are kept.
    """

    def __init__(self, node: Any, recent: RecentStates) -> None:
        self._node, self._recent = node, recent
        self._clock = node.get_clock()
        self._subscription: Any = None

    def begin(self, window: float, qos: Any) -> None:
        """Keep the last seconds; 0 for none."""
        self._recent.window = window
        if not window:
            self.end()
        elif self._subscription is None:
            self._subscription = self._node.create_subscription(
                JointState, "joint_states", self._take, qos, raw=True
            )

    def end(self) -> None:
        """Stop listening, and let go of all."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None
            self._recent.forget()

    def _take(self, data: bytes) -> None:
        self._recent.take(data, self._clock.now().nanoseconds)
