"""Each of PyTorch's operators on samples of its own: a program is computed as PyTorch computes it, or refused."""

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an optional dependency")
pytest.importorskip("expecttest", reason="PyTorch's samples need it")

from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

import tvm_rammer
from tests.marks import one_in
from tvm_rammer.relay_passes.aten.importer import DTYPES

UNDEFINED = {"empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "empty"}
"""Whose values nobody knows."""


COMMON = {
    "abs", "add", "amax", "argmax", "bmm", "clamp", "cumsum", "div no_rounding_mode", "eq", "exp", "index_select",
    "log", "matmul", "maximum", "mean", "mul", "nn.functional.conv2d", "nn.functional.gelu",
    "nn.functional.interpolate bilinear", "nn.functional.interpolate nearest", "nn.functional.layer_norm",
    "nn.functional.linear", "nn.functional.relu", "nn.functional.selu", "permute", "pow", "reshape", "sigmoid",
    "softmax", "split", "sqrt", "sub", "sum", "tanh", "transpose", "unfold", "where",
}  # fmt: skip
"""Operators that may not be refused; of others, such as `gather`, the sample here is one that is."""


@functools.cache
def operators():
    """The operators by name and variant."""
    return {f"{op.name} {op.variant_test_name}".strip(): op for op in op_db if op.name not in UNDEFINED}


class _Program(torch.nn.Module):
    """A call with the tensors among its arguments as inputs."""

    def __init__(self, op, sample):
        super().__init__()
        values, self.tree = tree_flatten(((sample.input, *sample.args), sample.kwargs))
        self.op = op
        self.tensors = [value.detach() for value in values if isinstance(value, torch.Tensor)]
        self.others = [None if isinstance(value, torch.Tensor) else (value,) for value in values]

    def forward(self, *tensors):
        given = iter(tensors)
        args, kwargs = tree_unflatten([next(given) if o is None else o[0] for o in self.others], self.tree)
        return self.op(*args, **kwargs)


def program_of(op):
    """One of an operator's samples that PyTorch itself computes and exports: program, inputs and results; or None."""
    dtype = next((dtype for dtype in (torch.float32, torch.int64) if dtype in op.dtypes), None)
    if dtype is None:
        return None
    torch.manual_seed(0)
    samples = list(op.sample_inputs("cpu", dtype))
    program = _Program(op.op, samples[len(samples) // 2])
    inputs = [tensor.clone() for tensor in program.tensors]
    try:
        with torch.no_grad():
            results = [r for r in tree_leaves(program(*inputs)) if isinstance(r, torch.Tensor)]
            exported = torch.export.export(program, tuple(t.clone() for t in program.tensors), strict=False)
    except Exception:  # what PyTorch cannot do is no case
        return None
    known = all(str(result.dtype).removeprefix("torch.") in DTYPES for result in results)
    return (exported, program.tensors, results) if inputs and results and known else None


def test_operators_that_may_not_be_refused_are_among_them():
    assert operators().keys() >= COMMON


@pytest.mark.parametrize("name", one_in(40, operators()))
@pytest.mark.filterwarnings("ignore")
def test_results_are_those_of_pytorch_or_the_program_is_refused(name):
    found = program_of(operators()[name])
    if found is None:
        return
    exported, inputs, results = found
    try:
        module = tvm_rammer.compile(exported, cache=False)
        made = module(*(tensor.numpy() for tensor in inputs))
    except tvm_rammer.RammerError:
        assert name not in COMMON
        return
    for ours, theirs in zip(made if isinstance(made, list | tuple) else [made], results, strict=True):
        want, got = theirs.detach().numpy(), np.asarray(ours)
        assert got.dtype == want.dtype
        size = np.abs(want[np.isfinite(want)], dtype="float64").max(initial=1)
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-4 * size if want.dtype.kind == "f" else 0)
