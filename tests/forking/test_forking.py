"""What stands for a process is not told from one, but by the time that it takes."""

import os
import signal
import subprocess
import sys

import pytest

from . import python

BOTH = [sys.executable, "fork"]


def started(program, *arguments, **options):
    command = [python() if program == "fork" else program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def said(program, *arguments, given=None, **options):
    stdin = subprocess.DEVNULL if given is None else subprocess.PIPE
    with started(program, *arguments, stdin=stdin, **options) as process:
        out, error = process.communicate(given)
    return process.returncode, out, error


def test_it_has_imported_tvm():
    status, out, _ = said("fork", "-c", "import sys; print('tvm' in sys.modules)")
    assert (status, out) == (0, "True\n")


@pytest.mark.parametrize("program", BOTH, ids=["python", "fork"])
class TestAProcess:
    def test_has_arguments_a_folder_an_environment_and_streams(self, program, tmp_path):
        code = "import os, sys; print(sys.argv, os.getcwd(), os.environ['RAMMER_A'], sys.stdin.read(), __name__)"
        where = {"cwd": tmp_path, "env": os.environ | {"RAMMER_A": "b"}}
        assert said(program, "-c", code, "x", "y z", given="in", **where)[:2] == (
            0,
            f"['-c', 'x', 'y z'] {tmp_path} b in __main__\n",
        )

    def test_runs_files_beside_others(self, program, tmp_path):
        (tmp_path / "other.py").write_text("A = 5")
        (tmp_path / "file.py").write_text("import sys, other\nif __name__ == '__main__': print(other.A, sys.argv[1:])")
        assert said(program, tmp_path / "file.py", "x") == (0, "5 ['x']\n", "")
        assert said(program, "-m", "file", "x", cwd=tmp_path) == (0, "5 ['x']\n", "")

    def test_finds_what_the_environment_says(self, program, tmp_path):
        (tmp_path / "found.py").write_text("A = 5")
        assert said(program, "-c", "import found", env=os.environ | {"PYTHONPATH": str(tmp_path)})[0] == 0
        assert "No module named 'found'" in said(program, "-c", "import found")[2]

    @pytest.mark.parametrize(
        ("code", "status"),
        [
            ("", 0),
            ("raise SystemExit(3)", 3),
            ("1 / 0", 1),
            ("import os; os._exit(7)", 7),
            ("import os; os.abort()", -signal.SIGABRT),
            ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ],
    )
    def test_ends_as_its_code_says(self, program, code, status):
        assert said(program, "-c", code)[0] == status

    def test_does_what_is_to_be_done_at_the_end(self, program):
        code = "import atexit; atexit.register(print, 'last'); print('first')"
        assert said(program, "-c", code)[1] == "first\nlast\n"

    def test_gets_signals(self, program):
        code = "import signal; signal.signal(15, lambda *a: exit(5)); print('ready', flush=True); signal.pause()"
        with started(program, "-c", code) as process:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 5

    def test_ends_with_what_stands_for_it(self, program):
        with started(program, "-c", "print(1, flush=True); import time; time.sleep(1000)") as process:
            assert process.stdout.readline() == "1\n"
            process.kill()
            assert process.stdout.read() == ""  # closed, so whoever could write has ended

    def test_ignores_what_is_ignored(self, program):
        code = "import signal; print(signal.getsignal(2) is signal.SIG_IGN)"
        line = f"trap '' INT; {python() if program == 'fork' else program} -c '{code}'"
        assert subprocess.run(["bash", "-c", line], capture_output=True, text=True).stdout == "True\n"

    def test_has_limits(self, program, tmp_path):
        code = "import resource; print(resource.getrlimit(resource.RLIMIT_FSIZE)[0])"
        line = f"ulimit -f 2; {python() if program == 'fork' else program} -c '{code}'"
        assert subprocess.run(["bash", "-c", line], capture_output=True, text=True).stdout == "2048\n"
