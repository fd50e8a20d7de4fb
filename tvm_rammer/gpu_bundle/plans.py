"""The lowered "main" of a module as a plan: its buffers, and its launches in order."""

from typing import Protocol, TypeAlias

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Constant, GlobalVar, Tuple, TupleGetItem

from ..errors import CodegenError
from ..relay_passes.bindings import body_blocks, result_of
from .kernels import HostFunction, KernelCall, nbytes_of
from .onsite.hang import report_bytes
from .onsite.plan import Plan, PlanBuffer, PlanLaunch, View

_SKIPPED = ("relax.null_value", "relax.vm.kill_object", "vm.builtin.check_tensor_info", "vm.builtin.match_shape")
_Value: TypeAlias = View | int | tuple["_Value", ...] | None
"""A tensor, a storage (its buffer), a tuple, or something that the GPU does not see."""


class ArrayStore(Protocol):
    """What keeps the constants of a plan: the files of a bundle, or a dictionary."""

    def add_array(self, array: np.ndarray) -> str:
        """Keep an array; return the name by which it is found again."""
        ...


def plan_of(
    name: str,
    mod: tvm.IRModule,
    functions: dict[str, HostFunction],
    inputs: dict[str, str],
    store: ArrayStore,
    *,
    watched: bool = False,
    apart: bool = False,
) -> Plan:
    """Read the plan of a module off.

    Parameters
    ----------
    name : str
    mod : tvm.IRModule
        As for `kernels.lower_kernels`.
    functions : dict of str to HostFunction
    inputs : dict of str to str
        File of each parameter of "main".
    store : ArrayStore
        Takes the constants.
    watched : bool
        Whether its persistent kernels have a watchdog.
    apart : bool
        Whether each tensor has memory of its own; otherwise TVM's plan of the memory holds.

    Raises
    ------
    CodegenError
        "main" does something else than to launch kernels. Checks of indices are left out.
    """
    reader = _Reader(name, functions, inputs, store, watched=watched, apart=apart)
    main = mod["main"]
    for param in main.params:
        reader.parameter(param)
    for block in body_blocks(main):
        for binding in block.bindings:
            reader.values[binding.var] = reader.evaluate(binding.value)
    result = reader.evaluate(result_of(main))
    results = result if isinstance(result, tuple) else (result,)
    outputs = tuple(view for view in results if isinstance(view, View))
    if len(outputs) != len(results):
        raise CodegenError(f"{name}: the model's result is no tensor and no flat tuple of tensors; return one")
    return Plan(name, tuple(reader.buffers), tuple(reader.launches), outputs, {})


class _Reader:
    """Follows "main" from binding to binding."""

    def __init__(
        self,
        name: str,
        functions: dict[str, HostFunction],
        inputs: dict[str, str],
        store: ArrayStore,
        *,
        watched: bool,
        apart: bool,
    ) -> None:
        self.watched, self.apart = watched, apart
        self.name, self.functions, self.inputs, self.store = name, functions, inputs, store
        self.values: dict[relax.Var, _Value] = {}
        self.constants: dict[Constant, View] = {}
        self.buffers: list[PlanBuffer] = []
        self.launches: list[PlanLaunch] = []

    def parameter(self, param: relax.Var) -> None:
        nbytes = nbytes_of(param.ty.shape, str(param.ty.dtype))
        self.values[param] = self._buffer(PlanBuffer(param.name, nbytes, "input", self.inputs[param.name]))

    def evaluate(self, expr: relax.Expr) -> _Value:
        match expr:
            case relax.Var():
                return self.values[expr]
            case Constant():
                return self._constant(expr)
            case Tuple():
                return tuple(self.evaluate(field) for field in expr.fields)
            case TupleGetItem():
                fields = self.evaluate(expr.tuple_value)
                return fields[expr.index] if isinstance(fields, tuple) else None
            case tvm.ir.Call():
                return self._call(expr)
            case relax.If():
                self._check_branch(expr)
                return None
        raise CodegenError(f"{self.name}: cannot plan {type(expr).__name__} in the lowered model")

    def _check_branch(self, branch: relax.If) -> None:
        """The check of indices is a branch without a result: they are clipped in any case (`check_indices`)."""
        if not isinstance(branch.ty, relax.TupleType) or branch.ty.fields:
            raise CodegenError(
                f"{self.name}: the model has a branch that data decide; only launches in a fixed order do without TVM"
            )

    def _call(self, call: tvm.ir.Call) -> _Value:
        if isinstance(call.op, GlobalVar):
            self._launch(call.op.name_hint, [self.evaluate(a) for a in call.args])
            return None
        operation = call.op.global_symbol if isinstance(call.op, relax.ExternFunc) else call.op.name
        if operation in _SKIPPED:
            return None
        if operation == "relax.vm.alloc_storage":
            if self.apart:
                return None
            nbytes = nbytes_of(call.args[0].values, str(call.args[2].value))
            return self._buffer(PlanBuffer(f"storage{len(self.buffers)}", nbytes, "memory")).buffer
        if operation == "relax.vm.alloc_tensor":
            nbytes = nbytes_of(call.args[2].values, str(call.args[3].value))
            if self.apart:
                return self._buffer(PlanBuffer(f"tensor{len(self.buffers)}", nbytes, "memory"))
            storage = self.evaluate(call.args[0])
            if not isinstance(storage, int):
                raise CodegenError(f"{self.name}: a tensor is allocated in {storage}, which is no storage")
            return View(storage, int(call.args[1]), nbytes)
        if operation == "vm.builtin.reshape":
            return self.evaluate(call.args[0])
        raise CodegenError(
            f"{self.name}: the model calls {operation}, which is no kernel and needs TVM; take it out of the model"
        )

    def _launch(self, function: str, arguments: list[_Value]) -> None:
        host = self.functions.get(function)
        if host is None or not host.calls:
            raise CodegenError(
                f"{self.name}: the model calls {function}, which launches no kernel and needs TVM; "
                "take it out of the model"
            )
        views: dict[str, View] = {}
        for parameter, nbytes, argument in zip(host.parameters, host.nbytes, arguments, strict=True):
            if not isinstance(argument, View) or argument.nbytes != nbytes:
                raise CodegenError(f"{self.name}: {function} takes {nbytes} bytes as {parameter}, not {argument}")
            views[parameter] = argument
        for local, nbytes in host.memory.items():
            views[local] = self._buffer(PlanBuffer(f"{function}_{local}{len(self.buffers)}", nbytes, "memory"))
        for call in host.calls:
            self.launches.append(
                PlanLaunch(
                    call.kernel, call.grid, call.block, call.shared_bytes, call.cooperative,
                    tuple(views[a] for a in call.arguments),
                    tuple(a in host.written or a in host.memory for a in call.arguments),
                    self._report(call, views),
                )
            )  # fmt: skip

    def _report(self, call: KernelCall, views: dict[str, View]) -> View | None:
        """Where a persistent kernel reports what it waits for: at the end of its state."""
        if not (self.watched and call.cooperative):
            return None
        state, nbytes = views["state"], report_bytes(call.grid[0])
        return View(state.buffer, state.offset + state.nbytes - nbytes, nbytes)

    def _constant(self, constant: Constant) -> View:
        if constant not in self.constants:
            array = constant.value.numpy()
            name = f"constant{len(self.constants)}"
            buffer = PlanBuffer(name, max(1, array.nbytes), "constant", self.store.add_array(array))
            self.constants[constant] = self._buffer(buffer)
        return self.constants[constant]

    def _buffer(self, buffer: PlanBuffer) -> View:
        self.buffers.append(buffer)
        return View(len(self.buffers) - 1, 0, buffer.nbytes)
