"""Infer the types of each operator of ONNX where nobody knows those of what it reads; each is named before."""

from onnx import ModelProto, TensorProto, defs, helper

from tvm_rammer.relay_passes.onnx.fold import infer_types

Kinds = defs.OpSchema.AttrType
VALUES = {
    Kinds.INT: 1, Kinds.INTS: [1, 1], Kinds.FLOAT: 1.0, Kinds.FLOATS: [1.0], Kinds.STRING: "a", Kinds.STRINGS: ["a"],
    Kinds.GRAPH: helper.make_graph(
        [helper.make_node("Any", ["x"], ["b"], domain="foreign")], "b", [], [helper.make_empty_tensor_value_info("b")]
    ),
}  # fmt: skip
OPTIONAL = {"axes", "axis", "dtype", "keepdims", "to"}


def reading_unknown(schema: defs.OpSchema, known: int | None) -> ModelProto:
    """An operator whose inputs, but for one maybe, are of a domain that nobody knows."""
    count = max(1, min(schema.min_input, 6))
    names = [f"i{n}" for n in range(count)]
    given = [helper.make_tensor_value_info(names[known], TensorProto.FLOAT, [2, 3])] if known is not None else []
    nodes = [helper.make_node("Any", ["x"], [n], domain="foreign") for n in names if n not in {v.name for v in given}]
    attributes = {a.name: VALUES[a.type] for a in schema.attributes.values() if a.type in VALUES
                  and (a.required or a.name in OPTIONAL)}  # fmt: skip
    outputs = [f"o{n}" for n in range(max(1, schema.min_output))]
    nodes.append(helper.make_node(schema.name, names, outputs, domain=schema.domain, **attributes))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]), *given]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("o0")])
    opsets = {"": 22, "ai.onnx.ml": 4, "foreign": 1}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*pair) for pair in opsets.items()])


if __name__ == "__main__":
    for schema in defs.get_all_schemas():
        if schema.domain in ("", "ai.onnx.ml") and schema.max_input:
            print(schema.domain, schema.name, flush=True)
            for known in (None, 0):
                infer_types(reading_unknown(schema, known))
    print("all", flush=True)
