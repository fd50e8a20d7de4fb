"""Long sums of a prepared module become two operators on a GPU, where that is predicted to be faster."""

import tvm
from tvm import tirx

from .. import relay_passes
from ..device import DeviceSpec


def split_long_sums(mod: tvm.IRModule, device: DeviceSpec) -> tvm.IRModule:
    """Replace convolutions whose sums are worth splitting over rTasks by their partial sums, and the sum of these.

    Parameters
    ----------
    mod : tvm.IRModule
        Prepared; is not changed.
    device : DeviceSpec
        On a CPU nothing is split: a vEU is as fast alone, whatever the others do.
    """
    if device.kind != "cuda":
        return mod
    from ..rkernel_gen.cuda.split.choose import split_sums

    functions = {gv.name_hint: f for gv, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)}
    graphs = [region.graph for region in relay_passes.partition(mod).regions]
    two = {
        name: relay_passes.TwoCalls(halves.parts, halves.total, halves.parts_inputs, halves.total_inputs)
        for name, halves in split_sums(graphs, functions, device).items()
    }
    return relay_passes.into_two_calls(mod, two)
