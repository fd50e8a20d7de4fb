"""What TVM does after fusion and scheduling: the rest of its default pipeline, with what rPrograms need of it."""

import importlib
import math
from types import ModuleType

import tvm
from tvm import relax, tirx

from ..define_arithmetic import DefineArithmetic
from ..device.presets import vector_bytes
from ..errors import UnsupportedOperatorError
from ..keep_indices import keep_indices
from .bindings import rewrite_prim_funcs, static_shape
from .destinations import OfferDestinations
from .empty_constants import AllocateEmptyConstants
from .empty_reductions import StartEmptyReductions
from .module_pass import module_pass, sparing
from .passes.elements.formulas import Formulas
from .passes.elements.inline import InlineElements
from .passes.elements.join_loops import JoinLoops
from .passes.legalization import exact_legalization
from .passes.plain_names import PlainNames
from .passes.serial_loops import SerialLoops
from .passes.sums.lanes import SumInLanes
from .passes.sums.pack import PackMatrices
from .passes.sums.tile import TileSums
from .passes.sums.vectorise import VectoriseSums
from .regions.eligible import LEAVE

MOST_PLANNED = 1 << 20
"""Elements for which memory is planned, though fewer may be needed."""

_UNBOUNDED = tvm.sym.ConstIntBound.POS_INF

_BACKENDS = {"llvm": "cpu_generic", "cuda": "cuda"}


def pipeline_of(target: tvm.target.Target) -> ModuleType:
    """TVM's own module of pipeline stages for a target."""
    return importlib.import_module(f"tvm.relax.backend.{_BACKENDS.get(target.kind.name, 'gpu_generic')}.pipeline")


def finish(target: tvm.target.Target) -> tvm.transform.Pass:
    """Lower a prepared module to what the Relax virtual machine runs.

    The stages are those of TVM's own pipeline for the target but without the fusion and the schedules, so what
    `prepare` fused and the caller scheduled stays as it is. Operators that are left are legalized; on a GPU,
    what was left to stock TVM gets stock TVM's own schedule. rTask functions stay private, or they would get an
    interface of their own.

    Parameters
    ----------
    target : tvm.target.Target

    Returns
    -------
    tvm.transform.Pass
    """
    stock = pipeline_of(target)

    @module_pass("RammerFinish")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        stages = [
            *([_refuse_host_code, _stock_schedules(target)] if target.kind.name == "cuda" else []),
            *stock.library_dispatch_passes(target),
            relax.transform.LegalizeOps(exact_legalization(target)),
            PlainNames(),
            # On a GPU stock TVM's own schedules write what a reduction starts from.
            *([SerialLoops(), *_loops(target)] if target.kind.name == "llvm" else []),
            AllocateEmptyConstants(),
            # It looks for reshapes among the PrimFuncs and fails on one that is not written in blocks. Ours need
            # not be, and a reshape is an rOperator like any other.
            *(p for p in stock.dataflow_lower_passes(target) if p.info.name != "RewriteDataflowReshape"),
            # The counters of a program on a GPU allow one run at a time, through "main".
            *([OfferDestinations()] if target.kind.name == "llvm" else []),
            *(_plan_apart(p) if p.info.name == "StaticPlanBlockMemory" else p for p in stock.finalize_passes(target)),
            # On a GPU it has to wait until reductions over threads are lowered (`rammer_cuda`).
            *([DefineArithmetic("llvm")] if target.kind.name == "llvm" else []),
            _keep_indices,
            KeepRTasksPrivate(),
        ]
        with target:
            return tvm.transform.Sequential(stages)(mod)

    return run


def _loops(target: tvm.target.Target) -> list[tvm.transform.Pass]:
    """The loops of what stock TVM computes on a CPU."""
    register = vector_bytes(target.export())
    sums = [TileSums(register), PackMatrices(), VectoriseSums(), SumInLanes(register), StartEmptyReductions()]
    return [InlineElements(), *sums, JoinLoops(), Formulas()]


def _plan_apart(plan: tvm.transform.Pass) -> tvm.transform.Pass:
    """TVM's plan of memory, not of all functions.

    Of two branches, one may use what only the other one allocates. And a tensor of `min(999999999, rows)` rows, as a
    slice of as many as only the data say has them, would be planned for all of these.
    """
    return sparing(lambda func: _has_branches(func) or _may_plan_for_more(func), plan)


def _may_plan_for_more(func: relax.Function) -> bool:
    """Whether a tensor whose size only the data say may have many elements, as far as its axes are bounded."""
    analyzer, found = tvm.sym.Analyzer(), False

    def visit(expr: relax.Expr) -> None:
        nonlocal found
        shape = getattr(expr.ty, "shape", None) if isinstance(expr, relax.Call) else None
        if isinstance(shape, relax.ShapeExpr) and static_shape(expr.ty) is None:
            most = [analyzer.const_int_bound(size).max_value for size in shape.values]
            bounded = any(n < _UNBOUNDED and not isinstance(s, tirx.IntImm) for n, s in zip(most, shape, strict=True))
            # In Python: TVM's own product of them stops at the greatest number it has.
            found = found or (bounded and math.prod(n for n in most if n < _UNBOUNDED) > MOST_PLANNED)

    relax.analysis.post_order_visit(func, visit)
    return found


def _has_branches(func: relax.Function) -> bool:
    found: list[bool] = []
    relax.analysis.post_order_visit(func, lambda expr: found.append(True) if isinstance(expr, relax.If) else None)
    return bool(found)


@module_pass("RefuseHostCode")
def _refuse_host_code(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    """Refuse functions that are written for a processor: on the host they would read a GPU's memory."""
    for var, func in mod.functions_items():
        if isinstance(func, tirx.PrimFunc) and func.attrs and LEAVE in func.attrs and "tirx.is_scheduled" in func.attrs:
            raise UnsupportedOperatorError(
                f"{var.name_hint} is computed on a CPU only: {func.attrs[LEAVE]}; compile for target='cpu', "
                "or split the model before it"
            )
    return mod


def _stock_schedules(target: tvm.target.Target) -> tvm.transform.Pass:
    from tvm.s_tir import dlight

    gpu = dlight.gpu
    rules = (gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback())

    @module_pass("StockSchedules")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        with target:
            return dlight.ApplyDefaultSchedule(*rules)(mod.clone())

    return run


@module_pass("KeepIndices")
def _keep_indices(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    return rewrite_prim_funcs(mod, keep_indices)


@module_pass("KeepRTasksPrivate")
def _keep_rtasks_private(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    mod = mod.clone()
    for gv, func in mod.functions.items():
        if isinstance(func, tirx.PrimFunc) and "rammer.rtask" in func.attrs:
            mod.update_func(gv, func.without_attr("global_symbol"))
    return mod


def KeepRTasksPrivate() -> tvm.transform.Pass:
    """Take the global symbol from rTask functions: TVM gives one to every function it finds."""
    return _keep_rtasks_private
