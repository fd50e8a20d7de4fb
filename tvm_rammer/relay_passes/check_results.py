"""Results that have another element type than their function said.

Relax takes the sum of a boolean and a float for a boolean, and TVM computes it in float32. Operators that read it are
legalized for what it is, but who calls the function would take its bytes for booleans.
"""

import tvm
from tvm import relax

from ..errors import UnsupportedOperatorError
from .bindings import dtype_of, tensor_fields


def check_results(before: tvm.IRModule, after: tvm.IRModule) -> None:
    """Check that functions return what they did before their operators were legalized.

    One that has got more results meanwhile, as the steps of a loop that check indices, is called within the module.

    Raises
    ------
    UnsupportedOperatorError
        Names the function, the result and both types.
    """
    for var, func in before.functions_items():
        if not isinstance(func, relax.Function) or var not in after.functions:
            continue
        declared, computed = (tensor_fields(f.ret_ty) or [] for f in (func, after[var]))
        if len(declared) != len(computed):
            continue
        for i, (said, made) in enumerate(zip(declared, computed, strict=True)):
            if dtype_of(said) != dtype_of(made):
                raise UnsupportedOperatorError(
                    f"result {i} of the function {var.name_hint!r} has the type {dtype_of(said)} in Relax, and TVM "
                    f"computes {dtype_of(made)}: some operator mixes booleans with numbers; cast what it reads to one "
                    f"type before it (relax.op.astype)"
                )
