"""Relax modules and torch programs: copied, made static, or refused."""

import pytest
import tvm
import tvm_ffi
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

from tvm_rammer.errors import ModelError, ShapeError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.bindings import static_shape

from .passes.test_fold_batchnorm import build


@I.ir_module
class Symbolic:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", 3), "float32")):
        with R.dataflow():
            z = R.add(x, y)
            R.output(z)
        return z


def test_static_modules_are_copied():
    mod = build((2,), lambda b, x: b.emit(relax.op.exp(x)))
    loaded = load_model(mod)
    assert not loaded.same_as(mod) and tvm_ffi.structural_equal(loaded, mod)


def test_symbolic_dimensions_are_bound_in_all_parameters():
    for shapes in ({"x": (2, 3)}, {"n": 2}):
        mod = load_model(Symbolic, shapes)
        assert [static_shape(p.ty) for p in mod["main"].params] == [(2, 3), (2, 3)]
    assert static_shape(Symbolic["main"].params[0].ty) is None


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (None, r"parameter 'x' has no static shape but \(n, 3\); give it one, as in shapes=\{'x': \(1, 3\)\}"),
        ({"q": (1,)}, "'q', which is no input"),
        ({"x": (2,)}, "of rank 2"),
        ({"x": (2, 4)}, "does not fit"),
        ({"n": 4, "x": (2, 3)}, "'n' of parameter 'x' is 2 here and 4 elsewhere"),
        ({"x": (2, 3), "y": (3, 3)}, "'n' of parameter 'y' is 3 here and 2 elsewhere"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(ShapeError, match=message):
        load_model(Symbolic, shapes)


def test_a_module_without_main_is_refused():
    with pytest.raises(ModelError, match="no Relax function 'main'"):
        load_model(tvm.IRModule({}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (relax.TupleType([relax.TensorType((2,), "float32")]), "parameter 'y' is no tensor but "),
        (relax.ObjectType(), "parameter 'y' is no tensor but "),
        (relax.ShapeType([2]), "parameter 'y' is a shape"),
    ],
)
def test_only_tensors_are_taken(given, message):
    x, y = relax.Var("x", relax.TensorType((2,), "float32")), relax.Var("y", given)
    main = relax.Function([x, y], relax.SeqExpr([], x), ret_ty=x.ty)
    with pytest.raises((ModelError, ShapeError), match=message):
        load_model(tvm.IRModule({"main": main}))


def test_only_tensors_are_returned():
    x = relax.Var("x", relax.TensorType((2,), "float32"))
    both = relax.Tuple([x, relax.ShapeExpr([2])])
    main = relax.Function([x], relax.SeqExpr([], both), ret_ty=relax.TupleType([x.ty, relax.ShapeType([2])]))
    with pytest.raises(ModelError, match=r"main returns R.Shape\(\[2\]\), which is no tensor; compile it by"):
        load_model(tvm.IRModule({"main": main}))


def test_torch_programs_are_recognised_without_torch():
    program = type("ExportedProgram", (), {"__module__": "torch.export.exported_program"})()
    with pytest.raises(ModelError, match="torch frontend cannot import"):
        load_model(program)
