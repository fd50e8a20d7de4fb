"""Functions may have any name: those of kernels, which C and CUDA read, are made of plain ones."""

import re

import numpy as np
from tvm import relax, te, tirx

import tvm_rammer
from tvm_rammer.compilation.target import resolve_device, tvm_target
from tvm_rammer.relay_passes import finish, prepare

NAMES = ("a-b", "a_b", "1x", "é int", "<lambda>", "T.float32(1)", "/")


def named():
    """A function of each name; one after another reads what the last one wrote, backwards."""
    bb = relax.BlockBuilder()
    y = x = relax.Var("x", relax.TensorType((64,), "float32"))
    with bb.function("main", [x]):
        for n, name in enumerate(NAMES):

            def shifted(x, n=n):
                return te.compute((64,), lambda i: x[63 - i] * 2 + x[i] * n)

            y = bb.emit_te(shifted, y, primfunc_name_hint=name)
        bb.emit_func_output(y)
    return bb.get()


def names_of(mod):
    return [var.name_hint for var, func in mod.functions_items() if isinstance(func, tirx.PrimFunc)]


def test_each_function_has_a_plain_name_of_its_own():
    for device in ("cpu", "cuda:h200"):
        target = tvm_target(resolve_device(device))
        for mod in (prepare(target)(named()), finish(target)(named())):
            names = names_of(mod)
            assert len(set(names)) == len(names) >= len(NAMES)
            assert all(re.fullmatch(r"\w+", name, re.ASCII) and not name[0].isdigit() for name in names)


def test_the_results_are_those_of_plain_names():
    want = x = np.random.default_rng(0).standard_normal(64).astype("float32")
    for n, _ in enumerate(NAMES):
        want = want[::-1] * 2 + want * n
    np.testing.assert_allclose(tvm_rammer.compile(named(), cache=False)(x), want, rtol=1e-5, atol=1e-2)
