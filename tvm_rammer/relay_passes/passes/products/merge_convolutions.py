"""Convolutions of one image in one: the branches of an Inception module begin with several of 1x1."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import Call, TupleGetItem

from ....ir import ITEM_BYTES
from ...bindings import (
    body_blocks,
    count_uses,
    dtype_of,
    is_call,
    is_const,
    leaves,
    rebuild,
    rewrite_functions,
    static_shape,
    typed,
)
from ...module_pass import module_pass

_CONVS = ("relax.nn.conv1d", "relax.nn.conv2d")
_ACTIVATIONS = ("relax.nn.relu", "relax.nn.leakyrelu", "relax.nn.silu", "relax.nn.gelu", "relax.sigmoid", "relax.tanh")
_READERS = (*_CONVS, *(f"relax.nn.{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2)))
"""What reads a result without being fused with what computes it."""
_LAYOUTS = {"NCW": "OIW", "NCHW": "OIHW"}
_PLACE_BYTES = 64
"""Where a part begins at a multiple of this, it is read where it was made."""


def MergeConvolutions() -> tvm.transform.Pass:
    """Make the pass that merges convolutions which read the same image with kernels and attributes that are the same.

    The weights, and the biases that are added, are put one after the other, and a split of the result, which copies
    nothing, takes the place of the single ones: the image is read once, and what was too small to fill a device is
    computed together. Only what convolutions and pools read is merged: a concatenation has its parts written where it
    lies, and other readers are fused into the convolution.

    Returns
    -------
    tvm.transform.Pass
    """
    return _merge_convolutions


@module_pass("MergeConvolutions")
def _merge_convolutions(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    return rewrite_functions(mod, lambda func: _Merger(func).run())


@dataclass(frozen=True, slots=True)
class _Branch:
    """A convolution with a constant bias and an activation, if it has them: bindings of which each reads the last."""

    bindings: tuple[relax.VarBinding, ...]

    @property
    def conv(self) -> Call:
        """The call of the convolution."""
        return self.bindings[0].value

    @property
    def weight(self) -> np.ndarray:
        """Its weights."""
        return np.asarray(self.conv.args[1].value.numpy())

    @property
    def bias(self) -> np.ndarray | None:
        """What is added to each filter's results."""
        added = next((b.value for b in self.bindings if is_call(b.value, ("relax.add",))), None)
        return None if added is None else np.asarray(_added(added).value.numpy())

    @property
    def result(self) -> relax.Var:
        """What it computes."""
        return self.bindings[-1].var

    def merges_with(self, other: "_Branch") -> bool:
        """Whether one call can compute both, if they read the same image."""
        if len(self.bindings) != len(other.bindings) or self.weight.shape[1:] != other.weight.shape[1:]:
            return False
        steps = [(a.value, b.value) for a, b in zip(self.bindings, other.bindings, strict=True)]
        same = all(a.op.same_as(b.op) and tvm_ffi.structural_equal(a.attrs, b.attrs) for a, b in steps)
        return same and self.weight.dtype == other.weight.dtype


class _Merger:
    """Merges within one function."""

    def __init__(self, func: relax.Function) -> None:
        self._func = func
        self._uses = count_uses(func)
        self._readers: dict[relax.Var, list[relax.VarBinding]] = {}

    def run(self) -> relax.Function | None:
        """The new function, or None where nothing is merged."""
        blocks, changed = [], False
        for block in body_blocks(self._func):
            merged = self._block(block)
            changed |= merged is not None
            blocks.append((isinstance(block, relax.DataflowBlock), merged or list(block.bindings)))
        return rebuild(self._func, blocks) if changed else None

    def _block(self, block: relax.BindingBlock) -> list[relax.Binding] | None:
        self._readers = {}
        for binding in block.bindings:
            for leaf in set(leaves(binding.value)):
                if isinstance(leaf, relax.Var):
                    self._readers.setdefault(leaf, []).append(binding)
        by_image: dict[relax.Expr, list[list[_Branch]]] = {}
        for branch in filter(None, map(self._branch, block.bindings)):
            of_image = by_image.setdefault(branch.conv.args[0], [])
            fitting = next((group for group in of_image if group[0].merges_with(branch)), None)
            if fitting is None:
                of_image.append([branch])
            else:
                fitting.append(branch)
        groups = [group for of_image in by_image.values() for group in of_image if len(group) > 1]
        if not groups:
            return None
        make = relax.DataflowVar if isinstance(block, relax.DataflowBlock) else relax.Var
        made = {group[0].bindings[0].var: list(_merged(group, make)) for group in groups}
        gone = {binding.var for group in groups for branch in group for binding in branch.bindings}
        kept: list[relax.Binding] = []
        for binding in block.bindings:
            kept += made.get(binding.var, [] if binding.var in gone else [binding])
        return kept

    def _branch(self, binding: relax.Binding) -> _Branch | None:
        """The branch that begins with a binding; None where there is none, or none that can be merged."""
        if not isinstance(binding, relax.VarBinding) or not is_call(binding.value, _CONVS):
            return None
        conv = binding.value
        shape, attrs = static_shape(conv.ty), conv.attrs
        plain = attrs.groups == 1 and _LAYOUTS.get(attrs.data_layout) == attrs.kernel_layout
        if not plain or attrs.out_layout not in ("", attrs.data_layout) or not is_const(conv.args[1]):
            return None
        nbytes = math.prod(shape[1:]) * ITEM_BYTES.get(dtype_of(conv.ty), 0) if shape and shape[0] == 1 else 0
        if nbytes == 0 or nbytes % _PLACE_BYTES:
            return None
        bindings = [binding]
        while (following := self._only_reader(bindings[-1].var)) is not None and _continues(following, bindings):
            bindings.append(following)
        result = bindings[-1].var
        readers = self._readers.get(result, [])
        known = self._uses[result] == len(readers) and all(is_call(reader.value, _READERS) for reader in readers)
        return _Branch(tuple(bindings)) if known else None

    def _only_reader(self, var: relax.Var) -> relax.VarBinding | None:
        """The only binding that reads a variable; None where there are several, or where the function returns it."""
        readers = self._readers.get(var, [])
        alone = len(readers) == 1 == self._uses[var] and isinstance(readers[0], relax.VarBinding)
        return readers[0] if alone else None


def _continues(following: relax.VarBinding, bindings: Sequence[relax.VarBinding]) -> bool:
    """Whether a binding is the bias of a branch, or its activation."""
    value = following.value
    if is_call(value, _ACTIVATIONS):
        return not is_call(bindings[-1].value, _ACTIVATIONS)
    if len(bindings) > 1 or not is_call(value, ("relax.add",)):
        return False
    bias, shape = _added(value), static_shape(bindings[0].var.ty)
    return is_const(bias) and shape is not None and static_shape(bias.ty) == (1, shape[1], *(1,) * (len(shape) - 2))


def _added(call: Call) -> relax.Expr:
    """The constant that is added, or else the second summand."""
    return call.args[0] if is_const(call.args[0]) else call.args[1]


def _merged(group: Sequence[_Branch], make: type[relax.Var]) -> Iterator[relax.VarBinding]:
    """The bindings that compute all branches."""
    first = group[0]
    name, dtype = first.result.name, dtype_of(first.conv.ty)
    shape = static_shape(first.conv.ty)
    assert shape is not None
    filters = [len(branch.weight) for branch in group]
    whole = relax.TensorType((shape[0], sum(filters), *shape[2:]), dtype)
    value: relax.Expr = first.conv.args[0]
    for n, step in enumerate(first.bindings):
        op, attrs = step.value.op, step.value.attrs
        if n == 0:
            operands = [value, relax.const(np.concatenate([branch.weight for branch in group]), dtype)]
        elif op.name == "relax.add":
            operands = [value, relax.const(np.concatenate([branch.bias for branch in group], axis=1), dtype)]
        else:
            operands = [value]
        var = make(f"{name}_merged{n}", whole)
        yield relax.VarBinding(var, typed(Call(op, operands, attrs), whole))
        value = var
    ends = [int(end) for end in np.cumsum(filters)[:-1]]
    parts = relax.TupleType([branch.result.ty for branch in group])
    split = make(f"{name}_parts", parts)
    yield relax.VarBinding(split, typed(relax.op.split(value, ends, axis=1), parts))
    for n, branch in enumerate(group):
        yield relax.VarBinding(branch.result, typed(TupleGetItem(split, n), branch.result.ty))
