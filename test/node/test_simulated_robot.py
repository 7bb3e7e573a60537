"""`rbda_ros simulate` as a process: efforts in, joint states out."""

import numpy as np
from nav_msgs.msg import Odometry
from rbda_ros.srv import SetSpeed
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from rbda_ros import load_robot
from rbda_ros.node.simulated_robot import _odometry, transform_of

URDF = """<robot name="arm"><link name="base"/>
  <link name="rod"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
    <inertia ixx="1e-9" iyy="1e-9" izz="1e-9" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/>
    <axis xyz="0 -1 0"/><limit effort="100" velocity="100"/></joint></robot>"""
HOLD = 9.81 * 0.5  # [N m] at zero


# A box with an arm on it, too light to turn the box in its fall.
CART = """<robot name="cart"><link name="box"><inertial><mass value="20"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.6 0.2 0.1"/></geometry></collision></link>
  <link name="rod"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
    <inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="box"/><child link="rod"/>
    <origin xyz="0 0 0.05"/><axis xyz="0 -1 0"/><limit effort="100" velocity="100"/></joint>
  </robot>"""


def simulate(graph, *ros_args, urdf=URDF, options=()):
    file = graph.folder / "robot.urdf"
    file.write_text(urdf)
    return graph.run("simulate", str(file), *options, "--ros-args", *ros_args)


def height_and_speed(odometry):
    moved, turning = odometry.twist.twist.linear, odometry.twist.twist.angular
    rates = [moved.x, moved.y, moved.z, turning.x, turning.y, turning.z]
    return odometry.pose.pose.position.z, float(np.abs(rates).max())


def test_it_falls_holds_pauses_and_starts_anew(graph):
    program = simulate(graph, "-p", "publish_clock:=true", "-p", "rate:=100.0")
    client = graph.client()
    states = client.listen(JointState, "joint_states")
    client.until(lambda: len(states) > 20)
    for state in states[:20]:  # it swings freely from the horizontal: energy stays zero
        (angle,), (rate,) = state.position, state.velocity
        energy = 0.5 * 0.25 * rate**2 + HOLD * np.sin(angle)
        assert abs(energy) < 0.02 * HOLD

    assert client.call(SetBool, "simulated_robot/pause", SetBool.Request(data=True)).success
    client.spin(0.2)
    count = len(states)
    client.spin(0.3)
    assert len(states) == count
    assert client.call(Trigger, "simulated_robot/step").success
    client.until(lambda: len(states) == count + 1)
    assert client.call(Trigger, "simulated_robot/reset").success
    assert not client.call(Trigger, "simulated_robot/step").success  # it runs again

    efforts = client.publisher(Float64MultiArray, "simulated_robot/effort_array")
    wrong = Float64MultiArray(data=[1.0, 2.0])

    def rises():
        """Twice the effort that holds it at the horizontal, after an array that is rejected."""
        efforts.publish(wrong)
        efforts.publish(Float64MultiArray(data=[2.0 * HOLD]))
        return states[-1].position[0] > 1.0

    client.until(rises)
    assert program.stop() == 0
    assert "effort_array has 2 numbers, not 1" in graph.logs()


def test_commands_of_motors_are_followed_and_failed_motors_are_not(graph):
    simulate(graph, "-p", "stiffness:=200.0", "-p", "damping:=20.0")
    client = graph.client()
    states = client.listen(JointState, "joint_states")
    commands = client.publisher(JointState, "simulated_robot/motor_commands")
    command = JointState(name=["hinge"], position=[0.4], velocity=[0.0])
    sag = HOLD * np.cos(0.4) / 200.0

    def near():
        commands.publish(command)
        return states and abs(states[-1].position[0] - 0.4 + sag) < 1e-2

    client.until(near)
    robot = load_robot(URDF)
    assert robot.actuated_joint_names == ("hinge",)
    commands.publish(JointState(name=["elbow"], effort=[1.0]))
    client.until(lambda: "'elbow' is no motor; they are hinge" in graph.logs())

    def rises():
        """Joints without a command have NaN, as from a topic-based hardware interface."""
        names, efforts = ["elbow", "hinge"], [float("nan"), 2.0 * HOLD]
        commands.publish(JointState(name=names, effort=efforts, position=[float("nan")] * 2))
        return states[-1].position[0] > 1.0

    client.until(rises)


def test_speed_is_changed_by_a_service(graph):
    simulate(graph, "-p", "publish_clock:=true", "-p", "failed_motors:=[]")
    client = graph.client()
    states = client.listen(JointState, "joint_states")
    answer = client.call(SetSpeed, "simulated_robot/set_speed", SetSpeed.Request(speed=-1.0))
    assert not answer.success and "speed is -1.0" in answer.message
    client.until(lambda: len(states) > 0)
    begin = states[-1].header.stamp.sec
    assert client.call(SetSpeed, "simulated_robot/set_speed", SetSpeed.Request(speed=0.0)).success
    client.until(lambda: states[-1].header.stamp.sec > begin + 60)


def seconds(stamp):
    return stamp.sec + 1e-9 * stamp.nanosec


def test_joint_states_are_lost_late_and_noisy(graph):
    given = ["publish_clock:=true", "message_loss:=0.7", "delay:=0.05", "velocity_noise:=0.5"]
    simulate(graph, *(word for each in given for word in ("-p", each)))
    client = graph.client()
    states = client.listen(JointState, "joint_states")
    clock = client.listen(Clock, "/clock")
    client.until(lambda: len(states) > 200)
    late = seconds(clock[-1].clock) - seconds(states[-1].header.stamp)
    assert 0.045 < late < 0.2
    times = np.array([seconds(state.header.stamp) for state in states])
    passed = round((times[-1] - times[0]) * 500.0)
    assert 0.55 < 1.0 - len(states) / passed < 0.85
    # Positions have no noise: their changes tell the true velocity.
    angle = np.array([state.position[0] for state in states])
    rate = np.array([state.velocity[0] for state in states])
    next_to = np.flatnonzero(np.diff(times) < 0.0021)
    mean = 0.5 * (rate[next_to] + rate[next_to + 1])
    noise = mean - np.diff(angle)[next_to] / np.diff(times)[next_to]
    assert 0.25 < np.std(noise) < 0.5  # 0.5 / sqrt(2)


def test_motors_that_failed_give_nothing(graph):
    program = simulate(graph, "-p", "publish_clock:=true", "-p", "failed_motors:=[hinge]")
    client = graph.client()
    states = client.listen(JointState, "joint_states")
    efforts = client.publisher(Float64MultiArray, "simulated_robot/effort_array")

    def moves():
        efforts.publish(Float64MultiArray(data=[2.0 * HOLD]))
        return len(states) > 500

    client.until(moves)
    for state in states:  # the effort would do work
        (angle,), (rate,) = state.position, state.velocity
        assert abs(0.5 * 0.25 * rate**2 + HOLD * np.sin(angle)) < 0.02 * HOLD
    assert program.stop() == 0


def test_it_falls_on_the_ground_and_stands(graph):
    options = ["--floating-base", "--ground", "--drop", "0.2"]
    parameters = ["publish_clock:=true", "stiffness:=50.0", "damping:=3.0"]
    program = simulate(
        graph, *(word for each in parameters for word in ("-p", each)), urdf=CART, options=options
    )
    client = graph.client()
    seen, states = client.listen(Odometry, "odom"), client.listen(JointState, "joint_states")
    commands = client.publisher(JointState, "simulated_robot/motor_commands")
    command = JointState(name=["hinge"], position=[0.3], velocity=[0.0])

    def stands():
        commands.publish(command)
        if min(len(seen), len(states)) < 200:
            return False
        return max(height_and_speed(seen[-1])[1], abs(states[-1].velocity[0])) < 1e-4

    client.until(stands)
    fall = [each for each in seen if seconds(each.header.stamp) < 0.15]
    for each in fall:  # 0.2 m take 0.202 s
        time, (height, _) = seconds(each.header.stamp), height_and_speed(each)
        assert abs(height - 0.25 + 0.5 * 9.81 * time**2) < 0.01 * 9.81 * time + 1e-6
    height, _ = height_and_speed(seen[-1])
    assert abs(height - 0.05) < 1e-4
    # The base does not give way: the arm sags by its weight over the stiffness, no more.
    sag = 9.81 * 0.1 * np.cos(0.3) / 50.0
    assert abs(states[-1].position[0] - 0.3 + sag) < 2e-3
    assert program.stop() == 0


def test_it_slides_down_a_slope(graph):
    angle, friction = 0.3, 0.1
    normal = [str(np.sin(angle)), "0", str(np.cos(angle))]
    options = ["--floating-base", "--contact", "box", "--friction", str(friction)]
    simulate(
        graph,
        *("-p", "publish_clock:=true"),
        urdf=CART.replace("0.1 0 0", "0 0 0"),
        options=[*options, "--ground-normal", *normal],
    )
    client = graph.client()
    seen = client.listen(Odometry, "odom")
    # The box has tipped onto the slope by 1 s; the topic may be connected later than that.
    client.until(lambda: seen and seconds(seen[-1].header.stamp) > 1.0)
    begun = len(seen)
    client.until(lambda: seconds(seen[-1].header.stamp) > seconds(seen[begun - 1].header.stamp) + 2)
    x, times = (
        np.array([read(each) for each in seen[begun:]])
        for read in (lambda at: at.pose.pose.position.x, lambda at: seconds(at.header.stamp))
    )
    acceleration = 2.0 * np.polyfit(times, x, 2)[0]
    along = 9.81 * (np.sin(angle) - friction * np.cos(angle))
    assert abs(acceleration / (along * np.cos(angle)) - 1.0) < 0.01


def test_ground_that_nothing_touches_is_explained(graph):
    for options, why in (
        (["--ground"], "no link that moves has a <collision> element"),
        (["--contact", "foot"], "there is no 'foot'; use some of base, rod"),
        (["--contact", "rod"], "none of these links has a <collision> element"),
        (["--ground", "--integrator", "rk4"], "no link that moves"),
    ):
        assert simulate(graph, options=options).wait() == 1
        assert why in graph.logs()


def test_a_transform_is_the_pose_of_the_odometry():
    q, qd = np.array([1.0, 2.0, 3.0, 0.0, 0.6, 0.0, 0.8]), np.arange(6.0)
    found = transform_of(_odometry(q, qd, JointState().header.stamp, "pelvis"))
    assert (found.header.frame_id, found.child_frame_id) == ("world", "pelvis")
    moved, turned = found.transform.translation, found.transform.rotation
    assert [moved.x, moved.y, moved.z] == [1.0, 2.0, 3.0]
    assert [turned.x, turned.y, turned.z, turned.w] == [0.0, 0.6, 0.0, 0.8]


def test_wrong_parameters_end_it_with_a_reason(graph):
    program = simulate(graph, "-p", "failed_motors:=[elbow]")
    assert program.wait() == 1
    assert "failed_motors: 'elbow' is unknown; use some of hinge" in graph.logs()
