"""Rules for CPUs: an rTask is an iteration of the one parallel loop.

rules         the rules, in their order; a new one is added there
contraction/  convolutions and matrix products: output channels in vectors, pixels in registers
window/       sliding windows of any groups, transposed ones, pools: pixels in vectors, filters in registers
generic/      everything else: the outer loops of the outputs are split
space, cost   steps that the rules share; the cost model
loops, math, branches   loops of TVM's IR; exp and the like as arithmetic; if_then_else as branches
"""
