"""Give every input of an ONNX model a static shape."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, SupportsIndex

import onnx

from ...errors import ModelError, ShapeError
from ...ir import MOST_ELEMENTS
from .read import elements

Shapes = Mapping[str, int | Sequence[int]]
"""By the name of an input its shape, or by the name of a symbolic dimension its size."""


def fix_input_shapes(model: onnx.ModelProto, shapes: Shapes | None = None) -> None:
    """Make the inputs of `model` static, in place; weights listed as inputs are inputs no longer.

    A symbol that one given shape fixes is fixed in the other inputs too; one to which given shapes give several sizes
    means nothing, since exporters name the axes of all inputs alike.

    Parameters
    ----------
    model : onnx.ModelProto
    shapes : mapping of str to int or sequence of int, optional
        Static shapes of inputs by name, and sizes of symbolic dimensions by name.

    Raises
    ------
    ShapeError
        A dimension remains open, or a given shape does not fit the model.
    ModelError
        An input is not a tensor.
    """
    graph = model.graph
    _drop_weights(graph)
    open_dims = {dim for value in graph.input for dim in _dims(value) or () if isinstance(dim, str) and dim != "?"}
    given, sizes = check_given(shapes, [value.name for value in graph.input], open_dims)
    symbols = {symbol: {size: "shapes"} for symbol, size in sizes.items()}
    for value in graph.input:
        _check_tensor(value, graph)
        if value.name in given:
            _apply(value, given[value.name], symbols)
    for symbol in sizes:
        _size_of(symbol, symbols)
    for value in graph.input:
        if value.name not in given:
            _bind_symbols(value, symbols)
    _check_outputs(graph)
    _forget_shapes(graph)


def name_input_shapes(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int | str]]) -> None:
    """Give every input of `model` a shape of static sizes and of symbols, in place.

    Parameters
    ----------
    model : onnx.ModelProto
    shapes : mapping of str to sequence of (int or str)
        Of each input by its name: a size, or the name of a symbolic dimension.

    Raises
    ------
    ModelError
        An input or output is not a tensor.
    """
    graph = model.graph
    _drop_weights(graph)
    for value in graph.input:
        _check_tensor(value, graph)
        dims = [{"dim_param": e} if isinstance(e, str) else {"dim_value": int(e)} for e in shapes[value.name]]
        shape = onnx.TensorShapeProto(dim=[onnx.TensorShapeProto.Dimension(**dim) for dim in dims])
        value.type.tensor_type.shape.CopyFrom(shape)
    _check_outputs(graph)
    _forget_shapes(graph)


def _drop_weights(graph: onnx.GraphProto) -> None:
    """Weights listed as inputs are inputs no longer."""
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    del graph.input[:]
    graph.input.extend(inputs)


def _check_outputs(graph: onnx.GraphProto) -> None:
    for value in graph.output:
        kind = value.type.WhichOneof("value")
        if kind not in (None, "tensor_type", "sequence_type"):
            raise ModelError(
                f"output {value.name!r}{_maker(graph, value.name)} is of ONNX type {kind}; only tensors can be "
                f"outputs: leave it out, or return its elements"
            )


def _maker(graph: onnx.GraphProto, name: str) -> str:
    """By which operator a value is made, or which reads it, for messages."""
    maker = next((n.op_type for n in graph.node if name in n.output), None)
    reader = next((n.op_type for n in graph.node if name in n.input), None)
    return f" of {maker or reader}" if maker or reader else ""


def check_given(
    shapes: Shapes | None, names: Sequence[str], symbols: Collection[str]
) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Check that given shapes name inputs or symbolic dimensions, and hold sizes.

    Parameters
    ----------
    shapes : mapping of str to int or sequence of int, optional
        A name that is both is the input's.
    names : sequence of str
        The inputs.
    symbols : collection of str
        The symbolic dimensions of their shapes.

    Returns
    -------
    dict of str to tuple of int
        Shapes of inputs.
    dict of str to int
        Sizes of symbolic dimensions.

    Raises
    ------
    ShapeError
        They do not.
    """
    given: dict[str, tuple[int, ...]] = {}
    for name, shape in (shapes or {}).items():
        if name not in names and name not in symbols:
            known = f"; its symbolic dimensions are {', '.join(sorted(symbols))}" if symbols else ""
            raise ShapeError(
                f"a shape is given for {name!r}, which is no input; the inputs are {', '.join(names)}{known}"
            )
        try:
            extents: Any = (shape,) if name not in names and isinstance(shape, SupportsIndex) else shape
            sizes = tuple(size.__index__() for size in extents)
        except (AttributeError, TypeError):
            raise ShapeError(f"the shape given for input {name!r} is {shape!r}; give integers") from None
        if name not in names and len(sizes) != 1:
            raise ShapeError(f"the size given for the dimension {name!r} is {shape!r}; give one integer")
        if any(size < 0 or size >= 2**31 for size in sizes):
            raise ShapeError(f"the shape given for input {name!r} is {sizes}; sizes are from 0 to {2**31 - 1}")
        given[name] = sizes
    return (
        {name: sizes for name, sizes in given.items() if name in names},
        {name: sizes[0] for name, sizes in given.items() if name not in names},
    )


def remedy(name: str, shape: Sequence[int | str]) -> str:
    """How to give a shape, as the example that the user has to fill in."""
    sizes = [size if isinstance(size, int) and size > 0 else 1 for size in shape]
    text = ", ".join(map(str, sizes)) + ("," if len(sizes) == 1 else "")
    return f"give it one, as in shapes={{{name!r}: ({text})}} or --shape {name}={','.join(map(str, sizes))}"


def _check_tensor(value: onnx.ValueInfoProto, graph: onnx.GraphProto) -> None:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise ModelError(
            f"input {value.name!r}{_maker(graph, value.name)} is of ONNX type {kind}; only tensors can be inputs: "
            f"export the model with its elements as inputs"
        )
    if value.type.tensor_type.elem_type in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
        of = _maker(graph, value.name)
        raise ModelError(f"input {value.name!r}{of} holds strings or has no element type; use a numeric type")


def _dims(value: onnx.ValueInfoProto) -> list[int | str] | None:
    if not value.type.tensor_type.HasField("shape"):
        return None
    return [
        d.dim_value if d.WhichOneof("value") == "dim_value" else d.dim_param or "?"
        for d in value.type.tensor_type.shape.dim
    ]


def _show(dims: Sequence[int | str] | None) -> str:
    return "none" if dims is None else f"({', '.join(map(str, dims))})"


def _is_open(dim: int | str) -> bool:
    return isinstance(dim, str) or dim <= 0  # exporters also write -1 and 0 for "any"


def _apply(value: onnx.ValueInfoProto, sizes: tuple[int, ...], symbols: dict[str, dict[int, str]]) -> None:
    dims = _dims(value)
    if dims is None:
        dims = ["?"] * len(sizes)
    if len(dims) != len(sizes):
        raise ShapeError(
            f"input {value.name!r} has the shape {_show(dims)}, of rank {len(dims)}, "
            f"but {_show(sizes)} is given; give {len(dims)} sizes"
        )
    for dim, size in zip(dims, sizes, strict=True):
        if not _is_open(dim) and dim != size:
            raise ShapeError(
                f"input {value.name!r} has the shape {_show(dims)}, but {_show(sizes)} is given; "
                f"its dimension {dim} cannot become {size}"
            )
        if isinstance(dim, str) and dim != "?":
            symbols.setdefault(dim, {}).setdefault(size, f"input {value.name!r}")
    _set(value, sizes)


def _size_of(symbol: str, symbols: Mapping[str, Mapping[int, str]]) -> int:
    """The size of a symbolic dimension, which may be given in several places."""
    (size, place), *others = symbols[symbol].items()
    if others:
        other, there = others[0]
        raise ShapeError(
            f"the dimension {symbol!r} is {size} in {place} and {other} in {there}; give one size to all that share "
            "it, or a shape to each input that has it"
        )
    return size


def _bind_symbols(value: onnx.ValueInfoProto, symbols: Mapping[str, Mapping[int, str]]) -> None:
    dims = _dims(value)
    sizes = None if dims is None else [_size_of(d, symbols) if isinstance(d, str) and d in symbols else d for d in dims]
    if sizes is None or any(_is_open(d) for d in dims or () if d not in symbols):
        raise ShapeError(
            f"input {value.name!r} has no static shape but {_show(dims)}; "
            f"{remedy(value.name, (1, 3, 224, 224) if dims is None else dims)}"
        )
    _set(value, sizes)


def _set(value: onnx.ValueInfoProto, sizes: Sequence[int | str]) -> None:
    # Now: onnx's shape inference would count the elements of some.
    count = elements(map(int, sizes))
    if count >= MOST_ELEMENTS:
        raise ShapeError(
            f"input {value.name!r} has the shape {_show(sizes)}: {count} elements, of which less than {MOST_ELEMENTS} "
            f"can be addressed; give smaller sizes"
        )
    shape = onnx.TensorShapeProto(dim=[onnx.TensorShapeProto.Dimension(dim_value=int(size)) for size in sizes])
    value.type.tensor_type.shape.CopyFrom(shape)


def _forget_shapes(graph: onnx.GraphProto) -> None:
    """Drop what the exporter said of inner and output shapes: it was said of the open dimensions."""
    del graph.value_info[:]
    for value in graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
