"""The topics of the node: publishers and subscriptions around the stream of `control`.

`RecentStates` keeps the last seconds of joint states, for services that ask about the past.
"""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from typing import Any

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.clock import Clock as TimerClock
from rclpy.clock_type import ClockType
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.type_support import check_for_type_support
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from rbda_ros.control.configuration import wrench_point
from rbda_ros.control.model_builder import ModelBuilder
from rbda_ros.control.rejections import Rejections
from rbda_ros.control.settings import Settings, publishes_joint_states
from rbda_ros.control.stream import LastState, Prepared, Stream
from rbda_ros.control.thread_priority import StreamPriority
from rbda_ros.control.topics import Input, Output
from rbda_ros.errors import InputError
from rbda_ros.node import rcl_stream
from rbda_ros.robot import Robot

# Best effort matches reliable publishers too. Deep enough for joint states in several parts that
# come at the same moment; but what falls behind for good shall not answer much that is old.
NEWEST = QoSProfile(depth=30, reliability=ReliabilityPolicy.BEST_EFFORT)
INPUTS = {
    Input.JOINT_STATES: ("joint_states", JointState),
    Input.REFERENCE: ("~/reference", JointTrajectory),
    Input.BASE_STATE: ("~/base_state", Odometry),
    Input.EXTERNAL_WRENCH: ("~/external_wrench", WrenchStamped),
    Input.JOINT_COMMANDS: ("~/joint_commands", JointState),
}
COMMANDS = ("~/reference", "~/joint_commands")
"""Inputs that follow the parameter ``command_reliability``; the others are best effort."""
CLOCK = ("/clock", Clock)
"""Simulated time, in the order of arrival with the inputs."""
OUTPUTS = {
    Output.FEEDFORWARD: ("~/feedforward", JointState),
    Output.MOTOR_COMMANDS: ("~/motor_commands", JointState),
    Output.EFFORT_COMMANDS: ("~/effort_commands", Float64MultiArray),
    Output.POSITION_COMMANDS: ("~/position_commands", Float64MultiArray),
    Output.VELOCITY_COMMANDS: ("~/velocity_commands", Float64MultiArray),
    Output.COMPLETED_STATES: ("~/joint_states", JointState),
    Output.EXTERNAL_EFFORT: ("~/external_effort", JointState),
    Output.ESTIMATED_WRENCH: ("~/estimated_wrench", WrenchStamped),
}
ALWAYS = (Output.FEEDFORWARD, Output.MOTOR_COMMANDS)
"""Topics that are there whatever the settings say."""
MAX_PREPARED = 2
"""Models that may come into use: one from a description, one with a load."""
MAX_STATES = 120_000
"""Messages that are remembered at most: a minute at 2 kHz."""


class Topics:
    """Publishers and subscriptions of a lifecycle node, and the stream between them.

    Args:
        node: the node.
        builder: makes kernels beside its executor.

    Attributes:
        stream: the stream.
        topic: where efforts go.
        recent: the last joint states, if asked for.
        overtaken: inputs that newer ones replaced before they were taken, as of the last `collect`.
    """

    def __init__(self, node: Any, builder: ModelBuilder) -> None:
        self._node = node
        self.stream = Stream(builder.background)
        self._publishers: dict[Output, Publisher] = {
            output: node.create_lifecycle_publisher(OUTPUTS[output][1], OUTPUTS[output][0], 10)
            for output in ALWAYS
        }
        self.topic: str = self._publishers[Output.FEEDFORWARD].topic_name
        self.recent = RecentStates(node)
        self.overtaken = self._overtaken_before = 0
        self._thread: rcl_stream.RclStream | None = None
        self._timer: Any = None
        self._kept = ExitStack()  # handles that must not be destroyed while the thread runs
        self._priority = StreamPriority(node.get_logger())
        self._robot: Robot | None = None
        self._prepared: deque[tuple[Robot, Prepared]] = deque(maxlen=MAX_PREPARED)

    @property
    def rejections(self) -> Rejections:
        """Rejected input by reason, as of the last `collect`."""
        return self.stream.rejections

    @property
    def kernel_state(self) -> str:
        """How efforts are computed: by machine code, or not yet."""
        return "none" if self._robot is None else self.stream.kernel_state

    def latest_state(self, robot: Robot) -> LastState:
        """The joint state that was answered last, if it is fresh and of this robot.

        Raises:
            InputError: there is none.
        """
        last, timeout = self.stream.last_state(), self._node.settings.joint_state_timeout
        if last is None or len(last.q) != robot.nq:
            raise InputError(
                "state is empty, and the node has answered no joint states yet; publish them on "
                f"{self._node.resolve_topic_name('joint_states')} (diagnostics say why some are "
                "rejected), or give positions in the request"
            )
        age = (self._node.get_clock().now().nanoseconds - last.time) * 1e-9
        if timeout and abs(age) > timeout:
            raise InputError(
                f"state is empty, and the last joint states that were answered are {age:.3g} s "
                f"old (joint_state_timeout is {timeout:g} s); publish them, or give positions in "
                "the request"
            )
        return last

    def in_use(self) -> Any:
        """The kernel that answers joint states now, and a copy of what it was given last."""
        return self.stream.in_use()

    # Models and settings.

    def prepare(self, robot: Robot) -> None:
        """Make what messages of a robot will need; not on the executor. Then `use` it."""
        self._prepared.append((robot, self.stream.prepare(robot, self._node.settings)))

    def use(self, robot: Robot, settings: Settings) -> None:
        """Replace the model between two messages."""
        self._robot = robot
        prepared = next((made for of, made in list(self._prepared) if of is robot), None)
        self._prepared = deque((e for e in self._prepared if e[0] is not robot), MAX_PREPARED)
        self._offer(robot, settings)
        self.stream.use(robot, settings, prepared)
        self._renew()
        self._withdraw(robot, settings)

    def apply(self, settings: Settings) -> None:
        """Use other settings from the next message on."""
        robot = self._robot
        if robot is not None:
            self._offer(robot, settings)
        self.stream.apply(settings)
        self._renew()
        if robot is not None:
            self._withdraw(robot, settings)
        if self._thread is not None:
            self.recent.begin(settings.payload_window, NEWEST)
            self._priority.set(settings.realtime_priority)

    def _renew(self) -> None:
        """Publish at once what another configuration makes due, on the topics of the one before."""
        if self._thread is not None:
            self._thread.renew()

    def free(self) -> None:
        """Forget the model."""
        self._robot = None
        self._prepared.clear()
        self.stream.free()
        for output in [output for output in self._publishers if output not in ALWAYS]:
            self._node.destroy_publisher(self._publishers.pop(output))

    # Listening.

    def open(self) -> None:
        """Begin to listen."""
        node = self._node
        # The thread wakes the executor by a timer: unlike a task, this respects callback groups.
        self._timer = node.create_timer(
            0.0, self._serve, clock=TimerClock(clock_type=ClockType.STEADY_TIME)
        )
        self._timer.cancel()
        handles = [node.handle, node.get_clock().handle]
        for handle in handles:
            self._kept.enter_context(handle)
        inputs = [*(INPUTS[each] for each in sorted(Input)), CLOCK]
        for _, kind in inputs:
            check_for_type_support(kind)
        resent = node.settings.command_reliability == "reliable"
        try:
            self._thread = rcl_stream.RclStream(
                node=node.handle.pointer,
                clock=node.get_clock().handle.pointer,
                machine=self.stream.machine,
                inputs=tuple(
                    (
                        node.resolve_topic_name(topic),
                        type(kind)._TYPE_SUPPORT,
                        resent and topic in COMMANDS,
                    )
                    for topic, kind in inputs
                ),
                depth=NEWEST.depth,
                wake=self._timer.reset,
            )
        except RuntimeError:
            self._release()
            raise
        self._set_publishers()
        self.recent.begin(node.settings.payload_window, NEWEST)
        self._priority.set(node.settings.realtime_priority)

    def close(self) -> None:
        """Stop listening; the topics of motors end as ``on_stale`` says."""
        if self._thread is None:
            return
        self._thread.close()
        self.collect()
        self._overtaken_before, self._thread = self.overtaken, None
        self._priority.end()
        self.recent.end()
        self._release()

    def collect(self) -> None:
        """Count what was answered, and rejected, by now; once a second or so."""
        self.stream.collect()
        if self._thread is not None:
            self.overtaken = self._overtaken_before + self._thread.overtaken()
        self._priority.tend()

    def _release(self) -> None:
        self._kept.close()
        self._node.destroy_timer(self._timer)

    def _serve(self) -> None:
        """Prepare what the machine asks for; on the executor."""
        self._timer.cancel()
        if self._thread is not None:
            self.stream.serve()

    # Publishers: there while the settings ask for them.

    def _offer(self, robot: Robot, settings: Settings) -> None:
        """Have the topics that the settings want."""
        for output in _wanted(robot, settings):
            if output not in self._publishers:
                topic, kind = OUTPUTS[output]
                self._publishers[output] = self._node.create_publisher(kind, topic, 10)
        self._set_publishers()

    def _withdraw(self, robot: Robot, settings: Settings) -> None:
        """Take back the topics that they do not want."""
        wanted = {*ALWAYS, *_wanted(robot, settings)}
        gone = [self._publishers.pop(o) for o in list(self._publishers) if o not in wanted]
        self._set_publishers()
        for publisher in gone:
            self._node.destroy_publisher(publisher)

    def _set_publishers(self) -> None:
        if self._thread is not None:
            found = (self._publishers.get(output) for output in sorted(Output))
            self._thread.set_publishers([0 if p is None else p.handle.pointer for p in found])


def _wanted(robot: Robot, settings: Settings) -> list[Output]:
    wanted = []
    if settings.command_joints:
        wanted.append(Output.EFFORT_COMMANDS)
        if settings.command_source == "joint_commands":
            wanted += [Output.POSITION_COMMANDS, Output.VELOCITY_COMMANDS]
    if publishes_joint_states(settings, robot):
        wanted.append(Output.COMPLETED_STATES)
    if settings.publish_external_effort:
        wanted.append(Output.EXTERNAL_EFFORT)
        if wrench_point(robot, settings) is not None:
            wanted.append(Output.ESTIMATED_WRENCH)
    return wanted


class RecentStates:
    """Remembers serialized joint states of a node for some time, by a subscription of its own.

    One thread adds messages, any thread may ask.

    Args:
        node: whose topic ``joint_states`` this is.

    Attributes:
        window: how long [s]; nothing is remembered at 0.
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self.window = 0.0
        self._subscription: Any = None
        self._states: deque[tuple[int, bytes]] = deque(maxlen=MAX_STATES)

    def begin(self, window: float, qos: Any) -> None:
        """Remember the last seconds; 0 for none."""
        self.window = window
        if not window:
            self.end()
        elif self._subscription is None:
            clock = self._node.get_clock()
            self._subscription = self._node.create_subscription(
                JointState,
                "joint_states",
                lambda data: self.add(data, clock.now().nanoseconds),
                qos,
                raw=True,
            )

    def end(self) -> None:
        """Stop listening, and forget all."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None
            self._states.clear()

    def add(self, data: bytes, now: int) -> None:
        """Add a message that came now [ns], and forget those that are too old.

        Where time has jumped back, all are from the future.
        """
        states = self._states
        if states and now < states[-1][0]:
            states.clear()
        states.append((now, data))
        oldest = now - int(self.window * 1e9)
        while states[0][0] < oldest:
            states.popleft()

    def last(self, seconds: float = 0.0) -> list[bytes]:
        """Messages of the last seconds before the newest, in order; 0 for all there are."""
        states = list(self._states.copy())
        oldest = states[-1][0] - int(seconds * 1e9) if states and seconds else 0
        return [data for time, data in states if time >= oldest]
