"""Products with constant matrices whose columns are no whole vectors."""

import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_rammer.relay_passes import prepare
from tvm_rammer.relay_passes.passes.products.pad_columns import PadColumns

from ...models import calls, op_names, random
from ..test_fold_batchnorm import build


def product(columns, shape=(3, 4), dtype="float32"):
    """A matrix product, twice with the same matrix."""
    matrix = relax.const(random(shape[-1], columns, seed=1).astype(dtype))

    def body(b, x):
        y = b.emit(relax.op.matmul(x, matrix))
        return b.emit(relax.op.add(y, b.emit(relax.op.matmul(b.emit(relax.op.exp(x)), matrix))))

    return build(shape, body)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (4,)], ids=str)
@pytest.mark.parametrize("columns", [17, 40, 97])
def test_columns_are_padded_and_cut(columns, shape, run):
    mod = product(columns, shape)
    padded = PadColumns(16)(mod)
    assert op_names(padded).count("strided_slice") == 2
    widths = {int(call.ty.shape[-1]) for call in calls(padded) if call.op.name == "relax.matmul"}
    assert widths == {-(-columns // 16) * 16}
    x = random(*shape)
    np.testing.assert_allclose(run(padded, x), run(mod, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("columns", [7, 16, 24, 48])
def test_columns_that_would_make_no_fewer_vectors_stay(columns):
    mod = product(columns)
    assert PadColumns(16)(mod).same_as(mod)


def test_the_vectors_are_the_processors(target):
    mod = product(40)
    assert PadColumns(8)(mod).same_as(mod) and not PadColumns(16)(mod).same_as(mod)


def test_what_is_no_constant_stays():
    mod = build((3, 17), lambda b, x: b.emit(relax.op.matmul(b.emit(relax.op.permute_dims(x)), x)))
    assert PadColumns(16)(mod).same_as(mod)


def test_only_a_cpu_has_padded_columns(target):
    def slices(of):
        return [name for name in op_names(prepare(of)(product(97))) if "slice" in name]

    assert slices(target)
    assert not slices(tvm.target.Target("cuda"))
