"""PyTorch's graphs of ATen operators -> Relax, by TVM's frontend; where it errs or lacks an operator, by our converters.

    importer        a graph, or a torch.export program -> IRModule
    converters      operators that TVM's frontend misreads
    decompose       which operators are taken apart before, recurrent layers step by step
    attention       layers that PyTorch joins for inference
    read            .pt2 files

PyTorch is imported when a graph comes; who compiles ONNX needs none.
"""
