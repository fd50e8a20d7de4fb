"""What the Vars of a Relax function stand for: the tensors behind names, tuples, and fields of tuples."""

import re
from collections.abc import Iterable
from typing import TypeAlias

from tvm import relax
from tvm.ir import Constant, Tuple, TupleGetItem

from ..bindings import body_blocks, leaves, result_of, tensor_fields

BufferExpr: TypeAlias = relax.Var | Constant | tuple[relax.Var, int]
"""A tensor as an expression of its function; a pair is a field of a tuple that is bound as a whole."""

Key: TypeAlias = tuple[relax.Var, int] | Constant
"""A tensor: a Var's field (0 where it is no tuple), or a constant."""


class Values:
    """Sees through the bindings of a function that compute nothing: other names, tuples, and fields of tuples."""

    def __init__(self, function: relax.Function) -> None:
        self.fields: dict[relax.Var, list[Key]] = {}
        self.names: dict[Key, relax.Var] = {}
        self.readers: dict[Key, set[relax.Var | None]] = {}
        for param in function.params:
            self._define(param)
        for block in body_blocks(function):
            for binding in block.bindings:
                self._bind(binding)
        self._read(result_of(function), None)

    def _bind(self, binding: relax.Binding) -> None:
        seen = self.resolve(binding.value) if isinstance(binding, relax.VarBinding) else None
        if seen is None:
            self._define(binding.var)
            self._read(binding.value, binding.var)
            return
        self.fields[binding.var] = seen
        if isinstance(binding.value, TupleGetItem) and len(seen) == 1:
            self.names.setdefault(seen[0], binding.var)

    def _define(self, var: relax.Var) -> None:
        fields = tensor_fields(var.ty)
        if fields is None:
            return  # an object, a shape, a nested tuple: no tensor that a region could read
        self.fields[var] = [(var, i) for i in range(len(fields))]
        if isinstance(var.ty, relax.TensorType):
            self.names[var, 0] = var

    def _read(self, expr: relax.Expr, reader: relax.Var | None) -> None:
        for leaf in leaves(expr):
            for key in self.fields.get(leaf, ()) if isinstance(leaf, relax.Var) else ():
                self.readers.setdefault(key, set()).add(reader)

    def resolve(self, expr: relax.Expr) -> list[Key] | None:
        """The tensors that an expression without a computation stands for; None for a computation."""
        if isinstance(expr, Constant) and isinstance(expr.ty, relax.TensorType):
            return [expr]
        if isinstance(expr, relax.Var):
            return self.fields.get(expr)
        if isinstance(expr, TupleGetItem) and tensor_fields(expr.tuple_value.ty) is not None:
            inner = self.resolve(expr.tuple_value)
            return None if inner is None else [inner[expr.index]]
        if isinstance(expr, Tuple) and tensor_fields(expr.ty) is not None:
            parts = [self.resolve(field) for field in expr.fields]
            return None if None in parts else [key for part in parts if part is not None for key in part]
        return None

    def producers(self, expr: relax.Expr) -> set[relax.Var]:
        """The Vars whose computations `expr` reads."""
        keys = [k for leaf in leaves(expr) if isinstance(leaf, relax.Var) for k in self.fields.get(leaf, [(leaf, 0)])]
        return {key[0] for key in keys if isinstance(key, tuple)}

    def expr(self, key: Key) -> BufferExpr:
        """A tensor as an expression of the function: by its own name where it has one."""
        return key if isinstance(key, Constant) else self.names.get(key, key)


def single(keys: Iterable[Key] | None) -> Key:
    """The one tensor that an argument stands for."""
    (key,) = keys or ()
    return key


def unique(hint: str, taken: dict[str, int]) -> str:
    """A name that is not taken, which is taken then; `taken` counts for each how many others were made of it."""
    base = name = re.sub(r"\W", "_", hint, flags=re.ASCII) or "value"
    while name in taken:
        taken[base] += 1
        name = f"{base}_{taken[base]}"
    taken[name] = 0
    return name
