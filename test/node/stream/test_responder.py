"""The feedforward without a node context it, and with a clock that the test sets."""

from concurrent.futures import Future

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rbda_ros.node.stream.context import Context
from rbda_ros.node.stream.responder import Responder
from rbda_ros.node.stream.ros_codec import RosCodec
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from rbda_ros import Payload, load_robot
from rbda_ros.control.meter import Meter
from rbda_ros.control.rejections import Refusals
from rbda_ros.demo.resources import share_file
from rbda_ros.node.parameters import Settings

START = 1_700_000_000_000_000_000  # [ns]


@pytest.fixture(scope="module")
def leg():
    return load_robot(
        share_file("config/robots/demo_leg.urdf"), share_file("config/robots/demo_leg_loops.yaml")
    )


def at_once(make):
    """In the place of another thread, so that the tests need not wait for it."""
    made: Future = Future()
    try:
        made.set_result(make())
    except Exception as error:
        made.set_exception(error)
    return made


class Bench:
    """A feedforward with a clock that the test sets, and what came out."""

    def __init__(self, robot, before=None, **values):
        self.now, self.published = START, []
        self.refusals, self.meter = Refusals(), Meter()
        context = Context(
            publish=self.published.append,
            publish_commands=self.published.append,
            now=lambda: self.now,
            background=at_once,
            refusals=self.refusals,
            meter=self.meter,
            codec=RosCodec(),
        )
        old = before and before.feedforward
        self.feedforward = Responder(robot, Settings(**values), context, old)

    def hear(self, names, position, velocity, age=0):
        message = JointState(name=list(names))
        message.position, message.velocity = list(position), list(velocity)
        sec, nanosec = divmod(self.now - age, 10**9)
        message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
        before = len(self.published)
        self.feedforward.on_joint_states(serialize_message(message))
        return [deserialize_message(data, JointState) for data in self.published[before:]]


NAMES = ("hip_abduction", "hip_flexion", "knee", "ankle", "knee_rotor", "ankle_pulley", "gripper")
NUMBERS = st.floats(-2.0, 2.0) | st.sampled_from([np.nan, np.inf, -1e300, 1e8, 0.0])
MESSAGES = st.tuples(
    st.lists(st.sampled_from(NAMES), max_size=7).map(tuple) | st.just(NAMES[:4]),
    st.lists(NUMBERS, min_size=4, max_size=4) | st.lists(NUMBERS, max_size=7),
    st.lists(NUMBERS, min_size=4, max_size=4) | st.lists(NUMBERS, max_size=7),
    st.sampled_from([0, 0, 0, 10**6, 2 * 10**8, -(2 * 10**8)]),
    st.sampled_from([10**6, 10**7, 0, 5 * 10**8, -(10**9)]),
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(MESSAGES, max_size=12),
    st.sampled_from(["message", "differentiate"]),
    st.sampled_from(["zero", "estimate"]),
)
def test_nothing_but_finite_efforts_for_fresh_messages(leg, stream, velocity, acceleration):
    bench = Bench(leg, velocity_source=velocity, acceleration_source=acceleration)
    heard = 0
    for names, position, speed, age, step in stream:
        bench.now += step
        answers = bench.hear(names, position, speed, age)
        heard += len(answers)
        for answer in answers:
            assert abs(age) <= 10**8
            assert np.isfinite(answer.effort).all()
    assert heard + bench.refusals.total == len(stream)
    # And after all that a good driver is answered as ever.
    y, yd = np.array([0.1, 0.3, 0.9, -0.2]), np.array([0.5, -1.0, 2.0, 1.0])
    for k in range(4):
        bench.now += 3 * 10**8 if k == 0 else 10**7
        answers = bench.hear(NAMES[:4], y + 0.01 * k * yd, yd)
    (answer,) = answers
    q = leg.close(y + 0.03 * yd)
    expected = leg.actuator_efforts(q, leg.inverse_dynamics(q, yd, np.zeros(4)))
    np.testing.assert_allclose(answer.effort, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("velocity_source", ["message", "differentiate"])
def test_offsets_are_added_to_positions_and_change_no_velocity(leg, velocity_source):
    y, yd, offset = np.array([0.1, 0.3, 0.9, -0.2]), np.zeros(4), np.array([0.0, 0.05, 0.0, -0.03])
    given = {"joint_offsets": "{hip_flexion: 0.05, ankle: -0.03}"}
    bench = Bench(leg, velocity_source=velocity_source, **given)
    for _ in range(3):
        bench.now += 10**7
        answers = bench.hear(NAMES[:4], y - offset, yd)
    q = leg.close(y)
    expected = leg.actuator_efforts(q, leg.inverse_dynamics(q, yd, yd))
    np.testing.assert_allclose(answers[0].effort, expected, rtol=1e-9, atol=1e-9)
    bench.feedforward.apply(Settings(velocity_source=velocity_source))
    bench.now += 10**7
    (answer,) = bench.hear(NAMES[:4], y, yd)  # the last differences are of other positions
    if velocity_source == "message":
        np.testing.assert_allclose(answer.effort, expected, rtol=1e-9, atol=1e-9)


def test_another_model_with_the_same_joints_takes_over(leg):
    """Its loops tell of other independent joints, and its gravity is another."""
    loops = share_file("config/robots/demo_leg_loops.yaml").read_text()
    joints = "[hip_abduction_rotor, hip_flexion_rotor, knee_rotor, ankle_pulley_rotor]"
    loops = loops.replace("[hip_abduction, hip_flexion, knee, ankle]", joints)
    other = load_robot(share_file("config/robots/demo_leg.urdf"), loops, gravity=(0, 0, -1.6))
    assert other.independent_joint_names != leg.independent_joint_names
    y, still = [0.1, 0.3, 0.9, -0.2], [0.0] * 4
    before = Bench(leg)
    assert before.hear(NAMES[:4], y, still)
    after = Bench(other, before)
    (answer,) = after.hear(NAMES[:4], y, still)
    q = other.close(dict(zip(NAMES[:4], y, strict=True)))
    expected = other.actuator_efforts(q, other.gravity_force(q))
    np.testing.assert_allclose(answer.effort, expected, rtol=1e-9, atol=1e-12)


def test_a_load_takes_over_where_the_stream_is(leg):
    """With velocities by differences, there is no gap."""
    y, yd = np.array([0.1, 0.3, 0.9, -0.2]), np.array([0.5, -1.0, 2.0, 1.0])
    before = Bench(leg, velocity_source="differentiate")
    for k in range(3):
        before.now += 10**7
        before.hear(NAMES[:4], y + 0.01 * k * yd, [])
    loaded = leg.with_payloads({"box": Payload("foot", 1.5)})
    after = Bench(loaded, before, velocity_source="differentiate")
    after.now = before.now + 10**7
    (answer,) = after.hear(NAMES[:4], y + 0.03 * yd, [])
    q = loaded.close(y + 0.03 * yd)
    expected = loaded.actuator_efforts(q, loaded.inverse_dynamics(q, yd, np.zeros(4)))
    np.testing.assert_allclose(answer.effort, expected, rtol=1e-5, atol=1e-6)
