"""Reading functions of TVM's IR.

claims        what the blocks of a function say of themselves is proven
variables     what uses a variable; values in the places of variables
affine        index expressions as exact sums of axes
accumulation  what a reduction adds up, and from which value
reducers      maxima from minus infinity on, which TVM's schedules do not know by themselves
blocks        the blocks of a function: reductions, outputs, producers
anchor        the multiply-add of a convolution or matrix product
copies        functions that only copy, and which bytes to where
work          sizes of buffers, operations and bytes of a function
structure     a hash of a function's structure
parallel      the parallel loop of a function that is scheduled for a CPU
"""
