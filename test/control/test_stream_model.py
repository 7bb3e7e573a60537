"""The stream in C beside a readable model of all of it, on random scenarios."""

import numpy as np
import pytest
from feeding import BEGIN, JOINT, MS, joint_state, settings
from stream_model import JointMessage, RejectedError, WholeStreamModel
from test_faults import trajectory

from rbda_ros import load_robot
from rbda_ros.control import native
from rbda_ros.control.rejections import REASONS
from rbda_ros.control.stream import Stream
from rbda_ros.control.topics import Input, Output
from rbda_ros.recordings.bags import typestore

STEPS = 60


def robot(name, *joints, mass=2.0, loops=None, floating=False):
    """Arms side by side, each with a mass at its end."""
    links = "".join(JOINT.format(joint, mass + k, 0.3) for k, joint in enumerate(joints))
    inertia = '<inertia ixx="1" iyy="2" izz="3" ixy="0" ixz="0" iyz="0"/>'
    body = f'<inertial><mass value="5"/>{inertia}</inertial>' if floating else ""
    text = f'<robot name="{name}"><link name="base">{body}</link>{links}</robot>'
    return load_robot(text, loops, floating_base=floating)


GEAR = {
    "constraints": [{"name": "gear", "type": "coupling", "terms": {"motor": 1.0, "knee": -6.0}}],
    "actuated_joints": ["hip", "motor"],
}
ROBOTS = (
    robot("plain", "hip", "knee"),
    robot("heavy", "hip", "knee", mass=4.0),
    robot("geared", "hip", "knee", "motor", loops=GEAR),
    robot("floating", "hip", "foot", floating=True),
)
TOPICS = {Output.FEEDFORWARD: "feedforward", Output.EFFORT_COMMANDS: "effort_commands"} | {
    Output.COMPLETED_STATES: "completed_states"
}


def numbers(messages):
    """The numbers of messages, by topic."""
    found = {}
    for topic, data in messages:
        if topic is Output.EFFORT_COMMANDS:
            found[TOPICS[topic]] = np.frombuffer(data[20:])
        else:
            found[TOPICS[topic]] = np.frombuffer(b"".join(native.read_joint_state(data)[2:]))
    return found


def stamped(types, stamp, frame):
    time = types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
    return types["std_msgs/msg/Header"](time, frame)


def odometry(stamp, pose, twist):
    store = typestore()
    types = store.types
    point, turn = types["geometry_msgs/msg/Point"], types["geometry_msgs/msg/Quaternion"]
    vector = types["geometry_msgs/msg/Vector3"]
    placed = types["geometry_msgs/msg/Pose"](point(*pose[:3]), turn(*pose[3:]))
    moving = types["geometry_msgs/msg/Twist"](vector(*twist[:3]), vector(*twist[3:]))
    message = types["nav_msgs/msg/Odometry"](
        stamped(types, stamp, "world"),
        "base",
        types["geometry_msgs/msg/PoseWithCovariance"](placed, np.zeros(36)),
        types["geometry_msgs/msg/TwistWithCovariance"](moving, np.zeros(36)),
    )
    return bytes(store.serialize_cdr(message, "nav_msgs/msg/Odometry"))


def wrench_message(link, wrench):
    store = typestore()
    types = store.types
    vector = types["geometry_msgs/msg/Vector3"]
    acting = types["geometry_msgs/msg/Wrench"](vector(*wrench[:3]), vector(*wrench[3:]))
    message = types["geometry_msgs/msg/WrenchStamped"](stamped(types, 0, link), acting)
    return bytes(store.serialize_cdr(message, "geometry_msgs/msg/WrenchStamped"))


class Scenario:
    """Random steps, taken by the stream in C and by the model at once."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.robot = ROBOTS[self.rng.integers(len(ROBOTS))]
        self.values = {}
        chosen = self.random_settings()
        self.stream, self.model = Stream(), WholeStreamModel(self.robot, chosen)
        self.stream.use(self.robot, chosen)
        self.now, self.steady = BEGIN, 10**12
        self.counts = {}
        self.answered = 0

    def chance(self, probability):
        return self.rng.random() < probability

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def random_settings(self):
        """Change some parameters, and keep the others."""
        choices = {
            "velocity_source": ("message", "message", "differentiate"),
            "velocity_cutoff": (20.0, 100.0),
            "acceleration_source": ("zero", "reference", "estimate"),
            "acceleration_cutoff": (10.0, 50.0),
            "external_wrench": (False, False, True),
            "terms": (["gravity"], ["gravity", "coriolis", "inertial"], ["inertial"]),
            "saturate": (False, True),
            "effort_limits": ("", "{hip: 3.0}"),
            "effort_rate_limit": (0.0, 50.0),
            "ramp_in": (0.0, 0.05),
            "on_refusal": ("silence", "zero"),
            "on_stale": ("nothing", "zero"),
            "measurement_tolerance": (0.0, 0.05),
            "command_joints": ([""], ["hip"]),
            "publish_joint_states": ("auto", "always", "never"),
            "joint_offsets": ("", "{hip: 0.2}"),
            "joint_state_timeout": (0.0, 0.1, 0.1, 0.03),
        }
        for name, values in choices.items():
            if name not in self.values or self.chance(0.2):
                self.values[name] = self.pick(*values)
        return settings(**self.values)

    # Steps.

    def run(self):
        steps = (self.state,) * 12 + (self.reference,) * 2 + (self.wrench, self.base) * 2
        steps += (self.tick,) * 3 + (self.garbage, self.apply, self.jump, self.swap, self.stop)
        for _ in range(STEPS):
            elapsed = int(self.rng.integers(1, 12) * MS) if self.chance(0.95) else 150 * MS
            self.now += elapsed
            self.steady += elapsed
            self.pick(*steps)()

    def state(self):
        names = list(self.names_of_message())
        q = self.rng.uniform(-1.0, 1.0, len(names)).tolist()
        speed = self.rng.uniform(-1.0, 1.0, len(names)).tolist()
        if "knee" in names and "motor" in names and self.chance(0.9):
            knee, motor = names.index("knee"), names.index("motor")
            q[motor] = 6.0 * q[knee] + self.rng.uniform(-0.4, 0.4)
            speed[motor] = 6.0 * speed[knee]
        if self.chance(0.06):
            q[self.rng.integers(len(q))] = np.nan
        if self.chance(0.06):
            speed[self.rng.integers(len(speed))] = np.nan
        ages = (0, 1, 2, 3, 5, 30, 90, 110, -20, -120) if self.chance(0.3) else (0, 1)
        stamp = self.now - int(self.pick(*ages) * MS)
        if self.chance(0.03):
            stamp = 0
        effort = self.pick((), self.rng.uniform(-1, 1, len(names)), np.full(len(names), np.nan))
        speed = () if self.chance(0.15) else speed
        message = JointMessage(names, stamp, q, speed, effort)
        data = joint_state(names, stamp, q, speed, effort)
        moment = self.now, self.steady
        self.compare(
            Input.JOINT_STATES, data, lambda: self.model.take_joint_state(message, *moment)
        )

    def names_of_message(self):
        joints = self.robot.joint_names
        some = [name for name in joints if self.chance(0.6)] or joints[:1]
        usual = self.robot.independent_joint_names, self.robot.actuated_joint_names, joints
        names = self.pick(*usual, *usual, some)
        if self.chance(0.1):
            names = (*names, "gripper")
        if self.chance(0.03):
            names = ("gripper", "wheel")
        return self.rng.permutation(names) if self.chance(0.05) else names

    def reference(self):
        names = self.names_of_message()
        values = self.rng.uniform(-2.0, 2.0, len(names))
        if self.chance(0.05):
            values[0] = np.nan
        given = dict(zip(names, values.tolist(), strict=True))
        data = trajectory(names, values)
        self.compare(Input.REFERENCE, data, lambda: self.model.take_reference(given, self.now))

    def base(self):
        pose, twist = self.rng.normal(size=7), self.rng.normal(size=6)
        pose[3:] /= np.linalg.norm(pose[3:]) * self.pick(1.0, 1.0, 1.0, 1.01)
        if self.chance(0.05):
            twist[2] = np.inf
        stamp = self.now - int(self.pick(0, 0, 1, 200) * MS)
        data = odometry(stamp, pose, twist)
        self.compare(
            Input.BASE_STATE,
            data,
            lambda: self.model.take_base_state(pose, twist, stamp, self.now),
        )

    def wrench(self):
        link, wrench = self.pick("hip_arm", "hip_arm", "base", "nothing"), self.rng.normal(size=6)
        if self.chance(0.05):
            wrench[0] = np.nan
        data = wrench_message(link, wrench)
        self.compare(
            Input.EXTERNAL_WRENCH, data, lambda: self.model.take_wrench(link, wrench, self.now)
        )

    def garbage(self):
        """Bytes that are no message: one cut short, or any."""
        topic = self.pick(*Input)
        names = self.robot.joint_names
        data = joint_state(names, self.now, np.zeros(len(names)))[:-4]
        if topic not in (Input.JOINT_STATES, Input.JOINT_COMMANDS) or self.chance(0.5):
            data = self.rng.bytes(self.rng.integers(0, 12))

        def reject():
            raise RejectedError("not readable")

        self.compare(topic, data, reject)

    def apply(self):
        chosen = self.random_settings()
        self.stream.apply(chosen)
        self.model.apply(chosen)

    def jump(self):
        """The clock of stamps jumps; the steady one does not."""
        self.now += int(self.pick(-1000, -5, 500) * MS)

    def swap(self):
        self.robot = ROBOTS[self.rng.integers(len(ROBOTS))]
        if self.robot is self.model.robot:
            return
        self.stream.use(self.robot, self.model.settings)
        self.model.use(self.robot)

    def tick(self):
        found, _ = self.stream.tick(self.now, self.steady)
        self.expect(numbers(found), self.model.tick(self.steady))

    def stop(self):
        found = self.stream.stop(self.now, self.steady)
        self.expect(numbers(found), self.model.stop(self.steady))

    # Comparison.

    def compare(self, topic, data, take):
        found = numbers(self.stream.feed(topic, data, self.now, self.steady))
        counts = self.stream.machine.counts()["rejected"]
        reason, expected = "", {}
        pending = self.model.take_pending(self.steady)
        self.model.begin(self.now)
        try:
            expected = dict(take() or {})
        except RejectedError as rejected:
            reason = rejected.args[0]
            expected = dict(rejected.args[1]) if len(rejected.args) > 1 else {}
            if topic is Input.JOINT_STATES:
                expected |= self.model.zeros_after_rejection(reason, self.steady)
        self.model.end_message()
        new = [str(REASONS[k]) for k, n in enumerate(counts[1:]) if n > self.counts.get(k, 0)]
        self.counts = dict(enumerate(counts[1:]))
        assert new == ([reason] if reason else []), (topic, self.model.settings)
        self.expect(found, pending | expected)
        self.answered += "feedforward" in found and not reason

    def expect(self, found, expected):
        assert found.keys() == expected.keys()
        for topic, values in expected.items():
            np.testing.assert_allclose(found[topic], values, 1e-8, 1e-8, err_msg=topic)


def play(seeds):
    """How many states were answered, all together."""
    answered = 0
    for seed in seeds:
        scenario = Scenario(seed)
        try:
            scenario.run()
        except AssertionError as error:
            raise AssertionError(f"scenario {seed}: {error}") from error
        answered += scenario.answered
    return answered


@pytest.mark.parametrize("block", range(4))
def test_the_stream_does_what_the_model_does(block):
    assert play(range(60 * block, 60 * (block + 1))) > 120


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(10))
def test_the_stream_does_what_the_model_does_in_thousands_of_scenarios(block):
    assert play(range(1000 + 500 * block, 1500 + 500 * block)) > 500
