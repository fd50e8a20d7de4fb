"""Edges that are mirrored, repeated or begin anew: of any width, and after what is cut off."""

import numpy as np
import pytest
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tvm_rammer.errors import RammerError

from ...models import by_onnxruntime, model, node, random, tensor, value

MODES = ["reflect", "edge", "wrap"]
WIDTHS = {
    "narrow": ((5, 6), [2, 1, 4, 3]),
    "as wide as the image": ((5, 6), [5, 0, 0, 6]),
    "wider": ((5, 6), [12, 9, 1, 30]),
    "of a single row": ((1, 6), [3, 0, 2, 1]),
    "of two": ((2, 6), [7, 0, 6, 1]),
}


def padded(mode, shape, widths, opset=19):
    return model(
        [node("Pad", ["x", "widths"], ["y"], mode=mode)], [value("x", shape)], ["y"],
        [tensor("widths", np.array(widths))], opset,
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WIDTHS)
def test_edges_of_any_width(name, mode):
    """As the standard's reference has them; ONNX Runtime refuses mirrored ones that are wider than the image."""
    shape, widths = WIDTHS[name]
    x = random(*shape)
    want = np.pad(x, list(zip(widths[:2], widths[2:], strict=True)), mode)
    np.testing.assert_array_equal(tvm_rammer.compile(padded(mode, shape, widths))(x), want)


@pytest.mark.parametrize("mode", [*MODES, "constant"])
@pytest.mark.parametrize("widths", [[-2, 0, 2, 1], [2, -1, -2, 3], [-1, -2, -1, 0], [1, -5, 0, 0]])
def test_what_is_cut_off_is_no_part_of_the_edge(widths, mode):
    x = random(5, 6)
    proto = padded(mode, (5, 6), widths)
    np.testing.assert_array_equal(tvm_rammer.compile(proto)(x), by_onnxruntime(proto, x=x)[0])


@pytest.mark.parametrize("widths", [[2, 0, 1, 3], [-2, 1, 0, -1], [0, 0, 0, 0]])
@pytest.mark.parametrize("fill", [[], [1]], ids=["number", "vector"])
def test_an_edge_of_a_value_that_is_computed(fill, widths):
    inputs = [value("x", [5, 6]), value("fill", fill)]
    proto = model([node("Pad", ["x", "w", "fill"], ["y"])], inputs, ["y"], [tensor("w", np.array(widths))], opset=19)
    given = {"x": random(5, 6), "fill": np.full(fill, 7.5, "float32")}
    np.testing.assert_array_equal(tvm_rammer.compile(proto)(*given.values()), by_onnxruntime(proto, **given)[0])


@pytest.mark.parametrize("mode", MODES)
def test_an_edge_of_nothing_is_refused(mode):
    with pytest.raises(RammerError, match="Pad 'y'"):
        tvm_rammer.compile(padded(mode, (5, 6), [-5, 0, 2, 0]))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 9])
def test_a_mirrored_edge_of_what_only_the_data_know(length):
    """A stock call: its code knows the sizes when it runs."""
    nodes = [
        node("Compress", ["x", "c"], ["some"], axis=0),
        node("Pad", ["some", "widths"], ["y"], mode="reflect"),
    ]
    inputs = [value("x", [9]), value("c", [9], 9)]
    proto, x = model(nodes, inputs, ["y"], [tensor("widths", np.array([3, 5]))], 19), random(9)
    given = np.arange(9) < length
    np.testing.assert_array_equal(tvm_rammer.compile(proto)(x, given), np.pad(x[:length], (3, 5), "reflect"))


@pytest.mark.parametrize("mode", [*MODES, "constant"])
def test_an_edge_of_what_has_no_name_for_its_size(mode):
    """How many elements there are twice selected, nobody has named."""
    nodes = [
        node("Compress", ["x", "c"], ["some"], axis=0), node("Compress", ["some", "d"], ["few"], axis=0),
        node("Pad", ["few", "widths"], ["y"], mode=mode),
    ]  # fmt: skip
    inputs = [value("x", [9]), value("c", [9], 9), value("d", [4], 9)]
    proto, x = model(nodes, inputs, ["y"], [tensor("widths", np.array([2, 1]))], 19), random(9)
    want = np.pad(x[[0, 2, 3]], (2, 1), mode)
    got = tvm_rammer.compile(proto)(x, np.arange(9) < 4, np.array([True, False, True, True]))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", WIDTHS)
def test_a_mirrored_edge_of_a_relax_module(name):
    shape, widths = WIDTHS[name]
    around = [widths[0], widths[2], widths[1], widths[3]]
    module = tvm_rammer.compile(relax_module([shape], lambda x: relax.op.nn.pad(x, around, "reflect")))
    x = random(*shape)
    np.testing.assert_array_equal(module(x), np.pad(x, [around[:2], around[2:]], "reflect"))
