"""Progress is for eyes: a line on a terminal that goes away, and nothing in a file."""

import io
import logging

import pytest

from tvm_rammer.cli.progress import end_progress, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def ended():
    yield
    end_progress()


def test_the_line_changes_and_goes_away(monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    progress("compiling the model")
    progress("measuring")
    end_progress()
    end_progress()
    assert "\rcompiling the model" in terminal.getvalue()
    assert "\n" not in terminal.getvalue()
    *_, shown, blank, end = terminal.getvalue().split("\r")
    assert (shown.rstrip(), blank.strip(), end) == ("measuring", "", "")


def test_the_next_line_is_a_new_one(monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    for message in ("first", "second"):
        progress(message)
        end_progress()
    assert terminal.getvalue().count("second") == 1


def test_what_is_no_terminal_gets_nothing(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "tvm_rammer")
    monkeypatch.setattr("sys.stderr", file := io.StringIO())
    progress("compiling the model")
    end_progress()
    assert file.getvalue() == ""
    assert caplog.messages == ["compiling the model"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("I/O operation on closed file")])
def test_a_terminal_that_is_gone_stops_nothing(monkeypatch, error):
    class Gone(Terminal):
        def write(self, text):
            raise error

    monkeypatch.setattr("sys.stderr", Gone())
    progress("compiling the model")
    progress("measuring")
    end_progress()
