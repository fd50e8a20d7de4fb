"""Clean a Relax module up and fuse its operators: afterwards one call_tir is one rOperator."""

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call, TensorLoad
from tvm.tirx.buffer import BufferType

from ..device.presets import vector_bytes
from ..ir import ITEM_BYTES
from .bindings import body_blocks, is_call, writes_tensors
from .check_results import check_results
from .empty_reductions import StartEmptyReductions
from .finish import pipeline_of
from .module_pass import module_pass, sparing
from .passes.bound_chains import BoundChains
from .passes.claim_reads import ClaimReads
from .passes.drop_dead_blocks import DropDeadBlocks
from .passes.exact_simplification import ExactSimplification
from .passes.fold_batchnorm import FoldBatchNorm
from .passes.fold_constants import FoldConstants
from .passes.fuse import Fuse
from .passes.indices import CheckIndices, CheckSizes
from .passes.indices.find_nonzero import FindNonzero
from .passes.legalization import exact_legalization
from .passes.plain_names import PlainNames
from .passes.products.crop_convolutions import CropConvolutions
from .passes.products.float_bytes import FloatBytes
from .passes.products.merge_convolutions import MergeConvolutions
from .passes.products.narrow_halves import NarrowHalves
from .passes.products.pad_columns import PadColumns
from .passes.products.widen_halves import HALVES, WidenHalves
from .passes.refuse_calls import RefuseCalls
from .passes.serial_loops import SerialLoops
from .passes.simplify_ops import SimplifyOps
from .passes.split_pools import SplitPools

_ELEMENTWISE, _INJECTIVE, _OPAQUE = (0, 1), 2, 8
"""Values of `op_pattern`: element by element, also with broadcasting; any one element to one element; never fused."""

_BYTES = ("uint8", "int8")

MAX_FUSED_PIECES = 16
"""A concatenation of more pieces than this is not fused."""


def prepare(target: tvm.target.Target) -> tvm.transform.Pass:
    """Make the pass that turns a loaded module into fused calls of PrimFuncs.

    Parameters
    ----------
    target : tvm.target.Target
        What the module is compiled for; some operators are legalized differently for a GPU.

    Returns
    -------
    tvm.transform.Pass
        Its result has the same functions and the same meaning. Constants that were folded are computed in the
        data types of the model, batch normalisation in float64.
    """

    @module_pass("RammerPrepare")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        cpu = target.kind.name == "llvm"
        stages = [
            CheckSizes(),
            FoldConstants(),
            _unless_written(SimplifyOps()),
            *([SplitPools()] if cpu else ()),
            _unless_written(FoldBatchNorm()),
            _decompose(),
            relax.transform.CanonicalizeBindings(),
            *([WidenHalves()] if cpu else [FloatBytes(), NarrowHalves()]),
            # Before LegalizeOps: a bias that is still reshaped at run time would not fuse into its convolution.
            FoldConstants(),
            _unless_written(CropConvolutions()),
            *([PadColumns(_simd(target))] if cpu else ()),
            _unless_written(relax.transform.EliminateCommonSubexpr()),
            _unless_written(relax.transform.DeadCodeElimination()),
            _unless_written(MergeConvolutions()),
            CheckIndices(),
            RefuseCalls(),
            *([FindNonzero()] if cpu else ()),
            relax.transform.LegalizeOps(exact_legalization(target)),
            *pipeline_of(target).library_dispatch_passes(target),  # as stock: sorts, and scans that are left
            *([SerialLoops()] if cpu else ()),
            PlainNames(),
            relax.transform.AnnotateTIROpPattern(),
            _mark_patterns(cpu),
            BoundChains(),
            Fuse(),
            relax.transform.FuseTIR(),
            ClaimReads(),
            # Windows may have no sample at all: how many a box has, its corners say.
            *([StartEmptyReductions()] if cpu else ()),
            ExactSimplification(),
            _unless_written(relax.transform.DeadCodeElimination()),
            DropDeadBlocks(),
        ]
        with target:
            made = tvm.transform.Sequential(stages)(mod)
        check_results(mod, made)
        return made

    return run


def _unless_written(inner: tvm.transform.Pass) -> tvm.transform.Pass:
    """A pass that takes what a Var holds for the same wherever it is read: not in functions that write tensors."""
    return sparing(writes_tensors, inner)


def _simd(target: tvm.target.Target) -> int:
    """Numbers of float32 in the longest vector of a CPU."""
    return vector_bytes(target.export()) // ITEM_BYTES["float32"]


def _mark_patterns(cpu: bool) -> tvm.transform.Pass:
    """Keep padding out of the function before it, and long concatenations by themselves.

    Padding at the end reads its input element by element, so TVM classes it as elementwise and would fuse it into a
    convolution, whose kernels do not compute the padding. And a producer that is fused into a concatenation of many
    pieces becomes one of as many branches, which LLVM takes minutes to compile. A function whose sizes are not int64
    cannot be fused with its neighbours, whose sizes are: TVM would find other shapes than it expects. Nor can one that
    takes a size as a number: TVM fails where a neighbour has another size that only the data say. On a CPU what
    rounds to half precision begins a function of its own: the kernels of products are for float32. And bytes are
    transposed by themselves there, in registers: one by one they take ten times as long.
    """

    @module_pass("RammerMarkPatterns")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        marked = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, tirx.PrimFunc) and (pattern := _pattern(func, cpu)) is not None:
                marked.update_func(var, func.with_attr("op_pattern", pattern))
        return marked

    return run


def _pattern(func: tirx.PrimFunc, cpu: bool) -> int | None:
    """The pattern by which a function is fused where it is not the one that TVM sees."""
    pattern = func.attrs.get("op_pattern")
    if pattern in (*_ELEMENTWISE, _INJECTIVE) and len(func.params) > MAX_FUSED_PIECES + 1:
        return _OPAQUE
    buffers = [p for p in func.params if isinstance(p.ty, BufferType)]
    if len(buffers) < len(func.params) or any(
        str(extent.ty.dtype) != "int64" for buffer in buffers for extent in buffer.shape
    ):
        return _OPAQUE
    if cpu and pattern == _INJECTIVE and _turns_bytes(func, buffers):
        return _OPAQUE
    apart = _has_condition(func) or (cpu and _rounds(buffers))
    return _INJECTIVE if pattern in _ELEMENTWISE and apart else None


def _rounds(buffers: Sequence[tirx.Var]) -> bool:
    """Whether the last of the buffers is made of another one by rounding it to half precision."""
    return str(buffers[-1].dtype) in HALVES and any(str(buffer.dtype) == "float32" for buffer in buffers)


def _turns_bytes(func: tirx.PrimFunc, buffers: Sequence[tirx.Var]) -> bool:
    """Whether a function makes another axis of bytes the innermost one, and does nothing else."""
    stores: list[tirx.BufferStore] = []
    tvm_ffi.structural_walk(func.body, [(tirx.BufferStore, stores.append)], order="pre")
    if len(buffers) != 2 or len(stores) != 1 or any(str(buffer.dtype) not in _BYTES for buffer in buffers):
        return False
    to, value = stores[0].indices, stores[0].value
    if not isinstance(value, TensorLoad) or len(value.indices) != len(to) or len(to) < 2:
        return False
    return any(value.indices[-1].same_as(axis) for axis in to[:-1])


def _has_condition(func: tirx.PrimFunc) -> bool:
    found: list[str] = []
    tvm_ffi.structural_walk(func.body, [(Call, lambda call: found.append(getattr(call.op, "name", "")))], order="pre")
    return any(name.endswith("if_then_else") for name in found)


def _decompose() -> tvm.transform.Pass:
    """DecomposeOpsForInference, save where it would change a batch normalisation in training mode."""

    @module_pass("RammerDecompose")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        trains = any(
            is_call(binding.value, ("relax.nn.batch_norm",)) and binding.value.attrs.training
            for _, func in mod.functions_items()
            if isinstance(func, relax.Function)
            for block in body_blocks(func)
            for binding in block.bindings
        )
        return mod if trains else relax.transform.DecomposeOpsForInference()(mod)

    return run
