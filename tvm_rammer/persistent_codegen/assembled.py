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
        Also the global symbol of `func`.
    func : tirx.PrimFunc
        Parameters: the inputs, `constants` one by one, the outputs, and the workspace (a tensor of uint8).
    helpers : mapping of GlobalVar to tirx.PrimFunc
        Private functions that it calls. They belong into the same module, under these very GlobalVars.
    inputs, outputs : tuple of int
        Positions in the program's `graph.buffers`.
    constants : tuple of numpy.ndarray
        Packed weights (uint8), and the plan (int32: `begin`, `code` and `arguments` of tables.py; on a CPU as one
        array). On a GPU also the state (int32: cuda/state.py). The kernel writes to the state: it must be one array,
        the same in every run, and used by nothing else.
    workspace_bytes : int
    threads, shared_bytes : int
        Size of a block, and its dynamic shared memory, on a GPU.
    """

    name: str
    func: tirx.PrimFunc
    helpers: Mapping[GlobalVar, tirx.PrimFunc]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: tuple[np.ndarray, ...]
    workspace_bytes: int
    threads: int = 1
    shared_bytes: int = 0

    def functions(self) -> dict[GlobalVar, tirx.PrimFunc]:
        """Return all functions as those of a module: `func` under its name, and the helpers."""
        return {GlobalVar(self.name): self.func, **self.helpers}
