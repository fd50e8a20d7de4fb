"""Operators as functions, where TVM's own are less exact than the model asks for, slower, or warn in vain.

exact        all of them by name; what is not of the others
extremes     largest and smallest numbers, of which one may be NaN
phases       transposed convolutions of volumes, on a CPU
pools        averages of a few neighbours along one axis, on a GPU
samples      GridSample: pixels and weights once for all channels
scans        running sums and products
slices       slices whose bounds only the data know
suppression  NonMaxSuppression, which the ONNX importer calls
transposed   transposed convolutions of weights that may be infinite, and of volumes
stock        what TVM makes of an operator, and how it is computed in float32: sums and products of half precision
"""

from .exact import exact_legalization

__all__ = ["exact_legalization"]
