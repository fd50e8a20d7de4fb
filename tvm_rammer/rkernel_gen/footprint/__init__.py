"""Which part of each buffer an rTask accesses, so that it can wait for single rTasks instead of operators.

    footprint  a scheduled function -> an affine box of each parameter for each rTask
    walk       the bounding boxes of all loads and stores of a function
    bounds     interval analysis of index expressions, for all rTasks at once
    sums       the normal form of these expressions
    interval   intervals of integers and their operations
    boxes      the boxes of all rTasks, made of the bounds of indices
    fit        the boxes of all rTasks as one affine function of the rTask's index

The analysis is conservative: a footprint contains all elements that are accessed, and is the whole buffer where nothing
can be proved.
"""
