"""TVM's own legalization of an operator."""

from collections.abc import Callable

from tvm import relax
from tvm.ir import Call

Legalization = Callable[[relax.BlockBuilder, Call], relax.Expr]
"""What `relax.transform.LegalizeOps` calls with an operator's call, and puts into its place."""


def stock(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """What TVM makes of a call of one of its operators."""
    return call.op.get_attr("FLegalize")(bb, call)
