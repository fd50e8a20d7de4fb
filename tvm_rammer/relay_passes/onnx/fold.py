"""Evaluate, on the ONNX graph, what depends on constants and on static shapes only.

Exporters compute shapes by chains of Shape, Gather, Concat and the like. TVM's frontend wants the result: a
constant. So those nodes are evaluated one by one with onnx's reference evaluator, in rounds with shape
inference, until nothing changes. What is nondeterministic, or would grow too large, is left alone. What has no elements
is a constant, too, inputs among them: its shape is all there is.
"""

from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping

import numpy as np
import onnx
from onnx import numpy_helper

from ...errors import ModelError
from .check.file import bound_steps
from .check.inference import infer_node
from .evaluate.evaluator import run_node
from .infer import infer_types, static_dims
from .inline import all_graphs, inline_branch, rename_inputs, subgraphs
from .read import SMALL_ELEMENTS, default_opset, elements

LIMIT_BYTES = 512 << 20
"""A result that is larger than this and than four times its inputs is computed at run time."""

_GROWING = frozenset("ConstantOfShape Expand Tile Range OneHot EyeLike Pad".split())  # noqa: SIM905
FOLDED = _GROWING | frozenset(
    """Abs Add And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Clip
    Compress Concat Cos CumSum DequantizeLinear Div Equal Erf Exp Flatten Floor Gather GatherElements GatherND
    Greater GreaterOrEqual Identity IsInf IsNaN Less LessOrEqual Log Max Mean MelWeightMatrix Min Mod Mul Neg NonZero
    Not Or Pow Reciprocal ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape Round ScatterElements
    ScatterND Shape Sigmoid Sign Sin Size Slice Split Sqrt Squeeze Sub Sum Tanh TopK Transpose Trilu Unique Unsqueeze
    Where Xor""".split()  # noqa: SIM905 (a list of words reads better)
)

_CUTTING = frozenset("CenterCropPad ConstantOfShape Expand Pad Slice Split Tile TopK".split())  # noqa: SIM905
"""Operators that may make nothing of something; of others inference may say so where they are impossible."""

_LEARNT = frozenset(
    """Abs Add And BatchNormalization Cast Clip Concat Div Equal Erf Exp Flatten Gather Gelu Gemm Greater
    LayerNormalization Less Log LogSoftmax MatMul Max Min Mul Neg Not Or Pow Reciprocal ReduceMax ReduceMean ReduceSum
    Relu Reshape Sigmoid Softmax Split Sqrt Squeeze Sub Sum Tanh Transpose Unsqueeze Where""".split()  # noqa: SIM905
)
"""Operators whose results get types while the graph is walked: those of attention, where each layer's shapes are made
of what the layer before returned. A round that infers all types anew would find out about one of them."""

_Constants = MutableMapping[str, onnx.TensorProto]
_Types = Mapping[str, onnx.TypeProto.Tensor]


def fold_onnx(model: onnx.ModelProto) -> None:
    """Fold constants, static shapes, decided branches, Identity and Dropout of `model`, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Its inputs have static shapes.
    """
    _read_empty_inputs(model.graph)
    rounds = _Rounds(model)
    while rounds.once():
        pass
    drop_unused(model.graph)


def _read_empty_inputs(graph: onnx.GraphProto) -> None:
    """Let nodes read a constant in the place of each input that has no elements."""
    known = {tensor.name for tensor in graph.initializer}
    constants = {value.name: _empty(f"{value.name}/empty", value.type.tensor_type) for value in graph.input}
    alias = {name: tensor.name for name, tensor in constants.items() if tensor is not None}
    graph.initializer.extend(t for t in constants.values() if t is not None and t.name not in known)
    for node in graph.node if alias else ():
        rename_inputs(node, alias)


def _empty(name: str, kind: onnx.TypeProto.Tensor | None) -> onnx.TensorProto | None:
    """A constant of a type, if it is known to have no element."""
    dims = static_dims(kind)
    if kind is None or dims is None or 0 not in dims or not kind.elem_type:
        return None
    return onnx.TensorProto(name=name, data_type=kind.elem_type, dims=dims, raw_data=b"")


class _Rounds:
    """What one round of folding knows: the model, and what shape inference says of its values."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model, self.opset = model, default_opset(model)
        self.types: dict[str, onnx.TypeProto.Tensor] = {}
        self.used: set[str] = set()
        self.within: set[str] = set()
        self.refused: set[str] = set()

    def once(self) -> bool:
        """Walk the graph once; return whether anything changed."""
        graph = self.model.graph
        bound_steps(self.model)
        self.types = infer_types(self.model)
        self.used = used_names(graph)
        self.within = _names_within(graph)
        return self.walk(graph, ChainMap({tensor.name: tensor for tensor in graph.initializer}))

    def walk(self, graph: onnx.GraphProto, constants: ChainMap[str, onnx.TensorProto]) -> bool:
        outputs = {value.name for value in graph.output}
        alias: dict[str, str] = {}
        kept: list[onnx.NodeProto] = []
        todo = list(reversed(graph.node))
        changed = False
        while todo:
            node = todo.pop()
            rename_inputs(node, alias)
            branch = _decided_branch(node, constants)
            if branch is not None:
                # By its result: other calls of this function inline, too, and a value's name is defined once.
                nodes, tensors = inline_branch(node, branch, f"{next(filter(None, node.output), 'none')}/inlined/")
                todo.extend(reversed(nodes))
                _add(graph, constants, tensors)
            elif self._is_identity(node, constants) and node.output[0] not in outputs:
                alias[node.output[0]] = node.input[0]
            elif (results := self._evaluate(node, constants)) is not None:
                _add(graph, constants, results)
            else:
                for inner in subgraphs(node):
                    own = {tensor.name: tensor for tensor in inner.initializer}
                    changed |= self.walk(inner, constants.new_child(own))
                kept.append(node)
                if len(constants.maps) == 1:
                    self._learn(node, constants)
                continue
            changed = True
        for value in graph.output:  # an output of a branch may be a value that an Identity gave a name
            value.name = alias.get(value.name, value.name)
        del graph.node[:]
        graph.node.extend(kept)
        return changed

    def _learn(self, node: onnx.NodeProto, constants: _Constants) -> None:
        """Remember the type of a result that shapes folded in this round decide."""
        name = node.output[0]
        if node.op_type not in _LEARNT or name in self.within or static_dims(self.types.get(name)) is not None:
            return
        try:
            made = infer_node(node, self.types, constants, self.opset)
        except onnx.shape_inference.InferenceError:
            return  # `check_nodes` says so
        self.types |= {
            name: kind.tensor_type for name, kind in made.items() if static_dims(kind.tensor_type) is not None
        }

    def _is_identity(self, node: onnx.NodeProto, constants: _Constants) -> bool:
        if node.domain not in ("", "ai.onnx") or not node.input or not node.input[0]:
            return False
        if node.op_type == "Dropout":
            training = len(node.input) > 2 and node.input[2]
            if training and (node.input[2] not in constants or bool(_array(constants, node.input[2]))):
                return False
            return not any(name in self.used for name in node.output[1:] if name)
        return node.op_type == "Identity"

    def _evaluate(self, node: onnx.NodeProto, constants: _Constants) -> list[onnx.TensorProto] | None:
        if node.domain not in ("", "ai.onnx") or node.output[0] in self.refused:
            return None
        if node.op_type in ("Shape", "Size"):
            return _shape_or_size(node, self.types)
        if (empty := self._all_empty(node)) is not None:
            return empty
        if node.op_type != "Constant":
            if node.op_type not in FOLDED or not all(name in constants for name in node.input if name):
                return None
            if not node.input or self._too_large(node, constants):
                return None
        arrays = {name: _array(constants, name) for name in node.input if name}
        results = run_node(node, arrays, self.model)
        if results is None:
            self.refused.add(node.output[0])
        return results

    def _all_empty(self, node: onnx.NodeProto) -> list[onnx.TensorProto] | None:
        """The results of a node, if none has an element."""
        if node.op_type not in _CUTTING and all(_empty(name, self.types.get(name)) is None for name in node.input):
            return None
        results = [_empty(name, self.types.get(name)) for name in node.output if name]
        return None if None in results else [tensor for tensor in results if tensor is not None]

    def _too_large(self, node: onnx.NodeProto, constants: _Constants) -> bool:
        counts = [elements(constants[name].dims) for name in node.input if name]
        sizes = [_static_size(self.types.get(name)) for name in node.output if name]
        if any(size is None for size in sizes):
            return node.op_type in _GROWING or max(counts) > SMALL_ELEMENTS
        return sum(size or 0 for size in sizes) > max(LIMIT_BYTES, 4 * 8 * sum(counts))


def _names_within(graph: onnx.GraphProto) -> set[str]:
    """Names in the graphs that the nodes of a graph hold: two branches may use one for values of two types."""
    inner = [each for node in graph.node for outer in subgraphs(node) for each in all_graphs(outer)]
    made = {name for each in inner for node in each.node for name in node.output}
    return made | {value.name for each in inner for value in each.input}


def used_names(graph: onnx.GraphProto) -> set[str]:
    """Names that some node, here or in a branch, reads, and the outputs."""
    used = {value.name for value in graph.output}
    for node in graph.node:
        used.update(node.input)
        for inner in subgraphs(node):
            used |= used_names(inner)
    return used


def drop_unused(graph: onnx.GraphProto) -> None:
    """Remove nodes and initializers that no output depends on, in place; in the graphs that nodes hold, too."""
    used = {value.name for value in graph.output}
    kept: list[onnx.NodeProto] = []
    for node in reversed(graph.node):
        if any(name in used for name in node.output if name):
            kept.append(node)
            used.update(name for name in node.input if name)
            for inner in subgraphs(node):
                drop_unused(inner)
                used |= used_names(inner)
    tensors = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(reversed(kept))
    graph.initializer.extend(tensors)


def _decided_branch(node: onnx.NodeProto, constants: _Constants) -> onnx.GraphProto | None:
    if node.op_type != "If" or not node.input or node.input[0] not in constants:
        return None
    taken = "then_branch" if _array(constants, node.input[0]).any() else "else_branch"
    return next((a.g for a in node.attribute if a.name == taken), None)


def _shape_or_size(node: onnx.NodeProto, types: _Types) -> list[onnx.TensorProto] | None:
    dims = static_dims(types.get(node.input[0]))
    if dims is None:
        return None
    attributes = {a.name: a.i for a in node.attribute}
    if node.op_type == "Size":
        result = np.array(elements(dims), dtype="int64")
    else:
        result = np.array(dims[attributes.get("start", 0) : attributes.get("end", len(dims))], dtype="int64")
    return [numpy_helper.from_array(result, node.output[0])]


def _static_size(kind: onnx.TypeProto.Tensor | None) -> int | None:
    dims = static_dims(kind)
    if kind is None or dims is None:
        return None
    return 8 * elements(dims) if kind.elem_type in (7, 11, 13) else 4 * elements(dims)


def _array(constants: _Constants, name: str) -> np.ndarray:
    try:
        return numpy_helper.to_array(constants[name])
    except Exception as error:
        raise ModelError(
            f"the values of constant {name!r} do not fit its type or shape; export the model again"
        ) from error


def _add(
    graph: onnx.GraphProto, constants: ChainMap[str, onnx.TensorProto], tensors: Iterable[onnx.TensorProto]
) -> None:
    for tensor in tensors:
        graph.initializer.append(tensor)
        constants.maps[0][tensor.name] = graph.initializer[-1]
