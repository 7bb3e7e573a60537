"""Labelling beside decoding and encoding the same messages with the same library (rosbags)."""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from distributed import LocalCluster
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer

from rbda_ros.control.settings import Settings
from rbda_ros.recordings.bags import JOINT_STATE, typestore
from rbda_ros.recordings.fleet import label_all
from rbda_ros.recordings.label_file import Job, Model, Options, label_file

sys.path.append(str(Path(__file__).resolve().parents[1] / "test"))
from bag_maker import LEG, LOOPS, demo_leg, messages_of, swinging, write_bag

MODEL = Model(LEG.read_text(), LOOPS.read_text())
SETTINGS = Settings(publish_external_effort=True)
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
    label_file(Job(folder / "bag", folder / "out", MODEL, SETTINGS))
    labelling = time.process_time() - began
    return labelling, decode(folder / "bag"), encode(folder / "out", folder / "again")


def throughput(folder: Path) -> None:
    """Print medians of ratios, each of one round; one core."""
    motion = swinging(demo_leg(), MESSAGES, 1000.0)
    taken = []
    for k in range(ROUNDS + 1):
        write_bag(folder / str(k) / "bag", messages_of(motion))
        taken.append(measure(folder / str(k)))
    taken = taken[1:]  # the first compiles the kernels
    each = [1e6 * statistics.median(x) / MESSAGES for x in zip(*taken, strict=True)]
    labelling, decoding, encoding = each
    ratio = statistics.median(l / (d + e) for l, d, e in taken)
    print(f"demo leg, {MESSAGES} joint states, four labels each; us of CPU a joint state:")
    peers = f"decoding {decoding:.0f} and encoding {encoding:.0f}"
    print(f"labelling {labelling:.0f}; {peers}: {ratio:.2f}x")


def scaling(folder: Path) -> None:
    """Print how much faster two workers are than one, once they have compiled their kernels.

    In turns, and the median of their ratios: whatever else the machine does, it does to both.
    """
    count = MESSAGES // 2
    motion = swinging(demo_leg(), count, 1000.0)
    for k in range(8):
        write_bag(folder / "bags" / str(k), messages_of(motion))
    rates: dict[int, list[float]] = {1: [], 2: []}
    with ExitStack() as stack:
        clusters = {
            workers: stack.enter_context(
                LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
            )
            for workers in rates
        }
        for turn in range(ROUNDS + 1):
            for workers, cluster in clusters.items():
                out = folder / f"{workers} {turn}"
                began = time.perf_counter()
                label_all(
                    [str(folder / "bags")], str(out), MODEL, SETTINGS, Options(),
                    scheduler=cluster.scheduler_address,
                )  # fmt: skip
                rates[workers].append(8 * count / (time.perf_counter() - began))
    one, two = rates[1][1:], rates[2][1:]  # the first compiles the kernels
    ratio = statistics.median(b / a for a, b in zip(one, two, strict=True))
    medians = f"{statistics.median(one):.0f} by one worker, {statistics.median(two):.0f} by two"
    print(f"joint states a second: {medians}: {ratio:.2f}x")


def memory(folder: Path, gigabytes: float) -> None:
    """Print the memory that labelling takes of a long bag, most of it camera images."""
    image = bytes(2**20)
    motion = list(messages_of(swinging(demo_leg(), MESSAGES, 1000.0)))
    pictures = int(1024 * gigabytes)
    writer = Writer(folder / "long", version=9, storage_plugin=StoragePlugin.MCAP)
    writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with writer:
        states = writer.add_connection("/joint_states", JOINT_STATE, typestore=typestore())
        camera = writer.add_connection("/image", "sensor_msgs/msg/Image", typestore=typestore())
        for k in range(max(pictures, MESSAGES)):
            time_ns, data = motion[k % MESSAGES]
            time_ns += (k // MESSAGES) * 10**10
            writer.write(states, time_ns, data)
            if k < pictures:
                writer.write(camera, time_ns, image)
    job = Job(folder / "long", folder / "labelled", MODEL, SETTINGS)
    with ProcessPoolExecutor(1) as pool:
        peak = pool.submit(_peak_memory, job).result()
    print(f"{gigabytes:g} GB in one bag: {peak:.0f} MB of memory at most")


def _peak_memory(job: Job) -> float:
    label_file(job)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


SECTIONS: dict[str, Callable[[Path], None]] = {
    "throughput": throughput,
    "scaling": scaling,
    "memory": partial(memory, gigabytes=1.0),
}


def main(names: Sequence[str]) -> None:
    """Print some sections, or all; ``memory=10`` for a bag of 10 GB."""
    for name in names or SECTIONS:
        section, _, gigabytes = name.partition("=")
        run = partial(memory, gigabytes=float(gigabytes)) if gigabytes else SECTIONS[section]
        with tempfile.TemporaryDirectory() as scratch:
            run(Path(scratch))


if __name__ == "__main__":
    main(sys.argv[1:])
