"""A graph of ATen operators -> Relax, through TVM's frontend, which is watched operator by operator."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Constant
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

from ...errors import ModelError, RammerError, UnsupportedOperatorError, first_line, last_line
from ..bindings import body_blocks, dtype_of, static_shape
from ..loops.recurrent_layer import called_layer
from ..loops.torch_scan import SCAN, call_scan
from .converters import own_converters
from .decompose import decompositions, simple_tracing
from .recurrent import NAMESPACE, convert_recurrent

DTYPES = frozenset(["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"])
"""Element types of PyTorch in which this compiler computes as PyTorch does."""

_MADE_UP = frozenset(
    [
        "bernoulli.p", "exponential.default", "native_dropout.default", "dropout_.default",
        "_upsample_bilinear2d_aa.default", "_upsample_bilinear2d_aa.vec",
    ]
)  # fmt: skip
"""Random numbers, and samples of smoothed images, for which TVM's frontend puts something else."""


def import_program(program: Any) -> tvm.IRModule:
    """Import a torch.export program; its weights become constants.

    Parameters
    ----------
    program : torch.export.ExportedProgram

    Raises
    ------
    UnsupportedOperatorError
        An operator cannot be imported.
    ModelError
        The program writes its buffers or inputs, or the frontend fails otherwise: a program of another torch.
    """
    try:
        with warnings.catch_warnings(), simple_tracing():
            warnings.simplefilter("ignore")  # PyTorch's own
            core = program.run_decompositions(decompositions())
            _check_pure(core)
            return _Importer().from_exported_program(core, False, True, False, None)
    except RammerError:
        raise
    except Exception as error:
        raise ModelError(
            f"TVM's torch frontend cannot import the program: {first_line(error)}; try to export it to ONNX"
        ) from error


def import_graph(graph_module: Any, constants: Mapping[str, np.ndarray[Any, Any]]) -> tvm.IRModule:
    """Import a functional graph of Core ATen operators, all of whose shapes are static.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
        Its nodes carry what PyTorch knows of them as `meta["val"]`.
    constants : mapping of str to array
        Values of inputs, by the names of their nodes; these are no inputs of the module.

    Returns
    -------
    tvm.IRModule
        "main" takes the other tensors that the graph reads, in its order, and returns a tuple of its tensors.

    Raises
    ------
    UnsupportedOperatorError
        An operator cannot be imported.
    ModelError
        The frontend fails otherwise.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _Importer().import_graph(graph_module, constants)
    except RammerError:
        raise
    except Exception as error:
        raise ModelError(f"TVM's torch frontend cannot import the graph: {last_line(error)}; run it eagerly") from error


def is_read(node: Any) -> bool:
    """Whether an input of a graph is a tensor that is used."""
    return bool(node.users) and hasattr(node.meta.get("val"), "shape")


def operator_name(node: Any) -> str:
    """An operator for messages, such as `aten.add.Tensor`."""
    target = node.target
    return str(target) if hasattr(target, "overloadpacket") else getattr(target, "__name__", str(target))


class _Importer(ExportedProgramImporter):  # type: ignore[misc]  # TVM has no types
    """TVM's importer with our converters; what comes out of each is compared with what PyTorch knows of the node."""

    def __init__(self) -> None:
        super().__init__()
        self._steps = 0

    def create_convert_map(self) -> dict[str, Any]:
        known = {name: convert for name, convert in super().create_convert_map().items() if name not in _MADE_UP}
        return (
            known
            | own_converters(self, known)
            | {
                "recurrent.default": partial(convert_recurrent, self),
                "scan": self._scan,
            }
        )

    def import_graph(self, graph_module: Any, constants: Mapping[str, np.ndarray[Any, Any]]) -> tvm.IRModule:
        nodes = list(graph_module.graph.nodes)
        self._check_unsupported_func_type(nodes)
        self.block_builder = relax.BlockBuilder()
        params = {}
        for node in nodes:
            if node.op != "placeholder" or not is_read(node):
                continue
            if node.name in constants:
                self.env[node] = _constant(constants[node.name])
                continue
            value = node.meta["val"]
            params[node.name] = relax.Var(node.name, relax.TensorType(list(value.shape), _dtype(node, value)))
        with self.block_builder.function("main", list(params.values())):
            try:
                with self.block_builder.dataflow():
                    results = self._translate_fx_graph(graph_module, nodes, params)
                    output = self.block_builder.emit_output(relax.Tuple(list(results)))
            except Exception:
                self.block_builder._end_block()  # else TVM complains of it on standard error
                raise
            self.block_builder.emit_func_output(output)
        return self.block_builder.get()

    def _translate_fx_graph(
        self, graph_module: Any, nodes: Sequence[Any], inputs_vars: dict[str, Any], custom_ops: Any = None
    ) -> tuple[relax.Expr, ...]:
        for node in nodes:
            if node.op == "placeholder":
                if node.name in inputs_vars:
                    self.env[node] = inputs_vars[node.name]
            elif node.op == "get_attr":
                value = getattr(graph_module, node.target)
                self.env[node] = _constant(value.detach().cpu().numpy()) if hasattr(value, "detach") else value
            elif node.op == "call_function":
                self.env[node] = self._converted(node)
            elif node.op == "output":
                return tuple(self._results(node.args[0]))
        raise ModelError("the graph has no output; export it again")

    def _scan(self, node: Any) -> relax.Expr:
        """PyTorch's `scan`: its step becomes a function of the module."""
        graph, states, arrays, invariants = node.args
        if not arrays:
            raise ValueError("a scan without an array")
        given = [self._retrieve_args(arg) for arg in (*states, *arrays, *invariants)]
        name = f"scan_step{self._steps}"
        self._steps += 1
        step = _Importer().import_step(self.env[graph]).with_attr(SCAN, f"{len(states)} {len(arrays)}")
        self.block_builder.add_func(step, name)
        call = self.block_builder.emit(call_scan(name, step, given[: len(states)], given[len(states) :]))
        return call if isinstance(call.ty, relax.TupleType) else relax.Tuple([call])

    def import_step(self, graph_module: Any) -> relax.Function:
        """The step of a scan; what it returns is a tuple of variables, of which those that are equal are one."""
        nodes = list(graph_module.graph.nodes)
        self._check_unsupported_func_type(nodes)
        self.block_builder = relax.BlockBuilder()
        params = {}
        for node in nodes:
            if node.op == "placeholder":
                value = node.meta["val"]
                if not all(isinstance(size, int) for size in value.shape):
                    raise ValueError("a scan of open shapes")
                params[node.name] = relax.Var(node.name, relax.TensorType(list(value.shape), _dtype(node, value)))
        with self.block_builder.function("step", list(params.values()), private=True):
            with self.block_builder.dataflow():
                results = self._translate_fx_graph(graph_module, nodes, params)
                named = {result: self.block_builder.emit_output(result) for result in dict.fromkeys(results)}
            self.block_builder.emit_func_output(relax.Tuple([named[result] for result in results]))
        step = self.block_builder.get()["step"]
        if any(called_layer(binding.value) for block in body_blocks(step) for binding in block.bindings):
            raise ValueError("a recurrent layer within a scan")
        return step

    def _results(self, value: Any) -> list[relax.Expr]:
        """The tensors among the results; an unused input has no value and is none."""
        if isinstance(value, list | tuple):
            return [result for part in value for result in self._results(part)]
        if not hasattr(value, "op"):
            return []
        result = self.env.get(value)
        return [result] if isinstance(result, relax.Expr) else []

    def _converted(self, node: Any) -> Any:
        try:
            result = self.convert_map[node.target.__name__](node)
        except Exception as error:
            raise UnsupportedOperatorError(
                f"TVM's torch frontend cannot import {operator_name(node)} ({node.name}): {last_line(error)}; "
                "write the model without it"
            ) from error
        if problem := _mismatch(result, node):
            raise UnsupportedOperatorError(
                f"TVM's torch frontend misreads {operator_name(node)} ({node.name}): {problem}; "
                "write the model without it"
            )
        return result

    def _check_unsupported_func_type(self, nodes: Sequence[Any]) -> None:
        counts = Counter(operator_name(node) for node in nodes if node.op == "call_function" and not self._knows(node))
        if counts:
            listed = ", ".join(f"{name} ({count} x)" for name, count in sorted(counts.items()))
            raise UnsupportedOperatorError(f"TVM's torch frontend lacks {listed}; write the model without them")

    def _knows(self, node: Any) -> bool:
        import torch

        target = node.target
        if isinstance(target, torch._ops.OpOverload):
            random = torch.Tag.nondeterministic_seeded in target.tags
            return target.namespace in ("aten", NAMESPACE) and not random and target.__name__ in self.convert_map
        return getattr(target, "__name__", "") in self.convert_map


def _check_pure(program: Any) -> None:
    signature = program.graph_signature
    if written := [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]:
        raise ModelError(
            f"the program writes {', '.join(sorted(written))}, which a compiled module does not; export the model "
            "after eval(), with its state as inputs and results, or use torch.compile(model, backend='rammer')"
        )


def _constant(array: np.ndarray[Any, Any]) -> Constant:
    return relax.const(array, str(array.dtype))  # without a type, integers of 64 bits would lose half of them


def _dtype(node: Any, value: Any) -> str:
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise UnsupportedOperatorError(
            f"the input {node.name} is {dtype}, in which is not computed here; use {', '.join(sorted(DTYPES))}"
        )
    return dtype


def _mismatch(result: Any, node: Any) -> str:
    """How a tensor differs from what PyTorch says of a node; empty where it does not, or one of them says nothing.

    An operator with several results is not looked at: its results are, where they are taken out of it.
    """
    value = node.meta.get("val")
    ty = getattr(result, "ty", None)
    if not hasattr(value, "dtype") or not isinstance(ty, relax.TensorType):
        return ""
    shape, dtype = static_shape(ty), str(value.dtype).removeprefix("torch.")
    if dtype_of(ty) != dtype or dtype not in DTYPES:
        return f"its result is {dtype_of(ty)}, which is {dtype} by PyTorch"
    if shape is not None and all(isinstance(d, int) for d in value.shape) and shape != tuple(value.shape):
        return f"its result has the shape {list(shape)}, which is {list(value.shape)} by PyTorch"
    return ""
