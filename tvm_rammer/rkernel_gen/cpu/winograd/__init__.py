"""Convolutions 3x3 of stride 1 by fewer multiplications (Lavin and Gray, CVPR 2016).

matrices   the three transformations of Winograd's algorithm
layout     the tiles, the split into rTasks, the scratch arrays
code       the loops
vectors    vectors in registers, and the transformations of them
sums       what is not finite, as plain sums
rule       which functions, which tilings, and their predicted times
"""
