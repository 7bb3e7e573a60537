"""The service of inverse dynamics, with messages in place and plain, against the robot."""

import numpy as np
import pytest
from mechanism_table import MECHANISMS, closed_states
from rbda_ros.srv import InverseDynamics
from ros_requests import pose_of, set_six, six_of, wrench_on

from rbda_ros import load_robot
from rbda_ros.control.settings import Settings
from rbda_ros.errors import InputError
from rbda_ros.node.messages import Call
from rbda_ros.node.services.dynamics_services import inverse_dynamics
from rbda_ros.node.services.in_place import for_service

SETTINGS = Settings()


def in_place():
    kind = for_service(InverseDynamics)
    return kind.Request(), kind.Response()


def no_latest_state(robot):
    raise InputError("no joint states")


def serve(robot, request, response):
    inverse_dynamics(Call(robot, SETTINGS, no_latest_state, None), request, response)


class Served:
    """A robot, and its service with messages in place."""

    def __init__(self, name):
        mechanism = MECHANISMS[name]
        self.floating = mechanism.floating_base
        self.robot = load_robot(mechanism.urdf, mechanism.loops, floating_base=self.floating)
        self.request, self.response = in_place()
        self.ask(self.robot.independent_position(self.robot.tree.home))
        for kernel in ("inverse_dynamics", "actuator_efforts"):
            assert self.robot.kernel(kernel).compile()
        self.states = closed_states(mechanism, 12)

    def ask(self, y, yd=(), ydd=(), names=()):
        """Ask for some motion of y; efforts, and the wrench on the base."""
        given = self.request.state
        if self.floating:
            pose = pose_of(y)
            for part in ("position", "orientation"):
                for axis in getattr(pose, part).get_fields_and_field_types():
                    value = getattr(getattr(pose, part), axis)
                    setattr(getattr(given.base_pose, part), axis, value)
            set_six(given.base_twist, yd if len(yd) else np.zeros(6))
            set_six(self.request.base_acceleration, ydd if len(ydd) else np.zeros(6))
            y, yd, ydd = y[7:], yd[6:], ydd[6:]
        given.joint_names = names
        given.position, given.velocity, self.request.acceleration = y, yd, ydd
        serve(self.robot, self.request, self.response)
        wrench = self.response.base_wrench
        return self.response.effort.tolist(), six_of(wrench.force, wrench.torque)


@pytest.fixture(scope="module", params=["gear", "four_bar"])
def served(request):
    """With a fixed base, and with a floating one."""
    return Served(request.param)


def test_answers_are_those_of_the_robot_to_the_last_bit(served):
    robot, rng = served.robot, np.random.default_rng(4)
    for q in served.states:
        y, (yd, ydd) = robot.independent_position(q), rng.normal(size=(2, robot.ny))
        closed = robot.close(y)
        for names in ((), robot.independent_joint_names):
            for motion in ((yd, ydd), (yd, ()), ((), ydd), ((), ())):
                efforts, wrench = served.ask(y, *motion, names)
                whole = [m if len(m) else np.zeros(robot.ny) for m in motion]
                expected, tau = robot.inverse_dynamics_efforts(closed, *whole)
                assert efforts == expected.tolist()
                assert wrench == (tau[:6].tolist() if served.floating else [0.0] * 6)


def test_other_joints_other_orders_and_wrenches_are_answered_by_the_robot(served):
    robot, rng = served.robot, np.random.default_rng(5)
    base_q, base_v = (7, 6) if served.floating else (0, 0)
    y, (yd, ydd) = robot.independent_position(served.states[0]), rng.normal(size=(2, robot.ny))
    closed = robot.close(y)
    expected, _ = robot.inverse_dynamics_efforts(closed, yd, ydd)

    def reordered(vector, base):
        return np.concatenate([vector[:base], vector[base:][::-1]])

    motion = reordered(y, base_q), reordered(yd, base_v), reordered(ydd, base_v)
    assert served.ask(*motion, robot.independent_joint_names[::-1])[0] == expected.tolist()

    link = robot.description.links[-1].name
    served.request.external_wrenches = [wrench_on(link, [1.0, 2.0, 3.0, 0.1, 0.2, 0.3])]
    wrenches = {link: [1.0, 2.0, 3.0, 0.1, 0.2, 0.3]}
    expected, _ = robot.inverse_dynamics_efforts(closed, yd, ydd, wrenches)
    assert served.ask(y, yd, ydd)[0] == expected.tolist()
    served.request.external_wrenches = []


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_refused_by_the_robot_is_refused(served, bad):
    y = served.robot.independent_position(served.states[0])
    zero = np.zeros(served.robot.ny)
    for which in range(3):
        motion = [y.copy(), zero.copy(), zero.copy()]
        motion[which][-1] = bad
        with pytest.raises(InputError, match="not finite"):
            served.ask(*motion)
    with pytest.raises(InputError, match="numbers for"):
        served.ask(y[:-1])
    with pytest.raises(InputError, match="unknown joints"):
        served.ask(
            y, names=[f"nobody_{k}" for k in range(len(served.robot.independent_joint_names))]
        )


@pytest.mark.parametrize("served", ["four_bar"], indirect=True)
def test_quaternions_are_normalized_or_refused(served):
    y = served.robot.independent_position(served.states[0])
    expected, wrench = served.ask(y)
    y[3:7] *= 1.0 + 1e-6
    efforts, found = served.ask(y)
    np.testing.assert_allclose([*efforts, *found], [*expected, *wrench], 1e-12, 1e-12)
    y[3:7] *= 1.1
    with pytest.raises(InputError, match="unit quaternion"):
        served.ask(y)


def test_another_robot_is_answered_with_its_own_names(served):
    """The other has no floating base, but the response that was sent before may have."""
    other = Served("slider_crank")
    other.request, other.response = served.request, served.response
    robot = other.robot
    y = robot.independent_position(other.states[0])
    expected, _ = robot.inverse_dynamics_efforts(robot.close(y), [0.0], [0.0])
    for _ in range(2):
        assert other.ask(y) == (expected.tolist(), [0.0] * 6)
        assert tuple(other.response.joint_names) == robot.actuated_joint_names


def test_plain_messages_are_answered_the_same(served):
    robot = served.robot
    y = robot.independent_position(served.states[0])
    expected, wrench = served.ask(y)
    request, response = InverseDynamics.Request(), InverseDynamics.Response()
    if served.floating:
        request.state.base_pose, y = pose_of(y), y[7:]
    request.state.position = y.tolist()
    serve(robot, request, response)
    assert response.effort.tolist() == expected
    assert six_of(response.base_wrench.force, response.base_wrench.torque) == wrench


def test_joints_with_quaternions_are_not_answered_from_half_of_them():
    gear = MECHANISMS["gear"]
    robot = load_robot(gear.urdf, {"joints": {"elbow": {"type": "spherical"}}})
    request, response = in_place()
    request.state.position = np.zeros(len(robot.independent_joint_names))
    with pytest.raises(InputError, match="joints with a quaternion: elbow; "):
        serve(robot, request, response)
