"""Sliding windows on a CPU.

form         a window as a value
read, index  a fused function -> a window, from its indices
layout       register tile, cut into rTasks, scratch image
rule         the tilings
code         the code of one
"""
