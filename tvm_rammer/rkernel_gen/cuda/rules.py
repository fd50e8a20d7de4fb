"""The rules for GPUs: one kernel each, whose blocks are the rTasks."""

from ..tiling import Rule
from .elementwise import ELEMENTS_RULE
from .product.gemm import GEMM_RULE
from .product.wmma import WMMA_RULE
from .reduction import SUMS_RULE
from .rowwise import ROWS_RULE
from .window.rule import WINDOW_RULE

CUDA_RULES: tuple[Rule, ...] = (WMMA_RULE, SUMS_RULE, GEMM_RULE, WINDOW_RULE, ROWS_RULE, ELEMENTS_RULE)
