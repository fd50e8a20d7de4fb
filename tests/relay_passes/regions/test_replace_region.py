"""Launches in the place of call_tirs: the module stays well-formed and means the same."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from tvm_rammer.errors import CodegenError
from tvm_rammer.relay_passes import Launch, partition, replace_region

from ..models import op_names, random
from .test_partition import legal, levels


@T.prim_func(private=True, s_tir=True)
def exp_add(x: T.Buffer((4,), "float32"), c: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("y"):
            v = T.axis.spatial(4, i)
            y[v] = T.exp(x[v] + c[v])


@T.prim_func(private=True, s_tir=True)
def with_scratch(
    x: T.Buffer((4,), "float32"),
    c: T.Buffer((4,), "float32"),
    y: T.Buffer((4,), "float32"),
    scratch: T.Buffer((4,), "float32"),
):
    for i in range(4):
        with T.sblock("scratch"):
            v = T.axis.spatial(4, i)
            scratch[v] = x[v] + c[v]
    for i in range(4):
        with T.sblock("y"):
            v = T.axis.spatial(4, i)
            y[v] = T.exp(scratch[v])


@T.prim_func(private=True, s_tir=True)
def both_halves(x: T.Buffer((4,), "float32"), a: T.Buffer((2,), "float32"), b: T.Buffer((2,), "float32")):
    for i in range(2):
        with T.sblock("ab"):
            v = T.axis.spatial(2, i)
            a[v] = x[v]
            b[v] = x[v + 2]


def chain(dataflow=True):
    def body(b, x):
        return b.emit(relax.op.exp(b.emit(relax.op.add(x, relax.const(random(4))))))

    return legal((4,), body, dataflow)


def whole(function=exp_add, **more):
    return Launch(function, "rammer", (0, 1), **{"inputs": (0, 1), "outputs": (3,), **more})


@pytest.mark.parametrize("dataflow", [True, False])
def test_two_calls_become_one(run, dataflow):
    mod = chain(dataflow)
    (region,) = partition(mod).regions
    after = replace_region(mod, region, [whole()])
    assert relax.analysis.check_well_formed(after)
    assert op_names(after) == ["rammer"] and op_names(mod) == ["add", "tir_exp"]
    assert sorted(v.name_hint for v in after.get_global_vars()) == ["main", "rammer"]
    np.testing.assert_allclose(run(after, random(4, seed=1)), np.exp(random(4, seed=1) + random(4)), rtol=1e-5)


def test_workspace_and_embedded_arrays(run):
    mod = chain()
    (region,) = partition(mod).regions
    launch = whole(with_scratch, inputs=(0, random(4, seed=5)), workspace=(((4,), "float32"),))
    after = replace_region(mod, region, [launch])
    assert relax.analysis.check_well_formed(after)
    np.testing.assert_allclose(run(after, random(4)), np.exp(random(4) + random(4, seed=5)), rtol=1e-5)


def test_an_embedded_array_keeps_its_type():
    @T.prim_func(private=True, s_tir=True)
    def f(x: T.Buffer((4,), "float32"), t: T.Buffer((2,), "int64"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("y"):
                v = T.axis.spatial(4, i)
                y[v] = x[v] * T.Cast("float32", t[0])

    mod = chain()
    (region,) = partition(mod).regions
    after = replace_region(mod, region, [whole(f, inputs=(0, np.array([2, 3])))])
    assert relax.analysis.check_well_formed(after)


def test_operators_that_no_launch_replaces_stay(run):
    @T.prim_func(private=True, s_tir=True)
    def only_exp(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("y"):
                v = T.axis.spatial(4, i)
                y[v] = T.exp(x[v])

    mod = chain()
    (region,) = partition(mod).regions
    after = replace_region(mod, region, [Launch(only_exp, "only_exp", (1,), (2,), (3,))])
    assert op_names(after) == ["add", "only_exp"]
    np.testing.assert_allclose(run(after, random(4)), np.exp(2 * random(4)), rtol=1e-5)


def split(b, x):
    return b.emit(relax.op.split(x, 2, axis=0))


@pytest.mark.parametrize("whole_tuple", [True, False])
def test_tuples_of_results(run, whole_tuple):
    def body(b, x):
        parts = split(b, x)
        if whole_tuple:
            return parts
        return b.emit(relax.Tuple([b.emit(relax.TupleGetItem(parts, 1)), x, b.emit(relax.TupleGetItem(parts, 1))]))

    mod = legal((4,), body)
    (region,) = partition(mod).regions
    after = replace_region(mod, region, [Launch(both_halves, "halves", (0,), (0,), region.graph.operators[0].outputs)])
    assert relax.analysis.check_well_formed(after)
    x = random(4)
    for got, expected in zip(run(after, x), run(mod, x), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("names", ["two fields", "a tuple", "two tuples"])
def test_a_field_of_two_names_whose_sibling_is_unread(run, names):
    def body(b, x):
        parts = split(b, x)
        other = b.emit(relax.TupleGetItem(parts, 1))
        if names == "a tuple":
            pair = b.emit(relax.Tuple([relax.TupleGetItem(parts, 1), other]))
            again = b.emit(relax.TupleGetItem(pair, 0))
        else:
            again = b.emit(relax.TupleGetItem(b.emit(parts) if names == "two tuples" else parts, 1))
        read = b.emit(relax.op.call_dps_packed("rammer.test.twice", (again,), out_ty=again.ty))
        return b.emit(relax.Tuple([other, read, again]))

    mod = legal((4,), body)
    (region,) = partition(mod).regions
    (operator,) = region.graph.operators
    launch = Launch(both_halves, "halves", (0,), operator.inputs, (operator.outputs[1],), (((2,), "float32"),))
    after = replace_region(mod, region, [launch])
    assert relax.analysis.check_well_formed(after)
    tvm.register_global_func("rammer.test.twice", lambda a, b: b.copyfrom(2 * a.numpy()), override=True)
    x = random(4)
    for got, expected in zip(run(after, x), (x[:2], 2 * x[:2], x[:2]), strict=True):
        np.testing.assert_array_equal(got, expected)


def nested():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.add(x, x)
                b = R.exp(a)
                R.output(b)
            return (b, (x, b))

    return relax.transform.LegalizeOps()(Mod)


def test_nested_results(run):
    mod = nested()
    (region,) = partition(mod).regions
    after = replace_region(mod, region, [whole(inputs=(0, 0), outputs=(2,))])
    assert relax.analysis.check_well_formed(after)
    x = random(4)
    b, (same, again) = run(after, x)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(b, again)


def test_regions_are_replaced_one_after_another(run):
    """Each keeps its Vars while others are replaced, and stock calls stay between them."""

    @tvm.register_global_func("stock", override=True)
    def stock(a, b):
        tvm.runtime.tensor(a.numpy() * 3).copyto(b)

    mod = levels()
    x = random(4)
    expected = run(mod, x)
    after = mod
    for number, region in enumerate(partition(mod).regions):
        launches = [
            Launch(mod[op.function], f"launch_{number}_{o}", (o,), op.inputs, op.outputs)
            for o, op in enumerate(region.graph.operators)
        ]
        after = replace_region(after, region, launches)
        assert relax.analysis.check_well_formed(after)
    assert sum(name.startswith("launch_") for name in op_names(after)) == 5
    np.testing.assert_allclose(run(after, x), expected, rtol=1e-6)


def test_side_effects_keep_their_place():
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")):
            a = R.exp(x)
            _ = R.call_packed("log", x, ty_args=R.Tuple)
            b = R.sin(x)
            return R.add(a, b)

    mod = relax.transform.LegalizeOps()(Mod)
    first, second = partition(mod).regions
    (op,) = first.graph.operators
    after = replace_region(mod, first, [Launch(mod[op.function], "first", (0,), op.inputs, op.outputs)])
    operators = enumerate(second.graph.operators)
    launches = [Launch(mod[o.function], f"l{i}", (i,), o.inputs, o.outputs) for i, o in operators]
    after = replace_region(after, second, launches)
    bindings = [b.value for block in after["main"].body.blocks for b in block.bindings]
    assert [getattr(v.args[0], "name_hint", "log") if isinstance(v.op, tvm.ir.Op) else "log" for v in bindings] == [
        "first", "log", "l0", "l1",
    ]  # fmt: skip


def test_helpers_are_added_once_and_clashes_refused():
    mod = chain()
    (region,) = partition(mod).regions
    after = replace_region(mod, region, [whole(helpers={"helper": both_halves})])
    assert "helper" in [v.name_hint for v in after.get_global_vars()]
    with pytest.raises(CodegenError, match="another function 'main'"):
        replace_region(mod, region, [whole(helpers={"main": both_halves})])


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (whole(outputs=()), "3 parameters"),
        (whole(inputs=(0,)), "3 parameters"),
        (whole(outputs=(0,)), "does not replace"),
        (whole(outputs=(2,)), "no launch writes the output 'lv1'"),
    ],
)
def test_launches_that_do_not_fit_are_refused(launch, message):
    mod = chain()
    (region,) = partition(mod).regions
    with pytest.raises(CodegenError, match=message):
        replace_region(mod, region, [launch])


def test_launches_that_wait_for_each_other_are_refused():
    def body(b, x):
        return b.emit(relax.op.exp(b.emit(relax.op.negative(b.emit(relax.op.exp(x))))))

    mod = legal((4,), body)
    (region,) = partition(mod).regions
    a, middle, z = (op.outputs[0] for op in region.graph.operators)
    with pytest.raises(CodegenError, match="wait for each other"):
        replace_region(mod, region, [Launch(exp_add, "k", (0, 2), (middle,), (a, z))])
