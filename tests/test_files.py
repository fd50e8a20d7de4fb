"""Files are written as a whole, or not at all."""

import os
import pathlib

import pytest

from tvm_rammer.errors import RammerError
from tvm_rammer.files import check_room, check_writable, replacing, write_text


def test_a_file_takes_the_place_of_the_old_one(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    path.chmod(0o640)
    write_text(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_what_fails_in_the_middle_leaves_the_old_file(tmp_path: pathlib.Path, error: BaseException) -> None:
    path = tmp_path / "a.npz"
    write_text(path, "old")
    with pytest.raises(RammerError if isinstance(error, OSError) else type(error)), replacing(path) as new:
        assert new.suffix == ".npz"
        new.write_text("torn")
        raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.npz"]


def test_a_link_stays_a_link(tmp_path: pathlib.Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/a.txt")
    write_text(tmp_path / "link", "text")
    assert (tmp_path / "there/a.txt").read_text() == "text"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere/a.txt", "there is no folder"), ("", "it is a folder"), ("a\0b", "null"), ("file/a", "no folder")],
)
def test_where_no_file_can_be_written(tmp_path: pathlib.Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RammerError, match=f"cannot write .*{message}"):
        check_writable(f"{tmp_path}/{name}")
    assert os.listdir(tmp_path) == ["file"]


def test_a_pipe_is_written_to_itself() -> None:
    """As a shell gives one by `>(...)`, or behind `/dev/stdout`: it has no other name."""
    reading, writing = os.pipe()
    name = f"/dev/fd/{writing}"
    check_writable(name)
    write_text(name, "a picture")
    assert os.read(reading, 100) == b"a picture"
    os.close(writing)
    os.close(reading)


def test_a_full_device_is_an_error_of_ours() -> None:
    check_writable("/dev/full")
    with pytest.raises(RammerError, match="cannot write '/dev/full': No space left on device"):
        write_text("/dev/full", "text")


def test_room_is_looked_for_before_others_write(tmp_path: pathlib.Path) -> None:
    check_room(tmp_path, 1 << 20)
    assert not os.listdir(tmp_path)
    with pytest.raises(RammerError, match=r"no room for 1099511627776 MB in .*make room, or name another folder"):
        check_room(tmp_path, 1 << 60)
