"""The launch of the lowered kernel asks for just what the plan counts with."""

import pytest
import tvm
from tvm import relax

from tests.emulation.programs import H200, plan
from tests.functions import relax_module
from tests.persistent_codegen.cuda.programs import GRAPHS, planned, tiny
from tvm_rammer.gpu_bundle.kernels import lower_kernels


def half_product(a, b):
    return relax.op.matmul(a, b)


def half_and_single(a, b):
    product = relax.op.matmul(a, b, out_dtype="float32")
    return relax.op.nn.softmax(product, axis=-1)


HALF = {"half_product": half_product, "half_and_single": half_and_single}


def programs_of(name):
    if name == "tiny":
        return [tiny()]
    if name in HALF:
        return plan(relax_module([(64, 64), (64, 64)], HALF[name], dtype="float16"), 3)
    return planned(name, 3)


@pytest.mark.parametrize("name", ["tiny", *GRAPHS, *HALF])
def test_a_launch_asks_for_the_arena_of_the_plan(name):
    target = tvm.target.Target(H200.target_config())
    for built in programs_of(name):
        text, functions = lower_kernels(tvm.IRModule(built.cuda.functions()), target)
        (launch,) = [call for function in functions.values() for call in function.calls]
        assert launch.shared_bytes == built.cuda.shared_bytes
        assert launch.shared_bytes == max(k.shared_bytes for k in built.program.kernels)
        assert launch.grid == (len(built.program.lanes), 1, 1)
        assert launch.block == (max(k.threads for k in built.program.kernels), 1, 1)
        assert launch.cooperative
        assert ("extern __shared__" in text) == bool(launch.shared_bytes)


def test_some_arenas_hold_several_types():
    scratch = {s for built in programs_of("half_and_single") for s in scratch_types(built.source)}
    assert {"half", "float"} <= scratch


def scratch_types(source):
    """Element types that the kernel sees its arena as."""
    found = {"half", "float"}
    return {t for t in found if f"(({t}*)arena_ptr)" in source or f"{t} arena_ptr[]" in source}
