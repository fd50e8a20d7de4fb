"""The branches of an If and the body of a Loop as models of their own, and a call in the place of the node.

This comes after folding and unrolling: what is left is decided by data. A call is a node of the domain `DOMAIN`, whose
attribute names the module that it became.
"""

from collections.abc import Iterator, MutableMapping

import numpy as np
import onnx
import tvm
from onnx import helper

from ....errors import UnsupportedOperatorError
from ...bindings import dtype_of, static_shape, tensor_fields
from .branches import branches
from .loop import DOMAIN, FIRST_ROWS, loop
from .part import Load, Part

MODULE = "module"
"""The attribute of a call: its key among the modules."""

_CONTROL = {"If": branches, "Loop": loop}


def is_control(node: onnx.NodeProto) -> bool:
    """Whether a node is an If or a Loop."""
    return node.domain in ("", "ai.onnx") and node.op_type in _CONTROL


def is_made_here(node: onnx.NodeProto) -> bool:
    """Whether a node is one of those that `outline` puts in the place of others."""
    return node.domain == DOMAIN


def module_of(node: onnx.NodeProto) -> str | None:
    """The key of the module that a node calls; None for a node that is no such call."""
    if not is_made_here(node) or node.op_type == FIRST_ROWS:
        return None
    return next(str(a.s, "utf-8") for a in node.attribute if a.name == MODULE)


def outline(
    model: onnx.ModelProto, modules: MutableMapping[str, tvm.IRModule], load: Load, *, keeps_loops: bool = False
) -> None:
    """Replace the first If or Loop of a model by a call, in place.

    One at a time: what it returns has known shapes from now on, so that others may be folded or unrolled.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded; loops of a known number of rounds are unrolled.
    modules : mutable mapping of str to tvm.IRModule
        Gets what the node became.
    load : callable
        Imports a model whose inputs have static shapes.
    keeps_loops : bool
        Whether a Loop may become a loop of an rProgram.

    Raises
    ------
    UnsupportedOperatorError
        How many axes a value has depends on data, or on which branch is taken, or changes from round to round.
    ModelError
        As `load`.
    """
    nodes = list(model.graph.node)
    place = next(number for number, node in enumerate(nodes) if is_control(node))
    part = Part(model, nodes[place], load, keeps_loops=keeps_loops)
    kind, key = part.node.op_type, f"{part.node.op_type.lower()}_by_data{len(modules)}"
    modules[key] = _CONTROL[kind](part)
    call = helper.make_node(
        f"{kind}ByData", part.inputs, part.outputs, name=part.node.name, domain=DOMAIN, **{MODULE: key}
    )
    del model.graph.node[:]
    model.graph.node.extend([*nodes[:place], *part.before, call, *part.after, *nodes[place + 1 :]])
    model.graph.initializer.extend(part.tensors)
    model.graph.value_info.extend(_declared(part, modules[key]))
    if DOMAIN not in {opset.domain for opset in model.opset_import}:
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))


def _declared(part: Part, mod: tvm.IRModule) -> Iterator[onnx.ValueInfoProto]:
    """The types of what a call returns."""
    for name, field in zip(part.outputs, tensor_fields(mod["main"].ret_ty) or (), strict=True):
        shape = part.open_sizes.get(name) or static_shape(field)
        if shape is None:
            raise UnsupportedOperatorError(
                f"{part.text} returns {name!r}, whose shape depends on data; return what has a static shape"
            )
        if name:
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype_of(field)))
            yield helper.make_tensor_value_info(name, kind, shape)
