"""Loops of a Relax module: a function that is one step, and a call that stands for all steps.

    body             what a step says of itself; the loops of a module
    emit             the call, and what is read of its results
    recurrent_layer  PyTorch's LSTM, GRU and RNN layers as loops, or step by step
    torch_scan       PyTorch's `scan` in the same way

`relay_passes/regions` makes rPrograms of loops; those of ONNX are made in `relay_passes/onnx`.
"""
