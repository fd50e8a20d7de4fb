"""The rules for CPUs."""

from ..tiling import Rule
from .contraction.rule import ContractionRule
from .generic.rule import GenericRule
from .window.rule import WindowRule

CPU_RULES: tuple[Rule, ...] = (ContractionRule(), WindowRule(), GenericRule())
"""Those first whose kernels are better where predictions tie; the last one only where the others have no tiling."""
