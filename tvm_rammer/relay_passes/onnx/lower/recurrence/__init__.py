"""Recurrence and loops: LSTM, GRU, RNN, Loop and Scan.

    recurrent   which layers become loops, and which are unrolled
    cells       one step of a layer, as ONNX defines it
    layer       what a node says; its weights
    looped      the layer as a Scan, and the products ahead of it
    unrolled    the layer step by step
    loops       Loop and Scan nodes: kept as Scan, or unrolled

ONNX nodes go in; other nodes come out, and Scans for the loops that stay (../../scan.py imports them).
"""
