"""Where recordings are found, on disks and in object stores."""

import uuid

import fsspec
import pytest

from rbda_ros import InputError
from rbda_ros.recordings.bags import find_recordings, local_copy, local_target, write_text


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def found(*places):
    return {recording.name: recording.source for recording in find_recordings(places)}


def test_finds_bags_files_and_globs(tmp_path):
    touch(
        tmp_path / "a" / "metadata.yaml",
        tmp_path / "a" / "a_0.mcap",
        tmp_path / "week" / "b.db3",
        tmp_path / "week" / "notes.txt",
        tmp_path / "week" / ".c.partial-1" / "c" / "metadata.yaml",
    )
    assert found(str(tmp_path)) == {
        "a": str(tmp_path / "a"),
        "week/b": str(tmp_path / "week" / "b.db3"),
    }
    assert found(str(tmp_path / "a")) == {"a": str(tmp_path / "a")}
    assert set(found(str(tmp_path / "*" / "*.db3"))) == {"b"}
    with pytest.raises(InputError, match="no recording there"):
        found(str(tmp_path / "week" / "notes.txt"))


def test_two_of_one_name_are_refused(tmp_path):
    touch(tmp_path / "x" / "b.mcap", tmp_path / "y" / "b.mcap")
    with pytest.raises(InputError, match="would both become 'b'"):
        found(str(tmp_path / "x" / "b.mcap"), str(tmp_path / "y" / "b.mcap"))


def test_an_object_store_is_read_and_written():
    root = f"memory://{uuid.uuid4().hex}"
    system = fsspec.filesystem("memory")
    system.pipe_file(f"{root}/in/bag/metadata.yaml", b"m")
    system.pipe_file(f"{root}/in/bag/bag_0.mcap", b"data")
    assert list(found(f"{root}/in")) == ["bag"]
    with local_copy(found(f"{root}/in")["bag"]) as copy:
        assert (copy / "bag_0.mcap").read_bytes() == b"data"
    with local_target(f"{root}/out", "bag") as target:
        touch(target / "metadata.yaml", target / "bag.mcap", target.parent / "bag.parquet")
    written = [path.rpartition("/out/")[2] for path in sorted(system.find(f"{root}/out"))]
    assert written == ["bag.parquet", "bag/bag.mcap", "bag/metadata.yaml"]
    with local_target(f"{root}/out", "bag") as target:
        assert (target / "metadata.yaml").exists()  # to tell what it was made from
    write_text(f"{root}/out/report.json", "{}")
    assert system.cat_file(f"{root}/out/report.json") == b"{}"


def test_what_fails_leaves_nothing_in_the_store():
    root = f"memory://{uuid.uuid4().hex}"
    with pytest.raises(RuntimeError), local_target(root, "bag") as target:
        touch(target / "bag.mcap")
        raise RuntimeError
    assert not fsspec.filesystem("memory").exists(root)


def test_an_unknown_protocol_is_named():
    with pytest.raises(InputError, match="teapot"):
        find_recordings(["teapot://bucket/bags"])
