"""Sizes that only the data say, in an ONNX model that is ready for TVM's frontend.

    as_tensors   where they become tensors, since what reads them does not take a shape
    names        names for them, as the frontend is run
    coordinates  where a Resize reads, whether its sizes are known or not
    guards       what has to be true of them, else the call ends
    pad          edges as wide as they say
    reduce       axes that they name become one element each
    resize       tensors made as large as they say
    shapes       other shapes of the same elements, or of copies
    split        parts as large as they say
    top_k        as many elements as they say

The frontend has two kinds of such sizes: shapes, and single numbers of them. It understands them in a few places.
"""
