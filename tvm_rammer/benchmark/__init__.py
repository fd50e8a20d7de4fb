"""Fair comparisons: interleaved in one process, on the same number of threads, results checked first.

race       interleaved timing of contenders
bench      a model against stock TVM and other engines
kernels    single operators against ONNX Runtime
operators  which operators
peers      ONNX Runtime and OpenVINO
torch_compiled  PyTorch's compiler
startup    how long a new process takes to its first answer (first_answer: what runs in it)
neighbours each engine in a process of its own (engine), beside busy processes, with a quota (quota)
"""
