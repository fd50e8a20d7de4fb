"""Gates of a step, which are parts of one product, in blocks: whoever computes some columns has all their gates."""

from dataclasses import dataclass

import onnx

from ..emit import Constants, Emitter, Types, attribute
from ..fold import drop_unused
from ..lower.elementwise import BY_ELEMENT
from ..lower.recurrence.cells import columns_of
from ..lower.recurrence.looped import BLOCKS
from .scans import ScanChange, emit_again, replace_scans


def put_gates_in_blocks(model: onnx.ModelProto) -> bool:
    """Reorder the columns of products in Scans that are split into gates, in place.

    Otherwise a vEU that computes some columns of the product would have a part of one gate, and wait for the others.
    The results are the same numbers.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded, of opset 10 or later; what its Scans compute is computed within them (`ahead` comes after).

    Returns
    -------
    bool
        Whether there were any.
    """
    return replace_scans(model, lambda *scan: _Blocks(*scan).replaced())


@dataclass(frozen=True, slots=True)
class _Split:
    """A sum of products, split into equal parts along its columns.

    Parameters
    ----------
    node : onnx.NodeProto
        The Split.
    gates, hidden : int
        How many parts, and how wide.
    weights : tuple of (onnx.NodeProto, int) or None
        Which inputs have as many columns, and are constants: of the products, and added to them. None where these are
        not all that has columns.
    """

    node: onnx.NodeProto
    gates: int
    hidden: int
    weights: tuple[tuple[onnx.NodeProto, int], ...] | None


class _Blocks(ScanChange):
    """A Scan whose gates are put in blocks; parameters as there."""

    def __init__(self, node: onnx.NodeProto, constants: Constants, types: Types, opset: int) -> None:
        super().__init__(node, constants, types, opset, how="blocks")
        self._step = self.emit.inner()
        self._made = {name: each for each in self.body.node for name in each.output if name}
        self._moving = {value.name for value in self.body.input} | set(self._made)
        self._copies: dict[str, str] = {}
        self._uses: dict[str, int] = {}
        for each in self.body.node:
            for name in each.input:
                self._uses[name] = self._uses.get(name, 0) + 1
        for value in self.body.output:
            self._uses[value.name] = self._uses.get(value.name, 0) + 1

    def replaced(self) -> Emitter | None:
        """The Scan with its gates in blocks; None where it has none."""
        splits = {each.output[0]: found for each in self.body.node if (found := self._split(each)) is not None}
        if not splits:
            return None
        nodes: list[onnx.NodeProto] = []
        for each in self.body.node:
            if each.output[0] in splits:
                before = len(self._step.nodes)
                self._replace(splits[each.output[0]])
                nodes += self._step.nodes[before:]
            else:
                nodes.append(each)
        del self.body.node[:]
        self.body.node.extend(nodes)
        self.body.initializer.extend(self._step.tensors)
        drop_unused(self.body)
        return emit_again(self.emit, self.node, *self.node.input, body=self.body)

    def _split(self, node: onnx.NodeProto) -> _Split | None:
        """What a node says if it splits rows into equal parts; else None."""
        dims = self.dims(node.input[0]) if node.op_type == "Split" and node.domain in ("", "ai.onnx") else None
        if dims is None or len(dims) != 2 or attribute(node, "axis", 0) % 2 != 1 or not all(node.output):
            return None
        hidden = dims[1] // len(node.output)
        if any(self.dims(name) != [dims[0], hidden] for name in node.output):
            return None
        found = self._weights(node.input[0], dims[1])
        return _Split(node, len(node.output), hidden, None if found is None else tuple(found))

    def _weights(self, name: str, columns: int) -> list[tuple[onnx.NodeProto, int]] | None:
        """The constants whose columns are those of a value; None where others may have to be reordered."""
        maker = self._made.get(name)
        if maker is None or self._uses[name] > 1 or maker.domain not in ("", "ai.onnx"):
            return None
        if maker.op_type == "MatMul":
            fits = maker.input[1] not in self._moving and len(self.dims(maker.input[1]) or ()) == 2
            return [(maker, 1)] if fits else None
        found: list[tuple[onnx.NodeProto, int]] = []
        for at, read in enumerate(maker.input if maker.op_type in BY_ELEMENT else ()):
            dims = self.dims(read)
            if dims is None:
                return None
            if not dims or dims[-1] == 1:
                continue  # the same for all columns
            more = self._weights(read, columns) if read in self._moving else [(maker, at)]
            if more is None or dims[-1] != columns:
                return None
            found += more
        return found or None

    def _replace(self, split: _Split) -> None:
        """Read the parts where they are, after the columns were reordered."""
        block = next((b for b in BLOCKS if split.hidden % b == 0), split.hidden) if split.weights else split.hidden
        for node, at in split.weights or () if block < split.hidden else ():
            node.input[at] = self._reordered(node.input[at], split, block)
        for gate, name in enumerate(split.node.output):
            own = range(gate, gate + 1)
            self._step.name(columns_of(self._step, split.node.input[0], split.hidden, block, split.gates, own), name)

    def _reordered(self, name: str, split: _Split, block: int) -> str:
        """A constant with its columns in blocks."""
        emit, dims = self.emit, self.dims(name) or []
        if name in self.own:
            if name not in self._copies:
                self._copies[name] = emit.copy(self.own[name])
            name = self._copies[name]
        apart = emit.reshape(name, [*dims[:-1], split.gates, split.hidden // block, block])
        rank = len(dims) - 1
        return emit.reshape(emit("Transpose", apart, perm=[*range(rank), rank + 1, rank, rank + 2]), dims)
