"""Labelling beside decoding and encoding the same messages with the same library (rosbags)."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from rosbags.rosbag2 import Reader, StoragePlugin, Writer

from rbda_ros.node.settings import Settings
from rbda_ros.recordings.bags import JOINT_STATE, typestore
from rbda_ros.recordings.label_file import Job, Model, Options, label_file

sys.path.append(str(Path(__file__).resolve().parents[1] / "test"))
from bag_maker import LEG, LOOPS, demo_leg, messages_of, swinging, write_bag

ROUNDS = 5
MESSAGES = 10_000


def decode(source: Path) -> float:
    """CPU seconds of reading and decoding the messages of a bag."""
    store = typestore()
    began = time.process_time()
    with Reader(source) as reader:
        for connection, _, data in reader.messages():
            store.deserialize_cdr(data, connection.msgtype)
    return time.process_time() - began


def encode(labelled: Path, target: Path) -> float:
    """CPU seconds of encoding and writing the messages of a labelled bag."""
    store = typestore()
    with Reader(labelled) as reader:
        messages = [
            (connection, at, store.deserialize_cdr(data, connection.msgtype))
            for connection, at, data in reader.messages()
        ]
    began = time.process_time()
    with Writer(target, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topics = {
            topic: writer.add_connection(topic, kind, typestore=store)
            for topic, kind in {(c.topic, c.msgtype) for c, _, _ in messages}
        }
        for connection, at, message in messages:
            data = store.serialize_cdr(message, connection.msgtype)
            writer.write(topics[connection.topic], at, data)
    return time.process_time() - began


def measure(folder: Path) -> tuple[float, float, float]:
    """CPU seconds of one labelling, of decoding the input, of encoding the output."""
    began = time.process_time()
    model = Model(LEG.read_text(), LOOPS.read_text())
    settings = Settings(publish_external_effort=True)
    label_file(Job(folder / "bag", folder / "out", model, settings, Options()))
    labelling = time.process_time() - began
    return labelling, decode(folder / "bag"), encode(folder / "out", folder / "again")


def main() -> None:
    """Print medians of ratios, each of one round; one core."""
    robot = demo_leg()
    motion = swinging(robot, MESSAGES, 1000.0)
    taken = []
    with tempfile.TemporaryDirectory() as scratch:
        for k in range(ROUNDS + 1):
            folder = Path(scratch) / str(k)
            folder.mkdir()
            write_bag(folder / "bag", messages_of(motion))
            taken.append(measure(folder))
    taken = taken[1:]  # the first compiles the kernels
    each = [1e6 * statistics.median(x) / MESSAGES for x in zip(*taken, strict=True)]
    labelling, decoding, encoding = each
    ratio = statistics.median(l / (d + e) for l, d, e in taken)
    print(
        f"demo leg, {MESSAGES} joint states of {JOINT_STATE}, four labels each; us a joint state:"
    )
    peers = f"decoding {decoding:.0f} and encoding {encoding:.0f}"
    print(f"labelling {labelling:.0f}; {peers}: {ratio:.2f}x")


if __name__ == "__main__":
    main()
