"""Functions that write tensors which they have: nothing that reads one moves across, and nothing is computed twice."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from tests.functions import TARGET


@tvm.register_global_func("tests.compilation.add_to", override=True)
def add_to(x, y):
    x.copyfrom(x.numpy() + y.numpy())
    return x


@I.ir_module
class Dataflow:
    """What was computed before the write, and is read behind it, is fused with nothing behind it."""

    @T.prim_func(s_tir=True, private=True)
    def add(x: T.Buffer((3, 4), "float32"), y: T.Buffer((3, 4), "float32")):
        for i, j in T.grid(3, 4):
            with T.sblock("b"):
                v, w = T.axis.remap("SS", [i, j])
                x[v, w] = x[v, w] + y[v, w]

    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
        cls = Dataflow
        with R.dataflow():
            a = R.nn.relu(x)
            before = R.exp(a)
            b = R.call_tir_inplace(cls.add, (a, y), inplace_indices=[0], out_ty=R.Tensor((3, 4), "float32"))
            c = R.add(b, before)
            R.output(c)
        return c


@I.ir_module
class Parameter:
    """The same operator of the same tensor, on both sides of a write; a copy that is turned back behind another."""

    @R.function(pure=False)
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
        before = R.exp(x)
        turned = R.permute_dims(y)
        first = R.call_inplace_packed(
            "tests.compilation.add_to", x, y, inplace_indices=[0], ty_args=R.Tensor((3, 4), "float32")
        )
        second = R.call_inplace_packed(
            "tests.compilation.add_to", y, first, inplace_indices=[0], ty_args=R.Tensor((3, 4), "float32")
        )
        behind = R.exp(x)
        return (R.add(before, behind), R.permute_dims(turned), second)


def reference(mod, x, y):
    if mod is Dataflow:
        return [np.maximum(x, 0) + y + np.exp(np.maximum(x, 0))]
    return [np.exp(x) + np.exp(x + y), y, x + 2 * y]


@pytest.mark.parametrize("mod", [Dataflow, Parameter], ids=["dataflow", "parameter"])
def test_reads_keep_their_side_of_a_write(mod):
    x, y = (np.random.default_rng(seed).standard_normal((3, 4)).astype("float32") for seed in range(2))
    executable = tvm.compile(mod, TARGET, relax_pipeline="rammer")
    got = relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(y))
    got = [got] if isinstance(got, tvm.runtime.Tensor) else list(got)
    for result, wanted in zip(got, reference(mod, x, y), strict=True):
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5)
