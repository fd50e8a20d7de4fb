"""Complete models in the reference interpreter: plans, memory, and what kernels say of their rTasks."""

from dataclasses import replace

import numpy as np
import pytest

from tests.zoo.onnx_models import inputs_of, run
from tests.zoo.tiny import TINY
from tvm_rammer.ir import Wait
from tvm_rammer.persistent_codegen.reference import interpret
from tvm_rammer.persistent_codegen.reference_rtasks import compile_rtasks
from tvm_rammer.wavefront import CostModel, schedule
from tvm_rammer.zoo.inception_module import inception_module

from .regions import planned_region

MODELS = TINY | {"inception": lambda: inception_module(0, channels=16, size=10, widths=(8, 8, 16, 4, 8, 8))}


def check(name, units, seeds):
    model = MODELS[name]()
    region = planned_region(model, units)
    rtasks, packs = compile_rtasks(region.kernels, region.device), [k.packs for k in region.kernels]
    values = region.constants | inputs_of(model)
    want = run(model)
    for seed in range(seeds):
        (got,) = interpret(region.program, rtasks, values, packs=packs, seed=seed).values()
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())
    return region


@pytest.mark.parametrize("units", [1, 3, 8])
def test_every_order_gives_the_same(units):
    region = check("inception", units, 5)
    assert units == 1 or any(isinstance(i, Wait) for lane in region.program.lanes for i in lane)


@pytest.mark.slow
@pytest.mark.parametrize("units", [3, 40])
@pytest.mark.parametrize("name", MODELS)
def test_every_order_of_a_model_gives_the_same(name, units):
    check(name, units, 8)


@pytest.mark.slow
def test_kernels_that_claim_to_read_too_little_are_found_out():
    """The scheduler trusts regions; who leaves halos out of them gets wrong results in some orders."""
    model = MODELS["alexnet"]()
    region = planned_region(model, 8)
    honest = {op.function: k for op, k in zip(region.program.graph.operators, region.kernels, strict=True)}
    graph = region.program.graph
    claims = {
        function: [replace(k.spec, footprints=tuple(map(_smaller, k.spec.footprints)))]
        for function, k in honest.items()
    }
    (program,) = schedule(graph, claims, region.device, veus=8, cost=CostModel(launch_us=1e6))
    kernels = [honest[op.function] for op in graph.operators]
    rtasks, packs = compile_rtasks(kernels, region.device), [k.packs for k in kernels]
    values, want = region.constants | inputs_of(model), run(model)
    results = [next(iter(interpret(program, rtasks, values, packs=packs, seed=s).values())) for s in range(40)]
    assert not all(np.allclose(got, want, rtol=1e-3, atol=1e-4 * np.abs(want).max()) for got in results)


def _smaller(region):
    """One less in each direction, where there is more than one."""
    return region and replace(region, extents=tuple(max(1, extent - 1) for extent in region.extents))
