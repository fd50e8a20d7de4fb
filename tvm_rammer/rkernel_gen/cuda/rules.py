"""The rules for GPUs: one kernel each, whose blocks are the rTasks."""

from ..tiling import Rule
from .elementwise import ELEMENTWISE_RULE
from .product.gemm import GEMM_RULE
from .product.gemv.rule import GEMV_RULE
from .product.mma import MMA_RULE, TF32_RULE
from .reduction import REDUCTION_RULE
from .rowwise import ROWWISE_RULE
from .window.rule import WINDOW_RULE

CUDA_RULES: tuple[Rule, ...] = (
    MMA_RULE,
    TF32_RULE,
    GEMV_RULE,
    REDUCTION_RULE,
    GEMM_RULE,
    WINDOW_RULE,
    ROWWISE_RULE,
    ELEMENTWISE_RULE,
)
