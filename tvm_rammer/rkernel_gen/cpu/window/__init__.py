"""Sliding windows on a CPU.

problem      a window as a value
read         a fused function -> a window
index, image strides and groups; padding and upsampling
layout       register tile, scratch image
split        rTasks
tiled        a rule whose tilings are tiles of a window
rule         the tilings
code         the code of a tiling
fill, ahead  its scratch image filled, data asked for ahead of their use
store        its results stored
"""
