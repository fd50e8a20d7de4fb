"""Element by element: what stock TVM computes on a CPU, in few passes over memory, in vectors, by all workers.

TVM puts the operators of a fused function side by side, each in loops and with a whole tensor of its own, and expects a
schedule to join them. What is left to stock TVM has none: its shapes are not known ahead. In the order of the passes:

nests          the loops around what computes each element of a tensor once
inline         what one operator alone reads is computed where it is read
join_loops     loops over the same rows become one, behind the passes of `sums`
merge_loops    loops that go through memory one after another become one
spread_rounds  which of them the workers share
formulas       functions of numbers as arithmetic
"""
