"""Infer the types of each operator of ONNX where nobody knows those of what it reads; each is named before."""

from collections.abc import Iterator

from onnx import ModelProto, TensorProto, defs, helper

from tvm_rammer.relay_passes.onnx.infer import infer_types

Kinds = defs.OpSchema.AttrType
VALUES = {
    Kinds.INT: 1, Kinds.INTS: [1, 1], Kinds.FLOAT: 1.0, Kinds.FLOATS: [1.0], Kinds.STRING: "a", Kinds.STRINGS: ["a"],
    Kinds.TENSOR: helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0]),
    Kinds.GRAPH: helper.make_graph(
        [helper.make_node("Any", ["x"], ["b"], domain="foreign")], "b", [], [helper.make_empty_tensor_value_info("b")]
    ),
}  # fmt: skip


def attributes_of(schema: defs.OpSchema) -> Iterator[list[str]]:
    """Names of attributes: those that are needed, with each other one, with all of them; none; one alone."""
    known = [a for a in schema.attributes.values() if a.type in VALUES]
    needed, others = [a.name for a in known if a.required], [a.name for a in known if not a.required]
    yield from ([*needed, *chosen] for chosen in ([], others, *([name] for name in others)))
    if needed:
        yield from ([], *([name] for name in others))


def reading_unknown(schema: defs.OpSchema, attributes: list[str], known: bool) -> ModelProto:
    """An operator whose first input is of a domain that nobody knows, and all others unless they are known."""
    count = max(1, min(schema.max_input, 6))
    names = [f"i{n}" for n in range(count)]
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in names[1:] if known]
    nodes = [helper.make_node("Any", ["x"], [n], domain="foreign") for n in names if n not in {v.name for v in given}]
    values = {name: VALUES[schema.attributes[name].type] for name in attributes}
    outputs = [f"o{n}" for n in range(max(1, schema.min_output))]
    nodes.append(helper.make_node(schema.name, names, outputs, domain=schema.domain, **values))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]), *given]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("o0")])
    opsets = {"": 22, "foreign": 1} | {schema.domain: schema.since_version}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*pair) for pair in opsets.items()])


if __name__ == "__main__":
    for schema in defs.get_all_schemas_with_history():
        if schema.domain in ("", "ai.onnx.ml") and schema.max_input:
            for attributes in attributes_of(schema):
                print(schema.domain, schema.name, schema.since_version, attributes, flush=True)
                for known in (False, True):
                    infer_types(reading_unknown(schema, attributes, known))
    print("all", flush=True)
