"""Many recordings: faults of files, disks and workers, on one process and on a Dask cluster."""

import json
import os
import resource
import shutil
import signal
import threading
import time

import pytest
from bag_maker import LEG, LOOPS, demo_leg, messages_of, swinging, write_bag
from distributed import LocalCluster

from rbda_ros.control.settings import Settings
from rbda_ros.recordings import fleet
from rbda_ros.recordings.label_file import Model, Options

MODEL = Model(LEG.read_text(), LOOPS.read_text())


@pytest.fixture(scope="module")
def messages():
    return list(messages_of(swinging(demo_leg(), 150)))


@pytest.fixture
def bags(tmp_path, messages):
    """Three good ones, one cut short, one of another robot."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a", "b", "c", "cut"):
        write_bag(folder / name, messages)
    file = folder / "cut" / "cut.mcap"
    file.write_bytes(file.read_bytes()[:9000])
    other = [(time, in_other_words(data)) for time, data in messages]
    write_bag(folder / "other", other)
    return folder


def in_other_words(data):
    """The message of another robot, whose joints have other names of the same length."""
    for name in (b"hip", b"knee", b"ankle"):
        data = data.replace(name, bytes(reversed(name)))
    return data


def label(bags, out, **arguments):
    reports = fleet.label_all([str(bags)], str(out), MODEL, Settings(), Options(), **arguments)
    return {os.path.basename(report.source): report for report in reports}


def partials(out):
    return [path.name for path in out.rglob("*") if "partial" in path.name]


def test_bad_recordings_do_not_cost_the_others(bags, tmp_path, messages):
    out = tmp_path / "out"
    reports = label(bags, out, workers=1)
    assert {name: r.status for name, r in reports.items()} == {
        "a": "labelled", "b": "labelled", "c": "labelled", "cut": "failed", "other": "no labels",
    }  # fmt: skip
    assert "ReaderError" in reports["cut"].note
    assert reports["other"].answered == 0 and reports["other"].refused == {"misnamed joints": 150}
    assert "hip" in reports["other"].note  # which joints it lacks
    assert json.loads((out / fleet.REPORT).read_text())[0]["answered"] == 150
    # Once it is whole, a second run does it, and nothing else.
    shutil.rmtree(bags / "cut")
    write_bag(bags / "cut", messages)
    again = label(bags, out, workers=1)
    assert {again[name].status for name in "abc"} == {"there already"}
    assert again["cut"].status == "labelled"
    assert again["other"].status == "no labels" and not (out / "other").exists()


def test_a_full_disk_fails_a_file_and_leaves_nothing_of_it(bags, tmp_path):
    """A limit on the size of files is the nearest to a full disk that needs no other user."""
    out = tmp_path / "out"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        reports = label(bags, out, workers=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert reports["a"].status == "failed" and "OSError: [Errno" in reports["a"].note
    assert not (out / "a").exists() and not partials(out)
    assert label(bags, out, workers=1)["a"].status == "labelled"


def test_an_object_store_holds_the_recordings_and_their_twins(bags):
    import fsspec

    store = fsspec.filesystem("memory")
    store.put(str(bags / "a"), f"memory://{bags}/a", recursive=True)
    for status in ("labelled", "there already"):
        (report,) = fleet.label_all(
            [f"memory://{bags}"], f"memory://{bags}-out", MODEL, Settings(), Options(), workers=1
        )
        assert (report.status, report.target) == (status, f"memory://{bags}-out/a")
    assert store.exists(f"memory://{bags}-out/a/metadata.yaml")
    assert store.exists(f"memory://{bags}-out/{fleet.REPORT}")


@pytest.mark.timeout(120)
def test_a_worker_that_is_killed_costs_its_file_which_is_done_again(bags, tmp_path):
    """On a cluster that is there already, as --scheduler takes it; both workers have a file."""
    out = tmp_path / "out"
    for name in ("a", "b"):  # long enough to be killed in
        shutil.rmtree(bags / name)
        write_bag(bags / name, messages_of(swinging(demo_leg(), 1500)))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        killed = next(iter(cluster.workers.values())).process.process.pid

        def kill():
            while len(partials(out)) < 2:
                time.sleep(0.001)
            os.kill(killed, signal.SIGKILL)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        reports = label(bags, out, scheduler=cluster.scheduler_address)
        killer.join(1.0)
        assert not killer.is_alive()
    good = {name: r.answered for name, r in reports.items() if r.status == "labelled"}
    assert good == {"a": 1500, "b": 1500, "c": 150}
    assert reports["cut"].status == "failed"
    for name in ("a", "b"):
        assert sorted(p.name for p in (out / name).iterdir()) == [f"{name}.mcap", "metadata.yaml"]
    assert not partials(out)


@pytest.mark.timeout(120)
def test_a_worker_that_is_suspended_costs_its_file_which_is_done_again(bags, tmp_path, monkeypatch):
    """And where all of them are, the files are reported as failed: nothing waits forever."""
    monkeypatch.setattr(fleet, "SILENT", 3.0)
    monkeypatch.setattr(fleet, "LOOK", 0.2)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        pids = {name: each.process.process.pid for name, each in cluster.workers.items()}

        def suspend_busy():
            while not (busy := [w for w in cluster.scheduler.workers.values() if w.processing]):
                time.sleep(0.001)
            os.kill(pids[busy[0].name], signal.SIGSTOP)

        try:
            suspender = threading.Thread(target=suspend_busy, daemon=True)
            suspender.start()
            reports = label(bags, tmp_path / "out", scheduler=cluster.scheduler_address)
            suspender.join()
            good = {name: r.answered for name, r in reports.items() if r.status == "labelled"}
            assert good == {"a": 150, "b": 150, "c": 150}
            for process in pids.values():
                os.kill(process, signal.SIGSTOP)
            reports = label(bags, tmp_path / "more", scheduler=cluster.scheduler_address)
            assert {report.status for report in reports.values()} == {"failed"}
            assert all("no worker answers" in report.note for report in reports.values())
        finally:
            for process in pids.values():
                os.kill(process, signal.SIGCONT)
