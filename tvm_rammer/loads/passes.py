"""The passes on loads, as the end of a pipeline."""

from collections.abc import Callable

import tvm
from tvm import tirx

from .barriers import without_added_barriers
from .batches import batch_loads
from .choices import overlap_loads
from .jam import jam_loops
from .stages import with_barriers_between_stages
from .sums import keep_sums
from .vectors import with_compared_conditions


@tvm.transform.module_pass(opt_level=0, name="OverlapLoads")  # type: ignore[untyped-decorator]  # TVM's are
def OverlapLoads(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    """The pass that calls all others of this room, for every PrimFunc."""
    mod = mod.clone()
    for var, func in mod.functions.items():
        if isinstance(func, tirx.PrimFunc):
            func = func.with_body(without_added_barriers(with_barriers_between_stages(func.body)))
            func = overlap_loads(batch_loads(jam_loops(keep_sums(func))))
            mod.update_func(var, with_compared_conditions(func))
    return mod


def overlapping(finish_device: Callable[[], tvm.transform.Pass]) -> Callable[[], tvm.transform.Pass]:
    """The last passes of a pipeline on device code, with this one after them.

    Parameters
    ----------
    finish_device : callable
        Makes the passes: what `tvm.tirx.get_tir_pipeline` returns third.
    """
    return lambda: tvm.transform.Sequential([finish_device(), OverlapLoads])
