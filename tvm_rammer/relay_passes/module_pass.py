"""TVM's decorator for module passes, with types."""

from collections.abc import Callable

import tvm

Rewrite = Callable[[tvm.IRModule, tvm.transform.PassContext], tvm.IRModule]


def module_pass(name: str) -> Callable[[Rewrite], tvm.transform.Pass]:
    """Decorate a function of a module and a pass context: it becomes a pass of this name, at optimization level 0."""

    def decorate(rewrite: Rewrite) -> tvm.transform.Pass:
        return tvm.transform.module_pass(rewrite, opt_level=0, name=name)

    return decorate
