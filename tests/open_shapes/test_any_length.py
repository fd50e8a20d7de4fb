"""Models of several open dimensions: which of them one module may serve all sizes of."""

import itertools
import threading

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tests.relay_passes.models import by_onnxruntime, model, node, random, tensor, value
from tvm_rammer.errors import ShapeError
from tvm_rammer.open_shapes.any_length import AnyLengths
from tvm_rammer.open_shapes.combine import open_shapes
from tvm_rammer.open_shapes.signature import Declared
from tvm_rammer.runtime.length import LengthModule

WIDTH = 4


def layer(shape=("time", "batch", WIDTH), more=(), inputs=()):
    """A recurrent layer, as PyTorch writes it with the batch first or second; "x" becomes "y"."""
    first = shape[0] == "batch"
    turned = [node("Transpose", ["x"], ["steps"], perm=[1, 0, 2])] if first else [node("Identity", ["x"], ["steps"])]
    nodes = [
        *turned,
        node("RNN", ["steps", "w", "r", "", *(v.name for v in inputs)], ["states"], hidden_size=WIDTH),
        node("Squeeze", ["states", "axis"], ["rows"]),
        node("Transpose", ["rows"], ["y"], perm=[1, 0, 2] if first else [0, 1, 2]),
    ]
    weights = [tensor("w", random(1, WIDTH, WIDTH)), tensor("r", random(1, WIDTH, WIDTH, seed=1))]
    return model(
        [*nodes, *more], [value("x", list(shape)), *inputs], ["z" if more else "y"],
        [*weights, tensor("axis", np.array([1]))],
    )  # fmt: skip


def agrees(module, proto, *shape, **more):
    feed = {"x": random(*shape), **more}
    (got,), (want,) = module.run(None, feed), by_onnxruntime(proto, **feed)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [("time", "batch", WIDTH), ("batch", "time", WIDTH)])
def test_each_batch_is_compiled_once_for_all_lengths(compilations, shape):
    proto = layer(shape)
    module = tvm_rammer.compile(proto, cache=False)
    for batch, time in ((2, 9), (2, 20), (1, 12), (2, 8), (1, 30)):
        agrees(module, proto, *({"batch": batch, "time": time}.get(n, n) for n in shape))
    assert len(compilations) == len(module.modules) == 2
    assert all(isinstance(one, LengthModule) for one in module.modules)
    assert "every 'time' from 1 to 64" in module.explain() and "by itself" not in module.explain()


def test_a_single_step_of_any_batch_does_not_take_the_batch_for_the_length(compilations):
    proto = layer(("batch", "time", WIDTH))
    module = tvm_rammer.compile(proto, cache=False)
    for batch, time in ((2, 1), (3, 1), (3, 9), (2, 17)):
        agrees(module, proto, batch, time, WIDTH)
    assert len(compilations) == 2


def test_lengths_of_the_sequences_of_a_batch():
    proto = layer(inputs=[value("lengths", ["batch"], TensorProto.INT32)])
    module = tvm_rammer.compile(proto, cache=False)
    for batch, time in ((2, 9), (2, 12), (3, 10)):
        agrees(module, proto, time, batch, WIDTH, lengths=np.arange(time, time - batch, -1).astype("int32"))
    assert len(module.modules) == 2
    with pytest.raises(ShapeError, match="'batch' is 3 in input 'lengths' and 2 elsewhere"):
        module(random(9, 2, WIDTH), np.ones(3, "int32"))


def test_threads_with_shapes_of_their_own(compilations):
    proto = layer()
    module, wrong = tvm_rammer.compile(proto, cache=False), []
    wanted = {shape: by_onnxruntime(proto, x=random(*shape, WIDTH))[0] for shape in ((9, 1), (10, 2), (30, 1), (8, 2))}

    def call(shapes):
        for shape in shapes:
            got = module(random(*shape, WIDTH))
            if got.shape != wanted[shape].shape or not np.allclose(got, wanted[shape], 1e-4, 1e-5):
                wrong.append(shape)

    threads = [
        threading.Thread(target=call, args=(order,)) for order in itertools.islice(itertools.permutations(wanted), 6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(compilations) == 2


@pytest.mark.usefixtures("with_cache")
def test_another_process_finds_them_without_trying_others(tmp_path, compilations):
    proto = layer(("batch", "time", WIDTH))
    tvm_rammer.compile(proto, cache=tmp_path).prepare({"batch": 2, "time": 9})
    again = tvm_rammer.compile(proto, cache=tmp_path, on_new_shape="error")
    for time in (1, 9, 40):
        agrees(again, proto, 2, time, WIDTH)
    with pytest.raises(ShapeError, match="not prepared"):
        again(random(3, 9, WIDTH))
    assert len(compilations) == 1


def test_where_neither_will_do_the_reasons_are_told():
    proto = layer(more=[node("Softmax", ["y"], ["z"], axis=0)])
    module = tvm_rammer.compile(proto, cache=False)
    agrees(module, proto, 9, 2, WIDTH)
    told = module.explain()
    assert "by itself: for any 'time': Softmax 'z' works along the sequence; for any 'batch': " in told


def lengths_of(*shapes, given=None):
    return AnyLengths(open_shapes([Declared(f"x{n}", "float32", s) for n, s in enumerate(shapes)], given), "")


def test_names_for_one_axis_are_one_dimension():
    assert [one.name for one in lengths_of(("n",), ("m",), given={"x0": ("t",), "x1": ("t",)})] == ["n"]
    assert [one.name for one in lengths_of(("n", "m"), ("m",))] == ["n", "m"]
    assert [one.name for one in lengths_of(("n", None))] == ["n", "x0_1"]


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        ([("n", "n")], "an input has the dimension 'n' twice"),
        ([None], "the rank of an input is open"),
        ([(*"abcde",)], "more than 4 dimensions are open"),
    ],
)
def test_dimensions_that_are_no_lengths(shapes, reason):
    found = lengths_of(*shapes)
    assert not list(found) and found.why_none() == reason
