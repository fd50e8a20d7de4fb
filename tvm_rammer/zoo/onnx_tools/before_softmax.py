"""Models without their last softmax, whose saturated outputs hide errors."""

import onnx


def before_softmax(model: onnx.ModelProto) -> onnx.ModelProto:
    """Make the input of a final Softmax the model's output.

    Parameters
    ----------
    model : onnx.ModelProto
        Is not changed.

    Returns
    -------
    onnx.ModelProto
        A copy in which no output comes straight from a Softmax; the output's new name is that of the softmax's input.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    for output in graph.output:
        softmax = next((n for n in graph.node if output.name in n.output and n.op_type == "Softmax"), None)
        if softmax is None:
            continue
        output.name = softmax.input[0]
        if not any(softmax.output[0] in n.input for n in graph.node):
            graph.node.remove(softmax)
    values = [v for v in graph.value_info if v.name not in {o.name for o in graph.output}]
    del graph.value_info[:]
    graph.value_info.extend(values)
    return made
