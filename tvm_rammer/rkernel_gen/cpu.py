"""The rules for CPUs."""

from .cpu_contraction import ContractionRule
from .cpu_generic import GenericRule
from .cpu_window_rule import WindowRule
from .tiling import Rule

CPU_RULES: tuple[Rule, ...] = (ContractionRule(), WindowRule(), GenericRule())
"""Those first whose kernels are better where predictions tie; the last one only where the others have no tiling."""
