"""A backend of `torch.compile`: inference on a CPU, in rPrograms.

    compiled = torch.compile(model.eval(), backend="rammer")
    with torch.no_grad():
        y = compiled(x)

PyTorch finds the name by the entry point of the installed package; in a source tree `import tvm_rammer.torch_backend`
makes it known. A graph takes this way:

    backend     the function that PyTorch calls, and its options (settings)
    graph       a graph of Dynamo: traced once for each set of shapes; what is refused runs in PyTorch (refusals)
    core        what the tracing leaves, a functional graph of ATen operators: imported, compiled, checked, called
    weights     which constants were built in, and whether the user has changed them since
    tensors     PyTorch's tensors to TVM's and back, without copies

PyTorch traces LSTM, GRU and RNN layers only where `torch._dynamo.config.allow_rnn` is set, so importing this sets it.
"""

import torch._dynamo

from .backend import rammer
from .graph import CompiledGraph, compiled_graphs

torch._dynamo.config.allow_rnn = True


def _register() -> None:
    """Make the name known, unless an entry point is about to: PyTorch takes a name once."""
    from torch._dynamo.backends import registry

    if "rammer" not in registry._BACKENDS:
        registry.register_backend(rammer, name="rammer")


_register()

__all__ = ["CompiledGraph", "compiled_graphs", "rammer"]
