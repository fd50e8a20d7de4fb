"""Lines are whole or left out, whoever dies, and however many write."""

import os
import signal
import subprocess
import sys
import warnings

import pytest

from tvm_rammer.errors import TuningLogError
from tvm_rammer.tuning.log.lines import TuningLogWarning, append, locked, read

WRITER = """
import pathlib, sys
from tvm_rammer.tuning.log.lines import append, locked
folder, name, count = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(count):
    with locked(folder):
        append(folder / "log", [name, number, "x" * 5000])
    print(number, flush=True)
"""


def start(folder, name, count):
    command = [sys.executable, "-c", WRITER, str(folder), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_what_is_appended_is_read(tmp_path):
    with locked(tmp_path / "new"):
        append(tmp_path / "new" / "log", {"a": 1})
        append(tmp_path / "new" / "log", [2])
    assert read(tmp_path / "new" / "log") == [{"a": 1}, [2]]
    assert read(tmp_path / "none") == []


def test_a_torn_line_is_reported_then_set_aside_by_the_next_writer(tmp_path):
    path = tmp_path / "log"
    path.write_text('{"a":1}\n{"b":')
    with pytest.warns(TuningLogWarning, match=r"log, line 2 has no end: its writer was killed"):
        assert read(path) == [{"a": 1}]
    with locked(tmp_path), pytest.warns(TuningLogWarning, match=r"line 2 has no end.*; it is in log.torn now"):
        append(path, {"c": 3})
    assert read(path) == [{"a": 1}, {"c": 3}]
    assert (tmp_path / "log.torn").read_text() == '{"b":\n'


def test_a_line_that_is_not_json_is_reported_and_left_out(tmp_path):
    (tmp_path / "log").write_text("1\nx\n2\n")
    with pytest.warns(TuningLogWarning, match=r"line 2 is not JSON"):
        assert read(tmp_path / "log") == [1, 2]


def test_two_writers_lose_nothing(tmp_path):
    writers = [start(tmp_path, name, 60) for name in "ab"]
    assert [writer.wait(timeout=300) for writer in writers] == [0, 0]
    for writer in writers:
        writer.stdout.close()
    found = read(tmp_path / "log")
    for name in "ab":
        assert [number for who, number, _ in found if who == name] == list(range(60))


@pytest.mark.slow
def test_a_killed_writer_loses_the_line_in_flight_at_most(tmp_path):
    told = []
    for round_ in range(5):
        writer = start(tmp_path, str(round_), 10**6)
        finished = [int(writer.stdout.readline()) for _ in range(3 + 7 * round_)]
        writer.send_signal(signal.SIGKILL)
        finished += [int(line) for line in writer.stdout if line.endswith("\n")]
        writer.wait()
        writer.stdout.close()
        told += [(str(round_), number) for number in finished]
    with locked(tmp_path), warnings.catch_warnings():
        warnings.simplefilter("ignore", TuningLogWarning)
        append(tmp_path / "log", ["end", 0, ""])
    assert set(told) <= {(who, number) for who, number, _ in read(tmp_path / "log")}


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "log"
    path.write_text("1\n")
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:3]))
    with pytest.raises(TuningLogError, match="the disk is full; make room or name another folder"), locked(tmp_path):
        append(path, {"a": "long enough to be cut"})
    assert path.read_text() == "1\n"


@pytest.mark.parametrize("what", ["a file", "read only"])
def test_a_folder_that_cannot_be_written_is_named(tmp_path, what, monkeypatch):
    folder = tmp_path / "logs"
    if what == "a file":
        folder.write_text("")
    else:
        monkeypatch.setattr(os, "open", lambda *arguments: (_ for _ in ()).throw(PermissionError(13, "no permission")))
    with pytest.raises(TuningLogError, match=r"cannot write a tuning log to .*logs.*; name a folder"), locked(folder):
        pass


def test_the_lock_is_free_again_after_an_error(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError
    with locked(tmp_path):
        append(tmp_path / "log", 1)
    assert read(tmp_path / "log") == [1]
