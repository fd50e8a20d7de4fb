"""Places of what is not 0 are found by functions of TIR, in every type and of any number of axes."""

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax, tirx

import tvm_rammer
from tests.functions import TARGET, relax_module
from tvm_rammer.relay_passes import finish, prepare

TYPES = {"bfloat16": ml_dtypes.bfloat16, "bool": bool} | {
    name: name for name in ("float16", "float32", "float64", "int8", "uint8", "int64")
}


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 1, 5), (0,), (4, 0, 3)], ids=str)
def test_places_are_those_of_numpy(shape):
    module = tvm_rammer.compile(relax_module([shape], relax.op.nonzero))
    x = np.random.default_rng(1).integers(-1, 2, shape).astype("float32")
    for data in (x, np.zeros_like(x), np.ones_like(x)):
        np.testing.assert_array_equal(module(data), np.stack(np.nonzero(data)))


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type(dtype):
    x = np.array([[0, 1, 0], [3, 0, 1]]).astype(TYPES[dtype])
    if dtype.startswith(("float", "bfloat")):
        x[0] = [np.nan, -0.0, np.inf]
    got = tvm_rammer.compile(relax_module([x.shape], relax.op.nonzero, dtype=dtype))(x)
    np.testing.assert_array_equal(got, np.stack(np.nonzero(x.astype("float64"))))


def test_sizes_that_come_with_the_data():
    sizes = [tirx.Var(name, "int64") for name in ("rows", "columns")]
    mod = finish(TARGET)(prepare(TARGET)(relax_module([(*sizes, 3)], relax.op.nonzero)))
    assert "relax.run.nonzero" not in mod.script()
    run = relax.VirtualMachine(tvm.compile(mod, TARGET, relax_pipeline=tvm.transform.Sequential([])), tvm.cpu())["main"]
    for shape in ((2, 5, 3), (0, 4, 3), (1, 1, 3)):
        x = np.random.default_rng(2).integers(0, 2, shape).astype("float32")
        np.testing.assert_array_equal(run(tvm.runtime.tensor(x)).numpy(), np.stack(np.nonzero(x)))


def test_a_single_number_stays_what_it_was():
    mod = prepare(TARGET)(relax_module([()], relax.op.nonzero))
    assert "nonzero" in mod.script() and not any(isinstance(f, tirx.PrimFunc) for f in mod.functions.values())
