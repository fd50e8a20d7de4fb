"""A Loop of a known number of rounds as a Scan, which says what each step reads instead of computing where it is."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from .....errors import LoopError
from ...emit import Constants, Emitter, Types, attribute
from ...fold import drop_unused, used_names
from ...infer import static_dims
from ...inline import identities, rename_inputs
from .counted import Counted

Dims = Mapping[str, list[int]]
"""The shapes of values around a loop, where they are static."""


def as_scan(node: onnx.NodeProto, counted: Counted, emit: Emitter, constants: Constants, types: Types) -> Emitter:
    """Add a Scan that does what a Loop does.

    What depends on the round's number alone becomes a table, of which each step reads a row; a row that is gathered by
    the number is read as such; and a state that stays as it is becomes what it is at first.

    Parameters
    ----------
    node : onnx.NodeProto
        The Loop.
    counted : Counted
    emit : Emitter
    constants : mapping of str to onnx.TensorProto
        All that the node can see.
    types : mapping of str to onnx.TypeProto.Tensor
        Of the model's values, as far as they are known.
    """
    dims = {name: list(tensor.dims) for name, tensor in constants.items()}
    dims |= {name: known for name, kind in types.items() if (known := static_dims(kind)) is not None}
    scan = _Scan(node, counted, emit)
    scan.read_shifted(dims)
    scan.read_gathered(dims)
    scan.read_tables()
    scan.emit_last()
    return emit


class _Scan:
    """A Scan in the making: its body, the states that it has, and what its steps read.

    Parameters
    ----------
    node : onnx.NodeProto
    counted : Counted
    emit : Emitter
    """

    def __init__(self, node: onnx.NodeProto, counted: Counted, emit: Emitter) -> None:
        self._node, self._counted, self._emit = node, counted, emit
        self._body = onnx.GraphProto()
        self._body.CopyFrom(attribute(node, "body", None))
        _, going, *states = (value.name for value in self._body.input)
        self._body.initializer.append(numpy_helper.from_array(np.array(True), going))
        self._tables = {name: rows for name, rows in counted.tables.items() if name != going}
        same = identities(self._body.node)
        self._after = after = [same.get(value.name, value.name) for value in self._body.output[1:]]
        stays = {at for at, name in enumerate(states) if after[at] == name and at not in counted.last}
        outer = {states[at]: node.input[2 + at] for at in stays}
        for each in self._body.node:
            rename_inputs(each, outer)
        self._states = [at for at in range(len(states)) if at not in counted.last and at not in stays]
        kept = [each for each in self._body.node if not set(each.output) <= set(self._tables)]
        del self._body.node[:]
        self._body.node.extend(kept)
        self._ahead: dict[int, np.ndarray] = {}
        self._names: list[str] = []
        self._arrays: list[tuple[str, int, bool]] = []

    def _read(self, name: str, array: str, axis: int = 0, *, backward: bool = False) -> None:
        self._names.append(name)
        self._arrays.append((array, axis, backward))

    def read_shifted(self, dims: Dims) -> None:
        """Let the steps read what a state is, where only its first value is not known ahead."""
        for at in [at for at in self._states if self._after[at] in self._tables]:
            first, rows = self._node.input[2 + at], self._tables[self._after[at]]
            if dims.get(first) != list(rows.shape[1:]):
                raise LoopError(f"a loop whose state {first!r} changes its shape")
            before = [self._emit.axes("Unsqueeze", first, 0), self._emit.constant(rows[:-1])]
            self._read(attribute(self._node, "body", None).input[2 + at].name, self._emit.join(before, 0))
            self._states.remove(at)
            self._ahead[at] = rows[-1]

    def read_gathered(self, dims: Dims) -> None:
        """Let the steps read slices, where the body gathers them by the number of the round."""
        kept = []
        results = {value.name for value in self._body.output}
        for each in self._body.node:
            part = None if results.intersection(each.output) else self._gathered(each, dims)
            if part is None:
                kept.append(each)
            else:
                self._read(each.output[0], *part[:2], backward=part[2])
        del self._body.node[:]
        self._body.node.extend(kept)

    def _gathered(self, node: onnx.NodeProto, dims: Dims) -> tuple[str, int, bool] | None:
        """The array, the axis, and whether from its end, of a node that gathers one slice in each round."""
        if node.op_type != "Gather" or node.input[0] not in dims or node.input[1] not in self._tables:
            return None
        array, rows, axis = node.input[0], self._tables[node.input[1]], attribute(node, "axis", 0)
        shape, rounds = dims[array], self._counted.rounds
        if rows.ndim != 1 or not -len(shape) <= axis < len(shape):
            return None
        axis %= len(shape)
        rows = np.where(rows < 0, rows + shape[axis], rows)
        first = int(rows.min())
        if first < 0 or rows.max() >= shape[axis]:
            return None
        backward = rows[0] > first
        steps = np.arange(first, first + rounds)
        if not np.array_equal(rows, steps[::-1] if backward else steps):
            return self._emit("Gather", array, self._emit.constant(rows), axis=axis), axis, False
        if shape[axis] > rounds:
            array = self._emit.part(array, axis, first, first + rounds)
        return array, axis, bool(backward)

    def read_tables(self) -> None:
        """Let the steps read what else depends on their number."""
        read = used_names(onnx.GraphProto(node=self._body.node))
        numbers: dict[tuple[str, bytes], str] = {}
        for name in [name for name in self._tables if name in read] or list(self._tables)[: not self._names]:
            rows = self._tables[name]
            alike = (str(rows.dtype), rows.tobytes())
            if alike in numbers:
                self._reshape(numbers[alike], name, rows.shape[1:])
                continue
            if rows[0].size == 1:
                numbers[alike] = name
            self._read(name, self._emit.constant(rows))

    def _reshape(self, number: str, name: str, shape: Sequence[int]) -> None:
        """Make one number of another, which is the same in all steps: so whoever follows names sees that it is."""
        as_shape = f"{name}/shape"
        self._body.initializer.append(numpy_helper.from_array(np.array(shape, np.int64), as_shape))
        self._body.node.insert(0, onnx.helper.make_node("Reshape", [number, as_shape], [name]))

    def emit_last(self) -> None:
        """Add the Scan, and what its results would be that it has not."""
        node, emit, count = self._node, self._emit, len(self._node.input) - 2
        for at, (first, result) in enumerate(zip(node.input[2:], node.output[:count], strict=True)):
            if result and at not in self._states:
                last = {**self._counted.last, **self._ahead}
                emit.name(emit.constant(last[at]) if at in last else first, result)
        values = list(self._body.output)
        written = []
        for value, result in zip(values[1 + count :], node.output[count:], strict=True):
            if value.name in self._tables and result:
                emit.name(emit.constant(self._tables[value.name]), result)
            elif result:
                written.append((value, result))
        inputs = list(self._body.input)
        del self._body.input[:], self._body.output[:]
        self._body.input.extend(inputs[2 + at] for at in self._states)
        self._body.input.extend(onnx.helper.make_empty_tensor_value_info(name) for name in self._names)
        self._body.output.extend([values[1 + at] for at in self._states] + [value for value, _ in written])
        if not self._body.output:
            return  # all that the loop computes is known ahead
        drop_unused(self._body)
        # ONNX wants a name for each output: those that nobody asks for get one of their own.
        names = [*(node.output[at] for at in self._states), *(result for _, result in written)]
        emit.last(
            "Scan",
            *(node.input[2 + at] for at in self._states),
            *(array for array, _, _ in self._arrays),
            outputs=[name or f"{emit.prefix}unused{i}" for i, name in enumerate(names)],
            body=self._body,
            num_scan_inputs=len(self._arrays),
            scan_input_axes=[axis for _, axis, _ in self._arrays],
            scan_input_directions=[int(backward) for _, _, backward in self._arrays],
        )
