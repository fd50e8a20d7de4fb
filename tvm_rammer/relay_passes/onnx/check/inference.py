"""onnx's shape inference, asked in a way that it survives.

It follows the values of what may be sizes through some operators (`_FOLLOWED`), element by element: of a long vector
that takes a kilobyte for each. And it ends the process in two cases. One is a Slice of an axis with less than no
elements, which comes of a window that is larger than its image, of pads that take away more than there is, or of what a
file says. The other are operators that look at the type of what they read where nobody knows it (`_BLIND`). And of
pools it counts windows that are none. So onnx sees all of these under names of this package, whose inference asks first
and calls onnx's then.
"""

import atexit
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache

import onnx
from onnx import defs, helper

from ....serial import serial
from ..inline import all_graphs
from ..read import SMALL_ELEMENTS, elements
from .pools import POOLS, leave_out

_DOMAINS = {"": "tvm_rammer", "ai.onnx.ml": "tvm_rammer.ml"}
"""Where operators of a domain are found under other names; of the same opset."""
_FOLLOWED = frozenset(["Add", "Cast", "Concat", "Gather", "Mul", "Slice", "Squeeze", "Sub", "Unsqueeze"])
_BLIND = {
    "": frozenset(["EyeLike", "RegexFullMatch"]),
    "ai.onnx.ml": frozenset(["DictVectorizer", "LabelEncoder", "TreeEnsemble"]),
}
"""Operators, by domain, whose inference looks at the type of their first input without asking whether it is known."""
Infer = Callable[[onnx.shape_inference.InferenceContext], None]
"""What infers the types of a node's results."""
_RENAMED = {"": _FOLLOWED | _BLIND[""] | POOLS, "ai.onnx.ml": _BLIND["ai.onnx.ml"]}


def infer_shapes(model: onnx.ModelProto, opset: int, *, data_prop: bool = False) -> onnx.ModelProto:
    """Infer the types of a model.

    Parameters
    ----------
    model : onnx.ModelProto
        To be inferred, and nothing else: its nodes are renamed.
    opset : int
        Of ONNX's own operators.
    data_prop : bool
        Whether to follow the values of sizes.
    """
    _shield(model, opset)
    return onnx.shape_inference.infer_shapes(model, data_prop=data_prop)


def _shield(model: onnx.ModelProto, opset: int) -> None:
    """Let onnx follow nothing but sizes, in place: it asks this package about the same operators of anything else."""
    found = set()
    for graph in all_graphs(model.graph):
        sizes = {tensor.name for tensor in graph.initializer}
        for node in graph.node:
            domain = "" if node.domain == "ai.onnx" else node.domain
            if domain == "" and _makes_sizes(node, sizes):
                sizes.update(node.output)
            elif node.op_type in _RENAMED.get(domain, ()):
                found.add(domain)
                node.domain, node.op_type = _DOMAINS[domain], _name(node.op_type)
    if found:
        _register()
        opsets = {known.domain: known.version for known in model.opset_import} | {"": opset}
        model.opset_import.extend(helper.make_opsetid(_DOMAINS[d], max(1, opsets.get(d, 1))) for d in found)


def _makes_sizes(node: onnx.NodeProto, sizes: Collection[str]) -> bool:
    """Whether the results of a node are sizes, or made of these and of few numbers alone."""
    if node.op_type == "Constant":
        return all(elements(attribute.t.dims) <= SMALL_ELEMENTS for attribute in node.attribute)
    return node.op_type in ("Shape", "Size") or (
        node.op_type in _FOLLOWED and all(name in sizes for name in node.input if name)
    )


def _name(kind: str) -> str:
    """A name of its own: other readers of ONNX want each operator to have one, whatever its domain."""
    return f"Rammer{kind}"


@serial
@cache
def _register() -> None:
    """Tell onnx of the operators of this package; until Python ends, since it calls back."""
    for own in defs.get_all_schemas_with_history():
        if own.name in _RENAMED.get(own.domain, ()):
            constraints = [(c.type_param_str, c.allowed_type_strs, c.description) for c in own.type_constraints]
            name, since, domain = _name(own.name), own.since_version, _DOMAINS[own.domain]
            schema = defs.OpSchema(
                name, domain, since, inputs=own.inputs, outputs=own.outputs, type_constraints=constraints
            )
            infer = own.get_type_and_shape_inference_function()
            if own.name in POOLS:
                infer = _with_windows(infer)
            schema.set_type_and_shape_inference_function(_careful(infer, blind=own.name in _BLIND[own.domain]))
            defs.register_schema(schema)
            atexit.register(defs.deregister_schema, name, since, domain)


def _with_windows(infer: Infer) -> Infer:
    """An inference of a pool that counts the windows that there are."""

    def inferred(context: onnx.shape_inference.InferenceContext) -> None:
        infer(context)
        image = context.get_input_type(0)
        for n in range(context.get_num_outputs() if image is not None else 0):
            kind = context.get_output_type(n)
            if kind is not None:
                context.set_output_type(n, leave_out(kind, image, context.get_attribute))

    return inferred


def _careful(infer: Infer, *, blind: bool) -> Infer:
    """An inference that knows nothing where onnx's would end the process, or where it fails."""

    def inferred(context: onnx.shape_inference.InferenceContext) -> None:
        given = context.get_input_type(0)
        if has_impossible(given) if given is not None else blind:
            return
        try:
            infer(context)
        except onnx.shape_inference.InferenceError:
            return  # as onnx itself does: the type of the result stays unknown

    return inferred


def infer_node(
    node: onnx.NodeProto,
    types: Mapping[str, onnx.TypeProto.Tensor],
    constants: Mapping[str, onnx.TensorProto],
    opset: int,
) -> dict[str, onnx.TypeProto]:
    """Infer the types of the results of one node.

    Parameters
    ----------
    node : onnx.NodeProto
        An operator of ONNX's own.
    types : mapping of str to onnx.TypeProto.Tensor
        Of what it reads, as far as they are known.
    constants : mapping of str to onnx.TensorProto
        All that it can see.
    opset : int

    Returns
    -------
    dict of str to onnx.TypeProto
        Empty where the type of something that it reads is not known, or impossible (whoever made that has been refused,
        or is said to wait), and where the node is of another version, or of types that onnx lacks.

    Raises
    ------
    onnx.shape_inference.InferenceError
        The node does not fit what it reads.
    """
    kinds = _types_of(node, types, constants)
    if kinds is None or not defs.has(node.op_type) or any(map(has_impossible, kinds.values())):
        return {}
    try:
        schema = defs.get_schema(node.op_type, opset)
        values, opsets = dict(_values_of(node, constants)), [helper.make_opsetid("", opset)]
        made = dict(onnx.shape_inference.infer_node_outputs(schema, node, kinds, values, None, opsets))
    except (defs.SchemaError, onnx.checker.ValidationError):
        return {}
    if node.op_type in POOLS:
        attributes = {attribute.name: attribute for attribute in node.attribute}
        return {name: leave_out(kind, kinds[node.input[0]], attributes.get) for name, kind in made.items()}
    return made


def _types_of(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto.Tensor], constants: Mapping[str, onnx.TensorProto]
) -> dict[str, onnx.TypeProto] | None:
    """The types of all that a node reads; None where one of them is not known."""
    kinds = {}
    for name in filter(None, node.input):
        tensor = constants.get(name)
        if tensor is not None:
            kinds[name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        elif name in types and types[name].elem_type:
            kinds[name] = onnx.TypeProto(tensor_type=types[name])
        else:
            return None
    return kinds


def _values_of(
    node: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]
) -> Iterator[tuple[str, onnx.TensorProto]]:
    """What may be sizes among the constants that a node reads."""
    for name in filter(None, node.input):
        tensor = constants.get(name)
        if tensor is not None and elements(tensor.dims) <= SMALL_ELEMENTS:
            yield name, tensor


def has_impossible(kind: onnx.TypeProto) -> bool:
    """Whether a type says that an axis has less than no elements."""
    return any(dim.HasField("dim_value") and dim.dim_value < 0 for dim in kind.tensor_type.shape.dim)
