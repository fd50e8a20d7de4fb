"""GroupQueryAttention of language models, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, random, tensor, value
from .test_operators import contrib, microsoft

HEADS, GROUPS, SIZE = 4, 2, 16
KINDS = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
}


def grouped(new, past, ends, *, batch=2, packed=False, places=None, more=(), rotary=1, dtype="float32", **how):
    """A node for `new` positions behind `past` rows of caches, where sequences end at `ends`; and what it is given."""
    table = np.arange(40)[:, None] / 10.0 ** np.arange(SIZE // 2)
    numbers = {"q": random(batch, new, (HEADS + 2 * GROUPS if packed else HEADS) * SIZE)}
    if not packed:
        numbers |= {name: random(batch, new, GROUPS * SIZE, seed=n) for n, name in enumerate("kv", 1)}
    if past:
        numbers |= {name: random(batch, GROUPS, past, SIZE, seed=n) for n, name in enumerate(["pk", "pv"], 3)}
    if "bias" in more:
        numbers["bias"] = random(1, HEADS, new, max(ends), seed=8)
    feeds = {name: array.astype(dtype) for name, array in numbers.items()} | {"last": np.array(ends, "int32") - 1}
    if places is not None:
        feeds["places"] = np.array(places)
    constants = {"cos": np.cos(table), "sin": np.sin(table)} if rotary else {}
    if "sink" in more:
        constants["sink"] = random(HEADS, seed=9)
    constants = {name: array.astype(dtype) for name, array in constants.items()} | {"total": np.int32(max(ends))}
    known = {*feeds, *constants}
    names = ["q", "k", "v", "pk", "pv", "last", "total", "cos", "sin", "places", "bias", "sink"]
    names = [name if name in known else "" for name in names]
    outputs = ["y", "nk", "nv"]
    heads = {"num_heads": HEADS, "kv_num_heads": GROUPS}
    proto = contrib(
        [microsoft("GroupQueryAttention", names, outputs, do_rotary=rotary, **heads, **how)],
        [value(name, array.shape, KINDS[str(array.dtype)]) for name, array in feeds.items()],
        [value(name, None, KINDS[dtype]) for name in outputs],
        [tensor(name, array) for name, array in constants.items()],
    )
    return proto, feeds


def agree(run, proto, feeds, tolerance=2e-6):
    for ours, theirs in zip(run(load_model(proto), *feeds.values()), by_onnxruntime(proto, **feeds), strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=tolerance)


STEPS = {
    "the first ones": (5, 0, [5, 5], 2), "the first ones, of different lengths": (5, 0, [3, 5], 2),
    "the first ones into a buffer": (5, 12, [5, 5], 2), "one more": (1, 6, [7, 7], 2),
    "one more, of different lengths": (1, 6, [4, 7], 2), "one more in a buffer": (1, 12, [7, 3], 2),
    "several more": (3, 6, [9], 1), "several more in a buffer": (3, 12, [8], 1), "a single one": (1, 0, [1, 1], 2),
    "a single one into a buffer": (1, 4, [1, 1], 2),
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_steps_with_a_past_and_without(step, packed, run):
    new, past, ends, batch = STEPS[step]
    agree(run, *grouped(new, past, ends, batch=batch, packed=packed))


@pytest.mark.parametrize("rotary", [0, 1])
@pytest.mark.parametrize("new", [1, 5])
@pytest.mark.parametrize(
    "how",
    [
        {"scale": 0.4, "softcap": 0.7, "more": ["bias"]}, {"local_window_size": 2}, {"smooth_softmax": 1},
        {"more": ["sink"]}, {"causal": 0}, {"rotary_interleaved": 1},
    ],
)  # fmt: skip
def test_attributes(how, new, rotary, run):
    agree(run, *grouped(new, 6 * (new == 1), [4, 7] if new == 1 else [4, 5], rotary=rotary, **how))


@pytest.mark.parametrize(
    ("new", "past", "ends", "places"), [(3, 0, [3, 3], [[4, 9, 9], [5, 9, 9]]), (1, 6, [7, 5], [[3], [9]])]
)
def test_positions_that_are_given(new, past, ends, places, run):
    """Of the first ones ONNX Runtime reads one position."""
    agree(run, *grouped(new, past, ends, places=places))


@pytest.mark.parametrize(("new", "past", "ends"), [(5, 0, [5, 5]), (1, 6, [4, 7])])
def test_half_precision(new, past, ends, run):
    agree(run, *grouped(new, past, ends, dtype="float16"), tolerance=3e-3)


@pytest.mark.parametrize(("new", "past", "ends"), [(5, 0, [5, 5]), (1, 6, [4, 7])])
@pytest.mark.parametrize("more", [["bias"], ["sink"]])
def test_scores_of_halves_that_no_half_can_hold(more, new, past, ends, run):
    proto, feeds = grouped(new, past, ends, dtype="float16", scale=1.0, more=more, rotary=0)
    feeds |= {name: array * np.float16(100) for name, array in feeds.items() if name in ("q", "k", "pk")}
    agree(run, proto, feeds, tolerance=3e-3)


def test_heads_that_are_normalised_first(run):
    """No kernel of ONNX Runtime for CPUs has it: the norms are nodes of their own for it."""
    proto, feeds = grouped(3, 0, [3, 3])
    norms = {"qn": random(SIZE, seed=5), "kn": random(SIZE, seed=6)}
    proto.graph.initializer.extend(tensor(name, array) for name, array in norms.items())
    given = feeds | {
        name: by_rows(feeds[name].reshape(2, 3, -1, SIZE), norms[f"{name}n"]).reshape(feeds[name].shape)
        for name in "qk"
    }
    expected = by_onnxruntime(proto, **given)
    proto.graph.node[0].input.extend(["", "", "qn", "kn"])
    for ours, theirs in zip(run(load_model(proto), *feeds.values()), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=2e-6)


def by_rows(x, scale):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def counted(*step, **how):
    """The same, with the length of the longest sequence as an input."""
    proto, feeds = grouped(*step, **how)
    (total,) = (t for t in proto.graph.initializer if t.name == "total")
    proto.graph.initializer.remove(total)
    proto.graph.input.append(value("total", [], TensorProto.INT32))
    return proto, feeds


COUNTED = {
    "several more": (3, 6, 1, {}, [([9], 9), ([8], 9), ([3], 3), ([2], 3)]),
    "several more in a buffer": (3, 12, 1, {}, [([8], 8), ([3], 3), ([12], 12)]),
    "one more": (1, 6, 2, {}, [([4, 7], 7), ([4, 5], 5), ([1, 1], 1)]),
    "the first ones": (3, 0, 2, {}, [([3, 3], 3), ([2, 3], 3)]),
    "the first ones into a buffer": (3, 6, 2, {}, [([3, 2], 3)]),
    "positions that are given": (3, 12, 1, {"places": [[3, 4, 6]]}, [([8], 8), ([3], 3)]),
    "a window": (1, 6, 2, {"local_window_size": 2}, [([7, 5], 7)]),
    "a sink": (1, 6, 2, {"more": ["sink"]}, [([7, 5], 7), ([2, 1], 2)]),
    "what is ahead is seen": (3, 6, 1, {"causal": 0}, [([9], 9), ([2], 3)]),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_a_length_that_comes_when_the_model_runs(name):
    new, past, batch, how, runs = COUNTED[name]
    proto, feeds = counted(new, past, runs[0][0], batch=batch, **how)
    module = tvm_rammer.compile(proto, cache=False)
    for ends, total in runs:
        feeds |= {"last": np.array(ends, "int32") - 1, "total": np.array(total, "int32")}
        for ours, theirs in zip(module.run(None, feeds), by_onnxruntime(proto, **feeds), strict=True):
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("new", "past", "batch", "totals"), [(3, 6, 1, (2, 10, -1)), (3, 6, 2, (2, 5)), (3, 0, 2, (2, 4))]
)
def test_a_length_that_comes_and_does_not_fit_ends_the_call(new, past, batch, totals):
    """Several sequences of several new positions each are the first ones."""
    proto, feeds = counted(new, past, [3] * batch, batch=batch)
    module = tvm_rammer.compile(proto, cache=False)
    for total in totals:
        with pytest.raises(ModelError, match="mend the data of 'total'"):
            module.run(None, feeds | {"total": np.array(total, "int32")})


def test_a_length_that_comes_beside_a_bias_is_refused():
    proto, _ = counted(1, 6, [7, 7], more=["bias"])
    with pytest.raises(
        UnsupportedOperatorError, match=r"a length that is computed, and a bias; make 'total'.*fix_inputs"
    ):
        load_model(proto)


def test_scores_as_a_result_are_refused():
    proto, _ = grouped(3, 0, [3, 3], qk_output=1)
    proto.graph.node[0].output.append("scores")
    with pytest.raises(UnsupportedOperatorError, match="has its scores as a result; leave out its fourth result"):
        load_model(proto)


@pytest.mark.parametrize(
    ("new", "past", "ends", "batch"), [(3, 6, [9, 9], 2), (1, 3, [7, 7], 2), (3, 0, [2, 2], 2), (3, 0, [5], 1)]
)
def test_lengths_that_do_not_fit_are_refused(new, past, ends, batch):
    proto, _ = grouped(new, past, ends, batch=batch)
    with pytest.raises(
        ModelError, match=rf"sequences of up to {max(ends)} positions for {new} new ones, {past} before"
    ):
        load_model(proto)


def test_heads_that_no_group_shares_are_refused():
    proto, _ = grouped(3, 0, [3, 3])
    next(a for a in proto.graph.node[0].attribute if a.name == "kv_num_heads").i = 3
    with pytest.raises(ModelError, match="4 heads of queries for 3 of keys"):
        load_model(proto)
