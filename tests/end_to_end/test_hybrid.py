"""A model of everything: convolutions, an LSTM, attention, a symbolic width, an `If` that data decide."""

import json
import re

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tests.relay_passes.models import by_onnxruntime
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.report_page import report_html
from tvm_rammer.zoo.onnx_tools.graph import OnnxGraph

HEIGHT, FILTERS, HIDDEN, CLASSES = 8, 8, 16, 5
FEATURES = FILTERS * HEIGHT // 4
WIDTHS = (64, 48)
THRESHOLD = 0.05
"""Between the means that loud images and faint ones lead to."""


def hybrid():
    """A reader of images of any width, whose head is one of two, by the mean of what the attention made."""
    graph = OnnxGraph(3)
    image = graph.conv("conv0", "x", (1, FILTERS, 3), stride=2)
    image = graph.conv("conv1", image, (FILTERS, FILTERS, 3))
    image = graph.pool("MaxPool", "pool", image, 2, stride=2)
    columns = graph.weight("as_columns", np.array([1, FEATURES, -1], np.int64))
    flat = graph.node("Reshape", [image, columns], "columns")
    steps = graph.node("Transpose", [flat], "sequence", perm=[2, 0, 1])
    w = graph.weight("w", graph.he((2, 4 * HIDDEN, FEATURES), FEATURES))
    r = graph.weight("r", graph.he((2, 4 * HIDDEN, HIDDEN), HIDDEN))
    both = graph.node("LSTM", [steps, w, r], "both", hidden_size=HIDDEN, direction="bidirectional")
    merged = graph.node("Transpose", [both], "merged", perm=[2, 0, 1, 3])
    shape = graph.weight("as_rows", np.array([1, -1, 2 * HIDDEN], np.int64))
    rows = graph.node("Reshape", [merged, shape], "rows")
    q, k, v = (
        graph.node("MatMul", [rows, graph.weight(f"{name}_w", graph.he((2 * HIDDEN, 2 * HIDDEN), 2 * HIDDEN))], name)
        for name in "qkv"
    )
    scores = graph.node("MatMul", [q, graph.node("Transpose", [k], "kt", perm=[0, 2, 1])], "products")
    scores = graph.node("Mul", [scores, graph.weight("scale", np.float32((2 * HIDDEN) ** -0.5))], "scores")
    attended = graph.node("MatMul", [graph.node("Softmax", [scores], "shares", axis=-1), v], "attended")
    pooled = graph.node("ReduceMean", [attended], "pooled", axes=[1], keepdims=0)
    mean = graph.node("ReduceMean", [pooled], "mean", axes=[0, 1], keepdims=0)
    bright = graph.node("Greater", [mean, graph.weight("threshold", np.float32(THRESHOLD))], "bright")
    heads = {name: graph.weight(name, graph.he((2 * HIDDEN, CLASSES), 2 * HIDDEN)) for name in ("then", "else")}
    branches = {
        f"{name}_branch": helper.make_graph(
            [
                helper.make_node("MatMul", [pooled, weight], [f"{name}_sum"]),
                helper.make_node("Softmax" if name == "then" else "Tanh", [f"{name}_sum"], [f"{name}_y"]),
            ],
            name,
            [],
            [helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, [1, CLASSES])],
        )
        for name, weight in heads.items()
    }
    graph.node("If", [bright], "y", **branches)
    return graph.model("hybrid", {"x": (1, 1, HEIGHT, "width")}, {"y": (1, CLASSES)})


def image(width, seed=0):
    return np.random.default_rng(seed).standard_normal((1, 1, HEIGHT, width)).astype(np.float32)


@pytest.fixture(scope="module")
def proto():
    return hybrid()


@pytest.fixture(scope="module")
def module(proto):
    return tvm_rammer.compile(proto, threads=2, cache=False)


@pytest.fixture(scope="module")
def measured(proto):
    return tvm_rammer.profile(proto, [image(WIDTHS[0])], shapes={"width": WIDTHS[0]}, threads=2, runs=2)


def test_results_of_both_branches_at_several_widths(proto, module):
    taken = set()
    for width in WIDTHS:
        for loudness in (1.0, 0.1):
            x = np.float32(loudness) * image(width)
            (want,) = by_onnxruntime(proto, x=x)
            taken.add(abs(want.sum() - 1) < 1e-5)  # of a softmax; the other branch is a tanh
            assert relative_error(module(x), want) <= 1e-5
    assert taken == {True, False}


def test_all_of_it_is_rprograms_with_one_loop(module):
    module(image(WIDTHS[0]))
    assert not module.compilation.stock_calls
    assert [program.steps for program in module.rprograms if program.steps > 1] == [WIDTHS[0] // 4]
    assert "of each of 16 steps in one launch" in module.explain()


def test_its_picture_has_every_program(module):
    module(image(WIDTHS[0]))
    svg = module.schedule_svg()
    assert all(program.name in svg for program in module.rprograms)


def test_a_profile_says_which_branch_did_not_run(measured):
    (left_out,) = measured.not_run
    assert f"{left_out} did not run" in measured.text()
    names = [program.name for program in measured.compilation.programs]
    assert len(measured.timelines) == len(names)
    assert left_out not in names


def test_its_report_has_the_loop_as_one_block(measured):
    page = report_html(measured.compilation, "hybrid", profile=measured)
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    assert [program["steps"] for program in data["lanes"]["programs"] if program["steps"] > 1] == [WIDTHS[0] // 4]
    assert data["executions"] == ["planned", "measured"]
