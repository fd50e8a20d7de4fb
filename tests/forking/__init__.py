"""Python processes that have imported TVM already: forks of a server that has.

Importing TVM takes longer than most of what tests start processes for. The program at `python()` is called as Python
is, with `-c`, `-m` or a file. The process that it stands for is forked from the server: it has the caller's standard
streams, folder, environment, limits and ignored signals, and does all that Python does at its end. The program passes
signals on to it, and ends as it does. Tests of what belongs to the start of a process, or to its session, take
`sys.executable`.
"""

import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

_HERE = pathlib.Path(__file__).parent
_ROOT = _HERE.parents[1]


@functools.cache
def python() -> str:
    """The path of the program. Its server is started at the first call, and ends with this process."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="forking"))
    program = folder / "python"
    # Neither `site` nor the environment: it is to start at once.
    program.write_text(f"#!{sys.executable} -SEs\n{(_HERE / 'client.py').read_text(encoding='utf-8')}")
    program.chmod(0o755)
    where = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(_ROOT)])  # the package that is tested
    server = subprocess.Popen(
        [sys.executable, _HERE / "server.py", folder / "socket"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": where},
    )  # fmt: skip
    assert server.stdin and server.stdout

    def end() -> None:
        server.communicate()  # closes its standard input, which ends it
        shutil.rmtree(folder)

    atexit.register(end)
    assert server.stdout.readline() == b"ready\n"
    return str(program)
