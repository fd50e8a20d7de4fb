"""What an error says of a call: its operator, and the inputs that have to be mended."""

from collections.abc import Callable, Iterable

from tvm import relax
from tvm.ir import Call

from ...bindings import body_blocks, leaves, named_sizes

_ONNX_NAMES = {
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
    "broadcast_to": "Expand",
    "divide": "Div",
    "dynamic_strided_slice": "Slice",
    "floor_divide": "Div",
    "floor_mod": "Mod",
    "gather_elements": "GatherElements",
    "gather_nd": "GatherND",
    "greater_equal": "GreaterOrEqual",
    "left_shift": "BitShift",
    "less_equal": "LessOrEqual",
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "matmul": "MatMul",
    "maximum": "Max",
    "minimum": "Min",
    "multinomial_from_uniform": "Multinomial",
    "multiply": "Mul",
    "nn.nll_loss": "NegativeLogLikelihoodLoss",
    "not_equal": "Equal",
    "power": "Pow",
    "right_shift": "BitShift",
    "scatter_elements": "ScatterElements",
    "scatter_nd": "ScatterND",
    "subtract": "Sub",
    "take": "Gather",
    "topk": "TopK",
    "vision.roi_align": "RoiAlign",
    "vision.roi_pool": "MaxRoiPool",
}
"""Where ONNX does not write an operator as Relax does, with a capital letter."""


def literal(text: str) -> str:
    """Text as part of an assertion's message, which fills in what stands in braces: they are doubled."""
    return text.replace("{", "{{").replace("}", "}}")


def operator_of(call: Call) -> str:
    """The operator of a call, by its name in ONNX."""
    name = str(call.op.name).removeprefix("relax.")
    return _ONNX_NAMES.get(name, name.capitalize())


def origin(func: relax.Function, *computed: relax.Expr) -> str:
    """The end of a message about what values are computed of; empty where they depend on no input."""
    bindings = [b for block in body_blocks(func) for b in block.bindings]
    values = {b.var: b.value for b in bindings}
    sized = {size: b.value for b in bindings for size in named_sizes(b)}
    return _mend(computed, lambda var: sized.get(var, values.get(var)))


def origin_so_far(builder: relax.BlockBuilder, *computed: relax.Expr) -> str:
    """As `origin`, in a function that is being built."""
    return _mend(computed, builder.lookup_binding)


def _mend(computed: Iterable[relax.Expr], binding: Callable[[relax.Var], relax.Expr | None]) -> str:
    names, todo, seen = [], list(computed), set()
    while todo:
        value = todo.pop()
        sizes = [
            size
            for shape in getattr(value, "args", [value])
            if isinstance(shape, relax.ShapeExpr)
            for size in relax.analysis.tir_vars_in_type(shape.ty)
        ]
        for leaf in (*sizes, *leaves(value)):
            if isinstance(leaf, relax.Var) and leaf not in seen:
                seen.add(leaf)
                made = binding(leaf)
                todo += [] if made is None else [made]
                # Of a block that is being built the builder does not know what a match_cast names.
                given = made is None and not isinstance(leaf, relax.DataflowVar)
                names += [leaf.name] if given and isinstance(leaf.ty, relax.TensorType) else []
    told = literal(", ".join(repr(name) for name in sorted(names)))
    return f"; mend the data of {told}" if names else ""
