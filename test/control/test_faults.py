"""Faults that were found by attacking a running node, each fed to the state machine by hand."""

import numpy as np
import pytest
from feeding import MS, Feed, arms, joint_state
from mechanism_table import MECHANISMS

from rbda_ros import Payload, load_robot
from rbda_ros.control import native
from rbda_ros.control.topics import Input
from rbda_ros.demo.resources import share_file
from rbda_ros.recordings.bags import typestore

LEG = share_file("config/robots/demo_leg.urdf"), share_file("config/robots/demo_leg_loops.yaml")
TORQUE = 9.81  # of 1 kg at 1 m


@pytest.fixture(scope="module")
def arm():
    return arms("hip", mass=1.0, reach=1.0)


def test_no_motor_command_follows_from_a_frozen_state(arm):
    """Fault 1: neither rejected nor another robot's states keep the last one alive."""
    feed = Feed(arm, stiffness="{hip: 10.0}")
    feed.states([0.0])
    assert feed.command(["hip"], position=[0.1])["motor_commands"] == pytest.approx(1.0)
    for k in range(200):
        feed.wait(10)
        assert not feed.states([0.0], age=500) or feed.tick()
        feed.states([0.0], names=["another_hip"])
        sent = feed.command(["hip"], position=[0.1])
        if k >= 10:
            assert not sent and feed.reason == "no fresh joint states"
    assert feed.counts["stale"] == 200 and feed.counts["misnamed joints"] == 200


def test_simulated_time_that_starts_over_restarts_no_ramp(arm):
    """The steady clock is simulated time: when it goes back, what was sent is as old as before."""
    feed = Feed(arm, ramp_in=1.0)
    full = -TORQUE
    assert feed.states([0.0])["feedforward"][0] == 0.0
    feed.wait(50)
    assert feed.states([0.0])["feedforward"][0] == pytest.approx(0.05 * full)
    feed.now -= 5000 * MS
    feed.steady -= 5000 * MS
    feed.tick()
    feed.wait(50)
    assert feed.states([0.0])["feedforward"][0] == pytest.approx(0.1 * full)
    feed.stream.use(arms("hip", "knee", mass=1.0, reach=1.0), feed.settings)  # another robot
    feed.wait(50)
    feed.robot = arms("hip", "knee", mass=1.0, reach=1.0)
    assert feed.states([0.0, 0.0])["feedforward"][0] == 0.0
    feed.wait(50)
    assert feed.states([0.0, 0.0])["feedforward"][0] == pytest.approx(0.05 * full)


def test_a_clock_that_leaps_ends_the_streams_with_its_own_stamp(arm):
    """Simulated time stood still for longer than the timeout while inputs came, and leaps then."""
    feed = Feed(arm, effort_rate_limit=1.0)
    feed.states([0.0])
    feed.command(["hip"], effort=[5.0])
    feed.wait(50)
    feed.states([0.0])
    assert feed.command(["hip"], effort=[5.0])["motor_commands"] == pytest.approx(0.05)
    feed.wait(150)
    messages = feed.stream.tick(feed.now, feed.steady)[0]
    assert {topic.name for topic, _ in messages} == {"FEEDFORWARD", "MOTOR_COMMANDS"}
    for _, data in messages:
        found = native.read_joint_state(data)
        assert found[1] == feed.now and not np.frombuffer(found[4]).any()


def test_a_payload_ends_no_stream(arm):
    """The motors are the same: efforts go on with the next state, and no zeros come between."""
    feed = Feed(arm, command_joints=["hip"])
    for load in (1.0, 0.0, 2.0):
        before = feed.states([0.0])
        assert all(efforts.all() for efforts in before.values()) and len(before) == 2
        loads = {"box": Payload("hip_arm", load, (1.0, 0.0, 0.0))} if load else {}
        loaded = arm.with_payloads(loads)
        feed.stream.use(loaded, feed.settings, feed.stream.prepare(loaded, feed.settings))
        assert not feed.tick()
        feed.wait(10)
        for efforts in feed.states([0.0]).values():
            assert efforts == pytest.approx(-TORQUE * (1.0 + load))
        assert not feed.tick()


def test_a_rate_limit_counts_from_what_was_last_sent(arm):
    """Fault 2: on while streaming, off and on again, another description, another time."""
    feed = Feed(arm)
    last = feed.states([0.0])["feedforward"][0]
    assert abs(last) == pytest.approx(TORQUE)

    def step(position=0.0):
        nonlocal last
        feed.wait(1)
        sent = feed.states([position])["feedforward"][0]
        change, last = abs(sent - last), sent
        return change

    feed.set(effort_rate_limit=0.5)
    assert step() <= 0.5e-3 + 1e-12
    feed.set(effort_rate_limit=0.0)
    assert step(np.pi) > TORQUE
    feed.set(effort_rate_limit=0.5)
    assert step(0.0) == pytest.approx(0.5e-3)
    renamed = arms("hip", mass=1.0, reach=1.0, name="another")
    feed.stream.use(renamed, feed.settings)
    assert step() == pytest.approx(0.5e-3)
    feed.now -= 5000 * MS  # the clock of stamps jumps back, the steady one does not
    assert step() == pytest.approx(0.5e-3)


def test_a_limit_is_obeyed_at_once_under_a_rate_limit(arm):
    """Fault 3."""
    feed = Feed(arm)
    feed.states([0.0])
    feed.set(effort_rate_limit=0.1)
    feed.wait(1)
    assert abs(feed.states([0.0])["feedforward"][0]) > 9.0
    feed.set(effort_limits="{hip: 0.1}")
    feed.wait(1)
    assert abs(feed.states([0.0])["feedforward"][0]) == pytest.approx(0.1)


def test_limits_apply_while_a_kernel_is_being_made(arm):
    """Fault 4: the background never gets to the kernel that other terms need."""
    waiting = []
    feed = Feed(arm, background=lambda make: waiting.append(make))
    assert abs(feed.states([0.0])["feedforward"][0]) > 9.0
    feed.set(terms=("gravity",), effort_limits="{hip: 0.9}")
    assert waiting
    for _ in range(5):
        feed.wait(1)
        assert abs(feed.states([0.0])["feedforward"][0]) == pytest.approx(0.9)


@pytest.fixture(scope="module")
def four_bar():
    mechanism = MECHANISMS["geared_four_bar"]
    return load_robot(mechanism.urdf, mechanism.loops)


def positions(robot, q, names):
    return [q[robot.coordinates.scalar_positions[name]] for name in names]


def test_redundant_measurements_choose_the_branch(four_bar):
    """Fault 5: both ends of a four-bar are measured, on either branch, from the first message."""
    names = four_bar.joint_names
    branches = _branches(four_bar)
    assert len(branches) == 2
    for q in branches:
        feed = Feed(four_bar)
        yd = np.array([0.3])
        qd = four_bar.spanning_velocity(q, yd)
        sent = feed.states(positions(four_bar, q, names), qd, names)["feedforward"]
        tau = four_bar.inverse_dynamics(q, yd, np.zeros(1))
        np.testing.assert_allclose(sent, four_bar.actuator_efforts(q, tau), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("y", ("rotor", "rocker"))
def test_measurements_keep_the_branch_through_dead_points(y):
    """Fault 5: crank and rocker are measured while the crank turns round, twice.

    Efforts that follow from the rocker have two dead points in each turn.
    """
    mechanism = MECHANISMS["geared_four_bar"]
    loops = mechanism.loops.read_text().replace("joints: [rotor]", f"joints: [{y}]")
    robot = load_robot(mechanism.urdf, loops)
    feed, answered, q = Feed(robot), 0, None
    for crank in np.arange(1.0, 1.0 + 4 * np.pi, 0.02):
        q = robot.close({"crank": crank}, guess=q)
        feed.wait(5)
        names = ["rocker", "crank"]
        sent = feed.states(positions(robot, q, names), [0.0, 0.0], names)
        if "feedforward" in sent:
            answered += 1
            tau = robot.inverse_dynamics(q, np.zeros(1), np.zeros(1))
            wanted = robot.actuator_efforts(q, tau)
            np.testing.assert_allclose(sent["feedforward"], wanted, rtol=1e-5, atol=1e-6)
    assert answered > 600  # of 629: near a dead point some may be rejected


@pytest.mark.parametrize("other", ("crank", "rotor"))
def test_measurements_choose_the_branch_wherever_the_robot_was(other):
    """Fault 5: of branches within the tolerance, the one that was measured, after any gap."""
    mechanism = MECHANISMS["geared_four_bar"]
    loops = mechanism.loops.read_text().replace("joints: [rotor]", "joints: [rocker]")
    robot = load_robot(mechanism.urdf, loops)
    turn, q = [], None
    for crank in np.arange(0.0, 2 * np.pi, 0.02):
        q = robot.close({"crank": crank}, guess=q)
        turn.append(q)
    names, rng = ["rocker", other], np.random.default_rng(1)
    for tolerance in (0.1, 0.5):
        feed, answered = Feed(robot, measurement_tolerance=tolerance), 0
        for q in rng.choice(turn, 150):
            feed.wait(50)
            sent = feed.states(positions(robot, q, names), [0.0, 0.0], names)
            if "feedforward" in sent:
                answered += 1
                wanted = robot.actuator_efforts(q, robot.gravity_force(q))
                np.testing.assert_allclose(sent["feedforward"], wanted, rtol=1e-5, atol=1e-5)
        assert answered > 140  # of 150: near a dead point some may be rejected


def test_contradicting_measurements_are_rejected_by_name(four_bar):
    q = _branches(four_bar)[0]
    names = four_bar.joint_names
    given = positions(four_bar, q, names)
    other = next(k for k, name in enumerate(names) if name not in four_bar.independent_joint_names)
    feed = Feed(four_bar)
    assert feed.states(given, np.zeros(len(names)), names)
    feed.wait(1)
    given[other] += 0.4
    assert "feedforward" not in feed.states(given, np.zeros(len(names)), names)
    assert feed.reason == "measurements disagree"
    assert "0.4" in feed.message or "-0.4" in feed.message
    assert names[other] in feed.message
    feed.stream.rejections.collect()
    difference, joint = feed.stream.rejections.contradiction
    assert joint == names[other] and difference == pytest.approx(0.4)
    feed.set(measurement_tolerance=0.0)  # any difference
    feed.wait(1)
    assert feed.states(given, np.zeros(len(names)), names)


def _branches(robot):
    """Closed positions at the same y, on both branches."""
    home = robot.tree.home
    (y,) = robot.independent_joint_names
    at = home[robot.coordinates.scalar_positions[y]] + 0.2
    rng = np.random.default_rng(0)
    found = []
    for _ in range(60):
        guess = home + rng.uniform(-3, 3, robot.nq)
        try:
            q = robot.close({y: at}, guess=guess)
        except Exception:
            continue
        wrapped = np.exp(1j * q)
        if all(np.abs(wrapped - np.exp(1j * other)).max() > 1e-3 for other in found):
            found.append(q)
    return found


def test_holding_here_commands_nothing_on_either_branch(four_bar):
    """Fault 6: closing begins where the robot is, not at the last command, however old."""
    first, second = _branches(four_bar)[:2]
    names = four_bar.joint_names
    (y,) = four_bar.independent_joint_names
    feed = Feed(four_bar, stiffness="{" + ", ".join(f"{n}: 10.0" for n in names) + "}")
    for q in (first, second, first):
        feed.wait(300)
        feed.states(positions(four_bar, q, names), np.zeros(len(names)), names)
        held = feed.command([y], position=positions(four_bar, q, [y]))["motor_commands"]
        np.testing.assert_allclose(held, 0.0, atol=1e-9)


def test_joint_commands_pass_the_same_gate(arm):
    """Fault 7: ramp, rate limit and zeros after a rejection, on both topics."""
    feed = Feed(
        arm,
        command_source="joint_commands",
        command_joints=("hip",),
        ramp_in=5.0,
        effort_rate_limit=0.5,
        on_refusal="zero",
    )
    feed.states([0.0])
    last = 0.0
    for k in range(1, 100):
        feed.wait(1)
        feed.states([0.0])
        sent = feed.command(["hip"], effort=[2.0])
        assert sent["motor_commands"] == sent["effort_commands"]
        (effort,) = sent["motor_commands"]
        assert effort - last <= 0.5e-3 + 1e-12 and effort <= 2.0 * k * 1e-3 / 5.0 + 1e-12
        last = effort
    feed.wait(1)
    rejected = feed.command(["hip"], effort=[np.nan])
    assert rejected["motor_commands"] == rejected["effort_commands"] == [0.0]
    assert not feed.command(["hip"], effort=[np.nan])  # once


@pytest.mark.parametrize("end", ("stale", "stopped", "rejected"))
def test_no_effort_stays_standing(arm, end):
    """Fault 8: states that stop, a node that stops, states that are rejected for good."""
    feed = Feed(arm, command_joints=("hip",))
    sent = feed.states([0.0])
    assert set(sent) == {"feedforward", "effort_commands"}
    if end == "stopped":
        ended = feed.stop()
    else:
        ended = {}
        for _ in range(12):
            feed.wait(10)
            if end == "rejected":
                assert not feed.states([np.nan])
            ended |= feed.tick()
    assert ended["feedforward"] == ended["effort_commands"] == [0.0]
    feed.wait(1000)
    assert not feed.tick() and not feed.stop()


@pytest.mark.parametrize("stamps", (1.0, 0.02))
def test_differences_are_filtered_from_the_first_on(stamps):
    """Fault 9: an encoder that flickers by one count, after a start and after a gap."""
    robot = arms("hip", mass=1.0, reach=1.0)
    feed = Feed(robot, velocity_source="differentiate", acceleration_source="estimate")
    rng = np.random.default_rng(0)
    for _ in range(2):
        efforts = []
        for _ in range(int(30 / stamps)):
            feed.wait(stamps)
            sent = feed.states([1e-6 * rng.integers(0, 2)])
            efforts += [sent["feedforward"][0]] if sent else []
        assert efforts and np.abs(np.abs(efforts) - TORQUE).max() < 0.3
        feed.wait(500)


def test_no_difference_is_taken_over_a_gap(arm):
    """Fault 9: where the robot was carried to meanwhile says nothing about how it moves now."""
    feed = Feed(arm, velocity_source="differentiate")
    for position in (0.0, 1.0):
        assert not feed.states([position]) and feed.reason == "no velocity"
        for _ in range(10):
            feed.wait(1)
            sent = feed.states([position])
        assert sent["feedforward"] == pytest.approx(-TORQUE * np.cos(position), abs=1e-9)
        assert feed.stream.last_state().velocity == [0.0]
        feed.wait(500)


def test_the_observer_reports_no_contact_after_a_gap():
    """Fault 10; and a push is not forgotten by a parameter that has nothing to do with it."""
    robot = arms("hip", mass=1.0, reach=1.0)
    feed = Feed(robot, publish_external_effort=True, joint_state_timeout=0.0)
    t, push = 0.0, 0.0

    def swing(milliseconds):
        nonlocal t
        feed.wait(milliseconds)
        t += milliseconds * 1e-3
        q, qd, qdd = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
        tau = robot.inverse_dynamics([q], [qd], [qdd])
        return feed.states([q], [qd], effort=tau - push)["external_effort"][0]

    for gap in (0, 200, 450, 950):
        swing(gap or 1)
        assert max(abs(swing(1)) for _ in range(300)) < 0.05
    push = 2.0
    for _ in range(300):
        felt = swing(1)
    assert felt == pytest.approx(2.0, abs=0.05)
    feed.set(max_condition_number=1e5)
    assert swing(1) == pytest.approx(2.0, abs=0.05)


def test_a_reference_before_a_state_is_used_for_it(arm):
    robot = arms("hip", "knee")
    feed = Feed(robot, acceleration_source="reference")
    for k in range(100):
        feed.wait(1)
        wanted = [float(k), -2.0 * k]
        feed.feed(Input.REFERENCE, trajectory(robot.joint_names, wanted))
        sent = feed.states([0.0, 0.0])
        if not sent and feed.reason == "kernel not ready":
            sent = feed.states([0.0, 0.0])
        np.testing.assert_allclose(sent["feedforward"], wanted, atol=1e-6)


def trajectory(names, accelerations):
    """A JointTrajectory with one point of accelerations, serialized by the bags' library."""
    store = typestore()
    types = store.types
    point = types["trajectory_msgs/msg/JointTrajectoryPoint"](
        np.zeros(0),
        np.zeros(0),
        np.array(accelerations, float),
        np.zeros(0),
        types["builtin_interfaces/msg/Duration"](0, 0),
    )
    header = types["std_msgs/msg/Header"](types["builtin_interfaces/msg/Time"](0, 0), "")
    message = types["trajectory_msgs/msg/JointTrajectory"](header, list(names), [point])
    return bytes(store.serialize_cdr(message, "trajectory_msgs/msg/JointTrajectory"))


def test_numbers_that_are_not_finite_are_absent():
    """As joint_state_broadcaster publishes them for interfaces that a joint does not have."""
    robot = load_robot(*LEG)
    q = robot.close(robot.independent_position(robot.tree.home))
    names = robot.joint_names
    given = np.array(positions(robot, q, names))
    known = set(robot.actuated_joint_names)
    given[[k for k, name in enumerate(names) if name not in known]] = np.nan
    feed = Feed(robot)
    sent = feed.feed(Input.JOINT_STATES, joint_state(names, feed.now, given, np.zeros(len(names))))
    tau = robot.inverse_dynamics(q, np.zeros(robot.ny), np.zeros(robot.ny))
    expected = robot.actuator_efforts(q, tau)
    np.testing.assert_allclose(sent["feedforward"], expected, rtol=1e-7, atol=1e-9)


def test_a_number_that_is_not_finite_is_absent_for_that_joint_and_field():
    """joint_state_broadcaster publishes NaN for interfaces that a joint does not have."""
    robot = load_robot(*LEG)
    names = list(robot.joint_names)
    q = robot.close(np.full(4, 0.2))
    qd = robot.spanning_velocity(q, np.full(4, 0.1))
    feed = Feed(robot)
    wanted = feed.states(q, qd, names=names)["feedforward"]
    motors = [names.index(name) for name in robot.actuated_joint_names]
    for fields in ("position", "velocity", "both"):  # of all but the motors
        position, velocity = np.full(len(names), np.nan), np.full(len(names), np.nan)
        position[motors], velocity[motors] = q[motors], qd[motors]
        position = q if fields == "velocity" else position
        velocity = qd if fields == "position" else velocity
        feed.wait(200)  # what came before is too old
        found = feed.states(position, velocity, names=names)
        if not found:  # its kernel had to be made
            found = feed.states(position, velocity, names=names)
        np.testing.assert_allclose(found["feedforward"], wanted, atol=1e-9)
    feed.wait(200)
    assert "feedforward" not in feed.states(q, np.full(len(names), np.nan), names=names)
    assert feed.reason == "no velocity"
    assert "velocity of hip_abduction" in feed.message and "differentiate" in feed.message
    feed.wait(200)
    assert not feed.states(np.full(len(names), np.nan), qd, names=names)
    assert feed.reason == "not finite" and "position of hip_abduction" in feed.message


def test_external_efforts_go_by_the_joints_whose_effort_is_a_number():
    """NaN for the effort of a joint that is no motor changes nothing; of a motor, it is absent."""
    robot = load_robot(*LEG)
    names = list(robot.joint_names)
    q = robot.close(np.full(4, 0.2))
    still = np.zeros(len(names))
    feed = Feed(robot, publish_external_effort=True)
    effort = np.full(len(names), np.nan)
    effort[[names.index(name) for name in robot.actuated_joint_names]] = 0.5
    assert "external_effort" in feed.states(q, still, names=names, effort=effort)
    effort[names.index(robot.actuated_joint_names[0])] = np.nan
    feed.wait(5)
    assert "external_effort" not in feed.states(q, still, names=names, effort=effort)
    assert feed.reason == "no measured effort"


@pytest.mark.parametrize("source", ["zero", "estimate", "reference"])
def test_independent_coordinates_may_be_parts_of_a_joint(source):
    """Legs are measured and move a plate, whose x, y and yaw are independent."""
    robot = MECHANISMS["planar_joint_loop"].load()
    legs = robot.actuated_joint_names
    feed = Feed(robot, acceleration_source=source)
    q = robot.neutral()
    angles = np.add(positions(robot, q, legs), [0.02, -0.01, 0.03])
    rates = np.array([0.3, -0.2, 0.1])
    if source == "reference":
        feed.feed(Input.REFERENCE, trajectory(legs, [0.0, 0.0, 0.0]))
    for _ in range(20):  # of which the first waits for its kernel, and some for an estimate
        sent = feed.states(angles, rates, names=legs)
        feed.wait(5)
    moved = robot.close(dict(zip(legs, angles, strict=True)), guess=q)
    yd = robot.independent_velocity(moved, dict(zip(legs, rates, strict=True)))
    still = dict.fromkeys(legs, 0.0)
    ydd = np.zeros(3) if source == "zero" else robot.independent_acceleration(moved, yd, still)
    expected = robot.inverse_dynamics_efforts(moved, yd, ydd)[0]
    np.testing.assert_allclose(sent["feedforward"], expected, rtol=1e-10, atol=1e-10)
