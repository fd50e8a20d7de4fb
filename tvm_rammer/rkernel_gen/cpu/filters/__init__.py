"""Convolutions over NCHW images with the filters in vectors.

layout     the register tile, and the sizes that follow from it
transpose  from vectors of filters to rows of pixels, in registers
code       the loops
rule       which tilings there are, and what they take
"""
