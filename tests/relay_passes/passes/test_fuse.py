"""What Fuse makes is what TVM's FuseOps makes, but for what many operators take parts of."""

import pytest
import tvm
import tvm_ffi
from tvm import relax, tirx

from tests.functions import TARGET, relax_module
from tests.relay_passes.onnx.lower.recurrence.test_recurrent import layer
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.bindings import named_sizes
from tvm_rammer.relay_passes.passes import fuse
from tvm_rammer.relay_passes.passes.fold_constants import FoldConstants

OP = relax.op


def skip(x, w):
    """A product between two uses of a value, and elementwise operators at both ends."""
    y = OP.nn.relu(x)
    return OP.add(OP.tanh(OP.matmul(OP.exp(y), w)), y)


def softmax(x, w):
    y = OP.exp(OP.matmul(x, w))
    return OP.divide(y, OP.sum(y, -1, keepdims=True))


def branches(x, w):
    y = OP.nn.relu(OP.matmul(x, w))
    return OP.concat([OP.tanh(y), OP.matmul(y, w), OP.sigmoid(OP.add(y, x))], axis=1)


def pieces(x, w):
    both = OP.split(OP.matmul(x, w), 2, axis=1)
    first, second = relax.TupleGetItem(both, 0), relax.TupleGetItem(both, 1)
    return OP.concat([OP.tanh(first), OP.multiply(first, second)], axis=1)


def annotated(mod):
    with TARGET:
        passes = [relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern()]
        return tvm.transform.Sequential([FoldConstants(), *passes])(mod)


def fused_by_tvm(mod):
    with tvm.transform.PassContext(config={"relax.FuseOps.max_depth": fuse.MAX_DEPTH}):
        return relax.transform.FuseOps()(mod)


@pytest.mark.parametrize("body", [skip, softmax, branches, pieces])
def test_functions_are_fused_as_tvm_does(body):
    mod = annotated(relax_module([(8, 8), (8, 8)], body))
    assert tvm_ffi.structural_equal(fuse.Fuse()(mod), fused_by_tvm(mod))


@pytest.mark.parametrize(("parts", "functions"), [(fuse.MOST_PARTS, 1), (fuse.MOST_PARTS + 1, 2)])
def test_what_many_take_parts_of_is_computed_once(parts, functions):
    def windows(x):
        y = OP.sigmoid(x)
        return OP.concat([OP.strided_slice(y, [1], [n], [n + 4]) for n in range(parts)], axis=1)

    made = fuse.Fuse()(annotated(relax_module([(8, 16)], windows)))
    main = made["main"].body.blocks[0].bindings
    assert sum(isinstance(binding.value, tvm.ir.Call) for binding in main) == functions


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layers(kind):
    mod = annotated(load_model(layer(kind, "bidirectional")))
    made = fuse.Fuse()(mod)
    assert tvm_ffi.structural_equal(made, fused_by_tvm(mod))
    results = [b.var for b in made["main"].body.blocks[0].bindings if not isinstance(b.var, relax.DataflowVar)]
    assert len(results) == 1


def test_states_end_the_walks_of_fuse_ops():
    """Without these outputs FuseOps walks from each state to the end of the model."""
    mod = annotated(load_model(layer("LSTM")))
    marked = fuse._with_outputs(mod, mod["main"])
    outputs = [b.var for b in marked.body.blocks[0].bindings if not isinstance(b.var, relax.DataflowVar)]
    steps = sum(isinstance(b.value, tvm.ir.Call) and "matmul" in str(b.value.args[0]) for b in outputs_of(mod))
    assert len(outputs) >= steps > 3


def outputs_of(mod):
    return [b for block in mod["main"].body.blocks for b in block.bindings]


def test_what_needs_a_size_is_computed_behind_it():
    """FuseOps would put the whole product in one function, and call it before the size has its name."""

    def places(count):
        builder = relax.BlockBuilder.current()
        number = OP.astype(count, "float32")
        factor = builder.emit(OP.exp(number))
        shape = builder.emit(OP.tensor_to_shape(OP.reshape(OP.astype(OP.multiply(number, number), "int64"), (1,))))
        length = tirx.Var("length", "int64")
        builder.match_cast(shape, relax.ShapeType([length]))
        return OP.multiply(OP.astype(OP.arange(0, length, 1, "int64"), "float32"), factor)

    made = fuse.Fuse()(annotated(relax_module([()], places, dtype="int32")))
    named = set()
    for binding in made["main"].body.blocks[0].bindings:
        assert set(relax.analysis.tir_vars_in_type(binding.var.ty)) <= named | named_sizes(binding)
        named |= named_sizes(binding)
