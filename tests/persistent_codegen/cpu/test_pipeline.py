"""What rTask functions are spared of TVM's lowering, and that it changes no result."""

import numpy as np
import pytest
import tvm
from tvm import tirx
from tvm.ir.instrument import pass_instrument

import tvm_rammer  # noqa: F401  # registers the pipelines
from tests.functions import TARGET
from tests.persistent_codegen.cpu.test_program import diamond, planned, results
from tvm_rammer.persistent_codegen import CPU_PIPELINE
from tvm_rammer.persistent_codegen.cpu.pipeline import RTASK
from tvm_rammer.relay_passes import load_model

NOTHING = tvm.transform.Sequential([])


@pass_instrument
class Seen:
    """How many rTask functions each pass is given."""

    def __init__(self) -> None:
        self.rtasks: dict[str, int] = {}

    def run_before_pass(self, mod: tvm.IRModule, info: tvm.transform.PassInfo) -> None:
        functions = [func for func in mod.functions.values() if isinstance(func, tirx.PrimFunc)]
        self.rtasks[info.name] = sum(RTASK in (func.attrs or {}) for func in functions)


def test_rtasks_are_not_lowered_twice() -> None:
    mod, record = planned(2)
    seen = Seen()
    with tvm.transform.PassContext(instruments=[seen]):
        tvm.compile(mod, TARGET, relax_pipeline=NOTHING, tir_pipeline=CPU_PIPELINE)
    rtasks = len({kernel.name for program in record.programs for kernel in program.kernels})
    assert seen.rtasks["s_tir.RewriteUnsafeSelect"] == rtasks
    assert seen.rtasks["tirx.FlattenBuffer"] == 0
    assert seen.rtasks["tirx.CommonSubexprElim"] == 0


@pytest.mark.parametrize("veus", [1, 3])
def test_results_are_those_of_the_whole_pipeline(veus: int) -> None:
    mod, _ = planned(veus)
    x = np.random.default_rng(1).standard_normal((1, 16, 20, 20)).astype("float32")
    whole, ours = (
        results(tvm.compile(mod, TARGET, relax_pipeline=NOTHING, tir_pipeline=pipeline), x)
        for pipeline in ("default", CPU_PIPELINE)
    )
    for one, other in zip(whole, ours, strict=True):
        np.testing.assert_array_equal(one, other)


def test_settings_of_the_lowering_go_through_all_of_it() -> None:
    mod, record = planned(2)
    seen = Seen()
    with tvm.transform.PassContext(config={"tirx.disable_vectorize": True}, instruments=[seen]):
        tvm.compile(mod, TARGET, relax_pipeline=NOTHING, tir_pipeline=CPU_PIPELINE)
    rtasks = len({kernel.name for program in record.programs for kernel in program.kernels})
    assert seen.rtasks["tirx.FlattenBuffer"] == rtasks


def test_it_goes_with_the_relax_pipeline() -> None:
    x = np.random.default_rng(2).standard_normal((1, 16, 20, 20)).astype("float32")
    stock, ours = (
        results(tvm.compile(load_model(diamond()), TARGET, **pipelines), x)
        for pipelines in ({}, {"relax_pipeline": "rammer", "tir_pipeline": "rammer_cpu"})
    )
    for one, other in zip(stock, ours, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
