"""ONNX's interface of backends: a model is prepared, then run on lists of arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ..driver import compile
from ..errors import ModelError, TargetError
from ..relay_passes import fix_inputs
from ..relay_passes.onnx.compile_time import needed_values
from ..relay_passes.onnx.read import read_onnx
from ..relay_passes.onnx.sequences import element_name
from ..runtime.module import RammerModule


class Prepared(BackendRep):
    """A model, and what was compiled of it so far.

    Parameters
    ----------
    model : onnx.ModelProto
        Valid.
    options : mapping of str to object
        For `tvm_rammer.compile`.
    """

    def __init__(self, model: onnx.ModelProto, options: Mapping[str, Any]) -> None:
        weights = {tensor.name for tensor in model.graph.initializer}
        self._model, self._options = model, dict(options)
        self._inputs = [value for value in model.graph.input if value.name not in weights]
        self._needed = needed_values(model.graph) - weights
        self._result = namedtupledict("Outputs", [value.name for value in model.graph.output])
        self._compiled: dict[object, RammerModule] = {}

    def run(self, inputs: Any, **_kwargs: Any) -> tuple[Any, ...]:
        """Run the model.

        Parameters
        ----------
        inputs : sequence of array, or mapping of str to array
            In the order of the model's inputs, weights left out, or by their names.

        Returns
        -------
        namedtuple of numpy.ndarray
            By the names of the model's outputs, too.

        Raises
        ------
        RammerError
            The model cannot be compiled for these shapes and values, or an input does not fit.
        """
        model, given = self._with_elements(inputs)
        # What has no elements is known: its shape is all there is.
        fixed = {name: array for name, array in given.items() if name in self._needed or not array.size}
        rest = {name: array for name, array in given.items() if name not in fixed}
        values = tuple((name, str(a.dtype), a.shape, a.tobytes()) for name, a in fixed.items())
        key = (values, tuple((name, a.shape) for name, a in rest.items()))
        if key not in self._compiled:
            model = fix_inputs(model, fixed) if fixed else model
            shapes = {name: array.shape for name, array in rest.items()}
            self._compiled[key] = compile(model, target="cpu", shapes=shapes, **self._options)
        module = self._compiled[key]
        named = dict(zip((spec.name for spec in module.outputs), module.run(None, rest), strict=True))
        return self._result(*(_value(output, named) for output in self._model.graph.output))

    def _with_elements(self, inputs: Any) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        """The model, in which sequences are made of inputs of their own, and an array for each of its inputs."""
        given = self._named(inputs)
        lists = {i.name: given[i.name] for i in self._inputs if i.type.HasField("sequence_type") and i.name in given}
        lists = {name: value for name, value in lists.items() if isinstance(value, list)}
        if not lists:
            return self._model, self._arrays(given)
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        graph, nodes = model.graph, []
        for declared in [i for i in graph.input if i.name in lists]:
            elements = {element_name(declared.name, n): np.asarray(e) for n, e in enumerate(lists[declared.name])}
            kind = declared.type.sequence_type.elem_type.tensor_type.elem_type
            graph.input.remove(declared)
            graph.input.extend(helper.make_tensor_value_info(n, kind, e.shape) for n, e in elements.items())
            make = ("SequenceConstruct", [*elements]) if elements else ("SequenceEmpty", [])
            nodes.append(helper.make_node(*make, [declared.name], **({} if elements else {"dtype": kind})))
            given = {name: value for name, value in given.items() if name != declared.name} | elements
        rest = list(graph.node)
        del graph.node[:]
        graph.node.extend([*nodes, *rest])
        return model, self._arrays(given)

    def _named(self, inputs: Any) -> dict[str, Any]:
        """The inputs by their names."""
        if isinstance(inputs, Mapping):
            return dict(inputs)
        names = [value.name for value in self._inputs]
        values = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
        if len(values) > len(names):
            raise ModelError(f"{len(values)} inputs given, but the model has {len(names)}; give {', '.join(names)}")
        return dict(zip(names, values, strict=False))

    def _arrays(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        readers = {name: f" of {node.op_type}" for node in self._model.graph.node for name in node.input}
        for name, value in inputs.items():
            if value is None or isinstance(value, list | tuple) or np.asarray(value).dtype.kind in "OSU":
                kind = "strings" if isinstance(value, np.ndarray) else "a sequence or an optional value"
                raise ModelError(
                    f"input {name!r}{readers.get(name, '')} is no tensor of numbers but {kind}; "
                    f"give an array of numbers, or export the model without it"
                )
        return {name: np.asarray(value) for name, value in inputs.items()}


def _value(output: onnx.ValueInfoProto, results: Mapping[str, Any]) -> Any:
    """A result of the model: an array, or the elements of a sequence, which the module returns one by one."""
    if not output.type.HasField("sequence_type"):
        return results[output.name]
    elements: list[Any] = []
    while (name := element_name(output.name, len(elements))) in results:
        elements.append(results[name])
    return elements


class RammerBackend(Backend):
    """ONNX's backend: all models run on this machine's CPU."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Check a model. It is compiled when the values of its inputs are known.

        Parameters
        ----------
        model : onnx.ModelProto
            Not changed.
        device : {"CPU"}
        **kwargs
            For `tvm_rammer.compile`, as `policy="list"`.

        Raises
        ------
        ModelError
            The model is not valid.
        TargetError
            Another device is asked for.
        """
        if not cls.supports_device(device):
            raise TargetError(f"the ONNX backend has no device {device!r}; use 'CPU'")
        return Prepared(read_onnx(model), kwargs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one operator.

        Parameters
        ----------
        node : onnx.NodeProto
        inputs : sequence of array
            One for each input that the node names.
        device : {"CPU"}
        outputs_info : sequence, optional
            Not needed.
        **kwargs
            `opset_version`: the newest by default. All others are for `tvm_rammer.compile`.
        """
        del outputs_info
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in dict.fromkeys(node.input) if name]
        arrays = [np.asarray(array) for array in inputs]
        values = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)
        ]
        results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], "node", values, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])
        return cls.prepare(model, device, **kwargs).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run on a device of this name."""
        return device.partition(":")[0] == "CPU"
