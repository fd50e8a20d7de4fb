"""Index expressions as exact sums of integer multiples of axes."""

from collections.abc import Mapping, Sequence

import tvm
from tvm import tirx
from tvm.error import InternalError
from tvm.ir import Expr


def are(indices: Sequence[Expr], axes: Sequence[tirx.Var]) -> bool:
    """Whether indices are exactly these axes."""
    return len(indices) == len(axes) and all(i.same_as(a) for i, a in zip(indices, axes, strict=True))


def linear(index: Expr, axes: Sequence[tirx.Var]) -> tuple[int, ...] | None:
    """The coefficients of axes in an index, then its constant.

    Returns
    -------
    tuple of int or None
        One element more than there are axes; None where the index is not proven to be such a sum, whatever the values
        of the axes, or has other variables.
    """
    found = tvm.sym.detect_linear_equation(index, list(axes))
    if not found or not all(isinstance(c, tirx.IntImm) for c in found):
        return None
    return tuple(int(c) for c in found)


def distinct(indices: Sequence[Expr], extents: Mapping[tirx.Var, int]) -> bool:
    """Whether indices differ for any two different values of axes.

    Parameters
    ----------
    indices : sequence of Expr
    extents : mapping of tirx.Var to int
        Each axis goes from 0 to its extent.

    Returns
    -------
    bool
        False also where it cannot be proven. Indices with other variables, as those of loops within a block, count
        for nothing: two values of an axis may have the same sum with two of theirs.
    """
    indices = [index for index in indices if all(var in extents for var in tirx.analysis.undefined_vars(index))]
    left = {axis: extent for axis, extent in extents.items() if extent > 1}
    plain = {index for index in indices if isinstance(index, tirx.Var)}
    left = {axis: extent for axis, extent in left.items() if axis not in plain}
    if not left:
        return True
    sums = [linear(index, list(extents)) for index in indices]
    if None in sums:
        return _is_iteration(indices, extents)
    pending = [{a: c for a, c in zip(extents, s or (), strict=False) if c and extents[a] > 1} for s in sums]
    while left:
        # What is determined by other indices is a constant in this one.
        here = [{a: c for a, c in terms.items() if a in left} for terms in pending]
        found = next((terms for terms in here if terms and _is_mixed_radix(terms, extents)), None)
        if found is None:
            return False
        left = {axis: extent for axis, extent in left.items() if axis not in found}
    return True


def _is_mixed_radix(terms: Mapping[tirx.Var, int], extents: Mapping[tirx.Var, int]) -> bool:
    """Whether a sum determines its axes: each coefficient is larger than all that the smaller ones add up to."""
    reached = 0
    for axis, factor in sorted(terms.items(), key=lambda term: abs(term[1])):
        if abs(factor) <= reached:
            return False
        reached += abs(factor) * (extents[axis] - 1)
    return True


def _is_iteration(indices: Sequence[Expr], extents: Mapping[tirx.Var, int]) -> bool:
    """Whether indices with quotients and remainders enumerate the axes, as those of a reshape do."""
    ranges = {axis: tvm.ir.Range(0, extent) for axis, extent in extents.items()}
    try:
        found = tvm.sym.detect_iter_map(list(indices), ranges, check_level="bijective")
    except InternalError:  # it divides by the factor of an axis that is added and taken away, as in i - i
        return False
    return len(found.indices) > 0
