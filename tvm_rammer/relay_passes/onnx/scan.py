"""An ONNX Scan becomes a loop of the Relax module: its body a function, the node a call (`loops.body`)."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper
from tvm import relax
from tvm.ir import Constant

from ..bindings import body_blocks, dtype_of, is_call, leaves, rebuild
from ..loops.body import LOOP, LoopBody, StepResults
from ..loops.emit import emit_loop, shape_within, with_copies
from .inline import copy_tensor, identities, subgraphs

ROWS = "rows"
"""An attribute that Scans of ONNX do not have. How many steps there are is known only at run time then: the last input
is the number of rows, and a step does so many of them."""

JOINED = "joined"
"""An attribute of Scans that were several: then what waits for fewer of these comes first in a step."""

_FEW, _COPY = 64, "/copy"

Values = Mapping[str, relax.Expr]
"""What the names of the graph around a body stand for."""

ImportBody = Callable[[onnx.GraphProto], relax.Function]
"""Imports the graph of a step."""


@dataclass(frozen=True, slots=True)
class _Slices:
    """What the steps read, or write, of a tensor: along which axis, and whether from its end to its beginning."""

    axis: int
    backward: bool


def _split(inputs: list[relax.Expr], count: int) -> tuple[list[relax.Expr], list[relax.Expr]]:
    """The states and the arrays among the inputs of a node."""
    return inputs[: len(inputs) - count], inputs[len(inputs) - count :]


class ScanConverter:
    """Converts the Scan nodes of a model.

    Parameters
    ----------
    bb : relax.BlockBuilder
        Of the function around the nodes.

    Attributes
    ----------
    functions : dict of str to relax.Function
        The steps that were made, by the names that the module is to have for them.
    """

    def __init__(self, bb: relax.BlockBuilder) -> None:
        self._bb = bb
        self.functions: dict[str, relax.Function] = {}

    def convert(
        self, inputs: Sequence[relax.Expr], attributes: Mapping[str, Any], outer: Values, import_body: ImportBody
    ) -> relax.Expr:
        """Make the function of a node, and emit the call.

        Parameters
        ----------
        inputs : sequence of relax.Expr
        attributes : mapping of str to object
            The node's, as TVM's frontend parses them.
        outer : mapping of str to relax.Expr
            What the body may read of the graph around it.
        import_body : callable

        Returns
        -------
        relax.Expr
            The last states, and the results of all steps: a tuple where there are several.

        Raises
        ------
        LoopError
            It cannot stay a loop.
        """
        body, count, rows = attributes["body"], attributes["num_scan_inputs"], attributes.get(ROWS, 0)
        number = [inputs[-1]] if rows else []
        states, arrays = _split(list(inputs[: len(inputs) - len(number)]), count)
        reads = _slices(attributes, "input", len(arrays))
        writes = _slices(attributes, "output", len(body.output) - len(states))
        arrays = [self._first_axis(array, read.axis) for array, read in zip(arrays, reads, strict=True)]
        steps = _shape(arrays[0])[0] // max(1, rows)
        invariants = {name: outer[name] for name in _free_names(body) if name in outer}
        constants = {value.name for value in body.initializer}
        constants |= {name for name, value in invariants.items() if isinstance(value, Constant)}
        results = _results(body, len(states), invariants.keys() - constants, constants)
        slices = [_slice(array, rows) for array in arrays]
        outputs = [name.removesuffix(_COPY) for name in results.values]
        graph = _graph_of(body, [*(_type_of(state) for state in states), *slices], invariants, outputs)
        step = import_body(graph)
        copied = [n for n, name in enumerate(results.values) if name != outputs[n]]
        step = with_copies(step, copied, lambda function: self._bb.add_func(function, "copy"))
        if attributes.get(JOINED):
            step = _early_first(step)
        loop = LoopBody(
            steps,
            results.rings,
            results.carried,
            tuple(read.backward for read in reads),
            tuple(write.backward for write in writes),
            rows,
        )
        name = f"loop{len(self.functions)}"
        self.functions[name] = step.with_attr({"global_symbol": name, LOOP: loop.text()})
        given = [value for value in invariants.values() if not _is_small(value)]
        lasts, made = emit_loop(self._bb, name, step, loop, [*states, *arrays, *given, *number])
        every = [self._from_first_axis(v, w.axis) for v, w in zip(made, writes, strict=True)]
        values = [*lasts, *every]
        return values[0] if len(values) == 1 else relax.Tuple(values)

    def _first_axis(self, array: relax.Expr, axis: int) -> relax.Expr:
        rank = len(_shape(array))
        axis %= rank
        order = [axis, *(n for n in range(rank) if n != axis)]
        return array if axis == 0 else self._bb.emit(relax.op.permute_dims(array, order))

    def _from_first_axis(self, value: relax.Expr, axis: int) -> relax.Expr:
        rank = len(_shape(value))
        axis %= rank
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
        return value if axis == 0 else self._bb.emit(relax.op.permute_dims(value, order))


def _early_first(step: relax.Function) -> relax.Function:
    """The step, in which what waits for fewer products of the same step comes first.

    A sum of two products becomes a part of the one that comes first. That has to be the one whose operands are there
    from the beginning of the step, as the state is: where the other's are made by a layer below, it has more time.
    """
    blocks = []
    products: dict[relax.Expr, int] = {}
    for block in body_blocks(step):
        before = []
        for binding in block.bindings:
            before.append(max((products.get(leaf, 0) for leaf in leaves(binding.value)), default=0))
            products[binding.var] = before[-1] + is_call(binding.value, ("relax.matmul",))
        order = sorted(range(len(before)), key=before.__getitem__)
        blocks.append((isinstance(block, relax.DataflowBlock), [block.bindings[n] for n in order]))
    return rebuild(step, blocks)


def _slices(attributes: Mapping[str, Any], side: str, count: int) -> list[_Slices]:
    axes = attributes.get(f"scan_{side}_axes") or (0,) * count
    backward = attributes.get(f"scan_{side}_directions") or (0,) * count
    return [_Slices(axis, bool(back)) for axis, back in zip(axes, backward, strict=True)]


def _shape(value: relax.Expr) -> tuple[int, ...]:
    return shape_within(value.ty)


def _is_small(value: relax.Expr) -> bool:
    """Whether an invariant becomes a constant of the step: a number, or a few, as shapes, axes and pads are."""
    return isinstance(value, Constant) and value.value.numpy().size <= _FEW


def _free_names(graph: onnx.GraphProto) -> Iterator[str]:
    """What a graph reads of the graph around it, each name once."""
    known = {value.name for value in (*graph.input, *graph.initializer)}
    known |= {name for node in graph.node for name in node.output}
    found: dict[str, None] = {}
    for node in graph.node:
        inner = (name for each in subgraphs(node) for name in _free_names(each))
        found.update(dict.fromkeys(name for name in (*node.input, *inner) if name and name not in known))
    found.update(dict.fromkeys(value.name for value in graph.output if value.name not in known))
    return iter(found)


def _results(body: onnx.GraphProto, states: int, invariants: Set[str], constants: Set[str]) -> StepResults[str]:
    """Sort the outputs of a body; names that stand for one value are one, and what a step is given is to be copied."""
    same = identities(body.node)
    given = {value.name for value in body.input} | invariants
    names = [same.get(value.name, value.name) for value in body.output]
    return StepResults.of([name + _COPY if name in given else name for name in names], states, constants)


Slice = tuple[tuple[int, ...], str]
"""The shape and the element type of what a step reads."""


def _slice(array: relax.Expr, rows: int) -> Slice:
    """What a step reads of an array: a row, or several."""
    shape, dtype = _type_of(array)
    return ((rows, *shape[1:]) if rows > 1 else shape[1:]), dtype


def _type_of(value: relax.Expr) -> Slice:
    return _shape(value), dtype_of(value.ty)


def _graph_of(
    body: onnx.GraphProto, inputs: Sequence[Slice], invariants: Values, outputs: Sequence[str]
) -> onnx.GraphProto:
    """The graph of a step by itself: what it reads of the graph around it is an input, or a constant if it is small."""
    graph = onnx.GraphProto()
    graph.CopyFrom(body)
    del graph.input[:], graph.output[:]
    for value, (shape, dtype) in zip(body.input, inputs, strict=True):
        graph.input.append(_value_info(value.name, dtype, shape))
    for name, value in invariants.items():
        if _is_small(value):
            graph.initializer.append(copy_tensor(onnx.numpy_helper.from_array(value.value.numpy()), name))
        else:
            graph.input.append(_value_info(name, dtype_of(value.ty), _shape(value)))
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    return graph


def _value_info(name: str, dtype: str, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
