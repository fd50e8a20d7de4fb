"""Grows an ONNX graph node by node; onnx's own shape inference says which nodes are possible."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
DTYPES = (*FLOATS, *INTEGERS, "bool")
ML = "ai.onnx.ml"
"""The domain of classical models."""
_ML_VERSION = 3
LARGEST = 4096
"""Elements of a tensor: judges and shrinking stay quick."""
_OF_SCHEMA = {"float": "float32", "double": "float64"} | {name: name for name in DTYPES[2:]}
_EXTENTS = (1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17)


def words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


def onnx_type(dtype: str) -> int:
    """The number that ONNX gives to an element type."""
    return {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}.get(dtype) or TensorProto.DataType.Value(
        dtype.upper()
    )


@dataclass(frozen=True)
class Value:
    """A tensor of the graph; `shape` is None where it depends on data, and `rank` is known all the same."""

    dtype: str
    shape: tuple[int, ...] | None
    rank: int = 0

    @property
    def size(self) -> int:
        return int(np.prod(self.shape)) if self.shape is not None else 0


class Builder:
    """A graph in the making.

    Parameters
    ----------
    rng : random.Random
        Every choice comes from it.
    opset : int
    prefix : str
        Of all names, so that a subgraph's are its own.
    """

    def __init__(self, rng: random.Random, opset: int, prefix: str = "") -> None:
        self.rng, self.opset, self.prefix = rng, opset, prefix
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.feeds: dict[str, np.ndarray] = {}
        self.values: dict[str, Value] = {}
        self._told: list[onnx.ValueInfoProto] = []
        self._numbers = np.random.default_rng(rng.getrandbits(32))

    # Choices

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, options: Sequence[Any]) -> Any:
        return self.rng.choice(list(options))

    def integer(self, low: int, high: int) -> int:
        """Both ends are possible."""
        return self.rng.randint(low, high)

    def extent(self) -> int:
        return 0 if self.chance(0.01) else self.pick(_EXTENTS)

    def shape(self, low: int = 0, high: int = 6) -> tuple[int, ...]:
        """Of a rank between two, and of few elements."""
        rank = self.pick([r for r in (0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6) if low <= r <= high] or [low])
        shape = [self.extent() for _ in range(rank)]
        while np.prod(shape) > LARGEST:
            i = shape.index(max(shape))
            shape[i] = shape[i] // 2
        return tuple(shape)

    def axis(self, rank: int) -> int:
        """Of a tensor; negative as often as not."""
        return self.integer(-rank, rank - 1)

    def axes(self, rank: int, low: int = 1) -> list[int]:
        chosen = self.rng.sample(range(rank), self.integer(min(low, rank), rank))
        return [a - rank if self.chance(0.3) else a for a in chosen]

    def types(self, op: str, position: int = 0, domain: str = "") -> list[str]:
        """The element types that an operator takes at a position, of those that are made here."""
        schema = self._schema(op, domain)
        names = {text.removeprefix("tensor(").removesuffix(")") for text in schema.inputs[position].types}
        return [dtype for dtype in DTYPES if dtype in {_OF_SCHEMA.get(name) for name in names}]

    def dtype(self, allowed: Sequence[str]) -> str:
        """Mostly the common ones."""
        usual = [d for d in ("float32", "int64", "bool") if d in allowed]
        return usual[0] if usual and self.chance(0.6) else self.pick(allowed)

    def has(self, op: str, attribute: str) -> bool:
        return attribute in onnx.defs.get_schema(op, self.opset).attributes

    def imports(self) -> list[onnx.OperatorSetIdProto]:
        """The versions of the domains that the nodes are of."""
        own = [helper.make_opsetid("", self.opset)]
        return own + [helper.make_opsetid(ML, _ML_VERSION)] * any(node.domain == ML for node in self.nodes)

    def _schema(self, op: str, domain: str) -> onnx.defs.OpSchema:
        return onnx.defs.get_schema(op, _ML_VERSION if domain == ML else self.opset, domain)

    # Tensors

    def numbers(self, dtype: str, shape: Sequence[int], low: float = -3, high: float = 3) -> np.ndarray:
        """Random values of a type, by default about zero."""
        draw = self._numbers
        if dtype == "bool":
            return np.asarray(draw.random(shape) < 0.5)
        if dtype in FLOATS:
            values = draw.uniform(low, high, shape)
            if self.chance(0.15):
                values = np.round(values * 2) / 2  # ties and exact zeros
            return np.asarray(values).astype("float32" if dtype == "bfloat16" else dtype)
        floor = max(int(np.ceil(low)), int(np.iinfo(dtype).min))
        return np.asarray(draw.integers(floor, max(int(high), floor) + 1, shape)).astype(dtype)

    def fresh(self) -> str:
        return f"{self.prefix}v{len(self.values)}"

    def constant(self, array: Any, dtype: str | None = None) -> str:
        name = self.fresh()
        array = np.asarray(array, dtype)
        self.constants[name], self.values[name] = array, Value(str(array.dtype), array.shape)
        return name

    def integers(self, values: Any) -> str:
        """A constant of type int64."""
        return self.constant(np.asarray(values, "int64"))

    def input(self, array: np.ndarray) -> str:
        name = self.fresh()
        self.feeds[name], self.values[name] = array, Value(str(array.dtype), array.shape)
        return name

    def parameter(self, dtype: str, shape: Sequence[int], low: float = -1, high: float = 1) -> str:
        """A weight: mostly a constant, sometimes an input."""
        array = self.numbers(dtype, shape, low, high)
        name = self.constant(array) if self.chance(0.8) else self.input(array)
        return self.cast(name, dtype) if dtype == "bfloat16" else name

    def source(
        self,
        dtypes: Sequence[str],
        low: int = 0,
        high: int = 6,
        shape: Sequence[int] | None = None,
        check: Callable[[tuple[int, ...]], bool] = lambda shape: True,
    ) -> str:
        """A tensor to read: one that exists, or a new input."""

        def fits(value: Value) -> bool:
            if value.shape is None or value.dtype not in dtypes or not low <= len(value.shape) <= high:
                return False
            return check(value.shape) and (shape is None or value.shape == tuple(shape))

        known = [name for name, value in self.values.items() if name not in self.constants and fits(value)]
        if known and self.chance(0.8):
            return self.pick(known[-4:])
        dtype, wanted = self.dtype(dtypes), shape
        for _ in range(20):
            wanted = shape if shape is not None else self.shape(low, high)
            if check(tuple(wanted)):
                break
        array = self.numbers(dtype, wanted)
        name = self.constant(array) if self.chance(0.1) else self.input(array)
        return self.cast(name, dtype) if dtype == "bfloat16" else name

    def cast(self, name: str, dtype: str) -> str:
        return self.add("Cast", [name], to=onnx_type(dtype))[0]

    def of(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        shape = self.values[name].shape
        assert shape is not None
        return shape

    # Nodes

    def add(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: int = 1,
        domain: str = "",
        told: Sequence[Value] = (),
        **attributes: Any,
    ) -> list[str]:
        """Append a node and return the names of its outputs; an empty list if it is impossible.

        Attributes that are None are left out, and so are those that the operator does not have at this opset. `told`
        are the results where inference does not find their shapes.
        """
        schema = self._schema(op, domain)
        attributes = {k: v for k, v in attributes.items() if v is not None and k in schema.attributes}
        names = [f"{self.fresh()}_{i}" if i else self.fresh() for i in range(outputs)]
        known = len(self._told)
        self._told += [_info(n, v) for n, v in zip(names, told, strict=False)]
        self.nodes.append(helper.make_node(op, list(inputs), names, domain=domain or None, **attributes))
        try:
            made = self._infer(names)
        except Exception:
            self.nodes.pop()
            del self._told[known:]
            return []
        self.values |= made
        return names

    def _infer(self, names: Sequence[str]) -> dict[str, Value]:
        graph = self.graph("infer", [helper.make_empty_tensor_value_info(n) for n in names])
        model = helper.make_model(graph, opset_imports=self.imports(), ir_version=10)
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        return {info.name: _value(info) for info in inferred.graph.output}

    def graph(self, name: str, outputs: Sequence[onnx.ValueInfoProto]) -> onnx.GraphProto:
        """The graph so far, with these outputs; inputs that nothing reads are left out."""
        read = {i for node in self.nodes for i in _reads(node)} | {o.name for o in outputs}
        inputs = [self.info(n) for n in self.feeds if n in read]
        constants = [numpy_helper.from_array(a, n) for n, a in self.constants.items() if n in read]
        ends = {o.name: o for o in self._told}
        outputs = [ends.pop(o.name, o) if not o.type.WhichOneof("value") else o for o in outputs]
        return helper.make_graph(self.nodes, name, inputs, outputs, constants, value_info=list(ends.values()))

    def info(self, name: str) -> onnx.ValueInfoProto:
        return _info(name, self.values[name])


def _info(name: str, value: Value) -> onnx.ValueInfoProto:
    shape = [None] * value.rank if value.shape is None else value.shape
    return helper.make_tensor_value_info(name, onnx_type(value.dtype), shape)


def _reads(node: onnx.NodeProto) -> list[str]:
    """What a node reads, its subgraphs too."""
    subgraphs = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    inner = [i for g in subgraphs for n in g.node for i in _reads(n)]
    return [*node.input, *inner, *(o.name for g in subgraphs for o in g.output)]


def _value(info: onnx.ValueInfoProto) -> Value:
    kind = info.type.tensor_type
    dtype = str(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    if not kind.HasField("shape"):
        raise ValueError(f"nothing is known of the shape of {info.name}")
    if any(not d.HasField("dim_value") for d in kind.shape.dim):
        return Value(dtype, None, len(kind.shape.dim))
    shape = tuple(d.dim_value for d in kind.shape.dim)
    if np.prod(shape) > 4 * LARGEST:
        raise ValueError(f"{info.name} has the shape {shape}")
    return Value(dtype, shape)
