"""Which part of each buffer an rTask touches: what lets an rTask wait for rTasks instead of operators.

    footprint  a scheduled function -> an affine box of each parameter for each rTask
    walk       every load and store of a function, boxed
    bounds     bounds of index expressions, for all rTasks at once
    fit        the boxes of all rTasks as one affine formula

Where nothing is sure the answer is the whole buffer, never less than what is touched.
"""
