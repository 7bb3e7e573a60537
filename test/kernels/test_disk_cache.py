"""Kernels on disk: the same as those that are made, made once, and never trusted blindly."""

import hashlib
import logging
import os
import stat
from concurrent.futures import ThreadPoolExecutor
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


def stored(folder):
    return sorted(folder.glob("*.kernel"))


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
    assert len(stored(folder)) == 3  # the trace, and code for one state and for batches
    nothing_is_made(monkeypatch)
    assert answers() == made


@pytest.mark.parametrize("damage", [b"", b"nothing", None])
def test_a_damaged_file_is_made_anew(folder, damage):
    made = answers()
    for path in stored(folder):
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]) if damage is None else damage)
    damaged = {path: path.read_bytes() for path in stored(folder)}
    assert answers() == made
    assert all(path.read_bytes() != content for path, content in damaged.items())


def test_another_robot_or_frame_or_payload_is_another_kernel(folder):
    robot = load_robot(FOUR_BAR.urdf, FOUR_BAR.loops)
    link = robot.description.links[-1].name
    robot.kernel("gravity_force")
    count = len(stored(folder))
    load_robot(FOUR_BAR.urdf, FOUR_BAR.loops).kernel("gravity_force")
    assert len(stored(folder)) == count
    for other in (
        load_robot(FOUR_BAR.urdf, FOUR_BAR.loops, gravity=(0.0, 0.0, -1.62)),
        load_robot(FOUR_BAR.urdf, FOUR_BAR.loops, floating_base=True),
        robot.with_payloads({"tool": Payload(link, 1.0)}),
        robot.with_payloads({"tool": Payload(link, 2.0)}),
    ):
        other.kernel("gravity_force")
        count += 1
        assert len(stored(folder)) == count
    for frame in (link, (link, (0.1, 0.0, 0.0))):
        robot.kernel("frame_pose", frame)
        count += 1
        assert len(stored(folder)) == count


def test_switched_off_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("RBDA_ROS_CACHE", "0")
    answers()
    assert not list(tmp_path.iterdir())
    monkeypatch.delenv("RBDA_ROS_CACHE")
    answers()
    assert len(stored(tmp_path / "rbda_ros")) == 3


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
    assert not stored(folder)
    monkeypatch.setattr(os, "link", full)
    (folder / "secret").unlink()
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


def other_program():
    """One with the same ports as inverse dynamics, whose answer is zero."""
    robot = load_robot(FOUR_BAR.urdf, FOUR_BAR.loops, floating_base=True)
    function = robot.kernel("inverse_dynamics").function
    symbols = [ca.SX.sym(function.name_in(i), function.numel_in(i)) for i in range(3)]
    return robot, ca.Function("inverse_dynamics", symbols, [ca.SX.zeros(function.numel_out(0))])


def sha256_of_content(key, body):
    return hashlib.sha256(body).digest()


def hmac_by_another_secret(key, body):
    return disk_cache._Place(Path("."), bytes(32)).mac(key, body)


@pytest.mark.parametrize("sign", [sha256_of_content, hmac_by_another_secret])
@pytest.mark.parametrize("of", ["one state", "batch"])
def test_planted_machine_code_is_not_executed(folder, monkeypatch, caplog, sign, of):
    made = answers()
    robot, zero = other_program()
    monkeypatch.setattr(machine, "_key", lambda form, *functions: f"planted {form}")
    assert Kernel(zero).compile(batch=True)
    monkeypatch.undo()
    monkeypatch.setenv("RBDA_ROS_CACHE", str(folder))
    body = (folder / f"planted {of}.kernel").read_bytes()[disk_cache.HMAC_BYTES :]
    loaded = []
    build = machine.Code
    monkeypatch.setattr(machine, "Code", lambda objects: loaded.extend(objects) or build(objects))
    function = robot.kernel("inverse_dynamics").function
    functions = [function] if of == "one state" else [function, robot._kernels._check()]
    target = machine._key(of, *functions)
    assert folder / f"{target}.kernel" in stored(folder)
    (folder / f"{target}.kernel").write_bytes(sign(target, body) + body)
    assert answers() == made
    assert loaded and not any(object_code in body for object_code in loaded)
    assert "not ours" in caplog.text


def test_files_that_changed_places_are_made_anew(folder):
    made = answers()
    contents = {path: path.read_bytes() for path in stored(folder)}
    paths = list(contents)
    for path, other in zip(paths, paths[1:] + paths[:1], strict=True):
        path.write_bytes(contents[other])
    assert answers() == made
    assert disk_cache.load(paths[0].stem) is not None


def keep_one(folder):
    disk_cache.store("key", {"a": 1}, [b"blob"])
    assert disk_cache.load("key") == ({"a": 1}, [b"blob"])
    return folder / "key.kernel"


def test_every_truncation_is_noticed(folder):
    path = keep_one(folder)
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        assert disk_cache.load("key") is None
    path.write_bytes(content + b"x")
    assert disk_cache.load("key") is None
    path.write_bytes(content)
    assert disk_cache.load("key") is not None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o777])
def test_a_file_that_others_may_write_is_made_anew(folder, mode):
    path = keep_one(folder)
    path.chmod(mode)
    assert disk_cache.load("key") is None
    keep_one(folder)
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_no_regular_file_of_this_user_is_not_read(folder, tmp_path, monkeypatch):
    path = keep_one(folder)
    elsewhere = path.rename(tmp_path / "elsewhere")
    path.symlink_to(elsewhere)
    assert disk_cache.load("key") is None
    path.unlink()
    os.mkfifo(path, 0o600)
    assert disk_cache.load("key") is None  # and does not wait for a writer
    path.unlink()
    path.mkdir()
    assert disk_cache.load("key") is None
    path.rmdir()
    elsewhere.rename(path)
    assert disk_cache.load("key") is not None
    fstat = os.fstat

    def of_somebody_else(handle):
        status = list(fstat(handle))
        if status[stat.ST_SIZE] != disk_cache.SECRET_BYTES:
            status[stat.ST_UID] += 1
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", of_somebody_else)
    assert disk_cache.load("key") is None


@pytest.mark.parametrize("damage", ["readable", "writable", "size", "link", "owner"])
def test_a_secret_that_others_may_know_is_replaced(folder, tmp_path, monkeypatch, caplog, damage):
    path = keep_one(folder)
    secret = folder / "secret"
    known = secret.read_bytes()
    assert secret.stat().st_mode & 0o777 == 0o600 and len(known) == 32
    fstat = os.fstat
    if damage in ("readable", "writable"):
        secret.chmod(0o640 if damage == "readable" else 0o602)
    elif damage == "size":
        secret.write_bytes(b"")
    elif damage == "link":
        secret.symlink_to(secret.rename(tmp_path / "elsewhere"))
    else:
        first = [True]

        def of_somebody_else(handle):
            status = list(fstat(handle))
            status[stat.ST_UID] += first.pop() if first else 0
            return os.stat_result(status)

        monkeypatch.setattr(os, "fstat", of_somebody_else)
    assert disk_cache.load("key") is None  # authenticated by a secret that counts no more
    assert "it is replaced" in caplog.text
    assert secret.read_bytes() != known and secret.stat().st_mode & 0o777 == 0o600
    assert not secret.is_symlink()
    assert keep_one(folder) == path


def test_where_no_secret_can_be_kept_nothing_is_stored(folder, monkeypatch, caplog):
    fstat = os.fstat

    def open_to_all(handle):  # as on a file system without modes
        status = list(fstat(handle))
        status[stat.ST_MODE] |= 0o777
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", open_to_all)
    disk_cache.store("key", {}, [])
    assert disk_cache.load("key") is None
    assert not stored(folder)
    assert "cannot be kept from others" in caplog.text


def test_processes_that_start_together_agree_on_the_secret(folder):
    with ThreadPoolExecutor(8) as pool:
        places = list(pool.map(lambda _: disk_cache._place(), range(64)))
    assert len({place.secret for place in places}) == 1
    assert list(folder.iterdir()) == [folder / "secret"]


def test_not_every_write_looks_at_every_file(folder, monkeypatch):
    looks = []
    iterdir = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: looks.append(path) or iterdir(path))
    for k in range(300):
        disk_cache.store(f"k{k}", {}, [b"x" * 1000])
    assert len(looks) == 1
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 500_000)
    monkeypatch.setattr(disk_cache, "_unscanned", {})  # as in another process
    for k in range(1000):
        disk_cache.store(f"n{k}", {}, [b"x" * 1000])
        if k % 20 == 0:
            assert sum(path.stat().st_size for path in stored(folder)) <= 500_000
    assert len(looks) < 200
    assert disk_cache.load("n999") is not None and disk_cache.load("k0") is None


def test_files_are_bounded_and_the_least_recently_used_goes_first(folder, monkeypatch):
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 5000)

    def store(name):
        return disk_cache.load_or_make(name, lambda: ({"name": name}, [b"x" * 1000, b"y"]))

    for k in range(4):
        assert store(f"k{k}") == ({"name": f"k{k}"}, [b"x" * 1000, b"y"])
        os.utime(folder / f"k{k}.kernel", (k, k))
    store("k0")  # used just now
    store("k4")
    names = {path.stem for path in stored(folder)}
    assert "k0" in names and "k4" in names and "k1" not in names
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 5000
    assert len(list(folder.iterdir())) == len(stored(folder)) + 1  # the secret
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
