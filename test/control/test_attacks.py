"""Attacks on the promises of the gate, each fed to the state machine by hand."""

import numpy as np
import pytest
from feeding import JOINT, MS, Feed, arms, by_topic, joint_state, settings
from mechanism_table import MECHANISMS
from test_faults import LEG, TORQUE, _branches, positions, trajectory

from rbda_ros import Payload, load_robot
from rbda_ros.control import native
from rbda_ros.control.settings import ParameterError
from rbda_ros.control.topics import Input, Output
from rbda_ros.recordings.bags import typestore

EFFORT_TOPICS = {"feedforward", "effort_commands", "motor_commands"}


@pytest.fixture(scope="module")
def arm():
    return arms("hip", mass=1.0, reach=1.0)


def efforts_of(messages):
    """Efforts of all messages, in their order, by the name of the topic."""
    found = {}
    for topic, data in messages:
        for name, efforts in by_topic([(topic, data)]).items():
            if name in EFFORT_TOPICS:
                found.setdefault(name, []).append(efforts.tolist())
    return found


# When inputs stop.


def hold(feed, milliseconds, each=5):
    """Efforts that the watchdog sends in some time: (time since, effort)."""
    begin, sent = feed.steady, []
    while feed.steady < begin + milliseconds * MS:
        feed.wait(each)
        for efforts in efforts_of(feed.stream.tick(feed.now, feed.steady)[0]).get(
            "feedforward", []
        ):
            sent.append(((feed.steady - begin) // MS, efforts[0]))
    return sent


def test_efforts_that_hold_a_pose_obey_rate_and_limit(arm):
    """They approach the pose's effort at the rate limit; a lower limit counts at once."""
    feed = Feed(arm, acceleration_source="reference", on_stale="gravity", stale_hold_time=1.0)
    inertia, wanted = 2.0, 3.0
    for _ in range(2):  # the first waits for its kernel
        feed.feed(Input.REFERENCE, trajectory(["hip"], [(wanted + TORQUE) / inertia]))
        sent = feed.states([0.0])
    assert sent["feedforward"] == pytest.approx(wanted)
    feed.set(effort_rate_limit=10.0)
    last, before = wanted, 0
    for time, effort in hold(feed, 400):
        assert effort < last
        assert last - effort <= 10.0 * min((time - before) * 1e-3, 0.1) + 1e-9
        last, before = effort, time
    assert last < wanted - 2.0
    feed.set(effort_limits="{hip: 0.1}")
    feed.wait(1)
    assert abs(feed.tick()["feedforward"][0]) == pytest.approx(0.1)
    ended = hold(feed, 1000)
    assert ended[-1][1] == 0.0 and all(abs(effort) <= 0.1 + 1e-12 for _, effort in ended)
    assert not feed.tick()


def test_efforts_that_hold_a_pose_are_no_more_than_the_ramp_gives(arm):
    feed = Feed(arm, on_stale="gravity", ramp_in=10.0)
    feed.states([0.0])
    feed.wait(50)
    feed.states([0.0])
    for time, effort in hold(feed, 400):
        assert abs(effort) <= TORQUE * (50 + time) / 10_000 + 1e-9


@pytest.mark.parametrize("change", ({"on_stale": "nothing"}, {"joint_state_timeout": 0.0}))
def test_a_hold_ends_whatever_is_changed_meanwhile(arm, change):
    feed = Feed(arm, on_stale="gravity", stale_hold_time=0.3)
    feed.states([0.0])
    assert abs(hold(feed, 150)[0][1]) == pytest.approx(TORQUE)
    feed.set(**change)
    assert hold(feed, 400)[-1][1] == 0.0


def test_damping_goes_by_no_velocity_of_another_time(arm):
    """The velocity of the last state is unknown if nothing asked for it then."""
    feed = Feed(arm, damping="{hip: 2.0}", on_stale="damping")
    feed.states([0.0], [3.0])
    assert hold(feed, 150)[0][1] == pytest.approx(-6.0)
    feed.set(on_stale="zero")
    feed.states([0.0], [-1.0])
    feed.set(on_stale="damping")
    assert hold(feed, 150)[0][1] == 0.0
    feed.set(damping="{hip: 1.0e+300}")
    feed.states([0.0], [1e300])
    if abs(feed.states([0.0], [0.0])["feedforward"][0]):
        feed.states([0.0], [1e10])
    assert all(np.isfinite(effort) for _, effort in hold(feed, 150))


def test_commands_without_efforts_keep_no_effort_alive(arm):
    """A controller of efforts would go on with the last one while positions are commanded."""
    feed = Feed(arm, command_source="joint_commands", command_joints=("hip",))
    feed.states([0.0])
    assert feed.command(["hip"], effort=[5.0])["effort_commands"] == [5.0]
    sent = {}
    for _ in range(30):
        feed.wait(10)
        feed.states([0.0])
        feed.command(["hip"], position=[0.0])
        sent |= feed.tick()
    assert sent["effort_commands"] == [0.0] and sent["motor_commands"] == [0.0]


def test_with_on_stale_nothing_nothing_is_sent(arm):
    feed = Feed(arm, on_stale="nothing")
    feed.states([0.0])
    assert not hold(feed, 500)
    assert not feed.stop()


def test_no_effort_stands_for_a_state_that_was_forgotten(arm):
    """The clock of stamps jumped back: where the robot is, nobody has said since then."""
    feed = Feed(arm, on_stale="gravity")
    feed.states([0.0])
    feed.now -= 5000 * MS
    assert not feed.states([0.0], names=["another_hip"])
    assert [effort for _, effort in hold(feed, 500)] == [0.0]


def test_names_of_others_end_no_stream_after_a_rejection(arm):
    feed = Feed(arm, on_refusal="zero")
    feed.states([0.0])
    assert not feed.states([0.0], names=["another_hip"]) and feed.reason == "misnamed joints"
    assert feed.states([np.nan])["feedforward"] == [0.0]


# Settings and models that change while efforts stand.


@pytest.mark.parametrize("joints", ((), ("knee",), ("knee", "hip")))
def test_an_array_that_changes_its_joints_ends_first(joints):
    robot = arms("hip", "knee", mass=1.0, reach=1.0)
    feed = Feed(robot, command_joints=("hip", "knee"))
    assert feed.states([0.0, 1.0])["effort_commands"].all()
    feed.set(command_joints=joints)
    feed.wait(1)
    messages = feed.stream.feed(
        Input.JOINT_STATES, joint_state(robot.joint_names, feed.now, [0.0, 1.0], [0.0, 0.0]),
        feed.now, feed.steady,
    )  # fmt: skip
    first, *rest = efforts_of(messages)["effort_commands"]
    assert first == [0.0, 0.0]
    assert [len(each) for each in rest] == [len(joints)] * bool(joints)
    assert len(efforts_of(messages)["feedforward"]) == 1  # its motors are the same


def test_motors_that_a_new_robot_lacks_get_zeros_before_anything_else():
    feed = Feed(arms("hip", "knee", mass=1.0, reach=1.0), effort_rate_limit=100.0)
    for _ in range(3):
        feed.wait(10)
        feed.states([0.0, 1.0])
    feed.robot = arms("hip", "ankle", mass=1.0, reach=1.0)
    feed.stream.use(feed.robot, feed.settings)
    feed.wait(10)
    data = joint_state(feed.robot.joint_names, feed.now, [0.0, 0.0], [0.0, 0.0])
    messages = feed.stream.feed(Input.JOINT_STATES, data, feed.now, feed.steady)
    sent = [native.read_joint_state(d) for t, d in messages if t is Output.FEEDFORWARD]
    names, _, _, _, effort = sent[0]
    assert names == ["hip", "knee"] and not np.frombuffer(effort).any()
    assert sent[1][0] == ["hip", "ankle"]
    assert not np.frombuffer(sent[1][4]).any()  # no time has passed since the zeros went out
    feed.wait(1)
    assert np.abs(feed.states([0.0, 0.0])["feedforward"]).max() == pytest.approx(0.1)


def test_the_same_motors_go_on_from_where_they_were(arm):
    """Neither a renamed robot nor a load makes the watchdog send zeros, nor an effort jump."""
    feed = Feed(arm, effort_rate_limit=1000.0)
    for _ in range(30):
        feed.wait(1)
        last = feed.states([0.0])["feedforward"][0]
    assert last == pytest.approx(-TORQUE)
    feed.set(effort_rate_limit=1.0)
    for other in (arms("hip", mass=1.0, reach=1.0, name="b"), arms("hip", mass=2.0, reach=1.0)):
        feed.stream.use(other, feed.settings)
        assert not feed.tick()
        feed.wait(1)
        sent = feed.states([0.0])["feedforward"][0]
        assert abs(sent - last) <= 1e-3 + 1e-12
        last = sent


def test_the_same_joints_under_another_name_begin_anew():
    """From zero, with a new ramp, and with nothing that was measured before."""
    robot, other = (arms("hip", "knee", mass=1.0, reach=1.0, name=name) for name in ("a", "b"))
    feed = Feed(robot, ramp_in=0.1)
    for _ in range(3):
        feed.wait(60)
        sent = feed.states([0.0, 0.0])["feedforward"]
    assert sent == pytest.approx(-TORQUE)
    feed.wait(10)
    assert not feed.states([0.0], names=["hip"])
    feed.stream.use(other, feed.settings)
    for _ in range(3):  # the first ones wait for what is prepared
        assert not feed.states([0.0], names=["knee"])
    assert feed.reason == "joints missing"
    feed.wait(10)
    assert not feed.states([0.0, 0.0])["feedforward"].any()


@pytest.mark.parametrize("stiffness", ["{hip: 20.0}", ""])
def test_gains_that_change_while_a_model_is_prepared_are_those_in_force(arm, stiffness):
    feed = Feed(arm, stiffness="{hip: 10.0}")
    feed.states([0.0])
    assert feed.command(["hip"], position=[0.1])["motor_commands"] == pytest.approx(1.0)
    loaded = arm.with_payloads({"box": Payload("hip_arm", 1.0)})
    prepared = feed.stream.prepare(loaded, feed.settings)
    feed.set(stiffness=stiffness)
    feed.stream.use(loaded, feed.settings, prepared)
    feed.wait(10)
    feed.states([0.0])
    commands = feed.command(["hip"], position=[0.1])["motor_commands"]
    assert commands == pytest.approx([2.0] if stiffness else [])


def test_another_source_of_the_array_begins_where_the_last_one_was(arm):
    feed = Feed(arm, command_joints=("hip",))
    last = feed.states([0.0])["effort_commands"][0]
    feed.set(effort_rate_limit=1.0, command_source="joint_commands")
    for _ in range(20):
        feed.wait(1)
        assert "effort_commands" not in feed.states([0.0])
        sent = feed.command(["hip"], effort=[5.0])["effort_commands"][0]
        assert abs(sent - last) <= 1e-3 + 1e-12
        last = sent
    feed.set(command_source="feedforward")
    feed.wait(1)
    assert abs(feed.states([0.0])["effort_commands"][0] - last) <= 1e-3 + 1e-12


def test_another_assembly_is_another_branch():
    """The same joints with an assembly on the other branch: loops are closed from there."""
    mechanism = MECHANISMS["geared_four_bar"]
    robot = load_robot(mechanism.urdf, mechanism.loops)
    (y,) = robot.independent_joint_names
    first, second = _branches(robot)[:2]
    nearest = robot.close(positions(robot, second, [y]))  # from the assembly, up to whole turns
    if np.allclose(np.exp(1j * nearest), np.exp(1j * second)):
        first, second = second, first
    loops = mechanism.loops.read_text().split("assembly:")[0]
    names = robot.joint_names
    given = dict(zip(names, map(float, positions(robot, second, names)), strict=True))
    other = load_robot(mechanism.urdf, loops + f"assembly: {given}\n")
    feed = Feed(robot)
    feed.states(positions(robot, first, [y]), [0.0])
    feed.stream.use(other, feed.settings)
    feed.wait(1)
    sent = feed.states(positions(robot, second, [y]), [0.0], [y])["feedforward"]
    tau = robot.inverse_dynamics(second, np.zeros(1), np.zeros(1))
    np.testing.assert_allclose(sent, robot.actuator_efforts(second, tau), rtol=1e-6, atol=1e-9)


# Freshness, by the inputs' own time.


def reference(accelerations, stamp):
    data = bytearray(trajectory(["hip"], accelerations))
    data[4:12] = np.array(divmod(stamp, 10**9), "<u4").tobytes()
    return bytes(data)


@pytest.mark.parametrize("age", (500, -500))
def test_references_are_as_old_as_their_stamp(arm, age):
    feed = Feed(arm, acceleration_source="reference")
    for _ in range(2):
        feed.feed(Input.REFERENCE, reference([1.0], feed.now))
        assert feed.states([0.0]) or feed.reason == "kernel not ready"
    feed.wait(60)
    feed.feed(Input.REFERENCE, reference([9.0], feed.now - age * MS))
    assert feed.reason == "stale" and "reference is" in feed.message
    assert feed.states([0.0])["feedforward"] == pytest.approx(2.0 - TORQUE)  # of the first
    feed.wait(60)
    feed.feed(Input.REFERENCE, reference([9.0], feed.now - age * MS))
    assert not feed.states([0.0]) and feed.reason == "no fresh reference"


def test_references_without_a_stamp_follow_each_other_as_they_arrive(arm):
    """A clock that is corrected by a millisecond has not jumped."""
    feed = Feed(arm, acceleration_source="reference")
    for _ in range(2):  # the first waits for its kernel
        feed.feed(Input.REFERENCE, trajectory(["hip"], [1.0]))
        feed.states([0.0])
    feed.now -= MS
    feed.feed(Input.REFERENCE, trajectory(["hip"], [2.0]))
    sent = feed.states([0.0], age=-1.0)["feedforward"]
    assert sent == pytest.approx(2.0 * 2.0 - TORQUE)


def odometry(stamp, height=0.0, spin=0.0):
    store = typestore()
    types = store.types

    def make(name, *fields):
        return types[name](*fields)

    vector, covariance = "geometry_msgs/msg/Vector3", np.zeros(36)
    header = make(
        "std_msgs/msg/Header", make("builtin_interfaces/msg/Time", *divmod(stamp, 10**9)), "world"
    )
    pose = make(
        "geometry_msgs/msg/Pose",
        make("geometry_msgs/msg/Point", 0.0, 0.0, height),
        make("geometry_msgs/msg/Quaternion", 0.0, 0.0, 0.0, 1.0),
    )
    twist = make(
        "geometry_msgs/msg/Twist", make(vector, 0.0, 0.0, 0.0), make(vector, 0.0, spin, 0.0)
    )
    message = make(
        "nav_msgs/msg/Odometry",
        header,
        "base",
        make("geometry_msgs/msg/PoseWithCovariance", pose, covariance),
        make("geometry_msgs/msg/TwistWithCovariance", twist, covariance),
    )
    return bytes(store.serialize_cdr(message, "nav_msgs/msg/Odometry"))


def test_a_late_base_state_replaces_no_newer_one():
    robot = load_robot(*LEG, floating_base=True)
    feed = Feed(robot)
    q = robot.close(robot.independent_position(robot.tree.home))
    names = robot.actuated_joint_names
    at = positions(robot, q, names)

    def states():
        found = feed.states(at, np.zeros(len(names)), names)
        return found or feed.states(at, np.zeros(len(names)), names)

    feed.feed(Input.BASE_STATE, odometry(feed.now, spin=1.0))
    wanted = states()["feedforward"]
    feed.wait(10)
    feed.feed(Input.BASE_STATE, odometry(feed.now - 20 * MS, spin=5.0))
    assert feed.reason == "out of order"
    feed.feed(Input.BASE_STATE, odometry(feed.now - 500 * MS, spin=5.0))
    assert feed.reason == "stale"
    np.testing.assert_allclose(states()["feedforward"], wanted, atol=1e-12)


def test_a_command_of_others_delays_none_of_ours(arm):
    """A command that is rejected for its names does not count as the newest."""
    feed = Feed(arm)
    feed.states([0.0])
    feed.feed(Input.JOINT_COMMANDS, joint_state(["other"], feed.now + 90 * MS, effort=[1.0]))
    assert feed.reason == "misnamed joints"
    assert feed.command(["hip"], effort=[1.0])["motor_commands"] == [1.0]


def test_messages_before_the_last_one_are_rejected(arm):
    feed = Feed(arm)
    for age in (0, 20):
        sent = feed.states([0.0], age=age)
        commanded = feed.command(["hip"], age=age, effort=[1.0])
        assert bool(sent) == bool(commanded) == (age == 0)
    assert feed.counts["out of order"] == 2


@pytest.mark.parametrize("stamp", (0, -5 * 10**9, 1, 2**31 * 10**9 - 1, -(2**31) * 10**9))
def test_stamps_that_no_clock_has_are_stale(arm, stamp):
    feed = Feed(arm)
    feed.states([0.0])
    for topic, fields in (
        (Input.JOINT_STATES, {"position": [0.0], "velocity": [0.0]}),
        (Input.JOINT_COMMANDS, {"effort": [1.0]}),
    ):
        assert not feed.feed(topic, joint_state(["hip"], stamp, **fields))
        assert feed.reason == "stale"
    feed.wait(1)
    assert feed.states([0.0])  # and they change nothing


@pytest.mark.parametrize("field", ("position", "velocity", "effort"))
def test_commands_have_one_number_for_each_joint(field):
    feed = Feed(arms("hip", "knee", mass=1.0, reach=1.0))
    feed.states([0.0, 0.0])
    assert feed.command(
        ["hip", "knee"], position=[0.0, 0.0], velocity=[0.0, 0.0], effort=[1.0, 2.0]
    )
    types = typestore().types
    fields = dict.fromkeys(("position", "velocity", "effort"), np.zeros(2)) | {field: np.ones(1)}
    stamp = types["builtin_interfaces/msg/Time"](*divmod(feed.now, 10**9))
    header = types["std_msgs/msg/Header"](stamp, "")
    message = types["sensor_msgs/msg/JointState"](header, ["hip", "knee"], **fields)
    data = bytes(typestore().serialize_cdr(message, "sensor_msgs/msg/JointState"))
    assert not feed.feed(Input.JOINT_COMMANDS, data)
    assert feed.counts["wrong size"] == 1


def test_a_joint_named_twice_is_rejected_in_any_order():
    robot = arms("hip", "knee", mass=1.0, reach=1.0)
    feed = Feed(robot)
    for names in (["hip", "hip"], ["hip", "knee", "hip"], ["other", "knee", "hip", "other"]):
        feed.wait(1)
        still = np.zeros(len(names))
        assert not feed.states(still, still, names) and feed.reason == "misnamed joints"
    for names, at in ((["hip", "knee"], [0.0, 1.0]), (["knee", "hip"], [1.0, 0.0])):
        feed.wait(1)
        found = feed.states(at, [0.0, 0.0], names)["feedforward"]
        np.testing.assert_allclose(found, [-TORQUE, -TORQUE * np.cos(1.0)])


# Numbers that no parameter may have.


@pytest.mark.parametrize("value", ("nan", ".nan", ".inf", "-.inf", "-1.0", "1e999"))
@pytest.mark.parametrize("name", ("effort_limits", "stiffness", "damping"))
def test_no_limit_or_gain_is_other_than_a_number(arm, name, value):
    feed = Feed(arm)
    with pytest.raises(ParameterError, match=name):
        feed.set(**{name: f"{{hip: {value}}}"})


@pytest.mark.parametrize("value", (np.nan, np.inf, -np.inf))
@pytest.mark.parametrize(
    "name", ("effort_rate_limit", "ramp_in", "joint_state_timeout", "stale_hold_time",
             "measurement_tolerance", "velocity_cutoff", "observer_gain"),
)  # fmt: skip
def test_no_setting_is_infinite(arm, name, value):
    with pytest.raises(ParameterError, match=name):
        Feed(arm, **{name: float(value)})


# What others say, and what is said again.


def framed(names, stamp, frame=""):
    """A joint state in a frame; at rest."""
    types = typestore().types
    header = types["std_msgs/msg/Header"](
        types["builtin_interfaces/msg/Time"](*divmod(stamp, 10**9)), frame
    )
    still = np.zeros(len(names))
    message = types["sensor_msgs/msg/JointState"](header, list(names), still, still, still[:0])
    return bytes(typestore().serialize_cdr(message, "sensor_msgs/msg/JointState"))


@pytest.mark.parametrize(
    ("names", "frame"),
    ((["hip", "knee"], "b"), (["knee", "hip"], "a"), (["hip", "knee", "gripper"], "a")),
)
@pytest.mark.parametrize("others", (0, 150))
def test_a_late_state_of_the_same_joints_is_rejected_in_any_form(names, frame, others):
    """A second driver, or a recording, in another frame or order, or with other joints beside."""
    feed = Feed(arms("hip", "knee", mass=1.0, reach=1.0))
    for age, known in ((40, (names, frame)), (30, (["hip", "knee"], "a"))):
        feed.now += 10 * MS
        assert feed.feed(Input.JOINT_STATES, framed(known[0], feed.now - age * MS, known[1]))
    feed.wait(20)
    assert feed.feed(Input.JOINT_STATES, framed(["hip", "knee"], feed.now, "a"))
    for k in range(others):
        feed.feed(Input.JOINT_STATES, framed([f"other_{k}"], feed.now))
    late = feed.now - 10 * MS
    assert not feed.feed(Input.JOINT_STATES, framed(names, late, frame))
    assert feed.reason == "out of order"
    feed.wait(1)
    assert feed.feed(Input.JOINT_STATES, framed(names, feed.now, frame))


def test_a_form_that_is_new_begins_at_the_last_stamp():
    feed = Feed(arms("hip", "knee", mass=1.0, reach=1.0))
    assert feed.feed(Input.JOINT_STATES, framed(["hip", "knee"], feed.now, "a"))
    assert not feed.feed(Input.JOINT_STATES, framed(["hip", "knee"], feed.now - MS, "b"))
    assert feed.reason == "out of order"


@pytest.mark.parametrize("age", (0, 500))
def test_no_message_of_others_stops_ours(arm, age):
    """Whatever is wrong with it: another robot's driver may be late, too."""
    feed = Feed(arm, on_refusal="zero")
    feed.states([0.0])
    feed.command(["hip"], effort=[1.0])
    for names in (["another_hip"], ["another_hip", "another_hip"], []):
        still = np.zeros(len(names))
        assert not feed.states(still, still, names, age=age) and feed.reason == "misnamed joints"
        assert not feed.command(names, age=age, effort=still)
        assert feed.reason == "misnamed joints"


def test_messages_that_misname_ours_end_the_stream(arm):
    """They are from our own driver or controller, which has an error."""
    feed = Feed(arm, on_refusal="zero")
    feed.states([0.0])
    assert feed.states([0.0, 0.0], names=["hip", "hip"])["feedforward"] == [0.0]
    feed.command(["hip"], effort=[1.0])
    sent = feed.command(["hip", "hop"], effort=[1.0, 1.0])
    assert sent["motor_commands"] == [0.0] and feed.reason == "misnamed joints"


# Velocities of motors: a drive goes on with the last one.


def velocities_of(messages):
    """Velocities in all messages, in their order, by topic."""
    found = {}
    for topic, data in messages:
        if topic is Output.MOTOR_COMMANDS:
            numbers = np.frombuffer(native.read_joint_state(data)[3])
        elif topic is Output.VELOCITY_COMMANDS:
            numbers = np.frombuffer(data[20:])
        else:
            continue
        found.setdefault(topic.name.lower(), []).append(numbers.tolist())
    return found


class Moving(Feed):
    """One joint, commanded to move."""

    def __init__(self, robot, **values):
        values = {"command_source": "joint_commands", "command_joints": ("hip",)} | values
        super().__init__(robot, **values)
        self.states([0.0])
        assert self.move(velocity=[3.0]) == {
            "motor_commands": [[3.0]],
            "velocity_commands": [[3.0]],
        }

    def move(self, **fields):
        for _ in range(2):  # the first waits for its kernel
            data = joint_state(["hip"], self.now, **fields)
            messages = self.stream.feed(Input.JOINT_COMMANDS, data, self.now, self.steady)
            if self.reason != "kernel not ready" or messages:
                break
        return velocities_of(messages)

    def due(self):
        return velocities_of(self.stream.tick(self.now, self.steady)[0])


STILL = {"motor_commands": [[0.0]], "velocity_commands": [[0.0]]}


@pytest.mark.parametrize("on_stale", ("zero", "gravity", "damping", "nothing"))
def test_no_velocity_stands_when_commands_stop(arm, on_stale):
    feed = Moving(arm, on_stale=on_stale)
    sent = {}
    for _ in range(30):
        feed.wait(10)
        feed.states([0.0])  # states alone keep no velocity alive
        for topic, numbers in feed.due().items():
            sent.setdefault(topic, []).extend(each for each in numbers if each)
    assert sent == ({} if on_stale == "nothing" else STILL)


def test_velocities_go_on_while_commands_come(arm):
    feed = Moving(arm)
    for _ in range(30):
        feed.wait(10)
        assert not feed.due()
        feed.states([0.0])
        assert feed.move(velocity=[3.0])["velocity_commands"] == [[3.0]]
    _, due = feed.stream.tick(feed.now, feed.steady)
    assert due == feed.steady + 100 * MS  # the watchdog looks again in time


def test_a_position_keeps_no_velocity_alive(arm):
    feed = Moving(arm)
    sent = {}
    for _ in range(12):
        feed.wait(10)
        feed.states([0.0])
        feed.move(position=[0.0])
        sent |= feed.due()
    assert sent == STILL


def test_efforts_and_velocities_end_in_one_message(arm):
    feed = Moving(arm)
    feed.move(velocity=[3.0], effort=[5.0])
    feed.wait(101)
    messages, _ = feed.stream.tick(feed.now, feed.steady)
    ends = [native.read_joint_state(d) for t, d in messages if t is Output.MOTOR_COMMANDS]
    assert [[np.frombuffer(x).tolist() for x in end[2:]] for end in ends] == [[[], [0.0], [0.0]]]


@pytest.mark.parametrize("on_stale", ("zero", "nothing"))
def test_no_velocity_stands_after_the_stop(arm, on_stale):
    feed = Moving(arm, on_stale=on_stale)
    sent = velocities_of(feed.stream.stop(feed.now, feed.steady))
    assert sent == ({} if on_stale == "nothing" else STILL)


@pytest.mark.parametrize("on_refusal", ("zero", "silence"))
def test_no_velocity_stands_after_a_rejection(arm, on_refusal):
    feed = Moving(arm, on_refusal=on_refusal)
    assert feed.move(velocity=[np.nan]) == (STILL if on_refusal == "zero" else {})


@pytest.mark.parametrize(
    ("change", "ended"),
    (
        ({"command_source": "feedforward"}, ["velocity_commands"]),
        ({"command_joints": ()}, ["velocity_commands"]),
        ({"effort_rate_limit": 1.0}, []),
    ),
)
def test_no_velocity_stays_with_an_array_that_is_given_up(arm, change, ended):
    feed = Moving(arm, on_stale="nothing")
    feed.set(**change)
    assert feed.due() == {topic: [[0.0]] for topic in ended}


def test_a_robot_with_other_motors_ends_velocities(arm):
    feed = Moving(arm)
    feed.stream.apply(settings(**(vars(feed.settings) | {"command_joints": ()})))
    feed.due()
    feed.stream.use(arms("knee", mass=1.0, reach=1.0), settings())
    assert feed.due() == {"motor_commands": [[0.0]]}


def test_no_velocity_is_infinite():
    """The motor turns faster than its joint: beyond what a number can say."""
    loops = {
        "constraints": [{"name": "g", "type": "coupling", "terms": {"motor": 1.0, "knee": -1e3}}],
        "actuated_joints": ["motor"],
    }
    joints = "".join(JOINT.format(name, 1.0, 1.0) for name in ("knee", "motor"))
    feed = Feed(load_robot(f'<robot name="geared"><link name="base"/>{joints}</robot>', loops))
    for _ in range(2):  # the first waits for its kernel
        feed.states([0.0], names=["knee"])
    for velocity, answered in ((1e3, True), (1e307, False)):
        found = feed.command(["knee"], velocity=[velocity])
        assert bool(found) == answered, feed.reason
