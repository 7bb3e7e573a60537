"""Models and settings that change under the native thread, which goes on by itself."""

import gc
import threading
import time
import weakref
from contextlib import contextmanager

import numpy as np
import pytest
from conversation import efforts
from native_talk import CLOSE, LEG, LOOPS, YD, Y, good, running
from rclpy.parameter import Parameter

from rbda_ros import Payload, load_robot


@pytest.fixture(scope="module")
def leg():
    with running(LEG, LOOPS) as talk:
        yield talk


@contextmanager
def streaming(leg):
    """Joint states at full speed, from a thread."""
    robot, stop = leg.robot, threading.Event()

    def stream():
        while not stop.is_set():
            leg.publisher.publish(leg.client.joint_states(*good(robot)))
            time.sleep(0.001)

    thread = threading.Thread(target=stream)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_models_are_swapped_under_it_and_freed(leg):
    """A stream at full speed, while loads come and go; nothing of the old models stays."""
    robot, gone = leg.robot, []
    leg.natively(*good(robot))

    def swap_to(loaded):
        swapped = threading.Event()

        def swap():
            leg.node.stream.prepare(loaded)
            leg.node.replace_model(leg.node.robot, loaded)
            swapped.set()

        leg.node.executor.create_task(swap)
        leg.client.until(swapped.is_set)

    with streaming(leg):
        for k in range(8):
            swap_to(robot.with_payloads({"box": Payload("foot", 0.5 * (k + 1))}))
            gone.append(weakref.ref(leg.robot))
            leg.client.spin(0.1)
    answer = leg.natively(*good(robot))
    loaded = robot.with_payloads({"box": Payload("foot", 4.0)})
    np.testing.assert_allclose(answer.effort, efforts(loaded, loaded.close(Y), YD), **CLOSE)
    swap_to(robot)
    leg.natively(*good(robot))
    gc.collect()
    assert [one() for one in gone] == [None] * 8


def use(leg, robot):
    """Put another model in the place of that in use."""
    leg.node.stream.prepare(robot)
    return lambda: leg.node.replace_model(leg.node.robot, robot)


def assert_answers(leg, robot):
    """By the thread, though Python does nothing."""
    for _ in range(3):
        answer = leg.answer_to(*good(robot))
        np.testing.assert_allclose(answer.effort, efforts(robot, robot.close(Y), YD), **CLOSE)
    assert leg.by_thread >= 3


def test_another_load_needs_no_turn_of_python(leg):
    robot = leg.robot
    leg.natively(*good(robot))
    loaded = robot.with_payloads({"box": Payload("foot", 2.5)})
    with leg.held(use(leg, loaded)):
        assert_answers(leg, loaded)
    with leg.held(use(leg, robot)):
        assert_answers(leg, robot)


def test_another_description_needs_no_turn_of_python(leg):
    """From where the joints are: the assembly is elsewhere."""
    before = leg.robot
    leg.natively(*good(before))
    text = LEG.read_text().replace('name="demo_leg"', 'name="another"', 1)
    heavier = load_robot(text.replace('<mass value="', '<mass value="1'), LOOPS)
    with leg.held(use(leg, heavier)):
        assert_answers(leg, heavier)
    with leg.held(use(leg, before)):
        assert_answers(leg, before)


def test_models_prepared_at_the_same_time_do_not_push_each_other_out(leg):
    robot = leg.robot
    leg.natively(*good(robot))
    first, second = (robot.with_payloads({"box": Payload("foot", m)}) for m in (1.0, 2.0))
    swaps = use(leg, first), use(leg, second)
    for swap, loaded in zip(swaps, (first, second), strict=True):
        with leg.held(swap):
            assert_answers(leg, loaded)
    with leg.held(use(leg, robot)):
        assert_answers(leg, robot)


def test_other_settings_need_no_turn_of_python(leg):
    robot = leg.robot
    leg.natively(*good(robot))
    for cutoff in (20.0, 30.0):
        change = [Parameter("velocity_cutoff", value=cutoff)]
        with leg.held(lambda change=change: leg.node.set_parameters(change)):
            assert_answers(leg, robot)


def test_topics_that_are_not_wanted_any_more_go_when_the_thread_does_not_use_them(leg):
    """A stream at full speed meanwhile."""
    robot = leg.robot

    def topics():
        return {name for name, _ in leg.client.node.get_topic_names_and_types()}

    leg.natively(*good(robot))
    with streaming(leg):
        for _ in range(3):
            leg.set(
                command_joints=list(robot.actuated_joint_names), command_source="joint_commands"
            )
            leg.client.until(lambda: "/dynamics/position_commands" in topics())
            leg.set(command_source="feedforward", publish_joint_states="never")
            leg.client.until(lambda: "/dynamics/position_commands" not in topics())
            leg.client.until(lambda: "/dynamics/joint_states" not in topics())
            leg.set(command_joints=[""], publish_joint_states="auto")
            leg.client.until(lambda: "/dynamics/joint_states" in topics())
    answer = leg.natively(*good(robot))
    np.testing.assert_allclose(answer.effort, efforts(robot, robot.close(Y), YD), **CLOSE)
