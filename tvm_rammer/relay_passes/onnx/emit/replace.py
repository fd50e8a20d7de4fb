"""Replace the nodes of a model, one by one."""

from collections import ChainMap
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import onnx

from ....errors import LongLoopError, ModelError
from ..check.file import left_out
from ..check.inference import infer_node
from ..check.names import name_of
from ..infer import infer_types
from ..inline import subgraphs
from ..read import default_opset
from .emitter import Emitter
from .node_view import Constants, Types


@dataclass(frozen=True, slots=True)
class _Replacing:
    """The walk of `replace_nodes`. A function in there that calls itself would keep the model until it is collected."""

    replacement: Callable[[onnx.NodeProto, Constants, Types], Emitter | None]
    types: dict[str, onnx.TypeProto.Tensor]
    opset: int
    found: set[str] = field(default_factory=set)

    def over(self, graph: onnx.GraphProto, outer: ChainMap[str, onnx.TensorProto], *, chosen: bool) -> bool:
        """Replace nodes of a graph, which may be one that is `chosen`; whether any was."""
        constants = outer.new_child({tensor.name: tensor for tensor in graph.initializer})
        nodes: list[onnx.NodeProto] = []
        tensors: list[onnx.TensorProto] = []
        changed = False
        for node in graph.node:
            emit = self._of(node, constants, chosen)
            if any(name in self.found or name not in self.types for name in node.output if name):
                self._find_types([node] if emit is None else emit.nodes, emit.tensors if emit else [], constants)
            if emit is None:
                nodes.append(node)
                for inner in subgraphs(node):
                    changed |= self.over(inner, constants, chosen=chosen or node.op_type == "If")
            else:
                nodes += emit.nodes
                tensors += emit.tensors
                changed = True
        del graph.node[:]
        graph.node.extend(nodes)
        graph.initializer.extend(tensors)
        return changed

    def _find_types(
        self,
        nodes: Sequence[onnx.NodeProto],
        tensors: Sequence[onnx.TensorProto],
        constants: ChainMap[str, onnx.TensorProto],
    ) -> None:
        """Types of what onnx's inference of the model did not come to, since an operator before was none of onnx's.

        Such operators may be a long chain, as those of a quantised model are: each waits for what it reads.
        """
        seen = constants.new_child({tensor.name: tensor for tensor in tensors})
        for node in nodes:
            for name in self.found.intersection(node.output):  # another branch of an If may have used the name
                del self.types[name]
                self.found.remove(name)
            if node.domain not in ("", "ai.onnx") or any(True for _ in subgraphs(node)):
                continue
            with suppress(onnx.shape_inference.InferenceError):  # who checks the node will say so
                made = {name: kind.tensor_type for name, kind in infer_node(node, self.types, seen, self.opset).items()}
                new = {name: kind for name, kind in made.items() if name not in self.types and kind.elem_type}
                self.types.update(new)
                self.found.update(new)

    def _of(self, node: onnx.NodeProto, constants: Constants, chosen: bool) -> Emitter | None:
        try:
            emit = self.replacement(node, constants, self.types)
            if emit and any(left_out(made, self.opset) is not None for made in emit.nodes):
                raise ModelError(f"{node.op_type} {name_of(node)!r} leaves out an input that it needs; export it again")
            return emit
        except LongLoopError:  # it asks for another way to compile the model, not for another branch
            raise
        except ModelError:
            if chosen:
                return None
            raise


def replace_nodes(
    model: onnx.ModelProto, replacement: Callable[[onnx.NodeProto, Constants, Types], Emitter | None]
) -> bool:
    """Replace nodes of a model and of its subgraphs, in place.

    What is wrong in a branch of an If is no error yet, for the branch may never be chosen: the node stays, and is asked
    for again when the branch is a graph of its own (`control.branches`).

    Parameters
    ----------
    model : onnx.ModelProto
    replacement : callable
        Gets a node, the constants that it can see, and the types of the model's values, as far as they are known.
        Returns what takes the node's place, or None for a node that stays.

    Returns
    -------
    bool
        Whether any node was replaced.
    """
    walk = _Replacing(replacement, infer_types(model), default_opset(model))
    return walk.over(model.graph, ChainMap(), chosen=False)
