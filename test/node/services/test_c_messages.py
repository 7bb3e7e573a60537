"""Messages in C memory against what rclpy makes of the same memory."""

import gc

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from hypothesis import given, settings
from hypothesis import strategies as st
from nav_msgs.msg import Odometry
from rbda_ros.msg import State
from rbda_ros.srv import InverseDynamics

from rbda_ros import srv
from rbda_ros.node.services.c_messages import SentMessage, TakenMessage, UnknownLayoutError

NAMES = [
    "ConstrainedForwardDynamics",
    "ForwardDynamics",
    "InverseDynamics",
    "MassMatrix",
    "OperationalSpaceInertia",
    "IdentifyPayload",
    "SetPayload",
    "TrajectoryInverseDynamics",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_service_with_numbers_is_known(name):
    kind = getattr(srv, name)
    for message in (kind.Request, kind.Response):
        TakenMessage(message)
        assert SentMessage(message).read() == message()


def test_what_is_not_known_is_refused():
    for message in (TakenMessage, SentMessage):
        with pytest.raises(UnknownLayoutError, match="Array _covariance"):
            message(Odometry)


def test_a_message_that_is_not_where_it_should_be_is_refused(monkeypatch):
    """As if the fields of State came in another order."""
    from rbda_ros.node.services import c_messages

    slots = c_messages._slots

    def swapped(kind):
        fields = list(slots(kind))
        if kind is State:
            fields[1], fields[2] = fields[2], fields[1]
        return fields

    monkeypatch.setattr(c_messages, "_slots", swapped)
    c_messages.layout.cache_clear()
    for message in (TakenMessage, SentMessage):
        with pytest.raises(UnknownLayoutError, match="unknown way"):
            message(InverseDynamics.Request)
    c_messages.layout.cache_clear()


TEXTS = st.lists(st.text("ab_é/", max_size=9), max_size=5)
NUMBERS = st.lists(st.floats(allow_nan=False), max_size=5)
WRENCHES = st.lists(st.tuples(st.text("ab", max_size=3), st.floats(-1e3, 1e3)), max_size=3)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(TEXTS, NUMBERS, NUMBERS, WRENCHES, st.floats(-1, 1)), min_size=1))
def test_whatever_is_written_is_read_by_rclpy(requests):
    """One message, written again and again."""
    message = SentMessage(InverseDynamics.Request)
    view = message.view
    for names, position, acceleration, wrenches, w in requests:
        plain = InverseDynamics.Request()
        for request in (plain, view):
            request.state.joint_names = names
            request.state.position = np.array(position).tolist()
            request.acceleration = acceleration
            request.state.base_pose.orientation.w = w
            request.external_wrenches = [wrench(*given) for given in wrenches]
        assert message.read() == plain
        assert view.state.joint_names == names
        assert view.state.position.tolist() == position
        assert [w.header.frame_id for w in view.external_wrenches] == [w[0] for w in wrenches]
    gc.collect()
    assert message.read() == plain


def wrench(link, x):
    stamped = WrenchStamped()
    stamped.header.frame_id, stamped.wrench.force.x = link, x
    return stamped


def test_arrays_of_one_size_and_the_same_names_stay_where_they_are():
    view = SentMessage(InverseDynamics.Response).view
    names = ("hip", "knee")
    view.joint_names, view.effort = names, [1.0, 2.0]
    before = view._joint_names.data, view._effort.data
    view.joint_names, view.effort = names, np.array([3.0, 4.0])
    assert (view._joint_names.data, view._effort.data) == before
    assert view.effort.tolist() == [3.0, 4.0]
    view.effort = [5.0]
    assert view.effort.tolist() == [5.0]


def test_texts_that_are_changed_in_place_are_not_missed():
    view = SentMessage(InverseDynamics.Response).view
    names = ["hip", "knee"]
    view.joint_names = names
    names[1] = "ankle"
    view.joint_names = names
    assert view.joint_names == ["hip", "ankle"]


def test_a_message_that_was_taken_cannot_be_written():
    view = TakenMessage(InverseDynamics.Request).view
    with pytest.raises(AttributeError):
        view.state.position = [1.0]
