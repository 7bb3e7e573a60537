"""A stream fed by hand: messages and times in, numbers out."""

import numpy as np

from rbda_ros import load_robot
from rbda_ros.control import native
from rbda_ros.control.settings import Settings, checked_settings
from rbda_ros.control.stream import Stream
from rbda_ros.control.topics import Input, Output

MS = 1_000_000
BEGIN = 1_700_000_000_000_000_000
JOINT = """
  <link name="{0}_arm"><inertial><origin xyz="{2} 0 0"/><mass value="{1}"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{0}" type="revolute"><parent link="base"/><child link="{0}_arm"/><axis xyz="0 1 0"/>
    <limit lower="-9" upper="9" effort="1000" velocity="100"/></joint>"""


def arms(*names, mass=0.0, reach=0.0, name="arms"):
    """A robot of joints side by side: inertia 1 kg m^2 about each, and ``mass`` at ``reach``."""
    joints = "".join(JOINT.format(joint, mass or 1e-9, reach) for joint in names)
    return load_robot(f'<robot name="{name}"><link name="base"/>{joints}</robot>')


def settings(**values):
    given = Settings()
    return checked_settings({name: values.get(name, getattr(given, name)) for name in vars(given)})


def joint_state(names, stamp, position=(), velocity=(), effort=()):
    fields = (np.asarray(x, float).tobytes() for x in (position, velocity, effort))
    return native.write_joint_state(list(names), stamp, *fields)


class Feed:
    """A stream of one robot; time stands still between messages."""

    def __init__(self, robot, background=None, **values):
        self.stream = Stream() if background is None else Stream(background)
        self.settings = settings(**values)
        self.robot = robot
        self.stream.use(robot, self.settings)
        self.now = self.steady = BEGIN

    def wait(self, milliseconds):
        self.now += int(milliseconds * MS)
        self.steady += int(milliseconds * MS)

    def set(self, **values):
        self.settings = settings(**(vars(self.settings) | values))
        self.stream.apply(self.settings)

    def states(self, position, velocity=None, names=None, age=0.0, **more):
        """Feed joint states; the efforts by topic."""
        names = self.robot.independent_joint_names if names is None else names
        velocity = np.zeros(len(names)) if velocity is None else velocity
        stamp = self.now - int(age * MS)
        data = joint_state(names, stamp, position, velocity, more.get("effort", ()))
        return self.feed(Input.JOINT_STATES, data)

    def command(self, names, age=0.0, **fields):
        """Feed joint commands, twice where the first has to wait for its kernel."""
        data = joint_state(names, self.now - int(age * MS), **fields)
        found = self.feed(Input.JOINT_COMMANDS, data)
        if not found and self.reason == "kernel not ready":
            found = self.feed(Input.JOINT_COMMANDS, data)
        return found

    def feed(self, topic, data):
        return by_topic(self.stream.feed(topic, data, self.now, self.steady))

    def tick(self):
        return by_topic(self.stream.tick(self.now, self.steady)[0])

    def stop(self):
        return by_topic(self.stream.stop(self.now, self.steady))

    @property
    def counts(self):
        self.stream.rejections.collect()
        return {str(reason): n for reason, n in self.stream.rejections.counts.items()}

    @property
    def reason(self):
        """Of the last rejection, in a word."""
        from rbda_ros.control.rejections import REASONS

        code = self.stream.machine.rejection()["code"]
        return str(REASONS[code - 1]) if code else ""

    @property
    def message(self):
        return self.stream.rejections.last_message


def by_topic(messages):
    """Efforts of messages by the name of their topic; of others than JointState, the numbers."""
    found = {}
    for topic, data in messages:
        name = topic.name.lower()
        if topic in (Output.EFFORT_COMMANDS, Output.POSITION_COMMANDS, Output.VELOCITY_COMMANDS):
            found[name] = np.frombuffer(data[20:])
        elif topic is Output.ESTIMATED_WRENCH:
            found[name] = np.frombuffer(data[-48:])
        else:
            found[name] = np.frombuffer(native.read_joint_state(data)[4])
    return found
