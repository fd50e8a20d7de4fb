"""Loops that read each other step by step become one, which computes the same; others stay as they are."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tests.marks import one_in
from tests.relay_passes.models import by_onnxruntime, model, node, random, tensor, value
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.compilation.compiler import compile_loaded, load_request
from tvm_rammer.compilation.request import Request
from tvm_rammer.device import host_cpu
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.loops.body import LoopBody, loop_bodies
from tvm_rammer.zoo.onnx_lstm import onnx_lstm

T, B, H = 9, 2, 8


def scan(name, reads, states=("zero",), writes=1, extra=(), **attributes):
    """A Scan whose state adds up what it reads, and is the first result; `extra` is read of the graph around it."""
    inputs = [f"{name}/s", *(f"{name}/x{n}" for n in range(len(reads)))]
    nodes, total = [], inputs[0]
    for n, read in enumerate((*inputs[1:], *extra)):
        nodes.append(node("Add" if n else "Sub", [total, read], [f"{name}/t{n}"]))
        total = f"{name}/t{n}"
    nodes.append(node("Tanh", [total], [f"{name}/next"]))
    results = [f"{name}/w{n}" for n in range(writes)]
    nodes += [node("Neg" if n else "Identity", [f"{name}/next"], [result]) for n, result in enumerate(results)]
    values = [helper.make_tensor_value_info(i, TensorProto.FLOAT, [B, H]) for i in inputs]
    made = [helper.make_tensor_value_info(o, TensorProto.FLOAT, [B, H]) for o in (f"{name}/next", *results)]
    body = helper.make_graph(nodes, f"{name}/body", values, made)
    outputs = [f"{name}_last", *(f"{name}{n}" for n in range(writes))]
    return node("Scan", [*states, *reads], outputs, body=body, num_scan_inputs=len(reads), **attributes)


def proto(nodes, outputs, inputs=("x",)):
    inits = [
        tensor("zero", np.zeros((B, H), "float32")),
        tensor("w", random(H, H, seed=1)),
        tensor("flat", np.array([T * B, H])),
        tensor("apart", np.array([T, B, H])),
        tensor("one", np.array([1])),
    ]
    return model(nodes, [value(name, [T, B, H]) for name in inputs], outputs, inits)


def joined(made: onnx.ModelProto) -> tuple[list[int], list[np.ndarray]]:
    """How many steps each loop of a joined model has, and what it computes."""
    request = Request((made,), (None,), host_cpu())
    mod = load_model(made, loops=True, join=True)
    steps = [body.steps for f in loop_bodies(mod).values() if (body := LoopBody.of(f))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Request, "joins_loops", True)
        loaded = load_request(request)
        found = tvm_rammer.RammerModule(compile_loaded(request, loaded), loaded.inputs, loaded.outputs)
    arrays = [random(*spec.shape, seed=n) for n, spec in enumerate(loaded.inputs)]
    got = found(*arrays)
    got = list(got) if isinstance(got, list | tuple) else [got]
    for ours, theirs in zip(
        got, by_onnxruntime(made, **dict(zip((s.name for s in loaded.inputs), arrays, strict=True))), strict=True
    ):
        assert relative_error(ours, theirs) <= 1e-5
    return steps, got


@pytest.mark.parametrize("kind", one_in(3, ["LSTM", "GRU", "RNN"]))
def test_stacked_layers_become_one(kind):
    steps, _ = joined(onnx_lstm(3, T, 16, 2, kind=kind))
    assert steps == [T]


def test_layers_that_go_both_ways_stay_apart():
    steps, _ = joined(onnx_lstm(2, T, 16, bidirectional=True))
    assert steps == [T, T]


BETWEEN = {
    "nothing": [],
    "a product": [node("MatMul", ["a0", "w"], ["b"])],
    "a product of all rows": [
        node("Reshape", ["a0", "flat"], ["r"]),
        node("MatMul", ["r", "w"], ["p"]),
        node("Relu", ["p"], ["q"]),
        node("Reshape", ["q", "apart"], ["b"]),
    ],
    "a softmax": [node("Softmax", ["a0"], ["b"], axis=-1)],
    "transpositions": [
        node("Transpose", ["a0"], ["r"], perm=[1, 0, 2]),
        node("Transpose", ["r"], ["b"], perm=[1, 0, 2]),
    ],
    "an axis more and less": [
        node("Unsqueeze", ["a0", "one"], ["r"]),
        node("Squeeze", ["r", "one"], ["b"]),
    ],
}


@pytest.mark.parametrize("between", BETWEEN)
def test_what_lies_between_is_done_row_by_row(between):
    nodes = BETWEEN[between]
    steps, _ = joined(proto([scan("a", ["x"]), *nodes, scan("c", ["b" if nodes else "a0"])], ["c0", "c_last"]))
    assert steps == [T]


def test_what_lies_between_may_be_a_result_too():
    nodes = [scan("a", ["x"]), node("MatMul", ["a0", "w"], ["b"]), scan("c", ["b"]), node("Neg", ["b"], ["d"])]
    steps, _ = joined(proto(nodes, ["c0", "b", "d", "a_last", "a0"]))
    assert steps == [T]


def test_bodies_may_use_the_same_names():
    scans = [scan("same", [read]) for read in ("x", "a0")]
    for n, (each, name) in enumerate(zip(scans, "ac", strict=True)):
        body = next(a.g for a in each.attribute if a.name == "body")
        body.initializer.append(tensor("same/constant", random(H, seed=5 + n)))
        body.node[0].input[1] = "same/constant"
        body.node.insert(1, node("Add", ["same/t0", "same/x0"], ["same/more"]))
        body.node[2].input[0] = "same/more"
        each.output[:] = [f"{name}_last", f"{name}0"]
    steps, _ = joined(proto(scans, ["c0"]))
    assert steps == [T]


def test_a_loop_may_read_several_and_what_does_not_depend_on_them():
    nodes = [
        scan("a", ["x"]),
        scan("c", ["a0"], writes=2),
        node("Exp", ["y"], ["e"]),
        scan("d", ["a0", "c1", "e"], extra=["zero"]),
    ]
    steps, _ = joined(proto(nodes, ["d0", "c0"], ["x", "y"]))
    assert steps == [T]


APART = {
    "it reads the whole sequence": [node("ReduceMean", ["a0"], ["b"], axes=[0]), node("Add", ["a0", "b"], ["c"])],
    "it works along the sequence": [node("Softmax", ["a0"], ["c"], axis=0)],
    "it reads the last state": [node("Add", ["a0", "a_last"], ["c"])],
}


@pytest.mark.parametrize("why", APART)
def test_what_waits_for_the_end_of_another_stays_apart(why):
    steps, _ = joined(proto([scan("a", ["x"]), *APART[why], scan("d", ["c"])], ["d0"]))
    assert steps == [T, T]


@pytest.mark.parametrize(
    "second",
    [
        scan("d", ["a0"], states=["a_last"]),
        scan("d", ["a0"], extra=["a_last"]),
        scan("d", ["a0"], scan_input_directions=[1]),
        scan("d", ["x", "a0"], scan_input_directions=[1, 1]),
    ],
    ids=["state", "invariant", "backward", "beside_another_backward"],
)
def test_loops_that_cannot_follow_step_by_step_stay_apart(second):
    steps, _ = joined(proto([scan("a", ["x"]), second], ["d0", "a0"]))
    assert steps == [T, T]


BACKWARD = {"scan_input_directions": [1], "scan_output_directions": [1]}


@pytest.mark.parametrize(
    "others",
    [
        [scan("c", ["x"])],
        [scan("c", ["x"], **BACKWARD)],
        [scan("c", ["a0"], scan_output_directions=[1])],
        [scan("b", ["x"], **BACKWARD), scan("c", ["a0", "x"], scan_input_directions=[0, 1])],
        [node("Exp", ["x"], ["e"]), scan("b", ["e"]), scan("c", ["b0", "a0"])],
    ],
    ids=["forward", "backward", "writes_backward", "reads_both_ways", "then_one_that_reads_both"],
)
def test_loops_that_read_nothing_of_each_other_run_side_by_side(others):
    steps, _ = joined(proto([scan("a", ["x"]), *others], ["c0", "c_last", "a0", "a_last"]))
    assert steps == [T]


def test_what_reads_a_loop_that_goes_backward_stays_apart():
    nodes = [scan("a", ["x"]), scan("b", ["x"], **BACKWARD), scan("c", ["a0", "b0"])]
    steps, _ = joined(proto(nodes, ["c0", "c_last"]))
    assert steps == [T, T]


def test_loops_of_other_lengths_stay_apart():
    one_less = node("Slice", ["x", "one", "end", "none"], ["s"])
    made = proto([scan("a", ["x"]), one_less, scan("b", ["s"])], ["a0", "b0"])
    made.graph.initializer.extend([tensor("end", np.array([T])), tensor("none", np.array([0]))])
    steps, _ = joined(made)
    assert sorted(steps) == [T - 1, T]
