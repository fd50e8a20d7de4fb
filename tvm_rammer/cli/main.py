"""The parser of the command line, and what an error becomes."""

import argparse
import contextlib
import io
import os
import pathlib
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import NoReturn

from .. import debug
from ..errors import RammerError, first_line
from ..files import check_writable
from ..version import VERSION
from . import bench, compile, explain, export, fix, profile, report, run, tune
from .kept import cache, device, warm
from .options import Interrupted, tell
from .progress import end_progress

COMMANDS = (compile, run, explain, report, export, bench, profile, fix, tune, warm, cache, device)

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

GRACE_S = 3.0
"""Time that an interrupted command gets to end by itself: LLVM does not look at signals."""

_INTERRUPT_MAIN = signal.SIGUSR1
"""The signal that passes Ctrl-C on to the main thread."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0; 1 where the command failed, and 130 where it was interrupted: what was wrong is on standard error. Wrong
        usage ends the process with 2.
    """
    parser = argparse.ArgumentParser(
        prog="tvm-rammer",
        description="Compile models to persistent rPrograms (Rammer).",
        epilog="Exit status: 0; 1 where a command failed, with one line on standard error that says why; 2 for wrong "
        "usage; 130 after Ctrl-C.",
    )
    parser.add_argument("--version", action="version", version=f"tvm-rammer {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    arguments = parser.parse_args(argv)
    try:
        for name in arguments.writes:
            if getattr(arguments, name) is not None:
                check_writable(getattr(arguments, name))
        arguments.run(arguments)
        end_progress()
        sys.stdout.flush()
    except Interrupted as interrupt:
        return _failed(str(interrupt), INTERRUPTED)
    except KeyboardInterrupt:  # what comes out of TVM's passes holds the text of a module
        return _failed("interrupted", INTERRUPTED)
    except RammerError as error:
        return _failed(str(error))
    except BrokenPipeError:
        _give_up_stdout()
        return _failed("what reads standard output has closed it: the rest is not written")
    except OSError as error:
        _give_up_stdout()
        return _failed(f"cannot go on: {first_line(error)}; make room, or look at what the message names")
    except Exception as error:
        if debug.level():
            traceback.print_exc()
        return _failed(
            f"a defect of this program: {type(error).__name__}: {first_line(error)}; RAMMER_DEBUG=1 shows where, "
            "please report it"
        )
    return 0


def console() -> NoReturn:
    """Run one command as a process: it ends soon after Ctrl-C, wherever it is, and leaves no process behind."""
    _open_what_is_closed()
    _end_soon_after_interrupts()
    status = main()
    if status == INTERRUPTED:
        _end_now()
    signal.signal(_INTERRUPT_MAIN, signal.SIG_IGN)  # all is done and told
    sys.exit(status)


def _failed(message: str, status: int = 1) -> int:
    end_progress()
    tell(f"tvm-rammer: {message}")
    return status


def _give_up_stdout() -> None:
    """Send what is still in the buffer of standard output nowhere, or Python would complain about it at its end."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def _open_what_is_closed() -> None:
    """Let standard streams that the caller closed lead nowhere: the next file that is opened would be in their place.

    Names of files may hold what the encoding of standard output has no sign for; it is spelled out.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115  # to stay
            setattr(sys, name, stream)
    for written in (sys.stdout, sys.stderr):
        if isinstance(written, io.TextIOWrapper):
            with contextlib.suppress(OSError):
                written.reconfigure(errors="backslashreplace")


def _end_soon_after_interrupts() -> None:
    """Take Ctrl-C in a thread of its own, which passes it on to the main thread.

    A handler of SIGINT would not do. The main thread may be in LLVM for minutes, where Python runs none, and TVM's
    prover (Z3) puts a handler of its own in place while it works: what it gets ends its proof and nothing else. So
    SIGINT is blocked in all threads, and this one waits for it. A shell's background job goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    signal.signal(_INTERRUPT_MAIN, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    main_thread = threading.get_ident()

    def wait() -> None:
        signal.sigwait({signal.SIGINT})
        signal.pthread_kill(main_thread, _INTERRUPT_MAIN)
        time.sleep(GRACE_S)
        _failed("interrupted")
        _end_now()

    threading.Thread(target=wait, daemon=True, name="interrupts").start()


def _end_now() -> NoReturn:
    """End without waiting for threads that are in the middle of a compilation; child processes end, too."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    for process in _descendants(os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
    os._exit(INTERRUPTED)


def _descendants(process: int) -> list[int]:
    """The processes that one has started, and theirs, as far as Linux tells."""
    found: list[int] = []
    for path in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text(encoding="ascii").split()):
                found += [child, *_descendants(child)]
    return found
