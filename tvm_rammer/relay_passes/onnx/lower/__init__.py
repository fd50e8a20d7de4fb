"""ONNX operators that TVM's frontend lacks, in terms of those that it has. A new operator goes into `operators`.

    operators         single operators: a table says which function lowers which
    quantised         integer products and quantised operators, in floating point
    spectra           Fourier transforms of a known length, as products
    recurrent, cells  LSTM, GRU and RNN layers, step by step
    loops             Loop and Scan of a known number of iterations

ONNX nodes go in, other nodes come out.
"""
