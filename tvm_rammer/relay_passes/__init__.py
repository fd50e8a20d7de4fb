"""From a model file to rOperators, and back: the passes on TVM's graph IR.

TVM removed Relay in 0.20, so these passes work on Relax, and the folder keeps the name of the project's brief.

    fix_inputs      .onnx, some inputs of which become constants
    load_model      .onnx, ModelProto, Relax module or torch program -> Relax module of static shapes
    join_models     several of those -> one
    prepare         clean-up, constants folded, operators fused: one call_tir is one rOperator
    partition       Relax module -> regions of call_tirs, each with its RGraph
    replace_region  the launches that a region became -> back into the Relax module
    finish          the rest of TVM's own pipeline, down to what its virtual machine runs
"""

from .finish import finish
from .load_model import as_relax, load_model
from .onnx.control.functions import has_growing_loops
from .onnx.fix_inputs import fix_inputs
from .passes.fold_batchnorm import FoldBatchNorm
from .passes.fold_constants import FoldConstants
from .passes.products.pad_columns import PadColumns
from .passes.products.two_calls import TwoCalls, into_two_calls
from .passes.simplify_ops import SimplifyOps
from .prepare import prepare
from .regions.eligible import LEAVE
from .regions.join_models import join_models, models_of
from .regions.partition import Partition, Region, partition
from .regions.replace_region import Launch, replace_region

__all__ = [
    "LEAVE",
    "FoldBatchNorm",
    "FoldConstants",
    "Launch",
    "PadColumns",
    "Partition",
    "Region",
    "SimplifyOps",
    "TwoCalls",
    "as_relax",
    "finish",
    "fix_inputs",
    "has_growing_loops",
    "into_two_calls",
    "join_models",
    "load_model",
    "models_of",
    "partition",
    "prepare",
    "replace_region",
]
