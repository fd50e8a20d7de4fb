"""Indices that are computed at run time: none of them reaches another memory.

uses            which operands of an operator they are, and of what
check_indices   they are clipped, and a branch at the end reports those that were outside
among           indices beside other numbers: taken out, and put back
index_guard     where only run time knows the sizes: a function that copies indices, or ends the call
"""

from .check_indices import CheckIndices, surely_inside

__all__ = ["CheckIndices", "surely_inside"]
