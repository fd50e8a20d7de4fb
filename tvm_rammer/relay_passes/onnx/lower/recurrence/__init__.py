"""Recurrence and loops: LSTM, GRU, RNN, Loop and Scan.

    recurrent   which layers become loops, and which are unrolled
    cells       one step of a layer, as ONNX defines it
    matrices    its weights, of numbers or of bytes
    layer       what a node says
    looped      the layer as a Scan, and the products ahead of it
    scan_node   a Scan in the making
    unrolled    the layer step by step
    open_steps  layers and Scans of as many steps as only the data say, as Loops; layers of as many sequences
    loops       Loop and Scan nodes: kept as Scan, or unrolled

ONNX nodes go in; other nodes come out, and Scans for the loops that stay (../../scan.py imports them).
"""
