"""What all tests share."""

import inspect
import linecache
import os
import pathlib
import signal
import sys

# Read by TVM's thread pools when they start, here and in the processes that tests start. A worker without work
# sleeps at once instead of polling for a tenth of a second, and is not tied to a core that another process may
# be using: tests run a kernel once, and several processes of tests share the cores.
os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", "1000")
os.environ.setdefault("TVM_BIND_THREADS", "0")

# Tests compile; those of the cache give it a folder and a size.
os.environ["RAMMER_CACHE_BYTES"] = "0"

# What is tested depends on no machine's speed; tests of the measurement ask for it.
os.environ["RAMMER_MEASURE"] = "0"

# A shell that runs the tests in the background lets them ignore Ctrl-C; some interrupt the processes that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest

from tvm_rammer.compilation import compiler
from tvm_rammer.compilation.request import Request
from tvm_rammer.device import host
from tvm_rammer.runtime.explore import Exploration
from tvm_rammer.runtime.pool import use_workers

# Models of tests are small, and many tests are of several lanes: so vEUs cost nothing to wake.
host.TYPICAL_WAKE_US = 0.0

use_workers()  # tests run code in TVM's virtual machine, too


def _stack(context: int = 1) -> list[inspect.FrameInfo]:
    """As `inspect.stack`, with one line of each frame, but without a look at every imported module for each frame.

    TVM's script parser asks for the stack at each function written in it, and a test imports thousands of modules.
    """
    frames, frame = [], sys._getframe(1)
    while frame:
        code, line = frame.f_code, frame.f_lineno
        text = linecache.getline(code.co_filename, line, frame.f_globals)
        found = ([text], 0) if text else (None, None)
        frames.append(inspect.FrameInfo(frame, code.co_filename, line, code.co_name, *found))
        frame = frame.f_back
    return frames


inspect.stack = _stack


LONG = pathlib.Path(__file__).parent / "quick" / "long.txt"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is known to take long, which `quick.make_long` writes a list of, and the first case of each test."""
    known = set(LONG.read_text(encoding="utf-8").splitlines())
    seen = set()
    for item in items:
        function = item.nodeid.partition("[")[0]
        if not known.isdisjoint((item.nodeid, function)):
            item.add_marker(pytest.mark.long)
        if function not in seen and not item.get_closest_marker("slow"):
            seen.add(function)
            item.add_marker(pytest.mark.first)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is remembered on disk is made anew, once for all tests, unless someone says where it is."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # that of the session, which its workers share
    os.environ.setdefault("RAMMER_CACHE", str(folder / "cache"))


@pytest.fixture
def with_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let compiled models be kept; `compile` says where."""
    monkeypatch.setenv("RAMMER_CACHE_BYTES", str(1 << 30))


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What is really compiled, and not found in the cache: one entry for each."""
    seen, real = [], compiler.compile_loaded

    def counted(request: Request, loaded: compiler.Loaded) -> Exploration:
        seen.append(request)
        return real(request, loaded)

    monkeypatch.setattr(compiler, "compile_loaded", counted)
    return seen
