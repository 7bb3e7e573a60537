"""Label many recordings, on the cores of this machine or on a Dask cluster."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from rbda_ros.control.settings import Settings
from rbda_ros.errors import one_line
from rbda_ros.recordings.bags import (
    Recording,
    find_recordings,
    local_copy,
    local_target,
    require,
    write_text,
)
from rbda_ros.recordings.label_file import FileReport, Job, Model, Options, label_file

REPORT = "label_report.json"
SILENT = 60.0
"""Time without a heartbeat after which a worker's file is given to another [s]."""
LOOK = 5.0
"""Period of looking which workers answer [s]; heartbeats come about every half second."""
POLL = 0.02
"""Period of looking whether a file is done [s]."""


@dataclass(frozen=True)
class Task:
    """One recording of a fleet: what is sent to a worker."""

    recording: Recording
    folder: str
    model: Model
    settings: Settings
    options: Options


def label_task(task: Task, progress: Callable[[float], None] = lambda share: None) -> FileReport:
    """Label one recording. Errors are in the report; nothing is raised."""
    source = task.recording.source
    try:
        with (
            local_copy(source) as bag,
            local_target(task.folder, task.recording.name) as target,
        ):
            job = Job(bag, target, task.model, task.settings, task.options)
            report = label_file(job, progress)
        at = f"{task.folder.rstrip('/')}/{task.recording.name}"
        return FileReport(**{**asdict(report), "source": source, "target": at})
    except Exception as error:  # one bad file must not cost the others
        return failed(task, error)


def failed(task: Task, error: BaseException) -> FileReport:
    """The report of a recording that could not be labelled."""
    why = f"{type(error).__name__}: {one_line(error) or 'no reason given'}"
    return FileReport(task.recording.source, "", "failed", note=why)


def label_all(
    places: Sequence[str],
    folder: str,
    model: Model,
    settings: Settings,
    options: Options,
    *,
    workers: int = 0,
    scheduler: str = "",
    told: Callable[[int, int, float, FileReport | None], None] = lambda *_: None,
) -> list[FileReport]:
    """Label all recordings at some places into a folder, and write a report there.

    Args:
        places: bags, folders of bags, globs; paths or URLs.
        folder: of the outputs; a path or a URL.
        model: the robot.
        settings: parameters of the node.
        options: how recordings are labelled.
        workers: processes on this machine; 0 for one a core.
        scheduler: address of a Dask cluster to use in their place.
        told: called with the number of recordings that are done and of all, the share of the one
            under way, and the report of one that is done.

    Raises:
        InputError: there are no recordings, or a module is missing.
    """
    model.load(settings)  # what is wrong with it is said once, and at once
    tasks = [
        Task(recording, folder, model, settings, options) for recording in find_recordings(places)
    ]
    count = min(workers or os.cpu_count() or 1, len(tasks))
    reports: list[FileReport] = []

    def share_done(share: float) -> None:
        told(len(reports), len(tasks), share, None)

    found: Iterator[FileReport] = (label_task(task, share_done) for task in tasks)
    if count > 1 or scheduler:
        found = _on_cluster(tasks, count, scheduler)
    for report in found:
        reports.append(report)
        told(len(reports), len(tasks), 0.0, report)
    reports.sort(key=lambda report: report.source)
    text = json.dumps([asdict(report) for report in reports], indent=1)
    write_text(f"{folder.rstrip('/')}/{REPORT}", text + "\n")
    return reports


def _on_cluster(tasks: Sequence[Task], workers: int, scheduler: str) -> Iterator[FileReport]:
    """Reports in the order in which recordings are done.

    The file of a worker that dies, or has no heartbeat for `SILENT` seconds, is given to another
    worker, once. After that, or where there is no other worker, it is reported as failed.
    """
    require("distributed", "fleet")
    from distributed import as_completed

    with _client(workers, scheduler) as client:
        futures = {client.submit(label_task, task, pure=False): task for task in tasks}
        waiting = as_completed(futures)
        watch = _Watch(client)
        again: set[Task] = set()
        while futures:
            ready = waiting.next_batch(block=False)
            for future in ready:
                task = futures.pop(future, None)
                if task is not None:  # else it was given up
                    error = future.exception()
                    yield future.result() if error is None else failed(task, error)
            if ready:
                continue
            time.sleep(POLL)
            for future in watch.given_up(futures):
                task = futures.pop(future)
                future.cancel()
                if watch.answering and task not in again:
                    again.add(task)
                    other = client.submit(
                        label_task, task, pure=False, workers=sorted(watch.answering)
                    )
                    futures[other] = task
                    waiting.add(other)
                else:
                    yield failed(task, TimeoutError("no worker answers; see whether they run"))


class _Watch:
    """Which workers of a cluster answer.

    Attributes:
        answering: their addresses.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._heartbeats: dict[str, tuple[float, float]] = {}  # with times
        self._next = time.monotonic() + LOOK
        self._alive = time.monotonic()  # when some worker answered
        self.answering: set[str] = set()

    def given_up(self, futures: Collection[Any]) -> list[Any]:
        """Futures whose worker does not answer; all of them if no worker answers."""
        now = time.monotonic()
        if now < self._next:
            return []
        self._next = now + LOOK
        workers = self._client.scheduler_info()["workers"]
        for address, worker in workers.items():
            beat = worker["last_seen"]
            if self._heartbeats.get(address, (None,))[0] != beat:
                self._heartbeats[address] = (beat, now)
        self.answering = {each for each in workers if now - self._heartbeats[each][1] < SILENT}
        if self.answering:
            self._alive = now
        elif now - self._alive > SILENT:
            return list(futures)
        silent = [address for address in workers if address not in self.answering]
        if not silent:
            return []
        processing = self._client.processing(silent)
        lost = {key for keys in processing.values() for key in keys}
        return [future for future in futures if future.key in lost]


@contextmanager
def _client(workers: int, scheduler: str) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    if scheduler:
        with Client(scheduler) as client:
            yield client
        return
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,  # errors are in the report; a heartbeat at the end is none
    )
    with cluster, Client(cluster) as client:
        yield client
