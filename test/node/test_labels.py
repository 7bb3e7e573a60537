"""Labels of a bag equal the answers of a real node to the same messages, to the last bit."""

from bag_maker import LEG, LOOPS, messages_of, swinging, write_bag
from rclpy.serialization import deserialize_message
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import JointState

from rbda_ros import load_robot
from rbda_ros.control.settings import Settings
from rbda_ros.recordings.label_file import Job, Model, label_file

TOPICS = ("feedforward", "joint_states", "external_effort")
# Any age: the stamps of a bag are not of today, on purpose.
VALUES = {
    "joint_state_timeout": 0.0,
    "acceleration_source": "estimate",
    "publish_external_effort": True,
    "publish_joint_states": "always",
    "joint_offsets": "{knee: 0.013, hip_flexion: -0.007}",
}
MAX_PLAYS = 6


def numbers(message):
    return tuple(bytes(memoryview(getattr(message, f))) for f in ("position", "velocity", "effort"))


def stamp(message):
    return message.header.stamp.sec, message.header.stamp.nanosec


def play(client, publisher, received, messages):
    """Publish serialized messages, each once the one before was answered; the answers."""
    for answers in received.values():
        answers.clear()
    for _, data in messages:
        at = stamp(deserialize_message(data, JointState))
        publisher.publish(data)
        # The first messages find no kernel, or no acceleration yet, and are not answered.
        for _ in range(20):
            client.spin(0.002)
            if any(stamp(answer) == at for answer in received["external_effort"][-3:]):
                break
    client.spin(0.2)
    return {
        topic: {stamp(message): numbers(message) for message in answers}
        for topic, answers in received.items()
    }


def test_labels_equal_the_answers_of_a_node_to_the_last_bit(graph, tmp_path):
    """Played again until its kernels are compiled, as those of labels are from the first."""
    graph.serve(robot_description=LEG.read_text(), loop_constraints=str(LOOPS), **VALUES)
    client = graph.client()
    client.until_active()
    publisher = client.publisher(JointState, "joint_states")
    received = {topic: client.listen(JointState, f"~/{topic}") for topic in TOPICS}
    messages = list(messages_of(swinging(load_robot(LEG, LOOPS), count=60)))
    # Each play but the first begins with stamps that jump back: so does the second half of the bag.
    again = [(time + 10**10, data) for time, data in messages]
    bag = write_bag(tmp_path / "bag", [*messages, *again])
    # Another text, for another robot than those that other tests interpret in this process.
    model = Model(LEG.read_text() + "\n", LOOPS.read_text())
    label_file(Job(bag, tmp_path / "out", model, Settings(**VALUES)))
    labels = {topic: {} for topic in TOPICS}
    with Reader(tmp_path / "out") as reader:
        for connection, _, data in reader.messages():
            node, _, topic = connection.topic.rpartition("/")
            if node == "/dynamics" and topic in labels:
                message = deserialize_message(data, JointState)
                labels[topic][stamp(message)] = numbers(message)
    assert len(labels["feedforward"]) == 58  # of the first two messages, no rate is known
    for _ in range(MAX_PLAYS):
        answers = play(client, publisher, received, messages)
        shared = {t: answers[t].keys() & labels[t].keys() for t in TOPICS}
        if all(len(shared[t]) > 50 for t in TOPICS) and all(
            answers[t][k] == labels[t][k] for t in TOPICS for k in shared[t]
        ):
            break
    for topic in TOPICS:
        assert len(shared[topic]) > 50
        for at in sorted(shared[topic]):
            assert answers[topic][at] == labels[topic][at], (topic, at)
