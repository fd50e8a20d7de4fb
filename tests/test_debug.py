"""The `RAMMER_*` environment variables."""

import pytest

from tvm_rammer import debug


@pytest.mark.parametrize(("text", "level"), [("", 1), ("0", 0), ("3", 3), ("9", 1), ("much", 1)])
def test_the_debug_level(monkeypatch, text, level):
    monkeypatch.setenv("RAMMER_DEBUG", text)
    assert debug.level() == level


def test_messages_appear_from_their_level_on(monkeypatch, capsys):
    monkeypatch.setenv("RAMMER_DEBUG", "2")
    debug.say(2, "shown")
    debug.say(3, "hidden")
    assert capsys.readouterr().err == "rammer: shown\n"


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_dump_that_cannot_be_written_is_said_and_stops_nothing(place, monkeypatch, tmp_path, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("RAMMER_DUMP", str(tmp_path / place))
    debug.dump("a.txt", lambda: "text")
    assert "cannot write a.txt to RAMMER_DUMP=" in capsys.readouterr().err


def test_dumps_are_made_only_where_they_are_wanted(monkeypatch, tmp_path):
    monkeypatch.delenv("RAMMER_DUMP", raising=False)
    debug.dump("a.txt", lambda: pytest.fail("nobody asked for it"))
    monkeypatch.setenv("RAMMER_DUMP", str(tmp_path / "new"))
    debug.dump("a.txt", lambda: "text")
    assert (tmp_path / "new" / "a.txt").read_text() == "text"
