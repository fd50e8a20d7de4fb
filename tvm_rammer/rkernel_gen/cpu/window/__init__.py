"""Sliding windows on a CPU.

problem      a window as a value
read, index  a fused function -> a window, from its indices
layout       register tile, split into rTasks, scratch image
rule         the tilings
code         the code of a tiling
"""
