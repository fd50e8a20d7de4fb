"""Slices of convolutions' images take padding away."""

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op

from tvm_rammer.relay_passes.passes.products.crop_convolutions import CropConvolutions

from ...models import calls, op_names, random
from ..test_fold_batchnorm import build


def conv(shape, begin, end, *, axes=None, bias=None, **attrs):
    """A convolution, with a bias or without one, and a slice of its image."""
    rank = len(shape)
    weight = relax.const(random(6, shape[1] // attrs.get("groups", 1), *(2 + i for i in range(rank - 2)), seed=1))
    call = {3: op.nn.conv1d, 4: op.nn.conv2d, 5: op.nn.conv3d}[rank]

    def body(b, x):
        y = b.emit(call(x, weight, **attrs))
        if bias is not None:
            y = b.emit(op.add(y, relax.const(random(*bias, seed=2))))
        cut = op.strided_slice(y, axes=axes or list(range(2, rank)), begin=begin, end=end)
        return b.emit(op.nn.gelu(b.emit(cut)))

    return build(shape, body)


CROPPED = {
    "the last one of an even kernel": ((1, 4, 20), [0], [20], {"padding": 1, "groups": 2}, [1, 0]),
    "causal": ((1, 4, 20), [0], [20], {"padding": 2, "dilation": 2, "bias": (1, 6, 1)}, [2, 0]),
    "the first ones": ((1, 4, 20), [1], [21], {"padding": 1}, [0, 1]),
    "counted from the end": ((1, 4, 20), [-20], [100], {"padding": 1}, [0, 1]),
    "with strides": ((1, 4, 20), [1], [12], {"padding": 4, "strides": 2}, [2, 0]),
    "an image": ((1, 4, 9, 8), [0, 1], [9, 9], {"padding": (1, 2), "bias": (1, 6, 1, 1)}, [1, 1, 0, 1]),
    "a number is the bias": ((1, 4, 20), [0], [20], {"padding": 1, "bias": ()}, [1, 0]),
    "a volume": ((1, 2, 5, 6, 7), [0, 0, 0], [5, 6, 7], {"padding": (1, 2, 3)}, [1, 2, 3, 0, 0, 0]),
}


@pytest.mark.parametrize("name", CROPPED)
def test_what_a_slice_drops_is_not_computed(name, run):
    shape, begin, end, attrs, padding = CROPPED[name]
    mod = conv(shape, begin, end, **attrs)
    cropped = CropConvolutions()(mod)
    assert "strided_slice" not in op_names(cropped)
    (call,) = [c for c in calls(cropped) if "conv" in c.op.name]
    assert [int(n) for n in call.attrs.padding][: len(padding)] == padding
    np.testing.assert_allclose(run(cropped, random(*shape)), run(mod, random(*shape)), rtol=1e-5, atol=1e-6)


STAY = {
    "the image itself would be cropped": ((1, 4, 20), [0], [17], {"padding": 1}),
    "no padding before": ((1, 4, 20), [1], [19], {}),
    "channels": ((1, 4, 20), [0], [3], {"padding": 1, "axes": [1]}),
    "what is added differs along the image": ((1, 4, 20), [0], [20], {"padding": 1, "bias": (1, 6, 21)}),
}


@pytest.mark.parametrize("name", STAY)
def test_other_slices_stay(name):
    shape, begin, end, attrs = STAY[name]
    mod = conv(shape, begin, end, **attrs)
    assert CropConvolutions()(mod).same_as(mod)


def test_what_others_read_is_computed():
    weight = relax.const(random(6, 4, 2, seed=1))

    def body(b, x):
        y = b.emit(op.nn.conv1d(x, weight, padding=1))
        cut = b.emit(op.strided_slice(y, axes=[2], begin=[0], end=[20]))
        return b.emit(op.add(b.emit(op.sum(y)), cut))

    mod = build((1, 4, 20), body)
    assert CropConvolutions()(mod).same_as(mod)


def test_every_other_result_is_no_box_of_them():
    weight = relax.const(random(6, 4, 2, seed=1))

    def body(b, x):
        y = b.emit(op.nn.conv1d(x, weight, padding=1))
        return b.emit(op.strided_slice(y, axes=[2], begin=[0], end=[20], strides=[2]))

    mod = build((1, 4, 20), body)
    assert CropConvolutions()(mod).same_as(mod)
