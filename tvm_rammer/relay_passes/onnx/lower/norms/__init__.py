"""Norms of ONNX's own, in forms that TVM's frontend lacks, as sums and products.

    plain     of batches, layers, groups, images and axes; with their moments as results; scales that are broadcast
    moments   means, variances and deviations, of norms of rows that others fused, too

ONNX nodes go in, other nodes come out.
"""
