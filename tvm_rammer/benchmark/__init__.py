"""Fair comparisons: interleaved in one process, on the same number of threads, results checked first.

race       contenders take turns
bench      a model against stock TVM and ONNX Runtime
kernels    single operators against ONNX Runtime
operators  which operators
"""
