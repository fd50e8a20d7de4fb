"""Indices and sizes that are computed at run time: none of them reaches another memory.

uses            which operands of an operator are indices, and of what
check_indices   they are clipped, and a branch at the end reports those that were outside
loop_steps      steps of loops hand on what they found, and the branch is behind the loop
among           indices beside other numbers: taken out, and put back
index_guard     where only run time knows the sizes: a function that copies indices, or ends the call
check_sizes     sizes that have to be equal are compared
size_rules      which those are, by the operator
comparing       what rules are made of
find_nonzero    the places of what is not 0
messages        what an error says of a call
"""

from .check_indices import CheckIndices, surely_inside
from .check_sizes import CheckSizes

__all__ = ["CheckIndices", "CheckSizes", "surely_inside"]
