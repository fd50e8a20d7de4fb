"""Which inputs of ONNX's operators are really attributes: without their values nothing static can be compiled."""

from collections.abc import Iterable

import onnx

from .check.names import in_file
from .inline import all_graphs, all_nodes, subgraphs

_AXES = tuple(
    f"Reduce{kind}"
    for kind in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()  # noqa: SIM905
)

COMPILE_TIME: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "Compress": (1,),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Dropout": (1, 2),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "If": (0,),
    "Loop": (0, 1),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "NonMaxSuppression": (2, 3, 4),
    "OneHot": (1,),
    "Pad": (1, 2, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "SequenceAt": (1,),
    "SequenceErase": (1,),
    "SequenceInsert": (2,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
    **dict.fromkeys(_AXES, (1,)),
}
"""Positions of such inputs by the operator's name: sizes, axes, counts, scales and decisions."""

_STATIC = frozenset(["Shape", "Size"])
"""What needs no values, only the shape."""


def needed_values(graph: onnx.GraphProto) -> set[str]:
    """The inputs of a graph whose values must be known when it is compiled.

    Parameters
    ----------
    graph : onnx.GraphProto

    Returns
    -------
    set of str
        Names of inputs that `COMPILE_TIME` asks for, directly or through what is computed from them.
    """
    makers = {name: node for node in all_nodes(graph) for name in node.output if name}
    todo = {name for node in all_nodes(graph) for name in asked(node)}
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        maker = makers.get(name)
        if maker is not None and maker.op_type not in _STATIC:
            todo.update(_reads(maker))
    return seen & {value.name for value in graph.input}


def asked(node: onnx.NodeProto) -> list[str]:
    """The inputs of a node that are really attributes."""
    if node.domain not in ("", "ai.onnx"):
        return []
    indices = COMPILE_TIME.get(node.op_type, ())
    return [node.input[i] for i in indices if i < len(node.input) and node.input[i]]


def constants_of(model: onnx.ModelProto) -> set[str]:
    """The names of what a model says itself."""
    made = {name for node in all_nodes(model.graph) if node.op_type == "Constant" for name in node.output}
    return made | {tensor.name for graph in all_graphs(model.graph) for tensor in graph.initializer}


def make_constant(names: Iterable[str]) -> str:
    """What to do where values that are really attributes are computed when the model runs."""
    told = ", ".join(map(repr, sorted(set(map(in_file, names)))))
    return f"make {told}, or the inputs that it is computed from, constants (tvm_rammer.fix_inputs)"


def _reads(node: onnx.NodeProto) -> Iterable[str]:
    yield from (name for name in node.input if name)
    for graph in subgraphs(node):
        yield from (name for inner in graph.node for name in _reads(inner))
