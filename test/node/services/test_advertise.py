"""The services, called from another process."""

import numpy as np
import pinocchio as pin
import pytest
from geometry_msgs.msg import Point
from pinocchio_oracle import PinocchioOracle, random_state
from rbda_ros.msg import State
from rbda_ros.srv import (
    DescribeModel,
    ForwardDynamics,
    InverseDynamics,
    MassMatrix,
    OperationalSpaceInertia,
)
from ros_requests import request_of, wrench_on

TOLERANCE = 1e-9


def matrix(message):
    assert len(message.row_names) == message.rows
    assert len(message.col_names) == message.cols
    return np.array(message.data).reshape(message.rows, message.cols)


def test_describes_the_model(arm):
    client, _, robot = arm
    answer = client.call(DescribeModel, "~/describe_model")
    assert answer.success, answer.message
    assert answer.robot_name == robot.name
    assert answer.total_mass == pytest.approx(robot.mass)
    assert not answer.floating_base
    assert tuple(answer.joint_names) == robot.joint_names
    assert tuple(answer.actuated_joint_names) == robot.actuated_joint_names
    assert answer.links[0] == "world"
    elbow = answer.joints[answer.joint_names.index("elbow_joint")]
    assert (elbow.type, elbow.parent_link, elbow.child_link) == (
        "revolute",
        "upper_arm_link",
        "forearm_link",
    )
    assert elbow.effort == 150.0
    assert [cluster.parent for cluster in answer.clusters][:2] == ["", answer.clusters[0].name]
    assert answer.constraints == []


def test_describes_loops(leg):
    client, _, robot = leg
    answer = client.call(DescribeModel, "~/describe_model")
    assert tuple(answer.independent_joint_names) == robot.independent_joint_names
    assert tuple(answer.actuated_joint_names) == robot.actuated_joint_names
    constraints = {constraint.name: constraint for constraint in answer.constraints}
    assert constraints["ankle_linkage"].type == "revolute"
    assert constraints["ankle_linkage"].links == ["ankle_rod_link", "foot"]
    gear = next(c for c in answer.constraints if "knee_rotor" in c.joints and c.type == "coupling")
    assert sorted(gear.joints) == ["knee", "knee_rotor"]


def test_inverse_dynamics_of_an_arm_equals_pinocchio(arm):
    client, urdf, robot = arm
    oracle, rng = PinocchioOracle(urdf, robot), np.random.default_rng(1)
    for _ in range(5):
        q, qd, ydd = random_state(robot, rng)
        order = rng.permutation(len(robot.joint_names))
        answer = client.call(
            InverseDynamics, "~/inverse_dynamics", request_of(robot, q, qd, ydd, order)
        )
        assert answer.success, answer.message
        assert tuple(answer.joint_names) == robot.actuated_joint_names
        np.testing.assert_allclose(answer.effort, oracle.rnea(q, qd, ydd), TOLERANCE, TOLERANCE)
        ours = robot.inverse_dynamics(q, qd, ydd)
        np.testing.assert_allclose(answer.effort, ours, 1e-13, 1e-13)


def test_inverse_dynamics_of_a_floating_base_equals_pinocchio(solo):
    client, urdf, robot = solo
    oracle, rng = PinocchioOracle(urdf, robot), np.random.default_rng(2)
    for _ in range(5):
        q, qd, ydd = random_state(robot, rng)
        answer = client.call(InverseDynamics, "~/inverse_dynamics", request_of(robot, q, qd, ydd))
        assert answer.success, answer.message
        expected = oracle.rnea(q, qd, ydd)
        force, torque = answer.base_wrench.force, answer.base_wrench.torque
        wrench = [force.x, force.y, force.z, torque.x, torque.y, torque.z]
        np.testing.assert_allclose(wrench, expected[:6], TOLERANCE, TOLERANCE)
        np.testing.assert_allclose(answer.effort, expected[6:], TOLERANCE, TOLERANCE)


def test_what_is_left_out_is_zero(arm):
    client, urdf, robot = arm
    q, zero = np.linspace(0.1, 0.6, 6), np.zeros(6)
    request = InverseDynamics.Request(state=State(position=q.tolist()))
    answer = client.call(InverseDynamics, "~/inverse_dynamics", request)
    assert answer.success, answer.message
    expected = PinocchioOracle(urdf, robot).rnea(q, zero, zero)
    np.testing.assert_allclose(answer.effort, expected, TOLERANCE, TOLERANCE)


def test_external_wrenches_add_up_and_equal_pinocchio(arm):
    client, urdf, robot = arm
    q, qd, ydd = random_state(robot, np.random.default_rng(3))
    first, second = np.arange(1.0, 7.0), np.array([0.5, -1.0, 2.0, 0.3, 0.2, -0.1])
    request = request_of(robot, q, qd, ydd)
    request.external_wrenches = [
        wrench_on("forearm_link", first),
        wrench_on("forearm_link", second),
    ]
    answer = client.call(InverseDynamics, "~/inverse_dynamics", request)
    assert answer.success, answer.message

    oracle = PinocchioOracle(urdf, robot)
    model = oracle.model
    joint = model.getJointId("elbow_joint")
    placement = model.frames[model.getFrameId("forearm_link")].placement
    wrenches = [pin.Force.Zero() for _ in range(model.njoints)]
    wrenches[joint] = placement.act(pin.Force(first + second))
    expected = pin.rnea(model, oracle.data, q, qd, ydd, wrenches)
    np.testing.assert_allclose(answer.effort, expected, TOLERANCE, TOLERANCE)


def test_efforts_of_a_robot_with_loops_are_on_its_motors(leg):
    client, _, robot = leg
    y = np.array([0.1, 0.3, 0.9, -0.2])
    yd, ydd = np.array([0.5, -1.0, 2.0, 1.0]), np.array([1.0, 2.0, -3.0, 4.0])
    request = InverseDynamics.Request(
        state=State(position=y.tolist(), velocity=yd.tolist()), acceleration=ydd.tolist()
    )
    answer = client.call(InverseDynamics, "~/inverse_dynamics", request)
    assert answer.success, answer.message
    assert all(name.endswith("_rotor") for name in answer.joint_names)
    tau = robot.inverse_dynamics(y, yd, ydd)
    expected = robot.actuator_efforts(y, tau)
    np.testing.assert_allclose(answer.effort, expected, TOLERANCE, TOLERANCE)


def test_other_joints_of_a_loop_may_say_where_it_is(leg):
    client, _, robot = leg
    y = np.array([0.1, 0.3, 0.9, -0.2])
    named = dict(zip(robot.joint_names, robot.close(y), strict=True))
    seen = ["hip_abduction_rotor", "knee_rotor", "hip_flexion", "ankle_pulley"]
    state = State(joint_names=seen, position=[named[name] for name in seen])
    answer = client.call(
        InverseDynamics, "~/inverse_dynamics", InverseDynamics.Request(state=state)
    )
    assert answer.success, answer.message
    expected = robot.actuator_efforts(y, robot.gravity_force(y))
    np.testing.assert_allclose(answer.effort, expected, 1e-6, 1e-6)


def test_other_joints_of_a_loop_may_say_how_it_moves(leg):
    client, _, robot = leg
    q = robot.close([0.1, 0.3, 0.9, -0.2])
    ydd = np.array([1.0, 2.0, -3.0, 4.0])
    qd = robot.spanning_velocity(q, [0.5, -1.0, 2.0, 1.0])
    qdd = robot.spanning_acceleration(q, qd, ydd)
    expected, _ = robot.inverse_dynamics_efforts(q, qd, ydd)
    for seen in (
        [*robot.actuated_joint_names],
        ["knee_rotor", "ankle_rod", "hip_flexion", "hip_abduction_rotor"],
        [*robot.joint_names[::-1]],
    ):
        columns = [robot.joint_names.index(name) for name in seen]
        state = State(joint_names=seen, position=q[columns].tolist(), velocity=qd[columns].tolist())
        request = InverseDynamics.Request(state=state, acceleration=qdd[columns].tolist())
        answer = client.call(InverseDynamics, "~/inverse_dynamics", request)
        assert answer.success, answer.message
        np.testing.assert_allclose(answer.effort, expected, 1e-7, 1e-7)


def test_joints_that_keep_their_speed_may_make_others_change_theirs(leg):
    """Without accelerations those of the named joints are zero, not those of y."""
    client, _, robot = leg
    q = robot.close([0.1, 0.3, 0.9, -0.2])
    qd = robot.spanning_velocity(q, [0.5, -1.0, 2.0, 1.0])
    seen = ["hip_abduction", "hip_flexion", "knee", "ankle_rod"]
    columns = [robot.joint_names.index(name) for name in seen]
    state = State(joint_names=seen, position=q[columns].tolist(), velocity=qd[columns].tolist())
    answer = client.call(
        InverseDynamics, "~/inverse_dynamics", InverseDynamics.Request(state=state)
    )
    ydd = robot.independent_acceleration(q, qd, dict.fromkeys(seen, 0.0))
    assert abs(ydd[3]) > 0.01
    expected, _ = robot.inverse_dynamics_efforts(q, qd, ydd)
    np.testing.assert_allclose(answer.effort, expected, 1e-7, 1e-7)


def test_forward_dynamics_undoes_inverse_dynamics(solo):
    client, _, robot = solo
    q, qd, ydd = random_state(robot, np.random.default_rng(4))
    asked = request_of(robot, q, qd, ydd)
    # With the wrench that the base needs given from outside, the legs alone do the rest.
    asked.external_wrenches = [wrench_on("base_link", robot.inverse_dynamics(q, qd, ydd)[:6])]
    efforts = client.call(InverseDynamics, "~/inverse_dynamics", asked)
    assert efforts.success, efforts.message
    back = client.call(
        ForwardDynamics,
        "~/forward_dynamics",
        ForwardDynamics.Request(
            state=asked.state,
            effort_joint_names=efforts.joint_names[::-1],
            effort=efforts.effort[::-1],
            external_wrenches=asked.external_wrenches,
        ),
    )
    assert back.success, back.message
    base = back.base_acceleration
    found = [base.linear.x, base.linear.y, base.linear.z]
    found += [base.angular.x, base.angular.y, base.angular.z, *back.acceleration]
    np.testing.assert_allclose(found, ydd, 1e-7, 1e-7)


def test_mass_matrix_equals_pinocchio(arm):
    client, urdf, robot = arm
    q, qd, _ = random_state(robot, np.random.default_rng(5))
    state = State(position=q.tolist(), velocity=qd.tolist())
    answer = client.call(MassMatrix, "~/mass_matrix", MassMatrix.Request(state=state))
    assert answer.success, answer.message
    oracle = PinocchioOracle(urdf, robot)
    expected = np.triu(pin.crba(oracle.model, oracle.data, q))
    expected += np.triu(expected, 1).T
    np.testing.assert_allclose(matrix(answer.mass_matrix), expected, TOLERANCE, TOLERANCE)
    zero = np.zeros(6)
    np.testing.assert_allclose(answer.bias, oracle.rnea(q, qd, zero), TOLERANCE, TOLERANCE)
    np.testing.assert_allclose(answer.gravity, oracle.rnea(q, zero, zero), TOLERANCE, TOLERANCE)


def test_operational_space_inertia(arm):
    client, _, robot = arm
    q, _, _ = random_state(robot, np.random.default_rng(6))
    request = OperationalSpaceInertia.Request(
        state=State(position=q.tolist()), frames=["tool0"], linear_only=True
    )
    answer = client.call(OperationalSpaceInertia, "~/operational_space_inertia", request)
    assert answer.success, answer.message
    J = matrix(answer.jacobian)
    np.testing.assert_allclose(J, robot.jacobian(q, "tool0")[:3], TOLERANCE, TOLERANCE)
    inverse = J @ np.linalg.solve(robot.mass_matrix(q), J.T)
    np.testing.assert_allclose(matrix(answer.inverse_inertia), inverse, 1e-8, 1e-8)
    np.testing.assert_allclose(matrix(answer.inertia) @ inverse, np.eye(3), 0, 1e-7)
    assert answer.rank == 3


def test_operational_space_inertia_of_points_on_links(arm):
    client, urdf, robot = arm
    q, _, _ = random_state(robot, np.random.default_rng(7))
    point = [0.1, -0.2, 0.3]
    text = f"{{tip: {{link: tool0, xyz: {point}}}}}"
    assert client.set_parameter("end_effectors", text).successful
    J = PinocchioOracle(urdf, robot).jacobian(q, ("tool0", point))
    for frame, shift in (("tip", []), ("tool0", [Point(x=0.1, y=-0.2, z=0.3)])):
        request = OperationalSpaceInertia.Request(
            state=State(position=q.tolist()), frames=[frame], offsets=shift
        )
        answer = client.call(OperationalSpaceInertia, "~/operational_space_inertia", request)
        assert answer.success, answer.message
        np.testing.assert_allclose(matrix(answer.jacobian), J, TOLERANCE, TOLERANCE)
        assert answer.jacobian.row_names[0] == f"{frame}.x"
    request.offsets = [Point(), Point()]
    answer = client.call(OperationalSpaceInertia, "~/operational_space_inertia", request)
    assert not answer.success and "offsets has 2 points for 1 frames" in answer.message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{tip: tool0}", "'tip' is tool0; write"),
        ("{tip: {link: tool0, xyz: [0, 0]}}", "'tip'"),
        ("[tip]", "no mapping"),
        ("{tip: [", "not YAML"),
        ("{tip: {link: hand}}", "no link of"),
    ],
)
def test_refuses_end_effectors_that_are_nowhere(arm, text, says):
    client, _, _ = arm
    result = client.set_parameter("end_effectors", text)
    assert not result.successful
    assert says in result.reason


GOOD = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
JOINTS = [
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
]


@pytest.mark.parametrize(
    ("state", "extra", "says"),
    [
        (State(joint_names=[*JOINTS[:5], "knee"], position=GOOD), {}, "unknown joints: knee"),
        (State(joint_names=[*JOINTS, JOINTS[0]], position=[*GOOD, 0.1]), {}, "named twice"),
        (State(joint_names=["a"] * 10_001, position=[0.0] * 10_001), {}, "name 10000 at most"),
        (State(position=GOOD, velocity=[1e200, *GOOD[1:]]), {}, "above 1e+50"),
        (State(position=[1e15, *GOOD[1:]]), {}, "give at most 1e+12"),
        (State(joint_names=JOINTS[:5], position=GOOD[:5]), {}, "wrist_3_joint"),
        (State(position=GOOD[:5]), {}, "position has 5 numbers for 6 joints"),
        (State(joint_names=JOINTS), {}, "position has 0 numbers for 6 joints"),
        (State(), {}, "no joint states yet"),
        (State(position=GOOD, velocity=GOOD[:2]), {}, "velocity has 2 numbers for 6 joints"),
        (State(position=GOOD), {"acceleration": [1.0]}, "acceleration has 1 numbers"),
        (State(position=[*GOOD[:5], float("nan")]), {}, "position is not finite"),
        (State(position=GOOD, velocity=[*GOOD[:5], float("inf")]), {}, "velocity is not finite"),
        (State(position=GOOD), {"external_wrenches": [wrench_on("hand", [0] * 6)]}, "'hand'"),
        (State(position=GOOD), {"external_wrenches": [wrench_on("", [0] * 6)]}, "frame_id ''"),
    ],
)
def test_refuses_what_it_cannot_answer(arm, state, extra, says):
    client, _, _ = arm
    answer = client.call(
        InverseDynamics, "~/inverse_dynamics", InverseDynamics.Request(state=state, **extra)
    )
    assert not answer.success
    assert says in answer.message
    assert "\n" not in answer.message
    assert not answer.effort


def test_no_answer_has_a_number_that_is_not_finite(arm):
    client, _, _ = arm
    state = State(position=GOOD, velocity=[1e200] * len(GOOD))
    answer = client.call(MassMatrix, "~/mass_matrix", MassMatrix.Request(state=state))
    assert not answer.success
    assert "above 1e+50" in answer.message
    assert not len(answer.bias)


def test_refuses_a_quaternion_of_zero(solo):
    client, _, robot = solo
    state = State(position=[0.0] * len(robot.joint_names))
    state.base_pose.orientation.w = 0.0
    answer = client.call(
        InverseDynamics, "~/inverse_dynamics", InverseDynamics.Request(state=state)
    )
    assert not answer.success
    assert "unit quaternion" in answer.message


def test_ignores_the_base_pose_of_a_fixed_base(arm):
    client, _, _ = arm
    state = State(position=GOOD)
    state.base_pose.orientation.w = 0.0
    answer = client.call(
        InverseDynamics, "~/inverse_dynamics", InverseDynamics.Request(state=state)
    )
    assert answer.success, answer.message
