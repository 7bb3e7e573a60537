"""The node on an ankle whose rods spin about themselves: efforts from the motors' states alone."""

import numpy as np
from conversation import Conversation, Diagnoses, efforts
from mechanism_table import MECHANISMS


def test_motor_states_give_efforts(graph):
    mechanism = MECHANISMS["parallel_ankle"]
    robot, motors = mechanism.load(), ("left_motor", "right_motor")
    graph.serve(robot_description=mechanism.urdf.read_text(), loop_constraints=str(mechanism.loops))
    client = graph.client()
    client.until_active()
    talk = Conversation(client)
    talk.answer_to(motors, [0.0, 0.0], [0.0, 0.0])
    states = []
    for t in np.arange(0.0, 0.2, 1e-3):
        position = 0.3 * np.sin([3.0 * t, 4.0 * t])
        velocity = 0.3 * np.array([3.0 * np.cos(3.0 * t), 4.0 * np.cos(4.0 * t)])
        states.append((motors, position.tolist(), velocity.tolist()))
    before, sent = Diagnoses(client).refusals(), []
    for state in states:
        sent.append(client.joint_states(*state))
        talk.publisher.publish(sent[-1])
        client.spin(1e-3)
    client.until(lambda: talk.answered(sent[-1]))
    answers = [talk.answered(message) for message in sent]
    answered = [k for k, answer in enumerate(answers) if answer is not None]
    assert len(answered) > 0.5 * len(states)  # both topics are best-effort
    for k in answered[::20]:
        _, position, velocity = states[k]
        q = robot.close(dict(zip(motors, position, strict=True)))
        yd = robot.independent_velocity(q, dict(zip(motors, velocity, strict=True)))
        assert tuple(answers[k].name) == robot.actuated_joint_names
        expected = efforts(robot, q, yd)
        np.testing.assert_allclose(answers[k].effort, expected, rtol=1e-7, atol=1e-9)
    assert Diagnoses(client).refusals() == before
