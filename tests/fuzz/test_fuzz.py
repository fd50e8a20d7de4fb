"""The fuzzer itself: cases follow from seeds, judges judge, workers may die, failures become small test files."""

import itertools
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
from onnx import TensorProto, helper

from tests.forking import python

from .campaign import Campaign, Plan
from .case import ModelCase, Report
from .client import ROOT, Client
from .failures.classes import failure_class, skeleton
from .failures.print_model import python_of_model
from .failures.reproduce import write_test
from .failures.shrink_script import simpler
from .failures.summary import Summary
from .generate.graphs import OPSETS, finish, graph_case, grow
from .generate.kernels import kernel_case
from .generate.recipe import bounds
from .generate.scripts import script, script_case
from .generate.sequences import sequence_case
from .injected import MISDEEDS
from .judge import ways
from .judge.compare import difference
from .judge.onnx_judges import Judgement, judge, undefined
from .kinds import KINDS
from .operators import TABLE


def model_of(op, shape=(3,), **attributes):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], **attributes)], "one", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


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


def test_models_are_printed_as_python():
    for seed in range(30):
        assert python_of_model(onnx.load_from_string(graph_case(seed).data)) is not None


def test_the_judge_tells_wrong_from_right():
    verdict = judge(model_of("Exp"), {"x": np.float32([0, 1, 200])})
    assert isinstance(verdict, Judgement)
    right = np.exp(np.float32([0, 1])).tolist()
    assert verdict.fault([np.float32([*right, np.inf])]) is None
    assert verdict.fault([np.float32([*right, np.nan])]).startswith("NaN")
    assert verdict.fault([np.float32([*right, 3e38])]).startswith("inf")
    assert verdict.fault([np.float32([1, 2.719, np.inf])]).startswith("value")
    assert verdict.fault([np.float64([*right, np.inf])]).startswith("dtype")
    assert verdict.fault([np.float32([right])]).startswith("shape")
    assert verdict.fault([]).startswith("count")


def test_roundings_excuse_what_they_explain_only():
    nodes = [helper.make_node("Sin", ["x"], ["s"]), helper.make_node("Floor", ["s"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph(nodes, "step", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    verdict = judge(model, {"x": np.float32([np.pi / 2, 0.5])})
    assert verdict.fault([np.float32([verdict.results[0][0] - 1, 0])]) == "unstable"
    assert verdict.fault([np.float32([verdict.results[0][0], 1])]).startswith("value")


def test_the_judges_say_why_nobody_knows():
    assert "onnxruntime" in judge(model_of("Gelu"), {"x": np.zeros(3, "float32")})
    assert difference([np.array([1])], [np.array([2])], 1.0, 1e9) is not None, "integers are exact"


def test_onnx_runtime_judges_alone_what_the_other_lacks():
    """DequantizeLinear of opset 13, in the middle of a model."""
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["f"]), helper.make_node("Exp", ["f"], ["y"])]
    q = helper.make_tensor_value_info("q", TensorProto.INT8, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph(nodes, "bytes", [q], [y], [helper.make_tensor("s", TensorProto.FLOAT, [], [0.5])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=10)
    verdict = judge(model, {"q": np.int8([2, -4])})
    assert verdict.fault([np.exp(np.float32([1, -2]))]) is None
    assert verdict.fault([np.exp(np.float32([1, -2.1]))]).startswith("value")


def test_powers_of_integers_are_left_open():
    """Beside an operator that the other judge lacks, ONNX Runtime would say alone what their sums are."""
    node = helper.make_node("ReduceLogSumExp", ["x"], ["y"])
    ends = [helper.make_tensor_value_info(name, TensorProto.INT32, None) for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "sums", ends[:1], ends[1:]))
    assert undefined(model, {"x": np.int32([-1, -3]), "y": np.int32(-1)})


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_interpolation_among_infinities_is_left_open(mode):
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 1, n]) for name, n in (("x", 2), ("y", 4))]
    scale = [helper.make_tensor("s", TensorProto.FLOAT, [4], [1, 1, 1, 2])]
    model = helper.make_model(
        helper.make_graph([node], "grown", ends[:1], ends[1:], scale),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=10,
    )  # fmt: skip
    assert isinstance(judge(model, {"x": np.float32([[[[1, 2]]]])}), Judgement)
    verdict = judge(model, {"x": np.float32([[[[1, np.inf]]]])})
    assert str(verdict).startswith("undefined") == (mode == "linear")


@pytest.mark.parametrize(("base", "exponent", "open_"), [(9, 2.5, False), (8166, 2.5, True), (-2, 0.5, True)])
def test_a_fractional_power_that_is_no_integer_is_left_open(base, exponent, open_):
    ends = [helper.make_tensor_value_info(name, TensorProto.INT32, [1]) for name in "xy"]
    power = [helper.make_tensor("p", TensorProto.FLOAT, [1], [exponent])]
    graph = helper.make_graph([helper.make_node("Pow", ["x", "p"], ["y"])], "power", ends[:1], ends[1:], power)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    verdict = judge(model, {"x": np.array([base], "int32")})
    assert str(verdict).startswith("undefined") == open_


@pytest.mark.parametrize(("value", "bias", "open_"), [(3, 1.0, False), (3, np.nan, True), (2**62, 2.0**62, True)])
def test_an_integer_that_shrinks_by_what_it_cannot_hold_is_left_open(value, bias, open_):
    ends = [helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Shrink", ["x"], ["y"], bias=bias)], "less", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    verdict = judge(model, {"x": np.array([value], "int64")})
    assert str(verdict).startswith("undefined") == open_


@pytest.mark.parametrize("indices", [[], ["i"]])
def test_where_the_largest_is_beside_a_nan_is_left_open(indices):
    kinds = {"x": (TensorProto.FLOAT, 3), "y": (TensorProto.FLOAT, 2), "i": (TensorProto.INT64, 2)}
    x, *ends = (helper.make_tensor_value_info(n, kinds[n][0], [1, 1, kinds[n][1]]) for n in ("x", "y", *indices))
    node = helper.make_node("MaxPool", ["x"], ["y", *indices], kernel_shape=[2])
    model = helper.make_model(
        helper.make_graph([node], "pooled", [x], ends), opset_imports=[helper.make_opsetid("", 17)], ir_version=10
    )
    assert isinstance(judge(model, {"x": np.float32([[[1, 2, 3]]])}), Judgement)
    verdict = judge(model, {"x": np.float32([[[1, np.nan, 3]]])})
    assert str(verdict).startswith("undefined")


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


def run_file(path):
    return subprocess.run([python(), str(path)], cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_a_written_model_runs(tmp_path):
    x = np.float32([-1, 0, 2])
    case = ModelCase("graphs", 7, model_of("Relu").SerializeToString(), {"x": x})
    report = Report("wrong", "value: result 0 at (0,) is 1.0 instead of 0.0")
    good = run_file(write_test(tmp_path / "good", case, report, [np.maximum(x, 0)]))
    assert good.returncode == 0, good.stderr
    bad = run_file(write_test(tmp_path / "bad", case, report, [x]))
    assert bad.returncode == 1 and "Mismatch" in bad.stderr


@pytest.mark.parametrize("seed", [1, 3])
def test_a_written_module_of_tvm_runs(tmp_path, seed):
    done = run_file(write_test(tmp_path, script_case(seed), Report("wrong", "value: 1 instead of 2"), None))
    assert done.returncode == 0, done.stderr


def test_written_kernels_run(tmp_path):
    done = run_file(write_test(tmp_path, kernel_case(1), Report("wrong", "value: 1 instead of 2"), None))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("way", [*ways.EXACT, *ways.NEAR])
def test_each_way_is_gone_and_judged(way, monkeypatch):
    case = ModelCase("ways", 5, model_of("Exp").SerializeToString(), {"x": np.float32([0, 1, 2])})
    verdict = judge(onnx.load_from_string(case.data), case.feeds)
    monkeypatch.setattr(ways, "way_of", lambda rng, judged: way)
    assert ways.judge_way(5, case.data, case.feeds, verdict) == ""
    table = ways.EXACT if way in ways.EXACT else ways.NEAR
    run = table[way]
    monkeypatch.setitem(table, way, lambda task: [[a + 1 for a in got] for got in run(task)])
    assert ways.judge_way(5, case.data, case.feeds, verdict).startswith(f"{way}: ")


def test_each_length_is_judged(monkeypatch):
    case = next(case for case in map(sequence_case, range(50)) if len(case.feeds) == 1)
    assert ways.judge_lengths(case.seed, case.data, case.feeds) == ""
    real, seen = ways.results_of, itertools.count()
    monkeypatch.setattr(ways, "results_of", lambda *run: [a + next(seen) for a in real(*run)])
    assert "steps" in ways.judge_lengths(case.seed, case.data, case.feeds)


@pytest.mark.parametrize("kind", ["ways", "sequences"])
def test_a_written_case_of_several_ways_runs(kind, tmp_path):
    done = run_file(write_test(tmp_path, KINDS[kind](2), Report("wrong", "saved: value: 1 instead of 2"), None))
    assert done.returncode == 0, done.stderr


def test_an_unreadable_file_is_written_as_bytes(tmp_path):
    path = write_test(tmp_path, ModelCase("files", 1, b"\xff\x00", {}), Report("foreign", 'OSError: "x"'), None)
    done = run_file(path)
    assert done.returncode == 0 and "refused" in done.stdout, done.stderr


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
