"""The rules for CPUs."""

from ..tiling import Rule
from .contraction.rule import ContractionRule
from .filters.rule import FILTERS_RULE
from .generic.rule import GenericRule
from .pool.rule import POOL_RULE
from .transposition.rule import TranspositionRule
from .window.rule import WINDOW_RULE
from .winograd.rule import WINOGRAD_RULE

CPU_RULES: tuple[Rule, ...] = (
    ContractionRule(), WINDOW_RULE, FILTERS_RULE, WINOGRAD_RULE, POOL_RULE, TranspositionRule(), GenericRule(),
)  # fmt: skip
"""The first one wins where predictions tie. The last one is used only where the others yield no kernel."""
