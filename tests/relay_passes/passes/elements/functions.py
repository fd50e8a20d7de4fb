"""Functions of tensors of as many rows as come, and what tests ask of them."""

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, s_tir, tirx

from tests.functions import TARGET


def module_of(compute, *types) -> tvm.IRModule:
    """A module whose `main` calls one function. A type is a shape, in which "n" is open, with a data type."""
    n = tirx.Var("n", "int64")
    inputs = [
        relax.Var(f"x{i}", relax.TensorType([n if size == "n" else size for size in shape], dtype))
        for i, (shape, dtype) in enumerate(types)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", inputs):
        with builder.dataflow():
            out = builder.emit_output(builder.emit_te(compute, *inputs))
        builder.emit_func_output(out)
    return builder.get()


def function_of(mod: tvm.IRModule) -> tirx.PrimFunc:
    (func,) = (func for func in mod.functions.values() if isinstance(func, tirx.PrimFunc))
    return func


def blocks(mod: tvm.IRModule) -> list[str]:
    """The names of the blocks within the root."""
    found: list[str] = []
    func = function_of(mod)
    tvm_ffi.structural_walk(func.body, (s_tir.SBlock, lambda block: found.append(block.name_hint)), order="pre")
    return found[1:]


def loops(mod: tvm.IRModule) -> int:
    """How many loops it has."""
    found: list[tirx.For] = []
    tvm_ffi.structural_walk(function_of(mod).body, (tirx.For, found.append), order="pre")
    return len(found)


def run(mod: tvm.IRModule, arrays) -> np.ndarray:
    """What `main` makes of arrays."""
    return relax.VirtualMachine(tvm.compile(mod, TARGET), tvm.cpu())["main"](*map(tvm.runtime.tensor, arrays)).numpy()
