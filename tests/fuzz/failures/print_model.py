"""An ONNX model as Python that builds it with onnx.helper."""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper


def python_of_model(model: onnx.ModelProto) -> str | None:
    """An expression for the model, or None if it has something that is not printed."""
    try:
        opsets = ", ".join(f"helper.make_opsetid({o.domain!r}, {o.version})" for o in model.opset_import)
        text = (
            f"helper.make_model(\n    {_graph(model.graph, 1)},\n    opset_imports=[{opsets}],\n"
            f"    ir_version={model.ir_version},\n)"
        )
        built = eval(text, {"helper": helper, "numpy_helper": numpy_helper, "np": np})
        return text if built.SerializeToString() == model.SerializeToString() else None
    except Exception:
        return None


def python_of_array(array: np.ndarray) -> str:
    """An expression for an array."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        values = "[" + ", ".join(_number(v) for v in array.ravel()) + "]"
    else:
        values = repr(array.ravel().tolist())
    made = f'np.array({values}, "{array.dtype}")'
    return made if array.ndim == 1 else f"{made}.reshape({list(array.shape)})"


def _number(value: Any) -> str:
    return repr(float(value)) if np.isfinite(value) else f'float("{value}")'


def _graph(graph: onnx.GraphProto, depth: int) -> str:
    pad, inner = "    " * depth, "    " * (depth + 1)
    lists = [
        [_node(n, depth) for n in graph.node],
        [_info(i) for i in graph.input],
        [_info(o) for o in graph.output],
        [
            f"numpy_helper.from_array({python_of_array(numpy_helper.to_array(t))}, {t.name!r})"
            for t in graph.initializer
        ],
    ]
    nodes, *rest = [
        "[" + "".join(f"\n{inner}    {e}," for e in some) + f"\n{inner}]" if some else "[]" for some in lists
    ]
    arguments = [nodes, repr(graph.name), *rest]
    return "helper.make_graph(" + "".join(f"\n{inner}{a}," for a in arguments) + f"\n{pad})"


def _node(node: onnx.NodeProto, depth: int) -> str:
    parts = [repr(node.op_type), repr(list(node.input)), repr(list(node.output))]
    parts += [f"name={node.name!r}"] if node.name else []
    parts += [f"domain={node.domain!r}"] if node.HasField("domain") else []
    parts += [f"{a.name}={_attribute(a, depth + 1)}" for a in node.attribute]
    return f"helper.make_node({', '.join(parts)})"


def _attribute(attribute: onnx.AttributeProto, depth: int) -> str:
    value = helper.get_attribute_value(attribute)
    if isinstance(value, onnx.GraphProto):
        return _graph(value, depth)
    if isinstance(value, onnx.TensorProto):
        return f"numpy_helper.from_array({python_of_array(numpy_helper.to_array(value))}, {value.name!r})"
    if isinstance(value, bytes):
        return repr(value.decode())
    return repr([v.decode() if isinstance(v, bytes) else v for v in value] if isinstance(value, list) else value)


def _info(info: onnx.ValueInfoProto) -> str:
    kind = info.type.tensor_type
    dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in kind.shape.dim]
    return f"helper.make_tensor_value_info({info.name!r}, {kind.elem_type}, {dims if kind.HasField('shape') else None})"
