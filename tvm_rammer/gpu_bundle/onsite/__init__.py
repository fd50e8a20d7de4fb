"""What runs on the machine with the GPU: needs no TVM, no NumPy and no network.

plan      buffers and launches as JSON, and a check that they fit together
cuda      the CUDA driver, by ctypes
launcher  the native loop that launches
session   a plan on the GPU: memory, functions, launch records, a graph
check     results against the reference
measure   interleaved timing
worker    one model in a process of its own
jobs      processes with time limits
report    JSON and Markdown
main      the command line
"""
