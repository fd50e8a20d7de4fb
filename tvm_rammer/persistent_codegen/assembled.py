"""What a backend makes of an rProgram."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from tvm import tirx
from tvm.ir import GlobalVar


@dataclass(frozen=True, slots=True)
class AssembledProgram:
    """The function of an rProgram, and what it is to be called with.

    Parameters
    ----------
    name : str
    func : tirx.PrimFunc
        Parameters: the inputs, `embedded`, the outputs, and the workspace.
    helpers : mapping of GlobalVar to PrimFunc
        Private functions that it calls.
    inputs, outputs : tuple of int
        Positions in the program's `graph.buffers`.
    embedded : tuple of numpy.ndarray
        Constants of the program: its weights, packed, and its plan.
    workspace_bytes : int
    threads, shared_bytes : int
        Of a block, on a GPU.
    """

    name: str
    func: tirx.PrimFunc
    helpers: Mapping[GlobalVar, tirx.PrimFunc]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    embedded: tuple[np.ndarray, ...]
    workspace_bytes: int
    threads: int = 1
    shared_bytes: int = 0
