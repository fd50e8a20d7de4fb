"""An ONNX model of static shapes -> Relax, through TVM's frontend."""

import contextlib
import io
import warnings
from collections import Counter

import onnx
import tvm

from ...errors import ModelError, UnsupportedOperatorError, first_line
from .inline import all_nodes
from .read import default_opset

_DIRECT = frozenset({"If", "Constant"})
_LISTS = {
    onnx.AttributeProto.INTS: "ints",
    onnx.AttributeProto.FLOATS: "floats",
    onnx.AttributeProto.STRINGS: "strings",
}
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


def import_onnx(model: onnx.ModelProto) -> tvm.IRModule:
    """Import a model by TVM's frontend.

    Parameters
    ----------
    model : onnx.ModelProto
        Of static shapes, folded, in an opset whose operators the frontend reads (`convert_opset`).

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
    for node in all_nodes(model.graph):
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
    for node in all_nodes(model.graph):
        if not has_converter(node):
            kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            counts[kind] += 1
            example.setdefault(kind, node.name or next((o for o in node.output if o), "?"))
    if counts:
        listed = ", ".join(f"{kind} ({n} x, e.g. {example[kind]!r})" for kind, n in sorted(counts.items()))
        raise UnsupportedOperatorError(
            f"TVM's ONNX frontend lacks {listed}; export the model without them: recurrent layers "
            f"and loops of a length that is known, quantised layers as QuantizeLinear and DequantizeLinear"
        )


def has_converter(node: onnx.NodeProto) -> bool:
    """Whether TVM's frontend has the operator of a node."""
    from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map

    if node.domain in ("", "ai.onnx"):
        own = node.op_type != "Attention"  # TVM's converter of that name is Microsoft's, another operator
        return node.op_type in _DIRECT or (own and node.op_type in _get_convert_map())
    return node.domain == "com.microsoft" and node.op_type in _OF_MICROSOFT and node.op_type in _get_convert_map()


def _drop_empty_attributes(node: onnx.NodeProto) -> None:
    """TVM's frontend cannot parse an attribute that is an empty list; ONNX means its default by that."""
    kept = [a for a in node.attribute if a.type not in _LISTS or len(getattr(a, _LISTS[a.type]))]
    if len(kept) < len(node.attribute):
        del node.attribute[:]
        node.attribute.extend(kept)
