"""Sizes that only the data say, in an ONNX model that is ready for TVM's frontend.

    as_tensors   where they become tensors, since what reads them does not take a shape
    names        names for them, as the frontend is run
    top_k        as many elements as they say

The frontend has two kinds of such sizes: shapes, and single numbers of them. It understands them in a few places.
"""
