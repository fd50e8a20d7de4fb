"""The rTask functions of a module: each kernel is extracted once, however many programs use it."""

from collections.abc import Callable

import tvm
from tvm import tirx
from tvm.ir import GlobalVar

from ..kernel import RTaskFunction, ScheduledKernel


class RTaskLibrary:
    """Extracts kernels on demand.

    Parameters
    ----------
    extract : callable
        The backend's extraction, from a scheduled kernel to an rTask function.

    Attributes
    ----------
    variables : dict of str to GlobalVar
        Under which variable the module holds the function of each kernel, by the kernel's name.
    """

    def __init__(self, extract: Callable[[ScheduledKernel], RTaskFunction]) -> None:
        self._extract = extract
        self._functions: dict[str, RTaskFunction] = {}
        self.variables: dict[str, GlobalVar] = {}

    def function(self, kernel: ScheduledKernel) -> RTaskFunction:
        """Return the rTask function of a kernel.

        Raises
        ------
        CodegenError
            The kernel cannot be extracted.
        """
        name = kernel.spec.name
        if name not in self._functions:
            function = self._extract(kernel)
            self._functions[name] = function
            self.variables[name] = variable_of(name, function.func)
        return self._functions[name]


def variable_of(name: str, func: tirx.PrimFunc) -> GlobalVar:
    """A variable for a function, of its type."""
    return tvm.IRModule({name: func}).get_global_var(name)
