"""QuantizeLinear and DequantizeLinear by blocks, and of ONNX Runtime's domain."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.onnx.lower.operators import lower_missing

from ....models import by_onnxruntime, model, node, random, rng, tensor, value, with_contrib
from ...test_load_onnx import agree
from ..judge import by_reference

KINDS = {name: TensorProto.DataType.Value(name.upper()) for name in ("int8", "uint8", "int16", "uint16", "int32")}
FLOATS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}


def scales(*shape, dtype="float32"):
    return (0.1 + np.abs(random(*shape, seed=3))).astype(dtype)


def integers(dtype, *shape):
    bounds = np.iinfo(dtype)
    return rng(4).integers(max(bounds.min, -999), min(bounds.max, 999), shape, endpoint=True).astype(dtype)


BLOCKS = [((4, 6), 1, 2), ((4, 6), 1, 4), ((4, 6), 0, 3), ((2, 5, 3), -2, 2), ((6,), 0, 3), ((2, 3), -1, 1)]


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize(("shape", "axis", "block"), BLOCKS)
def test_blocks(shape, axis, block, kind, fixed, run):
    """Of numbers to integers and back; scales that are constants, or inputs."""
    sizes = [-(-n // block) if a == axis % len(shape) else n for a, n in enumerate(shape)]
    parameters = {"s": scales(*sizes), "z": integers("int8", *sizes).astype(kind)}
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=axis, block_size=block),
        node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=axis, block_size=block),
    ]
    given = [value("x", shape)]
    if not fixed:
        given += [value("s", sizes), value("z", sizes, KINDS[kind])]
    constants = [tensor(name, array) for name, array in parameters.items()] if fixed else []
    proto = model(nodes, given, [value("q", shape, KINDS[kind]), "y"], constants, opset=21, ir=10)
    agree(run, proto, x=40 * random(*shape), **({} if fixed else parameters))


@pytest.mark.parametrize("dtype", FLOATS)
def test_blocks_without_zero_points(dtype, run):
    nodes = [node("DequantizeLinear", ["q", "s"], ["y"], axis=1, block_size=4)]
    constants = [tensor("s", scales(3, 2, dtype=dtype))]
    given, results = [value("q", [3, 6], TensorProto.INT8)], [value("y", [3, 6], FLOATS[dtype])]
    agree(run, model(nodes, given, results, constants, opset=21, ir=10), q=integers("int8", 3, 6))


def test_scales_for_other_blocks_are_refused():
    nodes = [node("DequantizeLinear", ["q", "s"], ["y"], axis=1, block_size=4)]
    proto = model(nodes, [value("q", [3, 6], TensorProto.INT8)], ["y"], [tensor("s", scales(3, 3))], opset=21, ir=10)
    with pytest.raises(ModelError, match=r"shape \[3, 3\] for blocks of 4 on axis 1 of \[3, 6\]"):
        load_model(proto)


@pytest.mark.parametrize("opset", [11, 17, 21])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16"])
def test_of_onnx_runtime(kind, each, opset, run):
    """Its quantiser writes them for numbers of 16 bits before opset 21."""
    zero = integers("int8", 4).astype(kind) if each else np.array(3, kind)
    constants = [tensor("s", scales(4) if each else np.float32(0.02)), tensor("z", zero)]
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"], domain="com.microsoft", axis=1),
        node("DequantizeLinear", ["q", "s", "z"], ["y"], domain="com.microsoft", axis=1),
    ]
    results = [value("q", None, KINDS[kind]), "y"]
    proto = with_contrib(model(nodes, [value("x", [3, 4, 2])], results, constants, opset=opset))
    x = 900 * random(3, 4, 2)
    x[0, 0] = 0.05, -0.03  # ties
    agree(run, proto, x=x)


@pytest.mark.parametrize("kind", ["int16", "uint16"])
@pytest.mark.parametrize("each", [False, True])
def test_half_precision_to_16_bits(each, kind, run):
    """Of which half precision does not hold all; the quotients are in single precision."""
    scale = scales(4, dtype="float16") if each else np.float16(0.01)
    constants = [tensor("s", scale), tensor("z", np.full(4 if each else (), 3, kind))]
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["y"], axis=1)]
    given, result = [value("x", [3, 4], FLOATS["float16"])], [value("y", None, KINDS[kind])]
    agree(run, model(nodes, given, result, constants, opset=21, ir=10), x=(40 * random(3, 4)).astype("float16"))


@pytest.mark.parametrize("opset", [10, 13, 21])
def test_integers_to_bytes(opset, run):
    constants = [tensor("s", np.float32(0.7)), tensor("z", np.int8(-5))]
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["y"])]
    given, result = [value("x", [3, 4], KINDS["int32"])], [value("y", None, KINDS["int8"])]
    by_reference(run, model(nodes, given, result, constants, opset=opset, ir=10), x=integers("int32", 3, 4))


def test_a_precision_that_is_asked_for(run):
    constants = [tensor("s", np.float32(0.3)), tensor("z", np.int8(1))]
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["y"], precision=TensorProto.FLOAT)]
    proto = model(nodes, [value("x", [3, 4])], [value("y", None, KINDS["int8"])], constants, opset=23, ir=11)
    agree(run, proto, x=random(3, 4))


@pytest.mark.parametrize("kind", ["int8", "uint16", "int32"])
def test_weights_of_onnx_runtime(kind, run):
    """As constants they are folded."""
    nodes = [
        node("DequantizeLinear", ["w", "s"], ["f"], domain="com.microsoft", axis=1),
        node("Mul", ["x", "f"], ["y"]),
    ]
    constants = [tensor("w", integers(kind, 3, 4)), tensor("s", scales(4))]
    proto = with_contrib(model(nodes, [value("x", [3, 4])], ["y"], constants))
    mod = agree(run, proto, x=random(3, 4))
    assert "astype" not in str(mod)


@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
@pytest.mark.parametrize("block", [0, 2, 3])
def test_weights_of_four_bits(block, kind, run):
    """As constants these have no arithmetic of their own when the model runs."""
    low = -8 if kind == "INT4" else 0
    elem, sizes = TensorProto.DataType.Value(kind), [-(-4 // block), 6] if block else [6]
    numbers, zeros = (rng(n).integers(low, low + 16, dims) for n, dims in ((1, [4, 6]), (2, sizes)))
    constants = [helper.make_tensor("w", elem, [4, 6], numbers.ravel()), tensor("s", scales(*sizes))]
    constants.append(helper.make_tensor("z", elem, sizes, zeros.ravel()))
    how = {"axis": 0, "block_size": block} if block else {"axis": 1}
    nodes = [node("DequantizeLinear", ["w", "s", "z"], ["f"], **how), node("Mul", ["x", "f"], ["y"])]
    proto, x = model(nodes, [value("x", [4, 6])], ["y"], constants, opset=21, ir=10), random(4, 6)
    got, (expected,) = run(load_model(proto), x), by_onnxruntime(proto, x=x)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_long_chain_takes_one_walk():
    """Of operators that onnx has no types of each waits for the one before it."""
    names = [f"v{i}" for i in range(21)]
    kinds = ["QuantizeLinear", "DequantizeLinear"] * 10
    nodes = [
        node(kind, [name, "s", "z"], [result], domain="com.microsoft")
        for kind, name, result in zip(kinds, names, names[1:], strict=False)
    ]
    constants = [tensor("s", np.array(0.1, "float32")), tensor("z", np.array(9, "uint16"))]
    proto = with_contrib(model(nodes, [value("v0", [2, 3])], ["v20"], constants, opset=17))
    assert lower_missing(proto)
    assert not any(made.domain for made in proto.graph.node)
    assert {"v1", "v20"} <= {name for made in proto.graph.node for name in made.output}
