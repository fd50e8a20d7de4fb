"""The rules for GPUs: one kernel each, whose blocks are the rTasks."""

from .cuda_contraction import GEMM_RULE
from .cuda_elementwise import ELEMENTS_RULE
from .cuda_reduction import SUMS_RULE
from .cuda_rows import ROWS_RULE
from .cuda_window import WINDOW_RULE
from .cuda_wmma import WMMA_RULE
from .tiling import Rule

CUDA_RULES: tuple[Rule, ...] = (WMMA_RULE, SUMS_RULE, GEMM_RULE, WINDOW_RULE, ROWS_RULE, ELEMENTS_RULE)
