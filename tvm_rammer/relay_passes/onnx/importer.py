"""An ONNX model of static shapes -> Relax, through TVM's frontend."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import onnx
import tvm
import tvm_ffi
from onnx import helper
from tvm import relax, tirx
from tvm.ir import Call, Constant, GlobalVar
from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

from ...errors import LoopError, ModelError, RammerError, UnsupportedOperatorError, last_line
from ...ir import OUTPUT_NAMES
from ..bindings import dtype_of, static_shape
from .check.names import describe
from .check.operators import check_supported
from .check.types import check_types
from .compile_time import asked, constants_of, make_constant
from .control.functions import add_module, first_rows
from .control.outline import is_made_here, module_of
from .converters import CONVERTERS, PREPARED, has_own
from .data_sizes.names import DESCRIBED
from .infer import infer_types, static_dims
from .inline import all_nodes, subgraphs
from .read import default_opset
from .scan import ScanConverter

Types = Mapping[str, onnx.TypeProto.Tensor]


_LISTS = {
    onnx.AttributeProto.INTS: "ints",
    onnx.AttributeProto.FLOATS: "floats",
    onnx.AttributeProto.STRINGS: "strings",
}
_READS_A_SHAPE = re.compile(r"Node (\d+) cannot handle ShapeExpr inputs")
"""What TVM's frontend says of a node that it has no tensor for."""


def import_onnx(
    model: onnx.ModelProto, called: Mapping[str, tvm.IRModule] | None = None, *, loops: bool = False
) -> tvm.IRModule:
    """Import a model by TVM's frontend.

    Parameters
    ----------
    model : onnx.ModelProto
        Of static shapes, folded, in an opset whose operators the frontend reads (`convert_opset`).
    called : mapping of str to tvm.IRModule, optional
        What its calls of `control.outline` name; becomes private functions of the module.
    loops : bool
        Whether its Scans become loops; otherwise it should have none.

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
    LoopError
        A Scan cannot become a loop: a branch in its steps has a recurrent layer, for example, which has a function of
        its own where the loop is unrolled.
    """
    check_supported(_outside_scans(model.graph), constants_of(model), loops=loops)
    _check_steps(model)
    types = infer_types(model)
    check_types(model, types)
    nodes = {}
    for number, node in enumerate(all_nodes(model.graph)):
        _drop_empty_attributes(node)
        nodes[str(number)] = (node, describe(node))
        node.name = str(number)
    # `from_onnx` would first serialize the model, weights and all, to check it once more.
    importer = _Importer(nodes, types, called or {})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mod = importer.from_onnx(model.graph, default_opset(model))
    except _RefusedNode as refused:
        raise refused.error from refused.__cause__
    except RammerError:
        raise
    except Exception as error:
        if reads := _READS_A_SHAPE.search(str(error)):
            raise UnsupportedOperatorError(
                f"{nodes[reads[1]][1]} reads a shape that only the data say, as few operators may in TVM's ONNX "
                f"frontend; make what the shape depends on a constant (tvm_rammer.fix_inputs), or export the model "
                f"without it"
            ) from error
        raise ModelError(
            f"TVM's ONNX frontend cannot import the model: {last_line(error)}; "
            f"try to simplify it (onnxsim) or to export it with another opset"
        ) from error
    _check_results(mod, model, types)
    mod.update_func(
        mod.get_global_var("main"), mod["main"].with_attr(OUTPUT_NAMES, [value.name for value in model.graph.output])
    )
    for name, step in importer.scans.functions.items():
        mod[name] = step
    return mod


def _outside_scans(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of all within it, but for the steps of Scans."""
    for node in graph.node:
        yield node
        for inner in () if node.op_type == "Scan" else subgraphs(node):
            yield from _outside_scans(inner)


def _check_steps(model: onnx.ModelProto) -> None:
    constants = constants_of(model)
    for node in all_nodes(model.graph):
        if node.op_type == "Scan":
            try:
                check_supported(
                    (inner for graph in subgraphs(node) for inner in all_nodes(graph)), constants, loops=True
                )
            except UnsupportedOperatorError as error:
                raise LoopError(f"a step of {describe(node)}: {error}") from error


class _RefusedNode(BaseException):
    """On its way out of TVM's frontend, which would print an Exception to standard output: that is the user's."""

    def __init__(self, error: RammerError) -> None:
        super().__init__(str(error))
        self.error = error


class _Importer(ONNXGraphImporter):  # type: ignore[misc]  # TVM has no types
    """TVM's importer, which is told of each operator's type, and says which operator it fails at.

    Parameters
    ----------
    nodes : mapping of str to (onnx.NodeProto, str)
        By the names that they have for the importer; the text is for messages.
    types : mapping of str to onnx.TypeProto.Tensor
        What onnx's shape inference knows.
    called : mapping of str to tvm.IRModule
    """

    def __init__(
        self, nodes: Mapping[str, tuple[onnx.NodeProto, str]], types: Types, called: Mapping[str, tvm.IRModule]
    ) -> None:
        super().__init__({}, "float32", sanitize=False)
        self._described, self._types = nodes, types
        self._called = {key: add_module(self.bb, mod, key) for key, mod in called.items()}
        self.scans = ScanConverter(self.bb)

    def from_onnx(self, graph: onnx.GraphProto, opset: int) -> tvm.IRModule:
        """Import a graph. An input without elements, which TVM takes for one of unknown size, has its shape said."""
        shapes = {value.name: static_dims(value.type.tensor_type) for value in graph.input}
        self._shape = {name: dims for name, dims in shapes.items() if dims is not None and 0 in dims}
        return super().from_onnx(graph, opset)

    def _import_step(self, graph: onnx.GraphProto) -> relax.Function:
        inner = _Importer(self._described, self._types, {})
        mod = inner.from_onnx(graph, self.opset)
        if inner.scans.functions:
            raise LoopError("a loop within a loop")
        others = [(var, func) for var, func in mod.functions_items() if var.name_hint != "main"]
        added = {var: self.bb.add_func(func, var.name_hint) for var, func in others}
        return tvm_ffi.structural_map(mod["main"], [(GlobalVar, lambda var: added.get(var, var))], order="post")

    def _check_for_unsupported_ops(self, graph: onnx.GraphProto) -> None:
        """All operators were looked for before."""

    def _convert_operator(self, op_name: str, inputs: list[Any], attrs: dict[str, Any], opset: int) -> Any:
        node, described = self._described[attrs["tvm_custom"]["name"]]
        try:
            if op_name == "Scan":
                return self.scans.convert(inputs, attrs, self._nodes, self._import_step)
            if (key := module_of(node)) is not None:
                result = self.bb.emit(Call(self._called[key], list(inputs)))
            elif is_made_here(node):
                result = first_rows(self.bb, *inputs)
            elif has_own(node):
                result = self.bb.normalize(CONVERTERS[op_name](self.bb, inputs, attrs | {DESCRIBED: described}))
            else:
                given = PREPARED[op_name](self.bb, inputs) if op_name in PREPARED else inputs
                result = super()._convert_operator(op_name, given, attrs, opset)
        except LoopError as error:
            raise _RefusedNode(error) from error
        except Exception as error:
            known = {n for n, v in zip(node.input, inputs, strict=False) if isinstance(v, Constant | relax.ShapeExpr)}
            computed = set(asked(node)) - known
            remedy = f"{make_constant(computed)}, or " if computed else ""
            message = (
                f"TVM's ONNX frontend cannot import {described}: {last_line(error)}; "
                f"{remedy}export the model without it, or in a simpler form"
            )
            raise _RefusedNode(UnsupportedOperatorError(message)) from error
        result = self._all_with_sizes(result, list(map(self._types.get, node.output)))
        self._check_results(node, described, result)
        return result

    def _check_results(self, node: onnx.NodeProto, described: str, result: Any) -> None:
        """Compare the results of an operator with what onnx's shape inference says of them."""
        whole = getattr(result, "ty", None)
        fields = list(whole.fields) if isinstance(whole, relax.TupleType) else [whole]
        for name, ty in zip(node.output, fields, strict=False):
            shape = static_shape(ty) or ()
            if any(size < 0 or (size == 0 and node.op_type == "Conv") for size in shape):
                message = (
                    f"{described} makes {name!r} of the shape {list(shape)}: its window or its pads are too large for "
                    f"what it reads; give larger inputs"
                )
                raise _RefusedNode(ModelError(message))
            problem = mismatch(ty, self._types.get(name))
            if problem:
                message = (
                    f"TVM's ONNX frontend misreads {described}: its result {name!r} {problem}; "
                    f"export the model without it, or in a simpler form"
                )
                raise _RefusedNode(UnsupportedOperatorError(message))

    def _all_with_sizes(self, result: Any, expected: Sequence[onnx.TypeProto.Tensor | None]) -> Any:
        """What an operator makes, with names for extents that nobody knows, of each tensor of several, too."""
        whole = getattr(result, "ty", None)
        if not isinstance(whole, relax.TupleType):
            return self._with_sizes(result, expected[0])
        if not any(isinstance(ty, relax.TensorType) and ty.shape is None for ty in whole.fields):
            return result
        given = result.fields if isinstance(result, relax.Tuple) else None
        items = given or [self.bb.emit(relax.TupleGetItem(result, n)) for n in range(len(whole.fields))]
        named = [self._with_sizes(*pair) for pair in zip_longest(items, expected[: len(items)])]
        return self.bb.normalize(relax.Tuple(named))

    def _with_sizes(self, result: Any, expected: onnx.TypeProto.Tensor | None) -> Any:
        """A tensor with names for its extents, where nobody knows them: what reads it has to speak of them."""
        ty = getattr(result, "ty", None)
        if not isinstance(ty, relax.TensorType) or ty.shape is not None or ty.ndim < 0:
            return result
        sizes = [tirx.Var(f"extent{axis}", "int64") for axis in range(ty.ndim)]
        dims = expected.shape.dim if expected is not None else ()
        if len(dims) == len(sizes):
            sizes = [
                tirx.IntImm("int64", dim.dim_value) if dim.HasField("dim_value") else size
                for dim, size in zip(dims, sizes, strict=True)
            ]
        return self.bb.match_cast(result, relax.TensorType(sizes, ty.dtype))


def mismatch(ty: object, expected: onnx.TypeProto.Tensor | None) -> str:
    """How the type of a Relax tensor differs from what onnx's shape inference says; empty where it does not.

    What either does not know is no difference.
    """
    if expected is None or not isinstance(ty, relax.TensorType):
        return ""
    if expected.elem_type:
        dtype = str(helper.tensor_dtype_to_np_dtype(expected.elem_type))
        if ty.dtype is not None and dtype_of(ty) != dtype:
            return f"has the type {dtype_of(ty)}, which is {dtype} by ONNX"
    shape, dims = static_shape(ty), static_dims(expected)
    if shape is not None and dims is not None and list(shape) != dims:
        return f"has the shape {list(shape)}, which is {dims} by ONNX"
    return ""


def _check_results(mod: tvm.IRModule, model: onnx.ModelProto, types: Types) -> None:
    """Refuse a module whose results are no tensors of the shapes that onnx knows."""
    result = mod["main"].ret_ty
    fields = list(result.fields) if len(model.graph.output) > 1 else [result]
    makers = {name: node for node in model.graph.node for name in node.output}
    for value, ty in zip(model.graph.output, fields, strict=True):
        maker = f", made by {makers[value.name].op_type}," if value.name in makers else ""
        problem, shape = mismatch(ty, types.get(value.name)), static_shape(ty)
        if not isinstance(ty, relax.TensorType):
            problem = f"is no tensor but {type(ty).__name__.removesuffix('Type').lower()}"
        elif not problem and shape is None and static_dims(types.get(value.name)) is not None:
            problem = "has lost its shape in TVM's ONNX frontend"
        if problem:
            raise UnsupportedOperatorError(
                f"the output {value.name!r}{maker} {problem}; fix the inputs that it depends on "
                f"(tvm_rammer.fix_inputs), or leave it out of the model"
            )


def _drop_empty_attributes(node: onnx.NodeProto) -> None:
    """TVM's frontend cannot parse an attribute that is an empty list; ONNX means its default by that."""
    kept = [a for a in node.attribute if a.type not in _LISTS or len(getattr(a, _LISTS[a.type]))]
    if len(kept) < len(node.attribute):
        del node.attribute[:]
        node.attribute.extend(kept)
