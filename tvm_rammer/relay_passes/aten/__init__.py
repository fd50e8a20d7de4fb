"""PyTorch's graphs of ATen operators -> Relax, by TVM's frontend, and by our converters where it errs.

    importer        a graph, or a torch.export program -> IRModule
    converters      operators that TVM's frontend misreads: arithmetic, reductions, pools
    places          and those about places in arrays: indices, windows, samples
    emitter         what both share
    decompose       which operators are taken apart before
    recurrent       recurrent layers, which stay whole
    attention       layers that PyTorch joins for inference
    read            .pt2 files

PyTorch is imported when a graph comes; who compiles ONNX needs none.
"""
