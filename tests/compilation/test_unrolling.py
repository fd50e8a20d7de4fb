"""Whether loops stay loops: wherever they can, but not several short ones on a GPU."""

import pytest

from tvm_rammer.compilation.compiler import load_request
from tvm_rammer.compilation.request import Request
from tvm_rammer.compilation.unrolling import FEW_STEPS, with_loops
from tvm_rammer.device import PRESETS, host_cpu
from tvm_rammer.errors import LongLoopError, LoopError
from tvm_rammer.relay_passes.loops.body import steps_of_loops
from tvm_rammer.zoo.onnx_lstm import onnx_lstm

GPU, CPU = PRESETS["cuda:h200"], host_cpu()


def model(*, too_long=False, refused=False):
    """What compiles a model; it returns whether its loops stayed."""

    def compile_model(loops):
        if loops and refused:
            raise LoopError("no loop")
        if not loops and too_long:
            raise LongLoopError("too long")
        return "loops" if loops else "unrolled"

    return compile_model


@pytest.mark.parametrize(
    ("too_long", "refused", "possible", "becomes"),
    [
        (False, False, True, "loops"),
        (True, False, True, "loops"),
        (False, True, True, "unrolled"),
        (False, False, False, "unrolled"),
    ],
)
def test_loops_stay_where_they_can(too_long, refused, possible, becomes):
    assert with_loops(model(too_long=too_long, refused=refused), possible) == becomes


def test_what_can_be_neither_is_an_error():
    with pytest.raises(LongLoopError, match="too long; and it cannot stay a loop: no loop"):
        with_loops(model(too_long=True, refused=True))


@pytest.mark.parametrize(
    ("device", "layers", "steps", "both_ways", "loops"),
    [
        (CPU, 2, 9, True, [9, 9]),
        (GPU, 1, 9, True, [9]),
        (GPU, 3, 9, False, [9]),
        (GPU, 2, FEW_STEPS // 2, True, [FEW_STEPS // 2] * 2),
        (GPU, 2, FEW_STEPS // 2 - 1, True, []),
    ],
)
def test_several_short_ones_are_unrolled_on_a_gpu(device, layers, steps, both_ways, loops):
    made = onnx_lstm(layers, steps, 8, bidirectional=both_ways)

    def found(keep):
        return steps_of_loops(load_request(Request((made,), (None,), device, loops=keep)).mod)

    assert with_loops(found) == loops
