"""Layers with channels last, by those with channels second, between transpositions.

ONNX Runtime saves quantised models so at its highest level. Their weights are as they were.
"""

from typing import Any

from onnx import helper

from ...emit import Emitter, NodeView
from ...read import MICROSOFT

_OWN = {"QLinearConv": "", "NhwcMaxPool": "", "NhwcConv": "", "NhwcFusedConv": MICROSOFT}
"""The domains of the same layers with channels second; of others it is that of the node."""


def channels_second(node: NodeView, emit: Emitter) -> Emitter | None:
    """Put transpositions around a layer.

    Parameters
    ----------
    node : NodeView
        Of the domain com.microsoft. Its channels are last where its attribute or its name says so.
    emit : Emitter

    Returns
    -------
    Emitter or None
        None where the image's shape is not known yet.
    """
    dims, kind = node.dims(0), node.node.op_type
    given: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.node.attribute}
    last = given.pop("channels_last", 0) or kind.startswith("Nhwc")
    if dims is None:
        return None
    rank, inputs, domain = len(dims), list(node.node.input), _OWN.get(kind, node.node.domain)
    kind = kind.removeprefix("Nhwc")
    if not last:
        emit.last(kind, *inputs, outputs=node.node.output, domain=domain, **given)
        return emit
    there, back = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
    for index in (0, 3) if kind == "FusedConv" else (0,):  # what is added is an image, too
        if node.input(index):
            inputs[index] = emit("Transpose", inputs[index], perm=there)
    emit.name(emit("Transpose", emit(kind, *inputs, domain=domain, **given), perm=back), node.output)
    return emit
