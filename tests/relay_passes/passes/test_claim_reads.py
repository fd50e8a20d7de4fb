"""A tensor that an operator is given twice: its blocks say so, and kernels compute it on every device."""

import numpy as np
import onnx
import pytest

import tvm_rammer
from tests.hostile import by_onnxruntime

DATA = np.random.default_rng(0).random((6, 6)).astype("float32")
TWICE = {
    "Concat, rows": "y = Concat<axis=0>(e, e)",
    "Concat, columns": "y = Concat<axis=1>(e, e, e)",
    "Concat, both": "r = Concat<axis=1>(e, e)  y = Concat<axis=0>(r, r)",
    "MatMul": "y = MatMul(e, e)",
    "Gemm, transposed": "y = Gemm<transB=1>(e, e)",
    "Einsum": 'y = Einsum<equation="ij,ji->i">(e, e)',
    "Add": "y = Add(e, e)",
    "Add, transposed": "r = Transpose<perm=[1,0]>(e)  y = Add(e, r)",
    "Tile": "r = Constant<value_ints=[2,3]>()  y = Tile(e, r)",
}


def chain(name):
    """Exp of the input, then the case's operators."""
    signature = '<ir_version: 9, opset_import: ["": 18]> twice (float[6,6] x) => (float[N,M] y)'
    return onnx.parser.parse_model(f"{signature} {{ e = Exp(x) {TWICE[name]} }}")


@pytest.mark.parametrize("name", TWICE)
def test_on_a_cpu(name):
    module = tvm_rammer.compile(chain(name), cache=False)
    assert "Nothing was left to stock TVM" in module.explain()
    np.testing.assert_allclose(np.asarray(module(x=DATA)), by_onnxruntime(chain(name), {"x": DATA})[0], rtol=1e-5)


@pytest.mark.parametrize("name", TWICE)
def test_as_cuda_text(name):
    module = tvm_rammer.compile(chain(name), target="cuda:h200", cache=False)
    assert "Nothing was left to stock TVM" in module.explain()
