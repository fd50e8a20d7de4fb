"""Arithmetic whose result is defined for every value: TVM's own drops NaN, and divides by whatever comes.

A kernel is written, identified and measured with TVM's operators. What is done here comes after that, on the way to the
code generator.

    max, min    NaN where either is NaN, as in NumPy and ONNX Runtime
    !=          true of NaN
    /, %        of integers by 0: 0; the least integer by -1: itself, with the remainder 0
    <<, >>      by as many bits as there are, by more, or by fewer than none: nothing is left but copies of the sign
    pow         on a GPU, of what is below 0: fast math has none
    bfloat16    on a CPU, a number is rounded where it becomes one: TVM computes in float32, and may leave the cast out

    define                   the pass
    extremes, gpu_extremes   max and min
    gpu_powers               powers
    integers                 quotients, remainders, shifts
    values                   numbers and their types
"""

from .define import DefineArithmetic, define_arithmetic
from .extremes import larger
from .gpu_extremes import is_extreme_on_gpu
from .values import equals_itself

__all__ = ["DefineArithmetic", "define_arithmetic", "equals_itself", "is_extreme_on_gpu", "larger"]
