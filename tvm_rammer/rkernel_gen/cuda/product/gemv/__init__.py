"""Products of few rows with constant weights.

rule     the tilings
tile     the tile of one
weights  which parameter they are, and how they are packed
code     the kernel of a tiling
"""
