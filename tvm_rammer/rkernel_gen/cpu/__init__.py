"""Rules for CPUs: an rTask is an iteration of the one parallel loop.

rules         the rules, in their order; a new one is added there
contraction/  convolutions and matrix products: output channels in vectors, pixels in registers
window/       sliding windows of any groups, transposed ones, pools: pixels in vectors, filters in registers
generic/      everything else: the outer loops of the outputs are cut
space, cost   which tilings are worth naming; what an rTask costs
loops, math, branches   tools: loops, vector arithmetic for exp and the like, choices as statements
"""
