"""Attention as ONNX Runtime fuses it, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, model, node, random, rng, tensor, value

INT32 = TensorProto.INT32
BATCH, POSITIONS, HEADS, SIZE, BEFORE = 2, 5, 2, 4, 3
WIDTH = HEADS * SIZE


def contrib(nodes, inputs, outputs, constants=()):
    proto = model(nodes, inputs, outputs, list(constants))
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


def agree(run, proto, atol=2e-6, **inputs):
    """Compare with ONNX Runtime, each result."""
    got = run(load_model(proto), *inputs.values())
    expected = by_onnxruntime(proto, **inputs)
    for ours, theirs in zip(got if isinstance(got, list) else [got], expected, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=atol)


MASKS = {
    "none": None,
    "raw": np.array([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1]]),
    "nothing is seen": np.array([[0, 0, 0, 0, 0], [0, 1, 1, 1, 1]]),
    "of each query": rng(5).integers(0, 2, (BATCH, POSITIONS, POSITIONS)),
    "end": np.array([3, 5]),
    "end and begin": np.array([3, 5, 1, 0]),
}


def attention(mask=None, *, past=False, bias=False, **attributes):
    """An Attention, and what it is given."""
    given, feeds = [value("x", [BATCH, POSITIONS, 6])], {"x": random(BATCH, POSITIONS, 6)}
    names = ["x", "w", "b", "", "", ""]
    if mask is not None:
        names[3], feeds["mask"] = "mask", mask.astype("int32")
        given.append(value("mask", list(mask.shape), INT32))
    if past:
        shape = [2, BATCH, HEADS, BEFORE, SIZE]
        names[4], feeds["past"] = "past", random(*shape, seed=3)
        given.append(value("past", shape))
    if bias:
        shape = [1, HEADS, POSITIONS, POSITIONS + past * BEFORE]
        names[5], feeds["bias"] = "bias", random(*shape, seed=4)
        given.append(value("bias", shape))
    columns = sum(attributes.get("qkv_hidden_sizes", [WIDTH] * 3))
    constants = [tensor("w", random(6, columns, seed=1)), tensor("b", random(columns, seed=2))]
    outputs = ["y", "present"] if past else ["y"]
    only = node("Attention", names, outputs, domain="com.microsoft", num_heads=HEADS, **attributes)
    return contrib([only], given, outputs, constants), feeds


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("name", MASKS)
def test_masks(name, unidirectional, run):
    proto, feeds = attention(MASKS[name], unidirectional=unidirectional)
    agree(run, proto, **feeds)


@pytest.mark.parametrize("unidirectional", [0, 1])
def test_keys_and_values_of_earlier_positions(unidirectional, run):
    proto, feeds = attention(
        rng(1).integers(0, 2, (BATCH, BEFORE + POSITIONS)), past=True, unidirectional=unidirectional
    )
    agree(run, proto, **feeds)


@pytest.mark.parametrize(
    "attributes", [{"scale": 0.3}, {"mask_filter_value": -3.0}, {"qkv_hidden_sizes": [WIDTH, WIDTH, 6]}]
)
def test_attributes(attributes, run):
    proto, feeds = attention(MASKS["raw"], bias=True, **attributes)
    agree(run, proto, **feeds)


def test_heads_that_do_not_divide_the_weights_are_refused():
    proto, _ = attention()
    proto.graph.node[0].attribute[0].i = 3
    with pytest.raises(ModelError, match=r"columns for 24 columns of weights and 3 heads"):
        load_model(proto)


def test_turned_positions_are_refused_by_name():
    proto, _ = attention(do_rotary=1)
    with pytest.raises(
        UnsupportedOperatorError, match=r"Attention .* turns positions \(do_rotary\); fuse the model with MultiHead"
    ):
        load_model(proto)


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("mask", [None, "raw"])
def test_attention_of_bytes(mask, each, run):
    scale = np.linspace(0.01, 0.02, 3 * WIDTH) if each else np.array(0.015)
    constants = [
        tensor("w", rng(1).integers(-64, 64, (6, 3 * WIDTH), np.int8)), tensor("b", random(3 * WIDTH, seed=2)),
        tensor("xs", np.float32(0.02)), tensor("ws", scale.astype("float32")), tensor("xz", np.uint8(120)),
        tensor("wz", np.zeros(scale.shape, "int8")),
    ]  # fmt: skip
    given = [value("x", [BATCH, POSITIONS, 6], TensorProto.UINT8)]
    feeds = {"x": rng(7).integers(0, 255, (BATCH, POSITIONS, 6)).astype("uint8")}
    if mask:
        feeds["mask"] = MASKS[mask].astype("int32")
        given.append(value("mask", list(MASKS[mask].shape), INT32))
    names = ["x", "w", "b", "xs", "ws", "mask" if mask else "", "xz", "wz"]
    only = node("QAttention", names, ["y"], domain="com.microsoft", num_heads=HEADS)
    agree(run, contrib([only], given, ["y"], constants), **feeds)


@pytest.mark.parametrize("how", ["plain", "bias and mask", "causal", "other keys", "in heads", "past"])
def test_queries_keys_and_values_as_inputs(how, run):
    keys, names, more = (7 if how in ("other keys", "in heads") else POSITIONS), ["q", "k", "v"], {}
    shapes = {"q": [BATCH, POSITIONS, WIDTH], "k": [BATCH, keys, WIDTH], "v": [BATCH, keys, WIDTH]}
    if how == "in heads":
        shapes |= {"k": [BATCH, HEADS, keys, SIZE], "v": [BATCH, HEADS, keys, SIZE]}
    constants, outputs = [], ["y"]
    feeds = {name: random(*shape, seed=n) for n, (name, shape) in enumerate(shapes.items())}
    given = [value(name, shape) for name, shape in shapes.items()]
    if how == "bias and mask":
        names += ["b", "mask", "bias"]
        constants.append(tensor("b", random(3 * WIDTH, seed=8)))
        feeds |= {"mask": MASKS["raw"].astype("int32"), "bias": random(BATCH, 1, POSITIONS, keys, seed=9)}
        given += [value("mask", [BATCH, POSITIONS], INT32), value("bias", [BATCH, 1, POSITIONS, keys])]
    elif how == "causal":
        more["unidirectional"] = 1
    elif how == "past":
        names += ["", "", "", "pk", "pv"]
        outputs += ["nk", "nv"]
        for n, name in enumerate(["pk", "pv"]):
            feeds[name] = random(BATCH, HEADS, BEFORE, SIZE, seed=5 + n)
            given.append(value(name, [BATCH, HEADS, BEFORE, SIZE]))
    only = node("MultiHeadAttention", names, outputs, domain="com.microsoft", num_heads=HEADS, **more)
    agree(run, contrib([only], given, outputs, constants), **feeds)


@pytest.mark.parametrize("largest", [1, 30, 100])
@pytest.mark.parametrize("how", ["plain", "bias and mask", "causal", "all at once"])
def test_scores_of_halves_that_no_half_can_hold(how, largest, run):
    """ONNX Runtime computes in single precision on a CPU."""
    half, more = TensorProto.FLOAT16, {"scale": 1.0}
    feeds = {name: (random(BATCH, POSITIONS, 64, seed=n) * largest).astype("float16") for n, name in enumerate("qkv")}
    names, constants, kind = list("qkv"), [], "MultiHeadAttention"
    if how == "bias and mask":
        names += ["", "mask", "bias"]
        feeds |= {"mask": MASKS["raw"].astype("int32")}
        feeds |= {"bias": random(BATCH, 1, POSITIONS, POSITIONS, seed=9).astype("float16")}
    elif how == "causal":
        more["unidirectional"] = 1
    elif how == "all at once":
        kind, names, feeds = "Attention", ["q", "w", "b"], {"q": feeds["q"]}
        weights = random(64, 192, seed=1) / 4, np.zeros(192)
        constants = [tensor(name, w.astype("float16")) for name, w in zip("wb", weights, strict=True)]
    only = node(kind, names, ["y"], domain="com.microsoft", num_heads=HEADS, **more)
    kinds = {"float16": half, "int32": INT32}
    given = [value(name, array.shape, kinds[str(array.dtype)]) for name, array in feeds.items()]
    proto = contrib([only], given, [value("y", None, half)], constants)
    got, (want,) = run(load_model(proto), *feeds.values()), by_onnxruntime(proto, **feeds)
    assert np.isfinite(want).all() and got.dtype == want.dtype
    error = 5e-2 if how == "all at once" else 5e-3  # queries and keys are of half precision here
    np.testing.assert_allclose(got, want, rtol=error, atol=error * largest)


@pytest.mark.parametrize("how", ["all", "positions given", "no segments", "no mask"])
def test_embeddings_that_are_added_and_normalised(how, run):
    constants = [tensor(n, random(count, 8, seed=count)) for n, count in (("words", 30), ("places", 10), ("kinds", 2))]
    constants += [tensor("gamma", random(8, seed=1)), tensor("beta", random(8, seed=2))]
    names = ["ids", "segments", "words", "places", "kinds", "gamma", "beta", "mask", ""]
    feeds = {
        "ids": rng(1).integers(0, 30, (BATCH, POSITIONS)), "segments": rng(2).integers(0, 2, (BATCH, POSITIONS)),
        "mask": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]),
    }  # fmt: skip
    if how == "positions given":
        names[8], feeds["at"] = "at", rng(3).integers(0, 10, (BATCH, POSITIONS))
    elif how == "no segments":
        names[1] = names[4] = ""
        del feeds["segments"]
    elif how == "no mask":
        names[7] = ""
        del feeds["mask"]
    feeds = {name: array.astype("int32") for name, array in feeds.items()}
    given = [value(name, list(array.shape), INT32) for name, array in feeds.items()]
    outputs = ["y", "length", "sum"]
    only = node("EmbedLayerNormalization", names, outputs, domain="com.microsoft", epsilon=1e-5)
    results = [value("y", None), value("length", None, INT32), value("sum", None)]
    agree(run, contrib([only], given, results, constants), **feeds)


@pytest.mark.parametrize("apart", [1, 0])
@pytest.mark.parametrize("bias", [False, True])
def test_queries_keys_and_values_side_by_side(bias, apart, run):
    """ONNX Runtime has them on GPUs alone: three inputs mean the same."""
    whole = random(BATCH, POSITIONS, HEADS, 3, SIZE)
    parts = {name: whole[:, :, :, n].reshape(BATCH, POSITIONS, WIDTH) for n, name in enumerate("qkv")}
    packed = {"q": parts["q"], "k": whole[:, :, :, 1:]} if apart else {"q": whole}
    constants = [tensor("b", random(3 * WIDTH, seed=8))] if bias else []

    def proto(feeds):
        names = [name if name in feeds else "" for name in "qkv"] + ["b"] * bias
        only = node("MultiHeadAttention", names, ["y"], domain="com.microsoft", num_heads=HEADS)
        return contrib([only], [value(name, array.shape) for name, array in feeds.items()], ["y"], constants)

    got, (expected,) = run(load_model(proto(packed)), *packed.values()), by_onnxruntime(proto(parts), **parts)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=2e-6)


def test_scores_as_a_result_are_refused():
    given = [value(name, [BATCH, POSITIONS, WIDTH]) for name in "qkv"]
    only = node("MultiHeadAttention", list("qkv"), ["y", "", "", "s"], domain="com.microsoft", num_heads=HEADS)
    with pytest.raises(UnsupportedOperatorError, match="has its scores as a result"):
        load_model(contrib([only], given, ["y", "s"]))


@pytest.mark.parametrize("keys", [POSITIONS, POSITIONS + 2, POSITIONS - 2])
def test_queries_that_see_as_many_keys_as_there_were_queries(keys, run):
    """Of keys that are not the queries' own; ONNX Runtime shows all of them to the last query."""
    shapes = {"q": [BATCH, POSITIONS, WIDTH], "k": [BATCH, keys, WIDTH], "v": [BATCH, keys, WIDTH]}
    feeds = {name: random(*shape, seed=n) for n, (name, shape) in enumerate(shapes.items())}
    only = node("MultiHeadAttention", list("qkv"), ["y"], domain="com.microsoft", num_heads=HEADS, unidirectional=1)
    proto = contrib([only], [value(name, shape) for name, shape in shapes.items()], ["y"])
    got, (expected,) = run(load_model(proto), *feeds.values()), by_onnxruntime(proto, **feeds)
    np.testing.assert_allclose(got[:, :-1], expected[:, :-1], rtol=1e-5, atol=2e-6)
