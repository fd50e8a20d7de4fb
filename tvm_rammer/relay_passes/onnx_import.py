"""An ONNX model of static shapes -> Relax, through TVM's frontend."""

import contextlib
import io
import warnings
from collections import Counter
from collections.abc import Callable

import onnx
import onnx.inliner
import onnx.version_converter
import tvm

from ..errors import ModelError, UnsupportedOperatorError
from .onnx_inline import subgraphs
from .onnx_read import first_line, skeleton

OLDEST_OPSET = 13
"""What a model is converted to where TVM's frontend would misread it."""

_DIRECT = frozenset({"If", "Constant"})
_LISTS = {
    onnx.AttributeProto.INTS: "ints",
    onnx.AttributeProto.FLOATS: "floats",
    onnx.AttributeProto.STRINGS: "strings",
}
_MISREAD_BEFORE = {"Slice": 10, "Resize": 11, "Upsample": 9}
_OF_MICROSOFT = frozenset(
    [
        "Attention",
        "BiasGelu",
        "EmbedLayerNormalization",
        "FastGelu",
        "Gelu",
        "MatMulInteger16",
        "SkipLayerNormalization",
    ]
)


def modernise(model: onnx.ModelProto) -> onnx.ModelProto:
    """Rewrite what TVM's frontend would misread, or lacks, by operators that it has.

    The frontend takes an operator older than its oldest converter for one of that converter's version: it ignores
    the broadcast attributes before opset 7, and fails on the attributes of the first Slice. Operators that ONNX
    itself defines by others (Celu, the Attention of opset 23) are expanded.

    Parameters
    ----------
    model : onnx.ModelProto

    Returns
    -------
    onnx.ModelProto
        The same one where nothing was to be done.

    Raises
    ------
    ModelError
        onnx's version converter fails.
    """
    version = default_opset(model)
    operators = {node.op_type for node in _all_nodes(model.graph)}
    if version < 7 or any(op in operators and version < since for op, since in _MISREAD_BEFORE.items()):
        try:
            model = _on_skeleton(model, lambda bare: onnx.version_converter.convert_version(bare, OLDEST_OPSET))
        except Exception as error:
            raise ModelError(
                f"the model has opset {version}, and onnx cannot convert it to {OLDEST_OPSET}: {first_line(error)}; "
                f"export it again with opset {OLDEST_OPSET} or later"
            ) from error
    missing = sorted({("", n.op_type) for n in _all_nodes(model.graph) if n.domain in ("", "ai.onnx") and not _has(n)})
    if missing:
        with contextlib.suppress(Exception):  # what cannot be expanded is reported as unsupported
            model = _on_skeleton(model, lambda bare: _expand(bare, missing))
    return model


def import_onnx(model: onnx.ModelProto) -> tvm.IRModule:
    """Import a model by TVM's frontend.

    Parameters
    ----------
    model : onnx.ModelProto
        Static, folded and modernised.

    Returns
    -------
    tvm.IRModule
        Its function "main" takes the model's inputs, by their own names; weights are constants.

    Raises
    ------
    UnsupportedOperatorError
        The frontend lacks an operator.
    ModelError
        It fails.
    """
    from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

    check_supported(model)
    for node in _all_nodes(model.graph):
        _drop_empty_attributes(node)
    # `from_onnx` would first serialize the model, weights and all, to check it once more.
    importer = ONNXGraphImporter({}, "float32", sanitize=False)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return importer.from_onnx(model.graph, default_opset(model))
    except Exception as error:
        raise ModelError(
            f"TVM's ONNX frontend cannot import the model: {first_line(error)}; "
            f"try to simplify it (onnxsim) or to export it with another opset"
        ) from error


def check_supported(model: onnx.ModelProto) -> None:
    """Check that TVM's frontend has all operators of a model.

    Raises
    ------
    UnsupportedOperatorError
        Names all that it lacks, how many there are of each, and one node of each as an example.
    """
    counts: Counter[str] = Counter()
    example: dict[str, str] = {}
    for node in _all_nodes(model.graph):
        if not _has(node):
            kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            counts[kind] += 1
            example.setdefault(kind, node.name or next((o for o in node.output if o), "?"))
    if counts:
        listed = ", ".join(f"{kind} ({n} x, e.g. {example[kind]!r})" for kind, n in sorted(counts.items()))
        raise UnsupportedOperatorError(
            f"TVM's ONNX frontend lacks {listed}; export the model without them: recurrent layers unrolled, "
            f"loops of constant length unrolled, quantised layers as QuantizeLinear and DequantizeLinear"
        )


def default_opset(model: onnx.ModelProto) -> int:
    """Version of ONNX's own operators in a model."""
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)


def _has(node: onnx.NodeProto) -> bool:
    from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map

    if node.domain in ("", "ai.onnx"):
        own = node.op_type != "Attention"  # TVM's converter of that name is Microsoft's, another operator
        return node.op_type in _DIRECT or (own and node.op_type in _get_convert_map())
    return node.domain == "com.microsoft" and node.op_type in _OF_MICROSOFT and node.op_type in _get_convert_map()


def _all_nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    nodes = []
    for node in graph.node:
        nodes.append(node)
        for inner in subgraphs(node):
            nodes.extend(_all_nodes(inner))
    return nodes


def _expand(bare: onnx.ModelProto, operators: list[tuple[str, str]]) -> onnx.ModelProto:
    typed = onnx.shape_inference.infer_shapes(bare, data_prop=True)
    expanded = onnx.inliner.inline_selected_functions(typed, operators, inline_schema_functions=True)
    del expanded.graph.value_info[:]
    return expanded


def _on_skeleton(model: onnx.ModelProto, change: Callable[[onnx.ModelProto], onnx.ModelProto]) -> onnx.ModelProto:
    bare = skeleton(model)
    large = {tensor.name for tensor in model.graph.initializer} - {tensor.name for tensor in bare.graph.initializer}
    changed = change(bare)
    inputs = [value for value in changed.graph.input if value.name not in large]
    del changed.graph.input[:]
    changed.graph.input.extend(inputs)
    changed.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in large)
    return changed


def _drop_empty_attributes(node: onnx.NodeProto) -> None:
    """TVM's frontend cannot parse an attribute that is an empty list; ONNX means its default by that."""
    kept = [a for a in node.attribute if a.type not in _LISTS or len(getattr(a, _LISTS[a.type]))]
    if len(kept) < len(node.attribute):
        del node.attribute[:]
        node.attribute.extend(kept)
