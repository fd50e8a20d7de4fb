"""The types of a model's values, as far as onnx's shape inference knows them."""

import onnx

from .check.inference import infer_shapes
from .inline import all_graphs
from .read import default_opset, skeleton


def infer_types(model: onnx.ModelProto) -> dict[str, onnx.TypeProto.Tensor]:
    """Tensor types of the values of a model and its subgraphs, as far as onnx's shape inference knows them.

    Two branches of an If may give one name to values of two types: such a name is left out.
    """
    bare = skeleton(model, tables=False)
    for value in bare.graph.output:  # what is declared may be wrong: nobody checks it
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.Clear()
    try:
        bare = infer_shapes(bare, default_opset(model), data_prop=True)
    except Exception:  # an inference that fails knows nothing: TVM's frontend will say what is wrong
        return {}
    known: dict[str, onnx.TypeProto.Tensor] = {}
    unclear: set[str] = set()
    for graph in all_graphs(bare.graph):
        tensors = (onnx.helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in graph.initializer)
        # An output that is an input, too, has no type of its own: the last of a name counts.
        values = (*graph.output, *graph.value_info, *graph.input, *tensors)
        own = {value.name: value.type.tensor_type for value in values if value.type.HasField("tensor_type")}
        unclear |= {name for name, kind in own.items() if known.get(name, kind) != kind}
        known |= own
    return {name: kind for name, kind in known.items() if name not in unclear}


def static_dims(kind: onnx.TypeProto.Tensor | None) -> list[int] | None:
    """The dimensions of a type; None if it is unknown, or one of them is."""
    if kind is None or not kind.HasField("shape"):
        return None
    if any(d.WhichOneof("value") != "dim_value" or d.dim_value < 0 for d in kind.shape.dim):
        return None
    return [d.dim_value for d in kind.shape.dim]
