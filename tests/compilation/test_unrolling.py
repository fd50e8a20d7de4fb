"""Whether loops stay loops: on a CPU where they can; on a GPU one that is alone, and those too long to be unrolled."""

import pytest

from tvm_rammer.compilation.unrolling import with_loops
from tvm_rammer.device import PRESETS, host_cpu
from tvm_rammer.errors import LongLoopError, LoopError

GPU, CPU = PRESETS["cuda:h200"], host_cpu()


def model(loops, *, too_long=False, refused=False):
    """What compiles a model of so many loops; it returns which of them stayed."""

    def compile_model(stay, most):
        if stay and (refused or (most is not None and loops > most)):
            raise LoopError("no")
        if not stay and too_long:
            raise LongLoopError("too long")
        return "loops" if stay else "unrolled"

    return compile_model


@pytest.mark.parametrize(
    ("device", "loops", "too_long", "refused", "becomes"),
    [
        (CPU, 1, False, False, "loops"),
        (CPU, 2, False, False, "loops"),
        (CPU, 2, False, True, "unrolled"),
        (GPU, 0, False, False, "loops"),
        (GPU, 1, False, False, "loops"),
        (GPU, 1, False, True, "unrolled"),
        (GPU, 2, False, False, "unrolled"),
        (GPU, 2, True, False, "loops"),
    ],
)
def test_loops_stay_where_that_is_better(device, loops, too_long, refused, becomes):
    assert with_loops(model(loops, too_long=too_long, refused=refused), device) == becomes


@pytest.mark.parametrize("device", [CPU, GPU])
def test_what_can_be_neither_is_an_error(device):
    with pytest.raises(LongLoopError, match="too long"):
        with_loops(model(1, too_long=True, refused=True), device)
    assert with_loops(model(1), device, possible=False) == "unrolled"
