"""A language model of two layers as exporters for ONNX Runtime write it: weights of four bits, caches, fused norms."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer

from ....models import by_onnxruntime, node, random, rng, tensor, value
from .test_operators import contrib, microsoft

WORDS, WIDTH, HEADS, GROUPS, SIZE, INNER, BLOCK, LAYERS = 40, 64, 4, 2, 16, 96, 32, 2
EPSILON = 1e-5


class Builder:
    """Collects the nodes and constants of a model."""

    def __init__(self, kind):
        self.kind, self.nodes, self.constants = kind, [], []

    def add(self, op, inputs, outputs, **how):
        self.nodes.append(microsoft(op, inputs, outputs, **how))
        return outputs[0]

    def constant(self, name, array):
        self.constants.append(tensor(name, array))
        return name

    def product(self, x, rows, columns, name):
        """With weights in blocks of 32, of four bits each."""
        packed = rng(len(self.nodes)).integers(0, 256, (columns, rows // BLOCK, BLOCK // 2)).astype("uint8")
        scales = (0.02 + 0.01 * np.abs(random(columns * rows // BLOCK, seed=len(name)))).astype(self.kind)
        names = [x, self.constant(f"{name}.w", packed), self.constant(f"{name}.s", scales)]
        return self.add("MatMulNBits", names, [name], K=rows, N=columns, bits=4, block_size=BLOCK)

    def scale(self, name):
        return self.constant(name, (1 + 0.1 * random(WIDTH, seed=len(name))).astype(self.kind))


def language_model(new, past, kind="float32"):
    """The first words, or one more, of two sentences; returns the model and what it is given."""
    made, elem = Builder(kind), TensorProto.FLOAT if kind == "float32" else TensorProto.FLOAT16
    table = np.arange(32)[:, None] / 10.0 ** np.arange(SIZE // 2)
    made.constant("cos", np.cos(table).astype(kind))
    made.constant("sin", np.sin(table).astype(kind))
    made.constant("one", np.array([1]))
    made.constant("place", np.array(1))
    made.nodes += [
        node("ReduceSum", ["mask", "one"], ["counts"], keepdims=0),
        node("Sub", ["counts", "one"], ["less"]),
        node("Cast", ["less"], ["last"], to=TensorProto.INT32),
        node("Shape", ["mask"], ["shape"]),
        node("Gather", ["shape", "place"], ["length"], axis=0),
        node("Cast", ["length"], ["total"], to=TensorProto.INT32),
    ]
    words = made.constant("words", rng(1).integers(0, 256, (WORDS, WIDTH // 2)).astype("uint8"))
    scales = made.constant("words.s", (0.05 + 0.01 * np.abs(random(WORDS, WIDTH // BLOCK))).astype(kind))
    made.add("GatherBlockQuantized", [words, "ids", scales], ["h0"], bits=4, block_size=BLOCK, quantize_axis=1)
    made.nodes.append(
        node("SimplifiedLayerNormalization", ["h0", made.scale("g0")], ["n0"], axis=-1, epsilon=EPSILON, stash_type=1)
    )
    sums, normal, caches = "h0", "n0", []
    for layer in range(LAYERS):
        packed = made.product(normal, WIDTH, (HEADS + 2 * GROUPS) * SIZE, f"qkv{layer}")
        caches += [f"k{layer}", f"v{layer}"]
        names = [packed, "", "", *caches[-2:], "last", "total", "cos", "sin"]
        outputs = [f"a{layer}", f"new_k{layer}", f"new_v{layer}"]
        how = {"num_heads": HEADS, "kv_num_heads": GROUPS, "do_rotary": 1, "rotary_interleaved": layer}
        attended = made.product(made.add("GroupQueryAttention", names, outputs, **how), WIDTH, WIDTH, f"o{layer}")
        gates, sums, normal = f"m{layer}", f"s{layer}", f"t{layer}"
        skip = "SkipSimplifiedLayerNormalization"
        before = "h0" if layer == 0 else f"u{layer - 1}"
        made.add(skip, [before, attended, made.scale(f"g{layer}a")], [normal, "", "", sums], epsilon=EPSILON)
        gate, up = (made.product(normal, WIDTH, INNER, f"{side}{layer}") for side in ("gate", "up"))
        made.nodes += [
            node("Sigmoid", [gate], [f"curve{layer}"]),
            node("Mul", [gate, f"curve{layer}"], [f"silu{layer}"]),
            node("Mul", [f"silu{layer}", up], [gates]),
        ]
        down = made.product(gates, INNER, WIDTH, f"down{layer}")
        normal = f"n{layer + 1}"
        made.add(skip, [sums, down, made.scale(f"g{layer}bb")], [normal, "", "", f"u{layer}"], epsilon=EPSILON)
    made.product(normal, WIDTH, WORDS, "logits")
    feeds = {"ids": rng(3).integers(0, WORDS, (2, new)), "mask": np.ones((2, past + new), np.int64)}
    if past:
        feeds["mask"][0, -2:] = 0
    shape = [2, GROUPS, past, SIZE]
    feeds |= {name: random(*shape, seed=n).astype(kind) for n, name in enumerate(caches)}
    given = [value(name, a.shape, TensorProto.INT64 if name in ("ids", "mask") else elem) for name, a in feeds.items()]
    results = [value(name, None, elem) for name in ("logits", *(f"new_{name}" for name in caches))]
    return contrib(made.nodes, given, results, made.constants), feeds


@pytest.mark.parametrize(("new", "past"), [(4, 8), (1, 7)])
@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_a_language_model_of_two_layers(kind, new, past):
    proto, feeds = language_model(new, past, kind)
    if new > 1:  # the caches are buffers: nothing was before
        feeds["mask"] = np.ones((2, new), np.int64)
        next(i for i in proto.graph.input if i.name == "mask").type.tensor_type.shape.dim[1].dim_value = new
    got, expected = tvm_rammer.compile(proto)(*feeds.values()), by_onnxruntime(proto, **feeds)
    for ours, theirs in zip(got, expected, strict=True):
        ours = np.asarray(ours)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(
            ours, theirs, rtol=0, atol=(1e-5 if kind == "float32" else 2e-2) * np.abs(theirs).max()
        )
