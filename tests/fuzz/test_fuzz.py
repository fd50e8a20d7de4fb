"""The fuzzer itself: cases follow from seeds, workers may die, failures are shrunk and told."""

import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import onnx
import pytest

from tests.forking import python

from .campaign import Campaign, Plan
from .case import ModelCase, Report
from .client import ROOT, Client
from .failures.classes import failure_class, skeleton
from .failures.shrink_script import simpler
from .failures.summary import Summary
from .generate.graphs import OPSETS, finish, graph_case, grow
from .generate.recipe import bounds
from .generate.scripts import script, script_case
from .injected import MISDEEDS
from .kinds import KINDS
from .models import model_of
from .operators import TABLE


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_follows_from_its_seed(kind):
    code = (
        "import hashlib, pickle; from tests.fuzz.kinds import KINDS\n"
        f"print([hashlib.sha256(pickle.dumps(KINDS[{kind!r}](seed))).hexdigest() for seed in range(12)])"
    )
    found = set()
    for hash_seed in "12":
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env={"PYTHONHASHSEED": hash_seed}, capture_output=True, check=True
        )
        found.add(done.stdout)
    assert len(found) == 1


def test_graphs_are_valid_and_of_several_nodes():
    sizes = set()
    for seed in range(40):
        case = graph_case(seed)
        model = onnx.load_from_string(case.data)
        onnx.checker.check_model(model, full_check=True)
        assert {i.name for i in model.graph.input} == set(case.feeds)
        sizes.add(len(model.graph.node))
    assert 1 in sizes and max(sizes) > 4


@pytest.mark.parametrize("op", TABLE)
def test_every_operator_of_the_table_is_made(op):
    for seed in range(200):
        rng = random.Random(seed)
        builder = grow(rng, rng.choice(OPSETS), 1, [op])
        if builder.nodes:
            onnx.checker.check_model(finish(builder))
            return
    pytest.fail(f"no {op} in 200 attempts")


def test_random_functions_stay_in_bounds():
    index = ("add", ("mul", ("var", 0), -2), ("mod", ("var", 1), 3))
    assert bounds(index, (4, 5)) == (-6, 2)
    assert bounds(("max", ("min", index, 1), 0), (4, 5)) == (0, 1)


def test_modules_can_be_made_smaller():
    case = script_case(5)
    smaller = [c for c in simpler(case) if len(script(c.recipe)) < len(script(case.recipe))]
    assert smaller and all(set(c.feeds) == {p.name for p in c.recipe.params} for c in smaller)


def test_workers_die_and_failures_are_shrunk(tmp_path):
    said = []
    plan = Plan(["injected"], 0, 300, tmp_path, 1, len(MISDEEDS), limits={"compile": 4})
    summary = Campaign(plan, said.append).run()
    assert {outcome: n for (_, outcome), n in summary.outcomes.items()} == dict.fromkeys(MISDEEDS, 1)
    lines = sorted(summary.found)
    assert [line.split(":")[0] for line in lines] == ["crash in compile", "foreign", "hang in compile", "wrong value"]
    assert all(line.endswith(": Neg") for line in lines if not line.startswith("foreign"))
    assert len(list(tmp_path.glob("test_*.py"))) == len(said) == 4
    assert "| injected | 5 | 1 | 0 | 0 | 1 | 1 | 1 | 1 |" in summary.text()


def test_a_real_case_is_right(tmp_path):
    case = ModelCase("graphs", 1, model_of("Tanh").SerializeToString(), {"x": np.float32([-1, 0, 2])})
    with Client(threading.Event()) as client:
        assert client.run(case) == Report("right")


def test_failures_of_one_class():
    assert skeleton("KeyError: 'v12' at 0x7f") == skeleton("KeyError: 'v3' at 0x8a")
    case = ModelCase("graphs", 1, model_of("Tanh").SerializeToString())
    assert failure_class(case, Report("wrong", "NaN: result 0")) == "wrong NaN: Tanh"


def fuzz(*options):
    command = [python(), str(ROOT / "scripts/programs/fuzz.py"), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_the_summary_names_a_case_of_each_refusal():
    summary = Summary()
    for seed, name in ((4, "a"), (5, "b")):
        summary.count("graphs", seed, Report("refused", f"ModelError: Relu '{name}' is refused"))
    assert re.search(r"2  ModelError: Relu '...' is refused \(graphs:4\)", summary.text())


def test_the_log_of_a_failure_is_enough_to_repeat_it(tmp_path):
    done = fuzz("--kinds", "injected", "--seed", 1, "--cases", 2, "--out", tmp_path, "--show")
    assert done.returncode == 1 and "seed 1," in done.stdout
    (file,) = tmp_path.glob("test_*.py")
    assert file.read_text(encoding="utf-8") in done.stdout
    (again,) = re.findall(r"^ *\./scripts/fuzz (--case \S+)$", done.stdout, re.MULTILINE)
    repeated = fuzz(*again.split())
    assert repeated.returncode == 1 and repeated.stdout.startswith("wrong")


def children(pid):
    return [int(c) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for c in path.read_text().split()]


def test_ctrl_c_ends_with_the_summary_and_without_workers(tmp_path):
    command = [sys.executable, str(ROOT / "scripts/programs/fuzz.py"), "--minutes", "5", "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (workers := children(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=300)
    assert workers and "distinct failures" in text and "seed" in text
    assert not [pid for pid in workers if pathlib.Path(f"/proc/{pid}").exists()]
