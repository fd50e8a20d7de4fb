"""The `RAMMER_*` environment variables."""

import logging

import pytest

from tvm_rammer import debug
from tvm_rammer.device import preset


@pytest.mark.parametrize(("text", "level"), [("", 1), ("0", 0), ("3", 3), ("9", 1), ("much", 1)])
def test_the_debug_level(monkeypatch, text, level):
    monkeypatch.setenv("RAMMER_DEBUG", text)
    assert debug.level() == level


def test_messages_appear_from_their_level_on(monkeypatch, capsys):
    monkeypatch.setenv("RAMMER_DEBUG", "2")
    debug.say(2, "shown")
    debug.say(3, "hidden")
    assert capsys.readouterr().err == "rammer: shown\n"


def test_messages_are_logged(monkeypatch, capsys, caplog):
    monkeypatch.setenv("RAMMER_DEBUG", "0")
    debug.say(1, "not wanted")
    with caplog.at_level(logging.INFO, "tvm_rammer"):
        debug.say(0, "worrying")
        debug.say(1, "of interest")
        debug.say(2, "hidden")
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [("WARNING", "worrying"), ("INFO", "of interest")]
    assert capsys.readouterr().err == "rammer: worrying\n"


@pytest.mark.parametrize(
    ("text", "count"), [("", debug.CACHE_BYTES), ("0", 0), ("1000", 1000), ("much", debug.CACHE_BYTES)]
)
def test_the_size_of_the_cache(monkeypatch, text, count):
    monkeypatch.setenv("RAMMER_CACHE_BYTES", text)
    assert debug.cache_bytes() == count


def test_a_user_without_a_home_keeps_nothing_and_gets_all_else(monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "RAMMER_CACHE"):
        monkeypatch.delenv(name, raising=False)

    def unknown(user):
        raise KeyError(f"there is no user {user}")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert not debug.model_cache_folder().exists()
    assert preset("cpu").kind == "cpu"


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
