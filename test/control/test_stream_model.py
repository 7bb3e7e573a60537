"""The stream in C beside a readable model of all of it, on random scenarios."""

from functools import partial

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
FOUR_BAR = """<robot name="four_bar"><link name="base"/>
  <link name="hip_arm"><inertial><origin xyz="0.05 0 0"/><mass value="1"/>
    <inertia ixx="1e-3" iyy="2e-3" izz="2e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="knee_arm"><inertial><origin xyz="0.14 0 0"/><mass value="2"/>
    <inertia ixx="1e-3" iyy="9e-3" izz="9e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="foot_arm"><inertial><origin xyz="0.11 0 0"/><mass value="3"/>
    <inertia ixx="1e-3" iyy="6e-3" izz="6e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hip" type="continuous"><parent link="base"/><child link="hip_arm"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="knee" type="continuous"><parent link="hip_arm"/><child link="knee_arm"/>
    <origin xyz="0.1 0 0"/><axis xyz="0 1 0"/></joint>
  <joint name="foot" type="continuous"><parent link="base"/><child link="foot_arm"/>
    <origin xyz="0.3 0 0"/><axis xyz="0 1 0"/></joint></robot>"""
PIN = {
    "name": "pin",
    "type": "revolute",
    "predecessor": {"link": "knee_arm", "xyz": [0.28, 0.0, 0.0]},
    "successor": {"link": "foot_arm", "xyz": [0.22, 0.0, 0.0]},
    "axis": [0, 1, 0],
}
LINKAGE = load_robot(
    FOUR_BAR,
    {
        "constraints": [PIN],
        "assembly": {"hip": 2.0, "knee": -1.588, "foot": 1.968},
        "actuated_joints": ["hip"],
    },
)
"""A crank, a coupler and a rocker, whose dead points are at 0.62 and 3.96 rad of the crank."""
ROBOTS = (
    LINKAGE,
    robot("plain", "hip", "knee"),
    robot("heavy", "hip", "knee", mass=4.0),
    robot("geared", "hip", "knee", "motor", loops=GEAR),
    robot("floating", "hip", "foot", floating=True),
)
ARRAYS = (Output.EFFORT_COMMANDS, Output.POSITION_COMMANDS, Output.VELOCITY_COMMANDS)


def numbers(messages):
    """The numbers of messages, by topic."""
    found = {}
    for topic, data in messages:
        if topic in ARRAYS:
            found[topic.name.lower()] = np.frombuffer(data[20:])
        else:
            fields = b"".join(native.read_joint_state(data)[2:])
            found[topic.name.lower()] = np.frombuffer(fields)
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
        self.answered = self.commanded = 0

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
            "on_stale": ("nothing", "zero", "gravity", "damping"),
            "stale_hold_time": (0.02, 1.0),
            "measurement_tolerance": (0.0, 0.05),
            "command_joints": ([""], ["hip"]),
            "command_source": ("feedforward", "joint_commands"),
            "add_feedforward": (False, True),
            "stiffness": ("", "{hip: 20.0}"),
            "damping": ("", "{hip: 2.0}"),
            "publish_external_effort": (False, False, True),
            "observer_gain": (20.0, 100.0),
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
        steps = (
            (self.state,) * 12
            + (self.command,) * 4
            + (self.reference,) * 2
            + (self.wrench, self.base) * 2
        )
        steps += (self.tick,) * 3 + (self.garbage, self.apply, self.jump, self.swap, self.stop)
        for _ in range(STEPS):
            elapsed = int(self.rng.integers(1, 12) * MS) if self.chance(0.95) else 150 * MS
            self.wait(elapsed)
            self.pick(*steps)()

    def wait(self, elapsed):
        self.now += elapsed
        self.steady += elapsed

    def state(self):
        names = list(self.names_of_message())
        q = self.positions(names).tolist()
        if "hip" in names and "hip" in self.model.settings.joint_offsets:
            q[names.index("hip")] -= 0.2
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

    def command(self):
        names = list(self.names_of_message())
        fields = [self.positions(names), *self.rng.uniform(-1.0, 1.0, (2, len(names)))]
        fields = [x if self.chance(0.6) else np.zeros(0) for x in fields]
        if self.chance(0.05):
            fields = [np.full(len(x), np.nan) for x in fields]
        for _ in range(self.rng.integers(1, 4)):  # the first one may wait for its kernel
            self.wait(MS)
            stamp = self.now - int(self.pick(0, 0, 0, 0, 1, 3, 110) * MS)
            message = JointMessage(names, stamp, *fields)
            take = partial(self.model.take_command, message, self.now, self.steady)
            self.compare(Input.JOINT_COMMANDS, joint_state(names, stamp, *fields), take)

    def positions(self, names):
        """Of any joints; those of a linkage as they belong together, on its branch."""
        q = self.rng.uniform(-1.0, 1.0, len(names))
        if self.robot is LINKAGE:
            whole = LINKAGE.close({"hip": 2.0 + 0.5 * q[0]}, LINKAGE.neutral())
            entries = LINKAGE.coordinates.scalar_positions
            q = np.array([whole[entries[n]] if n in entries else 0.0 for n in names])
        return q

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
        counts = np.frombuffer(self.stream.machine.counts()["rejected"], np.int64).tolist()
        reason, expected = "", {}
        pending = self.model.take_pending(self.steady)
        self.model.begin(self.now)
        try:
            expected = dict(take() or {})
        except RejectedError as rejected:
            reason = rejected.args[0]
            expected = dict(rejected.args[1]) if len(rejected.args) > 1 else {}
            if topic in (Input.JOINT_STATES, Input.JOINT_COMMANDS):
                command = topic is Input.JOINT_COMMANDS
                expected |= self.model.zeros_after_rejection(self.steady, command=command)
        self.model.end_message()
        reason, self.model.aside = reason or self.model.aside, ""
        new = [str(REASONS[k]) for k, n in enumerate(counts[1:]) if n > self.counts.get(k, 0)]
        self.counts = dict(enumerate(counts[1:]))
        assert new == ([reason] if reason else []), (topic, self.model.settings)
        self.expect(found, pending | expected)
        self.answered += "feedforward" in expected and not reason
        self.commanded += "motor_commands" in expected and not reason

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
