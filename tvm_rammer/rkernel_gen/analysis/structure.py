"""A function's structure as a number: equal for equal code, whatever its names are."""

import tvm_ffi
from tvm import tirx


def structural_key(func: tirx.PrimFunc) -> int:
    """Hash a function's structure without its name and those of its variables: 64 bits, the same in every process."""
    bare = func.without_attr("global_symbol")
    return int(tvm_ffi.structural_hash(bare, map_free_vars=True)) & (2**64 - 1)
