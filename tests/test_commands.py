"""The commands that README and docs name exist, with all the options that they are given there.

Each program is asked for its help, for most of what they do takes minutes. The tutorial's are run (test_docs.py).
"""

import os
import pathlib
import re
import runpy
import signal
import subprocess
import sys

import pytest

from tests.test_docs import ROOT, TEXTS
from tvm_rammer import cli

PAGES = [path for path in TEXTS if path.name != "CHANGELOG.md"]  # it names what is gone, too
CODE = re.compile(r"^```(?:console|sh|bash)\n(.*?)^```$|(?<!`)`([^`]+)`(?!`)|^    (\S.*?)$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:\.venv/bin/)?(tvm-rammer)\b(.*)|\./(scripts/\w+)\b(.*)")


def commands(page: pathlib.Path) -> list[tuple[str, str]]:
    """The program of each command on a page, and what it is given."""
    code = ["".join(groups) for groups in CODE.findall(page.read_text(encoding="utf-8"))]
    lines = [line for text in code for line in (text.splitlines() if "\n" in text and "`" not in text else [text])]
    found = (COMMAND.fullmatch(" ".join(line.split()).partition(" # ")[0]) for line in lines)
    return [(m[1] or m[3], m[2] or m[4] or "") for m in found if m]


def program_of(script: str, what: str) -> pathlib.Path | None:
    """The Python program behind a script; None for what bash does itself."""
    programs = ROOT / "scripts" / "programs"
    name = pathlib.Path(script).name
    if name == "run" or (programs / f"{name}.py").is_file():
        found = [programs / f"{what if name == 'run' else name}.py"]
    else:
        found = sorted((programs / name).rglob(f"{what or 'models'}.py"))
    return next((path for path in found if path.is_file()), None)


def say_help(script: str, what: str, monkeypatch) -> None:
    """Let a program print what it says of itself."""
    if script == "tvm-rammer":
        cli.main([*([what] if what else []), "--help"])
    elif script == "scripts/tune":
        cli.main(["tune", "--help"])
    elif (program := program_of(script, what)) is not None:
        monkeypatch.setattr(sys, "argv", [str(program), "--help"])
        monkeypatch.syspath_prepend(program.parent)  # as where Python is given a file
        before = dict(os.environ)
        try:
            runpy.run_path(str(program), run_name="__main__")
        finally:  # what a program sets for itself is not for the tests that follow
            os.environ.clear()
            os.environ.update(before)
    else:
        print((ROOT / script).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_have_the_options_that_it_gives_them(page, monkeypatch, capsys):
    for script, given in commands(page):
        what = re.match(r" ([a-z]\w*)(?= |$)", given)
        try:
            say_help(script, what[1] if what else "", monkeypatch)
        except SystemExit as ended:
            assert ended.code == 0, (script, given)
        options = re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", given)
        said = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", capsys.readouterr().out))
        if script == "scripts/test":
            said |= {"-k", "-n"}  # they go to pytest
        assert set(options) <= said, (script, given)


def test_the_pages_name_most_commands():
    named = {(script, *given.split()[:1]) for page in PAGES for script, given in commands(page)}
    assert {("tvm-rammer", name) for name in ("bench", "explain", "fix", "report", "tune", "run")} <= named
    assert ("scripts/bench", "kernels") in named and len(named) > 30


@pytest.mark.parametrize("given", [" explain MODEL --svgs plan.svg", " explode MODEL"])
def test_a_command_that_is_not_there_is_found(given, tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"As in `tvm-rammer{given}` here.\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        test_commands_of_a_page_have_the_options_that_it_gives_them(page, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("command", "there"),
    [
        ("run nope", "bench_neighbours conformity"),
        ("run", "bench_neighbours conformity"),
        ("run ../programs/no", "bench_neighbours conformity"),
        ("bench nope", "models policies"),
        ("bench NOPE", "busy checkouts checks compiling"),
        ("ablation", "interplay sync"),
        ("ablation nope --json x", "interplay sync"),
        ("setup nope", "torch and oldest"),
        ("lint --nope", "takes no options"),
    ],
)
def test_what_a_script_does_not_know_is_told_in_a_line_that_says_what_there_is(command, there):
    script, *given = command.split()
    done = subprocess.run([ROOT / "scripts" / script, *given], capture_output=True, text=True, timeout=300, check=False)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and not done.stdout
    assert there in line and f"there is no '{given[0] if given else ''}'" in line


def test_a_program_without_its_tool_ends_in_one_line(tmp_path):
    programs = ROOT / "scripts" / "programs"
    command = [sys.executable, programs / "run" / "program.py", programs / "cuda_rows.py", "--loops", "1x4x16"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=500,
        env=os.environ | {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT), "RAMMER_DEBUG": "0"},
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("cuda_rows: nvcc") and "install" in line


def test_ctrl_c_ends_a_program_in_one_line(tmp_path):
    (tmp_path / "endless.py").write_text("print('begun', flush=True)\nwhile True: pass\n", encoding="utf-8")
    command = [sys.executable, ROOT / "scripts" / "programs" / "run" / "program.py", tmp_path / "endless.py"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as running:
        assert running.stdout.readline() == "begun\n"
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=300)
    assert (running.returncode, told) == (130, "endless: interrupted\n")
