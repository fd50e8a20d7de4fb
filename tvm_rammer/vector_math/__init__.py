"""Functions of numbers as arithmetic, which becomes vectors.

Calls of the C library stay scalar, and so does a whole statement that calls one of the functions of which TVM makes no
vectors. `replace` puts the formulas of `powers`, `logarithms`, `angles` and `classes` into the place of calls in a
function; `terms` is what they are written in. The formulas are for float32, with a relative error below 4e-7
(`tests/vector_math/test_functions.py`).
"""

from .powers import quarters_of
from .replace import FORMULAS, vector_math

__all__ = ["FORMULAS", "quarters_of", "vector_math"]
