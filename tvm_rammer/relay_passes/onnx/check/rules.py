"""What onnx's shape inference lets pass, although the operator's definition does not allow it."""

from collections.abc import Callable, Mapping
from functools import partial

from ..emit import NodeView
from .file import MOST_AXES

Rule = Callable[[NodeView], None]
"""Raises a `ModelError` for a node that is not legal. What is not known is no error."""


def _attention(view: NodeView) -> None:
    """Query, key and value are [batch, heads, length, numbers], or [batch, length, heads x numbers]."""
    query, key, value = (view.dims(number) for number in range(3))
    if query is None or key is None or value is None:
        return
    told = f"a query of {query}, keys of {key} and values of {value}"
    view.require(len(query) == len(key) == len(value) and len(query) in (3, 4), told)
    view.require(query[0] == key[0] == value[0] and key[-2] == value[-2], told)
    if len(query) == 4:
        heads, kv_heads = query[1], key[1]
        view.require(key[1] == value[1] and query[3] == key[3], told)
    else:
        heads, kv_heads = (view.attribute(name, 0) for name in ("q_num_heads", "kv_num_heads"))
        told = f"{heads} heads, {kv_heads} of keys and values, for {told}"
        view.require(heads > 0 and kv_heads > 0, told)
        view.require(query[2] % heads == 0 and key[2] % kv_heads == 0 and value[2] % kv_heads == 0, told)
        view.require(query[2] // heads == key[2] // kv_heads, told)
    view.require(kv_heads > 0 and heads % kv_heads == 0, f"{heads} heads for {kv_heads} of keys and values")
    mode = view.attribute("qk_matmul_output_mode", 0)
    view.require(0 <= mode <= 3, f"the qk_matmul_output_mode {mode}")


def _axis(view: NodeView) -> None:
    """The axis is the second input."""
    axis, dims = view.array(1), view.dims(0)
    if axis is None or dims is None or axis.size != 1:
        return
    view.require(-len(dims) <= int(axis.item()) < len(dims), f"the axis {int(axis.item())} for the shape {dims}")


def _einsum(view: NodeView) -> None:
    """Each letter is one size, and each letter of the result stands for an axis of an input."""
    equation = view.attribute("equation", b"").decode().replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms, sizes = left.split(","), dict[str, int]()
    view.require(len(terms) == len(view.node.input), f"the equation {equation!r} for {len(view.node.input)} inputs")
    for number, term in enumerate(terms):
        if (dims := view.dims(number)) is None:
            return
        spread = len(dims) - len(term.replace("...", ""))  # axes that no letter stands for
        view.require(spread >= 0 if "..." in term else spread == 0, f"the term {term!r} for an input of {dims}")
        for letter, size in zip(term.replace("...", "." * spread), dims, strict=True):
            known = sizes.get(letter, size)
            view.require(letter == "." or 1 in (known, size) or known == size, f"sizes {known}, {size} for {letter!r}")
            sizes[letter] = max(known, size)
    named = right.replace("...", "") if arrow else ""
    view.require(len(set(named)) == len(named), f"the result {right!r}, which names an axis twice")
    known_to_inputs = set(named) <= set(sizes) and ("..." in left or "..." not in right)
    view.require(known_to_inputs, f"the result {right!r}, which names what no input has")


def _expand(view: NodeView) -> None:
    _extents(view)
    if (wanted := view.array(1)) is not None:
        view.require(bool((wanted >= 0).all()), f"the shape {wanted.tolist()}")


def _global_pool(view: NodeView) -> None:
    dims = view.dims(0)
    view.require(dims is None or len(dims) >= 3, f"an input of the shape {dims}, which has no pixels")


def _loss(view: NodeView) -> None:
    """Scores are [batch, classes, ...], and there is a class for each batch and each of the other axes."""
    scores, classes = view.dims(0), view.dims(1)
    if scores is not None and classes is not None:
        view.require([*scores[:1], *scores[2:]] == classes, f"classes of the shape {classes} for scores of {scores}")


def _prelu(view: NodeView) -> None:
    """The slopes spread to the shape of the data, not the other way round."""
    dims, slopes = view.dims(0), view.dims(1)
    if dims is None or slopes is None:
        return
    fits = len(slopes) <= len(dims) and all(
        slope in (1, size) for slope, size in zip(reversed(slopes), reversed(dims), strict=False)
    )
    view.require(fits, f"slopes of the shape {slopes} for data of the shape {dims}")


def _recurrent(view: NodeView) -> None:
    """Weights, biases, lengths and states of a layer, by its gates, its hidden size and the batch."""
    x, w, r = (view.dims(number) for number in range(3))
    if x is None or w is None or r is None or not len(x) == len(w) == len(r) == 3:
        return
    gates, hidden = _GATES[view.node.op_type], view.attribute("hidden_size", r[2])
    directions = 2 if view.attribute("direction", b"forward") == b"bidirectional" else 1
    batch_first = bool(view.attribute("layout", 0))
    batch = x[0] if batch_first else x[1]
    state = [batch, directions, hidden] if batch_first else [directions, batch, hidden]
    wanted = (
        x, [directions, gates * hidden, x[2]], [directions, gates * hidden, hidden],
        [directions, 2 * gates * hidden], [batch], state, state, [directions, 3 * hidden],
    )  # fmt: skip
    for number, dims in enumerate(wanted[: len(view.node.input)]):
        given = view.dims(number) if view.input(number) else None
        view.require(
            given is None or given == dims, f"an input {view.input(number)!r} of the shape {given}, where {dims} fits"
        )


def _split(view: NodeView) -> None:
    """Parts of given sizes make up the axis; of as many equal ones as there are, only the last may be smaller."""
    dims, parts, results = view.dims(0), view.array(1), len(view.node.output)
    axis = view.attribute("axis", 0)
    if dims is None or not -len(dims) <= axis < len(dims):
        return
    size = dims[axis]
    if parts is not None:
        fits = parts.size == results and bool((parts >= 0).all()) and int(parts.sum()) == size
        view.require(fits, f"parts of {parts.tolist()} for {results} results of an axis of {size}")
    elif not view.input(1):
        each = -(-size // results)
        view.require(each * (results - 1) <= size, f"{results} results for an axis of {size}")


def _squeeze(view: NodeView) -> None:
    """An empty list of axes is none for ONNX, and all that can be squeezed for ONNX Runtime."""
    axes, dims = view.array(1), view.dims(0)
    if axes is not None and axes.size == 0 and 1 in (dims or ()):
        view.refuse(
            "has an empty list of axes, which is not read the same everywhere", "name the axes, or leave it out"
        )


def _top_k(view: NodeView) -> None:
    count, dims, axis = view.array(1), view.dims(0), view.attribute("axis", -1)
    if count is None or dims is None or count.size != 1 or not -len(dims) <= axis < len(dims):
        return
    view.require(0 <= int(count.item()) <= dims[axis], f"k of {int(count.item())} for an axis of {dims[axis]}")


def _extents(view: NodeView, index: int = 1) -> None:
    """A shape no longer than tensors have axes: TVM's frontend would count them all."""
    dims = view.dims(index)
    view.require(dims is None or len(dims) != 1 or dims[0] <= MOST_AXES, f"a shape of {(dims or [0])[0]} extents")


_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}

RULES: Mapping[str, Rule] = {
    "Attention": _attention,
    "ConstantOfShape": partial(_extents, index=0),
    "CumSum": _axis,
    "CumProd": _axis,
    "Einsum": _einsum,
    "Expand": _expand,
    "GlobalAveragePool": _global_pool,
    "GlobalLpPool": _global_pool,
    "GlobalMaxPool": _global_pool,
    "NegativeLogLikelihoodLoss": _loss,
    "PRelu": _prelu,
    "Reshape": _extents,
    "SoftmaxCrossEntropyLoss": _loss,
    **dict.fromkeys(_GATES, _recurrent),
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _extents,
    "TopK": _top_k,
}
"""By operator."""
