"""What one operator alone reads, element by element, is not in memory; what others need is."""

import numpy as np
import pytest
import tvm
from tvm import te, topi
from tvm.script import ir as I
from tvm.script import tirx as T

from tests.relay_passes.models import random
from tvm_rammer.relay_passes.passes.elements.inline import InlineElements

from .functions import blocks, module_of, run


def chain(x, b):
    return topi.negative(topi.exp(topi.add(x, b)))


def read_twice(x):
    square = topi.multiply(x, x)
    return topi.subtract(topi.flip(square, axis=0), topi.add(square, square))


def repeated(x):
    """A column that each element of a row reads."""
    return te.compute((x.shape[0], 8), lambda i, j: topi.exp(x)[i, 0] + j, "repeated")


def summed(x):
    return topi.sum(topi.multiply(x, x), axis=1)


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize(
    ("compute", "shapes", "dtype", "left"),
    [
        (chain, [("n", 3, 5), (3, 1)], "float32", 1),
        (chain, [("n", 3, 5), (3, 1)], "float64", 1),
        (chain, [("n", 3, 5), (3, 1)], "float16", 3),
        (read_twice, [("n", 4)], "float32", 2),
        (repeated, [("n", 1)], "float32", 2),
        (summed, [("n", 9)], "float32", 2),
    ],
    ids=["a chain", "of float64", "of float16", "of two readers", "for more elements", "for a sum"],
)
def test_what_is_read_once_is_computed_there(compute, shapes, dtype, left, rows):
    mod = module_of(compute, *((shape, dtype) for shape in shapes))
    made = InlineElements()(mod)
    assert len(blocks(made)) == left
    assert made.same_as(mod) == (len(blocks(mod)) == left)
    arrays = [random(*(rows if n == "n" else n for n in shape), seed=i) for i, shape in enumerate(shapes)]
    arrays = [array.astype(dtype) for array in arrays]
    np.testing.assert_array_equal(run(made, arrays), run(mod, arrays))


def test_what_is_overwritten_before_it_is_read_stays():
    """A caller's own function: the second nest changes what the first one read."""
    source = """
@I.ir_module
class Own:
    @T.prim_func(private=True, s_tir=True)
    def main(x: T.Buffer((8,), "float32")):
        t = T.sblock_alloc_buffer((8,))
        for i in range(8):
            with T.sblock("t"):
                v = T.axis.spatial(8, i)
                t[v] = x[v] * T.float32(2)
        for i in range(8):
            with T.sblock("x"):
                v = T.axis.spatial(8, i)
                x[T.int64(7) - v] = t[v]
"""
    mod = tvm.script.from_source(source, extra_vars={"I": I, "T": T})
    assert InlineElements()(mod).same_as(mod)
