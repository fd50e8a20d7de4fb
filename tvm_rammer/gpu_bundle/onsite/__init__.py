"""What runs on the machine with the GPU: needs no TVM, no NumPy and no network.

plan      buffers and launches as JSON, and a check that they fit together
edges     which launches depend on which
cuda      the CUDA driver, by ctypes
launcher  the native loop that launches
session   a plan on the GPU: memory, functions, launch records, a graph
hang      the report of a kernel that waited for too long
check     results against the reference
times     interleaved timing; kernels by themselves; what launches, graph edges, counters and barriers cost
torch_peer  PyTorch as a contender, where it is found (`torch_operators`: a model as a function of PyTorch)
worker    one model in a process of its own
jobs      processes with time limits
report    JSON and Markdown
main      the command line
"""
