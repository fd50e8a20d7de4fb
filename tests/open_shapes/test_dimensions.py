"""Names, ranges and sizes of symbolic dimensions."""

import pytest

from tvm_rammer.errors import ModelError, ShapeError
from tvm_rammer.open_shapes.combine import open_shapes
from tvm_rammer.open_shapes.given import has_symbols
from tvm_rammer.open_shapes.signature import Declared

IMAGE = Declared("x", "float32", (None, 3, 48, "width"))
MASK = Declared("mask", "float32", ("batch", "width"))
ANY = Declared("any", "float32", None)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (None, False),
        ({}, False),
        (3, False),
        ({"x": (1, 3), "batch": 2, "n": (4,)}, False),
        ({"x": (1, "width")}, True),
        ({"x": (1, ("width", 1, 2))}, True),
        ({"width": "w"}, True),
    ],
)
def test_what_names_a_dimension_asks_for_an_open_module(shapes, expected):
    assert has_symbols(shapes) is expected


def test_all_that_a_model_leaves_open_is_open():
    shapes = open_shapes([IMAGE, MASK], None)
    assert shapes.is_open
    assert shapes.symbols == ("width", "batch")
    assert shapes.extents() == {"x": ("x_0", 3, 48, "width"), "mask": ("batch", "width")}
    assert shapes.bind({"x": (2, 3, 48, 7), "mask": (5, 7)}) == {"x": (2, 3, 48, 7), "mask": (5, 7)}
    assert shapes.bind({"x": (2, 3, 48, 7), "batch": 5})["mask"] == (5, 7)
    assert not open_shapes([IMAGE, MASK], {"x": (1, 3, 48, 64), "mask": (2, 64)}).is_open
    assert not open_shapes([MASK], {"batch": 1, "width": (4, 4)}).is_open
    assert open_shapes([MASK], {"batch": 1, "width": (4, 4)}).bind({}) == {"mask": (1, 4)}
    assert open_shapes([ANY], None).is_open
    assert open_shapes([ANY], None).bind({"any": ()}) == {"any": ()}


def test_a_size_that_one_input_fixes_is_fixed_in_others():
    shapes = open_shapes([IMAGE, MASK], {"x": (1, 3, 48, 64)})
    assert shapes.extents()["mask"] == ("batch", 64)
    with pytest.raises(ShapeError, match="'width' of input 'mask' is 65, not 64"):
        shapes.bind({"mask": (1, 65)})


def test_a_name_of_the_users_is_one_dimension_wherever_it_stands():
    shapes = open_shapes(
        [Declared("a", "float32", (None, "n")), Declared("b", "float32", (None, None))],
        {"a": ("batch", ("m", 2, 8)), "b": ("batch", "m")},
    )
    assert shapes.bind({"a": (3, 4), "b": (3, 4)}) == {"a": (3, 4), "b": (3, 4)}
    assert shapes.bind({"batch": 3, "m": 8}) == {"a": (3, 8), "b": (3, 8)}
    assert shapes.bind({"batch": 3, "n": 8, "b": (3, 8)})["a"] == (3, 8)
    with pytest.raises(ShapeError, match="'m' is 5 in input 'b' and 4 elsewhere; give one size"):
        shapes.bind({"a": (3, 4), "b": (3, 5)})
    with pytest.raises(ShapeError, match="'m' of input 'a' is 9, outside of its range, 2 to 8; give a size within"):
        shapes.bind({"a": (3, 9), "b": (3, 9)})


def test_names_of_the_models_become_one_by_a_name_of_the_users():
    declared = [Declared(name, "float32", (f"n_{name}",)) for name in "abc"]
    extents = open_shapes(declared, {"a": ("t",), "c": ("t",)}).extents()
    assert extents == {"a": ("n_a",), "b": ("n_b",), "c": ("n_a",)}


def test_a_name_to_which_shapes_give_two_sizes_means_nothing():
    declared = [Declared(n, "float32", s) for n, s in {"a": ("n", "m"), "b": ("m", "n"), "c": ("k",)}.items()]
    shapes = open_shapes(declared, {"a": (2, 3), "b": (3, 5)})
    assert shapes.bind({"c": (7,)}) == {"a": (2, 3), "b": (3, 5), "c": (7,)}
    assert shapes.symbols == ("m", "k")
    third = [*declared, Declared("d", "float32", ("n",))]
    with pytest.raises(ShapeError, match="'n' is given the sizes 2 and 5, but input 'd' leaves it open"):
        open_shapes(third, {"a": (2, 3), "b": (3, 5)})
    assert open_shapes(third, {"a": (2, 3), "b": (3, 5), "d": (4,)}).bind({"k": 1})["d"] == (4,)


WIDE = {"x": (1, 3, 48, ("width", 32, 1024))}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": (1, 3, 48, 2000)}, "'width' of input 'x' is 2000, outside of its range, 32 to 1024; give a size within"),
        ({"width": 31}, "'width' is 31, outside of its range"),
        ({"x": (1, 3, 48)}, r"\(1, 3, 48, width\), of rank 4, but \(1, 3, 48\) is given; give 4 sizes"),
        ({"x": (1, 1, 48, 64)}, "its dimension 3 cannot become 1"),
        ({"x": (2, 3, 48, 64)}, "its dimension 1 cannot become 2"),
        ({"x": (1, 3, 48, -1)}, "sizes are from 0 to"),
        ({"x": (1, 3, 48, "w")}, "give integers"),
        ({"width": (1, 2)}, "is \\(1, 2\\); give one integer"),
        ({"width": -1}, "the dimension 'width' is -1; sizes are from 0 to"),
        ({"y": (1,)}, "'y', which is no input; the inputs are x; its symbolic dimensions are width"),
        ({}, r"input 'x' is \(1, 3, 48, width\); give it a shape, or a size to each symbolic dimension"),
    ],
)
def test_what_does_not_fit_says_how_it_would(given, message):
    with pytest.raises(ShapeError, match=message):
        open_shapes([IMAGE], WIDE).bind(given)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": (1, 3, "width")}, "of rank 4"),
        ({"x": (1, 4, 48, "width")}, "its dimension 3 cannot become 4"),
        ({"x": (1, 3, 48, ("width", 9, 8))}, "bounds of dimension 'width' are 9 and 8"),
        ({"x": (1, 3, 48, ("width", -1, 8))}, "bounds of dimension 'width' are -1 and 8"),
        ({"x": (1, 3, 48, ("width", 1))}, r"holds \('width', 1\); give integers, a name such as 'width'"),
        ({"x": (1, 3, 48, 1.5)}, "holds 1.5"),
        ({"x": (("n", 1, 8), 3, 48, ("n", 1, 9))}, "'n' is from 1 to 8 in one place and from 1 to 9 in another"),
        ({"x": None}, "given for 'x' is None; give one, or leave it out"),
        ({"height": (1, 2)}, "'height', which is no input; the inputs are x"),
    ],
)
def test_shapes_without_sense_are_refused(shapes, message):
    with pytest.raises(ShapeError, match=message):
        open_shapes([IMAGE], shapes)


@pytest.mark.parametrize("shapes", [3, [1, 2], "x"])
def test_what_is_no_mapping_is_refused(shapes):
    with pytest.raises(ModelError, match="give a mapping of names to sizes"):
        open_shapes([IMAGE], shapes)
    with pytest.raises(ModelError, match="give a mapping of names to sizes"):
        open_shapes([IMAGE], None).bind(shapes)
