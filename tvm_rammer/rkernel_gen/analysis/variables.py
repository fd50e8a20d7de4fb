"""Variables in code: what uses one, and code with values in their places."""

from collections.abc import Mapping
from typing import TypeVar

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr
from tvm_ffi import Object

Code = TypeVar("Code", Expr, tirx.Stmt)


def address(node: Object) -> int:
    """What all Python objects of one node of TVM's have in common, while the node lives.

    As a key it is a hundred times as quick as a variable: to compare two variables builds an expression.
    """
    return int(node.__chandle__())


def substituted(code: Code, values: Mapping[tirx.Var, Expr]) -> Code:
    """Code with values in the places of variables."""
    return tvm_ffi.structural_map(code, (tirx.Var, lambda v: values.get(v, v)), order="post")


def uses(code: Expr, var: tirx.Var) -> bool:
    """Whether an expression depends on a variable that it does not bind itself."""
    return any(var.same_as(used) for used in tirx.analysis.undefined_vars(code))
