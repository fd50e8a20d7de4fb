"""The values that pass from stage to stage: frozen, hashable, and free of TVM.

    graph      RGraph   = Buffers + ROperators in topological order      (relay_passes makes it)
    kernel     RKernel  = one way to run an operator's function          (rkernel_gen makes it)
    program    RProgram = RGraph + one RKernel an operator + lanes       (wavefront makes it)
    length     Length   = the dimension that a compiled model learns from each call
    unroll     a program of several steps as one of a single step

An rProgram is a list of instructions for each vEU. There are three: `Run`, `Signal` and `Wait`.
The terms are those of Rammer (OSDI 2020), sections 3.1 to 3.4.
"""

from .graph import (
    ALIGNMENT,
    DESTINATIONS,
    INTO,
    ITEM_BYTES,
    MOST_ELEMENTS,
    OUTPUT_NAMES,
    VIEW_ALIGNMENT,
    Buffer,
    BufferKind,
    Copies,
    Extent,
    Move,
    Place,
    RGraph,
    ROperator,
    TripCount,
    align,
)
from .kernel import SLICE_ALIGNMENT, Footprint, RKernel, Slices
from .length import LENGTH, LOOPS, Length
from .program import Instruction, Lane, RProgram, Run, Signal, Wait
from .unroll import unroll, unrolled_positions

__all__ = [
    "ALIGNMENT",
    "DESTINATIONS",
    "INTO",
    "ITEM_BYTES",
    "LENGTH",
    "LOOPS",
    "MOST_ELEMENTS",
    "OUTPUT_NAMES",
    "SLICE_ALIGNMENT",
    "VIEW_ALIGNMENT",
    "Buffer",
    "BufferKind",
    "Copies",
    "Extent",
    "Footprint",
    "Instruction",
    "Lane",
    "Length",
    "Move",
    "Place",
    "RGraph",
    "RKernel",
    "ROperator",
    "RProgram",
    "Run",
    "Signal",
    "Slices",
    "TripCount",
    "Wait",
    "align",
    "unroll",
    "unrolled_positions",
]
