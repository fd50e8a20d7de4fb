"""Convolutions and matrix products on a CPU.

rule    the tilings
tile    what a tiling makes of the axes
cover   axes that register tiles do not divide
pack    weights
dot     instructions that add up several products of bytes
code    the schedule of a tiling
"""
