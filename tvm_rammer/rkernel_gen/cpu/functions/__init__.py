"""Functions of numbers as arithmetic, which becomes vectors.

Calls of the C library stay scalar, and so does a whole statement that calls one of the functions of which TVM makes no
vectors. `replace` puts the formulas of `powers`, `logarithms`, `angles` and `classes` into the place of calls in a
kernel, `reciprocals` products into the place of divisions; `terms` is what they are written in. The formulas are for
float32, with a relative error below 4e-7 (`tests/rkernel_gen/cpu/test_functions.py`).
"""

from .powers import quarters_of
from .reciprocals import divides_exactly, reciprocals
from .replace import FORMULAS, vector_math

__all__ = ["FORMULAS", "divides_exactly", "quarters_of", "reciprocals", "vector_math"]
