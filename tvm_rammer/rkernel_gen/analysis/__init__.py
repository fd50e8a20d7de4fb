"""Reading functions of TVM's IR.

anchor    the blocks of a fused function, and the multiply-add that dominates it
parallel  the parallel loop of a function that is scheduled for a CPU
"""
