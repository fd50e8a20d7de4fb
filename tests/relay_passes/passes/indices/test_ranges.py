"""Indices that constants bound are not checked; what is said of a tensor's range holds for all of its elements."""

import random

import numpy as np
import pytest
import tvm
from onnx import TensorProto
from tvm import relax

import tvm_rammer
from tests.functions import TARGET
from tests.relay_passes.models import by_onnxruntime, model, node, tensor, value
from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.bindings import body_blocks
from tvm_rammer.relay_passes.passes.indices import CheckIndices
from tvm_rammer.relay_passes.passes.indices.ranges import Ranges


def walk(*tables):
    """Each table says where to look in the next one; the input says where in the first."""
    names = [f"t{n}" for n in range(len(tables))]
    nodes = [node("Gather", [t, f"i{n}"], [f"i{n + 1}"]) for n, t in enumerate(names)]
    tensors = [tensor(name, np.array(table)) for name, table in zip(names, tables, strict=True)]
    last = value(f"i{len(tables)}", [3], TensorProto.INT64)
    return model(nodes, [value("i0", [3], TensorProto.INT64)], [last], tensors)


def checks(proto) -> int:
    """How many errors there may be."""
    return str(CheckIndices()(load_model(proto))).count("R.assert_op(")


@pytest.mark.parametrize(
    ("tables", "checked"),
    [
        ([[2, 0, 1], [1, 1, 0], [7, 8]], 1),
        ([[2, 0, 3], [1, 1, 0]], 2),
        ([[-3, 2, -1], [1, 2, 0]], 2),
    ],
    ids=["inside", "beyond", "from_the_end"],
)
def test_what_a_table_says_is_checked_once_at_most(tables, checked):
    proto = walk(*tables)
    assert checks(proto) == checked
    module = tvm_rammer.compile(proto, cache=False)
    i0 = np.array([0, 1, -3])
    np.testing.assert_array_equal(module(i0), by_onnxruntime(proto, i0=i0)[0])
    with pytest.raises(ModelError, match="Gather"):
        module(np.array([0, 2 if 3 in tables[0] else 3, 1]))


NEXT = {
    "add": relax.op.add, "subtract": relax.op.subtract, "multiply": relax.op.multiply,
    "minimum": relax.op.minimum, "maximum": relax.op.maximum,
}  # fmt: skip
COMPARED = [relax.op.less, relax.op.less_equal, relax.op.greater, relax.op.greater_equal]
SHAPE = (2, 3)


def random_function(rng):
    """Integers made of each other, of constants, of an input, and of comparisons of these."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "int64"))
    y = relax.Var("y", relax.TensorType((2, 3, 4), "float32"))
    draw = np.random.default_rng(rng.randrange(1 << 30))

    def constant():
        low = rng.choice([-5, 0, 2, 1 << 40])
        return relax.const(draw.integers(low, low + rng.randint(1, 6), SHAPE), "int64")

    with bb.function("main", [x, y]):
        with bb.dataflow():
            known = [x, constant(), constant(), bb.emit(relax.op.argmax(y, axis=2))]
            for _ in range(25):
                a, b, c = (rng.choice([*known, constant()]) for _ in range(3))
                kind = rng.choice([*NEXT, "where", "where", "take", "elements", "concat", "move", "cast"])
                if kind in NEXT:
                    made = NEXT[kind](a, b)
                elif kind == "where":
                    made = relax.op.where(bb.emit(rng.choice(COMPARED)(a, b)), b, c)
                elif kind == "take":
                    made = relax.op.take(
                        relax.op.reshape(a, [6]), relax.const(draw.integers(0, 6, SHAPE), "int64"), axis=0
                    )
                elif kind == "elements":
                    made = relax.op.gather_elements(a, relax.const(draw.integers(0, 3, SHAPE), "int64"), axis=1)
                elif kind == "concat":
                    both = bb.emit(relax.op.concat([a, b], 1))
                    made = relax.op.strided_slice(both, [1], [0], [6], [2])
                elif kind == "move":
                    made = relax.op.permute_dims(relax.op.reshape(a, [3, 2]))
                else:
                    made = relax.op.astype(relax.op.astype(a, rng.choice(["int32", "int8", "bool"])), "int64")
                known.append(bb.emit(made))
            result = bb.emit_output(relax.Tuple(known[4:]))
        bb.emit_func_output(result)
    return bb.get()


@pytest.mark.parametrize("seed", range(6))
def test_ranges_hold(seed):
    rng = random.Random(seed)
    mod = random_function(rng)
    ranges, said = Ranges(), {}
    for block in body_blocks(mod["main"]):
        for binding in block.bindings:
            ranges.add(binding)
            said[binding.var] = ranges.of(binding.var), ranges.simplest(binding.var)
    fields = next(b.value for b in body_blocks(mod["main"])[0].bindings if isinstance(b.value, relax.Tuple)).fields
    run = relax.VirtualMachine(tvm.compile(mod, TARGET), tvm.cpu())["main"]
    values = {}
    for n in range(4):
        draw = np.random.default_rng(n)
        x, y = draw.integers(-(1 << 62), 1 << 62, SHAPE), draw.standard_normal((2, 3, 4)).astype("float32")
        values = dict(zip(fields, (t.numpy() for t in run(tvm.runtime.tensor(x), tvm.runtime.tensor(y))), strict=True))
        for var, array in values.items():
            found, simplest = said[var]
            if found is not None:
                assert found[0] <= array.min() and array.max() <= found[1]
            if simplest in values:
                np.testing.assert_array_equal(values[simplest], array)
    assert any(said[var][0] is not None for var in values)
