"""Kernels on disk: the same as those that are made, made once, and never trusted blindly."""

import logging
import os
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from mechanism_table import MECHANISMS

from rbda_ros import Payload, load_robot
from rbda_ros.kernels import cache, disk_cache, machine
from rbda_ros.kernels.fingerprint import NoFingerprintError, fingerprint
from rbda_ros.kernels.kernel import Kernel

FOUR_BAR = MECHANISMS["four_bar"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "kernels"
    monkeypatch.setenv("RBDA_ROS_CACHE", str(folder))
    return folder


def answers(name="inverse_dynamics"):
    """Of a robot that is loaded anew: one state, and a batch of them."""
    robot = load_robot(FOUR_BAR.urdf, FOUR_BAR.loops, floating_base=True)
    kernel = robot.kernel(name)
    assert kernel.compile(batch=True)
    q, x = robot.tree.home, np.full(robot.ny, 0.3)
    one = kernel.call(q, x, x)[0].tobytes()
    many = kernel.batch(*(np.tile(array, (5, 1)) for array in (q, x, x)))[0].tobytes()
    return one, many, kernel.instructions


def nothing_is_made(monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("it is there already")

    monkeypatch.setattr(cache, "trace_function", forbidden)
    monkeypatch.setattr(machine, "compile_modules", forbidden)
    monkeypatch.setattr(machine, "read_program", forbidden)


def test_the_second_time_nothing_is_traced_or_compiled(folder, monkeypatch):
    monkeypatch.setenv("RBDA_ROS_CACHE", "0")
    made = answers()
    monkeypatch.setenv("RBDA_ROS_CACHE", str(folder))
    assert answers() == made
    assert len(list(folder.iterdir())) == 3  # the trace, and code for one state and for batches
    nothing_is_made(monkeypatch)
    assert answers() == made


@pytest.mark.parametrize("damage", [b"", b"nothing", None])
def test_a_damaged_file_is_made_anew(folder, damage):
    made = answers()
    for path in folder.iterdir():
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]) if damage is None else damage)
    damaged = {path: path.read_bytes() for path in folder.iterdir()}
    assert answers() == made
    assert all(path.read_bytes() != content for path, content in damaged.items())


def test_another_robot_or_frame_or_payload_is_another_kernel(folder):
    robot = load_robot(FOUR_BAR.urdf, FOUR_BAR.loops)
    link = robot.description.links[-1].name
    robot.kernel("gravity_force")
    count = len(list(folder.iterdir()))
    load_robot(FOUR_BAR.urdf, FOUR_BAR.loops).kernel("gravity_force")
    assert len(list(folder.iterdir())) == count
    for other in (
        load_robot(FOUR_BAR.urdf, FOUR_BAR.loops, gravity=(0.0, 0.0, -1.62)),
        load_robot(FOUR_BAR.urdf, FOUR_BAR.loops, floating_base=True),
        robot.with_payloads({"tool": Payload(link, 1.0)}),
        robot.with_payloads({"tool": Payload(link, 2.0)}),
    ):
        other.kernel("gravity_force")
        count += 1
        assert len(list(folder.iterdir())) == count
    for frame in (link, (link, (0.1, 0.0, 0.0))):
        robot.kernel("frame_pose", frame)
        count += 1
        assert len(list(folder.iterdir())) == count


def test_switched_off_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("RBDA_ROS_CACHE", "0")
    answers()
    assert not list(tmp_path.iterdir())
    monkeypatch.delenv("RBDA_ROS_CACHE")
    answers()
    assert len(list((tmp_path / "rbda_ros").iterdir())) == 3


def test_where_nothing_can_be_written_it_works_without(tmp_path, monkeypatch, caplog):
    file = tmp_path / "file"
    file.write_text("not a folder")
    for place in (file, file / "below"):
        monkeypatch.setenv("RBDA_ROS_CACHE", str(place))
        assert answers()
    folder = tmp_path / "full"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("RBDA_ROS_CACHE", str(folder))

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert answers()
    assert not list(folder.iterdir())
    assert not caplog.records


def test_a_folder_that_others_may_write_to_is_not_used(folder, caplog):
    folder.mkdir()
    folder.chmod(0o777)
    with caplog.at_level(logging.WARNING):
        assert not disk_cache.in_use()
    assert "others may write to it" in caplog.text
    assert not list(folder.iterdir())


def test_files_are_bounded_and_the_least_recently_used_goes_first(folder, monkeypatch):
    monkeypatch.setattr(disk_cache, "MOST_BYTES", 5000)

    def store(name):
        return disk_cache.load_or_make(name, lambda: ({"name": name}, [b"x" * 1000, b"y"]))

    for k in range(4):
        assert store(f"k{k}") == ({"name": f"k{k}"}, [b"x" * 1000, b"y"])
        os.utime(folder / f"k{k}.kernel", (k, k))
    store("k0")  # used just now
    store("k4")
    names = {path.stem for path in folder.iterdir()}
    assert "k0" in names and "k4" in names and "k1" not in names
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 5000
    assert all(path.suffix == ".kernel" for path in folder.iterdir())
    assert store("k2") == ({"name": "k2"}, [b"x" * 1000, b"y"])


def test_fingerprints_tell_contents_apart():
    x = ca.SX.sym("x")
    values = [
        *(None, 0, 0.0, -0.0, False, "", "0", b"", (), [], (0,), (0, 0), ((0,), 0), ("ab", "c")),
        *(("a", "bc"), {}, {"a": 1}, {"a": 2}, frozenset(), frozenset({"a"}), np.zeros(2)),
        *(np.zeros((2, 1)), np.zeros(2, np.float32), np.zeros(3), FOUR_BAR),
        *(ca.Function("f", [x], [x]), ca.Function("f", [x], [2 * x]), ca.DM(1), ca.DM(2)),
    ]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(frozenset("abc")) == fingerprint(frozenset("cba"))
    with pytest.raises(NoFingerprintError):
        fingerprint(print)
    with pytest.raises(NoFingerprintError):
        fingerprint([Path("a")])


def test_kernels_of_one_content_share_a_file(folder, monkeypatch):
    x = ca.SX.sym("x", 3)
    first, second = (Kernel(ca.Function("f", [x], [ca.sin(x) / x])) for _ in range(2))
    assert first.compile()
    nothing_is_made(monkeypatch)
    assert second.compile()
    assert second.call(np.ones(3))[0].tobytes() == first.call(np.ones(3))[0].tobytes()
