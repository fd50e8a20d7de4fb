"""Forms of operators that TVM's frontend misreads or lacks, which differ in how they go along an axis.

    operators   Einsum with extents of 1, Slice backwards from before its axis, CumSum along an axis that is computed

ONNX nodes go in, other nodes come out.
"""
