"""How a compiled module is called: by position and by name, with any arrays; a wrong call says what is wrong."""

import numpy as np
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tests.two_inputs import agrees, two_inputs
from tvm_rammer.errors import ModelError


def test_numpy_arrays_by_position_and_by_name(module, arrays, want):
    x, b = arrays
    for got in (module(x, b), module(x, b=b), module(b=b, x=x)):
        assert all(isinstance(a, np.ndarray) for a in got)
        agrees(got, want)


def test_numpy_scalars_are_arrays():
    mod = relax_module([(3,), ()], lambda x, scale: relax.op.multiply(x, scale))
    got = tvm_rammer.compile(mod)(np.ones(3, "float32"), np.float32(2.5))
    assert isinstance(got, np.ndarray)
    np.testing.assert_array_equal(got, np.full(3, 2.5, "float32"))


def test_numbers_and_lists_get_the_type_of_the_input(module, arrays, want):
    lists = [array.tolist() for array in arrays]
    opened, session = tvm_rammer.compile(two_inputs("batch")), tvm_rammer.InferenceSession(two_inputs())
    for got in (module(*lists), opened(*lists), session.run(None, dict(zip("xb", lists, strict=True)))):
        assert all(isinstance(a, np.ndarray) for a in got)
        agrees(got, want)
    mod = relax_module([(3,), ()], lambda x, scale: relax.op.multiply(x, scale), dtype="int32")
    scaled = tvm_rammer.compile(mod)
    np.testing.assert_array_equal(scaled([1, 2, 3], 2), [2, 4, 6])
    for wrong, message in ((0.5, "is float64"), (2**40, "out of bounds"), (np.int64(2), "is int64")):
        with pytest.raises(ModelError, match=message):
            scaled([1, 2, 3], wrong)


def test_tvm_tensors_and_anything_that_speaks_dlpack(module, arrays, want):
    class Speaker:
        """Speaks DLPack and nothing else, as a tensor of another framework does."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **how):
            return self.array.__dlpack__(**how)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    for wrap in (tvm.runtime.tensor, Speaker):
        got = module(*(wrap(a) for a in arrays))
        assert all(isinstance(t, tvm.runtime.Tensor) for t in got)
        agrees(got, want)


def test_arrays_that_are_not_contiguous(module, arrays, want):
    x, b = arrays
    agrees(module(np.asfortranarray(x), np.concatenate([b, b])[::2][:2] * 0 + b), want)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x, b: m(x), "no value for the inputs b"),
        (lambda m, x, b: m(x, b, b), "3 inputs given, but the model has 2; give x, b"),
        (lambda m, x, b: m(x, b, x=x), "'x' was given twice"),
        (lambda m, x, b: m(x, c=b), "no input 'c'; its inputs are x, b"),
        (lambda m, x, b: m(x[:1], b), r"'x' is float32\[1, 16\], but the model takes float32\[2, 16\]"),
        (lambda m, x, b: m(x.astype("float64"), b), r"'x' is float64\[2, 16\]"),
        (lambda m, x, b: m(x, None), "'b' is a NoneType that holds other things than numbers"),
        (lambda m, x, b: m.run("yz", {"x": x, "b": b}), r"output_names is 'yz'; give a list, as in \['yz'\]"),
        (lambda m, x, b: m.run(3, {"x": x, "b": b}), "output_names is 3; give a list"),
        (lambda m, x, b: m.run([3], {"x": x, "b": b}), "no output 3; its outputs are y, z"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(module, arrays, call, message):
    with pytest.raises(ModelError, match=message):
        call(module, *arrays)


def test_what_was_compiled_for_no_rows_takes_no_others(arrays):
    empty = tvm_rammer.compile(two_inputs("batch"), shapes={"batch": 0})
    assert [spec.shape for spec in empty.inputs] == [(0, 16), (0, 32)]
    assert [y.shape for y in empty(*(a[:0] for a in arrays))] == [(0, 32), (0, 32)]
    with pytest.raises(ModelError, match=r"'x' is float32\[2, 16\], but the model takes float32\[0, 16\]"):
        empty(*arrays)


class HasGradient:
    """A tensor that its library hands to nobody."""

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **how):
        raise BufferError("it has a gradient")


class HasNoMemory(HasGradient):
    """A tensor that is only a shape."""

    def __dlpack_device__(self):
        raise ValueError("it has no memory")


class HasBroken(HasGradient):
    """A tensor of which nothing works."""

    def __dlpack_device__(self):
        raise KeyError("device")

    def __dlpack__(self, **how):
        raise IndexError("memory")


@pytest.mark.parametrize("value", [HasGradient(), HasNoMemory(), HasBroken(), HasBroken, [[1.0, 2.0], [3.0]]])
@pytest.mark.parametrize("model", [two_inputs(), two_inputs("batch")])
def test_what_cannot_be_read_as_an_array_is_refused(model, value, arrays):
    module, session = tvm_rammer.compile(model), tvm_rammer.InferenceSession(model)
    for call in (
        lambda: module(value, arrays[1]),
        lambda: module.run(None, {"x": value, "b": arrays[1]}),
        lambda: session.run(None, {"x": value, "b": arrays[1]}),
    ):
        with pytest.raises(ModelError, match="input 'x' cannot be read as an array"):
            call()


@pytest.mark.parametrize("feeds", [None, 5, ["x"], {1: 2}])
@pytest.mark.parametrize("model", [two_inputs(), two_inputs("batch")])
def test_feeds_that_are_no_mapping_of_names_are_refused(model, feeds):
    for runs in (tvm_rammer.compile(model), tvm_rammer.InferenceSession(model)):
        with pytest.raises(ModelError, match="give a mapping of names to arrays"):
            runs.run(None, feeds)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "int8", "bool"])
def test_results_are_copies_whatever_their_type(dtype):
    """Also of an input that is a result itself: a later call must not change what an earlier one returned."""
    mod = relax_module([(3, 5), (3, 5)], lambda x, y: relax.Tuple([x, relax.op.flip(y, 1)]), dtype=dtype)
    module = tvm_rammer.compile(mod)
    rng = np.random.default_rng(0)
    calls = [[(rng.random((3, 5)) * 3).astype(dtype) for _ in range(2)] for _ in range(3)]
    results = [module(*arrays) for arrays in calls]
    for (x, y), (first, second) in zip(calls, results, strict=True):
        assert first.dtype == second.dtype == dtype
        np.testing.assert_array_equal(first, x)
        np.testing.assert_array_equal(second, y[:, ::-1])


def test_sizes_that_cannot_be_are_an_error_of_ours_when_the_model_runs():
    """No exception of TVM's comes out of a call."""
    shape = numpy_helper.from_array(np.array([2, 8, -7]), "shape")
    nodes = [helper.make_node("ConstantOfShape", ["shape"], ["y"])]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "sizes", [], [result], [shape])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    with pytest.raises(tvm_rammer.RammerError):
        tvm_rammer.compile(proto, cache=False)()


def test_results_by_name(module, arrays):
    x, b = arrays
    y, z = module(x, b)
    (got,) = module.run(["z"], {"x": x, "b": b})
    np.testing.assert_array_equal(got, z)
    for got, want in zip(module.run(None, {"b": b, "x": x}), (y, z), strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ModelError, match="no output 'w'; its outputs are y, z"):
        module.run(["w"], {"x": x, "b": b})
    with pytest.raises(ModelError, match="give a mapping"):
        module.run(None, [x, b])


def test_outputs_of_several_models_have_names():
    mod = relax_module([(3,)], lambda x: relax.Tuple([x, relax.op.negative(x)]))
    module = tvm_rammer.compile_together([two_inputs(), mod])
    assert [s.name for s in module.outputs] == ["model0_y", "model0_z", "model1_output_0", "model1_output_1"]
    feeds = {s.name: np.ones(s.shape, s.dtype) for s in module.inputs}
    (negative,) = module.run(["model1_output_1"], feeds)
    np.testing.assert_array_equal(negative, -np.ones(3, "float32"))
