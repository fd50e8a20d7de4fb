"""What surrounds the arithmetic: views, mutations, Python values, memory."""

import threading

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an optional dependency")

from torch.nn import functional

from .check import agree, compiled, graphs_of


def _clones(args):
    return [arg.clone(memory_format=torch.preserve_format) if isinstance(arg, torch.Tensor) else arg for arg in args]


def _same_as_eager(function, *args, dynamic=None):
    """Call compiled and eager twice each with arguments of their own, and compare results and arguments."""
    made, ours, theirs = compiled(function, dynamic), _clones(args), _clones(args)
    graphs = []
    for _ in range(2):
        results = []
        graphs += graphs_of(lambda results=results: results.append(made(*ours)))
        agree(results[0], function(*theirs))
        agree(ours, theirs)
    assert graphs and not any(graph.refusals for graph in graphs)
    assert all(graph.modules for graph in graphs)


def _mutates(x):
    x.add_(1)
    view = x[1:]
    view.mul_(2)
    return x * 3


def _views(x):
    y = x + 1
    return x, x.t(), x[1:], y, y.t(), y[:, 1]


def _equal_results(x):
    y = x + 1
    return y, y, x + 1, x.clone(), x * 1


class _Positions(torch.nn.Module):
    """Numbers in a buffer, of 64 bits, of which some are taken."""

    def __init__(self):
        super().__init__()
        self.register_buffer("positions", torch.arange(9)[None] << 40)

    def forward(self, x):
        return x + self.positions[:, : x.shape[1]], self.positions[:, 2:4] * 3


CASES = {
    "numbers of 64 bits in a buffer": (_Positions(), torch.randn(1, 5)),
    "a literal without elements before others": (
        lambda x: torch.cat([torch.tensor([]), x + 1], -2),
        torch.randn(2, 3, 4),
    ),
    "numbers of 32 bits that are added up": (lambda x: torch.cumsum((x > 0).int(), 1) * 3, torch.randn(2, 5)),
    "a norm that trains": (
        lambda x, mean, var: functional.batch_norm(x, mean, var, training=True, momentum=0.3),
        torch.randn(2, 3, 4, 4),
        torch.randn(3),
        torch.rand(3),
    ),
    "mutated inputs": (_mutates, torch.randn(4, 6)),
    "views of inputs and results": (_views, torch.randn(4, 6)),
    "results that are equal": (_equal_results, torch.randn(3)),
    "none and python values": (lambda x: (None, x + 1, 3, True, [x * 2, None]), torch.randn(3)),
    "numbers as inputs": (lambda x, n, yes, f: x * f + n if yes else x, torch.randn(3), 3, True, 2.5),
    "a constant result": (lambda x: (x + 1, torch.arange(3) * 2.0), torch.randn(3)),
    "a literal": (lambda x: x + torch.tensor([1.0, 2.0, 3.0]), torch.randn(3)),
    "a transposed input": (lambda x: x + 1, torch.randn(3, 4).t()),
    "channels last": (lambda x: torch.relu(x), torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)),
    "memory that is not aligned": (lambda x: x * 2, torch.randn(9)[1:]),
    "no element": (lambda x: x * 2, torch.empty(0, 3)),
    "no dimension": (lambda x: x.sum() * 2, torch.randn(3)),
}


@pytest.mark.parametrize("case", CASES)
def test_results_and_arguments_are_those_of_pytorch(case):
    function, *args = CASES[case]
    _same_as_eager(function, *args)


OPERATORS = {
    "types": (lambda i: (i + 1.5, i // 2, i / 2, i % 3, -i, i > 2, i * 2.0 >= i), torch.arange(-3, 4)),
    "truth": (lambda b: (~b, b & True, b.sum(), b.any()), torch.tensor([True, False])),
    "double": (lambda x: (x @ x.t(), torch.addmm(x, x, x, beta=2, alpha=3)), torch.randn(3, 3, dtype=torch.float64)),
    "integers": (lambda i: i @ i.t(), torch.arange(6).reshape(2, 3)),
    "alpha": (lambda x: (torch.sub(x, x * 3, alpha=2), torch.add(x, 1, alpha=3)), torch.randn(3)),
    "bounds": (lambda x: (x.clamp(-1, 1), x.clamp(max=0.5), x.clamp(min=0.1), x.amax(1), x.amin()), torch.randn(3, 4)),
    "attention": (
        lambda q: functional.scaled_dot_product_attention(q, q, q, is_causal=True).contiguous(),
        torch.randn(1, 2, 5, 8),
    ),
    "images": (
        lambda x: [
            functional.interpolate(x, scale_factor=2),
            functional.interpolate(x, size=(9, 8)),
            functional.interpolate(x, scale_factor=2, mode="bilinear"),
        ],
        torch.randn(1, 2, 3, 4),
    ),
    "windows that vary": (
        lambda x: [functional.adaptive_avg_pool2d(x, n) for n in (1, 3, (2, 4))],
        torch.randn(1, 2, 7, 8),
    ),
    "places that count from the end": (
        lambda x, i: (x[:, -1], x[i], x[:, i], x[i, i], torch.index_put(x, (i, i), x[0, :2]), x[-3:, 1:-1]),
        torch.randn(4, 6),
        torch.tensor([-1, 2]),
    ),
    "elements that are put where some axes have an index": (
        lambda x, i: [
            torch.ops.aten.index_put(x, given, x.flatten()[:n].reshape(shape), accumulate)
            for given, n, shape in (
                ((i,), 4, (4,)),
                ((None, i), 3, (3, 1, 1)),
                ((i[:, None], None, i % 2), 2, (2,)),
                ((i[0],), 4, (4,)),
            )
            for accumulate in (False, True)
        ],
        torch.randn(3, 2, 4),
        torch.tensor([-1, 0]),
    ),
    "truth values that are added and multiplied": (lambda b: (b * b[:, :1], b + b[:1]), torch.randn(3, 4) > 0),
    "numbers in a row": (
        lambda x: (x + torch.arange(7, 0, -2), x * torch.arange(0, 1, 0.25), torch.arange(4) + x),
        torch.randn(2, 4),
    ),
    "windows of an axis": (
        lambda x: [x.unfold(*given) * 2 for given in ((1, 3, 2), (-1, 2, 1), (0, 2, 2), (2, 4, 4))],
        torch.randn(2, 7, 4),
    ),
    "images of other sizes": (
        lambda x: [
            functional.interpolate(x, **given)
            for given in (
                {"size": (7, 9)},
                {"scale_factor": 1.7},
                {"scale_factor": 1.7, "mode": "bilinear"},
                {"scale_factor": (2.5, 0.8), "mode": "bilinear"},
                {"scale_factor": 1.5, "mode": "bilinear", "align_corners": True},
                {"size": (2, 3), "mode": "bicubic"},
            )
        ],
        torch.randn(1, 2, 4, 5),
    ),
    "pools of other divisors": (
        lambda x: [
            functional.avg_pool2d(x, 3, 2, 1, divisor_override=2),
            functional.avg_pool2d(x, (2, 3), ceil_mode=True),
        ],
        torch.randn(1, 2, 8, 8),
    ),
    "exponential units": (lambda x: (functional.elu(x, 0.5), torch.selu(x), torch.celu(x, 2.0)), torch.randn(9)),
    "functions of integers": (
        lambda i: (torch.log(i), torch.rsqrt(i), torch.reciprocal(i), torch.tanh(i), torch.sigmoid(i)),
        torch.arange(1, 6),
    ),
    "quotients that are rounded to zero": (
        lambda i, x: (torch.div(i, 3, rounding_mode="trunc"), torch.div(x, 0.5, rounding_mode="trunc")),
        torch.arange(-5, 5),
        torch.randn(9),
    ),
    "least elements": (lambda x: (*torch.min(x, 1), *torch.max(x, 0, keepdim=True)), torch.randn(4, 5)),
    "two types": (lambda x, i: (torch.where(x > 0, x, 0), torch.where(x > 0, i, x)), torch.randn(4), torch.arange(4)),
    "bounds that are tensors": (lambda x, b: torch.clamp(x, b, b + 1), torch.randn(4, 5), torch.randn(5)),
    "moments": (lambda x: (*torch.var_mean(x, 1), *torch.std_mean(x, correction=0)), torch.randn(4, 5)),
    "largest elements of equal windows": (lambda x: functional.adaptive_max_pool2d(x, (2, 3)), torch.randn(1, 2, 8, 9)),
    "places by several indices": (
        lambda x, i, j: (
            x[:, i, j],
            x[:, :, i, j],
            x[:, i[:, None], j],
            x[:, i[None], j[:, None]],
            x[i, :, j],
            x[:, i, :, j[:, None]],
            x[:, i[:, None, None], j[:, None]],
        ),
        torch.randn(3, 4, 3, 3),
        torch.tensor([2, -1, 0]),
        torch.tensor([0, 1, -2]),
    ),
    "samples of an image": (
        lambda x, *grids: [
            functional.grid_sample(x, grid, mode, outside, align)
            for grid in grids
            for mode, outside, align in (
                ("bilinear", "zeros", False),
                ("nearest", "border", True),
                ("bicubic", "reflection", False),
            )
        ],
        torch.randn(2, 3, 5, 6),
        torch.randn(2, 4, 3, 2),
        torch.randn(2, 2, 2, 2),
    ),
    "elements joined by index": (
        lambda x, s, i: [
            x.scatter_reduce(1, i, s, reduction, include_self=old)
            for reduction in ("sum", "prod", "mean", "amax", "amin")
            for old in (True, False)
        ],
        torch.randn(3, 5),
        torch.randn(3, 6),
        torch.tensor([[0, 3, 3, 1], [2, 2, 2, 2], [4, 0, 4, 0]]),
    ),
    "look-ups": (
        lambda x, i: (x[i], functional.embedding(i, x), x.gather(0, i[:, None]), x.argmax(1), x.sort(1).values),
        torch.randn(4, 6),
        torch.tensor([2, 0]),
    ),
}


@pytest.mark.parametrize("case", [c if c == "types" else pytest.param(c, marks=pytest.mark.slow) for c in OPERATORS])
def test_operators_that_are_easily_misread(case):
    function, *args = OPERATORS[case]
    _same_as_eager(function, *args)


@pytest.mark.slow
@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layers_in_both_orders(norm_first):
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 16, batch_first=True, norm_first=norm_first, activation="gelu"
    ).eval()
    with torch.no_grad():
        _same_as_eager(layer, torch.randn(2, 3, 8))


@pytest.mark.slow
@pytest.mark.parametrize("need_weights", [False, True])
def test_attention_by_itself(need_weights):
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    with torch.no_grad():
        _same_as_eager(lambda x: attention(x, x, x, need_weights=need_weights), torch.randn(2, 3, 8))


def test_no_result_is_overwritten_by_the_next_call():
    function = compiled(lambda x: (x + 1, torch.arange(3) * 2.0))
    first = function(torch.zeros(3))
    first[1].add_(5)
    second = function(torch.ones(3))
    agree(first, (torch.ones(3), torch.tensor([5.0, 7.0, 9.0])))
    agree(second, (torch.full((3,), 2.0), torch.tensor([0.0, 2.0, 4.0])))


def test_an_index_outside_is_pytorchs_error():
    table, function = torch.randn(4, 2), compiled(lambda w, i: functional.embedding(i, w))
    function(table, torch.tensor([1]))
    with pytest.raises(IndexError):
        function(table, torch.tensor([9]))


def test_inputs_that_begin_to_share_memory():
    def function(a, b):
        a.add_(1)
        return a + b

    made, memory = compiled(function), torch.zeros(5)
    agree(made(torch.zeros(4), torch.zeros(4)), torch.ones(4))
    with pytest.warns(UserWarning, match="they share memory otherwise than in its first call"):
        agree(made(memory[:4], memory[1:]), torch.tensor([2.0, 2.0, 2.0, 1.0]))
    agree(memory, torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0]))


def test_a_call_in_inference_mode():
    model = torch.nn.Linear(4, 3)
    with torch.inference_mode():
        _same_as_eager(model, torch.randn(2, 4))
        _same_as_eager(torch.nn.Linear(4, 3), torch.randn(2, 4))


def test_many_threads_call_one_function():
    model = torch.nn.Linear(8, 4)
    function, wrong = compiled(model), []
    with torch.no_grad():
        function(torch.randn(3, 8))

    @torch.no_grad()
    def calls():
        for _ in range(20):
            x = torch.randn(3, 8)
            if not torch.allclose(function(x), model(x), atol=1e-5):
                wrong.append(x)

    threads = [threading.Thread(target=calls) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
