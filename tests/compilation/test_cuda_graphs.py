"""TVM's rewriting to CUDA graphs goes around persistent kernels: they are launched, and their memory is kept."""

import dataclasses

import tvm

from tvm_rammer.compilation.compiler import load_request, lower_loaded
from tvm_rammer.compilation.request import Request
from tvm_rammer.device import preset
from tvm_rammer.zoo.lstm_stack import lstm_stack


def test_a_model_is_lowered_with_cuda_graphs():
    device = dataclasses.replace(preset("cuda:h200"), units=4)
    request = Request((lstm_stack(1, 2, 32),), (None,), device)
    with tvm.transform.PassContext(config={"relax.backend.use_cuda_graph": True}):
        mod, record = lower_loaded(request, load_request(request))
    (program,) = record.programs
    main = mod["main"].script()
    assert main.count(f"    {program.name}(") == 1
    assert "vm.builtin.cuda_graph.get_cached_alloc" in main
