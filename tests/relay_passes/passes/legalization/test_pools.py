"""Averages of a few neighbours along one axis fuse with what is around them, on a GPU."""

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper
from tvm import relax, tirx

from tests.emulation.programs import H200
from tests.functions import fused, run
from tests.rkernel_gen.cuda.operators import check
from tvm_rammer import relay_passes
from tvm_rammer.rkernel_gen.construct import choose
from tvm_rammer.rkernel_gen.tiling import Function

GPU = tvm.target.Target(H200.target_config())


def functions_of(model, target):
    """The fused functions of a prepared model."""
    mod = relay_passes.prepare(target)(relay_passes.load_model(model))
    return [f for f in mod.functions.values() if isinstance(f, tirx.PrimFunc)]


def lrn(size):
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=0.3, beta=0.75, bias=2.0)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 7, 5, 4]) for name in "xy"]
    graph = helper.make_graph([node], "lrn", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=onnx.IR_VERSION)


@pytest.mark.parametrize(("size", "functions"), [(3, 1), (5, 1), (9, 3)])
def test_lrn_is_one_function_on_a_gpu_if_its_window_is_small(size, functions):
    model = lrn(size)
    found = functions_of(model, GPU)
    assert len(found) == functions
    if functions == 1:
        x = np.random.default_rng(0).standard_normal((2, 7, 5, 4)).astype("float32")
        padded = np.pad(x, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
        squares = sum(padded[:, n : n + 7] ** 2 for n in range(size))
        np.testing.assert_allclose(run(found[0], [x, np.empty_like(x)]), x / (2 + 0.3 / size * squares) ** 0.75, 1e-5)
        check(found[0], choose(Function("lrn", found[0], H200))[:2])


POOLS = {
    "rows": ({"pool_size": (1, 3, 1), "padding": (0, 1, 0, 0, 1, 0)}, True),
    "more_before_than_after": ({"pool_size": (4, 1, 1), "padding": (3, 0, 0, 0, 0, 0)}, True),
    "columns_unpadded": ({"pool_size": (1, 1, 2)}, True),
    "padding_of_another_axis": ({"pool_size": (3, 1, 1), "padding": (1, 1, 0, 1, 1, 0)}, False),
    "two_axes": ({"pool_size": (2, 2, 1)}, False),
    "strided": ({"pool_size": (3, 1, 1), "strides": (2, 1, 1)}, False),
    "dilated": ({"pool_size": (3, 1, 1), "dilation": (2, 1, 1)}, False),
    "without_padding": ({"pool_size": (3, 1, 1), "padding": (1, 0, 0, 1, 0, 0), "count_include_pad": False}, False),
    "channels_last": ({"pool_size": (3, 1, 1), "layout": "NDHWC"}, False),
    "half": ({"pool_size": (3, 1, 1), "dtype": "float16"}, False),
}
"""Pools, and whether they are sums that are written out."""


@pytest.mark.parametrize("name", POOLS)
def test_only_pools_along_one_axis_are_written_out(name):
    options, written_out = POOLS[name]
    options = {"count_include_pad": True, **options}
    dtype = options.pop("dtype", "float32")
    shapes = [(2, 3, 6, 5, 4)]
    ours = fused(shapes, lambda x: relax.op.nn.avg_pool3d(x, **options), GPU, dtype=dtype)
    assert ("T.init()" not in ours.script()) == written_out
    if written_out:
        theirs = fused(shapes, lambda x: relax.op.nn.avg_pool3d(x, **options))
        assert "T.init()" in theirs.script()
        x = np.random.default_rng(1).standard_normal(shapes[0]).astype(dtype)
        out = [np.empty([int(n) for n in f.params[-1].shape], dtype) for f in (ours, theirs)]
        np.testing.assert_allclose(run(ours, [x, out[0]]), run(theirs, [x, out[1]]), rtol=1e-6, atol=1e-6)
