"""Figures of inner loops, from times of register tiles."""

import numpy as np
import pytest
import tvm

from tests.functions import TARGET
from tvm_rammer.device.inner_loops import (
    APART,
    LINE,
    TILE_ROUNDS,
    TILE_STEPS,
    far_pixels,
    line_ns,
    loads_per_cycle,
    register_tile,
    step_cycles,
)


@pytest.mark.parametrize(
    ("fmas", "rate", "cycles"), [(12.0, 2.0, 0.0), (14.4, 2.0, 1.25), (11.0, 2.0, 0.0), (13.0, 1.0, 1.0)]
)
def test_a_step_takes_what_it_takes_beside_its_multiply_adds(fmas, rate, cycles):
    assert step_cycles(fmas, rate) == cycles


@pytest.mark.parametrize(
    ("fmas", "rate", "beside", "loads"),
    [
        (13.0, 2.0, 0.0, 2.0),
        (14.8, 2.0, 0.0, 1.75),
        (17.4, 2.0, 1.25, 1.5),
        (14.4, 2.0, 1.25, 2.0),
        (12.0, 1.0, 0.0, 2.0),
        (40.0, 2.0, 0.0, 1.0),
    ],
)
def test_loads_are_counted_where_they_are_the_limit(fmas, rate, beside, loads):
    assert loads_per_cycle(fmas, rate, beside, 2.0) == loads


def test_what_hardly_takes_longer_is_hidden():
    assert line_ns(2.4, 2.0) == 0.0
    assert line_ns(5.5, 2.0) == 5.5


def compiled(func):
    named = func.with_attr("global_symbol", "main").with_attr("s_tir", True)
    return tvm.compile(tvm.IRModule({"main": named}), TARGET).jit()["main"]


@pytest.mark.parametrize("far", [False, True])
def test_the_programs_are_register_tiles(far):
    lanes, count, pixels, pages = 4, 2, 3, 1
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((TILE_STEPS, count, lanes)).astype("float32")
    out = tvm.runtime.tensor(np.zeros((pixels, count, lanes), "float32"))
    image = rng.standard_normal((pages * TILE_STEPS, APART * LINE) if far else (TILE_STEPS, pixels)).astype("float32")
    given = [tvm.runtime.tensor(a) for a in (weights, image)]
    main = compiled((far_pixels if far else register_tile)(lanes, count, pixels))
    main(given[0], out, given[1], *([pages] if far else []))
    read = image.reshape(TILE_STEPS, APART, LINE).sum(1)[:, :pixels] if far else image * TILE_ROUNDS
    np.testing.assert_allclose(out.numpy(), np.einsum("sp,sve->pve", read, weights), 1e-3, 1e-2)
