"""Large inputs are read where they are, wherever that is; code of rTasks takes nothing for aligned but elements."""

import re

import numpy as np
import pytest
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tvm_rammer.ir import ITEM_BYTES

RNG = np.random.default_rng(0)
WEIGHTS = relax.const(RNG.standard_normal((64, 64, 3, 3)).astype("float32"))
MATRIX = relax.const(RNG.standard_normal((128, 128)).astype("float32"))
MODELS = {
    "convolution": ([(1, 64, 28, 28)], lambda x: relax.op.nn.conv2d(x, WEIGHTS, padding=1)),
    "1x1": (
        [(1, 64, 28, 28)],
        lambda x: relax.op.nn.conv2d(x, relax.op.strided_slice(WEIGHTS, [2, 3], [0, 0], [1, 1])),
    ),
    "product": ([(256, 128)], lambda x: relax.op.matmul(x, MATRIX)),
    "products": ([(2, 128, 128), (2, 128, 128)], relax.op.matmul),
    "pool": ([(1, 32, 57, 57)], lambda x: relax.op.nn.max_pool2d(x, (3, 3), strides=(2, 2))),
    "softmax": ([(256, 128)], lambda x: relax.op.nn.softmax(x)),
    "transposition": ([(256, 128)], lambda x: relax.op.permute_dims(x)),
    "sum": ([(256, 128)], lambda x: relax.op.sum(x, 1)),
    "sum of two": ([(1, 16, 64, 64), (1, 16, 64, 64)], relax.op.add),
}


def off_by(array, nbytes):
    """The same numbers, so many bytes behind a multiple of 64."""
    memory = np.zeros(array.nbytes + 128, np.uint8)
    begin = -memory.ctypes.data % 64 + nbytes
    moved = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def code_of(module):
    """LLVM's code of all that a module imports."""
    waiting, texts = [module.exploration.best.module], []
    while waiting:
        part = waiting.pop()
        waiting = [*waiting, *part.imports]
        texts += [part.inspect_source("ll")] if part.kind == "llvm" else []
    return "\n".join(texts)


@pytest.mark.parametrize("name", MODELS)
def test_an_input_may_begin_anywhere(name):
    shapes, build = MODELS[name]
    module = tvm_rammer.compile(relax_module(shapes, build), cache=False)
    arrays = [RNG.standard_normal(shape).astype("float32") for shape in shapes]
    want = module(*(off_by(array, 0) for array in arrays))
    for nbytes in (4, 16, 36, 60):
        np.testing.assert_array_equal(module(*(off_by(array, nbytes) for array in arrays)), want)
    vectors = re.findall(r"(?:load|store) <\d+ x (\w+)>[^\n]*?, align (\d+)", code_of(module))
    sizes = {"float": ITEM_BYTES["float32"], "i32": ITEM_BYTES["int32"], "i64": ITEM_BYTES["int64"]}
    assert vectors
    assert all(int(align) <= sizes[kind] for kind, align in vectors)


def test_what_cannot_be_read_in_place_is_copied():
    module = tvm_rammer.compile(relax_module([(256, 128)], relax.op.nn.relu), cache=False)
    x = RNG.standard_normal((256, 128)).astype("float32")
    fixed, unaligned = x.copy(), np.zeros(x.nbytes + 1, np.uint8)[1:].view("float32").reshape(x.shape)
    fixed.flags.writeable = False
    unaligned[...] = x
    for same in (x, fixed, unaligned, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(module(same), np.maximum(x, 0))
    with pytest.raises(tvm_rammer.ModelError, match="float64"):
        module(x.astype("float64"))


def test_an_input_is_left_as_it_is_and_a_result_is_none_of_it():
    def build(x):
        return relax.Tuple([x, relax.op.nn.relu(x)])

    module = tvm_rammer.compile(relax_module([(256, 128)], build), cache=False)
    x = RNG.standard_normal((256, 128)).astype("float32")
    before = x.copy()
    same, _ = module(x)
    same[:] = 7
    np.testing.assert_array_equal(x, before)
