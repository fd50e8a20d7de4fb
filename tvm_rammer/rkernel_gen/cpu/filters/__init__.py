"""Convolutions over NCHW images with the filters in vectors.

layout     the register tile, and the sizes that follow from it
code       the loops
rule       which tilings there are, and what they take
"""
