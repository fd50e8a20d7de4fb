"""Folders are filled as a whole or not at all."""

import errno

import pytest

from tvm_rammer.errors import ToolError
from tvm_rammer.gpu_bundle.files import MANIFEST, replacing_folder


def fill(folder, name, *, fails=False, keep=()):
    with replacing_folder(folder, "bundle", keep) as files:
        files.write(f"sub/{name}", name)
        files.finish()
        if fails:
            raise OSError(errno.ENOSPC, "No space left on device")


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_it_held_is_replaced(tmp_path):
    for name in ("one", "two"):
        fill(tmp_path / "new" / "bundle", name)
        assert names(tmp_path / "new" / "bundle") == [MANIFEST, f"sub/{name}"]


def test_a_full_disk_leaves_what_there_was(tmp_path):
    fill(tmp_path / "bundle", "one")
    for folder in (tmp_path / "bundle", tmp_path / "other"):
        with pytest.raises(ToolError, match=rf"cannot write '{folder}': No space left on device; name a folder"):
            fill(folder, "two", fails=True)
    assert names(tmp_path) == [f"bundle/{MANIFEST}", "bundle/sub/one"]
    assert not (tmp_path / "other").exists()


def test_an_interrupt_leaves_what_there_was(tmp_path):
    fill(tmp_path, "one")
    with pytest.raises(KeyboardInterrupt), replacing_folder(tmp_path, "bundle") as files:
        files.write("half", "")
        raise KeyboardInterrupt
    assert names(tmp_path) == [MANIFEST, "sub/one"]


def test_what_is_something_else_stays(tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(ToolError, match="holds something that is no bundle; name a new folder"):
        fill(tmp_path, "one")
    fill(tmp_path / "bundle", "times")
    with pytest.raises(ToolError, match="holds sub/times, which would be lost"):
        fill(tmp_path / "bundle", "two", keep=("sub/times",))
    assert names(tmp_path) == ["bundle/" + MANIFEST, "bundle/sub/times", "notes"]
