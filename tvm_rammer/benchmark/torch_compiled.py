"""PyTorch as a contender on this machine's CPU: a model's operators, compiled by `torch.compile`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from ..gpu_bundle.models.peers import nodes_of
from ..gpu_bundle.onsite.torch_operators import runner_of
from .peers import Runner


def torch_runner(model: str | bytes, threads: int) -> Runner:
    """Make a contender of a model in PyTorch, with the fastest code that it makes for a CPU by default.

    Inductor compiles the whole model, without gradients, and takes the weights for constants (`freezing`), so that they
    are packed once.

    Parameters
    ----------
    model : str or bytes
        The path of an ONNX file, or its contents.
    threads : int
        Of all of PyTorch in this process.

    Raises
    ------
    ToolError
        The model has an operator that is not among `torch_operators.OPERATORS`.
    """
    import torch
    import torch._inductor.config  # not loaded by torch itself

    proto = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
    torch.set_num_threads(threads)
    torch._dynamo.reset()  # all models run the code of one class, of which few forms are kept
    compiled = torch.compile(torch_module(proto).eval(), options={"freezing": True})

    def run(arrays: Sequence[np.ndarray]) -> Sequence[Any]:
        with torch.no_grad():
            return [result.numpy() for result in compiled(*map(torch.from_numpy, arrays))]

    return run


def torch_module(model: onnx.ModelProto) -> Any:
    """A model as a module of PyTorch, whose parameters are the weights.

    Raises
    ------
    ToolError
        As `torch_runner`.
    """
    import torch

    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in arrays]
    weights = {
        name: torch.nn.Parameter(torch.from_numpy(array.copy()), requires_grad=False)
        for name, array in arrays.items()
        if array.dtype == np.float32
    }
    others = {name: array.tolist() for name, array in arrays.items() if name not in weights}
    compute = runner_of(torch, nodes_of(model), {**weights, **others}, [value.name for value in model.graph.output])

    class Module(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weights = torch.nn.ParameterList(weights.values())

        def forward(self, *inputs: Any) -> Sequence[Any]:
            return compute({**dict(zip(weights, self.weights, strict=True)), **dict(zip(names, inputs, strict=True))})

    return Module()
