"""The rules for CPUs."""

from ..tiling import Rule
from .contraction.rule import ContractionRule
from .filters.rule import FiltersRule
from .generic.rule import GenericRule
from .transposition.rule import TranspositionRule
from .window.rule import WindowRule
from .winograd.rule import WinogradRule

CPU_RULES: tuple[Rule, ...] = (
    ContractionRule(), WindowRule(), FiltersRule(), WinogradRule(), TranspositionRule(), GenericRule(),
)  # fmt: skip
"""The first one wins where predictions tie. The last one is used only where the others yield no kernel."""
