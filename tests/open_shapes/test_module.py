"""A module whose shapes vary, as a user calls it."""

import pathlib
import subprocess
import sys
import threading

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_rammer
from tests.functions import relax_module
from tests.two_inputs import two_inputs
from tvm_rammer.errors import ModelError, ScheduleError, ShapeError
from tvm_rammer.open_shapes.module import SymbolicModule
from tvm_rammer.runtime.tensors import TensorSpec
from tvm_rammer.zoo.open_shapes.line_reader import line_reader

from .judge import SMALL, agrees, feed

pytestmark = pytest.mark.usefixtures("with_cache")


def test_a_module_specialises_itself_on_what_comes(compilations):
    model = two_inputs("batch")
    module = tvm_rammer.compile(model, cache=False)
    assert isinstance(module, SymbolicModule)
    assert module.inputs == (TensorSpec("x", (-1, 16), "float32"), TensorSpec("b", (-1, 32), "float32"))
    assert [spec.shape for spec in module.outputs] == [(-1, 32)] * 2
    for batch in (1, 3, 1):
        agrees(module, model, feed(batch))
    assert [m.inputs[0].shape for m in module.modules] == [(3, 16), (1, 16)]
    assert len(compilations) == 2
    assert module.report() == module.modules[-1].report()
    assert "rOperators in one launch" in module.explain()


@pytest.mark.parametrize("how", ["compile", "stock"])
def test_a_call_without_rows(how):
    """As where a detector found nothing for the model that comes after it."""
    model = two_inputs("batch")
    module = tvm_rammer.compile(model, cache=False, on_new_shape=how)
    agrees(module, model, feed(0))
    module.wait()
    agrees(module, model, feed(0))
    agrees(module, model, feed(2))


def test_before_the_first_shape_there_is_nothing_to_tell(tmp_path):
    module = tvm_rammer.compile(two_inputs("batch"), cache=False)
    with pytest.raises(ShapeError, match="nothing is compiled yet, since its dimensions batch are open"):
        module.explain()
    for save in (module.save, module.export_library):
        with pytest.raises(ShapeError, match=r"module\.prepare\(shapes\)\.save"):
            save(tmp_path / "m.so")
    path = module.prepare({"batch": 2}).save(tmp_path / "m.rammer")
    assert tvm_rammer.load(path).inputs[0].shape == (2, 16)


def test_ranges_are_checked_before_anything_is_compiled(compilations):
    module = tvm_rammer.compile(two_inputs("batch"), shapes={"x": (("n", 2, 4), 16)}, cache=False)
    with pytest.raises(ShapeError, match="'n' of input 'x' is 5, outside of its range, 2 to 4"):
        module(**feed(5))
    with pytest.raises(ShapeError, match="'batch' is 2 in input 'b' and 3 elsewhere"):
        module(feed(3)["x"], feed(2)["b"])
    with pytest.raises(ModelError, match=r"input 'x' is float64\[3, 16\], but the model takes float32"):
        module(feed(3)["x"].astype("float64"), feed(3)["b"])
    with pytest.raises(ShapeError, match="is 1, outside"):
        module.prepare({"n": 1})
    assert not compilations


def test_so_many_are_kept():
    module = tvm_rammer.compile(two_inputs("batch"), cache=False, most_shapes=2)
    for batch in (1, 2, 3):
        module(**feed(batch))
    assert [m.inputs[0].shape[0] for m in module.modules] == [2, 3]


def test_what_was_compiled_before_comes_from_the_cache(tmp_path, compilations):
    model = two_inputs("batch")
    for _ in range(2):
        agrees(tvm_rammer.compile(model, cache=tmp_path), model, feed(2))
    assert len(compilations) == 1
    alone = tvm_rammer.compile(model, shapes={"x": (2, 16), "b": (2, 32)}, cache=tmp_path)
    np.testing.assert_array_equal(alone(**feed(2))[0], tvm_rammer.compile(model, cache=tmp_path)(**feed(2))[0])
    tvm_rammer.compile(model, shapes={"batch": 2}, cache=tmp_path)
    assert len(compilations) == 1


def test_new_shapes_are_refused_where_that_is_asked(tmp_path):
    model = two_inputs("batch")
    module = tvm_rammer.compile(model, cache=tmp_path, on_new_shape="error")
    with pytest.raises(ShapeError, match=r"x \[2, 16\], b \[2, 32\] were not prepared.*prepare\(\) them"):
        module(**feed(2))
    module.prepare({"batch": 2})
    agrees(module, model, feed(2))
    agrees(tvm_rammer.compile(model, cache=tmp_path, on_new_shape="error"), model, feed(2))
    assert module.find({"batch": 3}) is None


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"on_new_shape": "wait"}, ModelError, "on_new_shape is 'wait'; give 'compile', 'stock' or 'error'"),
        ({"most_shapes": 0}, ModelError, "most_shapes is 0; give an integer, at least 1"),
        ({"policy": "best"}, ScheduleError, "unknown policy 'best'"),
        ({"sync": "never"}, ScheduleError, "unknown sync 'never'"),
        ({"shapes": {"y": (1,)}}, ShapeError, "'y', which is no input"),
    ],
)
def test_a_wrong_choice_is_refused_at_once(how, error, message):
    with pytest.raises(error, match=message):
        tvm_rammer.compile(two_inputs("batch"), cache=False, **how)


def test_names_for_sizes_that_are_static_leave_nothing_open(tmp_path):
    module = tvm_rammer.compile(two_inputs(), shapes={"x": ("batch", 16)}, cache=tmp_path)
    assert module.inputs[0].shape == (2, 16)
    agrees(module, two_inputs(), feed(2))


def test_a_relax_module_is_taken_too():
    from tvm import relax, tirx

    n = tirx.Var("n", "int64")
    mod = relax_module([(n, 3)], lambda x: relax.op.negative(x))
    module = tvm_rammer.compile(mod, shapes={"n": (2, 8)}, cache=False)
    x = np.ones((4, 3), "float32")
    np.testing.assert_array_equal(module(x), -x)
    with pytest.raises(ShapeError, match=r"'n'.* is 9, outside"):
        module(np.ones((9, 3), "float32"))


def test_an_input_of_any_rank():
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    model = helper.make_model(helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", values[:1], values[1:]))
    module = tvm_rammer.compile(model, cache=False)
    for shape in ((2,), (2, 3)):
        x = np.ones(shape, "float32")
        np.testing.assert_array_equal(module(x), -x)


def test_a_file_that_changes_is_not_taken_for_the_first_one(tmp_path):
    path = tmp_path / "m.onnx"
    model = two_inputs("batch")
    onnx.save(model, path)
    module = tvm_rammer.compile(path, cache=tmp_path)
    module(**feed(1))
    path.touch()
    module(**feed(2))  # the same bytes
    model.graph.node[2].op_type = "Neg"
    onnx.save(model, path)
    module(**feed(2))
    with pytest.raises(ModelError, match="has changed since it was read"):
        module(**feed(3))


def test_a_model_that_the_user_changes_stays_as_it_was():
    model = two_inputs("batch")
    module, before = tvm_rammer.compile(model, cache=False), two_inputs("batch")
    model.graph.node[2].op_type = "Neg"
    agrees(module, before, feed(2))


def serves(model, widths, threads=4):
    """Call one module from several threads with all widths, and compare with modules of one width each."""
    rng = np.random.default_rng(0)
    height = model.graph.input[0].type.tensor_type.shape.dim[2].dim_value
    images = {w: rng.standard_normal((1, 3, height, w)).astype("float32") for w in widths}
    alone = {w: tvm_rammer.compile(model, shapes={"width": w}, cache=False)(x) for w, x in images.items()}
    module = tvm_rammer.compile(
        model, shapes={"x": (1, 3, height, ("width", min(widths), max(widths)))}, cache=False, most_shapes=len(widths)
    )
    wrong = []

    def work(number):
        for turn in range(3 * len(widths)):
            width = widths[(turn * (number + 1)) % len(widths)]
            if not np.array_equal(module(images[width]), alone[width]):
                wrong.append((number, width))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    assert len(module.modules) == len(widths)
    agrees(module, model, {"x": images[widths[-1]]})


def test_one_module_reads_lines_of_several_widths():
    serves(line_reader(**SMALL), [8, 13, 16])


@pytest.mark.slow
def test_one_module_reads_lines_of_twenty_widths():
    serves(line_reader(**SMALL), list(range(8, 48, 2)))


def test_convolutions_lstm_symbolic_width_and_a_branch_in_one_model():
    model = line_reader(**SMALL)
    graph = model.graph
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(kind, ["scores"], [f"{name}_out"])], name, [],
            [helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, None)],
        )
        for name, kind in (("then", "Exp"), ("else", "Neg"))
    }  # fmt: skip
    graph.initializer.append(numpy_helper.from_array(np.array(-1.5, "float32"), "sure"))
    graph.node.append(helper.make_node("ReduceMax", ["scores"], ["best"], keepdims=0))
    graph.node.append(helper.make_node("Greater", ["best", "sure"], ["is_sure"]))
    graph.node.append(helper.make_node("If", ["is_sure"], ["result"], **branches))
    graph.output.append(helper.make_tensor_value_info("result", TensorProto.FLOAT, None))
    module = tvm_rammer.compile(model, cache=False)
    taken = set()
    for width in (8, 14):
        for scale in (0.0, 9.0):
            x = scale * np.random.default_rng(width).standard_normal((1, 3, 16, width)).astype("float32")
            agrees(module, model, {"x": x})
            taken.add(bool(module(x)[1].max() < 1))
    assert taken == {True, False}
    found = tvm_rammer.profile(model, shapes={"width": 14}, runs=2)
    assert len(found.not_run) == 1
    assert found.schedule_svg().startswith("<svg")


def test_a_new_process_compiles_nothing_that_is_in_the_cache(tmp_path):
    onnx.save(two_inputs("batch"), tmp_path / "m.onnx")
    script = (
        "import sys, numpy as np, tvm_rammer\n"
        "module = tvm_rammer.compile(sys.argv[1] + '/m.onnx', cache=sys.argv[1] + '/cache')\n"
        "module(np.ones((2, 16), 'float32'), np.ones((2, 32), 'float32'))\n"
        "print('tvm' in sys.modules, len(module.modules))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    root = pathlib.Path(tvm_rammer.__file__).parents[1]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True, cwd=root) for _ in range(2)]
    assert [done.stdout for done in runs] == ["True 1\n", "False 1\n"]


def test_outputs_whose_types_the_model_leaves_out():
    """As ONNX allows; ONNX Runtime infers them, too."""
    model = two_inputs("batch")
    for output in model.graph.output:
        output.ClearField("type")
    module = tvm_rammer.compile(model, cache=False)
    assert [spec.shape for spec in module.outputs] == [(-1, 32)] * 2
    agrees(module, model, feed(2))


def test_two_inputs_of_one_name_are_refused():
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x, x], [y])
    with pytest.raises(ModelError, match="'x' has been used as graph input names multiple times"):
        tvm_rammer.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))


def test_a_model_that_returns_a_sequence_returns_its_elements():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("SequenceConstruct", ["x", "n"], ["s"])]
    returned = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    opset = [helper.make_opsetid("", 18)]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [returned]), opset_imports=opset, ir_version=8)
    module = tvm_rammer.compile(model)
    assert [spec.name for spec in module.outputs] == ["s[0]", "s[1]"]
    feeds = np.ones((3, 2), "float32")
    (second,) = module.run(["s[1]"], {"x": feeds})
    np.testing.assert_array_equal(second, -feeds)
