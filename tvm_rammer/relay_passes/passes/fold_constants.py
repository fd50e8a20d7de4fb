"""Compute at compile time all that depends on constants only, by NumPy or by one compilation.

TVM's own FoldConstant compiles and runs each folded operator by itself, some 60 ms each.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.ir import Call, Constant, GlobalVar, Op, Tuple, TupleGetItem

from ... import debug
from ...errors import last_line
from ...ir import ITEM_BYTES
from ..bindings import (
    body_blocks,
    drop_unused,
    dtype_of,
    is_const,
    leaves,
    rebuild,
    static_shape,
    substitute,
    tensor_fields,
)
from ..finish import finish
from ..module_pass import module_pass
from .indices import surely_inside

LIMIT_BYTES = 512 << 20
"""A result that is larger than this and than four times its inputs is computed at run time."""

_KEPT = ("relax.call_", "relax.builtin.", "relax.memory.", "relax.vm.", "relax.hint_on_device", "relax.to_vdevice",
         "relax.multinomial", "relax.ccl.", "relax.dist.", "relax.print", "relax.assert_op")  # fmt: skip
_BY_NUMPY: dict[str, Callable[[np.ndarray, Call], np.ndarray]] = {
    name: lambda array, call: array.reshape(static_shape(call.ty))
    for name in ("relax.reshape", "relax.expand_dims", "relax.squeeze", "relax.flatten")
} | {
    "relax.permute_dims": lambda array, call: np.asarray(
        array.transpose(None if call.attrs.axes is None else [int(a) for a in call.attrs.axes]), order="C"
    ),
    "relax.astype": lambda array, call: array.astype(dtype_of(call.ty)),
}

_INTEGERS_BY_NUMPY: dict[str, Callable[..., Any]] = {
    f"relax.{name}": getattr(np, name)
    for name in ("add", "subtract", "multiply", "maximum", "minimum", "less", "less_equal", "greater", "greater_equal",
                 "equal", "not_equal", "where")
}  # fmt: skip
"""Arithmetic of shapes and indices, which NumPy does as TVM would; loops that are unrolled have it in every step."""

_MAX_INTEGERS = 1 << 16
"""Elements of a result that NumPy computes: LLVM's code is faster for long ones."""

_MAX_COMPILATIONS = 32
"""How often bindings are compiled at most to find those that do not compile."""


def FoldConstants() -> tvm.transform.Pass:
    """Make the pass that evaluates the bindings of Relax functions that depend on constants only.

    Reshapes, transposes, casts and the arithmetic of indices are done by NumPy; the rest, calls of PrimFuncs included,
    in ONE module for this machine's CPU. What has side effects, is random, has no static shape, or would grow a small
    constant into one of more than `LIMIT_BYTES` stays, and so does everything that this machine cannot compile.

    Returns
    -------
    tvm.transform.Pass
    """

    @module_pass("FoldConstants")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        plans = [_Plan(mod, var, func) for var, func in mod.functions_items() if isinstance(func, relax.Function)]
        plans = [plan for plan in plans if plan.numpy or plan.compiled]
        if not plans:
            return mod
        results = _evaluate(mod, [binding for plan in plans for binding in plan.compiled])
        mod = mod.clone()
        for plan in plans:
            mod.update_func(plan.var, plan.replaced(results))
        mod = relax.transform.CanonicalizeBindings()(mod)
        for plan in plans:
            mod.update_func(plan.var, drop_unused(mod[plan.var]))
        return mod

    return run


class _Plan:
    """What is foldable in one function: `numpy` holds values by Var, `compiled` the bindings left to a compiler."""

    def __init__(self, mod: tvm.IRModule, var: GlobalVar, func: relax.Function) -> None:
        self.mod, self.var, self.func = mod, var, func
        self.numpy: dict[relax.Var, relax.Expr] = {}
        self.compiled: list[relax.VarBinding] = []
        self.known: set[relax.Var] = set()
        self._made: dict[tuple[str, Constant, str, str], relax.Expr] = {}
        for block in body_blocks(func):
            for binding in block.bindings:
                if isinstance(binding, relax.VarBinding):
                    self._classify(binding)

    def _classify(self, binding: relax.VarBinding) -> None:
        value = substitute(binding.value, self.numpy)
        fields = tensor_fields(binding.var.ty)
        if fields is None or any(static_shape(f) is None or dtype_of(f) not in ITEM_BYTES for f in fields):
            return
        if is_const(value):
            self.numpy[binding.var] = value
        elif (shape := _static_shape_tensor(value)) is not None:
            self.numpy[binding.var] = relax.const(shape, "int64")
        elif isinstance(value, Tuple | TupleGetItem | relax.Var):
            if all(self._is_known(leaf) for leaf in leaves(value)):
                self._compile(binding, value)
        elif isinstance(value, Call) and self._is_foldable(value):
            by_numpy = _BY_NUMPY.get(value.op.name) if isinstance(value.op, Op) else None
            if (integers := _integers_by_numpy(value)) is not None:
                self.numpy[binding.var] = relax.const(integers, dtype_of(value.ty))
            elif by_numpy is None or not is_const(value.args[0]):
                self._compile(binding, value)
            else:
                self.numpy[binding.var] = self._once(value, by_numpy)

    def _once(self, call: Call, by_numpy: Callable[[np.ndarray, Call], np.ndarray]) -> relax.Expr:
        """What a call makes of a constant: the same one for all such calls, as of the weights that many steps read."""
        key = call.op.name, call.args[0], str(call.attrs), str(call.ty)
        if key not in self._made:
            self._made[key] = relax.const(by_numpy(call.args[0].value.numpy(), call), dtype_of(call.ty))
        return self._made[key]

    def _compile(self, binding: relax.VarBinding, value: relax.Expr) -> None:
        self.known.add(binding.var)
        self.compiled.append(relax.VarBinding(binding.var, value))

    def _is_known(self, leaf: relax.Expr) -> bool:
        return is_const(leaf) or leaf in self.known

    def _is_foldable(self, call: Call) -> bool:
        if not isinstance(call.op, Op) or not all(_is_plain(arg) for arg in call.args):
            return False
        inputs = [leaf for arg in call.args for leaf in leaves(arg) if not isinstance(leaf, GlobalVar)]
        if not all(self._is_known(leaf) for leaf in inputs):
            return False
        if call.op.name == "relax.call_tir":
            if len(call.args) != 2 or not _runs_on_cpu(self.mod[call.args[0]]):
                return False
        elif call.op.name.startswith(_KEPT) or not call.op.has_attr("FLegalize") or not call.op.get_attr("FPurity"):
            return False
        # An index outside would read, or write, anywhere in this process; `CheckIndices` tells of it.
        return surely_inside(call) and _total_bytes([call]) <= max(LIMIT_BYTES, 4 * _total_bytes(inputs))

    def replaced(self, results: dict[relax.Var, relax.Expr]) -> relax.Function:
        """The function with constants bound where they are known."""
        values = self.numpy | results
        blocks = []
        for block in body_blocks(self.func):
            bindings = [relax.VarBinding(b.var, values[b.var]) if b.var in values else b for b in block.bindings]
            blocks.append((isinstance(block, relax.DataflowBlock), bindings))
        return rebuild(self.func, blocks)


def _integers_by_numpy(call: Call) -> np.ndarray | None:
    """The value of arithmetic on a few constant integers or truth values; None for all else."""
    name, shape = call.op.name if isinstance(call.op, Op) else "", static_shape(call.ty)
    if name not in (*_INTEGERS_BY_NUMPY, "relax.take") or not all(map(is_const, call.args)):
        return None
    if shape is None or math.prod(shape) > _MAX_INTEGERS:
        return None
    arrays = [arg.value.numpy() for arg in call.args]
    if any(array.dtype.kind not in "iub" for array in arrays):
        return None
    if name == "relax.take":
        return _taken(call, *arrays)
    with np.errstate(over="ignore"):  # wraps around, as in LLVM's code
        return np.asarray(_INTEGERS_BY_NUMPY[name](*arrays), dtype_of(call.ty)).reshape(shape)


def _taken(call: Call, data: np.ndarray, indices: np.ndarray) -> np.ndarray | None:
    """What `relax.take` picks; None where an index is outside, which is for others to report."""
    axis = None if call.attrs.axis is None else int(call.attrs.axis)
    size = data.size if axis is None else data.shape[axis]
    inside = indices.size == 0 or (indices.min() >= 0 and indices.max() < size)
    return np.asarray(np.take(data, indices.astype(np.int64), axis)).reshape(static_shape(call.ty)) if inside else None


def _static_shape_tensor(value: relax.Expr) -> np.ndarray | None:
    """The value of `shape_to_tensor` where the shape is static, whatever tensor it is the shape of."""
    if not (isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == "relax.shape_to_tensor"):
        return None
    dims = getattr(value.args[0].ty, "values", None)
    if dims is None or not all(isinstance(dim, tirx.IntImm) for dim in dims):
        return None
    return np.array([int(dim) for dim in dims], "int64")


def _is_plain(arg: relax.Expr) -> bool:
    """Whether an argument holds no symbolic shape and nothing that is not looked into."""
    if isinstance(arg, Tuple):
        return all(_is_plain(field) for field in arg.fields)
    if isinstance(arg, relax.ShapeExpr):
        return all(isinstance(dim, tirx.IntImm) for dim in arg)
    return isinstance(arg, relax.Var | Constant | GlobalVar | tirx.IntImm | tirx.FloatImm)


def _runs_on_cpu(func: object) -> bool:
    if not isinstance(func, tirx.PrimFunc):
        return False
    return not any(key in (func.attrs or {}) for key in ("tirx.is_scheduled", "target", "tirx.kernel_launch_params"))


def _total_bytes(exprs: Iterable[relax.Expr]) -> int:
    fields = [field for expr in exprs for field in tensor_fields(expr.ty) or ()]
    return sum(math.prod(static_shape(f) or ()) * ITEM_BYTES.get(dtype_of(f), 8) for f in fields)


def _evaluate(mod: tvm.IRModule, bindings: list[relax.VarBinding]) -> dict[relax.Var, relax.Expr]:
    """Compile and run all bindings as one function; map each Var of a tensor to its value.

    Where that fails the halves are evaluated, so that only what does not compile remains, and what depends on it.
    """
    results: dict[relax.Var, relax.Expr] = {}
    lost: set[relax.Var] = set()
    left = [bindings]
    for _ in range(_MAX_COMPILATIONS):
        if not left:
            break
        some = []
        for binding in left.pop():
            if any(leaf in lost for leaf in leaves(binding.value)):
                lost.add(binding.var)
            else:
                some.append(relax.VarBinding(binding.var, substitute(binding.value, results)))
        found = _evaluate_together(mod, some)
        if found is not None:
            results |= found
            lost |= {b.var for b in some if b.var not in found}  # tuples: another half cannot read them
        elif len(some) == 1:
            lost.add(some[0].var)
        else:
            left += [some[len(some) // 2 :], some[: len(some) // 2]]
    return results


def _evaluate_together(mod: tvm.IRModule, bindings: list[relax.VarBinding]) -> dict[relax.Var, relax.Expr] | None:
    """Evaluate all bindings as one function; None where that fails."""
    if not bindings:
        return {}
    try:
        module, wanted = _module_of(mod, bindings)
        # At level 3 LLVM unrolls loops of constants, and may take minutes to find out what they come to. At level 2 it
        # still makes vectors of loops, some of them wrong ones (persistent_codegen/cpu/keep_remainders.py).
        target = tvm.target.Target({"kind": "llvm", "opt-level": 1})
        with target:
            executable = tvm.compile(module, target, relax_pipeline=finish(target))
        arrays = relax.VirtualMachine(executable, tvm.cpu())["main"]()
        return {var: relax.const(arrays[i], str(arrays[i].dtype)) for i, var in enumerate(wanted)}
    except Exception as error:  # a schedule or an intrinsic of another device: these bindings stay as they are
        what = bindings[0].var.name if len(bindings) == 1 else f"{len(bindings)} constants together"
        debug.say(1, f"not folded: {what}: {type(error).__name__}: {last_line(error)}")
        return None


def _module_of(mod: tvm.IRModule, bindings: list[relax.VarBinding]) -> tuple[tvm.IRModule, list[relax.Var]]:
    builder = relax.BlockBuilder()
    values: dict[relax.Expr, relax.Expr] = {}
    for binding in bindings:
        for leaf in leaves(binding.value):
            if isinstance(leaf, GlobalVar) and leaf not in values:
                values[leaf] = builder.add_func(mod[leaf].without_attr("global_symbol"), leaf.name_hint)
    wanted = [binding.var for binding in bindings if isinstance(binding.var.ty, relax.TensorType)]
    with builder.function("main", []):
        for binding in bindings:
            values[binding.var] = builder.emit(substitute(binding.value, values))
        builder.emit_func_output(relax.Tuple([values[var] for var in wanted]))
    return builder.get(), wanted
