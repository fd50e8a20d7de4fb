"""The list of tests that take long."""

import pathlib

from tests.conftest import LONG

ROOT = pathlib.Path(__file__).parents[2]


def test_the_list_names_tests_that_exist():
    named = {line.partition("[")[0] for line in LONG.read_text(encoding="utf-8").splitlines()}
    assert named
    for file, test in (name.split("::") for name in named):
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no {test}: see make_long.py"
