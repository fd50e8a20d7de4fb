"""A Loop as a module: its body imported, and functions that repeat it.

What a Loop collects in each round goes into a state with a row for each round that there may be, if that is known and
not many; the first rows are the result. Otherwise the state grows, as other states may: a round takes states of any
size (`collect`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import tvm
from onnx import helper, numpy_helper

from ....errors import UnsupportedOperatorError
from ..fold import used_names
from ..infer import infer_types, static_dims
from ..read import elements
from .collect import append_rows, take_any_size
from .functions import repeat
from .part import (
    BOOL,
    INT64,
    NO_AXES,
    Kind,
    Part,
    Reader,
    Types,
    free_names,
    named_sizes,
    sizes_of,
    tensor_type,
)
from .ranks import Result, either, make_alike, results_of
from .rounds import in_one_program

DOMAIN = "tvm_rammer"
FIRST_ROWS = "FirstRows"
"""The operator that takes so many rows of a tensor."""


_MOST_HELD = 1 << 20
"""So many elements of what is collected have their place from the beginning; it is copied now and then."""


@dataclass(frozen=True, slots=True)
class _Collected:
    """What a Loop collects: rows of these types, at most so many; None for any number of them."""

    rows: tuple[Kind, ...] = ()
    most: int | None = 0


def loop(part: Part) -> tvm.IRModule:
    """Import the body of a Loop.

    Raises
    ------
    UnsupportedOperatorError
        A round changes the type of a state or how many axes it has, or what it collects has no known shape.
    ModelError
        The body cannot be imported.
    """
    node, body = part.node, part.graph("body")
    states = list(node.input[2:])
    limit = part.scalar(node.input[0], INT64) if node.input[0] else ""
    own = {value.name for value in body.input}
    read = part.variables([*(name for name in free_names(body) if name not in own), *filter(None, [limit])])
    given = {inner.name: part.open_type(outer, inner.name) for inner, outer in zip(body.input[2:], states, strict=True)}

    def module_of(given: Types, collected: _Collected) -> tvm.IRModule:
        return part.load(_body_model(part, given, read, limit, collected))

    collected = _Collected()
    module = module_of(given, collected)
    before, after = _states(module, given)
    if before != after:
        _replace_placeholders(part, after, given, states)
        inside = _body_model(part, given, read, limit, collected)
        types = infer_types(inside)
        readers = [(Reader(inside.graph, n, types), part.reader(o)) for n, o in zip(given, node.output, strict=False)]
        make_alike(body, 1, after, before, readers)
        module = module_of(given, collected)
    grows = False
    while (varying := _varying(part, *_states(module, given), given)) != given:
        given, grows = varying, True
        module = module_of(given, collected)
    if any(node.output[len(states) :]):
        collected = _collected(part, module, limit)
    num_states = len(states)
    several = in_one_program(module, num_states, collected.most) if part.keeps_loops else None
    if several is None and collected.most is not None and collected.rows:
        module = module_of(given, collected)
    module = take_any_size(module, num_states)
    if several is None and collected.most is None:
        module = append_rows(module, num_states)
    first = part.constant("first", np.array(0, np.int64))
    part.inputs = [_starts(part, limit, first), first, *states, *_collecting(part, collected), *read]
    part.open_sizes |= {
        name: sizes_of(kind)
        for name, kind in zip(node.output, given.values(), strict=False)
        if static_dims(kind) is None
    }
    part.outputs = [*part.outputs[: len(states)], *_take_rows(part, part.outputs[len(states) :], collected)]
    return repeat(module if several is None else several, len(part.outputs), grows=grows)


def _body_model(part: Part, given: Types, read: Types, limit: str, collected: _Collected) -> onnx.ModelProto:
    """The body as a model: of the number of a round and states; it says whether to go on, and the next ones."""
    body = part.graph("body")
    number, going = body.input[0], body.input[1]
    at, following, on, one, none = (part.prefix + name for name in ("round", "next", "on", "one", "axes"))
    inputs = {at: tensor_type(INT64, ()), **given, **_states_of(part, collected), **read}
    made = part.model_of(body, inputs)
    graph = made.graph
    shapes = [static_dims(value.type.tensor_type) or [] for value in (number, going)]
    constants = {one: np.array(1, np.int64), none: NO_AXES, f"{at}/shape": np.array(shapes[0], np.int64)}
    constants[going.name] = np.ones(shapes[1], bool)  # there is no round otherwise
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    part.add_constants(made, [limit])
    inner = list(graph.node)
    del graph.node[:]
    graph.node.append(helper.make_node("Reshape", [at, f"{at}/shape"], [number.name]))
    graph.node.extend(inner)
    graph.node.append(helper.make_node("Add", [at, one], [following]))
    graph.node.append(helper.make_node("Reshape", [body.output[0].name, none], [on]))
    goes_on = on
    if limit:
        within, goes_on = part.prefix + "within", part.prefix + "goes_on"
        graph.node.append(helper.make_node("Less", [following, limit], [within]))
        graph.node.append(helper.make_node("And", [within, on], [goes_on]))
    states = [value.name for value in body.output[1 : 1 + len(given)]]
    rows = [value.name for value in body.output[1 + len(given) :]]
    if collected.rows:
        states += [following, *_write_rows(part, graph, at, rows, collected)]
        rows = []
    del graph.output[:]
    graph.output.extend(helper.make_empty_tensor_value_info(name) for name in (goes_on, following, *states, *rows))
    return made


def _states(module: tvm.IRModule, given: Types) -> tuple[list[Result], list[Result]]:
    """What the states are before a round, and after it."""
    before = [Result(_dtype(kind), sizes_of(kind)) for kind in given.values()]
    return before, results_of(module)[2 : 2 + len(given)]


def _replace_placeholders(part: Part, after: Sequence[Result], given: dict[str, Kind], states: list[str]) -> None:
    """Let states that no round reads begin in the shape that they end in, if there is a round.

    Exporters have such states for variables that are first assigned within the loop.
    """
    limit, condition = (part.value(name) if name else np.array(True) for name in part.node.input[:2])
    if limit is None or condition is None or limit.item() < 1 or not condition.item():
        return
    read = used_names(part.graph("body"))
    for at, (inner, result) in enumerate(zip(list(given), after, strict=True)):
        if inner not in read and result.shape is not None:
            first = np.zeros(result.shape, result.dtype)
            states[at] = part.constant(f"{inner}/unread", first)
            given[inner] = tensor_type(helper.np_dtype_to_tensor_dtype(first.dtype), result.shape)


def _varying(part: Part, before: Sequence[Result], after: Sequence[Result], given: Types) -> dict[str, Kind]:
    """The states with names for the sizes that a round changes, as of all words so far.

    Raises
    ------
    UnsupportedOperatorError
        A round changes the type of a state, or how many axes it has.
    """
    made = dict(given)
    for (name, kind), old, new in zip(given.items(), before, after, strict=True):
        either_way = either(old, new)
        if either_way is None or either_way.sizes is None:
            told, then = (", ".join(map(str, some)) for some in (before, after))
            raise UnsupportedOperatorError(
                f"the states of {part.text} are {told} before a round and {then} after it; give them one type and as "
                f"many axes, or make its number of rounds a constant (tvm_rammer.fix_inputs)"
            )
        if either_way.sizes != old.sizes:
            made[name] = named_sizes(kind, either_way.sizes, name)
    return made


def _dtype(kind: Kind) -> str:
    return str(helper.tensor_dtype_to_np_dtype(kind.elem_type))


def _collected(part: Part, module: tvm.IRModule, limit: str) -> _Collected:
    """What a Loop collects."""
    num_states = len(part.node.input) - 2
    bound = part.value(limit) if limit else None
    most = None if bound is None else max(1, int(bound))
    found = []
    for name, row in zip(part.node.output[num_states:], results_of(module)[2 + num_states :], strict=True):
        shape = row.shape
        if shape is None:
            raise UnsupportedOperatorError(
                f"{part.text} collects {name!r}, whose shape is not known before it runs; give the model's inputs "
                "static shapes, or make its number of rounds a constant (tvm_rammer.fix_inputs)"
            )
        if most is not None and elements((most, *shape)) > _MOST_HELD:
            most = None
        found.append(tensor_type(helper.np_dtype_to_tensor_dtype(np.dtype(row.dtype)), shape))
    return _Collected(tuple(found), most)


def _states_of(part: Part, collected: _Collected) -> dict[str, Kind]:
    """The states that collecting adds: the number of rounds so far, and the rows of each."""
    if not collected.rows:
        return {}
    every = {
        f"{part.prefix}rows{n}": tensor_type(k.elem_type, _rows_shape(k, collected))
        for n, k in enumerate(collected.rows)
    }
    return {f"{part.prefix}count": tensor_type(INT64, ()), **every}


def _rows_shape(kind: Kind, collected: _Collected) -> list[int]:
    """Of the state that holds what is collected, at first."""
    return [collected.most or 0, *(static_dims(kind) or [])]


def _write_rows(part: Part, graph: onnx.GraphProto, at: str, rows: Sequence[str], collected: _Collected) -> list[str]:
    """Put what a round collects into its row."""
    made = []
    for n, (name, kind) in enumerate(zip(rows, collected.rows, strict=True)):
        held, new = f"{part.prefix}rows{n}", f"{part.prefix}rows{n}/next"
        rank = len(static_dims(kind) or [])
        numbers = np.arange(collected.most or 0).reshape(-1, *[1] * rank)
        shape = np.array([1, *(static_dims(kind) or [])], np.int64)
        constants = {f"{held}/numbers": numbers, f"{held}/shape": shape}
        graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
        graph.node.append(helper.make_node("Equal", [f"{held}/numbers", at], [f"{held}/here"]))
        graph.node.append(helper.make_node("Reshape", [name, f"{held}/shape"], [f"{held}/row"]))
        graph.node.append(helper.make_node("Where", [f"{held}/here", f"{held}/row", held], [new]))
        made.append(new)
    return made


def _collecting(part: Part, collected: _Collected) -> list[str]:
    """The first values of the states that collecting adds."""
    if not collected.rows:
        return []
    zeros = [
        part.constant(f"none{n}", np.zeros(_rows_shape(kind, collected), _dtype(kind)))
        for n, kind in enumerate(collected.rows)
    ]
    return [*([] if collected.most is None else [part.constant("first", np.array(0, np.int64))]), *zeros]


def _take_rows(part: Part, names: Sequence[str], collected: _Collected) -> list[str]:
    """What the call returns of that which is collected; the rows of the rounds that there were are the results."""
    if not collected.rows:
        return []
    count, held = f"{part.prefix}count", [f"{part.prefix}rows{n}/all" for n in range(len(names))]
    if collected.most is None:
        part.after += [
            helper.make_node("Identity", [rows], [name]) for name, rows in zip(names, held, strict=True) if name
        ]
        part.open_sizes |= {
            rows: [None, *(static_dims(kind) or [])] for rows, kind in zip(held, collected.rows, strict=True)
        }
        return held
    for name, rows in zip(names, held, strict=True):
        if name:
            part.after.append(helper.make_node(FIRST_ROWS, [rows, count], [name], domain=DOMAIN))
    return [count, *held]


def _starts(part: Part, limit: str, first: str) -> str:
    """Whether there is a first round."""
    condition = part.scalar(part.node.input[1], BOOL) if part.node.input[1] else ""
    if not limit:
        return condition or part.constant("always", np.array(True))
    within = part.compute("Less", [first, limit], "starts", BOOL)
    return part.compute("And", [within, condition], "starts_now", BOOL) if condition else within
